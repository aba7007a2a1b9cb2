//! The `starling` command.

fn main() -> std::process::ExitCode {
    starling_sandbox::take_part();
    starling::cli::main()
}
