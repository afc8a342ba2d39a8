//! Tests of the fields of the kind `divert`; `resources/tests/laws` tries it on the simulated host.

use super::SPEC;
use crate::parts::edit_support::{build, problem};

#[test]
fn wrong_fields_are_rejected() {
    assert!(problem(&SPEC, &[("path", "etc/a")]).starts_with("expected an absolute path"));
    assert_eq!(problem(&SPEC, &[("to", "/etc/f")]), "expected another path than that of the file");
    assert_eq!(problem(&SPEC, &[("package", "No Name")]), "expected the name of a package");
}

#[test]
fn a_removal_keeps_the_other_name() {
    let resource = build(&SPEC, &[("to", "/etc/f.old"), ("rename", "false")]).expect("valid");
    let removal = resource.footprint().removal.expect("a removal");
    let absent = SPEC.build_removal(&removal, "/etc/f").expect("a valid removal");
    assert!(absent.footprint().removal.is_none());
}
