//! Introduces one defect into a good change.

use starling_syntax::{FilePath, ParameterKind, SymbolKind, SymbolTree};
use starling_text::ChangeSet;

use crate::{added, tree};

/// The kind of defect in a broken variant of a good change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefectKind {
    MissingImport,
    WrongName,
    WrongArguments,
    Syntax,
    DroppedReturn,
    InvertedCondition,
}

impl DefectKind {
    pub const ALL: [DefectKind; 6] = [
        DefectKind::MissingImport,
        DefectKind::WrongName,
        DefectKind::WrongArguments,
        DefectKind::Syntax,
        DefectKind::DroppedReturn,
        DefectKind::InvertedCondition,
    ];

    /// Returns whether static checks can detect the defect. Otherwise only tests can.
    pub fn is_visible_to_static_checks(self) -> bool {
        match self {
            DefectKind::MissingImport
            | DefectKind::WrongName
            | DefectKind::WrongArguments
            | DefectKind::Syntax => true,
            DefectKind::DroppedReturn | DefectKind::InvertedCondition => false,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            DefectKind::MissingImport => "missing import",
            DefectKind::WrongName => "wrong name",
            DefectKind::WrongArguments => "wrong argument count",
            DefectKind::Syntax => "syntax error",
            DefectKind::DroppedReturn => "dropped return",
            DefectKind::InvertedCondition => "inverted condition",
        }
    }
}

/// Returns variants of the good text with this kind of defect. If static checks can detect the
/// defect, returns at most one variant. Otherwise returns one variant for every possible line in
/// the functions that the change touches: first the changed lines, then the others by distance.
pub fn variants(file: &FilePath, old: &str, good: &str, kind: DefectKind) -> Vec<String> {
    let tree = tree(file, good);
    let is_code = |line: &usize| is_code(&tree, *line);
    let added: Vec<usize> = added(old, good);
    let lines: Vec<usize> = added.iter().copied().filter(is_code).collect();
    let one: Option<String> = match kind {
        DefectKind::MissingImport => missing_import(good),
        DefectKind::WrongName => lines.iter().find_map(|line| wrong_name(good, *line)),
        DefectKind::WrongArguments => wrong_arguments(&tree, &lines),
        DefectKind::Syntax => lines.iter().rev().find_map(|line| unclosed(good, *line)),
        DefectKind::DroppedReturn => return in_functions(&tree, old, good, dropped_return),
        DefectKind::InvertedCondition => return in_functions(&tree, old, good, inverted),
    };
    one.into_iter().collect()
}

/// Returns one variant for each line of the touched functions that `break_line` can break.
fn in_functions(
    tree: &SymbolTree,
    old: &str,
    good: &str,
    break_line: fn(&str) -> Option<String>,
) -> Vec<String> {
    let touched = places(old, good);
    let functions: Vec<(usize, usize)> = touched
        .iter()
        .map(|line| tree.at_line(*line as u32 + 1))
        .filter(|symbol| matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method))
        .map(|symbol| (tree.line_of(symbol) as usize - 1, symbol.lines.1 as usize))
        .collect();
    let within = |line: &usize| {
        functions
            .iter()
            .any(|(from, to)| (from..to).contains(&line))
    };
    let nearness = |line: &usize| touched.iter().map(|at| at.abs_diff(*line)).min();
    let lines: Vec<&str> = good.split('\n').collect();
    let mut sites: Vec<usize> = (0..lines.len()).filter(within).collect();
    sites.retain(|line| is_code(tree, *line));
    sites.sort_by_key(nearness);
    let broken = |at: usize| Some(with_line(good, at, Some(break_line(lines[at])?)));
    sites.into_iter().filter_map(broken).collect()
}

/// Removes the `return` of a line, so that its value is computed but not returned.
fn dropped_return(line: &str) -> Option<String> {
    let code = line.trim_start();
    let value = code.strip_prefix("return ")?;
    let indent = &line[..line.len() - code.len()];
    (value.trim() != "None").then(|| format!("{indent}{value}"))
}

/// Negates the condition of an `if`, `elif` or `while` that is on one line.
fn inverted(line: &str) -> Option<String> {
    let code = line.trim_start();
    let indent = &line[..line.len() - code.len()];
    let keyword = ["if ", "elif ", "while "];
    let keyword = keyword.into_iter().find(|word| code.starts_with(word))?;
    let condition = code[keyword.len()..].trim_end().strip_suffix(':')?;
    let open = condition.matches(['(', '[', '{']).count();
    let balanced = open == condition.matches([')', ']', '}']).count();
    balanced.then(|| format!("{indent}{keyword}not ({condition}):"))
}

/// Returns the lines of the new text that differ, counted from 0. Where lines were only removed,
/// returns the line after them.
fn places(old: &str, good: &str) -> Vec<usize> {
    let changes = ChangeSet::between(old, good);
    let mut shift = 0_isize;
    let mut found = Vec::new();
    for edit in changes.edits() {
        let at = edit
            .range
            .start
            .checked_add_signed(shift)
            .unwrap_or_default();
        let first = good[..good.floor_char_boundary(at)].matches('\n').count();
        found.extend(first..=first + edit.insert.trim_end_matches('\n').matches('\n').count());
        shift += edit.insert.len() as isize - edit.range.len() as isize;
    }
    found.dedup();
    found
}

/// Returns whether a line, counted from 0, is neither empty nor inside a multi-line string.
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

/// Removes the last top-level import of a single name that is used.
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

/// Misspells a name that the line reads.
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

/// Adds too many arguments to the call nearest to the change whose function is defined in the same
/// file.
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

/// Removes the last closing bracket or colon from a line.
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
