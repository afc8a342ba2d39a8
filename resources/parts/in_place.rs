//! Validation of a staged file under its final path, in a private mount namespace.

/// The words before the validation command.
const WORDS: usize = 10;

/// Puts the staged file (the first argument) at its final path (the second), and runs the rest. An existing file is
/// covered by the staged one. A missing one appears in an overlay of its folder, so nothing outside sees it.
const SCRIPT: &str = "set -e; staged=$1; final=$2; shift 2; \
    if [ -e \"$final\" ]; then mount --bind \"$staged\" \"$final\"; else \
    folder=${final%/*}; folder=${folder:-/}; \
    case $final in /mnt/*) work=/media;; *) work=/mnt;; esac; \
    mount -t tmpfs tmpfs \"$work\"; mkdir \"$work/new\" \"$work/work\"; \
    mount -t overlay overlay -o \"lowerdir=$folder,upperdir=$work/new,workdir=$work/work\" \"$folder\"; \
    cp -p \"$staged\" \"$final\"; fi; exec \"$@\"";

/// Returns a call that runs the validation command where the staged file stands at its final path. Each `%s` of the
/// command is the final path; the call itself contains one `%s` for the staged file.
pub(crate) fn wrap_command(argv: &[String], path: &str) -> Vec<String> {
    let start = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", SCRIPT, "sh"];
    let start = start.map(str::to_owned).into_iter().chain(["%s".to_owned(), path.to_owned()]);
    start.chain(argv.iter().map(|word| word.replace("%s", path))).collect()
}

/// Returns the program of a validation command, also of a wrapped one.
pub(crate) fn program_of(argv: &[String]) -> Option<&String> {
    let is_wrapped = argv.get(6).is_some_and(|word| word == SCRIPT);
    argv.get(if is_wrapped { WORDS } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::{program_of, wrap_command};

    #[test]
    fn a_wrapped_command_has_one_staged_path() {
        let argv = ["/usr/sbin/sshd", "-t", "-f", "%s"].map(str::to_owned);
        let wrapped = wrap_command(&argv, "/etc/ssh/sshd_config");
        assert_eq!(wrapped.iter().filter(|word| *word == "%s").count(), 1);
        assert_eq!(wrapped.last().map(String::as_str), Some("/etc/ssh/sshd_config"));
        assert_eq!(program_of(&wrapped), argv.first());
        assert_eq!(program_of(&argv), argv.first());
    }
}
