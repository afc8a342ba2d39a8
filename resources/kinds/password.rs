//! `password`: a secret made once from the system's random source, sent to other resources, and made anew on
//! a notification.
//!
//! The state of the resource is the stored value: encrypted with `saved`, else only a keyed hash. So a
//! restart never makes a new password, and a receiver compares the host with the hash.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::resource::{Resource, Traits};
use crate::secrets::secret_text::Secret;
use crate::values::sent_values::{SendSpec, Sent, SentValue, ValueRetention};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::{Zeroize as _, Zeroizing};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "password",
    collectible: false,
    doc: "Generates a random password for other resources; created once, and again when notified or when the declaration changes.",
    fields: &[
        FieldSpec::new(
            "length",
            FieldType::Int,
            "Number of characters, from 1 to 1024; default: 32.",
        )
        .receives(Receives::Shown),
        FieldSpec::new(
            "charset",
            FieldType::Text,
            "Allowed characters; default: ASCII letters and digits.",
        )
        .mode(FieldMode::Value)
        .receives(Receives::Shown)
        .example("abcdefghijklmnopqrstuvwxyz0123456789"),
        FieldSpec::new(
            "saved",
            FieldType::Bool,
            "Store the password in the state directory (0700), encrypted with the key there, so that a receiver can be repaired after a restart; default: false, only a keyed hash is stored.",
        ),
    ],
    sends: &[SendSpec {
        key: "password",
        gives: FieldType::Text,
        secret: true,
        once: true,
        doc: "The password, a secret.",
    }],
    example: "password:\n  - name: database\n    length: 32\n",
    restore: None,
    build,
};

const CHARSET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LONGEST: i64 = 1024;

/// The minimum strength in bits; weaker passwords cause a warning.
const BITS: f64 = 64.0;

#[derive(Debug)]
struct Password {
    length: usize,
    charset: Vec<char>,
    saved: bool,
    /// A password is already stored.
    exists: bool,
    made: Mutex<Option<Secret>>,
    warnings: Vec<Invalid>,
}

fn build(
    _name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut problems = Vec::new();
    let given = fields.int("length").unwrap_or(32);
    let length = usize::try_from(given).ok().filter(|_| (1..=LONGEST).contains(&given));
    if length.is_none() {
        let what = format!("expected 1 to {LONGEST} characters, found {given}");
        problems.push(Invalid::field("length", what));
    }
    let text = fields.text("charset").unwrap_or_else(|| CHARSET.to_owned());
    let mut charset: Vec<char> = text.chars().collect();
    charset.sort_unstable();
    charset.dedup();
    if charset.len() < 2 || charset.iter().any(|c| c.is_control()) {
        let what = "expected at least two different visible characters";
        problems
            .push(Invalid::field("charset", what).hint("omit the field for letters and digits"));
    }
    let Some(length) = length.filter(|_| problems.is_empty()) else { return Err(problems) };
    let saved = fields.bool("saved").unwrap_or_default();
    let warnings = doubt(length, charset.len()).into_iter().collect();
    let made = Mutex::default();
    Ok(Arc::new(Password { length, charset, saved, exists: false, made, warnings }))
}

#[expect(clippy::cast_precision_loss, reason = "at most 1024 characters of some millions")]
fn doubt(length: usize, choices: usize) -> Option<Invalid> {
    let bits = length as f64 * (choices as f64).log2();
    (bits < BITS).then(|| {
        let what = format!("{bits:.0} bits of randomness are weak: use at least {BITS}");
        Invalid::field("length", what).hint("use a longer password or more characters")
    })
}

impl Password {
    /// Draws a password in which each character is equally likely: numbers that would favour some characters are
    /// drawn again.
    fn draw(&self, host: &Host) -> Result<Secret, Failure> {
        let count = u32::try_from(self.charset.len()).unwrap_or(u32::MAX);
        let fair = u32::MAX - u32::MAX % count;
        let mut text = Zeroizing::new(String::with_capacity(self.length * 4));
        let mut drawn = 0;
        while drawn < self.length {
            let mut bytes = [0; 4];
            host.random(&mut bytes)?;
            let number = u32::from_ne_bytes(bytes);
            bytes.zeroize();
            let chosen = self.charset.get((number % count) as usize);
            if let Some(character) = chosen.filter(|_| number < fair) {
                text.push(*character);
                drawn += 1;
            }
        }
        Ok(text.as_str().into())
    }
}

impl Resource for Password {
    fn footprint(&self) -> Footprint {
        Footprint { warnings: self.warnings.clone(), ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn sends(&self) -> Sent {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let saved = self.saved;
        made.into_iter().map(|secret| ("password", SentValue::Secret { secret, saved })).collect()
    }

    fn with_sent(&self, _kept: ValueRetention) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(Self {
            length: self.length,
            charset: self.charset.clone(),
            saved: self.saved,
            exists: true,
            made: Mutex::default(),
            warnings: Vec::new(),
        }))
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            if self.exists && !ask.refresh {
                return CheckResult::Same;
            }
            let from = if self.exists { "not shown" } else { "" };
            let (from, to) = (from.to_owned(), "not shown, new".to_owned());
            let difference = Difference { aspect: "password", from, to, diff: None };
            let (differences, premise) = (vec![difference], Box::new(()));
            CheckResult::Differs(Change {
                differences,
                destructive: false,
                creates: false,
                replaces: false,
                premise_digest: 0,
                premise,
            })
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            if permit.check().is_err() {
                return Outcome::Interrupted;
            }
            match self.draw(host) {
                Ok(secret) => {
                    *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret);
                    Outcome::Changed(vec![format!("generated: {} characters", self.length)])
                }
                Err(failure) => Outcome::Failed { failure, touched: false },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Password, doubt};
    use crate::host::Host;
    use std::collections::HashMap;
    use std::sync::Mutex;

    #[test]
    fn every_character_is_as_likely() {
        let password = Password {
            length: 6000,
            charset: "abc".chars().collect(),
            saved: false,
            exists: false,
            made: Mutex::default(),
            warnings: Vec::new(),
        };
        let drawn = password.draw(&Host::default()).unwrap();
        let mut counts: HashMap<char, u32> = HashMap::new();
        drawn.reveal().chars().for_each(|c| *counts.entry(c).or_default() += 1);
        // A deviation of twelve sigma: one failure in 10^32 runs.
        assert_eq!(counts.values().sum::<u32>(), 6000);
        assert!(counts.len() == 3 && counts.values().all(|n| n.abs_diff(2000) < 440), "{counts:?}");
        assert_ne!(drawn, password.draw(&Host::default()).unwrap());
    }

    #[test]
    fn guessable_passwords_give_a_warning() {
        assert!(doubt(8, 62).is_some() && doubt(63, 2).is_some());
        assert!(doubt(11, 62).is_none() && doubt(32, 62).is_none());
    }
}
