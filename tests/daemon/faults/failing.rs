//! Each changing system call fails in turn, with each relevant error.

use super::syscall_tracer::{Act, Call, run};
use crate::host::Host;
use nix::errno::Errno;

const GRAPH: &str = r#"
graph: failing
resources:
  file:
  - {name: dir, path: $DIR/t/}
  - {name: made, path: $DIR/t/made, content: "made\n", mode: 0640, after: "file[dir]"}
  - {name: edited, path: $DIR/edited, content: "new\n"}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: link, path: $DIR/link, symlink: edited}
"#;

const ERRORS: [Errno; 10] = [
    Errno::ENOSPC,
    Errno::EIO,
    Errno::EDQUOT,
    Errno::EMFILE,
    Errno::ENOMEM,
    Errno::EINTR,
    Errno::EROFS,
    Errno::ETXTBSY,
    Errno::EXDEV,
    Errno::ELOOP,
];

fn host() -> Host {
    let host = Host::with(GRAPH);
    host.write("edited", "old\n").write("gone", "x");
    host
}

/// Returns true for a call of a resource's thread; other threads store state.
fn works(call: &Call) -> bool {
    call.thread == "steadfast-work"
}

/// F-3: the resource of the call is failed with a reason, its old content is whole, other resources go on, the next
/// run heals it, and nothing panics.
fn fails(error: Errno) -> usize {
    let mut point = 0;
    loop {
        let host = host();
        let mut count = 0;
        let mut hit = None;
        let refused = run(&host.command(&["apply"]), &host.path(""), |call| {
            if !works(call) {
                return Act::Pass;
            }
            count += 1;
            if count != point + 1 {
                return Act::Pass;
            }
            hit = Some(call.clone());
            Act::Fail(error)
        });
        let Some(hit) = hit else { return point };
        let at = format!("{error} at {point}: {hit:?}: {}", refused.said);
        assert!(!refused.said.contains("panicked"), "{at}");
        let code = refused.code.unwrap_or_else(|| panic!("it died: {at}"));
        assert!([0, 1].contains(&code), "{at}");
        if code == 1 {
            assert!(refused.said.contains("failed file["), "{at}");
            let others = refused.said.matches("changed file[").count();
            // Resources that share a sync share its failure.
            assert!(others >= 1, "what does not depend on it goes on: {at}");
        }
        assert!(["old\n", "new\n"].contains(&host.read("edited").as_str()), "{at}");
        let healed = host.apply();
        assert_eq!(healed.code, 0, "{at}: {healed}");
        assert_eq!((host.read("edited"), host.read("t/made")), ("new\n".into(), "made\n".into()));
        assert!(!host.exists("gone") && host.mode("t/made") == 0o640, "{at}");
        point += 1;
    }
}

#[test]
fn every_call_fails_with_every_error() {
    let mut points = 0;
    for error in ERRORS {
        points += fails(error);
    }
    assert!(points >= 10 * ERRORS.len(), "{points} only");
}
