//! The files made to hurt, and what they are made of.

use std::io::Write;

use crate::crafted::{self, Pages};

/// Columns of the tables among them.
pub const TABLE: &str = "time=1:ns,offset=2:bytes,length=3:bytes,op=4:R/W";

/// A file, how to read it, and what reading it says: nothing where it is a trace.
pub struct Hostile {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub options: &'static [&'static str],
    pub error: &'static str,
}

fn gzip(write: impl FnOnce(&mut dyn Write)) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write(&mut encoder);
    encoder.finish().unwrap()
}

pub fn repeated(bytes: &[u8], times: usize) -> Vec<u8> {
    gzip(|out| (0..times).for_each(|_| out.write_all(bytes).unwrap()))
}

pub fn tar(members: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
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
pub fn table(last: u64) -> Vec<u8> {
    format!("0,0,4096,R\n1000000,0,4096,W\n{last},4096,4096,R\n").into_bytes()
}

pub fn names(count: usize, name: impl Fn(usize) -> String) -> Vec<u8> {
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

const AS_TABLE: &[&str] = &["--columns", TABLE];
const SKIPPING: &[&str] = &["--columns", TABLE, "--skip-bad"];

fn file(name: &'static str, bytes: Vec<u8>, options: &'static [&'static str], error: &'static str) -> Hostile {
    Hostile { name, bytes, options, error }
}

/// Those that took some commands too long, with these.
pub fn slow() -> Vec<(Hostile, &'static [&'static str])> {
    let gaps = b"0,0,4096,R\n1000000,0,4096,W\n1700000000000000000,4096,4096,R\n";
    vec![
        (
            file("gaps.csv", gaps.to_vec(), AS_TABLE, ""),
            &[
                "simulate F --policy restrained --idle-wait 1ms --busy-period 9000d --request-size 64KiB",
                "compare F --policies swapping,restrained",
                "explore F --service-time 1ms",
            ],
        ),
        (
            file("long-requests.csv.gz", repeated(b"0,0,4294967295,R\n", 1_000_000), AS_TABLE, ""),
            &["trace stats F", "trace stats F --by-volume --json"],
        ),
        (
            file("writes.csv.gz", more_writes_than_updates(), AS_TABLE, ""),
            &["reliability F --policy waiting --idle-wait 5s --request-size 64KiB"],
        ),
        (file("bad-together.tar", bad_together(), SKIPPING, ""), &["trace info F", "idle F"]),
    ]
}

/// All others, on which every command is tried.
pub fn files() -> Vec<Hostile> {
    let largest = format!("{0},hm,0,Read,{0},{1},{0}\n", u64::MAX / 200, u32::MAX);
    vec![
        file("gap.csv", table(1_000_000_000_000_000_000), AS_TABLE, ""),
        file("clock-from-1970.csv", table(1_700_000_000_000_000_000), AS_TABLE, ""),
        file("end-of-time.csv", table(u64::MAX), AS_TABLE, ""),
        file("all-of-time.csv", format!("0,0,4096,R\n{},0,4096,W\n", u64::MAX).into_bytes(), AS_TABLE, ""),
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
        file(
            "in-step.parquet.gz",
            gzip(|out| out.write_all(&crafted::in_step(20_000)).unwrap()),
            &[],
            "as it is compressed as a whole: unpack it first",
        ),
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
