//! Lists of nftables in a form that can be compared: without handles, counters and changing elements.

use super::content::Table;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// The objects of each table.
pub(super) type Listing = BTreeMap<Table, Vec<Value>>;

/// Returns the comparable objects of a list in JSON (`nft -j list …`); none if the text is no such list. The same
/// list as text says which sets are dynamic: nft 1.0 omits that flag in JSON.
pub(super) fn listing(json: &str, text: &str) -> Option<Listing> {
    let dynamic = dynamic_sets(text);
    let parsed: Value = serde_json::from_str(json).ok()?;
    let mut listing = Listing::new();
    for object in parsed.get("nftables")?.as_array()? {
        let Some((sort, body)) = object.as_object().and_then(|object| object.iter().next()) else {
            continue;
        };
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let name = if sort == "table" { text("name") } else { text("table") };
        let (Some(family), Some(name)) = (text("family"), name) else { continue };
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            plain_object(sort, body);
            let set = text("name").map(|set| format!("{family} {name} {set}"));
            if set.is_some_and(|set| dynamic.contains(&set)) {
                body.remove("elem");
            }
        }
        let object = Value::Object(Map::from_iter([(sort.clone(), body)]));
        listing.entry(Table { family, name }).or_default().push(object);
    }
    Some(listing)
}

/// Returns family, table and name of each set or map with the flag `dynamic`.
fn dynamic_sets(text: &str) -> HashSet<String> {
    let (mut table, mut set) = (String::new(), String::new());
    let mut dynamic = HashSet::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["table", family, name, "{"] => table = format!("{family} {name}"),
            ["set" | "map", name, "{"] => set = format!("{table} {name}"),
            ["flags", flags @ ..] if flags.contains(&"dynamic") => {
                dynamic.insert(set.clone());
            }
            _ => {}
        }
    }
    dynamic
}

/// Removes the parts of an object that change without a change of the rules.
fn plain_object(sort: &str, body: &mut Map<String, Value>) {
    body.remove("handle");
    body.remove("index");
    match sort {
        "counter" => {
            body.remove("packets");
            body.remove("bytes");
        }
        "quota" => {
            body.remove("used");
        }
        "set" | "map" => {
            let has_flag = |flag: &str| {
                let flags = body.get("flags").and_then(Value::as_array);
                flags.is_some_and(|flags| flags.iter().any(|it| it == flag))
            };
            if has_flag("dynamic") || has_flag("timeout") || body.contains_key("timeout") {
                body.remove("elem");
            } else if let Some(Value::Array(elements)) = body.get_mut("elem") {
                elements.iter_mut().for_each(plain_expression);
                // The order of a hash table is no order.
                elements.sort_by_key(ToString::to_string);
            }
        }
        _ => {}
    }
    if let Some(rules) = body.get_mut("expr") {
        plain_expression(rules);
    }
}

/// Empties the counters of an expression.
fn plain_expression(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(plain_expression),
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                let Value::Object(fields) = inner else {
                    plain_expression(inner);
                    continue;
                };
                match key.as_str() {
                    "counter" => {
                        fields.remove("packets");
                        fields.remove("bytes");
                    }
                    "quota" => {
                        fields.remove("used");
                        fields.remove("used_unit");
                    }
                    _ => {
                        fields.remove("expires");
                        plain_expression(inner);
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::listing as read;

    const TEXT: &str = "table inet a {\n\tset u {\n\t\ttype ipv4_addr\n\t\tflags dynamic\n\t}\n}\n";

    fn listing(json: &str) -> Option<super::Listing> {
        read(json, TEXT)
    }

    #[test]
    fn counters_handles_and_dynamic_elements_do_not_count() {
        let text = |handle: u32, packets: u32, elements: &str| {
            format!(
                r#"{{"nftables":[{{"metainfo":{{"version":"1"}}}},
                {{"table":{{"family":"inet","name":"a","handle":{handle}}}}},
                {{"rule":{{"family":"inet","table":"a","chain":"c","handle":{handle},
                  "expr":[{{"counter":{{"packets":{packets},"bytes":0}}}},{{"accept":null}}]}}}},
                {{"set":{{"family":"inet","name":"s","table":"a","handle":1,"flags":["timeout"],
                  "elem":[{elements}]}}}},
                {{"set":{{"family":"inet","name":"u","table":"a","handle":1,"elem":[{elements}]}}}},
                {{"set":{{"family":"inet","name":"t","table":"a","elem":["x","y"]}}}}]}}"#
            )
        };
        let one = listing(&text(1, 7, "1,2")).unwrap();
        assert_eq!(one, listing(&text(9, 0, "")).unwrap());
        assert_eq!(one.len(), 1);
        let swapped = text(1, 7, "").replace(r#"["x","y"]"#, r#"["y","x"]"#);
        assert_eq!(one, listing(&swapped).unwrap());
        assert_ne!(one, listing(&text(1, 7, "").replace("accept", "drop")).unwrap());
        assert_ne!(one, listing(&text(1, 7, "").replace(r#"["x","y"]"#, r#"["x"]"#)).unwrap());
    }
}
