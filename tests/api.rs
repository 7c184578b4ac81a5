//! What is public in the library is written down, so that nothing becomes public, or changes, unseen.

#[path = "common/public.rs"]
mod public;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use public::public_items;

/// The file holds what the source has; IDLEWISE_WRITE_DOCS=1 writes it.
#[test]
fn what_is_public_is_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idlewise");
    let items: BTreeSet<String> = public_items(&root.join("src/lib.rs"));
    assert!(items.contains("fn drive::shared(policy: P) -> (Foreground, Worker<P>)"), "{items:#?}");
    let text: String = items.iter().flat_map(|item| [item, "\n"]).collect();
    let file: PathBuf = root.join("api.txt");
    if std::env::var_os("IDLEWISE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (written.lines().collect(), text.lines().collect());
    let (gone, come): (Vec<_>, Vec<_>) = (old.difference(&new).collect(), new.difference(&old).collect());
    assert!(
        gone.is_empty() && come.is_empty(),
        "the public items are not those of crates/idlewise/api.txt; IDLEWISE_WRITE_DOCS=1 writes it\ngone: {gone:#?}\ncome: {come:#?}"
    );
}
