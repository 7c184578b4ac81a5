use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::trace::formats::FORMATS;

const MSR: &str = "128166386783630000,hm,0,Write,4096,512,20\n128166386783629990,hm,1,Read,0,1024,30\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

fn arrivals(trace: &Trace) -> Vec<u64> {
    trace.columns.arrival.iter().map(|arrival| arrival.0).collect()
}

#[test]
fn sorts_rebases_and_decompresses() {
    for bytes in [MSR.as_bytes().to_vec(), gzip(MSR.as_bytes())] {
        let trace = parse_bytes("t.csv", &bytes, &ReadOptions::default()).unwrap();
        let Provenance { format, was_sorted, origin, .. } = trace.provenance;
        assert_eq!((format, was_sorted, origin), ("msr", false, Nanos(12_816_638_678_362_999_000)));
        assert_eq!(arrivals(&trace), [0, 1_000]);
        assert_eq!(trace.columns.volumes, ["hm_0", "hm_1"]);
        assert!(trace.columns.responses().eq([Nanos(3_000), Nanos(2_000)]));
        let read = |volumes: &[&str]| {
            let volumes: Vec<String> = volumes.iter().map(ToString::to_string).collect();
            parse_bytes("t.csv", &bytes, &ReadOptions { volumes: &volumes, ..ReadOptions::default() })
        };
        let one = read(&["hm_0"]).unwrap();
        assert_eq!((arrivals(&one), &*one.columns.volumes[0], one.columns.volumes.len()), (vec![0], "hm_0", 1));
        for both in [&["hm_*"][..], &["hm_1", "hm_0"]] {
            assert_eq!(arrivals(&read(both).unwrap()), [0, 1_000]);
        }
        for none in [&["hm_9"][..], &["hm_0", "hm_9"]] {
            assert_eq!(read(none).unwrap_err().to_string(), "no volume 'hm_9' in the trace; it has hm_0, hm_1");
        }
    }
}

/// Whoever adds to a file while it is read keeps nobody reading.
#[test]
fn a_file_ends_where_it_did_when_it_was_opened() {
    let rows: String =
        (0..20_000).map(|at| format!("{},hm,0,Read,{},512,1\n", 10_000_000 + at, at % 97 * 4096)).collect();
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("plain.csv", rows.clone().into_bytes()), ("packed.csv.gz", gzip(rows.as_bytes()))] {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let reader = Reader::open(std::slice::from_ref(&path), &ReadOptions::default()).unwrap();
        std::fs::File::options().append(true).open(&path).unwrap().write_all(&bytes).unwrap();
        assert_eq!(reader.collect().unwrap().len(), 20_000, "{name}");
    }
}

#[test]
fn a_name_of_more_than_255_bytes_is_a_bad_record() {
    let csv = "time=1:ns,offset=2:bytes,length=3:bytes,op=4:R/W,volume=5".parse().unwrap();
    let columns = ReadOptions { columns: Some(&csv), ..ReadOptions::default() };
    for (options, before, after, lead) in [
        (ReadOptions::default(), "1,", ",0,Read,0,512,1\n", ""),
        (ReadOptions::default(), "0 ", " read 0 512\n", "fio version 3 iolog\n"),
        (columns, "1,0,512,R,", "\n", ""),
    ] {
        let text = |bytes| format!("{lead}{before}{}{after}", "n".repeat(bytes));
        assert_eq!(parse_bytes("t", text(253).as_bytes(), &options).unwrap().len(), 1);
        let error = parse_bytes("t", text(256).as_bytes(), &options).unwrap_err().to_string();
        assert!(error.contains("expected a name of at most 255 bytes, found 'nnn"), "{error}");
    }
    let by_file = ReadOptions { by_file: true, ..ReadOptions::default() };
    let error = parse_bytes(&"f".repeat(252), MSR.as_bytes(), &by_file).unwrap_err().to_string();
    assert!(error.contains("more than 255 bytes: give it a shorter name"), "{error}");
}

#[test]
fn few_names_of_many_are_named() {
    let lines: String = (0..7).map(|host| format!("{host},h{host},0,Read,0,512,1\n")).collect();
    let options = ReadOptions { volumes: &["x".into()], ..ReadOptions::default() };
    let error = parse_bytes("t", lines.as_bytes(), &options).unwrap_err().to_string();
    assert_eq!(error, "no volume 'x' in the trace; it has h0_0, h1_0, h2_0, h3_0, h4_0 and 2 more");
}

#[test]
fn a_bad_record_is_an_error_or_counted() {
    let text = format!("{MSR}128166386783640000,hm,0,Wrote,4096,512,20\n{MSR}");
    let error = parse_bytes("t.csv", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "t.csv: line 3, column 25: expected Read or Write, found 'Wrote'; --skip-bad leaves such records out"
    );
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let trace = parse_bytes("t.csv", text.as_bytes(), &options).unwrap();
    assert_eq!((trace.len(), trace.provenance.bad_records), (4, 1));
}

#[test]
fn what_has_no_record_for_long_has_an_end() {
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let lines = "128166386783630000,hm,0,Write,4096,512,20\n".repeat(20_000);
    let events = "8,0 0 1 0.000000000 1234 D R 0 + 8 [fio]\n8,0 0 2 0.001000000 1234 C R 0 + 8 [0]\n".repeat(9_000);
    for text in [lines, events] {
        std::fs::write(&path, &text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        // It takes no space, and whoever reads it is not to read for days.
        file.set_len(1 << 43).unwrap();
        let error = open(std::slice::from_ref(&path), &options).unwrap_err().to_string();
        assert!(error.contains("32.0 MiB and more of it are nothing but zeros"), "{error}");
        // Nor through anything else that holds no record.
        let long = text + &"x".repeat(300 << 20);
        let error = parse_bytes("t", long.as_bytes(), &options).unwrap_err().to_string();
        assert!(error.contains("256 MiB without a record"), "{error}");
    }
}

#[test]
fn bad_records_are_counted_and_placed_across_pieces_and_blocks() {
    let mut text = "128166386783630000,hm,0,Write,4096,512,20\n".repeat(400_000);
    let bad: Vec<usize> = vec![7, 123_456, 399_999];
    for line in &bad {
        text.replace_range(line * 42..line * 42 + 1, "x");
    }
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let trace = parse_bytes("t", text.as_bytes(), &options).unwrap();
    assert_eq!((trace.len(), trace.provenance.bad_records), (399_997, 3));
    for (line, sample) in bad.iter().zip(&trace.provenance.bad_samples) {
        assert!(sample.starts_with(&format!("line {}, column 1:", line + 1)), "{sample}");
    }
    text.replace_range(7 * 42..7 * 42 + 1, "1");
    let error = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("line 123457, column 1"), "{error}");
}

#[test]
fn an_archive_is_one_trace_of_its_members() {
    let early = "1,a,0,Read,0,512,1\n9,a,0,Read,0,512,1\n";
    let late = gzip(b"5,b,0,Read,0,512,1\n");
    let archive = gzip(&tar(&[("x/README", b"about"), ("x/late.gz", &late), ("x/early", early.as_bytes())]));
    let trace = parse_bytes("t.tgz", &archive, &ReadOptions::default()).unwrap();
    assert_eq!((arrivals(&trace), trace.columns.volumes.len()), (vec![0, 400, 800], 2));
    assert_eq!(trace.provenance.passed_over.as_deref(), Some("t.tgz:x/README"));
    let options = ReadOptions { aligned: true, by_file: true, ..ReadOptions::default() };
    let aligned = parse_bytes("t.tgz", &archive, &options).unwrap();
    assert_eq!(arrivals(&aligned), [0, 0, 800]);
    assert_eq!(aligned.columns.volumes, ["late:b_0", "early:a_0"]);
}

#[test]
fn members_of_every_kind_are_read_or_named() {
    use tar::EntryType::{Continuous, Directory, Link, Regular};
    let mut archive = tar::Builder::new(Vec::new());
    let long = format!("{}.csv", "n".repeat(10_000));
    for (name, kind, bytes) in
        [("a.csv", Continuous, MSR), ("folder", Directory, ""), ("b.csv", Link, ""), (&long, Regular, "")]
    {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append_data(&mut header, name, bytes.as_bytes()).unwrap();
    }
    let trace = parse_bytes("t.tar", &archive.into_inner().unwrap(), &ReadOptions::default()).unwrap();
    let shown = format!("t.tar:b.csv, t.tar:...{}.csv", "n".repeat(251));
    assert_eq!((trace.len(), trace.provenance.passed_over), (2, Some(shown)));
}

#[test]
fn a_member_that_cannot_be_unpacked_is_an_error() {
    let packed = gzip(MSR.as_bytes());
    let archive = tar(&[("a.csv", MSR.as_bytes()), ("b.csv.gz", &packed[..12])]);
    let error = parse_bytes("t.tar", &archive, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("t.tar: b.csv.gz: "), "{error}");
}

#[test]
fn many_compressed_members_are_one_trace() {
    let packed = gzip(MSR.as_bytes());
    let names: Vec<String> = (0..100).map(|at| format!("{at}.csv.gz")).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &packed[..])).collect();
    assert_eq!(parse_bytes("t.tar", &tar(&members), &ReadOptions::default()).unwrap().len(), 200);
}

#[test]
fn the_clock_is_as_coarse_as_its_times() {
    let lines = |step: u64, offset: u64| -> String {
        (0..2_000u64).map(|k| format!("{},hm,0,Read,0,512,1\n", (k * k % 777 + 5 * k) * step + offset)).collect()
    };
    let resolution =
        |text: &str| parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap().provenance.resolution;
    assert_eq!(resolution(&lines(10_000_000, 7)), Nanos::from_secs(1));
    assert_eq!(resolution(&lines(10, 7)), Nanos(100));
    let few: String = lines(10_000_000, 7).split_inclusive('\n').take(20).collect();
    assert_eq!(resolution(&few), Nanos(100), "too few to tell");
}

#[test]
fn events_and_requests_do_not_mix() {
    let sample = |name| (FORMATS.get(name).unwrap().sample)();
    let archive = tar(&[("a", &sample("blkparse")), ("b", &sample("spc"))]);
    assert!(matches!(parse_bytes("t", &archive, &ReadOptions::default()), Err(TraceError::Mixed(_))));
}

#[test]
fn of_an_archive_only_traces_are_unpacked_and_no_deeper_than_two_levels() {
    let zeros = vec![0; 3 << 20];
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(MSR.repeat(10_000).as_bytes()).unwrap();
    let traces = tar(&[("zeros", &zeros), ("empty", b""), ("hm.bz2", &bzip2.finish().unwrap())]);
    let limited = |bytes| ReadOptions { spool_limit: Some(Bytes(bytes)), ..ReadOptions::default() };
    let trace = parse_bytes("t.tar", &traces, &limited(100_000)).unwrap();
    assert_eq!((trace.len(), trace.provenance.passed_over.as_deref()), (20_000, Some("t.tar:zeros, t.tar:empty")));
    let error = parse_bytes("t.tar", &traces, &limited(100)).unwrap_err().to_string();
    assert!(error.starts_with("t.tar: more than 100 B of temporary files in "), "{error}");
    let two = gzip(&tar(&[("inner.tar", &traces)]));
    assert_eq!(parse_bytes("t.tgz", &two, &ReadOptions::default()).unwrap().len(), 20_000);
    let error = parse_bytes("t.tar", &tar(&[("outer.tgz", &two)]), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("archives in archives in archives; 2 levels are read"), "{error}");
}

#[test]
fn a_header_of_an_archive_is_short() {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(2 << 20);
    header.set_cksum();
    archive.append_data(&mut header, "x", &vec![b'n'; 2 << 20][..]).unwrap();
    let error = parse_bytes("t", &archive.into_inner().unwrap(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a header of more than 1 MiB"), "{error}");
}

#[test]
fn a_truncated_archive_is_an_error() {
    let bytes = gzip(MSR.repeat(1000).as_bytes());
    let error = parse_bytes("t.gz", &bytes[..bytes.len() / 2], &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, TraceError::Io { .. }), "{error}");
}

#[test]
fn unknown_content_names_the_known_formats() {
    let error = parse_bytes("x", b"once upon a time", &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("msr, msr-short, blkreplay"), "{error}");
}

proptest! {
    // Seeds of failures are printed by proptest and kept in proptest-regressions/.
    #[test]
    fn no_damage_panics_or_hangs(cut in 0usize..4000, hits in prop::collection::vec((any::<usize>(), any::<u8>()), 0..20)) {
        let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        for format in FORMATS.iter() {
            let mut bytes = (format.sample)();
            for (at, value) in &hits {
                let len = bytes.len();
                bytes[at % len] = *value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut % 200));
            if let Ok(trace) = parse_bytes("damaged", &bytes, &options) {
                prop_assert!(trace.columns.arrival.is_sorted());
                prop_assert_eq!(trace.columns.offset.len(), trace.len());
            }
        }
    }
}

proptest! {
    #[test]
    fn a_thread_that_reads_ahead_changes_nothing(rows in 0usize..4_000, wrong in prop::option::of(0usize..4_000), most in 1usize..40) {
        let line = |row: usize| match wrong {
            Some(wrong) if wrong == row => format!("{row},v,x,Read,0,512,1,{:0200}\n", 0),
            _ => format!("{},v,{},Read,0,512,1\n", row * 7, row % 3),
        };
        let text: String = (0..rows).map(line).collect();
        let open = || Reader::of_bytes("t", text.as_bytes(), &ReadOptions::default());
        let (Ok(mut one), Ok(mut other)) = (open(), open()) else { return Ok(()) };
        let (mut expected, mut failure) = (Vec::new(), None);
        loop {
            match one.next() {
                Ok(Some(columns)) => expected.extend(columns.requests()),
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        let mut found = Vec::new();
        let ended = other.each(|columns, _| -> Result<(), TraceError> {
            found.extend(columns.requests());
            Ok(())
        });
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(ended.err().map(|error| error.to_string()), failure);
        // Whoever wants no more gets no more.
        let (mut given, mut taken) = (open().unwrap(), 0);
        let stops = given.each(|_, _| {
            taken += 1;
            if taken == most { Err(TraceError::Nothing("enough".into())) } else { Ok(()) }
        });
        prop_assert!(taken <= most && (taken < most || matches!(stops, Err(TraceError::Nothing(_)))));
    }
}

#[test]
fn the_rest_of_a_line_that_is_too_long_is_no_row() {
    for (format, row) in
        [(None, "1,hm,0,Read,0,512,10"), (Some("time=1:ns,offset=5,length=6,volume=2"), "1,hm,0,Read,0,512,10")]
    {
        let layout = format.map(|format: &str| format.parse().unwrap());
        let options = ReadOptions { skip_bad: true, columns: layout.as_ref(), ..ReadOptions::default() };
        for blanks in [70_000, 5 << 20, 13 << 20] {
            let text = format!("{row}\n{row}\nx{}{row}\n{row}\nx\n{row}\n", " ".repeat(blanks));
            let mut reader = Reader::of_bytes("t", text.as_bytes(), &options).unwrap();
            let mut rows = 0;
            while let Some(columns) = reader.next().unwrap() {
                rows += columns.len();
            }
            let provenance = reader.provenance();
            assert_eq!((rows, provenance.bad_records), (4, 2), "{format:?} {blanks}");
            assert!(provenance.bad_samples[1].contains("line 5"), "{:?}", provenance.bad_samples);
        }
    }
}
