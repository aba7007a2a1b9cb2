//! Files without code that name functions: configuration, templates, makefiles.

use starling_syntax::FilePath;

/// What may run a function that a file without code names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wired {
    /// A framework, which tests may use.
    ByFramework,
    /// These commands only.
    ByCommands(Vec<String>),
}

impl Wired {
    /// Returns what may run the function that `names_it` recognizes in a text.
    pub fn of(
        file: &FilePath,
        text: &str,
        runs_make: bool,
        names_it: impl Fn(&str) -> bool,
    ) -> Wired {
        let is_workflow = file.as_str().starts_with('.');
        if is_workflow || file.name() == "Makefile" && !runs_make {
            return Wired::ByCommands(Vec::new());
        }
        let (commands, rest) = split(text);
        let named = commands.into_iter().filter(|(_, target)| names_it(target));
        let named: Vec<String> = named.map(|(name, _)| name.to_owned()).collect();
        match names_it(&rest) {
            true => Wired::ByFramework,
            false => Wired::ByCommands(named),
        }
    }
}

/// Returns the commands that a package installs according to its build file, each with the function
/// behind it, and the rest of the text.
fn split(text: &str) -> (Vec<(&str, &str)>, String) {
    let mut commands = Vec::new();
    let mut rest = String::new();
    let mut is_in_scripts = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let quotes = ['"', '\'', ' '];
        let header = trimmed
            .strip_prefix('[')
            .map(|name| name.trim_end_matches(']'));
        // In `setup.cfg`: `console_scripts =` above indented lines.
        if let Some(group) = header.or(trimmed.strip_suffix('=')) {
            is_in_scripts = group.trim_matches(quotes).ends_with("scripts");
        } else if let Some((name, target)) = trimmed.split_once('=').filter(|_| is_in_scripts) {
            commands.push((name.trim_matches(quotes), target));
        } else {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    (commands, rest)
}

/// Returns whether a file describes how a package is built.
pub(super) fn is_build_file(file: &FilePath) -> bool {
    ["pyproject.toml", "setup.cfg"].contains(&file.name())
}

/// Returns whether a file without code may name functions that a framework or a command runs.
pub(super) fn is_wiring(file: &FilePath) -> bool {
    const ENDINGS: [&str; 6] = [".toml", ".cfg", ".ini", ".yaml", ".yml", ".html"];
    let name = file.name();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || name == "Makefile"
}
