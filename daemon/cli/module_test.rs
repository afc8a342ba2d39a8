//! `steadfast test`: the test cases of a graph module.

use super::args::TestModule;
use super::exit::Exit;
use super::output::{self, count, out_json, plain, print};
use crate::config;
use serde_json::json;

/// Runs the cases of a module, and prints the result of each.
pub(super) fn test_module(args: &TestModule) -> Exit {
    let results = match config::test_module(&args.module, &config::KindSet::of_this_build()) {
        Ok(results) => results,
        Err(problem) => {
            output::error(problem.to_string().trim_end(), None);
            return Exit::Graph;
        }
    };
    let failed = results.iter().filter(|result| !result.differences.is_empty()).count();
    if args.json {
        let case = |result: &config::CaseResult| json!({"file": result.file, "differences": result.differences});
        let cases: Vec<_> = results.iter().map(case).collect();
        out_json(&json!({"cases": cases, "failed": failed}));
    } else {
        for result in &results {
            let word = if result.differences.is_empty() { "pass" } else { "FAIL" };
            print(plain(&format!("{word}: {}", result.file.display())));
            for difference in &result.differences {
                difference.lines().for_each(|line| print(format!("  {}", plain(line))));
            }
        }
        print(format!("{}, {failed} failed", count(results.len(), "case")));
    }
    if failed == 0 { Exit::Well } else { Exit::Failed }
}
