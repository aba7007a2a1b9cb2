//! The `starling` command.

fn main() -> std::process::ExitCode {
    starling::cli::main()
}
