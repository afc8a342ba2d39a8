//! Folders with the files of a host.

use std::os::unix::fs::symlink;
use std::path::Path;
use steadfast::expressions::Value;
use steadfast::facts::{Facts, HostRoot, InterfaceAddress, SystemAnswers, collect};
use tempfile::TempDir;

/// A host: a folder with its files, and the answers of its kernel.
pub(crate) struct FakeHost {
    folder: TempDir,
    pub(crate) answers: SystemAnswers,
}

impl FakeHost {
    /// Creates a host with the files that each host has.
    pub(crate) fn new() -> Self {
        let answers = SystemAnswers { machine: "x86_64".to_owned(), ..SystemAnswers::default() };
        let host = Self { folder: tempfile::tempdir().unwrap(), answers };
        host.with("/proc/sys/kernel/hostname", "web-1\n")
            .with("/proc/sys/kernel/ostype", "Linux\n")
            .with("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
            .with("/proc/sys/kernel/random/boot_id", "0f8f9d5e-2d67-4a4e-8a37-2f2f1c8d7f10\n")
            .with("/sys/devices/system/cpu/online", "0-3\n")
            .with("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU\nflags\t\t: fpu vme\n\n")
            .with(
                "/proc/meminfo",
                "MemTotal: 8175532 kB\nMemAvailable: 4000000 kB\nSwapTotal: 0 kB\n",
            )
            .with("/proc/self/mountinfo", "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n")
            .with("/proc/filesystems", "nodev\tsysfs\nnodev\tproc\n\text4\n")
    }

    pub(crate) fn with(self, path: &str, text: &str) -> Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn with_link(self, path: &str, target: &str) -> Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    /// Adds an interface with an address.
    pub(crate) fn with_interface(mut self, number: u32, name: &str, address: &str) -> Self {
        let address = address.parse().unwrap();
        let entry = InterfaceAddress { interface: number, address, is_transient: false };
        self.answers.addresses.push(entry);
        self.with(&format!("/sys/class/net/{name}/ifindex"), &number.to_string())
            .with(&format!("/sys/class/net/{name}/mtu"), "1500\n")
            .with(&format!("/sys/class/net/{name}/operstate"), "up\n")
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn collect(&self) -> Facts {
        collect(&HostRoot::at(self.root()), &self.answers)
    }
}

/// Returns the text of a fact; other values as JSON.
pub(crate) fn text_of(facts: &Facts, name: &str) -> String {
    match facts.values.at_path(name) {
        Some(Value::Text(text)) => text.clone(),
        Some(other) => serde_json::to_string(other).unwrap(),
        None => "absent".to_owned(),
    }
}
