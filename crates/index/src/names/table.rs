//! The table of identifiers of one file. Each identifier is stored once.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use starling_syntax::normalized;

/// An identifier, as an index of the table of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NameId(pub(super) u32);

/// Identifiers, in the order of their first occurrence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table {
    text: String,
    /// The end of each identifier in `text`, as a byte offset.
    ends: Vec<u32>,
}

impl Table {
    pub(super) fn get(&self, name: NameId) -> &str {
        let index = name.0 as usize;
        let end = self.ends.get(index).copied().unwrap_or(0) as usize;
        let start = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .map_or(0, |start| *start as usize);
        // A corrupt stored table must not cause a panic.
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn find(&self, name: &str) -> Option<NameId> {
        let mut start = 0;
        for (index, end) in self.ends.iter().enumerate() {
            let end = *end as usize;
            if end - start == name.len() && self.text.as_bytes().get(start..end)? == name.as_bytes()
            {
                return u32::try_from(index).ok().map(NameId);
            }
            start = end;
        }
        None
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.get(NameId(index as u32)))
    }
}

/// A table that is being built.
#[derive(Default)]
pub(super) struct Interner<'t> {
    table: Table,
    known: FxHashMap<Cow<'t, str>, NameId>,
}

impl<'t> Interner<'t> {
    /// Adds an identifier, normalized as Python does, and returns its id.
    pub(super) fn intern(&mut self, written: &'t str) -> NameId {
        let name = normalized(written);
        if let Some(id) = self.known.get(&*name) {
            return *id;
        }
        let id = NameId(self.table.ends.len() as u32);
        self.table.text.push_str(&name);
        self.table.ends.push(self.table.text.len() as u32);
        self.known.insert(name, id);
        id
    }

    pub(super) fn get(&self, name: NameId) -> &str {
        self.table.get(name)
    }

    pub(super) fn finish(self) -> Table {
        let mut table = self.table;
        table.text.shrink_to_fit();
        table.ends.shrink_to_fit();
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_identifiers_are_stored_once() {
        let mut names = Interner::default();
        let first = names.intern("queryset");
        assert_ne!(names.intern("a_name_of_more_than_eight"), first);
        assert_eq!(names.intern("queryset"), first);
        assert_eq!(names.intern("query\u{ff53}et"), first);
        let table = names.finish();
        assert_eq!(table.get(first), "queryset");
        assert_eq!(table.find("a_name_of_more_than_eight"), Some(NameId(1)));
        assert_eq!(table.find("queryse"), None);
        assert_eq!(table.iter().count(), 2);
        assert_eq!(table.get(NameId(9)), "");
    }
}
