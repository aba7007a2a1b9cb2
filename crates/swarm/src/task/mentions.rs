//! Mentions of a name in the documents and other text files of the project, and in the docstrings and
//! comments of its code.

mod blocks;
mod elsewhere;
mod in_code;
pub(crate) mod named_files;
mod prose;
mod rst;

use crate::event::ending::{MENTIONS_MOST, StillMentioned};
use crate::lookup::Lookup;
use crate::task::stated::{ExplicitEdit, ExplicitEdits, Named};
use crate::task::whole_word::has_word;
use prose::{is_document, is_like_code, is_word, spans};
use starling_index::{Certainty, Usage, is_test_file};
use starling_syntax::FilePath;
use starling_text::ByteRange;

/// A mention of a symbol's name in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InDocument {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    /// Byte offset of the name.
    pub at: usize,
    /// Whether the name can only refer to the symbol at this position.
    pub is_sure: bool,
}

/// The symbol whose mentions are searched, and what decides whether its name may refer to something
/// else.
struct MentionedSymbol<'n> {
    name: &'n str,
    /// The modules and classes that may precede the name, separated by a dot.
    owners: Vec<String>,
    /// Whether the symbol is the only function, method or class with this name.
    is_only_callable: bool,
    /// Whether the symbol is the only definition with this name.
    is_only: bool,
}

/// Returns the mentions of a symbol in documents: all mentions in code, and mentions in prose if
/// the name does not look like an ordinary word.
pub(crate) fn in_documents(lookup: &Lookup, named: &Named) -> Vec<InDocument> {
    let mentioned = MentionedSymbol::of(lookup, named);
    let mut found = Vec::new();
    for file in lookup.files().iter().filter(|file| is_document(file)) {
        let text = lookup.index().snapshot().read(file).ok();
        if let Some(text) = text.filter(|text| has_word(text, mentioned.name)) {
            found.extend(mentioned.in_text(file, &text));
        }
    }
    found
}

/// Returns the places in documents, other text files, docstrings, comments and help texts that still mention
/// a name which the task renames or deletes and which is no longer defined. Options, keys and other strings
/// also count as names.
pub(crate) fn still_mentioned(statements: &ExplicitEdits, after: &Lookup) -> Vec<StillMentioned> {
    let one = |stated: &ExplicitEdit| {
        let named = stated.named();
        let name = named.base_name();
        let is_gone = !matches!(named, Named::File(_)) && !after.index().is_defined(name);
        let mentions = match is_gone {
            true => in_documents(after, named),
            false => Vec::new(),
        };
        let mut places: Vec<(FilePath, u32)> = mentions
            .into_iter()
            .map(|one| (one.file, one.line))
            .collect();
        if is_gone {
            places.extend(in_code::mentions(after, name));
            places.extend(elsewhere::mentions(after, name, &statements.kept));
        }
        if let Named::Word(word) = named
            && is_gone
            && !word.is_member
        {
            let mut strings = in_code::in_strings(after, name);
            strings.retain(|(file, line)| !statements.kept.hold(after, (file, *line), name));
            places.extend(strings);
        }
        places.sort();
        places.dedup();
        let first = places.iter().take(MENTIONS_MOST);
        (!places.is_empty()).then(|| StillMentioned {
            name: name.to_owned(),
            places: first.map(|(file, line)| format!("{file}:{line}")).collect(),
            count: places.len(),
        })
    };
    statements.all.iter().filter_map(one).collect()
}

fn is_markdown(file: &FilePath) -> bool {
    let name = file.name().to_lowercase();
    [".md", ".markdown"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

impl<'n> MentionedSymbol<'n> {
    fn of(lookup: &Lookup, named: &'n Named) -> Self {
        let name = named.base_name();
        let index = lookup.index();
        let (file, class) = match named {
            Named::Symbol(path) => (
                Some(&path.file),
                path.name.rsplit_once('.').map(|(of, _)| of),
            ),
            Named::Variable(variable) => (Some(&variable.file), None),
            Named::Word(_) | Named::File(_) => (None, None),
        };
        let mut modules = file.map(modules_of).unwrap_or_default();
        if class.is_none() {
            modules.extend(modules_that_import(lookup, named));
        }
        let owners = match class {
            Some(class) => {
                let in_module = modules.iter().map(|module| format!("{module}.{class}"));
                std::iter::once(class.to_owned()).chain(in_module).collect()
            }
            None => modules,
        };
        let mut callable = index.definitions(name);
        callable.retain(|one| {
            !is_test_file(&one.symbol.file) && !one.symbol.file.as_str().ends_with(".pyi")
        });
        MentionedSymbol {
            name,
            owners,
            is_only_callable: callable.len() == 1,
            is_only: file.is_some() && index.meanings(name) == 1,
        }
    }

    fn in_text(&self, file: &FilePath, text: &str) -> Vec<InDocument> {
        let mut found = Vec::new();
        let mut blocks = blocks::blocks(text);
        if is_markdown(file) {
            blocks.extend(blocks::indented(text, &blocks));
        }
        let is_rst = rst::is_rst(file);
        if is_rst {
            blocks.extend(rst::code_blocks(text));
        }
        let mut start = 0;
        for (line, written) in (1..).zip(text.split_inclusive('\n')) {
            let block = blocks.iter().find(|block| block.holds(start));
            let mut spans = spans(written);
            if is_rst {
                spans.extend(rst::documented_name(written));
            }
            for (at, _) in written.match_indices(self.name) {
                let place = ByteRange::new(at, at + self.name.len());
                let span = spans
                    .iter()
                    .find(|span| span.start <= at && place.end <= span.end);
                let is_code = block.is_some() || span.is_some();
                if !is_word(written, place) || !self.is_mention(written, place, is_code) {
                    continue;
                }
                let is_sure = match (block, span) {
                    (Some(block), _) => self.is_sure_in(block, text, start + at),
                    (None, Some(span)) => self.in_span(span.of(written), at - span.start),
                    (None, None) => false,
                };
                found.push(InDocument {
                    file: file.clone(),
                    line,
                    at: start + at,
                    is_sure,
                });
            }
            start += written.len();
        }
        found
    }

    /// Returns whether an occurrence of the name is a mention: all occurrences in code are, and in
    /// prose those that look like a name of code.
    fn is_mention(&self, line: &str, place: ByteRange, is_code: bool) -> bool {
        is_code || is_like_code(line, place, self.name)
    }

    /// Returns whether a span of code in prose is the name or a call of it. A module or class may
    /// precede the name.
    fn in_span(&self, span: &str, at: usize) -> bool {
        let (before, after) = (&span[..at], &span[at + self.name.len()..]);
        let is_called = after.starts_with('(');
        if !(after.is_empty() || is_called || after.starts_with('.')) {
            return false;
        }
        match before
            .strip_suffix('.')
            .or_else(|| before.strip_suffix("::"))
        {
            Some(owner) => self.owners.iter().any(|one| one == owner),
            None => before.is_empty() && (self.is_only || is_called && self.is_only_callable),
        }
    }
}

/// Returns the names by which text refers to a module: for `src/shop/pricing.py` its dotted
/// suffixes such as `pricing` and `shop.pricing`, and its path.
fn modules_of(file: &FilePath) -> Vec<String> {
    let path = file.as_str();
    let Some(module) = path.strip_suffix(".py") else {
        return Vec::new();
    };
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    let parts: Vec<&str> = module.split('/').collect();
    let mut names: Vec<String> = (0..parts.len())
        .map(|from| parts[from..].join("."))
        .collect();
    names.extend([path.to_owned(), file.name().to_owned()]);
    names
}

/// Returns the names of other modules that import the symbol, because it can be imported from them
/// as well.
fn modules_that_import(lookup: &Lookup, named: &Named) -> Vec<String> {
    const USES_MOST: usize = 400;
    let usages = match named {
        Named::Symbol(path) => lookup.usages(&path.to_string(), USES_MOST).found,
        Named::Variable(variable) => {
            let usages = lookup.index().variable_uses(variable);
            usages.map(|usages| usages.found).unwrap_or_default()
        }
        Named::Word(_) | Named::File(_) => Vec::new(),
    };
    let exported = format!("{0} as {0}", named.base_name());
    let is_import = |one: &&Usage| {
        let is_sure = one.certainty == Certainty::Certain && !is_test_file(&one.file);
        // `import f as f` exports the name, too.
        let is_other_name = one.text.contains(" as ") && !one.text.contains(&exported);
        one.is_import && is_sure && !is_other_name
    };
    let files = usages.iter().filter(is_import).map(|one| &one.file);
    files.flat_map(modules_of).collect()
}
