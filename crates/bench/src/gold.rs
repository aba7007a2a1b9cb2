//! Expresses a known change as the proposals that the owners of its symbols would make.

use std::sync::Arc;

use starling_syntax::{FilePath, Place, Rewrite, Symbol, SymbolKind, SymbolTree, rewrite};
use starling_text::{ByteRange, ChangeSet};

/// Maximum number of lines of a function that is rewritten. Longer functions are patched, as agents
/// do.
const LONG_LINES: u32 = 120;

/// One owner's part of a change. Each proposal applies to the text that the previous one leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub file: FilePath,
    pub rewrite: Rewrite,
}

/// Error for a change that cannot be expressed by symbols.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {why}")]
pub struct Inexpressible {
    pub file: FilePath,
    pub why: String,
}

/// Returns the proposals that turn one text of a file into another, byte for byte.
///
/// # Errors
/// Fails if no such proposals are found.
pub fn proposals(
    file: &FilePath,
    before: &str,
    after: &str,
) -> Result<Vec<Proposal>, Inexpressible> {
    let mut why = String::new();
    for plan in [
        ProposalGranularity::Symbols,
        ProposalGranularity::Functions,
        ProposalGranularity::Lines,
    ] {
        match tried(plan, file, before, after) {
            Ok(rewrites) => {
                let proposal = |rewrite| Proposal {
                    file: file.clone(),
                    rewrite,
                };
                return Ok(rewrites.into_iter().map(proposal).collect());
            }
            Err(reason) => why = reason,
        }
    }
    Err(Inexpressible {
        file: file.clone(),
        why,
    })
}

/// How finely a known change is split into proposals, the best granularity first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProposalGranularity {
    /// Rewrites whole functions, deletes and adds symbols, then patches the lines between them.
    Symbols,
    /// Rewrites whole functions, then patches the remaining lines, including new symbols.
    Functions,
    /// Patches lines only.
    Lines,
}

fn tried(
    plan: ProposalGranularity,
    file: &FilePath,
    before: &str,
    after: &str,
) -> Result<Vec<Rewrite>, String> {
    let goal = parse(file, after);
    let mut said = Vec::new();
    let mut now = parse(file, before);
    let steps: &[fn(&SymbolTree, &SymbolTree) -> Vec<Rewrite>] = match plan {
        ProposalGranularity::Symbols => &[whole, gone, come],
        ProposalGranularity::Functions => &[whole],
        ProposalGranularity::Lines => &[],
    };
    for step in steps {
        // The steps are sequential: each is a separate proposal against the text that the previous
        // one left.
        for rewrite in step(&now, &goal) {
            now = made(&now, &rewrite)?;
            said.push(rewrite);
        }
    }
    // Then patches of several owners follow, each against the text after the previous one.
    let mut most = now.text().len() + after.len();
    while now.text().as_ref() != after && most > 0 {
        let rewrite = patch(&now, after)?;
        now = made(&now, &rewrite)?;
        said.push(rewrite);
        most -= 1;
    }
    Ok(said)
}

fn parse(file: &FilePath, text: &str) -> SymbolTree {
    SymbolTree::parse(file.clone(), Arc::from(text))
}

fn made(tree: &SymbolTree, change: &Rewrite) -> Result<SymbolTree, String> {
    let done = rewrite(tree, std::slice::from_ref(change)).map_err(|error| error.to_string())?;
    if done.text == **tree.text() {
        return Err(format!("the edit {change:?} changes nothing"));
    }
    Ok(done.tree)
}

/// Returns rewrites of the outermost functions that exist in both texts, differ, and are short
/// enough.
fn whole(now: &SymbolTree, goal: &SymbolTree) -> Vec<Rewrite> {
    let mut rewrites = Vec::new();
    let mut end = 0;
    for symbol in now.symbols() {
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
        if !is_function || symbol.span.start < end {
            continue;
        }
        end = symbol.span.end;
        let Some(wanted) = goal.find(&symbol.path.name) else {
            continue;
        };
        let (is, should) = (symbol.span.of(now.text()), wanted.span.of(goal.text()));
        if is != should && wanted.lines.1 - wanted.lines.0 < LONG_LINES {
            rewrites.push(Rewrite::Whole {
                symbol: symbol.path.name.clone(),
                source: should.to_owned(),
            });
        }
    }
    rewrites
}

/// Returns deletions of the outermost symbols that the goal lacks.
fn gone(now: &SymbolTree, goal: &SymbolTree) -> Vec<Rewrite> {
    missing(now, goal)
        .map(|symbol| Rewrite::Delete {
            symbol: symbol.path.name.clone(),
        })
        .collect()
}

/// Returns additions of the outermost symbols that only the goal has, in order.
fn come(now: &SymbolTree, goal: &SymbolTree) -> Vec<Rewrite> {
    missing(goal, now)
        .map(|symbol| {
            let (beside, place) = place_of(symbol, goal);
            Rewrite::Add {
                beside,
                place,
                source: symbol.span.of(goal.text()).to_owned(),
            }
        })
        .collect()
}

/// Returns the outermost symbols that exist only in the first tree.
fn missing<'t>(from: &'t SymbolTree, other: &'t SymbolTree) -> impl Iterator<Item = &'t Symbol> {
    let has = |symbol: &Symbol| other.find(&symbol.path.name).is_some();
    from.symbols().iter().filter(move |symbol| {
        let parent = symbol.parent.map(|parent| from.get(parent));
        !has(symbol) && parent.is_some_and(has)
    })
}

/// Returns where to add a symbol: after its previous sibling, or inside its parent if it is the
/// first child.
fn place_of(symbol: &Symbol, tree: &SymbolTree) -> (String, Place) {
    let parent = tree.get(symbol.parent.expect("a module is in every file"));
    let mut siblings = parent.children.iter().map(|id| tree.get(*id));
    let before = siblings.rfind(|sibling| sibling.span.start < symbol.span.start);
    match before {
        Some(sibling) => (sibling.path.name.clone(), Place::After),
        None if parent.path.is_module() => (String::new(), Place::After),
        None => (parent.path.name.clone(), Place::Inside),
    }
}

/// Numbers of context lines above and below a patch, in the order in which they are tried.
const CONTEXT: [(usize, usize); 13] = [
    (0, 0),
    (1, 0),
    (0, 1),
    (1, 1),
    (2, 0),
    (0, 2),
    (2, 2),
    (4, 0),
    (0, 4),
    (4, 4),
    (9, 0),
    (0, 9),
    (9, 9),
];

/// Returns the first differing lines as a patch of the symbol that owns them.
fn patch(now: &SymbolTree, after: &str) -> Result<Rewrite, String> {
    let text: &str = now.text();
    let (range, insert) = first_lines(text, after);
    let mut why = String::new();
    for (above, below) in CONTEXT {
        let around = ByteRange::new(
            lines_back(text, range.start, above),
            lines_on(text, range.end, below),
        );
        let new = format!(
            "{}{insert}{}",
            &text[around.start..range.start],
            &text[range.end..around.end]
        );
        let expected = format!("{}{new}{}", &text[..around.start], &text[around.end..]);
        let rewrite = Rewrite::Patch {
            symbol: owner_of(now, around).path.name.clone(),
            hunks: vec![(around.of(text).to_owned(), new)],
        };
        match made(now, &rewrite) {
            Ok(done) if **done.text() == expected => return Ok(rewrite),
            Ok(_) => why = "a patch operation for this edit produces another text".into(),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// Returns the first range of whole lines that differ, and its replacement.
fn first_lines(text: &str, after: &str) -> (ByteRange, String) {
    let changes = ChangeSet::between(text, after);
    let mut range = ByteRange::new(text.len(), text.len());
    let mut insert = String::new();
    let mut done = text.len();
    for (number, edit) in changes.edits().iter().enumerate() {
        let start = lines_back(text, edit.range.start, 0);
        if number == 0 {
            range = ByteRange::new(start, start);
            done = start;
        } else if start >= range.end {
            break;
        }
        insert.push_str(&text[done..edit.range.start]);
        insert.push_str(&edit.insert);
        done = edit.range.end;
        range.end = lines_on(text, done, usize::from(!is_line_start(text, done)));
    }
    insert.push_str(&text[done..range.end.max(done)]);
    range.end = range.end.max(done);
    (range, insert)
}

fn is_line_start(text: &str, offset: usize) -> bool {
    offset == 0 || text.as_bytes()[offset - 1] == b'\n'
}

/// Returns the start of the line that is `lines` lines before the line of `offset`.
fn lines_back(text: &str, offset: usize, lines: usize) -> usize {
    let mut start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    for _ in 0..lines {
        start = text[..start.saturating_sub(1)]
            .rfind('\n')
            .map_or(0, |at| at + 1);
    }
    start
}

/// Returns the end of the line that is `lines` lines after `offset`.
fn lines_on(text: &str, offset: usize, lines: usize) -> usize {
    let mut end = offset;
    for _ in 0..lines {
        end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    }
    end
}

/// Returns the innermost symbol around a range.
fn owner_of(tree: &SymbolTree, range: ByteRange) -> &Symbol {
    let mut owner = tree.owner(range.start);
    while !owner.span.covers(range) {
        let Some(parent) = owner.parent else {
            break;
        };
        owner = tree.get(parent);
    }
    owner
}

#[cfg(test)]
mod tests;
