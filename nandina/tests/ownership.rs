//! The private fields of a struct are written in one file: the one that defines the struct.
//!
//! The compiler allows more: a module may write the private fields of the modules around it. What
//! writes a field could then be anywhere below, and who wants to know when it changes has to read
//! all of that. So other files call a verb of the struct, which says what happens.
//!
//! The check goes by names. A file may assign a field of that name if it defines a struct that has
//! one. What counts as writing are assignments, also of one element and of several fields at once,
//! and what `core::mem` puts in the place of a field. Calls of methods do not count: the field is
//! a part then, and the file of the part has the verb. Comments, strings and tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Variables that hold a plain value: the struct, and why any file may change one.
const PLAIN: &[(&str, &str, &str)] = &[
    ("cost", "Cost", "a bound is a sum, and each store adds its part"),
    ("geometry", "Geometry", "a profile is a datasheet with other numbers"),
    ("label", "Label", "the owner of a page says what is in it"),
    ("options", "Options", "the options of one system are set one by one"),
];

/// The code of each file of a folder, by its path in there.
type Sources = BTreeMap<String, String>;

fn collect(folder: &Path, within: &str, found: &mut Sources) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = if within.is_empty() { name.to_owned() } else { format!("{within}/{name}") };
        if path.is_dir() {
            collect(&path, &name, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.insert(name, code_of(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The text of a file without comments, strings, characters and the tests at its end.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let (mut code, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if letter == '"' {
            end_of_string(rest)
        } else if letter == '\'' {
            // A lifetime has no second mark.
            let body = &rest[1..];
            let first = if body.starts_with('\\') { 2 } else { 1 };
            let length: usize = body.chars().take(first).map(char::len_utf8).sum();
            if body[length..].starts_with('\'') { length + 2 } else { 0 }
        } else {
            0
        };
        if skipped == 0 {
            code.push(letter);
        }
        rest = &rest[skipped.max(letter.len_utf8())..];
    }
    code
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

const fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The word at the start of `text`.
fn word(text: &str) -> &str {
    &text[..text.find(|letter| !is_word(letter)).unwrap_or(text.len())]
}

/// The word at the end of `text`.
fn last_word(text: &str) -> &str {
    &text[text.rfind(|letter| !is_word(letter)).map_or(0, |at| at + 1)..]
}

/// The end of what the bracket at the start of `text` encloses, or of all of it.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Divides `text` at the commas that no bracket encloses.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found, mut before) = (0, 0, Vec::new(), ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    found.push(text[start..].trim());
    found.into_iter().filter(|part| !part.is_empty()).collect()
}

/// A struct with named fields.
struct Struct {
    name: String,
    /// The fields, and whether each is `pub`.
    fields: Vec<(String, bool)>,
}

impl Struct {
    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| name == field)
    }

    /// Whether all fields are `pub`: it is a plain value, which any file may build.
    fn is_plain(&self) -> bool {
        self.fields.iter().all(|&(_, is_public)| is_public)
    }
}

/// The structs that a file defines.
fn structs(code: &str) -> Vec<Struct> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("struct ") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let rest = &code[at + "struct ".len()..];
        let Some(body) = rest.find(['{', ';', '(']).filter(|&body| rest[body..].starts_with('{'))
        else {
            continue;
        };
        let body = &rest[body..];
        let fields = parts(&body[1..closing(body)]).into_iter().map(|mut field| {
            while let Some(attribute) = field.strip_prefix('#') {
                field = attribute[closing(attribute) + 1..].trim_start();
            }
            let (before, _) = field.split_once(": ").unwrap();
            // `pub(crate)` is open to the library alone, so it counts as private.
            (last_word(before).to_owned(), before.starts_with("pub "))
        });
        found.push(Struct { name: word(rest).to_owned(), fields: fields.collect() });
    }
    found
}

/// Whether an assignment follows, and no comparison.
fn assigns(text: &str) -> bool {
    let operators = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ""];
    operators.iter().any(|operator| {
        let rest = text.strip_prefix(operator).and_then(|rest| rest.strip_prefix('='));
        rest.is_some_and(|rest| !rest.starts_with(['=', '>']))
    })
}

/// The rest of `text` after indices and numbers of elements.
fn behind_elements(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let number = rest.strip_prefix('.').map_or("", word);
        rest = if rest.starts_with('[') {
            &rest[(closing(rest) + 1).min(rest.len())..]
        } else if !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit()) {
            &rest[1 + number.len()..]
        } else {
            return rest;
        };
        rest = rest.trim_start();
    }
}

/// A field that code writes, and the word before it.
type Write = (String, String);

/// The field to which a place like `self.part.field[0]` leads.
fn field_of(place: &str) -> Option<Write> {
    let dots = place.match_indices('.').map(|(at, _)| at);
    let mut fields = dots.filter(|&at| {
        let name = word(&place[at + 1..]);
        !name.is_empty() && behind_elements(&place[at + 1 + name.len()..]).is_empty()
    });
    let at = fields.find(|&at| place[at + 1..].starts_with(|letter: char| !letter.is_numeric()))?;
    Some((word(&place[at + 1..]).to_owned(), last_word(place[..at].trim_end()).to_owned()))
}

/// The fields that a file writes.
fn writes(code: &str) -> Vec<Write> {
    let mut found = Vec::new();
    // `place.field = value`
    for (at, _) in code.match_indices('.') {
        let name = word(&code[at + 1..]);
        let is_field = name.starts_with(|letter: char| !letter.is_ascii_digit());
        if is_field && !code[..at].ends_with('.') {
            let rest = behind_elements(&code[at + 1 + name.len()..]);
            let is_taken = [".take()", ".get_or_insert("].iter().any(|call| rest.starts_with(call));
            if assigns(rest) || is_taken {
                found.push((name.to_owned(), last_word(code[..at].trim_end()).to_owned()));
            }
        }
    }
    // `(place.field, place.other) = values`
    for (at, _) in code.match_indices('(') {
        let begins = code[..at].trim_end().ends_with([';', '{', '}']);
        let end = at + closing(&code[at..]);
        if begins && code[end..].starts_with(')') && assigns(code[end + 1..].trim_start()) {
            found.extend(parts(&code[at + 1..end]).into_iter().filter_map(field_of));
        }
    }
    // `mem::take(&mut place.field)`
    for call in ["mem::take(", "mem::replace(", "mem::swap("] {
        for (at, _) in code.match_indices(call) {
            let open = at + call.len() - 1;
            let arguments = parts(&code[open + 1..open + closing(&code[open..])]);
            let places = arguments.into_iter().filter_map(|place| place.strip_prefix("&mut "));
            found.extend(places.filter_map(field_of));
        }
    }
    found
}

/// The fields that each file writes and may not: no struct of that file has one of that name.
fn foreign(sources: &Sources, plain: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let defined: BTreeMap<_, _> =
        sources.iter().map(|(file, code)| (file, structs(code))).collect();
    let is_held =
        |field: &str| defined.values().flatten().any(|one| one.has(field) && !one.is_plain());
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, code) in sources {
        for (field, before) in writes(code) {
            let is_own = defined[file].iter().any(|one| one.has(&field));
            if is_held(&field) && !is_own && !plain.contains(&before.as_str()) {
                found.entry(file.clone()).or_default().insert(field);
            }
        }
    }
    found
}

fn library() -> Sources {
    let mut sources = Sources::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut sources);
    sources
}

#[test]
fn private_fields_are_written_in_the_file_of_their_struct() {
    let sources = library();
    let all: Vec<_> = sources.values().flat_map(|code| structs(code)).collect();
    let written: usize = sources.values().map(|code| writes(code).len()).sum();
    assert!(all.len() > 120 && written > 400, "only {} structs, {written} writes", all.len());
    for (variable, name, _) in PLAIN {
        let of_that_name: Vec<_> = all.iter().filter(|one| one.name == *name).collect();
        assert!(!of_that_name.is_empty(), "`{variable}`: there is no struct {name}");
        assert!(of_that_name.iter().all(|one| one.is_plain()), "{name} has private fields");
    }
    let plain: Vec<_> = PLAIN.iter().map(|&(variable, ..)| variable).collect();
    let found = foreign(&sources, &plain);
    assert_eq!(found, BTreeMap::new(), "call verbs of the structs that have these fields");
    // A reason that is not needed is none.
    for &variable in &plain {
        let others: Vec<_> = plain.iter().copied().filter(|&other| other != variable).collect();
        assert!(!foreign(&sources, &others).is_empty(), "no file changes a `{variable}`");
    }
}

#[test]
fn each_way_to_write_a_field_is_found() {
    let code = "
        self.one = 1; part.two += 1; self.part.three[at] |= bit; self.four.1 = 0;
        (self.five, self.part.six) = (0, 0);
        let before = core::mem::replace(&mut self.seven, 0);
        core::mem::swap(&mut self.eight, &mut other.nine);
        self.ten <<= 1; let old = self.eleven.take();
        list
            .twelve
            = 1;
    ";
    let names = [
        "one", "two", "three", "four", "ten", "eleven", "twelve", "five", "six", "seven", "eight",
        "nine",
    ];
    let found: Vec<_> = writes(code).into_iter().map(|(field, _)| field).collect();
    assert_eq!(found, names);
    let reads = "
        if self.one == 1 && self.two <= 2 || self.three >= 3 { self.four(5); self.part.five.six() }
        let (six, seven) = (self.six, self.seven); let Some(x) = self.eight else { return };
        match self.nine { 1 => 2, _ if self.ten != 3 => 4 } Self { eleven: 1, ..other }
    ";
    assert_eq!(writes(reads), []);
}

#[test]
fn a_field_of_another_file_is_found_and_a_plain_value_is_not() {
    let file = |name: &str, text: &str| (name.to_owned(), code_of(text));
    let sources = Sources::from([
        file(
            "part.rs",
            "pub(super) struct Part<'b> {\n  // The = count.\n  count: &'b mut [u8],\n}",
        ),
        file(
            "plain.rs",
            "pub struct Plain {\n  #[cfg(test)]\n  pub cost: u32,\n  pub more: (u8, u8),\n}",
        ),
        file("own.rs", "struct Own { count: u8 } fn f(own: &mut Own) { own.count = 1; }"),
        file("other.rs", "fn f() { self.part.count[0] = 1; value.cost = 2; \"a.count = 1\"; }"),
        file("value.rs", "fn f() { value.count = 1; } // self.part.count = 2;"),
    ]);
    let found = foreign(&sources, &["value"]);
    let other = ("other.rs".to_owned(), BTreeSet::from(["count".to_owned()]));
    assert_eq!(found, BTreeMap::from([other]));
}
