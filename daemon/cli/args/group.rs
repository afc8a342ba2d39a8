//! A group on the command line or in the settings, by name or number.

/// Returns the number of a group, given by name or number.
pub(in crate::cli) fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!("there is no group named `{text}`")),
        Err(error) => Err(format!("cannot look up the group `{text}`: {error}")),
    }
}
