//! Running the `idlewise` command, and saying so.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// The command that was built beside this one.
pub struct Tool(PathBuf);

impl Tool {
    /// Finds it.
    pub fn beside_us() -> anyhow::Result<Self> {
        let path = std::env::current_exe()?.with_file_name("idlewise");
        ensure!(path.exists(), "{} is not built: run `make demo`", path.display());
        Ok(Self(path))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        println!("$ idlewise {}", arguments.join(" "));
        let mut command = Command::new(&self.0);
        command.args(arguments);
        command
    }

    /// Runs it for people to see.
    pub fn show(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let status = self.command(arguments).status()?;
        ensure!(status.success(), "idlewise {} failed", arguments[0]);
        println!();
        Ok(())
    }

    /// Starts it in the background; its result is read with [`finish`].
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        Ok(self.command(arguments).stdout(Stdio::piped()).spawn()?)
    }

    /// Runs it with `--json`.
    pub fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        finish(self.start(&[arguments, &["--json"]].concat())?, arguments[0])
    }
}

/// Waits for a command and reads its JSON.
pub fn finish(child: Child, name: &str) -> anyhow::Result<Value> {
    let output = child.wait_with_output()?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("idlewise {name} said nothing that can be read"))
}
