//! Finds the command lines that `npm test` and similar commands run, in `package.json` and
//! `composer.json`.

use std::collections::BTreeSet;

use serde_json::Value;
use starling_syntax::FilePath;

/// Returns whether a file lists commands by name under `scripts`.
pub(crate) fn has_package_scripts(file: &FilePath) -> bool {
    matches!(file.name(), "package.json" | "composer.json")
}

/// Returns the command lines of the scripts that a command runs, and of those that they run. If the
/// text is not valid JSON, returns all its lines.
pub(crate) fn package_scripts(command: &str, text: &str) -> Vec<String> {
    let Ok(package) = serde_json::from_str::<Value>(text) else {
        return text.lines().map(str::to_owned).collect();
    };
    let Some(scripts) = package.get("scripts").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut waiting = vec![command.to_owned()];
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    while let Some(line) = waiting.pop() {
        for name in names_in(&line) {
            for name in [format!("pre{name}"), format!("post{name}"), name] {
                let Some(script) = scripts.get(&name) else {
                    continue;
                };
                if seen.insert(name) {
                    let commands = commands(script);
                    waiting.extend(commands.iter().cloned());
                    lines.extend(commands);
                }
            }
        }
    }
    lines
}

/// Returns the words of a command that may name a script. `npm t` is short for `npm test`.
fn names_in(command: &str) -> Vec<String> {
    let words = command.split(|c: char| c.is_whitespace() || "\"'&|;()".contains(c));
    let names = words.map(|word| match word.trim_start_matches('@') {
        "t" | "tst" => "test",
        name => name,
    });
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the command lines of a script: a string, or in `composer.json` also a list.
fn commands(script: &Value) -> Vec<String> {
    let list = script
        .as_array()
        .map_or(std::slice::from_ref(script), Vec::as_slice);
    let lines = list.iter().filter_map(Value::as_str);
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_the_command_and_the_scripts_that_they_run_are_returned() {
        let package = r#"{"main": "a.js", "scripts": {"test": "npm run unit && node t.js",
            "unit": "node u.js", "posttest": "node p.js", "start": "node calc.js"}}"#;
        let mut found = package_scripts("npm test", package);
        found.sort();
        assert_eq!(
            found,
            ["node p.js", "node u.js", "npm run unit && node t.js"]
        );
        assert_eq!(package_scripts("yarn run unit", package), ["node u.js"]);
        assert_eq!(package_scripts("npm ci", package), [""; 0]);
        let composer = r#"{"scripts": {"test": ["@lint", "php t.php"], "lint": "php -l a.php"}}"#;
        let found = package_scripts("composer test", composer);
        assert_eq!(found, ["@lint", "php t.php", "php -l a.php"]);
    }
}
