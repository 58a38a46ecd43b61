//! Files of the library import each other in one direction only.
//!
//! A file that can be read without knowing who uses it can be learned alone. What counts are `use`
//! and paths in code: the file that defines a name is found through the modules that pass it on.
//! That a module declares the files in its folder is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The text of each file by its module's path, without its tests.
type Sources = BTreeMap<String, String>;

/// The modules that each module imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn collect(folder: &Path, module: &str, found: &mut Sources) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let within = if module.is_empty() { name.clone() } else { format!("{module}::{name}") };
        if path.is_dir() {
            collect(&path, &within, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
            let is_folder = name == "mod" || name == "lib";
            found.insert(if is_folder { module.to_owned() } else { within }, code);
        }
    }
}

/// The names that a file defines outside of functions and implementations.
fn defined(text: &str) -> BTreeSet<&str> {
    let words = text.lines().filter(|line| !line.starts_with([' ', '/', '#']));
    words
        .filter_map(|line| {
            let mut words = line
                .split([' ', '<', '(', ':', '{', ';'])
                .filter(|word| !["", "pub", "crate)", "super)", "const", "unsafe"].contains(word));
            let is_constant = line.contains("const ") && !line.contains("fn ");
            match words.next()? {
                name if is_constant => Some(name),
                "fn" | "struct" | "enum" | "trait" | "type" | "static" => words.next(),
                _ => None,
            }
        })
        .collect()
}

/// Divides `{a, b::{c, d}}` behind a prefix into its paths.
fn expand(path: &str, into: &mut Vec<String>) {
    let Some((prefix, rest)) = path.split_once('{') else {
        // `Name as Other` imports what `Name` is.
        into.extend(path.split(' ').next().map(str::to_owned));
        return;
    };
    let (mut depth, mut start) = (0, 0);
    let body = rest.trim_end().strip_suffix('}').unwrap();
    for (at, letter) in body.char_indices().chain([(body.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if at > start {
                    expand(&format!("{prefix}{}", body[start..at].trim()), into);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths within the library that code names without importing them.
fn inline(text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap());
    let mut paths = Vec::new();
    for line in code.filter(|line| !line.contains("use ")) {
        for (at, _) in line.match_indices("crate::").chain(line.match_indices("super::")) {
            // The rest of `$crate::`, of `super::super::` and of names.
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let is_part = |c: &char| c.is_alphanumeric() || "_:".contains(*c);
            let path: String = line[at..].chars().take_while(is_part).collect();
            paths.push(path.trim_end_matches(':').to_owned());
        }
    }
    paths
}

/// The modules whose definitions the module `own` imports.
fn imports(own: &str, text: &str, sources: &Sources) -> BTreeSet<String> {
    let mut paths = Vec::new();
    for statement in text.split("\nuse ").skip(1) {
        let words: Vec<_> = statement.split(';').next().unwrap().split_whitespace().collect();
        expand(&words.join(" "), &mut paths);
    }
    paths.extend(inline(text));
    let mut found = BTreeSet::new();
    for path in paths {
        let mut parts: Vec<&str> = path.split("::").collect();
        let mut full: Vec<&str> = own.split("::").filter(|part| !part.is_empty()).collect();
        match parts.remove(0) {
            "crate" => full.clear(),
            "super" => {
                full.pop();
                while parts.first() == Some(&"super") {
                    parts.remove(0);
                    full.pop();
                }
            }
            "self" => {}
            _ => continue,
        }
        full.extend(parts);
        // The longest part of the path that is a module, and the name behind it.
        let length =
            (0..=full.len()).rev().find(|&length| sources.contains_key(&full[..length].join("::")));
        let length = length.unwrap();
        let (module, name) = (full[..length].join("::"), full.get(length));
        let Some(&name) = name else { continue };
        let is_within = |other: &str| other == module || other.starts_with(&format!("{module}::"));
        let defines = |module: &str| defined(&sources[module]).contains(name);
        let from = if defines(&module) {
            Some(module.clone())
        } else {
            sources.keys().find(|other| is_within(other) && defines(other)).cloned()
        };
        found.extend(from.filter(|from| from != own));
    }
    found
}

fn graph(sources: &Sources) -> Imports {
    sources.iter().map(|(own, text)| (own.clone(), imports(own, text, sources))).collect()
}

/// A way from a module back to itself, if there is one.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn follow(
        at: &str,
        imports: &Imports,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> bool {
        if let Some(start) = way.iter().position(|passed| passed == at) {
            way.drain(..start);
            return true;
        }
        if !done.contains(at) {
            way.push(at.to_owned());
            if imports[at].iter().any(|next| follow(next, imports, way, done)) {
                return true;
            }
            way.pop();
            done.insert(at.to_owned());
        }
        false
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    imports.keys().any(|at| follow(at, imports, &mut way, &mut done)).then_some(way)
}

/// The crates, and how many imports between their files there are at least.
const CRATES: &[(&str, usize)] = &[
    ("nandina", 600),
    ("nandina-sim", 20),
    ("nandina-ftl", 100),
    ("nandina-lab", 100),
    ("nandina-cli", 20),
];

#[test]
fn no_files_import_each_other() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, least) in CRATES {
        let mut sources = Sources::new();
        collect(&workspace.join(name).join("src"), "", &mut sources);
        let imports = graph(&sources);
        let arrows: usize = imports.values().map(BTreeSet::len).sum();
        assert!(arrows > *least, "only {arrows} imports were seen in {name}");
        assert_eq!(circle(&imports), None, "in {name}");
    }
}

#[test]
fn a_circle_through_a_module_that_passes_a_name_on_is_found() {
    let file = |module: &str, text: &str| (module.to_owned(), text.to_owned());
    let mut sources = Sources::from([
        file("", "\nmod tree;\n"),
        file("tree", "\nmod node;\nmod walk;\npub use node::Node;\n"),
        file("tree::node", "\nuse super::walk::{STEP, Walk};\npub struct Node;\n"),
        file("tree::walk", "\npub const STEP: u8 = 1;\npub struct Walk;\n"),
    ]);
    assert_eq!(circle(&graph(&sources)), None);
    for back in
        ["use super::Node;", "fn step() -> super::Node {}", "type Step = crate::tree::Node;"]
    {
        sources.insert("tree::walk".to_owned(), format!("\n{back}\npub struct Walk;\n"));
        let found = circle(&graph(&sources)).unwrap();
        assert_eq!(found, ["tree::node", "tree::walk"], "{back}");
    }
}
