//! Lists the imports of a WebAssembly module; fails if there are any. Built by tests/purity/run.

use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).expect("usage: imports MODULE");
    let bytes = std::fs::read(&path).expect("the module can be read");
    assert_eq!(bytes.get(..8), Some(&b"\0asm\x01\0\0\0"[..]), "{path} is no module");
    let mut reader = Reader { bytes: &bytes, at: 8 };
    let mut functions = 0;
    let mut imports = Vec::new();
    while reader.at < bytes.len() {
        let section = reader.byte();
        let length = reader.number();
        let end = reader.at + length;
        match section {
            // The import section: each entry begins with a module and a name.
            2 => imports.extend(reader.imports()),
            // The function section, which proves that the module contains the engine.
            3 => functions = reader.number(),
            _ => {}
        }
        reader.at = end;
    }
    for import in &imports {
        eprintln!("purity: the engine asks for {import}");
    }
    // Far fewer functions would mean that the compiler removed the engine.
    assert!(
        functions > 100,
        "expected a module with the engine in it, found {functions} functions"
    );
    println!("purity: {functions} functions, {} imports", imports.len());
    if imports.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let byte = self.bytes[self.at];
        self.at += 1;
        byte
    }

    /// Reads a number in LEB128.
    fn number(&mut self) -> usize {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn text(&mut self) -> String {
        let length = self.number();
        let text = String::from_utf8_lossy(&self.bytes[self.at..self.at + length]).into_owned();
        self.at += length;
        text
    }

    fn imports(&mut self) -> Vec<String> {
        let count = self.number();
        let mut found = Vec::new();
        for _ in 0..count {
            found.push(format!("{}.{}", self.text(), self.text()));
            let kind = self.byte();
            // An imported function has a type number. Other imports have more fields and are just as wrong, so the
            // first one is reported alone.
            match kind {
                0 => drop(self.number()),
                _ => return found,
            }
        }
        found
    }
}
