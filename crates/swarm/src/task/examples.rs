//! Finds uses of a name in doctest examples (`>>> f(1)`) of docstrings and documents. The examples
//! are appended to the code of their module, as doctest runs them, and the index resolves their
//! names there.

use std::collections::BTreeMap;

use crate::lookup::Lookup;
use crate::task::whole_word::is_word_at;
use starling_index::{Certainty, Index, Usage, undefined_names};
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_text::ByteRange;

const PROMPTS: [&str; 2] = [">>>", "..."];
/// Extensions of documents with examples.
const DOCUMENTS: [&str; 3] = [".md", ".rst", ".txt"];
/// Indentation of an example inside the function that is generated for it.
const INDENT: &str = "    ";

/// The examples that mention certain names, converted to code in a separate workspace.
pub(crate) struct Examples {
    /// Index of the separate workspace; `None` if no example mentions one of the names.
    pub index: Option<Index>,
    files: BTreeMap<FilePath, ExampleCode>,
}

/// The code that is generated from the examples of one file.
struct ExampleCode {
    /// The file that contains the examples.
    file: FilePath,
    text: String,
    /// For each line of `text` (counted from 1) that comes from an example: that line in the
    /// original file.
    lines: BTreeMap<u32, ExampleLine>,
}

/// A line of an example.
#[derive(Clone, Copy)]
struct ExampleLine {
    /// Line in the original file, counted from 1.
    line: u32,
    /// Byte offset in the original line at which the code of the example begins.
    column: usize,
    length: usize,
    /// Number of bytes by which the generated line is indented.
    indent: usize,
}

impl Examples {
    /// Returns the examples of docstrings and documents that mention a name.
    pub fn of(lookup: &Lookup, name: &str) -> Self {
        Examples::that(lookup, &[name], is_document)
    }

    /// Returns the examples of docstrings that mention one of the names.
    pub fn of_docstrings(lookup: &Lookup, names: &[&str]) -> Self {
        Examples::that(lookup, names, |_| false)
    }

    fn that(lookup: &Lookup, names: &[&str], is_document: impl Fn(&FilePath) -> bool) -> Self {
        let world = lookup.index().snapshot();
        let mut files = BTreeMap::new();
        for file in world.files() {
            let is_code = Language::of(file) == Language::Python;
            if !is_code && !is_document(file) {
                continue;
            }
            let text = world.read(file).ok();
            let has_both = |text: &str| {
                text.contains(PROMPTS[0]) && names.iter().any(|name| text.contains(name))
            };
            if !text.is_some_and(|text| has_both(&text)) {
                continue;
            }
            let Ok(tree) = lookup.tree(file) else {
                continue;
            };
            let (place, laid) = match is_code {
                true => (file.clone(), of_module(&tree)),
                false => (
                    FilePath::new(format!("{file}.examples.py")),
                    of_document(&tree),
                ),
            };
            let mentions =
                |line: &ExampleLine| names.iter().any(|name| has_word(&tree, *line, name));
            if laid.lines.values().any(mentions) {
                files.insert(place, laid);
            }
        }
        let world = files.iter().fold(world.clone(), |world, (file, laid)| {
            world.with(file.clone(), Some(laid.text.as_str().into()))
        });
        let index = (!files.is_empty()).then(|| lookup.index().after(world));
        Examples { index, files }
    }

    /// Returns the generated code of each file with examples.
    pub fn code(&self) -> impl Iterator<Item = SymbolTree> {
        self.files
            .iter()
            .map(|(file, laid)| SymbolTree::parse(file.clone(), laid.text.as_str().into()))
    }

    /// Returns the file and line in the original file for a line of the generated code; `None` if
    /// the line does not come from an example.
    pub fn place(&self, file: &FilePath, line: u32) -> Option<(FilePath, u32)> {
        let laid = self.files.get(file)?;
        let original = laid.lines.get(&line)?;
        Some((laid.file.clone(), original.line))
    }

    /// Moves the given uses of a name to their positions in the original files, and adds uses in
    /// examples that the index cannot resolve. If a document does not import the name, the name is
    /// assumed to refer to the project's symbol.
    pub fn uses(&self, lookup: &Lookup, found: Vec<Usage>, name: &str) -> Vec<Usage> {
        let mut uses: Vec<Usage> = found
            .into_iter()
            .filter_map(|usage| self.moved(lookup, usage))
            .collect();
        for (file, laid) in &self.files {
            let tree = SymbolTree::parse(file.clone(), laid.text.as_str().into());
            if !undefined_names(&tree).contains(name) {
                continue;
            }
            let certainty = match Language::of(&laid.file) {
                Language::Python => Certainty::Possible,
                Language::Plain => Certainty::Certain,
            };
            for place in starling_syntax::references(&tree, name) {
                let start = tree.line_starts().get(place.line as usize - 1);
                let column = place.range.start - start.copied().unwrap_or_default();
                let is_attribute = tree.text()[..place.range.start].ends_with('.');
                let usage = Usage {
                    file: file.clone(),
                    line: place.line,
                    column: column as u32,
                    text: String::new(),
                    symbol: SymbolPath::module(file.clone()),
                    is_call: place.is_call,
                    is_import: place.is_import,
                    certainty,
                };
                let usage = self.moved(lookup, usage).filter(|_| !is_attribute);
                uses.extend(usage.filter(|usage| !is_known(&uses, usage)));
            }
        }
        uses
    }

    /// Maps a use in the generated code to its position in the original file; returns `None` if the
    /// use is not in an example.
    fn moved(&self, lookup: &Lookup, usage: Usage) -> Option<Usage> {
        let laid = self.files.get(&usage.file)?;
        let line = laid.lines.get(&usage.line)?;
        let column = usage.column as usize - line.indent + line.column;
        let tree = lookup.tree(&laid.file).ok()?;
        let start = tree.line_starts().get(line.line as usize - 1)?;
        Some(Usage {
            file: laid.file.clone(),
            line: line.line,
            column: column as u32,
            symbol: tree.owner(start + column).path.clone(),
            ..usage
        })
    }
}

fn is_document(file: &FilePath) -> bool {
    DOCUMENTS.iter().any(|end| file.as_str().ends_with(end))
}

fn is_known(uses: &[Usage], usage: &Usage) -> bool {
    let place = |one: &Usage| (one.file.clone(), one.line, one.column);
    uses.iter().any(|one| place(one) == place(usage))
}

fn has_word(tree: &SymbolTree, line: ExampleLine, name: &str) -> bool {
    let code = line.code(tree);
    let mut places = code.match_indices(name);
    places.any(|(at, _)| is_word_at(code, at, name))
}

impl ExampleLine {
    fn code(self, tree: &SymbolTree) -> &str {
        let start = tree.line_starts().get(self.line as usize - 1);
        let start = start.copied().unwrap_or_default() + self.column;
        tree.text()
            .get(start..start + self.length)
            .unwrap_or_default()
    }
}

/// Generates the code in which a module's docstring examples are resolved: the module's code,
/// followed by one function for each docstring.
fn of_module(tree: &SymbolTree) -> ExampleCode {
    let text = tree.text();
    let mut laid = ExampleCode {
        file: tree.file().clone(),
        text: text.to_string(),
        lines: BTreeMap::new(),
    };
    if !laid.text.ends_with('\n') {
        laid.text.push('\n');
    }
    for (number, string) in tree.strings().iter().enumerate() {
        let lines = example_lines(tree, *string);
        if lines.is_empty() {
            continue;
        }
        laid.text.push_str(&format!(
            "def _starling_examples_{number}():\n{INDENT}pass\n"
        ));
        laid.add(tree, &lines, INDENT);
    }
    laid
}

/// Generates one module from a document's examples.
fn of_document(tree: &SymbolTree) -> ExampleCode {
    let mut laid = ExampleCode {
        file: tree.file().clone(),
        text: String::new(),
        lines: BTreeMap::new(),
    };
    let whole = ByteRange::new(0, tree.text().len());
    laid.add(tree, &example_lines(tree, whole), "");
    laid
}

impl ExampleCode {
    fn add(&mut self, tree: &SymbolTree, lines: &[ExampleLine], indent: &str) {
        let mut number = self.text.lines().count() as u32;
        for line in lines {
            number += 1;
            self.text.push_str(indent);
            self.text.push_str(line.code(tree));
            self.text.push('\n');
            let indent = indent.len();
            self.lines.insert(number, ExampleLine { indent, ..*line });
        }
    }
}

/// Returns the example lines in a range of a text.
fn example_lines(tree: &SymbolTree, range: ByteRange) -> Vec<ExampleLine> {
    let text = tree.text();
    let starts = tree.line_starts();
    let first = starts.partition_point(|start| *start <= range.start);
    let mut lines = Vec::new();
    let mut is_open = false;
    for (number, start) in (first..).zip(starts.iter().skip(first.saturating_sub(1))) {
        if *start >= range.end {
            break;
        }
        let rest = &text[*start..];
        let whole = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let written = whole
            .trim_start()
            .trim_start_matches(['"', '\'', 'r', 'R'])
            .trim_start();
        let prompt = PROMPTS.iter().find(|prompt| written.starts_with(**prompt));
        let code = prompt.map(|prompt| &written[prompt.len()..]);
        let code = code.filter(|code| code.is_empty() || code.starts_with(' '));
        is_open = code.is_some() && (is_open || prompt == Some(&PROMPTS[0]));
        if let Some(code) = code.filter(|_| is_open) {
            let code = code.strip_prefix(' ').unwrap_or(code);
            let column = whole.len() - code.len();
            // The closing quotes of a docstring are not code.
            let over = (*start + whole.len() + 1).saturating_sub(range.end);
            let code = match over > 0 && range.end < text.len() {
                true => code[..(code.len() + 1).saturating_sub(over)].trim_end_matches(['"', '\'']),
                false => code,
            };
            lines.push(ExampleLine {
                line: number as u32,
                column,
                length: code.len(),
                indent: 0,
            });
        }
    }
    lines
}
