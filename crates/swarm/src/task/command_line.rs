//! Finds the code that a task names by its command line: `shop add` is a program of the project and
//! its subcommand, `--gap` an option.

use crate::lookup::Lookup;
use starling_index::is_test_file;
use starling_syntax::{FilePath, SymbolPath};

/// Maximum number of places that declare a subcommand or an option. A word with more is ambiguous.
const DECLARATIONS: usize = 3;
/// Names of variables that hold the parsed options.
const PARSED: [&str; 7] = [
    "args",
    "arguments",
    "options",
    "opts",
    "ns",
    "namespace",
    "parsed",
];

/// The subcommands and options that a task names, and their code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The subcommands and options, as a test writes them: `add`, `--gap`.
    pub words: Vec<String>,
    /// Functions that carry out the subcommands or read the options.
    pub handlers: Vec<SymbolPath>,
    /// Functions that declare the subcommands and options.
    pub declarations: Vec<SymbolPath>,
}

impl CommandLine {
    /// Returns the command line in a text; empty if the text names no subcommand and no option that
    /// the code declares.
    pub fn of(lookup: &Lookup, text: &str) -> CommandLine {
        let is_outside = |c: char| c.is_whitespace() || "`'\"(),;[]{}|".contains(c);
        let words = text.split(is_outside);
        let words = words.map(|word| word.trim_end_matches(['.', ':', '?', '!']));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let programs = programs(lookup);
        let mut found = CommandLine::default();
        for (at, word) in words.iter().enumerate() {
            if is_option(word) {
                found.note_option(lookup, word.split('=').next().unwrap_or(word));
            } else if programs.iter().any(|name| name == word) {
                let mut rest = words[at + 1..].iter();
                let next = rest.find(|word| !word.starts_with('-'));
                if let Some(subcommand) = next.filter(|word| is_name(word)) {
                    found.note_subcommand(lookup, subcommand);
                }
            }
        }
        for symbols in [&mut found.handlers, &mut found.declarations] {
            symbols.sort();
            symbols.dedup();
        }
        found
    }

    /// Returns whether the source of a test contains every word as a string.
    pub fn is_whole_in(&self, source: &str) -> bool {
        !self.words.is_empty() && self.words.iter().all(|word| is_string_in(source, word))
    }

    /// Returns whether the source of a test contains one of the words as a string.
    pub fn is_in(&self, source: &str) -> bool {
        self.words.iter().any(|word| is_string_in(source, word))
    }

    fn note_option(&mut self, lookup: &Lookup, option: &str) {
        let declared = declared(lookup, option, |_| true);
        if declared.is_empty() || declared.len() > DECLARATIONS {
            return;
        }
        let name = option.trim_start_matches('-').replace('-', "_");
        let reads = lookup.index().reads_of_any(&name).into_iter();
        let is_parsed = |line: &str| {
            let mut variables = PARSED.iter();
            variables.any(|variable| line.contains(&format!("{variable}.{name}")))
        };
        let reads = reads.filter(|one| is_parsed(&one.text) && is_code(&one.symbol));
        self.handlers.extend(reads.map(|one| one.symbol));
        self.declarations
            .extend(declared.into_iter().map(|one| one.symbol));
        self.words.push(option.to_owned());
    }

    fn note_subcommand(&mut self, lookup: &Lookup, name: &str) {
        let is_declaration = |before: &str| {
            let before = before.trim_end_matches(['"', '\'']);
            ["add_parser(", "command(", "== ", "case "]
                .iter()
                .any(|end| before.ends_with(end))
        };
        let declared = declared(lookup, name, is_declaration);
        let mut handlers = handlers(lookup, name, &declared);
        if declared.is_empty() {
            handlers.retain(|symbol| is_decorated(lookup, symbol));
        }
        if handlers.is_empty() {
            handlers = declared.iter().map(|one| one.symbol.clone()).collect();
        }
        if handlers.is_empty() || handlers.len().max(declared.len()) > DECLARATIONS {
            return;
        }
        self.handlers.extend(handlers);
        self.declarations
            .extend(declared.into_iter().map(|one| one.symbol));
        self.words.push(name.to_owned());
    }
}

/// A place where the code declares a subcommand or an option.
struct Declaration {
    symbol: SymbolPath,
    /// The text of the line.
    line: String,
}

/// Returns the places outside tests where a string is exactly `name` and the text before the string
/// in its line fits.
fn declared(lookup: &Lookup, name: &str, fits: impl Fn(&str) -> bool) -> Vec<Declaration> {
    let strings = lookup.index().in_strings(name).into_iter();
    let declarations = strings.filter_map(|string| {
        let tree = lookup.tree(&string.file).ok()?;
        let symbol = tree.at_line(string.line).path.clone();
        let line = tree.text().lines().nth(string.line as usize - 1)?;
        let at = [format!("\"{name}\""), format!("'{name}'")]
            .iter()
            .find_map(|quoted| line.find(quoted))?;
        let is_meant = !string.is_script && is_python(&string.file) && is_code(&symbol);
        (is_meant && fits(&line[..at])).then(|| Declaration {
            symbol,
            line: line.to_owned(),
        })
    });
    declarations.collect()
}

/// Returns the functions that carry out a subcommand: those that its parser names as a default
/// (`add.set_defaults(run=add_book)`), or else those with a usual name: `cmd_add`, `add`.
fn handlers(lookup: &Lookup, name: &str, declared: &[Declaration]) -> Vec<SymbolPath> {
    let by_default: Vec<SymbolPath> = declared
        .iter()
        .flat_map(|one| set_as_default(lookup, one))
        .collect();
    if !by_default.is_empty() {
        return by_default;
    }
    let name = name.replace('-', "_");
    let usual = [
        format!("cmd_{name}"),
        format!("command_{name}"),
        format!("do_{name}"),
        format!("run_{name}"),
        format!("handle_{name}"),
        format!("{name}_command"),
        format!("{name}_cmd"),
        name,
    ];
    let defined = usual.iter().flat_map(|name| functions(lookup, name));
    let defined: Vec<SymbolPath> = defined.collect();
    let is_beside =
        |symbol: &&SymbolPath| declared.iter().any(|one| one.symbol.file == symbol.file);
    let beside: Vec<SymbolPath> = defined.iter().filter(is_beside).cloned().collect();
    if beside.is_empty() { defined } else { beside }
}

fn functions(lookup: &Lookup, name: &str) -> Vec<SymbolPath> {
    let defined = lookup.index().definitions(name).into_iter();
    let symbols = defined.map(|one| one.symbol);
    symbols
        .filter(|symbol| is_code(symbol) && !symbol.is_module())
        .collect()
}

/// Returns the functions after `set_defaults(…=` of the variable that a declaration assigns.
fn set_as_default(lookup: &Lookup, declaration: &Declaration) -> Vec<SymbolPath> {
    let variable = declaration
        .line
        .split_once('=')
        .map(|(name, _)| name.trim());
    let (Some(variable), Ok(found)) = (variable, lookup.symbol(&declaration.symbol)) else {
        return Vec::new();
    };
    let call = format!("{variable}.set_defaults(");
    let calls = found.source().split(&call).skip(1).map(str::to_owned);
    let values = calls.filter_map(|call| {
        let value = call.split(')').next()?.split_once('=')?.1.to_owned();
        let end = value.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        Some(value[..end.unwrap_or(value.len())].to_owned())
    });
    let values: Vec<String> = values.collect();
    values
        .iter()
        .flat_map(|name| functions(lookup, name))
        .collect()
}

/// Returns whether a decorator makes a function a subcommand: `@cli.command()`.
fn is_decorated(lookup: &Lookup, symbol: &SymbolPath) -> bool {
    lookup.symbol(symbol).is_ok_and(|found| {
        let lines = found.source().lines().map(str::trim);
        let mut decorators = lines.take_while(|line| !line.starts_with("def "));
        decorators.any(|line| line.starts_with('@') && line.contains("command"))
    })
}

/// Returns the names of the programs that the project installs.
fn programs(lookup: &Lookup) -> Vec<String> {
    let is_manifest =
        |file: &&FilePath| matches!(file.name(), "pyproject.toml" | "setup.cfg" | "setup.py");
    let manifests = lookup.files().iter().filter(is_manifest);
    let trees = manifests.filter_map(|file| lookup.tree(file).ok());
    trees.flat_map(|tree| programs_of(tree.text())).collect()
}

/// Returns the programs that a manifest declares: in a table `[project.scripts]` or
/// `[tool.poetry.scripts]`, or below `console_scripts`.
fn programs_of(manifest: &str) -> Vec<String> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.contains("console_scripts") {
            is_inside = true;
        } else if line.starts_with('[') {
            is_inside = matches!(line, "[project.scripts]" | "[tool.poetry.scripts]");
        }
        let unquoted = line.replace(['"', '\''], " ");
        let declared = unquoted.split_once('=').filter(|(_, of)| of.contains(':'));
        let name = declared.map(|(name, _)| name.trim());
        found.extend(
            name.filter(|name| is_inside && is_name(name))
                .map(str::to_owned),
        );
    }
    found
}

/// Returns whether a variable usually holds the parsed options.
pub(crate) fn is_parsed(variable: &str) -> bool {
    PARSED.contains(&variable)
}

pub(crate) fn is_option(word: &str) -> bool {
    let name = word.strip_prefix("--").map(|rest| rest.split('=').next());
    name.flatten()
        .is_some_and(|name| name.len() > 1 && is_name(name))
}

pub(crate) fn is_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(is_part)
}

pub(crate) fn is_string_in(source: &str, word: &str) -> bool {
    ['"', '\''].iter().any(|quote| {
        source.contains(&format!("{quote}{word}{quote}"))
            || word.starts_with('-') && source.contains(&format!("{quote}{word}="))
    })
}

fn is_python(file: &FilePath) -> bool {
    file.name().ends_with(".py")
}

fn is_code(symbol: &SymbolPath) -> bool {
    is_python(&symbol.file) && !is_test_file(&symbol.file)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_workspace::Workspace;

    const CLI: &str = "import argparse\n\n\ndef cmd_add(args):\n    print(args.title)\n\n\n\
        def lend_book(args):\n    print(args.days_left)\n\n\n\
        def parser():\n    p = argparse.ArgumentParser()\n    sub = p.add_subparsers()\n    \
        sub.add_parser('add')\n    lend = sub.add_parser(\"lend\")\n    \
        lend.add_argument('--days-left', type=int)\n    lend.set_defaults(func=lend_book)\n    \
        return p\n\n\n\
        def main(argv):\n    return parser().parse_args(argv)\n";
    const CLICK: &str = "import click\n\n\n@click.command()\n\
        @click.option(\"--year\")\ndef report(year):\n    print(year)\n\n\n\
        def count():\n    return 0\n";
    const MANIFEST: &str = "[project]\nname = \"shelf\"\n\n[project.scripts]\n\
        shelf = \"cli:main\"\n\n[project.entry-points.\"shelf.formats\"]\nlist = \"cli:main\"\n";

    fn found(task: &str) -> CommandLine {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cli.py", CLI),
            ("reports.py", CLICK),
            ("pyproject.toml", MANIFEST),
            (
                "test_cli.py",
                "from cli import main\n\n\ndef test_add():\n    main([\"add\"])\n",
            ),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let workspace = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let world = workspace.snapshot(Default::default());
        CommandLine::of(
            &Lookup::new(world.clone(), Arc::new(Index::new(world))),
            task,
        )
    }

    fn handlers_of(task: &str) -> Vec<String> {
        let handlers = found(task).handlers.into_iter();
        handlers.map(|symbol| symbol.to_string()).collect()
    }

    #[test]
    fn subcommand_of_the_projects_program_names_the_function_that_carries_it_out() {
        assert_eq!(handlers_of("shelf add prints twice"), ["cli.py::cmd_add"]);
        assert_eq!(handlers_of("`shelf lend 3` fails."), ["cli.py::lend_book"]);
        let report = "`shelf report` prints nothing";
        assert_eq!(handlers_of(report), ["reports.py::report"]);
        let declared = found("shelf lend fails").declarations;
        assert_eq!(declared.len(), 1, "{declared:?}");
        assert_eq!(declared[0].to_string(), "cli.py::parser");
        for other in [
            "The shelf must add books",
            "add is wrong",
            "list add",
            "shelf count fails",
        ] {
            assert_eq!(found(other), CommandLine::default(), "{other}");
        }
    }

    #[test]
    fn option_names_the_functions_that_read_it() {
        let option = found("--days-left=3 is ignored");
        assert_eq!(option.handlers[0].to_string(), "cli.py::lend_book");
        assert_eq!(option.declarations[0].to_string(), "cli.py::parser");
        assert_eq!(option.words, ["--days-left"]);
        let click = found("`--year` is ignored").declarations;
        assert_eq!(click[0].to_string(), "reports.py::report");
        assert_eq!(found("--unknown is ignored"), CommandLine::default());
    }
}
