//! Chooses the board by the target and the system by the variable `NANDINA_SYSTEM`, a key of the
//! registry. It names no system itself.

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

/// Board, bytes of its RAM.
fn board(target: &str) -> (&'static str, u32) {
    match target {
        "thumbv6m-none-eabi" => ("microbit", 16 << 10),
        "thumbv7m-none-eabi" => ("lm3s6965evb", 64 << 10),
        _ => panic!("firmware is built for thumbv6m-none-eabi or thumbv7m-none-eabi, not {target}"),
    }
}

fn main() {
    println!("cargo:rerun-if-env-changed=NANDINA_SYSTEM");
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

    let (board, ram_bytes) = board(&env::var("TARGET").unwrap());
    println!("cargo:rustc-env=NANDINA_BOARD={board}");
    println!("cargo:rustc-check-cfg=cfg(board, values(\"microbit\", \"lm3s6965evb\"))");
    println!("cargo:rustc-cfg=board=\"{board}\"");
    println!("cargo:rustc-link-search={out}");
    let memory = format!(
        "MEMORY\n{{\n  FLASH : ORIGIN = 0x00000000, LENGTH = 256K\n  RAM : ORIGIN = 0x20000000, LENGTH = {ram_bytes}\n}}\n"
    );
    fs::write(Path::new(&out).join("memory.x"), memory).unwrap();
}
