//! What `--json` prints, read from the types in the source: the members of each object, with what is written about them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use idlewise::policy::Tried;
use syn::{Attribute, Expr, Fields, GenericArgument, Item, ItemUse, Lit, Meta, PathArguments, Type, UseTree};

/// A type that is written as JSON.
enum Kind {
    Object(Vec<Member>),
    /// The names of its variants, and their members where they have any.
    OneOf(Vec<(String, Vec<Member>)>),
    /// Any of these.
    Any(Vec<Member>),
}

#[derive(Clone)]
struct Member {
    name: String,
    kind: Type,
    about: String,
    is_flat: bool,
    /// It is left out where there is nothing to say.
    may_miss: bool,
    /// It is written in a way of its own: as a number.
    is_made: bool,
}

/// The types of the workspace, by name and file.
pub struct Types {
    all: HashMap<String, Vec<(PathBuf, Kind)>>,
    /// Where a name comes from that a file uses.
    uses: HashMap<PathBuf, HashMap<String, Vec<String>>>,
}

/// A line of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The members that lead there, with `[]` behind lists.
    pub path: String,
    pub kind: String,
    pub about: String,
    /// It may be left out, or stands in something that may be.
    pub may_miss: bool,
}

impl Types {
    /// Those of all crates in this folder.
    pub fn read(crates: &Path) -> Self {
        let mut types = Self { all: HashMap::new(), uses: HashMap::new() };
        let mut folders = vec![crates.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    types.items(&path, file.items);
                }
            }
        }
        types
    }

    fn items(&mut self, file: &Path, items: Vec<Item>) {
        for item in items {
            let (name, kind) = match item {
                Item::Use(used) => {
                    self.used(file, used);
                    continue;
                }
                Item::Struct(item) => (item.ident.to_string(), Kind::Object(members(&item.fields))),
                Item::Enum(item) => {
                    let case = serde(&item.attrs, "rename_all");
                    let variants = item.variants.iter();
                    let variants: Vec<(String, Vec<Member>)> = variants
                        .map(|one| (cased(&one.ident.to_string(), case.as_deref()), members(&one.fields)))
                        .collect();
                    let untagged = has(&item.attrs, "untagged");
                    let all =
                        |variants: Vec<(String, Vec<Member>)>| variants.into_iter().flat_map(|(_, members)| members);
                    let kind = if untagged { Kind::Any(all(variants).collect()) } else { Kind::OneOf(variants) };
                    (item.ident.to_string(), kind)
                }
                // Types that only a function knows are found as well.
                Item::Fn(function) => {
                    let inner = function.block.stmts.into_iter();
                    let inner = inner.filter_map(|it| if let syn::Stmt::Item(item) = it { Some(item) } else { None });
                    self.items(file, inner.collect());
                    continue;
                }
                _ => continue,
            };
            self.all.entry(name).or_default().push((file.to_path_buf(), kind));
        }
    }

    fn used(&mut self, file: &Path, used: ItemUse) {
        fn walk(tree: UseTree, path: &mut Vec<String>, found: &mut HashMap<String, Vec<String>>) {
            match tree {
                UseTree::Path(step) => {
                    path.push(step.ident.to_string());
                    walk(*step.tree, path, found);
                    path.pop();
                }
                UseTree::Name(name) => {
                    drop(found.insert(name.ident.to_string(), [&path[..], &[name.ident.to_string()]].concat()))
                }
                UseTree::Rename(name) => {
                    drop(found.insert(name.rename.to_string(), [&path[..], &[name.ident.to_string()]].concat()));
                }
                UseTree::Group(group) => group.items.into_iter().for_each(|tree| walk(tree, path, found)),
                UseTree::Glob(_) => {}
            }
        }
        walk(used.tree, &mut Vec::new(), self.uses.entry(file.to_path_buf()).or_default());
    }

    /// The type of this name as a file means it: its own, or that whose folders its `use` names.
    fn find(&self, file: &Path, path: &[String]) -> Option<&(PathBuf, Kind)> {
        let name = path.last()?;
        let own = self.uses.get(file).and_then(|uses| uses.get(&path[0]));
        let steps: Vec<String> = own.into_iter().flatten().chain(path).map(|step| step.replace('_', "-")).collect();
        let named = self.all.get(own.filter(|_| path.len() == 1).and_then(|own| own.last()).unwrap_or(name))?;
        if let Some(here) = named.iter().find(|(place, _)| place == file).filter(|_| own.is_none() && path.len() == 1) {
            return Some(here);
        }
        named.iter().max_by_key(|(place, _)| {
            let place = place.with_extension("");
            let parts: Vec<String> = place.iter().map(|part| part.to_string_lossy().replace('_', "-")).collect();
            let near = parts.iter().zip(file.iter()).take_while(|(a, b)| ***a == *b.to_string_lossy()).count();
            (steps.iter().filter(|step| parts.contains(step)).count(), near)
        })
    }

    /// What is written of the type of this name in a file.
    pub fn lines(&self, file: &Path, name: &str) -> Vec<Line> {
        let (place, kind) =
            self.find(file, &[name.into()]).unwrap_or_else(|| panic!("no {name} in {}", file.display()));
        let mut lines = Vec::new();
        self.of(place, kind, "", false, &mut lines);
        lines
    }

    fn of(&self, file: &Path, kind: &Kind, prefix: &str, may_miss: bool, lines: &mut Vec<Line>) {
        match kind {
            Kind::Object(members) => {
                members.iter().for_each(|member| self.member(file, member, prefix, may_miss, lines))
            }
            Kind::Any(members) => members.iter().for_each(|member| self.member(file, member, prefix, true, lines)),
            Kind::OneOf(variants) => {
                for (name, members) in variants.iter().filter(|(_, members)| !members.is_empty()) {
                    for member in members {
                        let member = Member { name: name.clone(), ..member.clone() };
                        self.member(file, &member, prefix, true, lines);
                    }
                }
            }
        }
    }

    fn member(&self, file: &Path, member: &Member, prefix: &str, may_miss: bool, lines: &mut Vec<Line>) {
        let may_miss = may_miss || member.may_miss;
        if member.is_flat || member.name.is_empty() {
            let (inner, _) = unwrapped(&member.kind);
            let optional = matches!(last(&member.kind).as_deref(), Some("Option"));
            if let Some((place, kind)) = named(inner).and_then(|path| self.find(file, &path)) {
                self.of(place, kind, prefix, may_miss || optional, lines);
            }
            return;
        }
        let path = format!("{prefix}{}", member.name);
        let (kind, inner, list) = self.kind(file, &member.kind);
        let kind = if member.is_made { "number".into() } else { kind };
        if last(&member.kind).as_deref() == Some("Parameters") {
            lines.push(Line { path: path.clone(), kind: "object".into(), about: member.about.clone(), may_miss });
            lines.extend(varying(&path));
            return;
        }
        lines.push(Line { path: path.clone(), kind, about: member.about.clone(), may_miss });
        if let Some((place, kind)) = inner.filter(|_| !member.is_made) {
            let prefix = if list { format!("{path}[].") } else { format!("{path}.") };
            self.of(place, kind, &prefix, may_miss, lines);
        }
    }

    /// What a value looks like, the type in it that has members, and whether it is a list.
    fn kind(&self, file: &Path, kind: &Type) -> (String, Option<&(PathBuf, Kind)>, bool) {
        let orelse = |text: String, optional: bool| if optional { format!("{text}, or null") } else { text };
        match kind {
            Type::Reference(inner) => self.kind(file, &inner.elem),
            Type::Slice(inner) => {
                let (text, found, _) = self.kind(file, &inner.elem);
                (format!("list of {text}"), found, true)
            }
            Type::Array(inner) => {
                let (text, found, _) = self.kind(file, &inner.elem);
                (format!("list of {text}"), found, true)
            }
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.elems.iter().map(|part| self.kind(file, part).0).collect();
                (format!("list [{}]", parts.join(", ")), None, false)
            }
            other => {
                let name = last(other).unwrap_or_default();
                let first = || argument(other, 0);
                match &*name {
                    "Option" => {
                        let (text, found, list) = first().map_or_else(Default::default, |inner| self.kind(file, inner));
                        (orelse(text, true), found, list)
                    }
                    "Box" | "Cow" => {
                        argument(other, 0).map_or(("text".into(), None, false), |inner| self.kind(file, inner))
                    }
                    "Vec" | "VecDeque" | "BTreeSet" => {
                        let (text, found, _) = first().map_or_else(Default::default, |inner| self.kind(file, inner));
                        (format!("list of {text}"), found, true)
                    }
                    "BTreeMap" | "HashMap" | "Map" => ("object".into(), None, false),
                    "String" | "str" | "PathBuf" => ("text".into(), None, false),
                    "bool" => ("true or false".into(), None, false),
                    "Nanos" => ("time with a unit".into(), None, false),
                    "Bytes" => ("size with a unit".into(), None, false),
                    "Interference" => ("number".into(), None, false),
                    "Rate" => ("rate with a unit".into(), None, false),
                    "f64" | "f32" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" => {
                        ("number".into(), None, false)
                    }
                    _ => match named(other).and_then(|path| self.find(file, &path)) {
                        Some(found @ (_, Kind::OneOf(variants))) => {
                            let plain = variants.iter().filter(|(_, members)| members.is_empty());
                            let names: Vec<String> = plain.map(|(name, _)| format!("`{name}`")).collect();
                            let text = if names.is_empty() { "object".into() } else { names.join(" or ") };
                            (text, Some(found), false)
                        }
                        Some(found) => ("object".into(), Some(found), false),
                        None => panic!("{}: nobody knows how {name} is written", file.display()),
                    },
                }
            }
        }
    }
}

/// The parameters of policies that a comparison varies.
fn varying(path: &str) -> impl Iterator<Item = Line> {
    let all = idlewise::policy::all_parameters().into_iter();
    let varying = all.filter(|one| !matches!(one.tried, Tried::One(_) | Tried::AtLeastFirst(_)));
    varying.map(move |one| Line {
        path: format!("{path}.{}", one.field()),
        kind: "number".into(),
        about: format!("{}.", one.about),
        may_miss: true,
    })
}

fn members(fields: &Fields) -> Vec<Member> {
    let written = fields.iter().filter(|field| !has(&field.attrs, "skip"));
    let member = |field: &syn::Field| Member {
        name: serde(&field.attrs, "rename")
            .or_else(|| field.ident.as_ref().map(ToString::to_string))
            .unwrap_or_default(),
        kind: field.ty.clone(),
        about: about(&field.attrs),
        is_flat: has(&field.attrs, "flatten"),
        may_miss: serde(&field.attrs, "skip_serializing_if").is_some(),
        is_made: serde(&field.attrs, "serialize_with").is_some_and(|with| with == "in_bytes"),
    };
    written.map(member).collect()
}

/// The words of a documentation comment.
fn about(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|one| one.path().is_ident("doc")).filter_map(|one| match &one.meta {
        Meta::NameValue(pair) => text(&pair.value),
        _ => None,
    });
    without_links(lines.map(|line| line.trim().to_string()).collect::<Vec<_>>().join(" ").trim())
}

/// The text without links to other types, which lead nowhere here.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, behind) = part.split_once("`]").unwrap_or((part, ""));
        let behind = behind.strip_prefix('(').and_then(|link| link.split_once(')')).map_or(behind, |(_, rest)| rest);
        out += &format!("`{name}`{behind}");
    }
    out
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The value of `#[serde(key = "value")]`.
fn serde(attributes: &[Attribute], key: &str) -> Option<String> {
    let mut found = None;
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            if let Ok(value) = meta.value() {
                let value: Lit = value.parse()?;
                if let (true, Lit::Str(text)) = (meta.path.is_ident(key), value) {
                    found = Some(text.value());
                }
            }
            Ok(())
        });
    }
    found
}

/// Whether there is `#[serde(key)]`.
fn has(attributes: &[Attribute], key: &str) -> bool {
    let mut found = false;
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident(key);
            if let Ok(value) = meta.value() {
                let _: Lit = value.parse()?;
            }
            Ok(())
        });
    }
    found
}

fn cased(name: &str, case: Option<&str>) -> String {
    match case {
        Some("lowercase") => name.to_lowercase(),
        Some("kebab-case") => {
            let parts = name.char_indices();
            let dashed = parts.map(|(at, c)| if c.is_uppercase() && at > 0 { format!("-{c}") } else { c.to_string() });
            dashed.collect::<String>().to_lowercase()
        }
        _ => name.into(),
    }
}

/// The last part of a type's name.
fn last(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|part| part.ident.to_string()),
        _ => None,
    }
}

/// The parts of a type's name.
fn named(kind: &Type) -> Option<Vec<String>> {
    match kind {
        Type::Path(path) => Some(path.path.segments.iter().map(|part| part.ident.to_string()).collect()),
        _ => None,
    }
}

fn argument(kind: &Type, index: usize) -> Option<&Type> {
    let Type::Path(path) = kind else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    let types =
        arguments.args.iter().filter_map(|one| if let GenericArgument::Type(kind) = one { Some(kind) } else { None });
    types.into_iter().nth(index)
}

/// The type inside of options, boxes and references; and whether it is in a list.
fn unwrapped(kind: &Type) -> (&Type, bool) {
    match kind {
        Type::Reference(inner) => unwrapped(&inner.elem),
        other => match (last(other).as_deref(), argument(other, 0)) {
            (Some("Option" | "Box"), Some(inner)) => unwrapped(inner),
            (Some("Vec"), Some(inner)) => (unwrapped(inner).0, true),
            _ => (other, false),
        },
    }
}
