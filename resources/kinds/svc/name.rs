//! Names of units in the notation of systemd.

use crate::fields::field_values::Invalid;
use crate::secrets::escape::short;

/// The unit types that can be started and stopped.
const TYPES: [&str; 9] =
    ["service", "socket", "timer", "target", "path", "mount", "automount", "swap", "slice"];
/// The unit types that appear and disappear by themselves.
const OTHERS: [&str; 2] = ["device", "scope"];
/// The longest name that systemd accepts.
const LONGEST: usize = 255;

/// Returns the full name of a unit; a name without a type is a service.
pub(super) fn whole(name: &str) -> Result<String, Invalid> {
    let is_unit =
        |types: &[&str]| name.rsplit_once('.').is_some_and(|(_, suffix)| types.contains(&suffix));
    if is_unit(&OTHERS) {
        let what = format!("expected a unit that can be started, found {}", shown(name));
        return Err(Invalid::whole(what).hint("scopes and devices are created by systemd itself"));
    }
    let whole = if is_unit(&TYPES) { name.to_owned() } else { format!("{name}.service") };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let stem = whole.rsplit_once('.').map_or("", |(stem, _)| stem);
    if stem.is_empty() || stem.starts_with('@') || !stem.bytes().all(allowed) {
        let what = format!("expected the name of a unit, found {}", shown(name));
        let hint = "use letters, digits and :-_.\\@; `systemd-escape --path` converts a path";
        return Err(Invalid::whole(what).hint(hint));
    }
    if whole.len() > LONGEST {
        let what = format!("the name has {} bytes; systemd accepts {LONGEST}", whole.len());
        return Err(Invalid::whole(what));
    }
    Ok(whole)
}

/// Returns true if the unit is a template, of which only instances can run.
pub(super) fn is_template(whole: &str) -> bool {
    whole.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with('@'))
}

/// Returns the template of an instance: `getty@.service` for `getty@tty1.service`.
pub(super) fn template(whole: &str) -> Option<String> {
    let (stem, suffix) = whole.rsplit_once('.')?;
    let (name, instance) = stem.split_once('@')?;
    (!instance.is_empty()).then(|| format!("{name}@.{suffix}"))
}

fn shown(name: &str) -> String {
    format!("`{}`", short(name, 40))
}

#[cfg(test)]
mod tests {
    use super::{is_template, template, whole};

    #[test]
    fn a_name_without_type_is_a_service() {
        for (name, unit) in [
            ("nginx", "nginx.service"),
            ("nginx.service", "nginx.service"),
            ("org.example.app", "org.example.app.service"),
            ("getty@tty1", "getty@tty1.service"),
            ("home-user\\x2dx.mount", "home-user\\x2dx.mount"),
            ("fstrim.timer", "fstrim.timer"),
            ("dbus.socket", "dbus.socket"),
            ("multi-user.target", "multi-user.target"),
            ("x.path", "x.path"),
        ] {
            assert_eq!(whole(name).unwrap(), unit);
        }
    }

    #[test]
    fn invalid_unit_names_are_rejected() {
        let long = "x".repeat(250);
        for name in
            ["", ".service", "@.service", "@x", "/dev/sda", "a b", "a;b", "ä", "x.scope", &long]
        {
            assert!(whole(name).is_err(), "{name}");
        }
    }

    #[test]
    fn templates_are_known() {
        assert!(is_template("getty@.service"));
        assert!(!is_template("getty@tty1.service"));
        assert_eq!(template("getty@tty1.service").as_deref(), Some("getty@.service"));
        assert_eq!(template("getty.service"), None);
        assert_eq!(template("getty@.service"), None);
    }
}
