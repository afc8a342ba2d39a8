//! Passes the simulated removals to apt as constraints: under its own lock, apt removes nothing else, even if
//! another process has changed packages in between.

/// Returns the options of a call that may remove only these packages, named as in the simulation.
#[must_use]
pub fn removing_only(names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return vec!["--no-remove".to_owned()];
    }
    // apt sends its planned actions to each hook of this type, in lines of protocol 3: package name, versions,
    // action. The options of a hook are found by the first word of its command.
    let allowed: Vec<&str> =
        names.iter().map(|name| name.split(':').next().unwrap_or(name)).collect();
    let hook = format!(
        "while read -r name rest; do case \"$rest\" in *' **REMOVE**') case ' {} ' in *\" $name \"*) ;; \
         *) echo \"E: by now the transaction would remove undeclared packages: $name\" >&2; refused=1 ;; esac ;; esac; \
         done; exit ${{refused:-0}}",
        allowed.join(" ")
    );
    [
        "-o".to_owned(),
        format!("DPkg::Pre-Install-Pkgs::={hook}"),
        "-o".to_owned(),
        "DPkg::Tools::Options::while::Version=3".to_owned(),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::removing_only;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    #[test]
    fn the_hook_lets_only_those_go_that_were_judged() {
        assert_eq!(removing_only(&[]), ["--no-remove"]);
        let options = removing_only(&["gone".to_owned(), "g++:i386".to_owned()]);
        let (_, hook) = options[1].split_once('=').unwrap();
        assert!(hook.starts_with("while "), "its first word is its name: {hook}");
        let head = format!("VERSION 3\nAPT::A=1\nDPkg::Pre-Install-Pkgs::={hook}\n\n");
        let removed = |name: &str| format!("{name} 1 all none > - - none **REMOVE**\n");
        for (lines, refused) in [
            (String::new(), None),
            (
                "new - - none < 1 all none /x.deb\nnew - - none < 1 all none **CONFIGURE**\n"
                    .into(),
                None,
            ),
            (removed("gone") + &removed("g++"), None),
            (removed("gone") + &removed("old") + &removed("g++"), Some("old")),
            (removed("g"), Some("g")),
            (removed("*"), Some("*")),
        ] {
            let mut child = Command::new("sh")
                .args(["-c", hook])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all((head.clone() + &lines).as_bytes()).unwrap();
            drop(stdin);
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.success(), refused.is_none(), "{lines}\n{said}");
            let named = refused.map(|name| format!("undeclared packages: {name}\n"));
            assert!(named.is_none_or(|named| said.ends_with(&named)), "{said}");
        }
    }
}
