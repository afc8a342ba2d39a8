//! Nothing is written when something that a kind needs is missing.

use super::{failure, good, list, text, tools};
use steadfast_resources::Host;

#[test]
fn a_repository_without_its_key_writes_nothing() {
    let (machine, _calls) = tools::machine();
    machine.make_directories("/etc/apt/sources.list.d").expect("made");
    machine.make_directories("/usr/share/keyrings").expect("made");
    let key = "/usr/share/keyrings/own.gpg";
    let given =
        [("uris", list(&["http://a/"])), ("suites", list(&["x/"])), ("signed_by", text(key))];
    let repository = good("repo", "own", &given);
    let _entered = machine.enter();
    let host = Host::default();
    for (content, words) in [
        (None, "does not exist"),
        (Some(""), "contains no public key"),
        (Some("<html>not found</html>"), "contains no public key"),
    ] {
        if let Some(content) = content {
            machine.write(key, content).expect("written");
        }
        let said = failure(&host, &repository);
        assert!(said.starts_with("untouched passing: ") && said.contains(words), "{said}");
        assert!(machine.content("/etc/apt/sources.list.d/own.sources").is_none(), "{said}");
    }
}

#[test]
fn a_locale_without_its_generator_writes_nothing() {
    let (machine, _calls) = tools::machine();
    machine.make_directories("/usr/lib/locale").expect("made");
    machine.write("/etc/locale.gen", "# de_DE.UTF-8 UTF-8\n").expect("written");
    tools::lacks(&machine, "locale-gen");
    let _entered = machine.enter();
    let host = Host::default();
    let said = failure(&host, &good("locale", "de_DE.UTF-8", &[]));
    assert!(said.starts_with("untouched passing: ") && said.contains("locale-gen"), "{said}");
    assert_eq!(tools::text(&machine, "/etc/locale.gen"), "# de_DE.UTF-8 UTF-8\n");
}
