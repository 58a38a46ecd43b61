//! `cargo xtask firmware`: builds, runs and measures every system on both boards.
//!
//! It compares the figures with the golden ones and knows no system by name.

use nandina::store::SYSTEMS;

use crate::figures::Row;
use crate::golden::{Golden, compare};
use crate::tools::{self, BOARDS, Compiler};
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

/// The figures of all requested systems and boards.
///
/// The second value is whether instructions were counted exactly.
fn measure(arguments: &Firmware, compiler: &Compiler) -> Result<(Vec<Row>, bool), String> {
    let root = root();
    let plugin = count::build(&root).map_err(|reason| {
        eprintln!("warning: {reason}: instructions are those of the timer, not exact");
    });
    let plugin = plugin.ok();
    let mut rows = Vec::new();
    for board in BOARDS {
        // A directory of leaves takes more RAM than the firmware gives: it is not measured yet.
        for system in SYSTEMS.iter().filter(|system| !system.directory).map(|system| system.key) {
            let asked = |list: &[String], name| list.is_empty() || list.iter().any(|a| a == name);
            if !asked(&arguments.board, board.name) || !asked(&arguments.system, system) {
                continue;
            }
            let told = |reason| format!("{} {system}: {reason}", board.name);
            let images = image::build(&root, compiler, board, system).map_err(told)?;
            let folder = root.join("target/firmware/run").join(format!("{}-{system}", board.name));
            let (said, counts) =
                emulate::run(&images, board, folder, plugin.as_deref()).map_err(told)?;
            if plugin.is_some() && counts.is_none() {
                return Err(told("the plugin wrote nothing".to_owned()));
            }
            rows.push(figures::row(&said, images.code_bytes, counts.as_ref()).map_err(told)?);
        }
    }
    Ok((rows, plugin.is_some()))
}
