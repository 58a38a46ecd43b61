//! The invariants of absence that ARCHITECTURE.md states.
//!
//! They are checked on the crate graph and on the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate and the crates of this workspace that it may depend on, and no others.
const LAYERS: &[(&str, &[&str])] = &[
    ("nandina", &[]),
    ("nandina-sim", &["nandina"]),
    ("nandina-mtd", &["nandina"]),
    ("nandina-lab", &["nandina", "nandina-sim"]),
    ("nandina-cli", &["nandina", "nandina-lab"]),
    ("xtask", &["nandina"]),
];

/// Further folders of sources: firmware is a workspace of its own.
const ELSEWHERE: &[&str] = &["firmware/src"];

/// A folder of the library and the modules that its files may name.
const MODULES: &[(&str, &[&str])] = &[
    ("flash", &["flash"]),
    ("node", &["bytes", "node"]),
    ("blocks", &["bytes", "flash", "blocks"]),
    ("log", &["bytes", "flash", "node", "error", "blocks", "log"]),
    ("gc", &["flash", "error", "log", "gc"]),
    ("cache", &["bytes", "flash", "node", "cache"]),
    ("space", &["bytes", "flash", "node", "error", "blocks", "cache", "log", "gc", "space"]),
    ("place", &["bytes", "flash", "node", "error", "blocks", "cache", "log", "space", "place"]),
    ("tree", &["bytes", "flash", "node", "error", "blocks", "log", "gc", "space", "place", "tree"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let ours = metadata.workspace_packages();
    assert_eq!(ours.len(), LAYERS.len(), "a crate is missing from LAYERS");
    for package in ours {
        let allowed = layers[package.name.as_str()];
        for dependency in &package.dependencies {
            let is_ours = layers.contains_key(dependency.name.as_str());
            let is_test = dependency.kind == cargo_metadata::DependencyKind::Development;
            assert!(
                !is_ours || is_test || allowed.contains(&dependency.name.as_str()),
                "{} must not depend on {}",
                package.name,
                dependency.name
            );
        }
        if package.name.as_str() == "nandina" {
            let normal = package.dependencies.iter().filter(|dependency| {
                dependency.kind == cargo_metadata::DependencyKind::Normal && !dependency.optional
            });
            let names: Vec<_> = normal.map(|dependency| dependency.name.as_str()).collect();
            assert_eq!(names, ["crc"], "the library depends on a checksum and nothing else");
        }
    }
}

#[test]
fn modules_of_the_library_name_only_lower_layers() {
    let mut checked = 0;
    for (folder, allowed) in MODULES {
        for (path, text) in sources(&root().join("nandina/src").join(folder)) {
            for mention in text.split("crate::").skip(1) {
                let module: String =
                    mention.chars().take_while(|&c| c.is_ascii_lowercase() || c == '_').collect();
                checked += 1;
                assert!(
                    module.is_empty() || allowed.contains(&module.as_str()),
                    "{} names crate::{module}",
                    path.display()
                );
            }
        }
    }
    assert!(checked > 30, "only {checked} mentions were seen");
}

#[test]
fn only_the_log_touches_a_chip() {
    for (path, text) in sources(&root().join("nandina/src")) {
        let path = path.display().to_string();
        for operation in ["read", "program", "erase", "rewrite", "overwrite", "is_bad", "mark_bad"]
        {
            let call = format!("flash.{operation}(");
            let may = path.contains("/log/") || path.contains("/flash/");
            assert!(may || !text.contains(&call), "{path} calls {call}");
        }
        let tree_knows = path.contains("/tree/")
            && ["Capabilities", "Profile", "Timing"].iter().any(|word| text.contains(word));
        assert!(!tree_knows, "{path} knows what kind of chip it is on");
    }
}

#[test]
fn the_library_has_no_heap_and_no_unsafe_code() {
    let library = fs::read_to_string(root().join("nandina/src/lib.rs")).unwrap();
    assert!(library.contains("#![no_std]") && library.contains("#![forbid(unsafe_code)]"));
    for (path, text) in sources(&root().join("nandina/src")) {
        assert!(!text.contains("extern crate"), "{}", path.display());
    }
}

#[test]
fn firmware_is_unsafe_only_where_it_talks_to_the_machine_and_names_no_system() {
    let folder = root().join("firmware/src");
    for (path, text) in sources(&folder) {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let may = ["host.rs", "measure.rs", "bin/code.rs"].contains(&name.as_str());
        assert!(may || !text.contains("unsafe "), "{name} has unsafe code");
        for system in nandina::place::SYSTEMS {
            assert!(!text.contains(&format!("\"{}\"", system.key)), "{name} names a system");
        }
    }
}

#[test]
fn only_images_devices_traces_and_golden_figures_write_files() {
    for (name, _) in LAYERS {
        for (path, text) in sources(&root().join(name).join("src")) {
            let path = path.display().to_string();
            let writes =
                ["fs::write(", "File::create", "OpenOptions", "tempfile::Builder", "persist("];
            let found = writes.iter().find(|&&call| text.contains(call));
            let folders = [
                "nandina-sim/src/image/",
                "nandina-mtd/src/",
                "nandina-lab/src/trace/write.rs",
                "xtask/src/golden.rs",
            ];
            let may = folders.iter().any(|folder| path.contains(folder));
            assert!(found.is_none() || may, "{path} writes files: {found:?}");
        }
    }
}

#[test]
fn every_file_says_why_it_exists_and_stays_small() {
    let folders = LAYERS.iter().map(|(name, _)| name).chain(ELSEWHERE);
    for folder in folders {
        for (path, text) in sources(&root().join(folder)) {
            let path = path.display();
            assert!(text.starts_with("//!"), "{path} must open with why it exists");
            let lines = lines_of_code(&text);
            assert!(lines <= 500, "{path} has {lines} lines of code: split it by subject");
        }
    }
}

/// Lines of a file without comments, blank lines and the tests at its end.
fn lines_of_code(text: &str) -> usize {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]").map(str::trim);
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn documents_name_files_and_systems_that_exist() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let architecture = read("ARCHITECTURE.md");
    let mut named = 0;
    for name in architecture.split('`').skip(1).step_by(2).filter(|name| name.contains('/')) {
        named += 1;
        assert!(root().join(name).exists(), "ARCHITECTURE.md names {name}, which is not there");
    }
    assert!(named > 15, "ARCHITECTURE.md names only {named} files");
    for (document, text) in
        [("README.md", read("README.md")), ("docs/FORMAT.md", read("docs/FORMAT.md"))]
    {
        for system in nandina::place::SYSTEMS {
            assert!(text.contains(&format!("`{}`", system.key)), "{document} lacks {}", system.key);
        }
    }
}
