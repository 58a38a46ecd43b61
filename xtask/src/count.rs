//! The emulator's plugin that counts instructions: builds it and reads its output.
//!
//! Where it cannot be built, the timer of the board counts, nearly as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools::output_of;

/// The number of calls of each kind, and their total instructions.
pub type Counts = BTreeMap<String, (u64, u64)>;

/// Builds the plugin, or returns why it cannot.
pub fn build(root: &Path) -> Result<PathBuf, String> {
    let knows = output_of("qemu-system-arm", &["--help"]).is_some_and(|t| t.contains("-plugin"));
    if !knows {
        return Err("this emulator takes no plugins".to_owned());
    }
    let folder = root.join("target/firmware");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let plugin = folder.canonicalize().map_err(|error| error.to_string())?.join("count.so");
    let built = Command::new("gcc")
        .args(["-O2", "-Wall", "-shared", "-fPIC", "-o"])
        .arg(&plugin)
        .arg(root.join("firmware/count.c"))
        .stdout(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Ok(plugin),
        Ok(_) => Err("gcc cannot build firmware/count.c".to_owned()),
        Err(error) => Err(format!("gcc cannot be started: {error}")),
    }
}

/// The argument that starts the plugin with the marks of an image.
///
/// It writes into `out`.
pub fn argument(plugin: &Path, out: &Path, marks: &BTreeMap<String, u64>) -> String {
    let mut argument = format!("{},out={}", plugin.display(), out.display());
    for (name, address) in marks {
        argument.push_str(&format!(",{name}={address:x}"));
    }
    argument
}

/// Parses the plugin's output.
pub fn read(text: &str) -> Option<Counts> {
    let line = |line: &str| {
        let mut fields = line.split(' ');
        let name = fields.next()?.to_owned();
        Some((name, (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?)))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_names_every_mark_and_the_answer_is_read() {
        let marks = BTreeMap::from([("get".to_owned(), 0x104), ("end".to_owned(), 0x10A)]);
        let text = argument(Path::new("/x/count.so"), Path::new("/x/counts"), &marks);
        assert_eq!(text, "/x/count.so,out=/x/counts,end=10a,get=104");
        assert_eq!(read("get 500 7\n"), Some(BTreeMap::from([("get".to_owned(), (500, 7))])));
        assert_eq!(read("get five\n"), None);
    }
}
