//! Keeps sorted imports sorted: finds the position of a new statement among imports of its kind,
//! and of a new name in a statement.

use tree_sitter::Node;

use super::super::SymbolTree;
use super::super::definition::one_line;
use super::super::lines::is_blank;
use super::import::{head, is_import};
use super::standard::{ImportPosition, is_standard};

/// The kinds of imports. Blocks of imports usually hold one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImportKind {
    Standard,
    Other,
    Relative,
}

/// A sort order: returns the key of a statement.
type StatementOrder = fn(&Statement) -> (usize, bool, String, bool);
/// A sort order: returns the key of an imported name.
type NameOrder = fn(&str) -> (u8, String);

/// An import statement, as far as its position depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    kind: ImportKind,
    is_from: bool,
    /// Number of leading dots.
    dots: usize,
    /// The module in lower case, without leading dots.
    module: String,
}

impl Statement {
    /// Reads a statement of one line. Returns `None` if it is no import.
    fn of(statement: &str) -> Option<Statement> {
        let (is_from, rest) = match statement.strip_prefix("from ") {
            Some(rest) => (true, rest),
            None => (false, statement.strip_prefix("import ")?),
        };
        let written = rest.split([' ', ',', '\t']).find(|word| !word.is_empty())?;
        let module = written.trim_start_matches('.');
        let dots = written.len() - module.len();
        let kind = match dots {
            0 if is_standard(module) => ImportKind::Standard,
            0 => ImportKind::Other,
            _ => ImportKind::Relative,
        };
        Some(Statement {
            kind,
            is_from,
            dots,
            module: module.to_lowercase(),
        })
    }

    fn package(&self) -> &str {
        self.module.split('.').next().unwrap_or_default()
    }

    fn by_kind(&self) -> (usize, bool, String, bool) {
        (0, self.is_from, self.module.clone(), false)
    }

    fn by_module(&self) -> (usize, bool, String, bool) {
        (0, false, self.module.clone(), self.is_from)
    }

    fn furthest_first(&self) -> (usize, bool, String, bool) {
        (usize::MAX - self.dots, false, self.module.clone(), false)
    }

    fn closest_first(&self) -> (usize, bool, String, bool) {
        (self.dots, false, self.module.clone(), false)
    }

    fn orders(&self) -> [StatementOrder; 2] {
        match self.kind {
            ImportKind::Standard | ImportKind::Other => [Statement::by_kind, Statement::by_module],
            ImportKind::Relative => [Statement::furthest_first, Statement::closest_first],
        }
    }
}

/// Returns the position of a new import of another package or of the own one, in the last block of
/// such imports, or in that of its package. Returns `None` if there is no such block, or if it is
/// not sorted.
pub(super) fn place(tree: &SymbolTree, root: Node<'_>, statement: &str) -> Option<ImportPosition> {
    let new = Statement::of(statement).filter(|one| one.kind != ImportKind::Standard)?;
    let blocks = blocks(tree, root);
    let mut same = blocks.iter().filter(|block| block[0].1.kind == new.kind);
    let is_of_package = |block: &&Vec<(Node<'_>, Statement)>| {
        let mut packages = block.iter().map(|(_, one)| one.package());
        new.kind == ImportKind::Other && packages.any(|package| package == new.package())
    };
    let block = same.clone().rfind(is_of_package).or(same.next_back())?;
    let keys: Vec<&Statement> = block.iter().map(|(_, one)| one).collect();
    let next = position(&keys, &&new, &new.orders(), |order, one| order(one))?;
    let lines = tree.lines();
    let mark = tree.text().len() - tree.text().trim_start_matches('\u{feff}').len();
    let offset = match next {
        Some(next) => {
            let line = lines.line_of(block[next].0.start_byte());
            lines.range(line).start.max(mark)
        }
        None => {
            let last = block.last()?.0.end_byte().saturating_sub(1);
            lines.range(lines.line_of(last)).end
        }
    };
    Some(ImportPosition {
        offset,
        is_before: next.is_some(),
        is_block: false,
    })
}

/// Returns the imports at the top of a module in blocks of one kind, without blank lines in them.
fn blocks<'t>(tree: &SymbolTree, root: Node<'t>) -> Vec<Vec<(Node<'t>, Statement)>> {
    let (text, lines) = (tree.text(), tree.lines());
    let mut blocks: Vec<Vec<(Node<'t>, Statement)>> = Vec::new();
    let mut end = 0;
    for node in head(root).filter(|node| is_import(*node)) {
        let first = lines.line_of(node.start_byte());
        let is_next = !(end..first).any(|line| is_blank(lines.range(line).of(text)));
        end = lines.line_of(node.end_byte().saturating_sub(1)) + 1;
        if node.kind() == "future_import_statement" {
            continue;
        }
        let Some(statement) = Statement::of(&one_line(node, text)) else {
            continue;
        };
        match blocks.last_mut() {
            Some(block) if is_next && block[0].1.kind == statement.kind => {
                block.push((node, statement));
            }
            Some(_) | None => blocks.push(vec![(node, statement)]),
        }
    }
    blocks
}

/// Returns the index before which a new name is inserted into the names of a statement; `None` for
/// the end.
pub(super) fn place_of_name(names: &[String], new: &str) -> Option<usize> {
    let orders: [NameOrder; 3] = [
        |name| (rank(name), name.to_lowercase()),
        |name| (0, name.to_lowercase()),
        |name| (0, name.to_owned()),
    ];
    let names: Vec<&str> = names.iter().map(|name| original(name)).collect();
    position(&names, &original(new), &orders, |order, name| order(name)).flatten()
}

/// Returns the name before `as`.
fn original(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

/// Constants stand before classes, and classes before functions.
fn rank(name: &str) -> u8 {
    let is_upper = |c: char| !c.is_lowercase();
    match name.chars().next() {
        Some(_) if name.len() > 1 && name.chars().all(is_upper) => 0,
        Some(first) if first.is_uppercase() => 1,
        Some(_) | None => 2,
    }
}

/// Returns the index of the first item that stands behind the new one, by the first order in which
/// all items are sorted; `Some(None)` for the end. A single item is sorted in any order, so all of
/// them must agree. Returns `None` if no order fits.
fn position<T, O: Copy, K: Ord>(
    items: &[T],
    new: &T,
    orders: &[O],
    key: impl Fn(O, &T) -> K,
) -> Option<Option<usize>> {
    let fit = orders
        .iter()
        .copied()
        .filter(|order| items.is_sorted_by_key(|one| key(*order, one)));
    let mut places = fit.map(|order| {
        let of_new = key(order, new);
        items.iter().position(|one| of_new < key(order, one))
    });
    let first = places.next()?;
    let is_clear = items.len() > 1 || places.all(|place| place == first);
    is_clear.then_some(first)
}
