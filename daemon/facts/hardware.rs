//! Processors, memory, load and block devices.

use super::collect::FactTree;
use super::host_root::HostRoot;
use crate::expressions::Value;
use std::collections::BTreeMap;

/// The part of /proc/cpuinfo that describes the first processor.
const FIRST_PROCESSOR: u64 = 8 << 10;

/// Collects the facts of the processors.
pub(super) fn collect_processors(root: &HostRoot, facts: &mut FactTree) {
    let information = root.beginning("/proc/cpuinfo", FIRST_PROCESSOR).unwrap_or_default();
    // s390 and ARM name the processor in other lines than x86.
    let model = ["model name", "Model", "cpu model", "cpu", "Processor", "vendor_id"]
        .into_iter()
        .find_map(|key| line_of(&information, key));
    facts.put_some("cpu.model", model);
    let online = root.word("/sys/devices/system/cpu/online");
    facts.put_some("cpu.count", online.and_then(|ranges| count_ranges(&ranges)));
}

fn line_of(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    });
    value.filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Counts the numbers of a list such as `0-3,8`.
fn count_ranges(ranges: &str) -> Option<i64> {
    ranges.split(',').try_fold(0_i64, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Collects the facts of memory, load and time.
pub(super) fn collect_memory(root: &HostRoot, facts: &mut FactTree) {
    let information = root.text("/proc/meminfo").unwrap_or_default();
    let size = |key: &str| {
        let line = line_of(&information, key)?;
        let kibibytes: i64 = line.strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes / 1024)
    };
    facts.put_some("memory.total_mb", size("MemTotal"));
    facts.put_some("memory.swap_mb", size("SwapTotal"));
    facts.put_some("memory.available_mb", size("MemAvailable"));
    let load = root.word("/proc/loadavg").unwrap_or_default();
    let load: Vec<f64> = load.split(' ').take(3).filter_map(|part| part.parse().ok()).collect();
    facts.put_some("load.one", load.first().copied());
    facts.put_some("load.fifteen", load.get(2).copied());
    let uptime = root.word("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split('.').next().and_then(|seconds| seconds.parse::<i64>().ok());
    facts.put_some("uptime_seconds", seconds);
}

/// Collects the block devices that have a size.
pub(super) fn collect_block_devices(root: &HostRoot, facts: &mut FactTree) {
    let mut devices = BTreeMap::new();
    for name in root.entries("/sys/block") {
        let at = |file: &str| format!("/sys/block/{name}/{file}");
        let sectors = root.number(&at("size")).unwrap_or_default();
        if sectors <= 0 {
            continue;
        }
        let flag = |file: &str| Value::Bool(root.number(&at(file)) == Some(1));
        let mut device = BTreeMap::from([
            ("read_only".to_owned(), flag("ro")),
            ("removable".to_owned(), flag("removable")),
            ("rotational".to_owned(), flag("queue/rotational")),
            // The unit is 512 bytes for each device.
            ("size_mb".to_owned(), Value::Int(sectors / 2048)),
        ]);
        if let Some(model) = root.word(&at("device/model")) {
            device.insert("model".to_owned(), Value::Text(model));
        }
        devices.insert(name, Value::Map(device.into()));
    }
    facts.put("block_devices", Value::Map(devices.into()));
}

#[cfg(test)]
mod tests {
    use super::count_ranges;

    #[test]
    fn ranges_are_counted() {
        assert_eq!(count_ranges("0-3,8"), Some(5));
        assert_eq!(count_ranges("0"), Some(1));
        assert_eq!(count_ranges("x"), None);
        assert_eq!(count_ranges("-9223372036854775808-9223372036854775807"), None);
    }
}
