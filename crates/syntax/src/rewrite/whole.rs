//! Replaces a whole symbol.

use super::super::{Symbol, SymbolKind, SymbolTree};
use super::check::flaws_alone;
use super::module_body;
use super::place::{CodeStyle, indent_at};
use super::source::Source;
use super::{RewriteError, TextReplacement};
use starling_text::ByteRange;

pub(super) fn plan(
    tree: &SymbolTree,
    symbol: &Symbol,
    written: &str,
) -> Result<TextReplacement, RewriteError> {
    if symbol.kind == SymbolKind::Module {
        return module(tree, written);
    }
    let old = symbol.span.of(tree.text());
    let manner = CodeStyle::of(tree, symbol);
    if written == old {
        return Ok(TextReplacement {
            range: symbol.span,
            insert: written.to_owned(),
        });
    }
    let source = Source::read(tree.file(), written, &manner);
    if flaws_alone(tree, symbol.span).is_empty() {
        source.check_syntax(&symbol.path.name)?;
    }
    let source = source.unwrapped(&classes_around(tree, symbol)).close_up();
    let new = only_definition(symbol, &source)?;
    let has_comments = new.span.start != new.definition.start;
    let start = if has_comments {
        symbol.span.start
    } else {
        symbol.definition.start - indent_at(tree, symbol.definition.start).len()
    };
    let mut insert = source.fitted(&manner);
    if old.ends_with('\n') {
        insert.push_str(manner.line_break);
    }
    Ok(TextReplacement {
        range: ByteRange::new(start, symbol.span.end),
        insert,
    })
}

/// Replaces the whole text of a file that has no symbols, or the statements of a module around its
/// definitions.
fn module(tree: &SymbolTree, written: &str) -> Result<TextReplacement, RewriteError> {
    let module = tree.module();
    let mut insert = match module.children.is_empty() {
        true => written.replace("\r\n", "\n"),
        false => module_body::text(tree, written)?,
    };
    let line_break = CodeStyle::of(tree, module).line_break;
    if tree.text().ends_with('\n') && !insert.is_empty() && !insert.ends_with('\n') {
        insert.push('\n');
    }
    if line_break != "\n" {
        insert = insert.replace('\n', line_break);
    }
    Ok(TextReplacement {
        range: module.span,
        insert,
    })
}

/// Returns the classes around a symbol, which a model may repeat in the source. A class with the
/// symbol's own name is left out, because a definition with that name in the source is the symbol
/// itself.
fn classes_around<'t>(tree: &'t SymbolTree, symbol: &Symbol) -> Vec<&'t Symbol> {
    let parent = |symbol: &Symbol| symbol.parent.map(|id| tree.get(id));
    std::iter::successors(parent(symbol), |around| parent(around))
        .take_while(|around| around.kind == SymbolKind::Class)
        .filter(|around| around.contract.name != symbol.contract.name)
        .collect()
}

/// Checks that the source contains exactly one definition and returns it.
fn only_definition<'s>(symbol: &Symbol, source: &'s Source) -> Result<&'s Symbol, RewriteError> {
    let tree = &source.tree;
    let name = || symbol.path.name.clone();
    let definitions = &tree.module().children;
    let [only] = definitions[..] else {
        if definitions.is_empty() {
            return Err(RewriteError::NoDefinition { symbol: name() });
        }
        let names: Vec<String> = definitions
            .iter()
            .map(|id| format!("`{}`", tree.get(*id).contract.name))
            .collect();
        return Err(RewriteError::ManyDefinitions {
            symbol: name(),
            names: names.join(", "),
        });
    };
    for range in tree.own_ranges(tree.module()) {
        let text = range.of(tree.text());
        let blank = text.len() - text.trim_start().len();
        if blank < text.len() {
            return Err(source.outside(&symbol.path.name, range.start + blank));
        }
    }
    let only = tree.get(only);
    if (only.kind == SymbolKind::Class) != (symbol.kind == SymbolKind::Class) {
        return Err(RewriteError::OtherKind {
            symbol: name(),
            old: word(symbol.kind),
            new: word(only.kind),
        });
    }
    Ok(only)
}

fn word(kind: SymbolKind) -> &'static str {
    match kind {
        SymbolKind::Module => "module",
        SymbolKind::Class => "class",
        SymbolKind::Function | SymbolKind::Method => "function",
    }
}
