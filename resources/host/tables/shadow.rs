//! `/etc/shadow`: the password hashes and expiry dates.

use super::{Table, fields, rows};
use crate::secrets::secret_text::Secret;
use std::collections::HashMap;

/// The password of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowRow {
    /// The hash, with a leading `!` if the password is locked.
    pub password: Secret,
    /// The day from which nobody can log in as this user, counted from 1970; none for never.
    pub expires: Option<i64>,
}

/// The passwords of the host.
#[derive(Debug, Default)]
pub struct Shadow {
    by_name: HashMap<String, ShadowRow>,
    broken: Vec<usize>,
}

impl Table for Shadow {
    const PATH: &'static str = "/etc/shadow";

    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for (number, line) in rows(text) {
            match row(line) {
                Some((name, row)) => {
                    table.by_name.entry(name).or_insert(row);
                }
                None => table.broken.push(number),
            }
        }
        table
    }

    fn has_root(&self) -> bool {
        true
    }

    fn broken(&self) -> &[usize] {
        &self.broken
    }
}

fn row(line: &str) -> Option<(String, ShadowRow)> {
    let [name, password, _, _, _, _, _, expires, _] = fields(line)?;
    let expires = match expires {
        "" => None,
        days => Some(days.parse().ok()?).filter(|days| *days >= 0),
    };
    let row = ShadowRow { password: password.into(), expires };
    (!name.is_empty()).then(|| (name.to_owned(), row))
}

impl Shadow {
    /// Returns the password of a user.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ShadowRow> {
        self.by_name.get(name)
    }
}

impl ShadowRow {
    /// Returns the hash without the mark of a locked password.
    #[must_use]
    pub fn hash(&self) -> &str {
        let password = self.password.reveal();
        password.strip_prefix('!').unwrap_or(password)
    }

    /// Returns true if the password is locked.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.password.reveal().starts_with('!')
    }

    /// Returns true if there is a password that could be unlocked.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.hash().starts_with('$') || self.hash().len() == 13
    }
}

#[cfg(test)]
mod tests {
    use super::{Shadow, Table as _};

    #[test]
    fn locks_and_expiry_dates_are_read() {
        let text = "root:*:19000:0:99999:7:::\neve:!$6$canary:19000:0:99999:7::20000:\n\
            bob:$y$x:1::::::\nhalf:x\nzoe:!:1::::-1::\nnew:!:1:::::-1:\n";
        let table = Shadow::parse(text);
        assert_eq!(table.broken(), [4]);
        let of = |name| table.get(name).expect("a row");
        assert!(
            of("eve").is_locked() && of("eve").has_password() && of("eve").hash() == "$6$canary"
        );
        assert_eq!(
            (of("eve").expires, of("bob").expires, of("new").expires),
            (Some(20000), None, None)
        );
        assert!(!of("root").is_locked() && !of("root").has_password() && !of("zoe").has_password());
        assert!(!format!("{table:?}").contains("canary"), "a hash is never shown");
    }
}
