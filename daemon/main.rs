//! The program: parse, run, one exit code.

fn main() {}
