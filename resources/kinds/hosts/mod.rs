//! `hosts`: the names of one address in /etc/hosts.

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::kind::KindSpec;
use crate::parts::edit_fields::{
    CREATE, EDIT_SENDS, EditFields, IN_PLACE, SENSITIVE, STATE, VALIDATE,
};
use crate::parts::text_lines::TextLines;
use crate::parts::{Edited, Editor, FieldReader};
use crate::resource::Resource;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "hosts",
    collectible: true,
    doc: "Manages the line of one host name in /etc/hosts; every other line and all comments stay.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Absolute path of the file.").role(FieldRole::Path).mode(FieldMode::Static)
            .default("/etc/hosts")
            .example("/etc/hosts"),
        FieldSpec::new(
            "host",
            FieldType::Text,
            "The host name, the first name of its line. Together with the family of the address, it identifies the line. Default: the name.",
        ).mode(FieldMode::Static)
        .example("db.example.org"),
        FieldSpec::new("ip", FieldType::Text, "The address, IPv4 or IPv6. Needed unless state is absent.").listable().mode(FieldMode::Value)
            .receives(Receives::Shown)
            .example("192.0.2.7"),
        FieldSpec::new("names", FieldType::Texts, "Further names of the address, in this order.").listable().mode(FieldMode::Value)
            .receives(Receives::Shown)
            .example("db"),
        FieldSpec::new(
            "family",
            FieldType::Choice(&["ipv4", "ipv6"]),
            "The family of the address. Default: that of `ip`; ipv4 without `ip`.",
        ).receives(Receives::Shown),
        STATE,
        CREATE,
        VALIDATE, IN_PLACE,
        SENSITIVE,
    ],
    sends: EDIT_SENDS,
    example: "hosts:\n  - name: db.example.org\n    ip: 192.0.2.7\n    names: [db]\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct HostLine {
    host: String,
    is_ipv6: bool,
    /// The address; none if the line must be absent.
    address: Option<String>,
    aliases: Vec<String>,
    is_secret: bool,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let shared =
        EditFields::read(&mut reader, if name.starts_with('/') { name } else { "/etc/hosts" });
    let host = reader.text("host").unwrap_or_else(|| name.to_owned());
    let hint = "letters, digits, dots, - and _; for example db.example.org";
    reader.require(is_host_name(&host), "host", ("expected a host name", hint));
    let aliases = reader.fields.texts("names").unwrap_or_default();
    let are_names = aliases.iter().all(|alias| is_host_name(alias));
    reader.require(are_names, "names", ("expected host names", hint));
    let family = reader.choice("family", &[("ipv4", false), ("ipv6", true)]);
    let text = reader.text("ip");
    let address = text.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
    if text.is_some() || shared.is_present {
        let hint = "for example 192.0.2.7 or 2001:db8::7";
        reader.require(address.is_some(), "ip", ("expected an IPv4 or IPv6 address", hint));
    }
    let is_ipv6 = family.or_else(|| address.map(|it| it.is_ipv6())).unwrap_or(false);
    let fits = address.is_none_or(|it| it.is_ipv6() == is_ipv6);
    let hint = "omit `family`, or correct the address";
    reader.require(fits, "family", ("the family is not that of `ip`", hint));
    let family = if is_ipv6 { "ipv6" } else { "ipv4" };
    let removal = shared.removal().map(|removal| {
        let removal = removal.with("host", Value::Text(host.clone()));
        removal.with("family", Value::Text(family.to_owned()))
    });
    let part = format!("the {family} address of {host}");
    let address = text.filter(|_| shared.is_present);
    let editor = HostLine { host, is_ipv6, address, aliases, is_secret: shared.is_sensitive };
    reader.finish(()).map(|()| shared.into_resource(part, editor, removal))
}

fn is_host_name(text: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_letter)
}

/// Splits a line into its entry and its comment, with the blanks before the comment.
fn split_comment(line: &str) -> (&str, &str) {
    let end = line.find('#').unwrap_or(line.len());
    let entry = line.get(..end).unwrap_or_default().trim_end();
    (entry, line.get(entry.len()..).unwrap_or_default())
}

impl HostLine {
    /// Returns true if the line gives the host name an address of the family.
    fn owns(&self, line: &str) -> bool {
        let mut words = split_comment(line).0.split_whitespace();
        // An address of IPv6 may name its interface.
        let address = words.next().and_then(|word| word.split('%').next()?.parse::<IpAddr>().ok());
        address.is_some_and(|it| it.is_ipv6() == self.is_ipv6)
            && words.next().is_some_and(|name| name.eq_ignore_ascii_case(&self.host))
    }

    /// Returns the first line of the family that gives the host name, as a further name, another address. The first
    /// line with a name wins.
    fn other_address(&self, lines: &TextLines<'_>, address: &str) -> Option<usize> {
        let wanted = address.parse::<IpAddr>().ok();
        let is_other = |line: &str| {
            let mut words = split_comment(line).0.split_whitespace();
            let found =
                words.next().and_then(|word| word.split('%').next()?.parse::<IpAddr>().ok());
            found.is_some_and(|it| it.is_ipv6() == self.is_ipv6 && Some(it) != wanted)
                && words.skip(1).any(|name| name.eq_ignore_ascii_case(&self.host))
        };
        lines.iter().position(is_other)
    }

    fn is_as_declared(&self, line: &str, address: &str) -> bool {
        let mut words = split_comment(line).0.split_whitespace();
        let same_address = |word: &str| match (word.parse::<IpAddr>(), address.parse::<IpAddr>()) {
            (Ok(found), Ok(wanted)) => found == wanted,
            _ => word == address,
        };
        words.next().is_some_and(same_address)
            && words.next() == Some(self.host.as_str())
            && words.eq(self.aliases.iter().map(String::as_str))
    }
}

impl Editor for HostLine {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let mut lines = TextLines::new(text);
        let own: Vec<usize> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| self.owns(line))
            .map(|(at, _)| at)
            .collect();
        let from: Vec<&str> = own.iter().map(|at| split_comment(lines.line(*at)).0).collect();
        let from = from.join("\n");
        let Some(address) = &self.address else {
            lines.remove_all(&own);
            return Ok(Edited { text: lines.to_text(), from, to: String::new() });
        };
        // Further lines of the name would give it further addresses.
        lines.remove_all(own.get(1..).unwrap_or_default());
        let before = self.other_address(&lines, address);
        let names = std::iter::once(&self.host).chain(&self.aliases).map(String::as_str);
        let names = names.collect::<Vec<_>>().join(" ");
        let mut to = format!("{address}\t{names}");
        match own.first() {
            Some(at) if self.is_as_declared(lines.line(*at), address) => {
                split_comment(lines.line(*at)).0.clone_into(&mut to);
            }
            Some(at) => {
                let (entry, comment) = split_comment(lines.line(*at));
                let gap: String = entry
                    .trim_start()
                    .chars()
                    .skip_while(|letter| !letter.is_whitespace())
                    .take_while(|letter| letter.is_whitespace())
                    .collect();
                to = format!("{address}{gap}{names}");
                let line = format!("{to}{comment}");
                lines.replace(*at, Cow::Owned(line));
            }
            None => {
                let at = before.unwrap_or_else(|| lines.count());
                lines.insert(at, [Cow::Owned(to.clone())]);
            }
        }
        if let (Some(at), Some(before)) = (own.first(), before)
            && before < *at
        {
            let line = lines.line(*at).to_owned();
            lines.remove(*at..at + 1);
            lines.insert(before, [Cow::Owned(line)]);
        }
        Ok(Edited { text: lines.to_text(), from, to })
    }

    fn aspect(&self) -> &'static str {
        "line"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests;
