//! `firewall`: tables of nftables, each replaced as a whole in one transaction. Tables that the content does not name
//! are never touched.
//!
//! The expected state is the kernel's own: the content is loaded in an empty network namespace and listed there. The
//! live tables are compared with that list, without handles, counters and the elements of dynamic sets.
//!
//! Reading order: `content.rs` (the tables of a content), `listing.rs` (comparable lists), `load.rs` (the kernel's
//! tables), this file.

mod content;
mod listing;
mod load;

use crate::claim::Claim;
use crate::dependency::HostObject;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::kind::KindSpec;
use crate::parts::file_values::HASH;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, ParentDirectory, Sequence};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::values::sent_values::SendSpec;
use content::{Table, tables_of};
use load::Loaded;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "firewall",
    collectible: false,
    doc: "Manages tables of nftables and stores them in /etc/nftables.d/NAME.nft, which /etc/nftables.conf can include. The content is loaded in one transaction that replaces exactly the tables it names; tables of other programs stay. A refresh loads it again, with empty dynamic sets and counters.",
    fields: &[
        FieldSpec::new(
            "content",
            FieldType::Text,
            "Tables in the language of nft. Allowed at the top are table, define and add; required unless absent. Interfaces are named by iifname and oifname.",
        ).role(FieldRole::Template).mode(FieldMode::Literal(Interpreter::Nft))
        .example("table inet app { }\n")
        .receives(Receives::Shown),
        FieldSpec::new(
            "whole",
            FieldType::Bool,
            "true makes the content the whole ruleset: every other table is deleted, also those of other programs. Allows `flush ruleset` in the content.",
        ).known_at_load()
        .default("false"),
        FieldSpec::new(
            "state",
            FieldType::Choice(&["exists", "absent"]),
            "absent removes the file, and the tables that `content` names.",
        ).known_at_load()
        .default("exists"),
    ],
    sends: &[SendSpec::new("path", FieldType::Text, "The path of the stored tables."), HASH],
    example: "firewall:\n  - name: web\n    content: |\n      table inet web {\n        chain input {\n          type filter hook input priority 0; policy accept;\n          tcp dport { 80, 443 } accept\n        }\n      }\n",
    restore: Some(load::restore),
    build,
};

/// The folder of the stored tables.
const FOLDER: &str = "/etc/nftables.d";

/// The declared rules.
#[derive(Clone, Debug)]
struct Rules {
    tables: Vec<Table>,
    content: String,
    whole: bool,
    present: bool,
}

impl Rules {
    /// Returns the transaction that replaces the tables, or deletes them.
    fn script(&self) -> String {
        let mut script = String::new();
        if self.whole && self.present {
            script.push_str("flush ruleset\n");
        }
        for Table { family, name } in self.tables.iter().filter(|_| !self.whole || !self.present) {
            // Deleting a table that does not exist is an error, so the table is made first.
            script.push_str(&format!("table {family} {name}\ndelete table {family} {name}\n"));
        }
        if self.present {
            script.push_str(&self.content);
            if !script.ends_with('\n') {
                script.push('\n');
            }
        }
        script
    }
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(allowed) {
        let what = format!("expected letters, digits and -_. as name, found `{}`", short(name, 40));
        reader.reject(Invalid::whole(what).hint("the name is that of a file in /etc/nftables.d"));
    }
    let present = reader.is_present();
    let whole = reader.fields.bool("whole").unwrap_or_default();
    let content = reader.lines("content");
    let problem = ("expected `content`, found none", "write the tables in the language of nft");
    reader.require(content.is_some() || !present, "content", problem);
    let content = content.unwrap_or_default();
    let tables = tables_of(&content, whole).unwrap_or_else(|problem| {
        reader.reject(problem);
        Vec::new()
    });
    let rules = reader.finish(Rules { tables, content, whole, present })?;
    Ok(Arc::new(sequence(name, rules)?))
}

fn sequence(name: &str, rules: Rules) -> Result<Sequence, Vec<Invalid>> {
    let path = Path::new(FOLDER).join(format!("{name}.nft"));
    let (present, whole) = (rules.present, rules.whole);
    let claim = |object| Claim::exclusive(object).creating(present);
    let table = |table: &Table| HostObject::Other("nftables table", table.to_string());
    let mut claims: Vec<Claim> = rules.tables.iter().map(|it| claim(table(it))).collect();
    let ruleset = HostObject::Other("nftables ruleset", "the whole ruleset".to_owned());
    match (present, whole) {
        (true, true) => claims.push(claim(ruleset)),
        // A whole ruleset would delete these tables.
        (true, false) => claims.push(Claim::shared(ruleset)),
        (false, _) => {}
    }
    let mut removal = Removal::new().with("state", Value::Text("absent".to_owned()));
    removal = removal.with_data("content", Value::Text(rules.content.clone()));
    if whole {
        removal = removal.with_data("whole", Value::Bool(true));
    }
    let text = format!("# Managed by steadfast: firewall[{name}]\n{}", rules.script());
    let shape = if present { Shape::Content(&text, "0644") } else { Shape::Absent };
    let file = managed_file(&path, shape, &[])?;
    let mut elements: Vec<Arc<dyn Resource>> =
        vec![Arc::new(Loaded { rules, expected: Mutex::default() })];
    if present {
        elements.push(Arc::new(ParentDirectory(PathBuf::from(FOLDER))));
    }
    elements.push(Arc::clone(&file));
    let extra = Footprint { claims, ..Footprint::default() };
    let last = elements.len().saturating_sub(1);
    let mut sequence = Sequence::new(elements).removed_by(present.then_some(removal));
    if present {
        sequence = sequence.expecting_file(last, &text);
    }
    let sequence = sequence.with_extra(extra).sending("path", path.display().to_string());
    Ok(sequence.reading(&[HASH], &file))
}
