//! A chip in a file: looked at later, carried elsewhere, gone on with. A file is replaced as a whole or not
//! at all, and no bytes of one make the reader panic or take more memory than the file is long and a
//! little. What an index is never matters here. The bytes are described in docs/FORMAT.md.

mod description;
mod error;
mod format;
mod profile;

pub use error::{ImageError, ImageErrorKind};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use crate::Chip;
use format::VERSION;

/// What the owner of an image notes beside the chip: names and texts.
pub type Labels = BTreeMap<String, String>;

impl Chip {
    /// Writes the chip to `path`, whatever stood there. Erased pages take no room where the file system
    /// knows holes. After a crash the file is the old one or the new one.
    ///
    /// A cut that is armed is not kept, and a chip comes out of its file with power on.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ImageError> {
        replace(path.as_ref(), self, &Labels::new(), false)
    }

    /// Reads a chip that was saved; the labels of an [`Image`] are passed over.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        Ok(read(path.as_ref())?.0)
    }
}

/// A chip and the file it lives in. It derefs to the chip; [`Image::close`] writes it. Dropped without
/// that, the file stays as it was.
///
/// Two programs that change one image at once do not see each other: the last to close wins.
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
    /// What is noted beside the chip. It is written with it.
    pub labels: Labels,
    chip: Chip,
    path: PathBuf,
    is_new: bool,
}

impl Image {
    /// A new image of `chip`. The file must not exist; it is made by [`Image::close`].
    pub fn create(path: impl AsRef<Path>, chip: Chip) -> Result<Self, ImageError> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            return Err(ImageErrorKind::Exists.of(path));
        }
        Ok(Self { labels: Labels::new(), chip, path: path.to_path_buf(), is_new: true })
    }

    /// Opens the image at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let (chip, labels) = read(path)?;
        Ok(Self { labels, chip, path: path.to_path_buf(), is_new: false })
    }

    /// Where the image is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the chip and its labels. After a crash, or if this fails, the file is as it was.
    pub fn close(self) -> Result<(), ImageError> {
        replace(&self.path, &self.chip, &self.labels, self.is_new)
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

fn read(path: &Path) -> Result<(Chip, Labels), ImageError> {
    let mut file = File::open(path).map_err(|error| ImageErrorKind::Io(error).of(path))?;
    format::read(&mut file).map_err(|kind| kind.of(path))
}

/// Writes a temporary file beside `path` and renames it over the old one.
fn replace(path: &Path, chip: &Chip, labels: &Labels, is_new: bool) -> Result<(), ImageError> {
    let failed = |error| ImageErrorKind::Io(error).of(path);
    if let Some(what) = profile::ProfileFields::from(chip.profile()).fault() {
        return Err(ImageErrorKind::Geometry(what).of(path));
    }
    // A link to an image goes on being one.
    let target = if is_new { None } else { fs::canonicalize(path).ok() };
    let target = target.as_deref().unwrap_or(path);
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut temporary = temporary_in(folder, target).map_err(failed)?;
    format::write(temporary.as_file_mut(), chip, labels).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
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
    let temporary = builder.tempfile_in(folder)?;
    if let Ok(old) = fs::metadata(target) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    Ok(temporary)
}
