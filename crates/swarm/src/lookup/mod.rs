//! Looks up symbols, files and text in the current workspace, and returns text of limited size for
//! a model.

mod address;
pub(crate) mod callees;
mod lsp_facts;
mod mention;
mod read;
pub(crate) mod test_symbol;
mod value;
pub use lsp_facts::LspFacts;
pub(crate) use mention::MisspelledSymbol;
pub use mention::{Mention, MissingFile};

use std::sync::Arc;

use crate::excerpt::Focus;
use crate::excerpt::found::Found;
use starling_core::Tokens;
use starling_index::{Certainty, Index, Usage};
use starling_syntax::{FilePath, SymbolPath, SymbolTree, outline};
use starling_workspace::{Snapshot, UnusualPaths};

/// Maximum size of an outline.
const OUTLINE_CAP: Tokens = Tokens(6_000);
/// Number of bytes by which a text may exceed its limit and still be shown whole. If a part were
/// omitted, the model would need another turn to read it.
const LENIENCE: usize = 700;
const SEARCH_HITS: usize = 30;
const REFERENCE_HITS: usize = 40;

/// Read-only access to one state of the workspace.
#[derive(Clone)]
pub struct Lookup {
    world: Snapshot,
    index: Arc<Index>,
    /// The words of the task, whose lines are shown first if not everything fits.
    focus: Arc<Focus>,
    lsp_facts: Arc<LspFacts>,
}

impl Lookup {
    pub fn new(world: Snapshot, index: Arc<Index>) -> Self {
        Lookup {
            world,
            index,
            focus: Arc::default(),
            lsp_facts: Arc::default(),
        }
    }

    /// Sets the words whose lines excerpts show first.
    pub fn with_focus(self, focus: Arc<Focus>) -> Self {
        Lookup { focus, ..self }
    }

    pub fn focus(&self) -> &Focus {
        &self.focus
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns all files in order.
    pub fn files(&self) -> &[FilePath] {
        self.world.files()
    }

    /// Returns the paths with spaces or other unusual characters, which can be recognized in a text
    /// only by comparison with this list.
    pub fn unusual_paths(&self) -> UnusualPaths {
        self.world.unusual_paths()
    }

    pub fn tree(&self, file: &FilePath) -> Result<Arc<SymbolTree>, String> {
        self.world.tree(file).map_err(|error| error.to_string())
    }

    /// Returns whether a path names the module body of a file that does not exist yet and would be
    /// inside the workspace.
    pub fn is_new_file(&self, path: &SymbolPath) -> bool {
        let file = path.file.as_str();
        let leads_outside = file.starts_with('/') || file.split('/').any(|part| part == "..");
        path.is_module() && !leads_outside && self.tree(&path.file).is_err()
    }

    /// Returns a symbol by its path.
    ///
    /// # Errors
    /// Returns a message for the model that names the available symbols or files.
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

    pub fn outline(&self, file: &str) -> String {
        match self.tree(&FilePath::new(file.trim_end_matches("::"))) {
            Ok(tree) => cap(&outline(&tree, 150), OUTLINE_CAP),
            Err(error) => error,
        }
    }

    /// Searches for lines that contain these words, in files whose path contains `within`.
    pub fn search(&self, query: &str, within: &str) -> String {
        let found = self.index().search_most(query, within, SEARCH_HITS);
        let place = match within.is_empty() {
            true => String::new(),
            false => format!(" in files of `{within}`"),
        };
        if found.hits.is_empty() {
            return format!("Nothing found for `{query}`{place}. Try fewer or other words.");
        }
        let hits = found.hits.iter();
        let mut lines: Vec<String> = hits
            .map(|hit| hit_line(&hit.symbol, hit.line, &hit.text))
            .collect();
        lines.dedup();
        if found.held < found.words {
            let (held, words) = (found.held, found.words);
            lines.insert(
                0,
                format!("(no line holds all {words} words; these hold {held})"),
            );
        }
        let left = found.total.saturating_sub(found.hits.len());
        if left > 0 {
            lines.push(format!("({left} more lines are not shown)"));
        }
        cap(&lines.join("\n"), Tokens(2_000))
    }

    /// Describes where a name is defined. `meant` is the intended definition, if it is known.
    pub fn definition(&self, name: &str, meant: Option<&SymbolPath>) -> String {
        let found = self.index().definitions(name);
        if found.is_empty() {
            return format!("No definition of `{name}` in the workspace.");
        }
        let others = found.iter().map(|found| &found.symbol);
        let others = others.filter(|symbol| Some(*symbol) != meant);
        let paths = meant.into_iter().chain(others).map(ToString::to_string);
        let paths: Vec<String> = paths.collect();
        let most = if meant.is_some() { 1 } else { 3 };
        let shown = &paths[..paths.len().min(most)];
        let more = &paths[shown.len()..];
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("\nAlso: {}", more.join(", "))
        };
        format!("{}{more}", self.read(shown))
    }

    pub fn references(&self, name: &str) -> String {
        let usages = self.usages(name, REFERENCE_HITS);
        if usages.found.is_empty() {
            return format!("No reference to `{name}` in the workspace.");
        }
        let is_unsure = |usage: &Usage| usage.certainty == Certainty::Possible;
        // If every use is uncertain, one remark for all of them is written instead of one for each.
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
            "\n(there may be more)"
        };
        cap(&format!("{}{note}", lines.join("\n")), Tokens(2_000))
    }
}

fn hit_line(symbol: &SymbolPath, line: u32, text: &str) -> String {
    let text: String = text.trim().chars().take(160).collect();
    format!("{symbol} line {line}: {text}")
}

/// Omits the middle of a text that exceeds the cap, and marks the omission.
pub fn cap(text: &str, most: Tokens) -> String {
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
    let tail = crate::evidence::ids::tail(text, bytes / 3);
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    format!("{head}[{left_out} bytes are not shown here; read ranges of lines to see them]\n{tail}")
}
