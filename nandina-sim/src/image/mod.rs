//! A chip in a file, to inspect it later, move it elsewhere or continue with it.
//!
//! A file is replaced as a whole or not at all. No content of a file makes the reader panic or take
//! much more memory than the file is long. This module does not interpret an index. The bytes are
//! described in docs/FORMAT.md.

mod description;
mod error;
mod format;
mod lock;
mod profile;
mod unstable;

pub use error::{ImageError, ImageErrorKind};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use nandina::flash::Profile;

use crate::Chip;
use lock::Lock;

/// Names and texts that the owner of an image keeps beside the chip.
pub type Labels = BTreeMap<String, String>;

impl Chip {
    /// Writes the chip to `path`, replacing any file there.
    ///
    /// Erased pages take no room where the file system supports holes. After a crash the file is
    /// the old one or the new one.
    ///
    /// A cut that is armed is not kept, and a loaded chip has power. An image that is open
    /// elsewhere is not replaced.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ImageError> {
        let path = path.as_ref();
        let stands = match Lock::take(path) {
            Ok(lock) => Stands::Locked(lock),
            Err(ImageError { kind: ImageErrorKind::Io(error), .. })
                if error.kind() == std::io::ErrorKind::NotFound =>
            {
                Stands::Unknown
            }
            Err(error) => return Err(error),
        };
        replace(path, self, &Labels::new(), &stands)
    }

    /// Reads a chip that was saved. The labels of an [`Image`] are ignored.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        Ok(Image::look(path)?.chip)
    }
}

/// The most blocks that a chip of this profile can have in an image.
pub fn blocks_max(profile: &Profile) -> u32 {
    profile::blocks_max(profile.geometry.pages_per_block)
}

/// A chip and its file. It derefs to the chip.
///
/// [`Image::close`] writes the file. If the image is dropped instead, the file stays unchanged.
///
/// From opening to closing no other program can open the image to change it: it gets
/// [`ImageErrorKind::InUse`]. Looking is always possible, and sees the state that was closed last.
///
/// ```
/// use nandina_sim::{Chip, Image, TINY};
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("tiny.img");
/// let mut image = Image::create(&path, Chip::new(TINY)).unwrap();
/// image.spoil_blocks(1);
/// image.labels.insert("made for".into(), "a test".into());
/// image.close().unwrap();
/// assert_eq!(Image::open(&path).unwrap().bad_blocks().count(), 1);
/// ```
#[derive(Debug)]
pub struct Image {
    /// Labels beside the chip, written with it.
    pub labels: Labels,
    chip: Chip,
    path: PathBuf,
    stands: Stands,
}

/// The state of the path at which an image will be written.
#[derive(Debug)]
enum Stands {
    /// No file, and there must be none until the image is written.
    Nothing,
    /// Any file there is replaced.
    Unknown,
    /// This file.
    Locked(Lock),
    /// A file that others may change meanwhile, so it is not written.
    LookedAt,
}

impl Image {
    /// Makes a new image of `chip`.
    ///
    /// The file must not exist; [`Image::close`] writes it.
    pub fn create(path: impl AsRef<Path>, chip: Chip) -> Result<Self, ImageError> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            return Err(ImageErrorKind::Exists.of(path));
        }
        folder_of(path).map_err(|kind| kind.of(path))?;
        let path = path.to_path_buf();
        Ok(Self { labels: Labels::new(), chip, path, stands: Stands::Nothing })
    }

    /// Opens the image at `path` for changing it.
    ///
    /// The image is locked until it is closed or dropped.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let mut lock = Lock::take(path)?;
        let (chip, labels) = format::read(lock.file()).map_err(|kind| kind.of(path))?;
        Ok(Self { labels, chip, path: path.to_path_buf(), stands: Stands::Locked(lock) })
    }

    /// Opens the image at `path` for reading, even if another program has it open.
    ///
    /// It cannot be closed, only dropped: [`Image::close`] refuses.
    pub fn look(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let mut file = File::open(path).map_err(|error| ImageErrorKind::Io(error).of(path))?;
        let (chip, labels) = format::read(&mut file).map_err(|kind| kind.of(path))?;
        Ok(Self { labels, chip, path: path.to_path_buf(), stands: Stands::LookedAt })
    }

    /// Where the image is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the chip and its labels.
    ///
    /// After a crash, or if this fails, the file is unchanged.
    pub fn close(self) -> Result<(), ImageError> {
        replace(&self.path, &self.chip, &self.labels, &self.stands)
    }
}

impl Deref for Image {
    type Target = Chip;

    fn deref(&self) -> &Chip {
        &self.chip
    }
}

impl DerefMut for Image {
    fn deref_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }
}

/// The folder of the file at `path`.
fn folder_of(path: &Path) -> Result<&Path, ImageErrorKind> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(ImageErrorKind::NoFolder(folder.to_path_buf())),
    }
}

/// Writes a temporary file beside `path` and renames it over the file there.
fn replace(path: &Path, chip: &Chip, labels: &Labels, stands: &Stands) -> Result<(), ImageError> {
    let failed = |error| ImageErrorKind::Io(error).of(path);
    if let Some(what) = profile::ProfileFields::from(chip.profile()).fault() {
        return Err(ImageErrorKind::Geometry(what).of(path));
    }
    if matches!(stands, Stands::LookedAt) {
        return Err(ImageErrorKind::LookedAt.of(path));
    }
    let is_new = matches!(stands, Stands::Nothing);
    // A link to an image stays a link.
    let target = if is_new { None } else { fs::canonicalize(path).ok() };
    let target = target.as_deref().unwrap_or(path);
    let folder = folder_of(target).map_err(|kind| kind.of(path))?;
    let mut temporary = temporary_in(folder, target).map_err(failed)?;
    format::write(temporary.as_file_mut(), chip, labels).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    // The lock keeps out programs that ask for it, but not one that removes or replaces the file.
    if matches!(stands, Stands::Locked(lock) if !lock.is_of(target)) {
        return Err(ImageErrorKind::Replaced.of(path));
    }
    if is_new {
        temporary.persist_noclobber(target).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => ImageErrorKind::Exists.of(path),
            _ => failed(error.error),
        })?;
    } else {
        temporary.persist(target).map_err(|error| failed(error.error))?;
    }
    // The rename is durable when the folder is.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(())
}

/// A temporary file in `folder` with the permissions of `target`, or those of any new file.
fn temporary_in(folder: &Path, target: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nandina-");
    #[cfg(unix)]
    let new = {
        use std::os::unix::fs::PermissionsExt;
        fs::Permissions::from_mode(0o666)
    };
    #[cfg(unix)]
    builder.permissions(new);
    // The error names the user's file: the name of the temporary one would mislead.
    let temporary =
        builder.tempfile_in(folder).map_err(|error| std::io::Error::from(error.kind()))?;
    if let Ok(old) = fs::metadata(target) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    Ok(temporary)
}
