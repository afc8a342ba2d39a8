//! The program: calls the library and returns its exit code.

mod allocator;

use std::process::ExitCode;

/// The allocator mimalloc; docs/decisions/0008-an-allocator-of-our-own.md gives the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(steadfast::cli::main().code())
}
