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
    ("nandina-lab", &["nandina", "nandina-ftl", "nandina-sim"]),
    ("nandina-cli", &["nandina", "nandina-lab"]),
    ("nandina-ftl", &["nandina"]),
    ("xtask", &["nandina", "nandina-ftl"]),
];

/// Further folders of sources: firmware is a workspace of its own.
const ELSEWHERE: &[&str] = &["firmware/src"];

/// A folder of the library and the modules that its files may name.
const MODULES: &[(&str, &[&str])] = &[
    ("flash", &["checksum", "flash"]),
    ("error", &["flash", "node", "error"]),
    ("node", &["checksum", "bytes", "node"]),
    ("blocks", &["bytes", "flash", "blocks"]),
    ("log", &["checksum", "bytes", "flash", "node", "error", "blocks", "log"]),
    ("gc", &["flash", "error", "log", "gc"]),
    ("cache", &["bytes", "flash", "node", "cache"]),
    (
        "space",
        &["checksum", "bytes", "flash", "node", "error", "blocks", "cache", "log", "gc", "space"],
    ),
    ("engine", &["flash", "node", "error", "blocks", "log", "gc", "engine"]),
    (
        "tree",
        &[
            "checksum", "bytes", "flash", "node", "error", "blocks", "cache", "log", "gc", "space",
            "engine", "tree",
        ],
    ),
    ("rosette", &["bytes", "flash", "node", "error", "blocks", "log", "gc", "engine", "rosette"]),
    (
        "rosette_nor",
        &["bytes", "flash", "node", "error", "blocks", "log", "gc", "engine", "rosette_nor"],
    ),
    (
        "store",
        &[
            "checksum",
            "bytes",
            "flash",
            "node",
            "error",
            "blocks",
            "cache",
            "log",
            "gc",
            "space",
            "engine",
            "tree",
            "rosette",
            "rosette_nor",
            "tnc",
            "store",
        ],
    ),
    ("tnc", &["bytes", "flash", "node", "error", "blocks", "log", "gc", "space", "engine", "tnc"]),
    ("index", &["flash", "error", "gc", "engine", "index"]),
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
            // Documentation may link to what is higher.
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for mention in code.flat_map(|line| line.split("crate::").skip(1)) {
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
        for operation in
            ["read", "program", "erase", "rewrite", "overwrite", "discard", "is_bad", "mark_bad"]
        {
            let call = format!("flash.{operation}(");
            let may = path.ends_with("/log/chip.rs") || path.contains("/flash/");
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
        for system in nandina::store::SYSTEMS {
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
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().lines().map(str::trim);
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn each_coverage_mark_is_at_one_place() {
    for folder in ["nandina/src", "nandina-ftl/src"] {
        let files = sources(&root().join(folder));
        let (_, list) = files.iter().find(|(path, _)| path.ends_with("marks.rs")).unwrap();
        let (_, list) = list.split_once("NAMES: &[&str] = &[").unwrap();
        let (list, _) = list.split_once("];").unwrap();
        let names: Vec<_> = list.split('"').skip(1).step_by(2).collect();
        assert!(names.len() >= 20, "{folder}: only {} marks were seen", names.len());
        for name in names {
            let mark = format!("covered!(\"{name}\")");
            let places: usize = files.iter().map(|(_, text)| text.matches(&mark).count()).sum();
            assert_eq!(places, 1, "{folder}: {mark}");
        }
    }
}

/// The choices that make a system: those who declare them name them, and nobody else.
const CHOICES: &[&str] =
    &["UpdateScheme::", "SplitCommit::", "PageSharing::", "DESCRIPTION.updates", ".system.updates"];

/// What a trait or a type of no system declares when none is chosen.
const DEFAULTS: &[&str] = &[
    "const SPLITS: SplitCommit = SplitCommit::Root;",
    "const SHARING: PageSharing = PageSharing::Never;",
    // `Any` reads pages of all systems, and writes none.
    "const UPDATES: UpdateScheme = UpdateScheme::Mapped;",
];

#[test]
fn only_stores_ask_what_a_system_is() {
    let mut lines = 0;
    let mut found = 0;
    let library = root().join("nandina/src");
    let programs = ["nandina-lab/src", "nandina-lab/tests", "nandina-cli/src", "firmware/src"];
    let mut files: Vec<_> = ["blocks", "cache", "gc", "index", "log", "node", "space", "tree"]
        .iter()
        .flat_map(|module| sources(&library.join(module)))
        .collect();
    // The description says what follows from the choices, and the folder passes their names on.
    let engine = sources(&library.join("engine"));
    let beside = |(path, _): &(PathBuf, String)| {
        !path.ends_with("description.rs") && !path.ends_with("engine/mod.rs")
    };
    files.extend(engine.into_iter().filter(beside));
    files.extend(programs.iter().flat_map(|folder| sources(&root().join(folder))));
    // Systems outside of the library declare how they update, and ask no other one.
    let rivals = root().join("nandina-lab/src/rivals");
    let declares = |path: &Path, line: &str| {
        path.starts_with(&rivals) && line == "updates: UpdateScheme::InPlace,"
    };
    for (path, text) in &files {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            lines += 1;
            if DEFAULTS.contains(&line) {
                found += 1;
                continue;
            }
            for choice in CHOICES {
                let asks = line.contains(choice) && !declares(path, line);
                assert!(!asks, "{} asks for {choice} and not what follows: {line}", path.display());
            }
        }
    }
    assert!(lines > 30_000, "only {lines} lines were seen");
    assert_eq!(found, DEFAULTS.len(), "defaults");
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
    let library = root().join("nandina/src");
    for (path, _) in sources(&library) {
        let name = format!("`nandina/src/{}`", path.strip_prefix(&library).unwrap().display());
        assert!(architecture.contains(&name), "ARCHITECTURE.md does not name {name}");
    }
    for (document, text) in
        [("README.md", read("README.md")), ("docs/FORMAT.md", read("docs/FORMAT.md"))]
    {
        for system in nandina::store::SYSTEMS {
            assert!(text.contains(&format!("`{}`", system.key)), "{document} lacks {}", system.key);
        }
    }
}

#[test]
fn each_decision_names_an_assertion_or_a_test_that_exists() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, decisions) = architecture.split_once("\n## Decisions that are easy to undo").unwrap();
    let decisions: Vec<_> = decisions.split("\n- **").skip(1).collect();
    assert!(decisions.len() >= 35, "only {} decisions were seen", decisions.len());
    let mut tests = String::new();
    for (name, _) in LAYERS {
        let folder = root().join(name).join("tests");
        if folder.exists() {
            tests.extend(sources(&folder).into_iter().map(|(_, text)| text));
        }
    }
    let mut asserted = 0;
    for decision in decisions {
        let (what, _) = decision.split_once("**").unwrap();
        let name_after = |words: &str| {
            let (_, name) = decision.split_once(words)?;
            name.split_once('`').map(|(name, _)| name)
        };
        if let Some(file) = name_after("*Asserted in `") {
            let text = fs::read_to_string(root().join(file)).unwrap();
            let (_, message) = decision.split_once("`: \"").unwrap();
            let (message, _) = message.split_once("\".*").unwrap();
            assert!(text.contains(message), "{what}: {file} has no assertion \"{message}\"");
            asserted += 1;
        } else if let Some(test) = name_after("*Tested by `") {
            assert!(tests.contains(&format!("fn {test}(")), "{what}: there is no test {test}");
        } else {
            let file = name_after("*Pinned in `");
            let file = file.unwrap_or_else(|| panic!("{what}: what holds this decision?"));
            assert!(root().join(file).exists(), "{what}: there is no {file}");
        }
    }
    assert!(asserted >= 14, "only {asserted} decisions are asserted");
}

/// Phrases that comments of the library and documents do not use, in lower case.
///
/// Each is followed by a plain one.
const AVOIDED: &[(&str, &str)] = &[
    ("answers ", "returns"),
    ("is told", "is notified of, records"),
    ("are told", "are notified of, record"),
    ("so many", "this many, the given number of"),
    ("of before", "the previous"),
    ("what was put", "written, inserted"),
    ("put anew", "written again"),
    ("what waits", "pending changes"),
    ("hands on", "passes on"),
    ("handed on", "passed on"),
    ("goes on", "continues"),
    ("went on", "continued"),
    ("no more be", "no longer be"),
    (". else ", ". otherwise "),
    ("so is it", "that is also so"),
    ("in vain", "without effect"),
    ("laid to", "blamed on"),
    ("or nothing", "or `None`"),
    ("nothing but", "only"),
    ("takes for", "accepts as"),
    ("more than is theirs", "stale copies of records"),
];

/// Longer phrases in which an avoided one has another sense.
const OTHER_SENSES: &[&str] = &["all or nothing", "or nothing else"];

/// The avoided phrases in a text, each with a plain one.
fn avoided_in(text: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let mut text = text.to_lowercase();
    for sense in OTHER_SENSES {
        text = text.replace(sense, "");
    }
    AVOIDED.iter().filter(move |(phrase, _)| text.contains(phrase))
}

/// A comment of the library.
struct Comment {
    /// Its file, below the sources of the library, and its first line in it.
    at: (String, usize),
    /// Whether it documents an item or a module.
    is_doc: bool,
    /// Its lines, without indentation and comment markers.
    lines: Vec<String>,
    /// Columns of its longest line, indentation and marker included.
    columns: usize,
}

/// The comments of the library, except those at the ends of lines of code.
fn comments() -> Vec<Comment> {
    let library = root().join("nandina/src");
    let mut comments: Vec<Comment> = Vec::new();
    for (path, text) in sources(&library) {
        let file = path.strip_prefix(&library).unwrap().display().to_string();
        let mut marker_before = None;
        for (at, line) in text.lines().enumerate() {
            let code = line.trim_start();
            let marker = ["//!", "///", "//"].into_iter().find(|&marker| code.starts_with(marker));
            if let Some(marker) = marker {
                let text = code[marker.len()..].trim().to_string();
                let columns = line.chars().count();
                match comments.last_mut() {
                    Some(comment) if marker_before == Some(marker) => {
                        comment.lines.push(text);
                        comment.columns = comment.columns.max(columns);
                    }
                    _ => comments.push(Comment {
                        at: (file.clone(), at + 1),
                        is_doc: marker != "//",
                        lines: vec![text],
                        columns,
                    }),
                }
            }
            marker_before = marker;
        }
    }
    assert!(comments.len() > 1000, "only {} comments were seen", comments.len());
    comments
}

#[test]
fn the_library_uses_every_term_of_the_glossary() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, glossary) = architecture.split_once("\n## Glossary\n").unwrap();
    let (glossary, _) = glossary.split_once("\n## ").unwrap();
    let terms: Vec<_> = glossary.split("**").skip(1).step_by(2).collect();
    assert!(terms.len() >= 25, "the glossary has only {} terms", terms.len());
    let mut texts: Vec<_> =
        sources(&root().join("nandina/src")).into_iter().map(|(_, text)| text).collect();
    texts.extend(comments().into_iter().map(|comment| comment.lines.join(" ")));
    let texts: Vec<_> = texts.into_iter().map(|text| text.to_lowercase()).collect();
    for term in terms {
        let is_used = texts.iter().any(|text| text.contains(&term.to_lowercase()));
        assert!(is_used, "ARCHITECTURE.md explains \"{term}\", which the library does not use");
    }
}

#[test]
fn comments_of_the_library_are_narrow_and_begin_with_a_short_sentence() {
    for Comment { at: (file, line), is_doc, lines, columns } in comments() {
        assert!(columns <= 100, "{file}:{line}: a comment of {columns} columns");
        let first = &lines[0];
        let length = first.chars().count();
        assert!(!is_doc || length <= 80, "{file}:{line}: the first line has {length} characters");
        let is_sentence = first.ends_with(['.', ':', '?']);
        assert!(!is_doc || is_sentence, "{file}:{line}: the first line is not a sentence");
    }
}

#[test]
fn comments_of_the_library_use_the_words_of_the_field() {
    for Comment { at: (file, line), lines, .. } in comments() {
        let avoided = avoided_in(&lines.join(" ")).next();
        assert!(avoided.is_none(), "{file}:{line}: {avoided:?}");
    }
}

#[test]
fn documents_use_the_words_of_the_field() {
    let mut documents = vec![root().join("ARCHITECTURE.md"), root().join("README.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(docs.filter(|path| path.extension().is_some_and(|it| it == "md")));
    assert!(documents.len() >= 12, "only {} documents were seen", documents.len());
    let mut found = Vec::new();
    for path in documents {
        let text = fs::read_to_string(&path).unwrap();
        for paragraph in text.split("\n\n") {
            let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            let avoided = avoided_in(&words);
            found.extend(avoided.map(|(phrase, plain)| {
                let line = paragraph.lines().next().unwrap_or("");
                let begin: String = line.chars().take(60).collect();
                format!("{}, \"{begin}\": \"{phrase}\"; better: {plain}", path.display())
            }));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_phrase_is_avoided_unless_it_has_another_sense() {
    let found = |text| avoided_in(text).map(|(phrase, _)| *phrase).collect::<Vec<_>>();
    assert_eq!(
        found("Returns a page, or nothing. Else it goes on."),
        ["goes on", ". else ", "or nothing"]
    );
    assert_eq!(found("It is all or nothing: the last page, or nothing else."), [""; 0]);
}
