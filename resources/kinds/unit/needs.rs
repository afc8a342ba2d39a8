//! The objects that the content of a unit names: programs, users, groups and other units.

use crate::dependency::{HostObject, Need};

/// Returns the needs of a unit with this content.
pub(super) fn needed(unit: &str, content: &str) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    let mut names_unit = false;
    for line in content.lines().map(str::trim) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim_end(), value.trim());
        let need = match key {
            _ if key.starts_with("Exec") => {
                let first = value.split_whitespace().next().unwrap_or_default();
                let program = first.trim_start_matches(['@', '-', ':', '+', '!', '|']);
                path_need(program, "is run by the unit").filter(|_| !first.starts_with('-'))
            }
            "EnvironmentFile" => path_need(value, "is read by the unit"),
            "User" if is_literal(value) => Need::user(value, "runs the unit"),
            "Group" if is_literal(value) => Need::group(value, "runs the unit"),
            "Unit" | "Service" | "Sockets" if is_literal(value) => {
                names_unit = true;
                Some(unit_need(value))
            }
            _ => None,
        };
        needs.extend(need.filter(|need| !needs.contains(need)));
    }
    if let (false, Some((stem, "timer" | "socket" | "path"))) = (names_unit, unit.rsplit_once('.'))
    {
        needs.push(unit_need(&format!("{stem}.service")));
    }
    needs
}

fn path_need(text: &str, because: &'static str) -> Option<Need> {
    let is_path = text.starts_with('/') && is_literal(text) && !text.contains("/../");
    is_path.then(|| Need::path(text, because))
}

fn unit_need(name: &str) -> Need {
    let object = HostObject::Unit { session: false, name: name.to_owned() };
    Need::exact(object, "is activated by the unit")
}

/// Returns true if the text has no specifiers, variables or quotes.
fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.contains(['%', '$', '"', '\'', '*'])
}

#[cfg(test)]
mod tests {
    use super::{needed, path_need, unit_need};
    use crate::dependency::Need;

    #[test]
    fn programs_users_and_units_are_needed() {
        let content = "[Service]\nExecStartPre=-/usr/bin/old\nExecStart=@/srv/app/run app %i\n\
                       ExecStop=/srv/app/run stop\nUser=app\nGroup=%i\nEnvironmentFile=-/etc/app\n";
        let because = "is run by the unit";
        let expected = [path_need("/srv/app/run", because), Need::user("app", "runs the unit")];
        assert_eq!(needed("app.service", content), expected.map(Option::unwrap));
    }

    #[test]
    fn a_timer_needs_its_service() {
        assert_eq!(needed("a.timer", "[Timer]\nOnCalendar=daily\n"), [unit_need("a.service")]);
        assert_eq!(needed("a.timer", "[Timer]\nUnit=b.service\n"), [unit_need("b.service")]);
        assert_eq!(needed("a.service", ""), []);
    }
}
