//! Files made to hurt: every command that reads traces ends on each of them, in little memory, and says what was wrong in a line.

mod common;
#[path = "common/crafted.rs"]
mod crafted;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::stderr;
use crafted::Pages;

/// Address space of a command, in KiB: as documented, and what its code and its threads' stacks take.
const MEMORY: u32 = 640 << 10;
/// Blocks of 512 bytes of any file that it writes.
const FILE: u32 = 64 << 11;
/// Files that it has open.
const FILES: u32 = 256;
/// Seconds; far more than any takes on a busy machine.
const TIME: &str = "120";
/// What a command may end with: well, with an error, with an answer that is no, or with a wrong argument.
const CODES: [i32; 4] = [0, 1, 2, 64];

const TABLE: &str = "time=1:ns,offset=2:bytes,length=3:bytes,op=4:R/W";

/// A file, how to read it, and what reading it says: nothing where it is a trace.
struct Hostile {
    name: &'static str,
    bytes: Vec<u8>,
    options: &'static [&'static str],
    error: &'static str,
}

/// Every command that reads traces; F stands for the file, O for a file to write.
const COMMANDS: &[&str] = &[
    "trace info F",
    "trace head F",
    "trace stats F",
    "trace stats F --by-volume --json",
    "trace convert F --out O.parquet",
    "trace convert F --out O.spc",
    "trace cut F --from 1us --out O.csv",
    "trace merge F F --by-file --out O.iolog",
    "idle F",
    "trace cut F --at-gaps 1s --out O.csv",
    "idle F --report O.html",
    "idle F --by-volume",
    "simulate F --policy fixed-delay --delay 16ms --request-size 64KiB --budget 1ms",
    "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB --service 1ms",
    "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB --parity",
    "simulate F --policy restrained --idle-wait 1ms --busy-period 9000d --request-size 64KiB",
    "compare F",
    "compare F --policies swapping,restrained",
    "explore F --report O.html",
    "explore F --service 1ms",
    "tune F --mean-slowdown 1ms --max-slowdown 50ms",
    "tune F --mean-slowdown 1ns --max-slowdown 50ms",
    "reliability F",
    "reliability F --policy waiting --idle-wait 1ms --request-size 64KiB",
    "reliability F --policy waiting --idle-wait 5s --request-size 64KiB",
    "sample F -o O.toml",
    "sample F --interval 1ns",
];

fn run(folder: &Path, command: &str, file: &Hostile) -> Output {
    let path = |word: &str| match word.strip_prefix('O') {
        _ if word == "F" => folder.join(file.name).display().to_string(),
        Some(end) => folder.join(format!("out{end}")).display().to_string(),
        None => word.to_string(),
    };
    let limits = format!("ulimit -v {MEMORY} -f {FILE} -n {FILES} -c 0; exec \"$@\"");
    Command::new("timeout")
        .args(["-s", "KILL", TIME, "bash", "-c", &limits, "bash", env!("CARGO_BIN_EXE_idlewise")])
        .args(command.split(' ').map(path))
        .args(file.options)
        // As many threads as on a small machine: each reserves addresses.
        .envs([("RAYON_NUM_THREADS", "2"), ("MALLOC_ARENA_MAX", "2")])
        .output()
        .expect("the command starts")
}

fn check(file: &Hostile) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    for command in COMMANDS {
        let output = run(folder.path(), command, file);
        let (code, said) = (output.status.code(), stderr(&output));
        let what = format!("{command} of {}: {}, {said}", file.name, output.status);
        assert!(code.is_some_and(|code| CODES.contains(&code)), "{what}");
        assert!(!said.contains("panicked"), "{what}");
        assert!(said.lines().all(|line| line.len() < 2_000), "{what}");
        if file.error.is_empty() && command.starts_with("trace info") {
            assert_eq!(code, Some(0), "{what}");
        }
        // The first requests may well be whole.
        let may_pass = command.starts_with("trace head") && code == Some(0);
        if !file.error.is_empty() && !may_pass {
            let last = said.lines().last().unwrap_or_default();
            // What is kept of each volume may be too much before that.
            let of_each = command.starts_with("trace stats F --by-volume");
            let said_why = last.contains(file.error) || of_each && last.contains("too many volumes for the memory");
            assert!(code != Some(0) && last.starts_with("idlewise: ") && said_why, "{what}");
        }
    }
}

fn gzip(write: impl FnOnce(&mut dyn Write)) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write(&mut encoder);
    encoder.finish().unwrap()
}

fn repeated(bytes: &[u8], times: usize) -> Vec<u8> {
    gzip(|out| (0..times).for_each(|_| out.write_all(bytes).unwrap()))
}

fn tar(members: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Three requests, the last at this time.
fn table(last: u64) -> Vec<u8> {
    format!("0,0,4096,R\n1000000,0,4096,W\n{last},4096,4096,R\n").into_bytes()
}

fn names(count: usize, name: impl Fn(usize) -> String) -> Vec<u8> {
    let line = |at: usize| format!("{},{},0,Read,{at}0000,4096,100\n", 128_166_372_003_061_629 + 1_000 * at, name(at));
    gzip(|out| (0..count).for_each(|at| out.write_all(line(at).as_bytes()).unwrap()))
}

fn bomb() -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    let zeros = vec![0; 100 << 20];
    encoder.write_all(&tar(std::iter::once(("README".into(), zeros)))).unwrap();
    encoder.finish().unwrap()
}

fn nested(levels: usize) -> Vec<u8> {
    let inner = names(2, |_| "hm".into());
    (0..levels).fold(inner, |inner, _| {
        let archive = tar(std::iter::once(("a.tgz".to_string(), inner)));
        gzip(|out| out.write_all(&archive).unwrap())
    })
}

fn many_members() -> Vec<u8> {
    let empty = (0..15_000).map(|at| (format!("empty{at}"), Vec::new()));
    tar(empty.chain([("hm.csv.gz".to_string(), names(2, |_| "hm".into()))]))
}

/// Traces that begin together, each compressed in an archive or as it is.
fn together(count: usize, lines: usize, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let line = |at: usize| format!("{},hm,0,Read,{at}0000,4096,100\n", 128_166_372_003_061_629 + 1_000 * at);
    let member = pack((0..lines).map(line).collect::<String>().as_bytes());
    let archive = tar((0..count).map(|at| (format!("hm{at}.csv"), member.clone())));
    gzip(|out| out.write_all(&archive).unwrap())
}

/// Traces of the shortest lines, all at the same times.
fn together_short(count: usize) -> Vec<u8> {
    let member: String = (0..900).map(|at| format!("0,{},512,r,{}\n", at % 10, at / 90)).collect();
    let archive = tar((0..count).map(|at| (format!("{at}.spc"), member.clone().into_bytes())));
    gzip(|out| out.write_all(&archive).unwrap())
}

/// An archive of so many copies of a Parquet file.
fn many(count: usize, member: &[u8]) -> Vec<u8> {
    tar((0..count).map(|at| (format!("{at}.parquet"), member.to_vec())))
}

/// A small file that says that unpacking it takes a dictionary of `(2 | code & 1) << (code / 2 + 11)` bytes.
fn xz(text: &[u8], code: u8) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(text).unwrap();
    let mut bytes = encoder.finish().unwrap();
    // Behind the header of the stream stands that of the block, with a sum of its own.
    let block = &mut bytes[12..24];
    block[4] = code;
    let mut sum = flate2::Crc::new();
    sum.update(&block[..8]);
    block[8..].copy_from_slice(&sum.sum().to_le_bytes());
    bytes
}

/// Fourteen traces with dictionaries of 192 MiB and two with a window of 128 MiB.
fn large_windows() -> Vec<u8> {
    let text = b"128166372003061629,hm,0,Read,0,4096,100\n128166372003071629,hm,0,Read,0,4096,100\n";
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.window_log(27).unwrap();
    zstd.write_all(text).unwrap();
    let zstd = zstd.finish().unwrap();
    let members = (0..16).map(|at| (format!("hm{at}.csv"), if at % 8 == 7 { zstd.clone() } else { xz(text, 31) }));
    tar(members)
}

/// A line of a trace, and behind it nothing for so many bytes but the last one.
fn sparse(size: u64, extended: bool) -> Vec<u8> {
    let line = b"128166372003061629,hm,0,Read,0,4096,100\n";
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_path("hm.csv").unwrap();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.set_size(if extended { size } else { 513 });
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(size);
    for (block, (offset, length)) in gnu.sparse.iter_mut().zip([(0, 512), (size - 1, 1)]) {
        block.offset[..].copy_from_slice(format!("{offset:011o}\0").as_bytes());
        block.numbytes[..].copy_from_slice(format!("{length:011o}\0").as_bytes());
    }
    header.set_cksum();
    if extended {
        archive.append_pax_extensions([("size", &b"513"[..])]).unwrap();
    }
    let data = [&line[..], &[b'\n'; 512 - 40], b"\n"].concat();
    archive.append(&header, &data[..]).unwrap();
    archive.into_inner().unwrap()
}

/// Traces, and as many files that are none, with names of a megabyte.
fn long_members() -> Vec<u8> {
    let name = |at: usize| format!("{}{at}", "n".repeat(1_000_000));
    let members = (0..300).map(|at| {
        let content =
            if at % 2 == 0 { b"128166372003061629,hm,0,Read,0,4096,100\n".to_vec() } else { b"none".to_vec() };
        (name(at), content)
    });
    let archive = tar(members);
    gzip(|out| out.write_all(&archive).unwrap())
}

/// Two requests behind a header that tells the sector sizes of far too many disks.
fn srt() -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3\ntracedate = \"Sat\";\ndisks = {\n".to_vec();
    (0..20_000).for_each(|disk| bytes.extend(format!("{disk} -> {{\n sectorsize = 512\n }},\n").bytes()));
    bytes.extend(b"};\n\x0c");
    for at in 0..50_000 {
        let record: [u32; 14] = [56, 0x4_0001, at, 500, 174, 19_687, 4096, 1056, 0x0800_ff07, 4, 1, 27, 0, 1];
        bytes.extend(record.iter().flat_map(|word| word.to_be_bytes()));
    }
    bytes
}

/// A pause of ten seconds behind more WRITEs than parities can be updated in it.
fn more_writes_than_updates() -> Vec<u8> {
    gzip(|out| {
        (0..80_000u64).for_each(|k| writeln!(out, "{},{},4096,W", k * 20_000_000, k * 40_960_000).unwrap());
        writeln!(out, "{},0,4096,R", 80_000 * 20_000_000u64 + 10_000_000_000).unwrap();
    })
}

/// Lines that are no records among few that are, in as many files as may be merged.
fn bad_together() -> Vec<u8> {
    let member = |k: u64| {
        let records = (0..3).map(|j| format!("{},0,4096,R\n", (3 * k + j) * 1_000));
        (format!("{k}.csv"), ("x,y\n".repeat(12) + &records.collect::<String>()).into_bytes())
    };
    tar((0..4_096).map(member))
}

fn files() -> Vec<Hostile> {
    const AS_TABLE: &[&str] = &["--columns", TABLE];
    const SKIPPING: &[&str] = &["--columns", TABLE, "--skip-bad"];
    let file = |name, bytes, options, error| Hostile { name, bytes, options, error };
    let largest = format!("{0},hm,0,Read,{0},{1},{0}\n", u64::MAX / 200, u32::MAX);
    vec![
        file("gap.csv", table(1_000_000_000_000_000_000), AS_TABLE, ""),
        file("clock-from-1970.csv", table(1_700_000_000_000_000_000), AS_TABLE, ""),
        file("gaps.csv", b"0,0,4096,R\n1000000,0,4096,W\n1700000000000000000,4096,4096,R\n".to_vec(), AS_TABLE, ""),
        file("long-requests.csv.gz", repeated(b"0,0,4294967295,R\n", 1_000_000), AS_TABLE, ""),
        file("writes.csv.gz", more_writes_than_updates(), AS_TABLE, ""),
        file("bad-together.tar", bad_together(), SKIPPING, ""),
        file("end-of-time.csv", table(u64::MAX), AS_TABLE, ""),
        file("largest.csv", format!("1,hm,0,Write,0,0,0\n{largest}").into_bytes(), &[], ""),
        file("long-names.csv.gz", names(1_000, |at| format!("{at}{}", "n".repeat(30_000))), &[], "at most 255 bytes"),
        file("many-names.csv.gz", names(65_000, |at| format!("h{at}")), &[], ""),
        file("too-many-names.csv.gz", names(70_000, |at| format!("h{at}")), &[], "65,536 volumes"),
        file("junk.parquet", crafted::parquet("v", &"j".repeat(30_000)), &[], ""),
        file("name.parquet", crafted::parquet(&"n".repeat(30_000), "j"), &[], "more than 255 bytes"),
        file("deep.parquet", crafted::nested(100_000), &[], "a schema of more than 1000 columns"),
        file("nested.parquet", crafted::nested(900), &[], "deeper than 10"),
        file(
            "set.parquet",
            crafted::with_footer(
                &[],
                &crafted::footer(crafted::SET, &crafted::nested_columns(4_000, 1), crafted::LIST, crafted::NO_GROUPS),
            ),
            &[],
            "FileMetaData.schema of another type",
        ),
        file(
            "negative.parquet",
            crafted::with_footer(
                &[],
                &crafted::footer(
                    crafted::LIST,
                    &crafted::nested_columns(900, 1 - (1 << 32)),
                    crafted::LIST,
                    crafted::NO_GROUPS,
                ),
            ),
            &[],
            "-4294967295 where 2147483647 is the most",
        ),
        file(
            "groups.parquet",
            crafted::with_footer(
                &[],
                &crafted::footer(crafted::LIST, &crafted::nested_columns(1, 1), 6, &crafted::structures((1 << 31) - 1)),
            ),
            &[],
            "FileMetaData.row_groups of another type",
        ),
        file("pages.parquet", Pages::default().file(), &[], ""),
        file(
            "page-size.parquet",
            Pages { size_type: 6, ..Pages::default() }.file(),
            &[],
            "PageHeader.uncompressed_page_size of another type",
        ),
        file(
            "dictionary.parquet",
            Pages { dictionary_of: Some((1 << 31) - 1), ..Pages::default() }.file(),
            &[],
            "a damaged page at byte 4",
        ),
        file("one-place.parquet", Pages { all_at_once: true, ..Pages::default() }.file(), &[], "two columns at byte 4"),
        file(
            "dictionary-behind.parquet",
            Pages { dictionary_behind: true, ..Pages::default() }.file(),
            &[],
            "a damaged page at byte",
        ),
        file("short-lines.tgz", together_short(4_096), &[], ""),
        file(
            "large-page.parquet",
            Pages { beyond: 30 << 20, ..Pages::default() }.file(),
            &[],
            "a damaged page at byte 4",
        ),
        file("in-step.parquet", crafted::in_step(2_000_000), &[], "at most 100 rows a byte"),
        file("large-pages.tar", many(9, &crafted::parquet("v", "j")), &[], ""),
        file("many-parquet.tar", many(300, &Pages::default().file()), &[], ""),
        file(
            "footer.parquet",
            [&b"PAR1"[..], &u32::MAX.to_le_bytes(), b"PAR1"].concat(),
            &[],
            "a footer of 4294967295 bytes",
        ),
        file("bomb.tar.bz2", bomb(), &[], "not a trace"),
        file("nested.tgz", nested(50), &[], "2 levels are read"),
        file("many-members.tar", many_members(), &[], ""),
        file("together.tgz", together(4_096, 100, |text| text.to_vec()), &[], ""),
        file("together-compressed.tgz", together(800, 1_000, |text| gzip(|out| out.write_all(text).unwrap())), &[], ""),
        file("thousands-compressed.tgz", together(3_000, 2, |text| gzip(|out| out.write_all(text).unwrap())), &[], ""),
        file("windows.tar", large_windows(), &[], ""),
        file(
            "window.csv.xz",
            xz(b"1,hm,0,Read,0,4096,100\n", 37),
            &[],
            "takes 1537 MiB of memory to unpack; at most 256",
        ),
        file("hole.tar", sparse(1 << 32, false), &[], "hm.csv: a sparse file with holes of 4.00 GiB: unpack it first"),
        file("hidden-hole.tar", sparse(1 << 32, true), &[], "hm.csv: a sparse file with holes of 4.00 GiB"),
        file("too-many-together.tgz", together(4_097, 1, |text| text.to_vec()), &[], "more than 4096 traces at once"),
        file("long-members.tgz", long_members(), &[], ""),
        file(
            "cut-member.tar",
            tar(std::iter::once(("hm.csv.gz".into(), names(9, |_| "hm".into())[..12].to_vec()))),
            &[],
            "hm.csv.gz: ",
        ),
        file("sectors.srt", srt(), &[], ""),
        file(
            "header.srt.gz",
            gzip(|out| {
                out.write_all(b"$$TR_IOREC").unwrap();
                out.write_all(&vec![b'x'; 8 << 20]).unwrap();
            }),
            &[],
            "a header of at most 1 MiB",
        ),
        file("line.csv.gz", repeated(&[b'1'; 1 << 20], 100), AS_TABLE, "a line of less than 64 KiB"),
        file("zeros.gz", repeated(&[0; 1 << 20], 100), SKIPPING, "holds no readable request"),
    ]
}

#[test]
fn every_command_ends_on_every_hostile_file() {
    let (files, next) = (files(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = std::time::Instant::now();
                    check(file);
                    eprintln!("{}: {:.1?}", file.name, began.elapsed());
                }
            });
        }
    });
}

/// What is kept of each WRITE, as parity updates need it, counts as what is kept of idle intervals does.
#[test]
fn writes_of_one_busy_period_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let line = b"1,4096,512,W\n";
    let file = Hostile {
        name: "writes.csv.gz",
        bytes: repeated(&line.repeat(10_000), 600),
        options: &["--columns", TABLE],
        error: "",
    };
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    let simulate = "simulate F --policy waiting --idle-wait 1ms --request-size 64KiB";
    assert_eq!(run(folder.path(), simulate, &file).status.code(), Some(0));
    let output = run(folder.path(), &format!("{simulate} --parity"), &file);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("half of the memory that is free"), "{}", stderr(&output));
}

#[test]
fn parts_of_a_trace_are_not_all_open_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let holes: String = (0..600u64).map(|at| format!("{},0,4096,R\n", at * 3_600_000_000_000)).collect();
    let file = Hostile { name: "holes.csv", bytes: holes.into_bytes(), options: &["--columns", TABLE], error: "" };
    std::fs::write(folder.path().join(file.name), &file.bytes).unwrap();
    let output = run(folder.path(), "trace cut F --at-gaps 30min --out O.csv", &file);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 601);

    let path = folder.path().join("many.csv.gz");
    std::fs::write(&path, names(901, |at| format!("h{at}"))).unwrap();
    let out = folder.path().join("volumes").join("v.csv");
    std::fs::create_dir(out.parent().unwrap()).unwrap();
    let paths = [path.display().to_string(), out.display().to_string()];
    let output = common::run(&["trace", "convert", &paths[0], "--by-volume", "--out", &paths[1]]);
    assert!(stderr(&output).contains("more than 900 files"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(out.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn temporary_files_keep_to_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("t.tar");
    std::fs::write(&path, tar(std::iter::once(("hm.csv".into(), table(5))))).unwrap();
    let read = |limit: &str| {
        let path = path.display().to_string();
        common::run(&["trace", "info", &path, "--columns", TABLE, "--spool-limit", limit])
    };
    assert!(read("1KiB").status.success());
    let refused = read("10B");
    assert!(stderr(&refused).contains("more than 10 B of temporary files in /"), "{}", stderr(&refused));
    assert_eq!(refused.status.code(), Some(1));
}

/// What a terminal would obey, and what would pass for a line of ours.
const NAME: &str = "a\u{1b}]0;PWNED\u{7}\u{1b}[2J\ridlewise: all is well\u{9b}1m\u{202e}<b>";

#[test]
fn no_name_reaches_a_terminal_or_a_page_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..50u64)
        .map(|at| {
            format!("{},{NAME},{},Read,{at}000448,4096,100\n", 128_166_372_003_061_629 + at * at * 90_000, at % 2)
        })
        .collect();
    let plain = folder.path().join(format!("{NAME}.csv"));
    std::fs::write(&plain, &text).unwrap();
    let archive = folder.path().join("t.tar");
    let members = [(format!("{NAME}.csv"), text.into_bytes()), (format!("{NAME}.txt"), b"no trace".to_vec())];
    std::fs::write(&archive, tar(members.into_iter())).unwrap();
    let [plain, archive] = [plain, archive].map(|path| path.display().to_string());
    let page = folder.path().join("page.html").display().to_string();
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms"];
    let one = ["--volume", &format!("{NAME}_0")].map(String::from);
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for file in [&*plain, &*archive] {
        for json in [&[][..], &["--json"]] {
            commands.push([&["trace", "info", file], json].concat());
            commands.push([&["trace", "head", file], json].concat());
            commands.push([&["idle", file, "--report", &page], json].concat());
            commands.push([&["tune", file, "--report", &page], &goal[..], json].concat());
            commands.push([&["explore", file, "--volume", &one[1], "--report", &page], json].concat());
            commands.push([&["compare", file], json].concat());
            commands.push([&["sample", file, "--report", &page], json].concat());
        }
        // Errors: of a volume that is not there, of a record, of a file, of what was typed.
        commands.push(vec!["idle", file, "--volume", NAME]);
        commands.push(vec!["trace", "info", file, "--columns", TABLE, "--skip-bad"]);
        commands.push(vec!["trace", "convert", file, "--out", NAME]);
        commands.push(vec!["idle", file, NAME]);
        commands.push(vec!["idle", file, "--policy", NAME]);
    }
    // What ends a line in a name begins no line of ours.
    let forged = folder.path().join("x\nidlewise: all is well");
    std::fs::copy(&plain, &forged).unwrap();
    let model = folder.path().join("model.toml").display().to_string();
    let named =
        idlewise::disk::DiskModel::ultrastar_15k450().to_toml().replacen("Hitachi", "\\nidlewise: all is well", 1);
    std::fs::write(&model, named).unwrap();
    let forged = forged.to_str().unwrap();
    for command in
        [&["idle"][..], &["trace", "info"], &["trace", "stats"], &["sample"], &["explore", "--volume", &one[1]]]
    {
        commands.push([command, &[forged]].concat());
    }
    for command in [&["tune"][..], &["simulate", "--policy", "back-to-back"], &["compare"]] {
        let more: &[&str] = if command[0] == "tune" { &goal } else { &[] };
        commands.push([command, &[forged, "--disk", &model], more].concat());
    }
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for command in commands {
        let _ = std::fs::remove_file(&page);
        let output = common::run(&command);
        let page = std::fs::read_to_string(&page).unwrap_or_default();
        assert_eq!(page.is_empty(), !command.contains(&"--report"), "{command:?}: {}", stderr(&output));
        for shown in [common::stdout(&output), stderr(&output), page] {
            assert!(!shown.contains(obeyed), "{command:?}: {shown:?}");
            assert!(!shown.lines().any(|line| line.starts_with("idlewise: all is well")), "{command:?}: {shown}");
            assert!(!shown.contains("<html") || !shown.contains("202e}<b>"), "{command:?}: {shown}");
        }
    }
}
