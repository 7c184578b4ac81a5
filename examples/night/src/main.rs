//! The `idlewise` command with a policy and a trace format more: `cargo run -p idlewise-night -- simulate --help`.

mod night;
mod plain;

use idlewise::policy::POLICIES;
use idlewise::trace::formats::FORMATS;

fn main() -> std::process::ExitCode {
    POLICIES.add(night::NIGHT);
    FORMATS.add(plain::PLAIN);
    idlewise_cli::main()
}
