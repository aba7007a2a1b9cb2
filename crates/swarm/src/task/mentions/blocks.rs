//! Code blocks of documents. If a name in a block can only refer to the renamed symbol, all its
//! uses in the block are renamed; otherwise the block is not changed.

use super::MentionedSymbol;
use super::prose::is_word;
use starling_text::ByteRange;

/// Languages of code blocks that may use the project's Python code, so that names in them are
/// compared with its symbols. The empty string stands for a block without a language.
const LANGUAGES: [&str; 5] = ["", "py", "pycon", "python", "python3"];

/// The lines of a code block, without its fences.
pub(super) struct CodeBlock {
    range: ByteRange,
    is_python: bool,
}

impl CodeBlock {
    pub fn new(range: ByteRange, is_python: bool) -> CodeBlock {
        CodeBlock { range, is_python }
    }

    /// Returns whether a block that names this language may use the project's Python code.
    pub fn is_python(language: &str) -> bool {
        let language = language.to_lowercase();
        let language = language.split([' ', '{', ',']).next().unwrap_or_default();
        LANGUAGES.contains(&language)
    }

    /// Returns whether the line that begins at the offset `line_start` is in the block.
    pub fn holds(&self, line_start: usize) -> bool {
        self.range.start <= line_start && line_start < self.range.end
    }
}

/// How one occurrence of the name in a block uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UseInBlock {
    /// An import from a module that defines or re-exports the symbol.
    Import,
    /// An attribute of a module or class that has the symbol, as in `pricing.total`.
    OfOwner,
    Call,
    /// Read without a call.
    Read,
    /// A definition, an assignment or an import from elsewhere: in this block, the name refers to
    /// something else.
    OtherMeaning,
    /// In a doctest example, a command line or a comment, as a keyword argument, or as an attribute
    /// of an unknown object. Such a use does not show what other uses in the block refer to.
    Other,
}

/// Returns the code blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<CodeBlock> {
    let mut found = Vec::new();
    let mut open: Option<(char, bool, usize)> = None;
    let mut start = 0;
    for written in text.split_inclusive('\n') {
        let end = start + written.len();
        let trimmed = written.trim();
        let fence = ['`', '~']
            .into_iter()
            .find(|c| trimmed.starts_with(&c.to_string().repeat(3)));
        match (fence, open) {
            (Some(fence), Some((by, is_python, from))) if fence == by => {
                let range = ByteRange::new(from, start);
                found.push(CodeBlock { range, is_python });
                open = None;
            }
            (Some(fence), None) => {
                let language = trimmed.trim_start_matches(fence).trim();
                open = Some((fence, CodeBlock::is_python(language), end));
            }
            (Some(_) | None, _) => {}
        }
        start = end;
    }
    if let Some((_, is_python, from)) = open {
        let range = ByteRange::new(from, text.len());
        found.push(CodeBlock { range, is_python });
    }
    found
}

/// Returns the code blocks of a Markdown text that are indented instead of fenced: after an empty
/// line, and not below an item of a list. Such a block may be of any language.
pub(super) fn indented(text: &str, fenced: &[CodeBlock]) -> Vec<CodeBlock> {
    let mut found: Vec<CodeBlock> = Vec::new();
    let (mut start, mut is_after_empty, mut in_list) = (0, true, false);
    for written in text.split_inclusive('\n') {
        let end = start + written.len();
        let is_empty = written.trim().is_empty();
        let is_indented = written.starts_with("    ") || written.starts_with('\t');
        let goes_on = found.last().is_some_and(|block| block.range.end == start);
        let is_fenced = fenced.iter().any(|block| block.holds(start));
        if !is_empty && !is_fenced {
            if is_indented && !in_list && (is_after_empty || goes_on) {
                found.push(CodeBlock {
                    range: ByteRange::new(start, end),
                    is_python: false,
                });
            } else if !is_indented {
                in_list = is_list_item(written.trim_start());
            }
        }
        is_after_empty = is_empty;
        start = end;
    }
    found
}

fn is_list_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with(['.', ')']);
    is_numbered || ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
}

impl MentionedSymbol<'_> {
    /// Returns whether the name at an offset can only refer to the symbol, judged by all uses of
    /// the name in the block.
    pub(super) fn is_sure_in(&self, block: &CodeBlock, text: &str, at: usize) -> bool {
        if !block.is_python {
            return false;
        }
        let own = self.use_at(block, text, at);
        if own == UseInBlock::OfOwner {
            return true;
        }
        let places = block.range.of(text).match_indices(self.name);
        let places = places.map(|(at, _)| block.range.start + at);
        let places = places.filter(|at| is_word(text, ByteRange::new(*at, *at + self.name.len())));
        let uses: Vec<UseInBlock> = places.map(|at| self.use_at(block, text, at)).collect();
        if uses.contains(&UseInBlock::OtherMeaning) {
            return false;
        }
        let is_imported = uses.contains(&UseInBlock::Import);
        let is_read = uses.contains(&UseInBlock::Read);
        let is_meant = is_imported || self.is_only || self.is_only_callable && !is_read;
        match own {
            UseInBlock::Import | UseInBlock::OfOwner => true,
            UseInBlock::Call | UseInBlock::Read => is_meant,
            UseInBlock::OtherMeaning | UseInBlock::Other => false,
        }
    }

    fn use_at(&self, block: &CodeBlock, text: &str, at: usize) -> UseInBlock {
        let before = &text[block.range.start..at];
        let after = text[at + self.name.len()..block.range.end].trim_start_matches([' ', '\t']);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let code = line.trim_start();
        let is_example = code.starts_with(">>>") || code.starts_with("...");
        // Doctest examples are renamed together with the code ([`crate::task::examples`]).
        if is_example || code.starts_with('$') || line.contains('#') {
            return UseInBlock::Other;
        }
        if let Some(module) = imported_from(before) {
            return match self.owners.iter().any(|one| one == module) {
                true => UseInBlock::Import,
                false => UseInBlock::OtherMeaning,
            };
        }
        if let Some(before) = line.strip_suffix('.') {
            let is_part = |c: char| c.is_alphanumeric() || "_.".contains(c);
            let owner = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
            return match self.owners.iter().any(|one| one == owner) {
                true => UseInBlock::OfOwner,
                false => UseInBlock::Other,
            };
        }
        let word = line
            .trim_end()
            .rsplit(|c: char| !c.is_alphanumeric())
            .next();
        let is_set = after.starts_with('=') && !after.starts_with("==");
        let is_keyword = is_set && line.trim_end().ends_with(['(', ',']);
        if is_keyword || line.matches(['"', '\'']).count() % 2 == 1 {
            return UseInBlock::Other;
        }
        if is_set || matches!(word, Some("def" | "class" | "for" | "as" | "import")) {
            return UseInBlock::OtherMeaning;
        }
        match text[at + self.name.len()..].starts_with('(') {
            true => UseInBlock::Call,
            false => UseInBlock::Read,
        }
    }
}

/// Returns the module of an unfinished `from … import` statement at the end of a text. The
/// statement may span several lines in parentheses.
fn imported_from(text: &str) -> Option<&str> {
    let start = text.rmatch_indices("from ").map(|(at, _)| at).find(|at| {
        text[..*at]
            .rsplit('\n')
            .next()
            .is_none_or(|line| line.trim().is_empty())
    })?;
    let statement = &text[start + "from ".len()..];
    let (module, names) = statement.split_once(" import ")?;
    let is_open = match names.trim_start().starts_with('(') {
        true => !names.contains(')'),
        false => !names.contains('\n'),
    };
    is_open.then(|| module.trim())
}
