//! `status --forget`: what is known of a disk that is gone.

use std::io::ErrorKind;

use anyhow::{anyhow, bail};
use idlewise::report::printable::one_line;
use idlewise_linux::scrub::{CheckpointError, Pass, StateFolder};

use super::names::is_meant;
use super::never_scrubbed;
use crate::exit::Exit;
use crate::output;

/// Removes the checkpoints of devices, by their paths or identities: of all of them or, where one name is wrong, of none.
pub fn forget(folders: &[StateFolder], names: &[String]) -> anyhow::Result<Exit> {
    let mut known = Vec::new();
    for folder in folders {
        known.extend(folder.list()?.into_iter().filter_map(|listed| Some((folder, listed.pass.ok()?))));
    }
    let chosen = names.iter().map(|name| one(&known, name)).collect::<anyhow::Result<Vec<_>>>()?;
    for (folder, pass) in chosen {
        folder.forget(pass).map_err(|error| match error {
            CheckpointError::Io { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
                anyhow!("{}: only who may write to {} can forget it: try sudo", pass.device, folder.path().display())
            }
            other => other.into(),
        })?;
        let bad: u64 = pass.known_errors().iter().map(|run| run.blocks).sum();
        let [device, identity] = [&pass.device, &pass.identity].map(|name| one_line(name));
        output::text(&format!("forgot {device} ({identity}); unreadable blocks that were known: {bad}\n"))?;
    }
    Ok(Exit::Clean)
}

/// The one pass of this name.
fn one<'k>(known: &'k [(&StateFolder, Pass)], name: &str) -> anyhow::Result<(&'k StateFolder, &'k Pass)> {
    let of_name: Vec<_> = known.iter().filter(|(_, pass)| is_meant(name, &pass.device, &pass.identity)).collect();
    match of_name[..] {
        [] => Err(never_scrubbed(name)),
        [(folder, pass)] => Ok((folder, pass)),
        _ => {
            let identities: Vec<_> = of_name.iter().map(|(_, pass)| &*pass.identity).collect();
            bail!("{name}: several devices were scrubbed under this name; say which: {}", identities.join(", "))
        }
    }
}
