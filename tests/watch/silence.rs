//! A hung file system (F-12). Root only.

use crate::hung_fs::Hung;
use crate::listener::Ears;

/// F-12: paths on a hung file system are reported without events. All other paths stay watched, also when directories
/// are replaced; the hung paths recover with the file system.
#[test]
fn a_file_system_that_hangs_takes_nobody_with_it() {
    let ears = Ears::new();
    let other = ears.file("fine/deep/file", "x");
    let held = ears.file("hung/deep/file", "x");
    let mut hung = Hung::over(&ears.path("hung"));
    ears.arm(1, &held);
    let heard = ears.until(1, |heard| !heard.absent.is_empty());
    assert!(heard.absent[0].ends_with("/hung: the path does not respond"), "{heard:?}");
    ears.watch(2, &other);
    ears.arm(3, &ears.path("hung/more/file"));
    ears.until(3, |heard| !heard.absent.is_empty());
    ears.hears(2, "its directory is replaced", || {
        std::fs::rename(ears.path("fine/deep"), ears.path("fine/old")).expect("moved");
        drop(ears.file("fine/deep/file", "y"));
    });
    ears.hears(2, "edited in the new one", || std::fs::write(&other, "z").expect("written"));
    // A sweep retries the hung path and does not delay the others.
    ears.hub.walk_all();
    ears.hears(2, "edited meanwhile", || std::fs::write(&other, "more").expect("written"));

    hung.end();
    for vertex in [1, 3] {
        ears.until(vertex, |heard| heard.established == 1);
    }
    ears.hears(1, "edited when it is gone", || std::fs::write(&held, "y").expect("written"));
}

/// F-12: the hub ends although its threads wait for a hung system call.
#[test]
fn the_end_does_not_wait_for_it() {
    let ears = Ears::new();
    let held = ears.file("hung/file", "x");
    let mut hung = Hung::over(&ears.path("hung"));
    ears.arm(1, &held);
    ears.until(1, |heard| !heard.absent.is_empty());
    ears.arm(2, &ears.file("fine", "x"));
    ears.until(2, |heard| heard.established == 1);
    let began = std::time::Instant::now();
    let Ears { hub, directory, .. } = ears;
    hub.close();
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    hung.end();
    drop(directory);
}
