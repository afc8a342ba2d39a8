//! The program: parse, run, one exit code.

mod allocator;

use std::process::ExitCode;

/// Why not the system's: docs/decisions/0008-an-allocator-of-our-own.md
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(steadfast::cli::main().code())
}
