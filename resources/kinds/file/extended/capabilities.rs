//! Capabilities of a program file: the text form of setcap(8), and the form of the kernel.

/// The attribute with the capabilities.
pub(super) const NAME: &str = "security.capability";

const REVISION_2: u32 = 0x0200_0000;
const REVISION_3: u32 = 0x0300_0000;
const EFFECTIVE: u32 = 1;

/// The capabilities by their numbers.
const NAMES: [&str; 41] = [
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
];

/// The capabilities of a file, one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    permitted: u64,
    inheritable: u64,
    is_effective: bool,
}

impl Capabilities {
    /// Reads `cap_net_raw,cap_net_admin=ep`, possibly several such words; an empty text or `none` has no capability.
    ///
    /// # Errors
    ///
    /// Returns the expectation that the text does not meet.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        if text.trim() == "none" {
            return Ok(all);
        }
        let mut effective = 0;
        for clause in text.split_whitespace() {
            let expected = || "expected capabilities like cap_net_bind_service=ep".to_owned();
            let (names, flags) = clause.split_once(['=', '+']).ok_or_else(expected)?;
            let mut bits = 0_u64;
            for name in names.split(',') {
                let name = name.to_ascii_lowercase();
                let number = NAMES.iter().position(|own| *own == name);
                let number = number.ok_or_else(|| {
                    format!("there is no capability {}", crate::secrets::escape::short(&name, 40))
                })?;
                bits |= 1 << number;
            }
            for flag in flags.chars() {
                match flag {
                    'e' => effective |= bits,
                    'p' => all.permitted |= bits,
                    'i' => all.inheritable |= bits,
                    _ => return Err(expected()),
                }
            }
        }
        all.is_effective = effective != 0;
        if effective != 0 && effective != all.permitted | all.inheritable {
            return Err("the flag e belongs to all capabilities of a file or to none".to_owned());
        }
        Ok(all)
    }

    /// Returns the text form; none without a capability.
    pub(super) fn text(self) -> Option<String> {
        let flag = if self.is_effective { "e" } else { "" };
        let both = self.permitted & self.inheritable;
        let clauses =
            [(both, "ip"), (self.permitted & !both, "p"), (self.inheritable & !both, "i")];
        let clause = |(bits, flags): (u64, &str)| {
            let names = NAMES.iter().enumerate().filter(|(number, _)| bits >> number & 1 == 1);
            let names: Vec<&str> = names.map(|(_, name)| *name).collect();
            (!names.is_empty()).then(|| format!("{}={flag}{flags}", names.join(",")))
        };
        let words: Vec<String> = clauses.into_iter().filter_map(clause).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Reads the form of the kernel; none if the bytes have another form.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.chunks_exact(4).map(|word| match word {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        });
        let magic = words.next()?;
        // Revision 3 has the root user of a namespace behind the rest.
        if ![REVISION_2, REVISION_3].contains(&(magic & 0xff00_0000)) {
            return None;
        }
        let mut next = || words.next().map(u64::from);
        let (low, low_inherited, high, high_inherited) = (next()?, next()?, next()?, next()?);
        Some(Self {
            permitted: low | high << 32,
            inheritable: low_inherited | high_inherited << 32,
            is_effective: magic & EFFECTIVE != 0,
        })
    }

    /// Writes the form of the kernel.
    pub(super) fn encode(self) -> Vec<u8> {
        let half = |bits: u64, shift: u32| {
            u32::try_from(bits >> shift & u64::from(u32::MAX)).unwrap_or_default()
        };
        let magic = REVISION_2 | if self.is_effective { EFFECTIVE } else { 0 };
        let words = [
            magic,
            half(self.permitted, 0),
            half(self.inheritable, 0),
            half(self.permitted, 32),
            half(self.inheritable, 32),
        ];
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Capabilities;

    #[test]
    fn capabilities_are_read_and_written() {
        for (text, again) in [
            ("cap_net_raw+ep", Some("cap_net_raw=ep")),
            ("CAP_NET_RAW,cap_net_admin=ep", Some("cap_net_admin,cap_net_raw=ep")),
            ("cap_bpf=eip", Some("cap_bpf=eip")),
            ("cap_kill=p cap_chown=i", Some("cap_kill=p cap_chown=i")),
            ("", None),
            ("none", None),
        ] {
            let parsed = Capabilities::parse(text).unwrap();
            assert_eq!(parsed.text().as_deref(), again);
            assert_eq!(Capabilities::decode(&parsed.encode()), Some(parsed));
        }
        for wrong in ["cap_x=ep", "cap_kill", "cap_kill=q", "cap_kill=ep cap_chown=p"] {
            assert!(Capabilities::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Capabilities::decode(&[0; 20]), None);
    }
}
