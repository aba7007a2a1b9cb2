//! The `starling` command.

fn main() -> std::process::ExitCode {
    starling::workspace::take_part();
    starling::cli::main()
}
