//! Measurements of the watch hub's cost. Run with `--release --ignored --nocapture --test-threads 1`.

use crate::listener::Ears;
use std::fs;
use std::time::{Duration, Instant};
use steadfast_engine::VertexId;

fn report(line: &str) {
    let line = format!("{line}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("written");
}

fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("read");
    text.split(' ').nth(1).expect("a column").parse::<usize>().expect("a number") * 4096
}

/// Returns the processor time of this process.
fn processor() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).expect("positive");
    Duration::new(seconds, u32::try_from(used.tv_nsec).expect("positive"))
}

fn arm_many(directories: u32, each: u32, slowly: bool) {
    let ears = Ears::new();
    for directory in 0..directories {
        fs::create_dir(ears.path(&format!("directory-{directory}"))).expect("made");
    }
    let (memory, start, used) = (resident(), Instant::now(), processor());
    for directory in 0..directories {
        let path = ears.path(&format!("directory-{directory}"));
        for file in 0..each {
            ears.arm(directory * each + file, &path.join(format!("file-{file:06}")));
        }
        if slowly && directory % 10 == 9 {
            // Waiting per directory keeps temporary memory out of the measurement.
            ears.until(directory * each, |heard| heard.established == 1);
        }
    }
    let count = directories * each;
    for vertex in 0..count {
        ears.until(vertex, |heard| heard.established == 1);
    }
    let notes = count as usize * 90;
    report(&format!(
        "{count} paths in {directories} directories: armed in {:?} ({:?} processor), about {} bytes each",
        start.elapsed(),
        processor().saturating_sub(used),
        (resident() - memory).saturating_sub(notes) / count as usize
    ));
    let start = Instant::now();
    for vertex in 0..count {
        ears.hub.disarm(VertexId(vertex));
    }
    ears.settle();
    ears.settle();
    report(&format!(
        "disarmed in {:?}; kernel watches left: {}",
        start.elapsed(),
        ears.kernel_watches()
    ));
    let start = Instant::now();
    drop(ears);
    report(&format!("dropped in {:?}", start.elapsed()));
}

#[test]
#[ignore = "a measurement"]
fn arming() {
    arm_many(1000, 100, true);
    arm_many(1000, 100, false);
    arm_many(20_000, 1, false);
}

#[test]
#[ignore = "a measurement"]
fn removing_watched_directories() {
    for count in [1000, 5000, 20_000] {
        let ears = Ears::new();
        for n in 0..count {
            ears.arm(n, &ears.file(&format!("all/directory-{n}/file"), "x"));
        }
        for n in 0..count {
            ears.until(n, |heard| heard.established == 1);
        }
        let (start, used) = (Instant::now(), processor());
        fs::remove_dir_all(ears.path("all")).expect("removed");
        let removed = start.elapsed();
        ears.settle();
        let suspect = (0..count).filter(|n| ears.heard(*n).suspect > 0).count();
        report(&format!(
            "{count} watched directories removed in {removed:?}, settled in {:?} ({:?} processor), {suspect} suspect",
            start.elapsed(),
            processor().saturating_sub(used)
        ));
    }
}

#[test]
#[ignore = "a measurement"]
fn latency() {
    let ears = Ears::new();
    let path = ears.file("file", "x");
    ears.watch(1, &path);
    let mut times = Vec::new();
    for _ in 0..2000 {
        ears.settle();
        let before = ears.heard(1).news();
        let start = Instant::now();
        fs::write(&path, "y").expect("written");
        while ears.heard(1).news() == before {
            std::hint::spin_loop();
        }
        times.push(start.elapsed());
        if times.len() >= 500 {
            break;
        }
    }
    times.sort();
    report(&format!("write to told: median {:?}, 99 % {:?}", times[250], times[495]));
}

/// Measures the cost of foreign readers and writers in a watched directory.
#[test]
#[ignore = "a measurement"]
fn foreigners() {
    for (what, script) in [
        ("10 000 opens/s of a watched file", "for(;;){open(F,'<','file');close F;P()}"),
        (
            "10 000 writes/s to a watched file",
            "for(;;){open(F,'+<','file');syswrite F,'x';close F;P()}",
        ),
        (
            "10 000 writes/s to a neighbour",
            "for(;;){open(F,'+<','other');syswrite F,'x';close F;P()}",
        ),
        (
            "10 000 writes/s to a watched file held open",
            "open(F,'+<','file');for(;;){syswrite F,'x';P()}",
        ),
    ] {
        let ears = Ears::new();
        let path = ears.file("file", "x");
        ears.file("other", "x");
        ears.watch(1, &path);
        let pace = "use Time::HiRes 'sleep','time';my $n=0;my $t=time;\
                    sub P{if(++$n%10==0){my $w=$t+$n/10000-time;sleep($w) if $w>0}};";
        let mut foreigner = std::process::Command::new("perl")
            .args(["-e", &format!("{pace}{script}")])
            .current_dir(ears.directory.path())
            .spawn()
            .expect("perl");
        std::thread::sleep(Duration::from_millis(300));
        let (start, used, news) = (Instant::now(), processor(), ears.heard(1).news());
        std::thread::sleep(Duration::from_secs(3));
        let share = (processor().saturating_sub(used)).as_secs_f64()
            / start.elapsed().as_secs_f64()
            * 100.0;
        report(&format!(
            "{what}: {share:.1} % of a core, {} signals/s",
            (ears.heard(1).news() - news) / 3
        ));
        foreigner.kill().expect("ended");
        foreigner.wait().expect("reaped");
    }
}
