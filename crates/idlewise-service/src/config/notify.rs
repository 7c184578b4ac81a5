//! Who is told what is wrong: `[notify]`.

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

impl Notify {
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
