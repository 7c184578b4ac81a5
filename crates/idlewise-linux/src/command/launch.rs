//! Starting a command so that it is in its group from its first instruction on.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// Starts a command with this process's standard streams, folder and environment; `entry` is that of its group. `no_children`: it ignores
/// SIGCHLD, as this process did when it was started.
///
/// # Errors
/// What the system says: [`io::ErrorKind::NotFound`] where there is no such command.
pub fn launch(command: &[OsString], entry: Option<File>, no_children: bool) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(entry) = entry {
        // SAFETY: between the fork and the program nothing is done but this system call on a descriptor that is open.
        unsafe { command.pre_exec(move || rustix::io::write(&entry, b"0").map(drop).map_err(Into::into)) };
    }
    if no_children {
        let ignore = || {
            // SAFETY: to ignore a signal installs no handler.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
            Ok(())
        };
        // SAFETY: between the fork and the program nothing is done but this system call.
        unsafe { command.pre_exec(ignore) };
    }
    command.spawn().map_err(|error| match error.kind() {
        // Some folder of PATH may not be searched; a shell says that too only where it found the command.
        io::ErrorKind::PermissionDenied if !is_found(Path::new(program)) => io::ErrorKind::NotFound.into(),
        _ => error,
    })
}

/// Whether there is such a file, in a folder of PATH where the name has none.
fn is_found(program: &Path) -> bool {
    if program.components().count() > 1 || program.is_absolute() {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
