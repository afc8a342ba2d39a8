//! The classic text format 0.0.4, which `node_exporter` and older scrapers read.

/// Returns the classic form of a text in `OpenMetrics`. Counters and infos get the names of their samples, an info is a
/// gauge, and lines about units and the end of the text are left out.
#[must_use]
pub fn to_classic(open_metrics: &str) -> String {
    let mut classic = String::with_capacity(open_metrics.len());
    let lines: Vec<&str> = open_metrics.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("# ") else {
            classic.push_str(line);
            classic.push('\n');
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        let (Some(word), Some(name)) = (words.next(), words.next()) else { continue };
        let rest = words.next().unwrap_or_default();
        let metric = metric_type(&lines, at, name);
        let (suffix, metric) = match metric {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            "unknown" => ("", "untyped"),
            other => ("", other),
        };
        match word {
            "HELP" => classic.push_str(&format!("# HELP {name}{suffix} {rest}\n")),
            "TYPE" => classic.push_str(&format!("# TYPE {name}{suffix} {metric}\n")),
            _ => {}
        }
    }
    classic
}

/// Returns the type of a family; the line of the type follows the line of the help at once.
fn metric_type<'t>(lines: &[&'t str], at: usize, name: &str) -> &'t str {
    let near = lines.get(at..).unwrap_or_default().iter().take(2);
    let mut types = near.filter_map(|line| line.strip_prefix("# TYPE "));
    let found = types.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::to_classic;

    #[test]
    fn names_and_types_of_the_classic_format() {
        let open = "# HELP a_build The version.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                    # HELP a_changes Changes.\n# TYPE a_changes counter\na_changes_total{kind=\"f\"} 3\n\
                    # HELP a_time_seconds Time.\n# TYPE a_time_seconds gauge\n# UNIT a_time_seconds seconds\n\
                    a_time_seconds 1.5\n# EOF\n";
        let classic = "# HELP a_build_info The version.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
                       # HELP a_changes_total Changes.\n# TYPE a_changes_total counter\na_changes_total{kind=\"f\"} 3\n\
                       # HELP a_time_seconds Time.\n# TYPE a_time_seconds gauge\na_time_seconds 1.5\n";
        assert_eq!(to_classic(open), classic);
    }
}
