//! `kernel-compile`: a kernel's sources are unpacked, compiled, cleaned and removed.
//!
//! This is a trace of Table 4 of the μ-Tree paper.
//!
//! - Unpacking makes each entry in the list's order, written in the archiver's records of 10,240
//!   bytes.
//! - Compiling a C source looks for what may exist already, reads the source, finds its headers
//!   (each first in a directory that does not have it), and makes, as the kernel's makefiles do:
//!   the assembler's input, in a directory for temporary files, read once and deleted; a list of
//!   dependencies, read and deleted; the object under a temporary name and renamed; the command
//!   that made it, likewise. At the end the kernel is linked: all objects are read and one file is
//!   written.
//! - Cleaning looks at all names and deletes what compiling made. Removing deletes files, then
//!   directories.
//!
//! The paper names neither version nor configuration. [`Parameters::FULL`] takes a tree whose size,
//! if all of it is compiled, gives the paper's insertions and deletions; headers and caches are
//! chosen for its retrievals.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::Workload;
use super::filesystem::{Assumptions, Directory, File, FileSystem};
use super::manifest::{self, Entry, EntryKind};
use crate::LabError;

/// How the tree is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Parameters {
    /// Files of the tree: made by rule, or taken from a list.
    pub files: u32,
    /// Of a thousand C sources, those that the configuration compiles.
    pub compiled_per_mille: u32,
    /// Headers that a source includes, those included by headers counted.
    pub headers: u32,
    /// Bytes of a write call when unpacking: a record of the archiver.
    pub unpack_bytes: u64,
    /// Bytes of a write call when compiling: the C library's buffer.
    pub compile_bytes: u64,
    /// Of the file system.
    pub assumptions: Assumptions,
}

impl Parameters {
    /// As many operations as in Table 4.
    pub const FULL: Self = Self {
        files: 24_800,
        compiled_per_mille: 1000,
        headers: 101,
        unpack_bytes: 10_240,
        compile_bytes: 128 * 1024,
        assumptions: Assumptions { cached_per_mille: 973, pointers_per_cut: 330 },
    };
    /// A twentieth.
    pub const QUICK: Self = Self { files: Self::FULL.files / 20, ..Self::FULL };

    /// As many operations as in Table 4 with a part of the list of Linux 6.1. Fewer of its files
    /// are C sources than of those made by rule, so that each includes more headers.
    pub const LISTED: Self = Self { files: 25_600, headers: 140, ..Self::FULL };

    /// The defaults, for a tree made by rule or from a list.
    ///
    /// They are for all of the work or for a twentieth.
    pub const fn of(listed: bool, quick: bool) -> Self {
        let whole = if listed { Self::LISTED } else { Self::FULL };
        if quick { Self { files: whole.files / 20, ..whole } } else { whole }
    }
}

/// Bytes of a list of dependencies, and of the command that made an object.
const DEPENDENCY_BYTES: u64 = 3_000;
const COMMAND_BYTES: u64 = 3_500;
/// The assembler's input and the object, by the source.
const ASSEMBLER_BY_SOURCE: u64 = 4;
const OBJECT_BY_SOURCE: u64 = 2;

/// The work of unpacking, compiling, cleaning and removing a tree.
///
/// The tree is that of a list, thinned to as many files as the parameters say, or one made by rule.
pub fn workload(
    parameters: &Parameters,
    list: Option<&[Entry]>,
    seed: u64,
) -> Result<Workload, LabError> {
    let manifest = match list {
        Some(list) => manifest::thin(list, parameters.files),
        None => manifest::by_rule(parameters.files, seed),
    };
    if parameters.compiled_per_mille > 1000 || manifest.is_empty() {
        return Err(LabError(
            "kernel-compile needs a tree with files, and at most 1000 per mille of its sources compiled: choose \
             another --manifest, --files or --compiled"
                .into(),
        ));
    }
    let mut system = FileSystem::new(parameters.assumptions, "untar", seed);
    let top = system.make_directory(&Directory::ROOT, "linux");
    let temporary = system.make_directory(&Directory::ROOT, "tmp");
    let mut run = Run {
        system,
        parameters,
        random: ChaCha8Rng::seed_from_u64(seed),
        top,
        temporary,
        directories: HashMap::from([("", top)]),
        made_directories: Vec::new(),
        files: Vec::new(),
        products: Vec::new(),
    };
    run.untar(&manifest)?;
    run.system.recorder.phase("compile");
    run.compile()?;
    run.system.recorder.phase("clean");
    run.clean();
    run.system.recorder.phase("remove");
    run.remove();
    Workload::new("kernel-compile", run.system.recorder)
}

struct Run<'r> {
    system: FileSystem,
    parameters: &'r Parameters,
    random: ChaCha8Rng,
    top: Directory,
    temporary: Directory,
    directories: HashMap<&'r str, Directory>,
    /// Parent and directory, in the order made.
    made_directories: Vec<(Directory, Directory)>,
    files: Vec<(&'r Entry, File)>,
    /// The files that compiling leaves.
    products: Vec<File>,
}

impl<'r> Run<'r> {
    fn directory(&self, path: &str) -> Result<Directory, LabError> {
        self.directories.get(path).copied().ok_or_else(|| {
            LabError(format!("the manifest has no directory '{path}' before what is in it"))
        })
    }

    fn untar(&mut self, manifest: &'r [Entry]) -> Result<(), LabError> {
        for entry in manifest {
            let (parent, name) = entry.split();
            let parent = self.directory(parent)?;
            if entry.kind == EntryKind::Directory {
                let made = self.system.make_directory(&parent, name);
                self.directories.insert(&entry.path, made);
                self.made_directories.push((parent, made));
            } else {
                let mut file = self.system.create(&parent, name);
                self.system.write(&mut file, entry.bytes, self.parameters.unpack_bytes);
                self.files.push((entry, file));
            }
        }
        Ok(())
    }

    fn compile(&mut self) -> Result<(), LabError> {
        let ending = |ending: &str| -> Vec<usize> {
            let files = self.files.iter().enumerate();
            files
                .filter(|(_, (entry, _))| entry.path.ends_with(ending))
                .map(|(index, _)| index)
                .collect()
        };
        let (sources, headers) = (ending(".c"), ending(".h"));
        let mut objects = Vec::new();
        for source in sources {
            if self.random.random_range(0..1000) < self.parameters.compiled_per_mille {
                objects.push(self.compile_one(source, &headers)?);
            }
        }
        let mut kernel = self.system.create(&self.top, "vmlinux");
        for object in &objects {
            self.system.read(object);
        }
        let bytes = objects.iter().map(|object| object.bytes).sum::<u64>() / 2;
        self.system.write(&mut kernel, bytes, self.parameters.compile_bytes);
        self.products.push(kernel);
        Ok(())
    }

    /// Compiles one source and gives the object.
    fn compile_one(&mut self, source: usize, headers: &[usize]) -> Result<File, LabError> {
        let (entry, file) = self.files[source];
        let (parent, name) = entry.split();
        let directory = self.directory(parent)?;
        let object_name = format!("{}.o", name.trim_end_matches(".c"));
        let command_name = format!(".{object_name}.cmd");
        self.system.stat(&file);
        self.system.look_for_absent(&directory, &object_name);
        self.system.look_for_absent(&directory, &command_name);
        self.system.read(&file);
        for _ in 0..if headers.is_empty() { 0 } else { self.parameters.headers } {
            let (header, file) = self.files[headers[self.random.random_range(0..headers.len())]];
            self.system.look_for_absent(&directory, header.split().1);
            self.system.stat(&file);
        }
        let assembler_name = format!("cc{source}.s");
        let temporary = self.temporary;
        let assembler = self.make(&temporary, &assembler_name, file.bytes * ASSEMBLER_BY_SOURCE);
        let dependencies = self.make(&directory, &format!(".{object_name}.d"), DEPENDENCY_BYTES);
        self.system.read(&assembler);
        let object_bytes = file.bytes * OBJECT_BY_SOURCE;
        let mut object = self.make(&directory, &format!(".tmp_{object_name}"), object_bytes);
        self.system.delete(assembler);
        self.system.rename(&mut object, &object_name);
        self.system.read(&dependencies);
        let mut command = self.make(&directory, &format!(".{object_name}.tmp"), COMMAND_BYTES);
        self.system.delete(dependencies);
        self.system.rename(&mut command, &command_name);
        self.products.extend([object, command]);
        Ok(object)
    }

    fn make(&mut self, directory: &Directory, name: &str, bytes: u64) -> File {
        let mut file = self.system.create(directory, name);
        self.system.write(&mut file, bytes, self.parameters.compile_bytes);
        file
    }

    fn clean(&mut self) {
        for (_, file) in &self.files {
            self.system.stat(file);
        }
        for file in std::mem::take(&mut self.products) {
            self.system.stat(&file);
            self.system.delete(file);
        }
    }

    fn remove(&mut self) {
        for (_, file) in std::mem::take(&mut self.files) {
            self.system.stat(&file);
            self.system.delete(file);
        }
        for (parent, directory) in std::mem::take(&mut self.made_directories).into_iter().rev() {
            self.system.remove_directory(&parent, directory);
        }
        let (top, temporary) = (self.top, self.temporary);
        self.system.remove_directory(&Directory::ROOT, top);
        self.system.remove_directory(&Directory::ROOT, temporary);
    }
}
