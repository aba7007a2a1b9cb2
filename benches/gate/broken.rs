//! Breaks a good change in one way.

use starling::syntax::{FilePath, ParameterKind, SymbolTree};

use crate::{added, tree};

/// What is wrong with a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    MissingImport,
    WrongName,
    WrongArguments,
    Syntax,
}

impl Kind {
    pub const ALL: [Kind; 4] = [
        Kind::MissingImport,
        Kind::WrongName,
        Kind::WrongArguments,
        Kind::Syntax,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Kind::MissingImport => "missing import",
            Kind::WrongName => "wrong name",
            Kind::WrongArguments => "wrong argument count",
            Kind::Syntax => "syntax error",
        }
    }
}

/// The good text, broken; `None` where there is nothing to break in this way.
pub fn variant(file: &FilePath, old: &str, good: &str, kind: Kind) -> Option<String> {
    let tree = tree(file, good);
    let is_code = |line: &usize| is_code(&tree, *line);
    let lines: Vec<usize> = added(old, good).into_iter().filter(is_code).collect();
    match kind {
        Kind::MissingImport => missing_import(good),
        Kind::WrongName => lines.iter().find_map(|line| wrong_name(good, *line)),
        Kind::WrongArguments => wrong_arguments(&tree, &lines),
        Kind::Syntax => lines.iter().rev().find_map(|line| unclosed(good, *line)),
    }
}

/// Whether a line, from 0, is neither empty nor part of a string that goes over lines.
fn is_code(tree: &SymbolTree, line: usize) -> bool {
    let text: &str = tree.text();
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let code = text[start..].lines().next().unwrap_or_default();
    let first = start + code.len() - code.trim_start().len();
    !code.trim().is_empty()
        && !(tree.strings().iter()).any(|string| string.start <= first && string.end > first)
}

fn with_line(text: &str, at: usize, line: Option<String>) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match line {
        Some(line) => lines[at] = line,
        None => drop(lines.remove(at)),
    }
    lines.join("\n")
}

/// Without the last top-level import of one name that is used.
fn missing_import(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let used = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        text.match_indices(name)
            .filter(|(at, _)| {
                let before = text[..*at].chars().next_back();
                let after = text[at + name.len()..].chars().next();
                !before.is_some_and(|c| is_part(c) || c == '.') && after.is_some_and(|c| c == '(')
            })
            .count()
            > 0
    };
    let at = lines.iter().rposition(|line| {
        let Some((_, names)) = line
            .strip_prefix("from ")
            .and_then(|rest| rest.split_once(" import "))
        else {
            return false;
        };
        let one = names.chars().all(|c| c.is_alphanumeric() || c == '_');
        one && !line.contains("__future__") && used(names)
    })?;
    Some(with_line(text, at, None))
}

/// A name that is read on the line, misspelt.
fn wrong_name(text: &str, at: usize) -> Option<String> {
    const WORDS: &str = "and as assert async await break class continue def del elif else except \
        False finally for from global if import in is lambda None nonlocal not or pass raise return \
        True try while with yield self cls";
    let line = text.split('\n').nth(at)?;
    let code = line.trim_start();
    if code.starts_with(['#', '"', '\'', '@']) || code.contains(['"', '\'', '#']) {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut start = None;
    for (offset, c) in line.char_indices().chain([(line.len(), ' ')]) {
        if is_part(c) {
            start.get_or_insert(offset);
            continue;
        }
        let Some(from) = start.take() else {
            continue;
        };
        let word = &line[from..offset];
        let before = line[..from].trim_end().chars().next_back();
        let after = line[offset..].trim_start();
        let bound = after.starts_with('=') && !after.starts_with("==");
        let first = line[..from].trim().is_empty();
        let usable = word.len() > 2
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && before != Some('.')
            && !bound
            && !after.starts_with([',', ':'])
            && !first
            && !WORDS.split_whitespace().any(|known| known == word)
            && ![
                "def ", "class ", "for ", "import ", "from ", "lambda ", "except ", "with ",
            ]
            .iter()
            .any(|keyword| code.starts_with(keyword));
        if usable {
            let changed = format!("{}{word}_zq{}", &line[..from], &line[offset..]);
            return Some(with_line(text, at, Some(changed)));
        }
    }
    None
}

/// A call of a function of the same file, near the change, with too many arguments.
fn wrong_arguments(tree: &SymbolTree, near: &[usize]) -> Option<String> {
    let text: &str = tree.text();
    let functions = tree.symbols().iter().filter(|symbol| {
        let fixed = |kind: ParameterKind| match kind {
            ParameterKind::PositionalOnly
            | ParameterKind::Positional
            | ParameterKind::KeywordOnly => true,
            ParameterKind::VarPositional | ParameterKind::VarKeyword => false,
        };
        let contract = &symbol.contract;
        contract.decorators.is_empty()
            && (contract.parameters.iter().flatten()).all(|parameter| fixed(parameter.kind))
            && contract.parameters.is_some()
            && !symbol.path.name.contains('#')
    });
    let names: Vec<(bool, &str)> = functions
        .filter_map(|symbol| {
            let name = symbol.path.name.as_str();
            match name.rsplit_once('.') {
                None => Some((false, name)),
                Some((_, method)) if !method.starts_with("__") => Some((true, method)),
                Some(_) => None,
            }
        })
        .collect();
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if code.starts_with(['#', '"', '\''])
            || code.starts_with("def ")
            || code.contains('"')
            || !is_code(tree, at)
        {
            continue;
        }
        for (is_method, name) in &names {
            let call = match is_method {
                true => format!("self.{name}("),
                false => format!(" {name}("),
            };
            if let Some(place) = line.find(&call) {
                found.push((at, place + call.len()));
            }
        }
    }
    let first = *near.first()?;
    let (at, place) = found.into_iter().min_by_key(|(at, _)| at.abs_diff(first))?;
    let line = lines[at];
    let extra = "None, None, None, None, None, None, None, None, None, ";
    let changed = format!("{}{extra}{}", &line[..place], &line[place..]);
    Some(with_line(text, at, Some(changed)))
}

/// A line without its last closing bracket, or without its colon.
fn unclosed(text: &str, at: usize) -> Option<String> {
    let line = text.split('\n').nth(at)?;
    let code = line.trim();
    if code.starts_with(['#', '"', '\'']) {
        return None;
    }
    let last = line.rfind([')', ']', ':'])?;
    let changed = format!("{}{}", &line[..last], &line[last + 1..]);
    Some(with_line(text, at, Some(changed)))
}
