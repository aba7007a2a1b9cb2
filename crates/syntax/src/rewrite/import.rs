//! Adds imports to the module body.

use std::sync::Arc;

use tree_sitter::Node;

use super::super::definition::{one_line, range_of};
use super::super::lines::is_blank;
use super::super::{Language, SymbolTree};
use super::order;
use super::place::CodeStyle;
use super::standard::{self, ImportPosition};
use super::{RewriteError, TextReplacement};
use starling_text::ByteRange;

/// One imported name of an import statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    /// The module of `from module import …`; `None` for `import …`.
    module: Option<String>,
    /// The name as written, including `as`.
    name: String,
}

impl Import {
    /// Returns whether one import statement can import both names. `*` needs its own statement.
    fn joins(&self, other: &Import) -> bool {
        self.module.is_some()
            && self.module == other.module
            && self.name != "*"
            && other.name != "*"
    }

    fn is_future(&self) -> bool {
        self.module.as_deref() == Some("__future__")
    }
}

pub(super) fn plan(
    tree: &SymbolTree,
    statements: &[String],
) -> Result<Vec<TextReplacement>, RewriteError> {
    if tree.language() == Language::Plain {
        return Err(RewriteError::NoGrammar {
            file: tree.file().clone(),
        });
    }
    let Some(root) = tree.root() else {
        return Ok(Vec::new());
    };
    let text = tree.text();
    let there: Vec<Import> = available(root, text);
    let mut wanted: Vec<Import> = Vec::new();
    for statement in statements {
        for import in read(tree, statement)? {
            if !there.contains(&import) && !wanted.contains(&import) {
                wanted.push(import);
            }
        }
    }
    let mut groups: Vec<(Option<Node<'_>>, Vec<Import>)> = Vec::new();
    for import in wanted {
        let home = mergeable(root, text, &import);
        let same = groups
            .iter_mut()
            .find(|(group, imports)| match (group, home) {
                (Some(group), Some(home)) => group.id() == home.id(),
                (None, None) => imports[0].joins(&import),
                (Some(_), None) | (None, Some(_)) => false,
            });
        match same {
            Some((_, imports)) => imports.push(import),
            None => groups.push((home, vec![import])),
        }
    }
    Ok(plans(tree, root, &groups))
}

fn plans(
    tree: &SymbolTree,
    root: Node<'_>,
    groups: &[(Option<Node<'_>>, Vec<Import>)],
) -> Vec<TextReplacement> {
    let mut plans = Vec::new();
    let (mut futures, mut others, mut relative) = (Vec::new(), Vec::new(), Vec::new());
    let mut placed: Vec<(ImportPosition, String)> = Vec::new();
    for (home, imports) in groups {
        let names: Vec<&str> = imports.iter().map(|import| import.name.as_str()).collect();
        let names = names.join(", ");
        match (home, &imports[0].module) {
            (Some(home), _) => plans.extend(with_names(*home, tree.text(), imports)),
            (None, Some(module)) if imports[0].is_future() => {
                futures.push(format!("from {module} import {names}"));
            }
            (None, Some(module)) if module.starts_with('.') => {
                let statement = format!("from {module} import {names}");
                match order::place(tree, root, &statement) {
                    Some(at) => placed.push((at, statement)),
                    None => relative.push(statement),
                }
            }
            (None, module) => {
                let statement = match module {
                    Some(module) => format!("from {module} import {names}"),
                    None => format!("import {names}"),
                };
                let at = standard::place(tree, root, &statement)
                    .or_else(|| order::place(tree, root, &statement));
                match at {
                    Some(at) => placed.push((at, statement)),
                    None => others.push(statement),
                }
            }
        }
    }
    let last_future = head(root)
        .filter(|node| node.kind() == "future_import_statement")
        .last();
    let last_import = head(root).filter(|node| is_import(*node)).last();
    let last_absolute = head(root)
        .filter(|node| is_import(*node) && !is_relative(*node))
        .last();
    if last_absolute.is_none() {
        futures.append(&mut others);
    }
    if last_import.is_none()
        || last_import.map(|node| node.id()) == last_absolute.map(|node| node.id())
    {
        // `others` and `relative` are inserted at the same position, so they must be in one
        // replacement.
        let at = if last_import.is_none() {
            &mut futures
        } else {
            &mut others
        };
        at.append(&mut relative);
    }
    plans.extend(new_lines(tree, root, last_future, &futures));
    plans.extend(new_lines(tree, root, last_absolute, &others));
    plans.extend(new_lines(tree, root, last_import, &relative));
    with_placed(tree, plans, placed)
}

/// Adds the statements whose position in the block of standard library imports is known. Statements
/// with the same position become one replacement. They come before other lines that are inserted at
/// the same position, but after `__future__` imports.
fn with_placed(
    tree: &SymbolTree,
    mut plans: Vec<TextReplacement>,
    mut placed: Vec<(ImportPosition, String)>,
) -> Vec<TextReplacement> {
    let text = tree.text();
    let line_break = CodeStyle::of(tree, tree.module()).line_break;
    // `import` statements come before `from` statements.
    placed.sort_by_key(|(at, statement)| {
        let is_from = statement.starts_with("from ");
        (at.offset, at.is_before, is_from, statement.to_lowercase())
    });
    for same in placed.chunk_by(|one, next| one.0.offset == next.0.offset) {
        let at = same[0].0;
        let is_at_end = at.offset == text.len() && !text.ends_with('\n');
        let line = |statement: &String| match is_at_end {
            true => format!("{line_break}{statement}"),
            false => format!("{statement}{line_break}"),
        };
        let mut insert: String = same.iter().map(|(_, statement)| line(statement)).collect();
        if at.is_block {
            insert.push_str(line_break);
        }
        let range = ByteRange::new(at.offset, at.offset);
        match plans.iter_mut().find(|plan| plan.range == range) {
            Some(plan) if plan.insert.trim_start().starts_with("from __future__") => {
                plan.insert.push_str(&insert);
            }
            Some(plan) => plan.insert.insert_str(0, &insert),
            None => plans.push(TextReplacement { range, insert }),
        }
    }
    plans
}

/// Returns whether a statement has the form `from .module import …`.
fn is_relative(node: Node<'_>) -> bool {
    let module = node.child_by_field_name("module_name");
    module.is_some_and(|module| module.kind() == "relative_import")
}

/// Returns the text of a module without its top-level imports and without empty lines.
pub fn without_imports(tree: &SymbolTree) -> String {
    let text = tree.text();
    let Some(root) = tree.root() else {
        return text.to_string();
    };
    let (mut rest, mut end) = (String::new(), 0);
    let mut cursor = root.walk();
    for import in root
        .named_children(&mut cursor)
        .filter(|node| is_import(*node))
    {
        rest.push_str(&text[end..import.start_byte()]);
        end = import.end_byte();
    }
    rest.push_str(&text[end..]);
    let lines = rest.lines().filter(|line| !is_blank(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the statements at the top of a module, up to the first definition.
pub(super) fn head<'t>(root: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    (0..root.named_child_count())
        .filter_map(move |index| root.named_child(index as u32))
        .filter(|node| !node.is_extra())
        .take_while(|node| {
            !matches!(
                node.kind(),
                "function_definition" | "class_definition" | "decorated_definition"
            )
        })
}

/// Returns the top-level import statements of a module, in text order.
pub fn module_imports(tree: &SymbolTree) -> Vec<ByteRange> {
    let Some(root) = tree.root() else {
        return Vec::new();
    };
    let children = 0..root.named_child_count();
    let nodes = children.filter_map(|index| root.named_child(index as u32));
    let imports = nodes.filter(|node| is_import(*node));
    imports.map(range_of).collect()
}

pub(super) fn is_import(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "import_statement" | "import_from_statement" | "future_import_statement"
    )
}

/// Plans the insertion of lines after `last`, or else after the docstring, or else at
/// the top of the code.
fn new_lines(
    tree: &SymbolTree,
    root: Node<'_>,
    last: Option<Node<'_>>,
    statements: &[String],
) -> Option<TextReplacement> {
    if statements.is_empty() {
        return None;
    }
    let text = tree.text();
    let line_break = CodeStyle::of(tree, tree.module()).line_break;
    let joined = statements.join(line_break);
    let docstring = tree
        .module()
        .doc
        .is_some()
        .then(|| head(root).next())
        .flatten();
    let lines = tree.lines();
    let at = match last.or(docstring) {
        Some(node) => {
            lines
                .range(lines.line_of(node.end_byte().saturating_sub(1)))
                .end
        }
        None => top(tree, root),
    };
    let (before, after) = (&text[..at], &text[at..]);
    let mut insert = String::new();
    if !before.is_empty() && !before.ends_with('\n') && before != "\u{feff}" {
        insert.push_str(line_break);
    }
    if last.is_none() && docstring.is_some() {
        insert.push_str(line_break);
    }
    insert.push_str(&joined);
    if !after.is_empty() || before.is_empty() || before.ends_with('\n') {
        insert.push_str(line_break);
    }
    let follows = after.lines().next().is_some_and(|line| !is_blank(line));
    if last.is_none() && follows {
        insert.push_str(line_break);
    }
    Some(TextReplacement {
        range: ByteRange::new(at, at),
        insert,
    })
}

/// Returns the offset of the first statement. If a symbol is first, this is the start of its
/// comments.
fn top(tree: &SymbolTree, root: Node<'_>) -> usize {
    let mut cursor = root.walk();
    let first = root
        .named_children(&mut cursor)
        .find(|node| !node.is_extra());
    let Some(first) = first else {
        return tree.text().len();
    };
    let owner = tree.owner(first.start_byte());
    if !owner.path.is_module() {
        return owner.span.start;
    }
    let start = tree
        .lines()
        .range(tree.lines().line_of(first.start_byte()))
        .start;
    start.max(tree.text().len() - tree.text().trim_start_matches('\u{feff}').len())
}

/// Returns the names imported at the top level of the module or in a top-level `try`.
fn available(root: Node<'_>, text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "try_statement" => open.push(child),
                "block" if node.kind() == "try_statement" => open.push(child),
                _ if is_import(child) => found.extend(imports_of(child, text)),
                _ => {}
            }
        }
    }
    found
}

fn imports_of(statement: Node<'_>, text: &str) -> Vec<Import> {
    let module = match statement.kind() {
        "future_import_statement" => Some("__future__".to_owned()),
        "import_from_statement" => statement
            .child_by_field_name("module_name")
            .map(|module| one_line(module, text).replace(' ', "")),
        _ => None,
    };
    let mut cursor = statement.walk();
    let mut names: Vec<String> = statement
        .children_by_field_name("name", &mut cursor)
        .map(|name| {
            let written = one_line(name, text);
            written.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect();
    if statement
        .named_children(&mut cursor)
        .any(|child| child.kind() == "wildcard_import")
    {
        names.push("*".to_owned());
    }
    names
        .into_iter()
        .map(|name| Import {
            module: module.clone(),
            name,
        })
        .collect()
}

fn read(tree: &SymbolTree, statement: &str) -> Result<Vec<Import>, RewriteError> {
    let refused = || RewriteError::NotAnImport {
        statement: statement.to_owned(),
    };
    let parsed = SymbolTree::parse(tree.file().clone(), Arc::from(statement.trim()));
    let root = parsed
        .root()
        .filter(|root| !root.has_error())
        .ok_or_else(refused)?;
    let mut imports = Vec::new();
    let mut cursor = root.walk();
    for node in root
        .named_children(&mut cursor)
        .filter(|node| !node.is_extra())
    {
        if !is_import(node) {
            return Err(refused());
        }
        imports.extend(imports_of(node, parsed.text()));
    }
    if imports.is_empty() {
        return Err(refused());
    }
    Ok(imports)
}

/// Returns a one-line import statement at the top of the module that imports from the same module.
fn mergeable<'t>(root: Node<'t>, text: &str, import: &Import) -> Option<Node<'t>> {
    if import.name == "*" || import.module.is_none() {
        return None;
    }
    head(root).find(|node| {
        let there = imports_of(*node, text);
        is_import(*node)
            && !range_of(*node).of(text).contains('\n')
            && there
                .first()
                .is_some_and(|first| first.module == import.module)
            && there.iter().all(|there| there.name != "*")
    })
}

/// Adds names to a statement, in the sort order of its names.
fn with_names(statement: Node<'_>, text: &str, imports: &[Import]) -> Vec<TextReplacement> {
    let mut cursor = statement.walk();
    let nodes: Vec<Node<'_>> = statement
        .children_by_field_name("name", &mut cursor)
        .collect();
    let written: Vec<String> = nodes.iter().map(|node| one_line(*node, text)).collect();
    let end = nodes.last().map_or(statement.end_byte(), Node::end_byte);
    let mut plans: Vec<TextReplacement> = Vec::new();
    for import in imports {
        let next = order::place_of_name(&written, &import.name);
        let (at, insert) = match next {
            Some(next) => (nodes[next].start_byte(), format!("{}, ", import.name)),
            None => (end, format!(", {}", import.name)),
        };
        let range = ByteRange::new(at, at);
        match plans.iter_mut().find(|plan| plan.range == range) {
            Some(plan) => plan.insert.push_str(&insert),
            None => plans.push(TextReplacement { range, insert }),
        }
    }
    plans
}
