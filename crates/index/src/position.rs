//! Finds the name at a position in a file, and where that name is defined.

use super::code::Code;
use super::lookup::{Definition, definitions};
use super::resolve::{DefinedAt, Resolver};
use super::segment::hash_of;
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolTree};
use starling_workspace::{ReadError, Snapshot};

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub file: FilePath,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

/// The possible definitions of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definitions {
    /// The name as written, including its dotted prefix: `self.total`.
    pub name: String,
    pub found: Vec<Definition>,
    /// Whether the name was resolved to these definitions. Otherwise they only have the same name.
    pub certain: bool,
}

/// Error when no name can be looked up at a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoName {
    #[error("{0}")]
    Unread(#[from] ReadError),
    #[error("{file}:{line}: there is no such line; the file has {lines} lines")]
    NoSuchLine {
        file: FilePath,
        line: u32,
        lines: usize,
    },
    #[error(
        "{file}:{line}:{column}: the line ends before this column; columns are counted in characters, from 1"
    )]
    NoSuchColumn {
        file: FilePath,
        line: u32,
        column: u32,
    },
    #[error("{file}:{line}:{column}: there is no name at this position; point at an identifier")]
    NoName {
        file: FilePath,
        line: u32,
        column: u32,
    },
}

/// Returns the definitions of the name at a position.
pub(super) fn definition_at(
    code: &Code,
    snapshot: &Snapshot,
    at: &Position,
) -> Result<Definitions, NoName> {
    let tree = snapshot.tree(&at.file)?;
    let (start, end) = name_at(tree.text(), at)?;
    let of_definition = |symbol: &&Symbol| (symbol.name.start, symbol.name.end) == (start, end);
    if let Some(symbol) = tree.symbols().iter().find(of_definition) {
        let definition = Definition {
            symbol: symbol.path.clone(),
            kind: symbol.kind,
            lines: symbol.lines,
            line: tree.line_of(symbol),
        };
        return Ok(Definitions {
            name: symbol.path.name.clone(),
            found: vec![definition],
            certain: true,
        });
    }
    let name = in_class(&tree, start, dotted(tree.text(), start, end));
    let resolved = resolved(code, &tree, start);
    Ok(match resolved.is_empty() {
        true => Definitions {
            found: definitions(code, &name),
            name,
            certain: false,
        },
        false => Definitions {
            found: resolved,
            name,
            certain: true,
        },
    })
}

/// Resolves the name at an offset through imports, scopes and types.
fn resolved(code: &Code, tree: &SymbolTree, offset: usize) -> Vec<Definition> {
    let before = &tree.text()[..offset];
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
    let same = code.find(tree.file());
    if same.is_none_or(|file| code.view(file).hash != hash_of(tree.text())) {
        return Vec::new();
    }
    let found = Resolver::new(code).definition(tree.file(), line, column as u32);
    let definition = |at: DefinedAt| match at.symbol.as_ref() {
        Some(symbol) => {
            let found = code.symbol(code.number_of(symbol)?);
            Some(Definition {
                symbol: symbol.clone(),
                kind: found.kind,
                lines: found.lines,
                line: found.line,
            })
        }
        None => {
            let owner = code.owner(code.find(&at.file)?, at.line)?;
            Some(Definition {
                symbol: code.path_of(owner)?,
                kind: code.symbol(owner).kind,
                lines: (at.line, at.line),
                line: at.line,
            })
        }
    };
    found.into_iter().filter_map(definition).collect()
}

/// Returns the start and end of the identifier at a position or directly before it, as byte
/// offsets.
fn name_at(text: &str, at: &Position) -> Result<(usize, usize), NoName> {
    let Position { file, line, column } = at.clone();
    let lines = || text.split_inclusive('\n');
    let number = (line as usize).checked_sub(1);
    let Some(written) = number.and_then(|number| lines().nth(number)) else {
        let lines = lines().count();
        return Err(NoName::NoSuchLine { file, line, lines });
    };
    let begin: usize = lines().take(line as usize - 1).map(str::len).sum();
    let content = written.trim_end_matches(['\r', '\n']);
    let ends = content
        .char_indices()
        .map(|(at, _)| at)
        .chain([content.len()]);
    let offset = (column as usize)
        .checked_sub(1)
        .and_then(|column| ends.into_iter().nth(column));
    let Some(offset) = offset else {
        return Err(NoName::NoSuchColumn { file, line, column });
    };
    let start = content[..offset].rfind(|c| !is_part(c));
    let start = start.map_or(0, |at| {
        at + content[at..].chars().next().map_or(0, char::len_utf8)
    });
    let end = content[offset..]
        .find(|c| !is_part(c))
        .map_or(content.len(), |at| offset + at);
    match content[start..end].starts_with(|c: char| !c.is_numeric()) {
        true => Ok((begin + start, begin + end)),
        false => Err(NoName::NoName { file, line, column }),
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the name with its dotted prefix, such as `a.b.name`, if the prefix is on the same line.
fn dotted(text: &str, start: usize, end: usize) -> &str {
    let mut from = start;
    while let Some(before) = text[..from].strip_suffix('.') {
        let name = before.trim_end_matches(is_part);
        if name.len() == before.len() {
            break;
        }
        from = name.len();
    }
    &text[from..end]
}

/// Replaces `self.total` and `cls.total` inside a class by `Class.total`.
fn in_class(tree: &SymbolTree, offset: usize, name: &str) -> String {
    let own = ["self.", "cls."]
        .iter()
        .find_map(|own| name.strip_prefix(own));
    let around = std::iter::successors(Some(tree.owner(offset)), |symbol| {
        symbol.parent.map(|id| tree.get(id))
    });
    let class = around
        .into_iter()
        .find(|symbol| symbol.kind == SymbolKind::Class);
    match (own, class) {
        (Some(rest), Some(class)) if !rest.contains('.') => format!("{}.{rest}", class.path.name),
        (Some(_), _) | (None, _) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;
    use crate::Index;

    const CART: &str = "from tax import rate\n\nclass Cart:\n    def total(self):\n        é = self.sum() + tax.rate(1)\n    \
                        def sum(self): pass\n\ndef sum(): pass\n";

    fn look(line: u32, column: u32) -> Result<Definitions, NoName> {
        let texts = [
            ("cart.py", CART),
            ("tax.py", "def rate(x): pass\n"),
            ("b.py", "def rate(): pass\n"),
        ];
        let file = FilePath::new("cart.py");
        let index = Index::new(snapshot_of(&texts));
        index.definition_at(&Position { file, line, column })
    }

    /// Checks the name, the symbols, and whether the result is certain.
    fn check(line: u32, column: u32, name: &str, symbols: &[&str], certain: bool) {
        let found = look(line, column).unwrap();
        let paths: Vec<String> = found
            .found
            .iter()
            .map(|one| one.symbol.to_string())
            .collect();
        assert_eq!((found.name.as_str(), found.certain), (name, certain));
        assert_eq!(paths, symbols);
    }

    #[test]
    fn dotted_name_is_resolved_at_the_cursor() {
        // A parameter is reported as defined in its function.
        check(5, 13, "self", &["cart.py::Cart.total"], true);
        check(5, 18, "Cart.sum", &["cart.py::Cart.sum"], true);
        // `tax` is not imported, so it is found only by its name.
        check(5, 31, "tax.rate", &["tax.py::rate"], false);
        check(1, 17, "rate", &["tax.py::rate"], true);
        // The cursor may be directly after the name.
        check(1, 21, "rate", &["tax.py::rate"], true);
    }

    #[test]
    fn name_in_a_definition_resolves_to_that_definition() {
        check(8, 5, "sum", &["cart.py::sum"], true);
        check(3, 7, "Cart", &["cart.py::Cart"], true);
    }

    #[test]
    fn position_without_a_name_returns_a_descriptive_error() {
        let message = |line, column| look(line, column).unwrap_err().to_string();
        assert_eq!(
            message(2, 1),
            "cart.py:2:1: there is no name at this position; point at an identifier"
        );
        assert!(
            message(5, 36).contains("there is no name at this position"),
            "{}",
            message(5, 36)
        );
        assert!(message(99, 1).contains("the file has 8 lines"));
        assert!(message(0, 1).contains("the file has 8 lines"));
        assert!(message(2, 2).contains("the line ends before this column"));
        assert!(message(2, 0).contains("columns are counted in characters"));
    }
}
