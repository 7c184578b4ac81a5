//! The command: `idlewise`.

fn main() -> std::process::ExitCode {
    idlewise_cli::main()
}
