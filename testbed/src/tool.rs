//! Running the `idlewise` command, and saying so.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The command that was built beside this one.
#[derive(Clone)]
pub struct Tool(PathBuf);

impl Tool {
    /// Finds it.
    pub fn beside_us() -> anyhow::Result<Self> {
        let path = std::env::current_exe()?.with_file_name("idlewise");
        ensure!(path.exists(), "{} is not built: run `make demo` or `make experiments`", path.display());
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

    /// What it calls itself.
    pub fn version(&self) -> anyhow::Result<String> {
        let said = Command::new(&self.0).arg("--version").output()?;
        Ok(String::from_utf8(said.stdout)?.lines().next().context("it says no version")?.to_string())
    }

    /// Starts it in the background.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Running> {
        Ok(Running(Some(self.command(arguments).stdout(Stdio::piped()).spawn()?)))
    }

    /// Runs it with `--json`.
    pub fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        self.start(&[arguments, &["--json"]].concat())?.finish()
    }
}

/// A command that runs; it does not outlive whoever started it.
pub struct Running(Option<Child>);

impl Running {
    /// Asks it to stop, as an operator would.
    pub fn interrupt(&self) -> anyhow::Result<()> {
        let child = self.0.as_ref().context("it runs until it is finished")?;
        Ok(kill_process(Pid::from_child(child), Signal::INT)?)
    }

    /// Waits for its end and reads its JSON.
    pub fn finish(mut self) -> anyhow::Result<Value> {
        let child = self.0.take().context("it is finished once")?;
        let output = child.wait_with_output()?;
        serde_json::from_slice(&output.stdout).context("idlewise said nothing that can be read")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
