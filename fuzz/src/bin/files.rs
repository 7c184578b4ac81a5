//! Files that are well-formed but for what the fuzzer damages, read as any trace is: in order, or refused.
#![no_main]

use idlewise::trace::ReadOptions;
use idlewise::trace::formats::FORMATS;
use idlewise_fuzz::reading::Read;
use idlewise_fuzz::targets::{self, Run};
use idlewise_fuzz::{Result, Unstructured, compressed, parquet, srt, tar};
use libfuzzer_sys::fuzz_target;

type Make = fn(&mut Unstructured) -> Result<Option<Vec<u8>>>;

const TARGETS: [(&str, Make); 5] = [
    ("parquet", |from| Ok(Some([b"PAR1", from.bytes(from.len())?].concat()))),
    ("parquet-pages", parquet::file),
    ("srt-records", |from| srt::trace(from).map(Some)),
    ("tar", |from| tar::archive(from, 2).map(Some)),
    ("compressed", |from| {
        let content = if from.arbitrary()? {
            (from.choose(&FORMATS.iter().collect::<Vec<_>>())?.sample)()
        } else {
            let length = from.int_in_range(0..=300)?;
            from.bytes(usize::min(length, from.len()))?.to_vec()
        };
        let once = compressed::wrapped(&content, from)?;
        compressed::wrapped(&once, from).map(Some)
    }),
];

fuzz_target!(init: targets::begin(all()), |bytes: &[u8]| targets::run(bytes));

fn all() -> Vec<(&'static str, Run)> {
    let target = |(name, make): (_, Make)| (name, Box::new(move |bytes: &[u8]| read(make, bytes)) as Run);
    TARGETS.into_iter().map(target).collect()
}

fn read(make: Make, bytes: &[u8]) {
    let Ok(Some(file)) = make(&mut Unstructured::new(bytes)) else { return };
    // What is whole is what is read without leaving records out.
    let all = |skip_bad| Read::of(&file, &ReadOptions { skip_bad, ..ReadOptions::default() });
    if let Some(strict) = all(false) {
        let lenient = all(true).expect("what has no bad records is read either way");
        assert_eq!((strict.len(), lenient.provenance.bad_records), (lenient.len(), 0));
    } else {
        all(true);
    }
}
