//! The public items of a crate, read from its source: each by the shortest path that leads to it, with its signature.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Fields, ImplItem, Item, ReturnType, Signature, TraitItem, Type, UseTree, Visibility};

/// A module: where it is in the source, whether it can be named from outside, and what is in it.
struct Module {
    path: Vec<String>,
    is_public: bool,
    items: Vec<Item>,
}

/// One line an item, as `fn drive::shared(policy: P)`.
pub fn public_items(root: &Path) -> BTreeSet<String> {
    let mut modules = Vec::new();
    walk(&Module { path: Vec::new(), is_public: true, items: parse(root) }, root.parent().unwrap(), &mut modules);
    // Where each item of a module that cannot be named is shown: by what it is called there. Modules come behind those in them.
    let mut shown: BTreeMap<(Vec<String>, String), String> = BTreeMap::new();
    let (public, hidden): (Vec<_>, Vec<_>) = modules.iter().rev().partition(|module| module.is_public);
    for module in public.into_iter().rev() {
        shown.extend(shown_by(module));
    }
    // What one such module shows of another is shown where it is shown itself.
    for module in hidden {
        for (item, place) in shown_by(module) {
            let called = place.rsplit("::").next().unwrap_or_default().to_string();
            if let Some(outside) = shown.get(&(module.path.clone(), called)).cloned() {
                shown.entry(item).or_insert(outside);
            }
        }
    }
    let mut lines = BTreeSet::new();
    for module in &modules {
        let name = |ident: &syn::Ident| {
            let here = (module.path.clone(), ident.to_string());
            let path = [&module.path[..], &[ident.to_string()]].concat().join("::");
            shown.get(&here).cloned().or_else(|| module.is_public.then_some(path))
        };
        module.items.iter().for_each(|item| describe(item, &name, &mut lines));
    }
    lines
}

/// What the `pub use` of a module show, and as what.
fn shown_by(module: &Module) -> BTreeMap<(Vec<String>, String), String> {
    let mut shown = BTreeMap::new();
    for item in &module.items {
        let Item::Use(used) = item else { continue };
        if matches!(used.vis, Visibility::Public(_)) {
            uses(&used.tree, &module.path, &mut Vec::new(), &mut shown);
        }
    }
    shown
}

fn parse(file: &Path) -> Vec<Item> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items
}

fn walk(module: &Module, folder: &Path, modules: &mut Vec<Module>) {
    for item in &module.items {
        let Item::Mod(inner) = item else { continue };
        let name = inner.ident.to_string();
        let is_test = inner
            .attrs
            .iter()
            .any(|attr| attr.to_token_stream().to_string().split(['(', ',', ' ', ')']).any(|word| word == "test"));
        if is_test {
            continue;
        }
        let file: PathBuf = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")]
            .into_iter()
            .find(|file| file.exists())
            .unwrap_or_else(|| panic!("no file for the module {name} in {}", folder.display()));
        let is_public = module.is_public && matches!(inner.vis, Visibility::Public(_));
        let path = [&module.path[..], std::slice::from_ref(&name)].concat();
        walk(&Module { path, is_public, items: parse(&file) }, &folder.join(&name), modules);
    }
    modules.push(Module { path: module.path.clone(), is_public: module.is_public, items: module.items.clone() });
}

/// What a `pub use` shows: items of modules below, by the name that they have where it stands.
fn uses(tree: &UseTree, here: &[String], path: &mut Vec<String>, shown: &mut BTreeMap<(Vec<String>, String), String>) {
    let mut show = |name: String, called: String, path: &[String]| {
        let place = [here, &[called]].concat().join("::");
        shown.entry(([here, path].concat(), name)).or_insert(place);
    };
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            uses(&step.tree, here, path, shown);
            path.pop();
        }
        UseTree::Name(name) => show(name.ident.to_string(), name.ident.to_string(), path),
        UseTree::Rename(name) => show(name.ident.to_string(), name.rename.to_string(), path),
        UseTree::Group(group) => group.items.iter().for_each(|tree| uses(tree, here, path, shown)),
        UseTree::Glob(_) => panic!("a `pub use` of everything hides what is public"),
    }
}

fn describe(item: &Item, name: &dyn Fn(&syn::Ident) -> Option<String>, lines: &mut BTreeSet<String>) {
    let public = |vis: &Visibility, ident: &syn::Ident| name(ident).filter(|_| matches!(vis, Visibility::Public(_)));
    match item {
        Item::Fn(one) => {
            let path = public(&one.vis, &one.sig.ident);
            lines.extend(path.map(|path| format!("fn {path}{}", signature(&one.sig))));
        }
        Item::Struct(one) => {
            let Some(path) = public(&one.vis, &one.ident) else { return };
            fields(&one.fields, &path, true, lines);
            lines.insert(format!("struct {path}"));
        }
        Item::Enum(one) => {
            let Some(path) = public(&one.vis, &one.ident) else { return };
            for variant in &one.variants {
                lines.insert(format!("variant {path}::{}", variant.ident));
                fields(&variant.fields, &format!("{path}::{}", variant.ident), false, lines);
            }
            lines.insert(format!("enum {path}"));
        }
        Item::Trait(one) => {
            let Some(path) = public(&one.vis, &one.ident) else { return };
            for item in &one.items {
                let TraitItem::Fn(method) = item else { continue };
                lines.insert(format!("fn {path}::{}{}", method.sig.ident, signature(&method.sig)));
            }
            lines.insert(format!("trait {path}"));
        }
        Item::Const(one) => {
            lines.extend(public(&one.vis, &one.ident).map(|path| format!("const {path}: {}", text(&one.ty))))
        }
        Item::Static(one) => {
            lines.extend(public(&one.vis, &one.ident).map(|path| format!("static {path}: {}", text(&one.ty))));
        }
        Item::Type(one) => {
            lines.extend(public(&one.vis, &one.ident).map(|path| format!("type {path} = {}", text(&one.ty))))
        }
        Item::Impl(one) => {
            let Type::Path(of) = &*one.self_ty else { return };
            let Some(path) = of.path.segments.last().and_then(|last| name(&last.ident)) else { return };
            for item in &one.items {
                match item {
                    ImplItem::Fn(method) if one.trait_.is_none() && matches!(method.vis, Visibility::Public(_)) => {
                        lines.insert(format!("fn {path}::{}{}", method.sig.ident, signature(&method.sig)));
                    }
                    ImplItem::Const(value) if matches!(value.vis, Visibility::Public(_)) => {
                        lines.insert(format!("const {path}::{}: {}", value.ident, text(&value.ty)));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn fields(all: &Fields, path: &str, only_public: bool, lines: &mut BTreeSet<String>) {
    for (index, field) in all.iter().enumerate() {
        if only_public && !matches!(field.vis, Visibility::Public(_)) {
            continue;
        }
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        lines.insert(format!("field {path}.{name}: {}", text(&field.ty)));
    }
}

fn signature(sig: &Signature) -> String {
    let inputs: Vec<String> = sig.inputs.iter().map(text).collect();
    let output =
        if let ReturnType::Type(_, kind) = &sig.output { format!(" -> {}", text(kind)) } else { String::new() };
    format!("({}){output}", inputs.join(", "))
}

/// Source text without the blanks between tokens that nobody writes.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, plain) in [
        (" :: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        ("[ ", "["),
        (" ]", "]"),
        (" ;", ";"),
        ("' ", "'"),
        (" (", "("),
        ("->", " -> "),
        ("  ", " "),
    ] {
        text = text.replace(spaced, plain);
    }
    text.replace(" - > ", " -> ").replace("- >", " -> ").replace("  ", " ")
}
