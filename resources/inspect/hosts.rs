//! Inspection of the lines of /etc/hosts.

use super::{Field, Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::parts::text_edit::text_of;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

pub(super) const INSPECTOR: Inspector =
    Inspector { kind: "hosts", one: one_line, all: Some(all_lines) };

/// The end of the name of a resource for the address of IPv6, if the host has addresses of both families.
const IPV6: &str = " ipv6";

struct Line {
    address: String,
    is_ipv6: bool,
    host: String,
    others: Vec<String>,
}

fn parse(line: &str) -> Option<Line> {
    let entry = line.split('#').next().unwrap_or_default();
    let mut words = entry.split_whitespace().map(ToOwned::to_owned);
    let address = words.next()?;
    let is_ipv6 = address.parse::<IpAddr>().ok()?.is_ipv6();
    Some(Line { address, is_ipv6, host: words.next()?, others: words.collect() })
}

fn lines(host: &Host) -> Result<Vec<Line>, Failure> {
    let table = text_of(host.files(), Path::new("/etc/hosts"))?.unwrap_or_default();
    Ok(table.lines().filter_map(parse).collect())
}

fn one_line<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let lines = lines(host)?;
        let second = name.strip_suffix(IPV6);
        let own = second.unwrap_or(name);
        let is_own = |line: &&Line| line.host == own && (second.is_none() || line.is_ipv6);
        let Some(line) = lines.iter().find(is_own) else { return Ok(None) };
        let mut fields = Vec::new();
        if second.is_some() {
            fields.push(text("host", own));
        }
        fields.push(text("ip", &*line.address));
        if !line.others.is_empty() {
            fields.push(("names", Field::Shown(Value::Texts(line.others.clone()))));
        }
        let object = Inspected::new(name, fields);
        let of_family = |other: &&Line| other.host == own && other.is_ipv6 == line.is_ipv6;
        let others = lines.iter().filter(of_family).skip(1).map(|other| other.address.as_str());
        let others: Vec<&str> = others.collect();
        Ok(Some(if others.is_empty() {
            object
        } else {
            let others = others.join(", ");
            object.noting(format!(
                "a plan removes the line of {others}: the kind has one line for each name and family"
            ))
        }))
    })
}

fn all_lines(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let mut seen = BTreeSet::new();
        let mut names = Vec::new();
        for line in lines(host)? {
            if seen.insert(line.host.clone()) {
                names.push(line.host);
            } else if line.is_ipv6 && seen.insert(format!("{}{IPV6}", line.host)) {
                names.push(format!("{}{IPV6}", line.host));
            }
        }
        Ok(names)
    })
}
