//! `cargo xtask firmware`: builds, runs and measures every system on both boards.
//!
//! Address mappings follow. It compares the figures with the golden ones and knows no system and no
//! mapping by name.

use nandina::store::SYSTEMS;
use nandina_ftl::mapping::MAPPINGS;

use crate::figures::Row;
use crate::golden::{Golden, compare};
use crate::image::Image;
use crate::tools::{self, BOARDS, Board, Compiler, MAPPING_BOARD};
use crate::{Firmware, count, emulate, figures, image, print, root};

/// Runs the command; the error is text for people.
pub fn run(arguments: &Firmware) -> Result<(), String> {
    let path = root().join("firmware/golden.txt");
    let golden = Golden::read(&path)?;
    let compiler = match tools::find(golden.as_ref().map(|golden| golden.compiler.as_str())) {
        Ok(compiler) => compiler,
        Err(missing) if arguments.if_possible => {
            eprintln!("SKIPPED: firmware is neither built nor run nor measured.\n{missing}");
            return Ok(());
        }
        Err(missing) => return Err(missing),
    };
    let (rows, counted) = measure(arguments, &compiler)?;
    if arguments.json {
        let by = if counted { "plugin" } else { "timer" };
        println!("{:#}", print::as_json(&compiler.version, by, &rows));
    } else {
        println!("{}", print::table(&rows));
        println!("built by {}", compiler.version);
    }
    if arguments.bless {
        if !counted {
            return Err("golden figures need instructions that are counted exactly".to_owned());
        }
        return Golden { compiler: compiler.version, rows }.write(&path);
    }
    let verdict = compare(golden.as_ref(), &compiler.version, &rows, counted);
    for warning in &verdict.warnings {
        eprintln!("warning: {warning}");
    }
    for failure in &verdict.failures {
        eprintln!("error: {failure}");
    }
    if verdict.failures.is_empty() {
        return Ok(());
    }
    Err("these are not as they must be; golden figures that are meant to change: cargo xtask firmware --bless"
        .to_owned())
}

/// Returns the name of a system, or of a mapping that needs no heap; the error lists all names.
pub fn known(name: &str) -> Result<String, String> {
    let names: Vec<String> = system_names().map(str::to_owned).chain(mapping_names()).collect();
    match names.iter().any(|known| known == name) {
        true => Ok(name.to_owned()),
        false => Err(format!("known are {}", names.join(", "))),
    }
}

fn system_names() -> impl Iterator<Item = &'static str> {
    SYSTEMS.iter().map(|system| system.key)
}

fn mapping_names() -> impl Iterator<Item = String> {
    MAPPINGS.iter().filter(|map| !map.needs_heap).map(|map| figures::name_of_mapping(map.name))
}

/// The figures of all requested systems, mappings and boards.
///
/// The second value is whether instructions were counted exactly.
fn measure(arguments: &Firmware, compiler: &Compiler) -> Result<(Vec<Row>, bool), String> {
    let root = root();
    let plugin = count::build(&root).map_err(|reason| {
        eprintln!("warning: {reason}: instructions are those of the timer, not exact");
    });
    let plugin = plugin.ok();
    let is_asked = |list: &[String], name: &str| list.is_empty() || list.iter().any(|a| a == name);
    let run = |image: &Image, word: Option<&str>, board: Board, name: &str| {
        let folder = format!("{}-{}", board.name, name.replace(':', "-"));
        let folder = root.join("target/firmware/run").join(folder);
        let (said, counts) = emulate::run(image, word, board, folder, plugin.as_deref())?;
        match plugin.is_some() && counts.is_none() {
            true => Err("the plugin wrote nothing".to_owned()),
            false => Ok((said, counts)),
        }
    };
    let mut rows = Vec::new();
    for board in BOARDS.into_iter().filter(|board| is_asked(&arguments.board, board.name)) {
        for system in system_names() {
            if !is_asked(&arguments.system, system) {
                continue;
            }
            let named = |reason| format!("{} {system}: {reason}", board.name);
            let (image, code_bytes) =
                image::build(&root, compiler, board, system).map_err(named)?;
            let (said, counts) = run(&image, None, board, system).map_err(named)?;
            rows.push(figures::row(&said, code_bytes, counts.as_ref()).map_err(named)?);
        }
    }
    let board = MAPPING_BOARD;
    let mut image = None;
    for name in mapping_names().filter(|name| is_asked(&arguments.system, name)) {
        if !is_asked(&arguments.board, board.name) {
            break;
        }
        let named = |reason| format!("{} {name}: {reason}", board.name);
        let image = match &image {
            Some(image) => image,
            None => image.insert(image::build_mappings(&root, compiler, board).map_err(named)?),
        };
        let word = name.split_once(':').map(|(_, name)| name);
        let (said, counts) = run(image, word, board, &name).map_err(named)?;
        rows.push(figures::mapping_row(&said, counts.as_ref()).map_err(named)?);
    }
    Ok((rows, plugin.is_some()))
}
