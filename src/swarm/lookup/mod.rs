//! Looking things up in the workspace as it is now, as capped text for a model.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::index::{Certainty, Index, Usage};
use crate::ports::Tokens;
use crate::syntax::{FilePath, Symbol, SymbolPath, SymbolTree, outline, signature};
use crate::workspace::Snapshot;

/// The most that one reading call puts into a prompt.
pub(super) const READ_CAP: Tokens = Tokens(6_000);
/// What each target of a reading call gets at least.
const READ_LEAST: Tokens = Tokens(2_000);
const READ_TARGETS: usize = 8;
/// The most of one range of lines.
const READ_LINES: Tokens = Tokens(4_500);
/// A text is shown whole when it is over its cap by less than this, in bytes: the gap would cost a turn.
const LENIENCE: usize = 700;
const SEARCH_HITS: usize = 30;
const REFERENCE_HITS: usize = 40;

/// Read-only access to one state of the workspace.
#[derive(Clone)]
pub(crate) struct Lookup {
    world: Snapshot,
    index: Arc<Index>,
}

/// A symbol with the tree that it stands in.
pub(crate) struct Found {
    pub tree: Arc<SymbolTree>,
    pub symbol: Symbol,
}

impl Found {
    pub fn source(&self) -> &str {
        self.symbol.span.of(self.tree.text())
    }
}

impl Lookup {
    pub fn new(world: Snapshot, index: Arc<Index>) -> Self {
        Lookup { world, index }
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub fn tree(&self, file: &FilePath) -> Result<Arc<SymbolTree>, String> {
        self.world.tree(file).map_err(|error| error.to_string())
    }

    /// A symbol by its path.
    ///
    /// # Errors
    /// A text for the model which names what there is instead.
    pub fn symbol(&self, path: &SymbolPath) -> Result<Found, String> {
        let tree = self.tree(&path.file).map_err(|error| {
            let base = path.file.name();
            let same: Vec<&str> = self
                .world
                .files()
                .iter()
                .filter(|file| file.name() == base)
                .map(FilePath::as_str)
                .take(5)
                .collect();
            let hint = if same.is_empty() {
                String::new()
            } else {
                format!(" Files of that name: {}.", same.join(", "))
            };
            format!("{error}.{hint}")
        })?;
        if let Some(symbol) = tree.find(&path.name).cloned() {
            return Ok(Found { tree, symbol });
        }
        let base = path.base_name();
        let mut near: Vec<String> = tree
            .symbols()
            .iter()
            .filter(|symbol| symbol.path.base_name() == base)
            .map(|symbol| symbol.path.to_string())
            .collect();
        if near.is_empty() {
            near = self
                .index()
                .definitions(base)
                .into_iter()
                .map(|found| found.symbol.to_string())
                .take(5)
                .collect();
        }
        let hint = if near.is_empty() {
            let known: Vec<&str> = tree
                .symbols()
                .iter()
                .map(|symbol| symbol.path.name.as_str())
                .filter(|name| !name.is_empty())
                .take(40)
                .collect();
            format!("{} has: {}.", path.file, known.join(", "))
        } else {
            format!("Did you mean {}?", near.join(" or "))
        };
        Err(format!("There is no symbol {path}. {hint}"))
    }

    /// The source of symbols and ranges of lines.
    pub fn read(&self, targets: &[String]) -> String {
        let each = Tokens((READ_CAP.0 / targets.len().max(1) as u64).max(READ_LEAST.0));
        let mut texts: Vec<String> = targets
            .iter()
            .take(READ_TARGETS)
            .map(|target| self.read_capped(target, each))
            .collect();
        if targets.len() > READ_TARGETS {
            let left = targets[READ_TARGETS..].join(", ");
            texts.push(format!(
                "[{READ_TARGETS} are read at once; left: {left}: read them on their own]"
            ));
        }
        texts.join(
            "
",
        )
    }

    /// A range of lines ends at its own cap; everything else is cut in the middle.
    fn read_capped(&self, target: &str, most: Tokens) -> String {
        let text = self.read_one(target);
        if target.parse::<SymbolPath>().is_ok() {
            cap(&text, most)
        } else {
            text
        }
    }

    fn read_one(&self, target: &str) -> String {
        match target.parse::<SymbolPath>() {
            Ok(path) if !path.is_module() => match self.symbol(&path) {
                Ok(found) => {
                    let (first, last) = found.symbol.lines;
                    format!(
                        "{path} lines {first}-{last}:\n{}",
                        shortened(&found, READ_CAP).0
                    )
                }
                Err(error) => error,
            },
            Ok(path) => self.read_module(&path),
            Err(_) => self.read_lines(target),
        }
    }

    /// A module body with its symbols as signatures; a whole small file as it is.
    fn read_module(&self, path: &SymbolPath) -> String {
        match self.symbol(path) {
            Ok(found) => format!("{path}:\n{}", shortened(&found, Tokens(READ_CAP.0 / 2)).0),
            Err(error) => error,
        }
    }

    fn read_lines(&self, target: &str) -> String {
        let (file, range) = match target.rsplit_once(':') {
            Some((file, range)) if range.starts_with(|c: char| c.is_ascii_digit()) => (file, range),
            Some(_) | None => (target, "1-120"),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.trim().parse::<usize>().unwrap_or(1).max(1);
        let last = last
            .trim()
            .parse::<usize>()
            .unwrap_or(first.saturating_add(60))
            .max(first);
        match self.world.read(&FilePath::new(file)) {
            Ok(text) => lines_shown(file, &text, first, last),
            Err(error) => error.to_string(),
        }
    }

    pub fn outline(&self, file: &str) -> String {
        match self.tree(&FilePath::new(file.trim_end_matches("::"))) {
            Ok(tree) => cap(&outline(&tree, 150), READ_CAP),
            Err(error) => error,
        }
    }

    pub fn search(&self, query: &str) -> String {
        let found = self.index().search(query, SEARCH_HITS);
        if found.hits.is_empty() {
            return format!("Nothing found for `{query}`. Try fewer or other words.");
        }
        let mut lines: Vec<String> = found
            .hits
            .iter()
            .map(|hit| hit_line(&hit.symbol, hit.line, &hit.text))
            .collect();
        lines.dedup();
        let left = found.total.saturating_sub(found.hits.len());
        if left > 0 {
            lines.push(format!("({left} more lines are not shown)"));
        }
        cap(&lines.join("\n"), Tokens(2_000))
    }

    pub fn definition(&self, name: &str) -> String {
        let found = self.index().definitions(name);
        if found.is_empty() {
            return format!("No definition of `{name}` in the workspace.");
        }
        let paths: Vec<String> = found.iter().map(|found| found.symbol.to_string()).collect();
        let shown = &paths[..paths.len().min(3)];
        let more = &paths[shown.len()..];
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("\nAlso: {}", more.join(", "))
        };
        cap(&format!("{}{more}", self.read(shown)), READ_CAP)
    }

    pub fn references(&self, name: &str) -> String {
        let usages = self.index().references(name, REFERENCE_HITS);
        if usages.found.is_empty() {
            return format!("No reference to `{name}` in the workspace.");
        }
        let is_unsure = |usage: &Usage| usage.certainty == Certainty::Possible;
        // What holds for all is said once.
        let by_name = usages.found.iter().all(is_unsure);
        let mark = |usage: &Usage| match is_unsure(usage) && !by_name {
            true => " (perhaps)",
            false => "",
        };
        let mut lines: Vec<String> = usages
            .found
            .iter()
            .map(|usage| {
                let line = hit_line(&usage.symbol, usage.line, &usage.text);
                format!("{line}{}", mark(usage))
            })
            .collect();
        lines.dedup();
        if by_name {
            lines.insert(0, format!("(by name; another `{name}` may be meant)"));
        }
        let note = if usages.complete {
            ""
        } else {
            "\n(more were left out)"
        };
        cap(&format!("{}{note}", lines.join("\n")), Tokens(2_000))
    }
}

/// Lines with their numbers, from the first on as far as the cap goes; says which are left.
fn lines_shown(file: &str, text: &str, first: usize, last: usize) -> String {
    let last = last.min(text.lines().count());
    let mut shown = format!("{file} lines {first}-{last}:\n");
    for (at, line) in text.lines().enumerate().take(last).skip(first - 1) {
        if Tokens::estimate(&shown) > READ_LINES {
            let _ = writeln!(
                shown,
                "[lines {}-{last} are left: read them on their own]",
                at + 1
            );
            break;
        }
        let _ = writeln!(shown, "{:>5} {line}", at + 1);
    }
    shown
}

fn hit_line(symbol: &SymbolPath, line: u32, text: &str) -> String {
    let text: String = text.trim().chars().take(160).collect();
    format!("{symbol} line {line}: {text}")
}

/// The source of a symbol; when it is over the cap, its children are shown by their signatures, and
/// what is still too long is cut in the middle. Says whether it was shortened.
pub(super) fn shortened(found: &Found, most: Tokens) -> (String, bool) {
    let source = found.source();
    if Tokens::estimate(source) <= most {
        return (source.to_owned(), false);
    }
    let text = found.tree.text();
    let mut shown = String::new();
    let mut at = found.symbol.span.start;
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        shown.push_str(&text[at..child.span.start]);
        let (first, last) = child.lines;
        let line_start = text[..child.definition.start]
            .rfind('\n')
            .map_or(0, |end| end + 1);
        let indent: String = text[line_start..]
            .chars()
            .take_while(|c| matches!(c, ' ' | '\t'))
            .collect();
        for line in signature(&found.tree, child).lines() {
            let _ = writeln!(shown, "{indent}{}", line.trim_start());
        }
        let _ = writeln!(shown, "{indent}    ...  # lines {first}-{last}, not shown");
        at = child.span.end;
    }
    shown.push_str(&text[at..found.symbol.span.end]);
    (cap(&shown, most), true)
}

/// Cuts a text in the middle when it is over the cap, and says so.
pub(crate) fn cap(text: &str, most: Tokens) -> String {
    let bytes = usize::try_from(most.0 * 7 / 2).unwrap_or(usize::MAX);
    if text.len() <= bytes.saturating_add(LENIENCE.min(bytes / 2)) {
        return text.to_owned();
    }
    let head_end = (0..=bytes * 2 / 3)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let head = &text[..head_end];
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let tail = super::proposal::tail(text, bytes / 3);
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    format!("{head}[{left_out} bytes are not shown here; read ranges of lines to see them]\n{tail}")
}
