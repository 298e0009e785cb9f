//! The `glug` command.

fn main() -> std::process::ExitCode {
    glug::cli::main()
}
