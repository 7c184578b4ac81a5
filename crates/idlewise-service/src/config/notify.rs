//! Who is told what is wrong: `[notify]`.

use rustix::fs::{Access, access};
use serde::Deserialize;

use crate::messages::Repeat;

/// `[notify]`: who is told.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// Addresses of mail, such as `root`.
    pub mail: Vec<String>,
    /// A command, and what is handed to it: it reads the message and gets the rest in its environment.
    pub command: Vec<String>,
    /// Where the message is posted as JSON.
    pub webhook: Option<Webhook>,
    /// When it is told again.
    pub repeat: Repeat,
}

/// Where messages are posted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// A file that holds the address: whoever knows it may post there.
    pub url_file: std::path::PathBuf,
}

/// The program that takes mail.
pub const SENDMAIL: &str = "/usr/sbin/sendmail";

impl Notify {
    /// Ways in which nobody can be told on this machine as it is, and why, in words.
    pub fn not_possible(&self) -> Vec<String> {
        let runs = |program: &str| access(program, Access::EXEC_OK).is_ok();
        let mut all = Vec::new();
        if !self.mail.is_empty() && !runs(SENDMAIL) {
            all.push(format!(
                "[notify] mail: there is no {SENDMAIL}; install a mail server such as postfix or msmtp-mta"
            ));
        }
        if let Some(command) = self.command.first().filter(|command| !runs(command)) {
            all.push(format!("[notify] command: {command} is not there, or cannot be executed"));
        }
        if let Some(webhook) = &self.webhook {
            let file = webhook.url_file.display();
            all.extend(
                std::fs::File::open(&webhook.url_file).err().map(|why| format!("[notify] webhook: {file}: {why}")),
            );
            let path = std::env::var_os("PATH").unwrap_or_default();
            if !std::env::split_paths(&path).any(|folder| access(folder.join("curl"), Access::EXEC_OK).is_ok()) {
                all.push("[notify] webhook: there is no command curl; install it".into());
            }
        }
        all
    }

    /// Whether anybody is.
    pub fn is_wanted(&self) -> bool {
        !self.mail.is_empty() || !self.command.is_empty() || self.webhook.is_some()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let is_address =
            |address: &&String| address.is_empty() || address.starts_with('-') || address.contains(char::is_control);
        if let Some(address) = self.mail.iter().find(is_address) {
            return Err(format!("[notify] mail: '{}' is no address", address.escape_default()));
        }
        match self.command.first() {
            Some(command) if !command.starts_with('/') => {
                Err(format!("[notify] command: '{command}' must be a whole path, such as \"/etc/idlewise/notify\""))
            }
            _ => Ok(()),
        }
    }
}
