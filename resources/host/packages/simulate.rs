//! Parses the simulations of apt.

/// The effect of a transaction according to `apt-get -s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// The packages that would be installed or changed, with the new version.
    pub installs: Vec<(String, String)>,
    /// The packages that would be removed.
    pub removes: Vec<String>,
}

impl Simulation {
    /// Parses the output of apt; lines without a step are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("Inst"), Some(name)) => {
                    let version = line.split_once('(').and_then(|(_, rest)| rest.split(' ').next());
                    let version = version.unwrap_or_default().trim_end_matches(')');
                    found.installs.push((name.to_owned(), version.to_owned()));
                }
                (Some("Remv" | "Purg"), Some(name)) => found.removes.push(name.to_owned()),
                _ => {}
            }
        }
        found
    }

    /// Returns the version that a package would have.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<&str> {
        let found = self.installs.iter().find(|(installed, _)| installed == name);
        found.map(|(_, version)| version.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Simulation;

    #[test]
    fn steps_are_read_and_talk_is_not() {
        let text = "\
NOTE: This is only a simulation!
      apt-get needs root privileges for real execution.
Reading package lists...
The following packages will be REMOVED:
  postfix
Remv postfix [3.7.11-0] [bsd-mailx:amd64 ]
Purg old [1.0]
Inst exim4-base (4.96-15+deb12u6 Debian:12.9/stable [amd64]) []
Inst libc6:i386 [2.36-9] (2.36-10 Debian:12 [i386])
Inst x (2:1.0~rc1)
Conf exim4-base (4.96-15+deb12u6 Debian:12.9/stable [amd64])
";
        let found = Simulation::parse(text);
        assert_eq!(found.removes, ["postfix", "old"]);
        assert_eq!(found.version("exim4-base"), Some("4.96-15+deb12u6"));
        assert_eq!(found.version("libc6:i386"), Some("2.36-10"));
        assert_eq!(found.version("x"), Some("2:1.0~rc1"));
        assert_eq!(found.version("libc6"), None);
        assert_eq!(found.installs.len(), 3);
        assert_eq!(Simulation::parse("Inst\nRemv\n\nInst a").version("a"), Some(""));
    }
}
