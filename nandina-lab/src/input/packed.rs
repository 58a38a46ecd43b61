//! Files as they are or compressed, read as a stream. No file is held whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::ZSTD_MAGIC;
use crate::LabError;

/// The first bytes of a gzip member.
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Called with the number of bytes of a file that were read since the last call.
pub type ReadProgress<'p> = &'p dyn Fn(u64);

/// Passes the plain bytes of a file to `read`.
///
/// The file may be compressed with gzip, or with zstd in one part. `progress` is called with bytes
/// of the file itself. `read` need not read to the end; only if it does, bytes behind a part of
/// zstd are refused.
pub(crate) fn open<T>(
    path: &Path,
    progress: ReadProgress<'_>,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let fail = |what: String| LabError(format!("{}: {what}", path.display()));
    let unreadable = |error: io::Error| fail(format!("cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut file = BufReader::new(Counted { file, progress });
    let begin = file.fill_buf().map_err(unreadable)?;
    if begin.starts_with(&GZIP_MAGIC) {
        return read(&mut BufReader::new(flate2::bufread::MultiGzDecoder::new(file)));
    }
    if !begin.starts_with(&ZSTD_MAGIC) {
        return read(&mut file);
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(&mut file);
    let decoder = decoder.map_err(|error| {
        fail(format!("its zstd compression is damaged ({error}): decompress it by hand and see"))
    })?;
    let mut plain = BufReader::new(Unpacked(decoder));
    let result = read(&mut plain)?;
    let ended = plain.fill_buf().map_err(unreadable)?.is_empty();
    if ended && !file.fill_buf().map_err(unreadable)?.is_empty() {
        return Err(fail(
            "more data follows its compressed part: decompress it by hand and join the parts"
                .into(),
        ));
    }
    Ok(result)
}

/// Unpacked bytes of zstd. An error of the decoder says in words what it means.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = "its zstd compression is damaged, or the file ends too early";
        self.0.read(buffer).map_err(|error| io::Error::new(error.kind(), damaged))
    }
}

struct Counted<'p> {
    file: File,
    progress: ReadProgress<'p>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        (self.progress)(bytes as u64);
        Ok(bytes)
    }
}
