//! From paths to plain bytes: files, folders, tar archives, standard input, each perhaps compressed.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compression::{Compressed, MEMORY, Volume, decompressed};
use super::folder::{self, Found};
use super::spool::{Part, Spool};
use super::{Slice, TraceError, archive};

/// How much of the content the detection sees.
pub const HEAD: usize = 64 << 10;
/// Archives within archives, the outer one included.
const MOST_LEVELS: usize = 2;
/// Traces that are read as one.
const MOST_INPUTS: usize = 4_096;
/// Some editors put it before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Of a list in a message so many are named; more are only counted.
const NAMED: usize = 5;

/// Bytes that can be read once, with what they are called.
pub struct Input<'a> {
    /// The file, and the member where it is in an archive.
    pub name: String,
    /// How it was compressed, if it was.
    pub compression: Option<&'static str>,
    /// The first bytes, which `rest` does not repeat; none where a file holds them.
    pub head: Vec<u8>,
    /// All others.
    pub rest: Box<dyn Read + Send + 'a>,
    /// The whole at any place, where a file holds the bytes as they are.
    pub file: Option<Part>,
}

impl Input<'_> {
    /// The first bytes, by which the format is found.
    pub fn first_bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.file {
            Some(file) => file.clone().take_all(HEAD as u64).map(Cow::Owned),
            None => Ok(Cow::Borrowed(&self.head)),
        }
    }
}

/// Told how much of all input has been read, from 0 to 1.
pub type ShareDone<'a> = &'a (dyn Fn(f64) + Sync);

/// The inputs of one trace.
#[derive(Default)]
pub struct Inputs<'a> {
    pub all: Vec<Input<'a>>,
    /// Names of the first of what was found in a folder or an archive and is no trace.
    passed_over: Vec<String>,
    /// All of it.
    passed_over_count: usize,
    /// Bytes of memory that those take which are unpacked while they are read.
    memory: u64,
    /// Bounds what small files may unpack to.
    volume: Arc<Volume>,
    /// Told what is read of files.
    meter: Option<Arc<Meter<'a>>>,
    /// Whether some come from a folder or an archive, which may hold other things than traces.
    found: bool,
}

/// How inputs are looked at.
#[derive(Clone, Copy)]
pub struct Looks<'a> {
    /// Whether these first bytes are of a trace.
    pub claims: &'a dyn Fn(&[u8]) -> bool,
    /// Where members of archives are unpacked.
    pub spool: &'a Spool,
}

/// Opens everything that `paths` name, of which a pattern has `matched` some. `-` is standard input; a folder stands for its files, an archive for its members,
/// and `sda` for `sda.blktrace.0`, `.1` and so on if there is no `sda`.
pub fn open_all<'a>(
    (paths, matched): (&[PathBuf], &[Found]),
    looks: Looks,
    slice: Option<&Slice>,
    progress: Option<ShareDone<'a>>,
) -> Result<Inputs<'a>, TraceError> {
    let mut files = Vec::new();
    let mut found = false;
    let matched: HashMap<&Path, &Path> = matched.iter().map(|found| (&*found.path, &*found.folder)).collect();
    for path in paths {
        let below = matched.get(&**path).copied();
        let is_folder = metadata_of(path, below).is_ok_and(|found| found.is_some_and(|found| found.is_dir()));
        let expanded = match below {
            Some(_) if !is_folder => Ok(vec![path.clone()]),
            Some(folder) => folder::files(&Found { path: path.clone(), folder: folder.into() }, |_| true),
            None => expand(path),
        };
        let expanded = expanded.map_err(|error| io_error(path, error))?;
        found |= is_folder;
        files.extend(expanded.into_iter().map(|file| {
            let folder = below.or_else(|| (file != *path).then(|| folder::of(&file))).map(Path::to_path_buf);
            (folder, file)
        }));
    }
    let size = |(folder, path): &(Option<PathBuf>, PathBuf)| {
        metadata_of(path, folder.as_deref()).ok().flatten().map_or(0, |found| found.len())
    };
    let sizes = files.iter().map(size);
    let meter = Arc::new(Meter { done: AtomicU64::new(0), size: sizes.sum(), progress });
    let mut inputs = Inputs { found, meter: Some(meter.clone()), ..Inputs::default() };
    for (folder, path) in files {
        let path = &path;
        let name = path.display().to_string();
        let (file, read): (_, Box<dyn Read + Send>) = if path.as_os_str() == "-" {
            (None, Box::new(io::stdin()))
        } else {
            let opened = match folder {
                None => File::open(path).map(Some),
                Some(folder) => folder::open(&Found { path: path.clone(), folder }),
            };
            let Some(file) = opened.map_err(|error| io_error(path, error))? else {
                inputs.pass_over(format!("{name} (empty, another user's link or mount, or held by its owner)"));
                continue;
            };
            let part = Part::of_file(&file).map_err(|error| io_error(path, error))?;
            match (slice, part) {
                // It ends where it did when it was opened, whoever adds to it. Those of /proc say that they are empty.
                (None, Some(part)) if part.left() > 0 => (Some(part.clone()), Box::new(part)),
                (None, part) => (part, Box::new(file)),
                (Some(slice), part) => {
                    let lines = part.map(|part| part.lines(&slice.bytes)).transpose();
                    let lines = lines
                        .map_err(|error| io_error(path, error))?
                        .ok_or_else(|| io_error(path, io::Error::other("a part can be read only of a plain file")))?;
                    (Some(lines.clone()), Box::new(lines))
                }
            }
        };
        let begin = slice.map_or(0, |slice| slice.bytes.start);
        // Lines are counted from there.
        let name = if begin > 0 { format!("{name} from byte {begin} on") } else { name };
        let counted = Counted { read, meter: meter.clone() };
        inputs.open(name, counted, file, looks, &Outer::default()).map_err(|error| io_error(path, error))?;
    }
    Ok(inputs)
}

/// What is known of a file that was named, or found below a folder.
fn metadata_of(path: &Path, folder: Option<&Path>) -> io::Result<Option<Metadata>> {
    match folder {
        Some(folder) => folder::metadata(&Found { path: path.into(), folder: folder.into() }),
        None => path.metadata().map(Some),
    }
}

/// One input from memory.
pub fn open_bytes<'a>(name: &str, bytes: &'a [u8], looks: Looks) -> Result<Inputs<'a>, TraceError> {
    let mut inputs = Inputs::default();
    inputs
        .open(name.into(), bytes, None, looks, &Outer::default())
        .map_err(|error| TraceError::Io { path: name.into(), error })?;
    Ok(inputs)
}

/// Names, of which the first are enough for people.
pub fn name_some(names: &[impl Borrow<str>]) -> String {
    name_first(names, names.len())
}

/// The first of so many names.
fn name_first(names: &[impl Borrow<str>], count: usize) -> String {
    let named = names[..names.len().min(NAMED)].join(", ");
    if count > NAMED { format!("{named} and {} more", count - NAMED) } else { named }
}

/// `usr_0` of `traces/usr_0.csv.gz`; more of the name where others among `all` are called so too.
pub fn short_name<'n>(name: &'n str, all: &[String]) -> &'n str {
    fn file(name: &str) -> &str {
        name.rsplit('/').next().unwrap_or(name)
    }
    fn stem(name: &str) -> &str {
        file(name).split('.').next().unwrap_or(name)
    }
    let alone = |short: fn(&str) -> &str| all.iter().filter(|other| short(other) == short(name)).count() <= 1;
    match (alone(stem), alone(file)) {
        (true, _) => stem(name),
        (false, true) => file(name),
        (false, false) => name,
    }
}

fn io_error(path: &Path, error: io::Error) -> TraceError {
    TraceError::Io { path: path.display().to_string(), error }
}

/// The files that a path stands for, as [`open`](super::open) reads them: those of a folder, and `sda.blktrace.0`, `.1` and so on for
/// `sda` where there is no file of that name.
///
/// # Errors
/// If a folder cannot be read.
pub fn expand(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() {
        return folder::files(&Found::named(path), |_| true);
    }
    if !path.exists() && path.as_os_str() != "-" {
        let folder = folder::of(path);
        let prefix = format!("{}.blktrace.", path.file_name().unwrap_or_default().to_string_lossy());
        let parts = folder::files(&Found::named(folder), |name| name.starts_with(&prefix)).unwrap_or_default();
        if !parts.is_empty() {
            return Ok(parts);
        }
    }
    Ok(vec![path.into()])
}

impl<'a> Inputs<'a> {
    /// Opens one input, which may be an archive.
    fn open(
        &mut self,
        name: String,
        read: impl Read + Send + 'a,
        file: Option<Part>,
        looks: Looks,
        outer: &Outer,
    ) -> io::Result<()> {
        // What is in an archive was counted with it.
        let read: Box<dyn Read + Send + 'a> =
            if outer.archives == 0 { Box::new(self.volume.of_file(read)) } else { Box::new(read) };
        let (mut rest, compressed) = decompressed(read, outer.memory_left(), &self.volume)?;
        let mut head = Vec::new();
        rest.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let mark = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        head.drain(..mark);
        head.shrink_to_fit();
        let inner = outer.with(compressed);
        if archive::claims(&head) {
            return self.unpack(&name, Cursor::new(head).chain(rest), looks, &inner);
        }
        if self.found && !(looks.claims)(&head) {
            self.pass_over(name);
            return Ok(());
        }
        if self.all.len() == MOST_INPUTS {
            return Err(io::Error::other(format!("more than {MOST_INPUTS} traces at once: merge some of them first")));
        }
        let compression = inner.compression;
        let memory = self.memory + compressed.map_or(0, |how| how.memory);
        let file = file.filter(|file| compressed.is_none() && file.left() >= head.len() as u64);
        let file = match file {
            Some(file) => file.from(mark as u64),
            // What unpacks it takes memory, beyond which it is unpacked into a temporary file.
            None if memory > MEMORY => looks.spool.part(&mut Cursor::new(head).chain(rest))?,
            None => {
                self.memory = memory;
                self.all.push(Input { name, compression, head, rest, file: None });
                return Ok(());
            }
        };
        // It is read again from its beginning: the first bytes of thousands would take memory.
        let rest: Box<dyn Read + Send + 'a> = match &self.meter {
            Some(meter) if outer.archives == 0 => {
                Box::new(Counted { read: Box::new(file.clone()), meter: meter.clone() })
            }
            _ => Box::new(file.clone()),
        };
        self.all.push(Input { name, compression, head: Vec::new(), rest, file: Some(file) });
        Ok(())
    }

    /// What was found and is no trace, if anything.
    pub fn passed_over(&self) -> Option<String> {
        (self.passed_over_count > 0).then(|| name_first(&self.passed_over, self.passed_over_count))
    }

    fn pass_over(&mut self, name: String) {
        self.passed_over_count += 1;
        if self.passed_over.len() < NAMED {
            self.passed_over.push(name);
        }
    }

    /// Each member that may be a trace becomes an unnamed temporary file: an archive is read once from front to end, but its members
    /// are merged by time.
    fn unpack(&mut self, name: &str, archive: impl Read, looks: Looks, inner: &Outer) -> io::Result<()> {
        if inner.archives > MOST_LEVELS {
            return Err(io::Error::other(format!(
                "{name}: archives in archives in archives; {MOST_LEVELS} levels are read"
            )));
        }
        self.found = true;
        archive::each_member(archive, inner.memory_left(), |member, head, content| {
            let member = format!("{name}:{member}");
            let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
            if !archive::claims(head) && !(looks.claims)(head) {
                self.pass_over(member);
                return Ok(());
            }
            let part = looks.spool.part(content)?;
            self.open(member, part.clone(), Some(part), looks, inner)
        })
    }
}

/// What an input is in.
#[derive(Default)]
struct Outer {
    archives: usize,
    /// How the innermost was compressed.
    compression: Option<&'static str>,
    /// Bytes of memory that unpacking all of them takes.
    memory: u64,
}

impl Outer {
    fn with(&self, compressed: Option<Compressed>) -> Self {
        let (name, memory) = (compressed.map(|how| how.name), compressed.map_or(0, |how| how.memory));
        Self { archives: self.archives + 1, compression: name.or(self.compression), memory: self.memory + memory }
    }

    /// For what is in it.
    fn memory_left(&self) -> u64 {
        MEMORY.saturating_sub(self.memory)
    }
}

/// How much has been read.
struct Meter<'a> {
    done: AtomicU64,
    size: u64,
    progress: Option<ShareDone<'a>>,
}

struct Counted<'a> {
    read: Box<dyn Read + Send>,
    meter: Arc<Meter<'a>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read.read(buffer)?;
        let done = self.meter.done.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        if let Some(progress) = self.meter.progress {
            progress(done as f64 / self.meter.size.max(done).max(1) as f64);
        }
        Ok(count)
    }
}
