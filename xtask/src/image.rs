//! Builds the images of one system for one board, and that of the address mappings.
//!
//! It measures the size of the former.
//!
//! It runs no image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::tools::{Board, Compiler, output_of};

/// An image to run.
pub struct Image {
    pub path: PathBuf,
    /// Addresses of its marks.
    pub marks: BTreeMap<String, u64>,
}

impl Image {
    fn new(path: PathBuf) -> Result<Self, String> {
        let marks = output_of("arm-none-eabi-nm", &[&path.to_string_lossy()])
            .map(|text| marks_in(&text))
            .filter(|marks| !marks.is_empty())
            .ok_or("the image has no marks")?;
        Ok(Self { path, marks })
    }
}

/// Builds the images of `system` for `board`; those of the next system replace them.
///
/// Returns the one to run, and the bytes of code and constants of the system: the size of a program
/// that uses every operation, less that of an empty program.
pub fn build(
    root: &Path,
    compiler: &Compiler,
    board: Board,
    system: &str,
) -> Result<(Image, u64), String> {
    let folder = cargo(root, compiler, board, &[("NANDINA_SYSTEM", system)], "nandina-firmware")?;
    let code = section_bytes(&folder.join("code"))?;
    let empty = section_bytes(&folder.join("empty"))?;
    Ok((Image::new(folder.join("run"))?, code.saturating_sub(empty)))
}

/// Builds the image that runs any address mapping.
pub fn build_mappings(root: &Path, compiler: &Compiler, board: Board) -> Result<Image, String> {
    let package = "nandina-firmware-mappings";
    Image::new(cargo(root, compiler, board, &[], package)?.join(package))
}

/// Builds a package for `board`, and returns the folder of its programs.
fn cargo(
    root: &Path,
    compiler: &Compiler,
    board: Board,
    settings: &[(&str, &str)],
    package: &str,
) -> Result<PathBuf, String> {
    let target_dir = root.join("target/firmware");
    let mut cargo = compiler.cargo();
    cargo
        .current_dir(root.join("firmware"))
        .env("NANDINA_BOARD", board.name)
        .envs(settings.iter().copied())
        .args(["build", "--quiet", "--release", "--locked", "--target", board.target])
        .args(["--package", package])
        .arg("--target-dir")
        .arg(&target_dir);
    if compiler.builds_core {
        cargo.arg("-Zbuild-std=core");
    }
    let built = cargo.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !built.success() {
        return Err(format!("{package} does not build for {}", board.name));
    }
    Ok(target_dir.join(board.target).join("release"))
}

/// Bytes of text and data of an image.
fn section_bytes(image: &Path) -> Result<u64, String> {
    output_of("arm-none-eabi-size", &[&image.to_string_lossy()])
        .and_then(|text| text_and_data(&text))
        .ok_or_else(|| format!("{} has no size", image.display()))
}

/// Text and data, from what `size` prints: a line of headings, a line of numbers.
fn text_and_data(text: &str) -> Option<u64> {
    let mut numbers = text.lines().nth(1)?.split_whitespace();
    let mut next = || numbers.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The marks among the symbols that `nm` lists, without their prefix.
fn marks_in(text: &str) -> BTreeMap<String, u64> {
    let mark = |line: &str| {
        let mut fields = line.split_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.nth(1)?.strip_prefix("mark_")?;
        Some((name.to_owned(), address))
    };
    text.lines().filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_marks_are_read_from_what_the_tools_print() {
        let size = "   text\t   data\t    bss\n  47256\t      8\t   3072\tcode\n";
        assert_eq!(text_and_data(size), Some(47_264));
        assert_eq!(text_and_data(""), None);
        let symbols =
            "00000102 T mark_insert\n00008b54 t _RNvXmark_bad_blocks\n0000010e T mark_enter\n";
        let expected = [("enter".to_owned(), 0x10E), ("insert".to_owned(), 0x102)];
        assert_eq!(marks_in(symbols), BTreeMap::from(expected));
    }
}
