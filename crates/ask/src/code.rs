//! Read access to the code for models. Lines are shown with their numbers, so that they can be
//! cited.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::tools::{self, AskAction, AskRole, AskTools, CodeLookup, Executors};
use starling_core::Tokens;
use starling_dialogue::Execute;
use starling_index::{Certainty, Hit, Index, Usage, is_test_file};
use starling_swarm::reading::{
    Focus, Found, Layout, Lookup, Mention, Search, cap, chosen, numbered,
};
use starling_syntax::{FilePath, SymbolPath, outline};
use starling_workspace::{Snapshot, UnusualPaths};

/// Maximum size of one tool result.
const LOOK: Tokens = Tokens(4_500);
/// Minimum size of the part of a tool result that each target (such as a symbol to read) gets.
const LEAST: Tokens = Tokens(1_200);
const TARGETS: usize = 8;
const HITS: usize = 25;
const USES: usize = 60;
/// Maximum number of uses of a symbol to examine. The most certain uses are examined first.
const LOOKED_AT: usize = 400;
/// Maximum number of hits in tests to show.
const TEST_HITS: usize = 5;
const TEST_USES: usize = 6;

/// Read-only access to the code, without the files that the workspace does not list (ignored files
/// and secrets).
#[derive(Clone)]
pub struct CodeReader {
    files: Snapshot,
    lookup: Lookup,
}

/// Executes the tools that read code.
struct CodeToolExecutor<'a>(&'a CodeReader);

#[async_trait]
impl Execute<AskAction> for CodeToolExecutor<'_> {
    async fn execute(&self, wanted: &AskAction) -> String {
        match wanted {
            AskAction::Look(look) => self.0.look(look),
            AskAction::Question(_) => String::new(),
        }
    }
}

impl CodeReader {
    pub fn new(index: Arc<Index>) -> Self {
        let files = index.snapshot().clone();
        CodeReader {
            lookup: Lookup::new(files.clone(), index),
            files,
        }
    }

    pub fn files(&self) -> &Snapshot {
        &self.files
    }

    /// Returns the known paths that contain unusual characters.
    pub fn unusual_paths(&self) -> UnusualPaths {
        self.files.unusual_paths()
    }

    pub fn index(&self) -> &Index {
        self.lookup.index()
    }

    /// Returns the symbols that a text mentions by `@path` and `#Symbol`. An ambiguous mention
    /// returns every possible symbol.
    pub fn mentioned_in(&self, text: &str) -> Vec<SymbolPath> {
        let mentions = self.lookup.mentions_in(text).into_iter();
        let symbols = mentions.flat_map(|mention| match mention {
            Mention::One(symbol) => vec![symbol],
            Mention::Several { symbols, .. } => symbols,
            Mention::Unknown { .. } => Vec::new(),
        });
        symbols.collect()
    }

    /// Returns a symbol by its path.
    ///
    /// # Errors
    /// Returns a message for the model that lists existing alternatives.
    pub fn symbol(&self, path: &SymbolPath) -> Result<Found, String> {
        match self.listed(&path.file) || !self.exists(&path.file) {
            true => self.lookup.symbol(path),
            false => Err(format!("{} is not part of the workspace.", path.file)),
        }
    }

    /// Returns the tools of a role. They read this code; `question` executes questions to owners.
    pub fn tools<'a>(
        &'a self,
        role: AskRole,
        question: Option<Arc<dyn Execute<AskAction> + 'a>>,
    ) -> AskTools<'a> {
        let look = Some(Arc::new(CodeToolExecutor(self)) as Arc<dyn Execute<AskAction> + 'a>);
        tools::toolbox(role, Executors { look, question })
    }

    /// Runs a code-reading tool and returns its result.
    fn look(&self, look: &CodeLookup) -> String {
        match look {
            CodeLookup::Read(read) => self.read(&read.symbols),
            CodeLookup::Outline(file) => self.outline(&file.file),
            CodeLookup::Search(search) => self.search(search),
            CodeLookup::Definition(name) => self.definition(&name.name),
            CodeLookup::References(name) => self.references(&name.name, USES),
        }
    }

    fn read(&self, targets: &[String]) -> String {
        let each = Tokens((LOOK.0 / targets.len().clamp(1, TARGETS) as u64).max(LEAST.0));
        let (read, left) = targets.split_at(targets.len().min(TARGETS));
        let mut texts: Vec<String> = read
            .iter()
            .map(|target| self.read_one(self.lookup.unquoted(target), each))
            .collect();
        if !left.is_empty() {
            let left = left.join(", ");
            texts.push(format!("[{TARGETS} are read at once; left: {left}]"));
        }
        texts.join("\n")
    }

    fn read_one(&self, target: &str, most: Tokens) -> String {
        if let Ok(path) = target.parse::<SymbolPath>() {
            return match self.symbol(&path) {
                Ok(found) => self.source(&found, &Focus::default(), most),
                Err(error) => error,
            };
        }
        let (file, range) = match target.rsplit_once(':') {
            Some((file, range)) if range.starts_with(|c: char| c.is_ascii_digit()) => (file, range),
            Some(_) | None => (target, "1-150"),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.trim().parse::<usize>().unwrap_or(1).max(1);
        let last = last.trim().parse::<usize>().unwrap_or(first).max(first);
        let file = FilePath::new(file);
        match self.text(&file).and(self.lookup.tree(&file)) {
            Ok(tree) => {
                let lines = first..=last.min(tree.text().lines().count());
                let owner = tree.at_line(u32::try_from(first).unwrap_or(u32::MAX));
                let within = match owner.path.is_module() {
                    true => String::new(),
                    false => format!(" in `{}`", owner.path.name),
                };
                format!("{file}{within}\n{}", numbered(tree.text(), lines, most))
            }
            Err(error) => error,
        }
    }

    /// Returns the text of a listed file.
    fn text(&self, file: &FilePath) -> Result<Arc<str>, String> {
        match self.listed(file) {
            true => self.files.read(file).map_err(|error| error.to_string()),
            false => {
                let module = SymbolPath::module(file.clone());
                Err(self.symbol(&module).err().unwrap_or_default())
            }
        }
    }

    fn listed(&self, file: &FilePath) -> bool {
        self.files.files().binary_search(file).is_ok()
    }

    fn exists(&self, file: &FilePath) -> bool {
        self.files.read(file).is_ok()
    }

    /// Returns the numbered source of a symbol. A source that is too long is reduced to its head
    /// and the lines in focus.
    pub fn source(&self, found: &Found, focus: &Focus, most: Tokens) -> String {
        let lines = chosen(found, focus, most, Layout::Numbered);
        self.excerpt(found, lines, most)
    }

    /// Returns the chosen lines of a symbol, numbered.
    pub fn excerpt(&self, found: &Found, lines: BTreeSet<usize>, most: Tokens) -> String {
        let (first, last) = found.symbol.lines;
        let path = &found.symbol.path;
        let name = match path.is_module() {
            true => String::new(),
            false => format!(" `{path}`"),
        };
        let to_the_end = lines.last().is_some_and(|line| *line >= last as usize);
        let end = if to_the_end { "" } else { "      …\n" };
        let text = numbered(found.tree.text(), lines, most);
        format!("{}{name} lines {first}-{last}\n{text}{end}", path.file)
    }

    fn outline(&self, file: &str) -> String {
        let file = FilePath::new(file.trim_end_matches("::"));
        match self.text(&file).and(self.lookup.tree(&file)) {
            Ok(tree) => cap(&outline(&tree, 150), LOOK),
            Err(error) => error,
        }
    }

    fn search(&self, search: &Search) -> String {
        let query = &search.query;
        let within = search.path.as_deref().unwrap_or_default();
        let found = self.index().search_most(query, within, HITS);
        if found.hits.is_empty() {
            return format!("No line holds `{query}`. Try fewer or other words.");
        }
        let mut tests = 0;
        let mut wanted = |hit: &&Hit| {
            tests += usize::from(is_test_file(&hit.file));
            !is_test_file(&hit.file) || tests <= TEST_HITS
        };
        let hits: Vec<&Hit> = found.hits.iter().filter(|hit| wanted(hit)).collect();
        let mut lines: Vec<String> = hits
            .iter()
            .map(|hit| hit_line(&hit.symbol, hit.line, &hit.text))
            .collect();
        let left = found.total.saturating_sub(hits.len());
        if left > 0 {
            lines.push(format!("({left} more lines are not shown)"));
        }
        if found.held < found.words {
            let (held, words) = (found.held, found.words);
            let note = format!("(no line holds all {words} words; these hold {held})");
            lines.insert(0, note);
        }
        lines.join("\n")
    }

    fn definition(&self, name: &str) -> String {
        let found = self.index().definitions(name);
        if found.is_empty() {
            return format!("Nothing in the workspace defines `{name}`.");
        }
        let paths: Vec<String> = found.iter().map(|found| found.symbol.to_string()).collect();
        let shown = &paths[..paths.len().min(3)];
        let more = paths[shown.len()..].iter().take(20).cloned();
        let more: Vec<String> = more.collect();
        match more.is_empty() {
            true => self.read(shown),
            false => format!("{}\nAlso: {}", self.read(shown), more.join(", ")),
        }
    }

    /// Lists the uses of a symbol or name: code first, then a few tests. Marks uncertain uses.
    pub fn references(&self, name: &str, most: usize) -> String {
        let mut usages = self.index().references(name, LOOKED_AT);
        if usages.found.is_empty() {
            // No use of the full path was found, so search for the last part of the name.
            let last = name.rsplit(['.', ':']).next().unwrap_or(name);
            let last = last.split('#').next().unwrap_or(last);
            usages = self.index().references(last, LOOKED_AT);
        }
        let (tests, mut code): (Vec<Usage>, Vec<Usage>) = usages
            .found
            .into_iter()
            .partition(|usage| is_test_file(&usage.file));
        if code.is_empty() && tests.is_empty() {
            return format!("Nothing in the workspace uses `{name}`.");
        }
        let left_out = code.len().saturating_sub(most) + tests.len().saturating_sub(TEST_USES);
        code.truncate(most);
        let shown = code.iter().chain(tests.iter().take(TEST_USES));
        // If every use is uncertain, a single note replaces a note on each line.
        let by_name = shown.clone().all(is_unsure);
        let mut lines: Vec<String> = shown.map(|usage| use_line(usage, by_name)).collect();
        lines.dedup();
        if by_name {
            lines.insert(0, format!("(by name; another `{name}` may be meant)"));
        }
        if left_out > 0 || !usages.complete {
            lines.push("(more uses are not shown; tests come last)".to_owned());
        }
        lines.join("\n")
    }
}

fn is_unsure(usage: &Usage) -> bool {
    match usage.certainty {
        Certainty::Certain | Certainty::Likely => false,
        Certainty::Possible => true,
    }
}

fn use_line(usage: &Usage, by_name: bool) -> String {
    let line = hit_line(&usage.symbol, usage.line, &usage.text);
    match is_unsure(usage) && !by_name {
        true => format!("{line} (perhaps)"),
        false => line,
    }
}

/// Formats a hit as `path:12 (Class.method) text`.
fn hit_line(symbol: &SymbolPath, line: u32, text: &str) -> String {
    let text: String = text.trim().chars().take(140).collect();
    match symbol.is_module() {
        true => format!("{}:{line} {text}", symbol.file),
        false => format!("{}:{line} ({}) {text}", symbol.file, symbol.name),
    }
}
