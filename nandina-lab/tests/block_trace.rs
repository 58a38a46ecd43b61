//! Block traces: each format gives the requests that it states, and every mistake names its place.
//!
//! Lines here are made up in the form of each tool. Real samples are read where they are.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};

use nandina_lab::LabError;
use nandina_lab::block_trace::{Account, BlockTrace, Choices, FORMATS, Kind, Layout, Request};
use nandina_lab::replay::{Stats, Unit};
use proptest::prelude::*;

const CLOUDPHYSICS: &str = "version,time,op,size,lbn\n1,50,2a,512,7\n1,51,28,1024,8\n1,52,42,4096,0\n1,52,35,0,0\n1,53,a0,9,9\n";
const MSR: &str = "1000,srv,0,Write,4096,512,7\n1010,srv,1,Read,0,1024,7\n";
const MSR_NUMBERED: &str = "0 1000,srv,0,Write,4096,512,7\n1 1010,srv,1,Read,0,1024,7\n";
const SPC: &str = "0,8,512,w,0.5\n1,0,1024,R,0.75\n0,9,0,r,0.8\n";
const BLKPARSE: &str = "  8,16   3   1   0.000000100   99  Q   W 8 + 1 [mail server]\n\
    \u{20} 8,16   3   2   0.000000200   99  D   W 8 + 1 [mail server]\n\
    \u{20} 8,16   3   3   0.000000300   99  m   N cfq99 a note\n\
    \u{20} 8,16   3   4   0.000000400   99  D   RA 16 + 2 [mail server]\n\
    \u{20} 8,16   3   5   0.000000500   99  D   DS 0 + 8 [trim]\n\
    \u{20} 8,16   3   6   0.000000600   99  D   FWS [journal]\n\
    \u{20} 8,16   3   7   0.000000700   99  D   FN [journal]\n\
    \u{20} 8,16   3   8   0.000000800   99  D   FWFS 24 + 8 [journal]\n\
    \u{20} 8,16   3   9   0.000000900   99  D   N 36 (12 00 00) [tool]\n\
    \u{20} 8,16   3  10   0.000000950    0  C   W 8 + 1 [0]\n\
    CPU3 (8,16):\n Reads Queued:   0,   0KiB\n";
const FIU: &str = "1000 42 kjournald 8 8 W 6 0 0123456789abcdef0123456789abcdef\n\
    2000 43 mail server 16 8 R 6 1\n";
const DISKSIM: &str = "0.500 0 8 1 0\n0.750 1 0 2 1\n";
const SSDSIM: &str = "500000 0 8 1 0\n750000 1 0 2 1\n";
const FIO: &str = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a write 4096 512\n/dev/a wait 250\n\
    /dev/a read 0 1024\n/dev/a trim 0 4096\n/dev/a sync\n/dev/a close\n";
const OWN: &str = "op,length_sectors,start_bytes,time_us\nwrite,1,4096,500\n# a note\n\nread,2,0,750\nflush,0,0,800\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn choose(format: &str) -> Choices {
    Choices { format: Some(format.into()), ..Choices::default() }
}

fn read(path: &Path, choices: Choices) -> Result<(Account, Vec<Request>), LabError> {
    let trace = BlockTrace::open(path, choices)?;
    let mut requests = Vec::new();
    let account = trace.read(&|_| {}, &mut |request| requests.push(*request))?;
    Ok((account, requests))
}

/// The mistake in a text, without the name of the file.
fn mistake(text: impl AsRef<[u8]>, choices: Choices) -> String {
    let folder = Folder::new();
    let path = folder.file("a.trace", text);
    let text = read(&path, choices).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_string()
}

#[test]
fn each_format_gives_the_requests_that_it_states() {
    let folder = Folder::new();
    let request = |kind, volume, start, bytes, time_ns| Request {
        kind,
        volume,
        start,
        bytes,
        time_ns: Some(time_ns),
    };
    for (key, text, origin) in [
        ("msr", MSR, 99_500),
        ("msr", MSR_NUMBERED, 99_500),
        ("spc", SPC, 500_000_000 - 500),
        ("disksim", DISKSIM, 499_500),
        ("ssdsim", SSDSIM, 499_500),
        ("csv", OWN, 499_500),
    ] {
        let path = folder.file("a.trace", text);
        let choices = if key == "ssdsim" { choose(key) } else { Choices::default() };
        assert_eq!(BlockTrace::open(&path, choices.clone()).unwrap().format().key, key);
        let (account, requests) = read(&path, choices).unwrap();
        let second = usize::from(account.volumes.len() == 2);
        let write = request(Kind::Write, 0, 4096, 512, origin + 500);
        assert_eq!(
            (requests[0].start, requests[0].bytes, requests[0].kind),
            (4096, 512, Kind::Write),
            "{key}"
        );
        assert_eq!(requests[0].time_ns, write.time_ns, "{key}");
        assert_eq!(
            (requests[1].kind, requests[1].volume, requests[1].start, requests[1].bytes),
            (Kind::Read, second, 0, 1024),
            "{key}"
        );
    }
    // These have more than a write and a read.
    for (key, text, counts, asides) in [
        ("cloudphysics", CLOUDPHYSICS, [5, 1, 1, 1, 1, 1], 1),
        ("spc", SPC, [3, 1, 1, 0, 0, 1], 0),
        ("blkparse", BLKPARSE, [7, 1, 2, 1, 2, 1], 5),
        ("fiu", FIU, [2, 1, 1, 0, 0, 0], 0),
        ("fio", FIO, [4, 1, 1, 1, 1, 0], 5),
        ("csv", OWN, [3, 1, 1, 0, 1, 0], 1),
    ] {
        let path = folder.file("a.trace", text);
        assert_eq!(BlockTrace::open(&path, Choices::default()).unwrap().format().key, key);
        let (account, requests) = read(&path, Choices::default()).unwrap();
        let Account { requests: all, reads, writes, trims, flushes, .. } = account;
        assert_eq!(
            [all, reads, writes, trims, flushes, account.refused()],
            counts,
            "{key}: {account}"
        );
        assert_eq!(account.asides.iter().map(|aside| aside.lines).sum::<u64>(), asides, "{key}");
        assert!(account.is_complete());
        assert_eq!(requests.len() as u64, all - account.refused());
    }
    let keys = FORMATS.iter().map(|format| format.key);
    assert_eq!(keys.count(), 9, "a format is missing above");
}

#[test]
fn volumes_are_those_of_the_trace_and_lie_one_behind_the_other() {
    let folder = Folder::new();
    let path = folder.file("a.trace", MSR);
    let (account, requests) = read(&path, Choices::default()).unwrap();
    let names: Vec<_> =
        account.volumes.iter().map(|volume| (&volume.name[..], volume.end)).collect();
    assert_eq!(names, [("srv,0", 4608), ("srv,1", 1024)]);
    let layout = Layout::of(&account);
    let places: Vec<_> = requests.iter().map(|request| layout.place(request)).collect();
    assert_eq!((&places[..], layout.bytes()), (&[4096, 1 << 20][..], (1 << 20) + 1024));
    let only = |volume: &str| Choices { volume: Some(volume.into()), ..Choices::default() };
    let (account, _) = read(&path, only("srv,1")).unwrap();
    assert_eq!(
        account.to_string(),
        "2 requests = 1 reads + 0 writes + 0 trims + 0 flushes + 1 refused (1 to another volume)"
    );
    assert!(mistake(MSR, only("srv,2")).starts_with("no request is to the volume 'srv,2'"));
    let path = folder.file("fiu.trace", FIU);
    assert_eq!(read(&path, Choices::default()).unwrap().0.volumes[1].name, "6 1");
    let many: String = (0..1001).map(|asu| format!("{asu},0,512,w,0\n")).collect();
    assert_eq!(
        mistake(many, Choices::default()),
        "line 1001: a trace may have 1000 volumes: choose one by --volume"
    );
}

#[test]
fn blkparse_counts_the_lines_of_the_chosen_action() {
    let folder = Folder::new();
    let path = folder.file("a.trace", BLKPARSE);
    let of = |action| read(&path, Choices { action, ..Choices::default() }).unwrap().0;
    assert_eq!((of('Q').requests, of('D').requests, of('C').requests), (1, 7, 1));
    let none = mistake(BLKPARSE, Choices { action: 'I', ..Choices::default() });
    assert_eq!(
        none,
        "there is no request in it, besides 10 lines of other actions, 2 lines of the summary"
    );
}

#[test]
fn mistakes_name_line_field_and_unit() {
    for (key, text, expected) in [
        ("cloudphysics", "1,5,2a,512\n", "line 1: 4 fields: version,time in s"),
        (
            "cloudphysics",
            "1,5,2a,512,1\n1,5,zz,512,1\n",
            "line 2: field 3, op: 'zz': a SCSI opcode",
        ),
        (
            "cloudphysics",
            "1,5,2a,512,-1\n",
            "line 1: field 5, lbn: '-1': a whole number of sectors of 512 bytes",
        ),
        ("cloudphysics", "1,x,2a,512,1\n", "field 2, time: 'x': a number of seconds was expected"),
        ("cloudphysics", "9,5,2a,512,1\n", "field 1, version: '9': 1 or 2"),
        ("msr", "1,a,0,Write,1,2\n", "6 fields: time in 100 ns"),
        ("msr", "1,a,0,write,1,2,3\n", "field 4, type: 'write': Read or Write"),
        ("msr", "1,a,0,Write,0x1,2,3\n", "field 5, offset: '0x1': a whole number of bytes"),
        ("msr", "1,a,b,Write,1,2,3\n", "field 3, disk: 'b'"),
        (
            "msr",
            "99999999999999999999,a,0,Write,1,2,3\n",
            "field 1, time: '99999999999999999999': a whole number of steps of 100 ns",
        ),
        ("spc", "0,8,512,w,0\n\n# note\n0,8,512,x,0\n", "line 4: field 4, opcode: 'x': r or w"),
        (
            "spc",
            "0,8,9007199254740993,w,0\n",
            "field 3, size: '9007199254740993': a whole number of bytes, 0 to 2^53,",
        ),
        ("spc", "0,8,512,w,inf\n", "field 5, time: 'inf'"),
        ("blkparse", "8 3 1 0.1 99 D W 8 + 1 [a]\n", "field 1, device: '8': major,minor"),
        ("blkparse", "8,1 3 1 0.1 99 D W 8 1 [a]\n", "the place is missing"),
        ("blkparse", "8,1 3 1 0.1 99 D W 8 + x [a]\n", "field 10, sectors: 'x'"),
        ("blkparse", "CPU0 (8,1):\n", "2 fields"),
        ("fiu", "1 2 a 8 8 X 6 0\n", "field 6, operation: 'X': R or W"),
        ("fiu", "1 2 a 8 R 6 0\n", "field 4, sector: 'a'"),
        ("fiu", "1 2\n", "too few fields"),
        ("disksim", "1.5 0 8 8 z\n", "field 5, flags: 'z'"),
        ("disksim", "1.5ms 0 8 8 0\n", "field 1, time: '1.5ms': a number of milliseconds"),
        ("ssdsim", "1.5 0 8 8 0\n", "field 1, time: '1.5': a whole number of nanoseconds"),
        ("ssdsim", "1 0 8 8 2\n", "field 5, operation: '2': 0 for a write or 1 for a read"),
        ("fio", "/dev/a write 0 1\n", "the header 'fio version 2 iolog' was expected"),
        (
            "fio",
            "fio version 2 iolog\n/dev/a erase 0 1\n",
            "line 2: field 2, action: 'erase': read, write, trim",
        ),
        ("fio", "fio version 2 iolog\n/dev/a write 0\n", "line 2: 3 fields: file action"),
        ("csv", "op,start,length_bytes\n", "field 2 of the header: 'start': one of time_s,"),
        ("csv", "op,start_bytes\n", "the header has no column of length: name it with its unit"),
        (
            "csv",
            "op,start_bytes,start_sectors\n",
            "field 3 of the header: there is a second column of start",
        ),
        (
            "csv",
            "op,start_bytes,length_bytes\nerase,0,1\n",
            "line 2: field 1, op: 'erase': read, write, trim or flush",
        ),
        ("csv", "op,start_bytes,length_bytes\nread,0\n", "line 2: 2 fields: a field for each"),
        (
            "csv",
            "op,start_bytes,length_bytes\nread,0,1,2\n",
            "line 2: more fields: a field for each",
        ),
        ("csv", "op,start_bytes,length_bytes\n", "there is no request in it, besides 1 header"),
        ("spc", "", "there is no request in it"),
        ("spc", "0,8,512,w,\u{0}\n", "field 5, time: ' '"),
        ("tar", "", "there is no format 'tar': choose from cloudphysics, msr, spc"),
    ] {
        let found = mistake(text, choose(key));
        assert!(found.contains(expected), "{key} {text:?}:\n{found}\n{expected}");
    }
    assert!(mistake([0xFF, 0xFE, b'\n'], choose("spc")).contains("line 1: this is not text"));
}

#[test]
fn a_format_is_found_where_one_fits_and_asked_for_where_two_do() {
    let two = mistake(SSDSIM, Choices::default());
    assert_eq!(
        two,
        "more than one format fits its first lines: choose --format disksim (time-in-ms device sector sectors flags) \
         or --format ssdsim (time-in-ns device sector sectors 0-write-or-1-read)"
    );
    let none = mistake("a text\n", Choices::default());
    assert!(
        none.starts_with("no format fits its first line: choose one by --format to see why: cloud"),
        "{none}"
    );
    assert_eq!(mistake("# a note\n", Choices::default()), "there is no request in it");
    // A mistake is one of the format that reads the lines before it.
    let third = mistake("0,8,512,w,0\n1,8,512,w,0\n2,8,512,x,0\n", Choices::default());
    assert_eq!(third, "line 3: field 4, opcode: 'x': r or w was expected");
    // Five whole numbers fit two formats; decimals later on fit one.
    let decimals = mistake("1 0 8 8 1\n1.5 0 8 8 1\n2 0 8 x 1\n", Choices::default());
    assert!(decimals.starts_with("line 3: field 4, sectors: 'x'"), "{decimals}");
    let late = "0,8,512,w,0\n".repeat(100) + "1,5,2a,512,1\n";
    assert!(mistake(late, Choices::default()).starts_with("line 101: field 3, size: '2a'"));
}

#[test]
fn what_cannot_be_used_is_counted_with_the_reason() {
    let folder = Folder::new();
    let text = "op,start_bytes,length_bytes\nread,9007199254740992,1\nwrite,0,0\nwrite,0,1\n";
    let (account, _) = read(&folder.file("a", text), Choices::default()).unwrap();
    assert_eq!(
        account.to_string(),
        "3 requests = 0 reads + 1 writes + 0 trims + 0 flushes + 2 refused (1 behind 8 PiB, 1 of no bytes), besides 1 header"
    );
}

#[test]
fn compressed_files_are_read_as_streams_and_their_damage_is_named() {
    let folder = Folder::new();
    let text: String = (0..5000).map(|at| format!("0,{at},512,w,{at}\n")).collect();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zst = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
    let gz = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    // Two members, as from two files packed one after the other.
    let (first, second) = text.split_at(text.find("2500").unwrap() - 2);
    let members = [gz(first), gz(second)].concat();
    let plain = read(&folder.file("plain", &text), Choices::default()).unwrap();
    for (name, bytes) in [("a.zst", &zst), ("a.gz", &gz(&text)), ("b.gz", &members)] {
        let path = folder.file(name, bytes);
        assert_eq!(read(&path, Choices::default()).unwrap(), plain, "{name}");
        let seen = Cell::new(0);
        let trace = BlockTrace::open(&path, Choices::default()).unwrap();
        trace.read(&|bytes| seen.set(seen.get() + bytes), &mut |_| {}).unwrap();
        assert_eq!(seen.get(), bytes.len() as u64, "progress is in bytes of the file");
        let damaged = mistake(&bytes[..bytes.len() - 20], choose("spc"));
        assert!(damaged.contains("cannot be read: "), "{name}: {damaged}");
        if name == "a.zst" {
            let what = "its zstd compression is damaged, or the file ends too early";
            assert!(damaged.ends_with(what), "{damaged}");
        }
    }
    let marked = folder.file("marked", format!("\u{FEFF}{text}"));
    assert_eq!(read(&marked, Choices::default()).unwrap(), plain, "a byte order mark");
    assert!(
        mistake([&zst[..], b"0,1,512,w,1\n"].concat(), choose("spc"))
            .starts_with("more data follows")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No bytes make a reader panic, and whatever is read is in the account.
    #[test]
    fn no_bytes_make_a_reader_panic(
        format in 0..FORMATS.len(),
        line in 0usize..20,
        at in 0usize..60,
        with in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let texts = [CLOUDPHYSICS, MSR_NUMBERED, SPC, BLKPARSE, FIU, DISKSIM, SSDSIM, FIO, OWN];
        let mut lines: Vec<Vec<u8>> = texts[format].lines().map(|line| line.into()).collect();
        let line = line % lines.len();
        let at = at % (lines[line].len() + 1);
        let end = (at + with.len()).min(lines[line].len());
        lines[line].splice(at..end, with);
        let folder = Folder::new();
        let path = folder.file("a", lines.join(&b'\n'));
        if let Ok((account, requests)) = read(&path, choose(FORMATS[format].key)) {
            prop_assert!(account.is_complete());
            prop_assert_eq!(requests.len() as u64 + account.refused(), account.requests);
            let bytes = Layout::of(&account).bytes();
            prop_assert!(requests.iter().all(|request| Layout::of(&account).place(request) + request.bytes <= bytes));
        }
    }
}

#[test]
fn statistics_are_those_of_the_requests() {
    let folder = Folder::new();
    let text = "time_s,op,start_sectors,length_sectors\n1,write,0,8\n2,write,4,8\n4,read,1,7\n9,trim,0,2\n9,flush,0,0\n";
    let trace = BlockTrace::open(&folder.file("a", text), Choices::default()).unwrap();
    let stats = Stats::of(&trace, Unit::SECTOR, &|_| {}).unwrap();
    assert_eq!((stats.address_space_bytes, stats.seconds), (12 * 512, Some(8.0)));
    assert_eq!((stats.writes.requests, stats.writes.mean_bytes), (2, Some(4096.0)));
    // 0 to 8 is one; 4 to 12 is two; 1 to 8 is three.
    assert_eq!((stats.writes.canonical, stats.reads.canonical), (Some(1.5), Some(3.0)));
    assert!((stats.write_share - 2.0 / 3.0).abs() < 1e-12);
    let content = stats.content.unwrap();
    // 2 and 3 at 2; 4 to 12 at 8.
    assert_eq!((content.written_units, content.least_runs, content.most_extents), (10, 2, 2));
    let of_4096 = stats.sizes.iter().find(|row| row.up_to == Some(4096)).unwrap();
    assert_eq!((of_4096.writes, of_4096.reads), (2, 1));
    let sums = |side: fn(&nandina_lab::replay::AddressRow) -> u64| {
        stats.addresses.iter().map(side).sum::<u64>()
    };
    assert_eq!((sums(|row| row.writes), sums(|row| row.reads)), (2, 1));
    assert_eq!(stats.addresses[5].writes, 1, "sector 4 of 12 is in the sixth of 16 parts");
}

/// What the real samples hold: key, requests, reads, writes, volumes.
#[test]
fn real_samples_are_read_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    for (name, format, counts) in [
        (
            "cloudphysics-sample/cloudPhysicsIO.csv.zst",
            "cloudphysics",
            [113_872, 46_974, 66_898, 1],
        ),
        ("msr-hm-excerpts/hm_0.csv_899.zst", "msr", [899, 407, 492, 1]),
        ("msr-hm-excerpts/hm_1.revised_5000.txt.zst", "ssdsim", [5_000, 1_096, 3_904, 1]),
        ("umass-financial1-head/Financial_mini.spc.zst", "spc", [949, 183, 766, 16]),
        ("umass-financial1-head/financial1_first99.ssdsim.zst", "disksim", [100, 0, 100, 1]),
        ("ycsb-blkparse/blkparseout_btrfs.txt.zst", "blkparse", [1_824, 1_301, 523, 1]),
        ("ycsb-blkparse/blkparseout_ext4.txt.zst", "blkparse", [9_887, 9_039, 848, 1]),
        ("ycsb-blkparse/blkparseout_f2fs.txt.zst", "blkparse", [5_727, 4_722, 1_005, 1]),
        (
            "fiu-cheetah/cheetah-110108-113008.first-records.blkparse.zst",
            "fiu",
            [9_998, 8_896, 1_102, 1],
        ),
        (
            "disksim-ssd-addon/ssd-postmark-aligned2.trace.zst",
            "disksim",
            [62_257, 51_780, 10_477, 1],
        ),
        (
            "disksim-ssd-addon/ssd-iozone-aligned2-100K.trace.zst",
            "disksim",
            [100_000, 0, 100_000, 1],
        ),
        ("mqsim-samples/tpcc-small.trace.zst", "ssdsim", [6_999, 4_381, 2_618, 16]),
        ("mqsim-samples/wsrch-small.trace.zst", "ssdsim", [24_783, 24_779, 4, 6]),
        ("msps-dtrs/DTRS100M.trace.zst", "ssdsim", [127_043, 113_123, 13_920, 1]),
    ] {
        let path = folder.join(name);
        if !path.exists() {
            println!("skipped: {name} is not there");
            continue;
        }
        let choices = if format == "ssdsim" { choose(format) } else { Choices::default() };
        let trace = BlockTrace::open(&path, choices).unwrap();
        assert_eq!(trace.format().key, format, "{name}");
        let account = trace.read(&|_| {}, &mut |_| {}).unwrap();
        let Account { requests, reads, writes, ref volumes, .. } = account;
        assert_eq!([requests, reads, writes, volumes.len() as u64], counts, "{name}: {account}");
        assert_eq!(account.refused(), 0);
        if format == "spc" {
            // The paper has 2.79 canonical extents a write for all of this trace.
            let stats = Stats::of(&trace, Unit::SECTOR, &|_| {}).unwrap();
            assert_eq!(format!("{:.2}", stats.writes.canonical.unwrap()), "2.37");
            let stats = Stats::of(&trace, Unit::PAGE, &|_| {}).unwrap();
            assert_eq!(format!("{:.2}", stats.writes.canonical.unwrap()), "1.27");
        }
    }
}
