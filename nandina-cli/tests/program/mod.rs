//! Runs the program for tests and reads what it prints.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs the program.
pub fn nandina(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandina")).args(arguments).output().unwrap()
}

/// Runs the program, and reads the JSON that it prints.
pub fn json(arguments: &[&str]) -> Value {
    let output = nandina(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
