//! The program: parse, run, one exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(steadfast::cli::main().code())
}
