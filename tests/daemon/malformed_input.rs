//! Malformed graphs, random and hand-written: each is rejected with a message, quickly and in bounded memory.

use crate::host::Host;
use nix::sys::resource::{UsageWho, getrusage};
use std::time::{Duration, Instant};

/// Random bytes from a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

const LONG: usize = 1 << 18;

fn repeated(text: &str) -> Vec<u8> {
    text.repeat(LONG / text.len()).into_bytes()
}

/// Returns a good graph with some bytes changed, doubled and removed.
fn mangled(dice: &mut Dice) -> Vec<u8> {
    let good = "graph: g\nresources:\n  file:\n  - &f {name: /a, content: \"x\", mode: 0644, meta: {sema: [\"a:2\"]}}\n  \
                exec:\n  - name: e\n    cmd: ls\n    after: ['file[/a]']\nedges:\n- {name: n, from: {kind: file, name: /a}, to: \
                {kind: exec, name: e}, notify: true}\n";
    let mut text = good.as_bytes().to_vec();
    for _ in 0..=dice.roll() % 6 {
        let at = usize::try_from(dice.roll()).expect("64 bits") % text.len();
        match dice.roll() % 4 {
            0 => text[at] = dice.roll().to_le_bytes()[0],
            1 => drop(text.remove(at)),
            2 => text.insert(at, b"{}[]:,&*!|>'\"%@`#- \n\t\0"[at % 22]),
            _ => {
                let piece = text[at..].to_vec();
                text.splice(at..at, piece);
            }
        }
    }
    text
}

/// F-14: no panic, no abort, less than 100 MiB, and a reply within seconds even in a slow build on a busy machine.
#[test]
fn malformed_graphs_are_refused_soon_and_in_little_memory() {
    let mut dice = Dice(0x5eed_cafe);
    let bomb: String = (0..30).fold("a0: &a0 [x,x]\n".to_owned(), |all, n| {
        all + &format!("a{}: &a{} [*a{n},*a{n},*a{n},*a{n}]\n", n + 1, n + 1)
    });
    let noise: Vec<u8> = (0..LONG).map(|_| dice.roll().to_le_bytes()[0]).collect();
    let mut texts: Vec<Vec<u8>> =
        ["[", "{a: ", "- ", "? ", "&a [*a, ", "a:\n ", "\"\\", "!!", "| ", "%", "\u{feff}"]
            .iter()
            .map(|text| repeated(text))
            .collect();
    texts.extend([bomb.into_bytes(), noise, vec![b'x'; LONG], vec![0; LONG], Vec::new()]);
    texts.extend((0..150).map(|_| mangled(&mut dice)));
    let host = Host::with("");
    for text in texts {
        host.write("graph.yaml", &text);
        let began = Instant::now();
        let answer = host.check();
        let beginning = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
        assert!([0, 65].contains(&answer.code), "{beginning}\n{answer}");
        assert!(!answer.stderr.contains("panicked"), "{beginning}\n{answer}");
        assert!(answer.code == 0 || answer.stderr.contains("the graph was rejected"), "{answer}");
        assert!(began.elapsed() < Duration::from_secs(20), "{beginning}");
    }
    let most = getrusage(UsageWho::RUSAGE_CHILDREN).expect("told").max_rss();
    assert!(most < 100 * 1024, "{most} KiB");
}
