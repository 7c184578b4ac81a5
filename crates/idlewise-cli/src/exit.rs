//! Exit codes and the one line that an error is.

use std::borrow::Cow;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use idlewise::report::printable;

use crate::output::say;
use crate::{live, screen};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, nothing to report.
    Clean,
    /// There was nothing to do.
    NothingToDo,
    /// Unreadable blocks were found, by a pass that is over or will go on.
    ErrorsFound,
    /// Stopped before the end; running it again goes on.
    Interrupted,
    /// `status --older-than`: no complete pass since then.
    Overdue,
    /// It could not run, which has been said.
    CouldNotRun,
}

impl Exit {
    /// Its number.
    fn number(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::CouldNotRun => COULD_NOT_RUN,
            Self::NothingToDo => 2,
            Self::ErrorsFound => 3,
            Self::Interrupted => 4,
            Self::Overdue => 5,
        }
    }
}

/// The line of `--help` that explains the codes.
pub const HELP: &str = "Exit codes: 0 clean, 1 could not run, 2 nothing to do, 3 errors found (also if\n\
    interrupted), 4 interrupted (run again to go on), 5 overdue (status\n\
    --older-than), 64 usage.";

const COULD_NOT_RUN: u8 = 1;
const USAGE: u8 = 64;

/// An error of the arguments, found after parsing them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The code of an argument error; help and version are none.
pub fn usage(error: &clap::Error) -> ExitCode {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && typed.strip_prefix('-').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
    {
        eprintln!(
            "error: a value that begins with '{typed}' is below zero, which none may be\n\nFor more information, try '--help'."
        );
        return ExitCode::from(USAGE);
    }
    let shown = error.render().to_string();
    // What was typed, or a name that a shell put in its place, is repeated in it.
    match printable::lines(&shown) {
        Cow::Borrowed(_) => drop(error.print()),
        Cow::Owned(text) => eprint!("{text}"),
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// The code of a command's result; an error is printed.
pub fn code(done: anyhow::Result<Exit>) -> ExitCode {
    of_another(done.map(Exit::number))
}

/// No more of a message than can be read: files are quoted in it.
fn short(mut message: String) -> String {
    const MOST: usize = 4000;
    if message.len() > MOST {
        let end = (0..=MOST).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message += " [...]";
    }
    message
}

/// The same where it is that of another program.
pub fn of_another(done: anyhow::Result<u8>) -> ExitCode {
    live::work_is_over();
    let code = match done {
        Ok(exit) => ExitCode::from(exit),
        Err(error) => {
            say!("idlewise: {}", short(printable::one_line(&format!("{error:#}")).into_owned()));
            ExitCode::from(if error.is::<UsageError>() { USAGE } else { COULD_NOT_RUN })
        }
    };
    // What was in the way of results has been told where they were printed.
    let _ = screen::finish();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_letters() {
        assert_eq!(short("plain".into()), "plain");
        let cut = short("é".repeat(2001));
        assert_eq!((cut.len(), cut.ends_with("é [...]")), (4006, true));
        assert_eq!(short("a".to_string() + &"é".repeat(2000)).len(), 4005);
    }
}
