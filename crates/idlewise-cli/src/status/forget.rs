//! `status --forget`: what is known of a disk that is gone, or can no longer be read.

use std::io::ErrorKind;

use anyhow::{anyhow, bail};
use idlewise::report::printable::one_line;
use idlewise_linux::device::Device;
use idlewise_linux::scrub::{CheckpointError, Pass, StateFolder};

use super::names::{identity_of, is_meant};
use super::never_scrubbed;
use crate::exit::Exit;
use crate::output;

/// A checkpoint that is to be removed.
struct Chosen<'f> {
    folder: &'f StateFolder,
    device: String,
    identity: String,
    /// The unreadable blocks that it knows, unless it is damaged.
    bad: Option<u64>,
}

/// Removes the checkpoints of devices, by their paths or identities: of all of them or, where one name is wrong, of none.
pub fn forget(folders: &[StateFolder], names: &[String]) -> anyhow::Result<Exit> {
    let mut known = Vec::new();
    for folder in folders {
        known.extend(folder.list()?.into_iter().filter_map(|listed| Some((folder, listed.pass.ok()?))));
    }
    let chosen = |name: &String| {
        let chosen = one(&known, name).transpose().or_else(|| damaged(folders, name).map(Ok));
        chosen.unwrap_or_else(|| Err(never_scrubbed(name)))
    };
    for Chosen { folder, device, identity, bad } in names.iter().map(chosen).collect::<anyhow::Result<Vec<_>>>()? {
        folder.forget(&identity, &device).map_err(|error| match error {
            CheckpointError::Io { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
                anyhow!("{device}: only who may write to {} can forget it: try sudo", folder.path().display())
            }
            other => other.into(),
        })?;
        let known =
            bad.map_or("its checkpoint was damaged".into(), |bad| format!("unreadable blocks that were known: {bad}"));
        let [device, identity] = [&device, &identity].map(|name| one_line(name));
        output::text(&format!("forgot {device} ({identity}); {known}\n"))?;
    }
    Ok(Exit::Clean)
}

/// The one pass of this name, if there is any.
fn one<'f>(known: &[(&'f StateFolder, Pass)], name: &str) -> anyhow::Result<Option<Chosen<'f>>> {
    let of_name: Vec<_> = known.iter().filter(|(_, pass)| is_meant(name, &pass.device, &pass.identity)).collect();
    match of_name[..] {
        [] => Ok(None),
        [(folder, pass)] => Ok(Some(Chosen {
            folder,
            device: pass.device.clone(),
            identity: pass.identity.clone(),
            bad: Some(pass.known_errors().iter().map(|run| run.blocks).sum()),
        })),
        _ => {
            let identities: Vec<_> = of_name.iter().map(|(_, pass)| &*pass.identity).collect();
            bail!("{name}: several devices were scrubbed under this name; say which: {}", identities.join(", "))
        }
    }
}

/// The damaged checkpoint of the device or identity of this name: it says no longer whose it is, but is called like it.
fn damaged<'f>(folders: &'f [StateFolder], name: &str) -> Option<Chosen<'f>> {
    let itself = identity_of(name).unwrap_or_else(|| name.into());
    let by_members = itself.clone() + Device::BY_MEMBERS;
    let of = |identity: String| {
        move |folder: &'f StateFolder| folder.is_damaged(&identity).then(|| (folder, identity.clone()))
    };
    let found = folders.iter().find_map(of(itself)).or_else(|| folders.iter().find_map(of(by_members)));
    found.map(|(folder, identity)| Chosen { folder, device: name.into(), identity, bad: None })
}
