//! Lists what a WebAssembly module asks for from outside; fails if it asks for anything. Built by tests/purity/run.

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
            // The section of imports: each begins with a module and a name.
            2 => imports.extend(reader.imports()),
            // The section of functions, to see that the engine is in there at all.
            3 => functions = reader.number(),
            _ => {}
        }
        reader.at = end;
    }
    for import in &imports {
        eprintln!("purity: the engine asks for {import}");
    }
    // Far fewer would mean that the engine was optimised away, and nothing was shown.
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

    /// A number in LEB128.
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
            // A function has the number of its type; of what is longer, and just as wrong, the first is told.
            match kind {
                0 => drop(self.number()),
                _ => return found,
            }
        }
        found
    }
}
