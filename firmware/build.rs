//! Chooses the board and the system.
//!
//! The variable `NANDINA_BOARD` names the board; without it the target decides. `NANDINA_SYSTEM` is
//! a key of the registry. This file names no system itself.

use std::{any::type_name, env, fs, path::Path};

use nandina::System;
use nandina::store::{Visitor, visit};

struct TypeName;

impl Visitor for TypeName {
    type Output = &'static str;

    fn visit<S: System + 'static>(self) -> &'static str {
        type_name::<S>()
    }
}

/// Boards: name, target, bytes of RAM. Without a name, the first one of a target is taken.
const BOARDS: [(&str, &str, u32); 3] = [
    ("microbit", "thumbv6m-none-eabi", 16 << 10),
    ("lm3s6965evb", "thumbv7m-none-eabi", 64 << 10),
    ("mps2-an385", "thumbv7m-none-eabi", 4 << 20),
];

/// The board of that name, or of that target: its name, and bytes of its RAM.
fn board(name: Option<&str>, target: &str) -> (&'static str, u32) {
    let is_meant =
        |board: &&(&str, &str, u32)| board.1 == target && name.is_none_or(|name| name == board.0);
    match BOARDS.iter().find(is_meant) {
        Some(&(name, _, ram_bytes)) => (name, ram_bytes),
        None => panic!("no board {name:?} of target {target}: known are {BOARDS:?}"),
    }
}

fn main() {
    println!("cargo:rerun-if-env-changed=NANDINA_SYSTEM");
    println!("cargo:rerun-if-env-changed=NANDINA_BOARD");
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").unwrap();
    let key = env::var("NANDINA_SYSTEM").unwrap_or_else(|_| "mu".to_owned());
    let Some(path) = visit(&key, TypeName) else { panic!("no system is named {key}") };
    // `nandina::store::file::Type` is public as `nandina::store::Type`; a parameter is kept.
    let name_at = path.split('<').next().unwrap().rfind("::").unwrap() + 2;
    let system = format!(
        "/// The system of this image.\npub type System = nandina::store::{};\n",
        &path[name_at..]
    );
    fs::write(Path::new(&out).join("system.rs"), system).unwrap();

    let (name, target) = (env::var("NANDINA_BOARD").ok(), env::var("TARGET").unwrap());
    let (board, ram_bytes) = board(name.as_deref(), &target);
    println!("cargo:rustc-env=NANDINA_BOARD={board}");
    println!(
        "cargo:rustc-check-cfg=cfg(board, values(\"microbit\", \"lm3s6965evb\", \"mps2-an385\"))"
    );
    println!("cargo:rustc-cfg=board=\"{board}\"");
    println!("cargo:rustc-link-search={out}");
    let memory = format!(
        "MEMORY\n{{\n  FLASH : ORIGIN = 0x00000000, LENGTH = 256K\n  RAM : ORIGIN = 0x20000000, LENGTH = {ram_bytes}\n}}\n"
    );
    fs::write(Path::new(&out).join("memory.x"), memory).unwrap();
}
