//! The docstrings of the stubs become those of the compiled module: `help()` says what an editor shows.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Here, and in the source package.
const PLACES: [&str; 2] = ["../../python/idlewise/_native.pyi", "../../idlewise/_native.pyi"];
const QUOTES: &str = "\"\"\"";

fn main() {
    let place = PLACES.into_iter().find(|place| Path::new(place).exists());
    let place = place.expect("the stubs of the package are beside the crates");
    println!("cargo::rerun-if-changed={place}");
    let stubs = fs::read_to_string(place).expect("the stubs can be read");
    let mut arms = String::new();
    for (name, text) in docstrings(&stubs) {
        writeln!(arms, "({name:?}) => {{ {text:?} }};").expect("a string takes what is written");
    }
    let out = env::var("OUT_DIR").expect("cargo says where");
    let made = format!("/// What the stubs say of a name.\nmacro_rules! doc {{\n{arms}}}\n");
    fs::write(Path::new(&out).join("docstrings.rs"), made).expect("cargo's folder can be written to");
}

/// Each function and class with its docstring; methods as `Class.method`.
fn docstrings(stubs: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut class, mut name) = ("", None);
    let mut lines = stubs.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let word = |after: &str| after.split(['(', ':']).next().unwrap_or_default().to_owned();
        if let Some(after) = line.strip_prefix("class ") {
            class = after.split(['(', ':']).next().unwrap_or_default();
            name = Some(class.to_owned());
        } else if let Some(after) = line.strip_prefix("def ") {
            name = Some(word(after));
        } else if let Some(after) = line.strip_prefix("    def ") {
            name = Some(format!("{class}.{}", word(after)));
        } else if let Some(begin) = trimmed.strip_prefix(QUOTES) {
            let mut text = vec![begin];
            while !text.last().is_some_and(|last| last.ends_with(QUOTES)) {
                let line = lines.next().expect("a docstring ends");
                text.push(line.get(indent..).unwrap_or_default());
            }
            let text = text.join("\n");
            found.extend(name.take().map(|name| (name, text.trim_end_matches(QUOTES).trim_end().to_owned())));
        }
    }
    found
}
