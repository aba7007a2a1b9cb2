//! Assigns the deletions in the scout's picks to the owners that make them.

use crate::lookup::Lookup;
use crate::protocol::Pick;
use starling_syntax::{FilePath, SymbolPath};

/// Assigns each deletion to the owner of the deleted symbol. Several deletions of one pick in the
/// same class or module become one change of its owner: separate changes of neighbouring symbols
/// would conflict, and none of them passes the checks as long as another deleted symbol uses its
/// symbol.
pub(super) fn by_owner(lookup: &Lookup, picks: Vec<Pick>) -> Vec<Pick> {
    let owners: Vec<SymbolPath> = picks.iter().filter_map(symbol_of).collect();
    let mut all: Vec<Pick> = Vec::new();
    let mut deletions: Vec<Pick> = Vec::new();
    for mut pick in picks {
        let Some(own) = symbol_of(&pick) else {
            all.push(pick);
            continue;
        };
        let (rest, others) = without_own(lookup, &own, std::mem::take(&mut pick.delete));
        let deletes_own = !rest.is_empty() && !own.is_module();
        let targets: Vec<SymbolPath> = match deletes_own {
            true => std::iter::once(own.clone())
                .chain(others.iter().cloned())
                .collect(),
            false => others.clone(),
        };
        let is_free = |owner: &SymbolPath| *owner == own || is_apart(owner, &targets);
        let container = container(&targets).filter(|_| owners.iter().all(is_free));
        match container {
            Some(container) if container == own => {
                pick.delete = rest.into_iter().chain(paths(&targets)).collect();
                pick.intended_losses = true;
                all.push(pick);
            }
            Some(container) if pick.draft().is_none() => {
                deletions.push(deletion(&container, &targets, &pick));
            }
            Some(_) | None => {
                pick.delete = rest;
                let single = |path: &SymbolPath| deletion(path, std::slice::from_ref(path), &pick);
                deletions.extend(others.iter().map(single));
                if others.is_empty() || pick.draft().is_some() {
                    all.push(pick);
                }
            }
        }
    }
    for deletion in deletions {
        match all.iter_mut().find(|pick| pick.symbol == deletion.symbol) {
            Some(pick) if pick.draft().is_none() => *pick = deletion,
            Some(pick) if deletion.delete.len() > 1 => {
                pick.delete.extend(deletion.delete);
                pick.intended_losses = true;
            }
            Some(_) => {}
            None => all.push(deletion),
        }
    }
    all
}

fn symbol_of(pick: &Pick) -> Option<SymbolPath> {
    pick.symbol.parse().ok()
}

/// Splits the deletions of a pick into names that belong to the picked symbol or are unknown, and
/// the paths of other symbols.
fn without_own(
    lookup: &Lookup,
    own: &SymbolPath,
    deleted: Vec<String>,
) -> (Vec<String>, Vec<SymbolPath>) {
    let mut rest = Vec::new();
    let mut others = Vec::new();
    for name in deleted {
        let file = FilePath::new(&name);
        let is_file = lookup.files().binary_search(&file).is_ok();
        let path = match (is_file, name.contains("::")) {
            (true, _) => Some(SymbolPath::module(file)),
            (false, true) => lookup.address(&name).ok(),
            (false, false) => Some(SymbolPath::new(own.file.clone(), &name)),
        };
        let is_other = |path: &SymbolPath| {
            path != own && (own.is_module() || !own.encloses(path)) && lookup.symbol(path).is_ok()
        };
        match path.filter(is_other) {
            Some(path) => others.push(path),
            None => rest.push(name),
        }
    }
    (rest, others)
}

/// Returns whether an owner has no part in the deleted symbols.
fn is_apart(owner: &SymbolPath, deleted: &[SymbolPath]) -> bool {
    let overlaps = |symbol: &SymbolPath| symbol.encloses(owner) || owner.encloses(symbol);
    owner.is_module() || !deleted.iter().any(overlaps)
}

/// Returns the class or module that directly contains all of several symbols; `None` if there is
/// only one symbol, or if they are in different places.
fn container(symbols: &[SymbolPath]) -> Option<SymbolPath> {
    let of = |symbol: &SymbolPath| {
        let parent = symbol
            .name
            .rsplit_once('.')
            .map_or("", |(parent, _)| parent);
        SymbolPath::new(symbol.file.clone(), parent)
    };
    let first = of(symbols.first()?);
    let are_together = symbols.len() > 1 && symbols.iter().all(|symbol| of(symbol) == first);
    are_together.then_some(first)
}

fn deletion(owner: &SymbolPath, deleted: &[SymbolPath], pick: &Pick) -> Pick {
    Pick {
        symbol: owner.to_string(),
        why: pick.why.clone(),
        delete: paths(deleted).collect(),
        intended_losses: true,
        ..Pick::default()
    }
}

fn paths(symbols: &[SymbolPath]) -> impl Iterator<Item = String> {
    symbols.iter().map(ToString::to_string)
}
