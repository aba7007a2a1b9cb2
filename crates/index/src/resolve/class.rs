//! Computes the method resolution order of classes, and looks up their members.

use std::rc::Rc;

use super::resolver::Resolver;
use super::source::Source;
use super::value::{Def, Value, Variable};

/// Maximum length of a method resolution order. A longer one is truncated.
const MOST_CLASSES: usize = 200;

/// The method resolution order (MRO): a class and its ancestors in lookup order.
#[derive(Debug)]
pub(super) struct ResolutionOrder {
    pub(super) classes: Vec<Def>,
    /// Whether all base classes are classes of the workspace.
    pub(super) is_whole: bool,
}

/// The result of a member lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Found(Variable),
    /// The classes of the workspace do not define the member, but a base class from outside of the
    /// workspace may.
    Outside,
    Missing,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the MRO of a class. A cycle in the inheritance ends the order.
    pub(super) fn line(&mut self, class: Def) -> Rc<ResolutionOrder> {
        let alone = |is_whole| {
            Rc::new(ResolutionOrder {
                classes: vec![class],
                is_whole,
            })
        };
        match self.lines.get(&class) {
            Some(Some(line)) => return line.clone(),
            Some(None) => return alone(false),
            None => {}
        }
        self.lines.insert(class, None);
        let (bases, mut is_whole) = self.bases_of(class);
        let mut parts = Vec::with_capacity(bases.len() + 1);
        for base in &bases {
            let line = self.line(*base);
            is_whole &= line.is_whole;
            parts.push(line.classes.clone());
        }
        parts.push(bases);
        let mut classes = merge(class, parts);
        classes.truncate(MOST_CLASSES);
        let line = Rc::new(ResolutionOrder { classes, is_whole });
        self.lines.insert(class, Some(line.clone()));
        line
    }

    /// Returns the base classes in the workspace, and whether these are all base classes.
    fn bases_of(&mut self, class: Def) -> (Vec<Def>, bool) {
        let names = self.names(class.file);
        let Some(written) = names.class(class.symbol) else {
            return (Vec::new(), false);
        };
        let mut bases = Vec::new();
        let mut is_whole = true;
        for base in names.run(written.bases) {
            let values = self.values(class.file, *base, None);
            let found = values.iter().find_map(|value| match value {
                Value::Class(base) if *base != class => Some(*base),
                Value::Class(_)
                | Value::Module(_)
                | Value::Instance(_)
                | Value::Function(..)
                | Value::Callable(_)
                | Value::Super { .. }
                | Value::Sequence(_)
                | Value::Tuple(_)
                | Value::Outside(_) => None,
            });
            match found {
                Some(base) if !bases.contains(&base) => bases.push(base),
                Some(_) => {}
                None => is_whole &= names.last_name(*base) == "object",
            }
        }
        (bases, is_whole)
    }

    /// Looks up a member of a class or its bases.
    pub(super) fn member(&mut self, class: Def, name: &str) -> Member {
        let line = self.line(class);
        self.member_in(&line.classes, line.is_whole, name)
    }

    /// Looks up a member in the classes after `after` in the MRO of `of`.
    pub(super) fn member_after(&mut self, after: Def, of: Def, name: &str) -> Member {
        let line = self.line(of);
        let place = line.classes.iter().position(|class| *class == after);
        match place {
            Some(place) => self.member_in(&line.classes[place + 1..], line.is_whole, name),
            None if after != of => self.member_after(after, after, name),
            None => Member::Missing,
        }
    }

    fn member_in(&mut self, classes: &[Def], is_whole: bool, name: &str) -> Member {
        for class in classes {
            let names = self.names(class.file);
            let scope = names.class(class.symbol).map(|class| class.scope);
            let found = scope.and_then(|scope| self.bound(class.file, scope, name));
            if let Some(variable) = found {
                return Member::Found(variable);
            }
        }
        if is_whole {
            Member::Missing
        } else {
            Member::Outside
        }
    }
}

/// C3 linearization: a class precedes its bases, and bases keep their written order. If no such
/// order exists, the first remaining class is taken.
fn merge(class: Def, mut parts: Vec<Vec<Def>>) -> Vec<Def> {
    let mut line = vec![class];
    for part in &mut parts {
        part.reverse();
        part.retain(|base| *base != class);
    }
    loop {
        parts.retain(|part| !part.is_empty());
        let heads: Vec<Def> = parts
            .iter()
            .filter_map(|part| part.last().copied())
            .collect();
        let Some(first) = heads.first() else {
            return line;
        };
        let is_free = |head: &&Def| {
            let waits = |part: &Vec<Def>| part[..part.len() - 1].contains(head);
            !parts.iter().any(waits)
        };
        let next = *heads.iter().find(is_free).unwrap_or(first);
        for part in &mut parts {
            part.retain(|base| *base != next);
        }
        line.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::FileId;
    use super::*;
    use crate::names::SymbolNumber;

    fn class(n: u32) -> Def {
        Def {
            file: FileId(0),
            symbol: SymbolNumber(n),
        }
    }

    fn merged(parts: &[&[u32]]) -> Vec<u32> {
        let parts = parts
            .iter()
            .map(|part| part.iter().map(|n| class(*n)).collect());
        let line = merge(class(0), parts.collect());
        line.into_iter().map(|class| class.symbol.0).collect()
    }

    #[test]
    fn resolution_order_of_a_diamond_ends_with_the_common_base() {
        assert_eq!(merged(&[&[1, 3], &[2, 3], &[1, 2]]), [0, 1, 2, 3]);
    }

    #[test]
    fn inconsistent_hierarchy_still_gets_a_resolution_order() {
        assert_eq!(merged(&[&[1, 2], &[2, 1], &[1, 2]]), [0, 1, 2]);
        assert_eq!(merged(&[&[1, 0], &[1]]), [0, 1]);
        assert_eq!(merged(&[]), [0]);
    }
}
