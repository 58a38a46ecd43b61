//! Finds the tools that build and run the firmware, or reports which are missing.
//!
//! It installs none.

use std::path::Path;
use std::process::{Command, Stdio};

/// The boards: target, and machine of the emulator.
pub const BOARDS: [Board; 2] = [
    Board { name: "microbit", processor: "Cortex-M0", target: "thumbv6m-none-eabi" },
    Board { name: "lm3s6965evb", processor: "Cortex-M3", target: "thumbv7m-none-eabi" },
];

/// The board for address mappings, which has room for the largest of them.
pub const MAPPING_BOARD: Board =
    Board { name: "mps2-an385", processor: "Cortex-M3", target: "thumbv7m-none-eabi" };

/// A board that the emulator knows.
#[derive(Clone, Copy)]
pub struct Board {
    pub name: &'static str,
    pub processor: &'static str,
    pub target: &'static str,
}

/// Debian's compiler, which builds for any target.
///
/// It comes with the sources of `core`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

const PACKAGES: &str =
    "qemu-system-arm binutils-arm-none-eabi gcc rustc-web cargo-web rust-web-src";

/// A compiler that can build for the boards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiler {
    /// Its version text; code sizes and instructions depend on it.
    pub version: String,
    /// Whether it builds `core` first, as Debian's does.
    pub builds_core: bool,
}

impl Compiler {
    /// A command that starts this compiler's build tool, without the host's settings.
    pub fn cargo(&self) -> Command {
        let mut command = if self.builds_core {
            let mut command = Command::new(DEBIAN_CARGO);
            command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
            command
        } else {
            Command::new("cargo")
        };
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "RUSTC_WRAPPER"] {
            command.env_remove(name);
        }
        command
    }
}

/// The output of a command, if it can be run and succeeds.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn rustup() -> Option<Compiler> {
    let installed = output_of("rustup", &["target", "list", "--installed"])?;
    let has = |target| installed.lines().any(|line| line == target);
    if !BOARDS.iter().all(|board| has(board.target)) {
        return None;
    }
    Some(Compiler { version: output_of("rustc", &["--version"])?, builds_core: false })
}

fn debian() -> Option<Compiler> {
    let version = output_of(DEBIAN_RUSTC, &["--version"])?;
    let sources = Path::new(&output_of(DEBIAN_RUSTC, &["--print", "sysroot"])?)
        .join("lib/rustlib/src/rust/library/core/Cargo.toml");
    let complete = sources.exists() && Path::new(DEBIAN_CARGO).exists();
    complete.then_some(Compiler { version, builds_core: true })
}

/// The compiler to build with: that of the golden figures, if it is installed.
pub fn find(golden_compiler: Option<&str>) -> Result<Compiler, String> {
    let mut missing = Vec::new();
    for program in ["qemu-system-arm", "arm-none-eabi-ld", "arm-none-eabi-size", "arm-none-eabi-nm"]
    {
        if output_of(program, &["--version"]).is_none() {
            missing.push(program.to_owned());
        }
    }
    let compilers: Vec<Compiler> = [debian(), rustup()].into_iter().flatten().collect();
    let golden =
        compilers.iter().find(|compiler| Some(compiler.version.as_str()) == golden_compiler);
    let Some(compiler) = golden.or(compilers.first()) else {
        missing.push(
            "a compiler for thumbv6m-none-eabi and thumbv7m-none-eabi (either `rustup target add` \
             of both, or Debian's packages)"
                .to_owned(),
        );
        return Err(explain(&missing));
    };
    if missing.is_empty() { Ok(compiler.clone()) } else { Err(explain(&missing)) }
}

fn explain(missing: &[String]) -> String {
    format!(
        "missing: {}\non Debian 12 or later: apt-get install --no-install-recommends {PACKAGES}",
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_missing_is_named_with_the_packages_that_have_it() {
        let text = super::explain(&["qemu-system-arm".to_owned(), "arm-none-eabi-nm".to_owned()]);
        assert!(text.starts_with("missing: qemu-system-arm, arm-none-eabi-nm\n"));
        for package in ["qemu-system-arm", "binutils-arm-none-eabi", "rustc-web", "rust-web-src"] {
            assert!(text.lines().nth(1).unwrap().contains(package));
        }
    }

    #[test]
    fn a_program_that_is_not_there_has_no_output() {
        assert_eq!(super::output_of("no-such-program-here", &[]), None);
    }
}
