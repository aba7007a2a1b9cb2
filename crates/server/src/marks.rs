//! Where the symbols of an open document are: read from its text now and then, and moved along with
//! every edit in between, so that no request waits for a parser.

use std::path::Path;
use std::sync::Arc;

use starling_syntax::{FilePath, SymbolTree};
use starling_text::ByteRange;

/// One symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// As in its symbol path; empty for the module body.
    pub name: String,
    /// Where its definition starts, decorators included.
    pub top: usize,
    /// Where its name stands in its definition.
    pub head: usize,
    pub span: ByteRange,
}

/// A replaced range of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Splice {
    pub range: ByteRange,
    pub inserted: usize,
}

impl Splice {
    /// What turns one text into another, as one replacement.
    pub fn between(old: &str, new: &str) -> Splice {
        let same = |(a, b): &(u8, u8)| a == b;
        let front = old.bytes().zip(new.bytes()).take_while(same).count();
        let (old_rest, new_rest) = (&old.as_bytes()[front..], &new.as_bytes()[front..]);
        let backwards = old_rest.iter().rev().copied();
        let back = backwards
            .zip(new_rest.iter().rev().copied())
            .take_while(same)
            .count();
        Splice {
            range: ByteRange::new(front, old.len() - back),
            inserted: new_rest.len() - back,
        }
    }

    fn moved(&self, offset: usize) -> usize {
        let ByteRange { start, end } = self.range;
        if offset >= end {
            offset - end + start + self.inserted
        } else {
            offset.min(start)
        }
    }
}

/// The symbols of a document, outer before inner; the module body first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Arc<Vec<Mark>>);

impl Marks {
    /// Reads a text.
    pub fn read(path: &Path, text: &str) -> Marks {
        let tree = SymbolTree::parse(FilePath::new(path.to_string_lossy()), text.into());
        let mark = |symbol: &starling_syntax::Symbol| Mark {
            name: symbol.path.name.clone(),
            top: symbol.definition.start,
            head: match symbol.name.is_empty() {
                true => symbol.span.start,
                false => symbol.name.start,
            },
            span: symbol.span,
        };
        Marks(Arc::new(tree.symbols().iter().map(mark).collect()))
    }

    pub fn shift(&mut self, splice: &Splice) {
        for mark in Arc::make_mut(&mut self.0) {
            mark.top = splice.moved(mark.top);
            mark.head = splice.moved(mark.head);
            mark.span = ByteRange::new(splice.moved(mark.span.start), splice.moved(mark.span.end));
        }
    }

    /// A symbol by its name, or the innermost around it that is there.
    pub fn find(&self, name: &str) -> Option<&Mark> {
        let mut name = name;
        loop {
            if let Some(mark) = self.0.iter().find(|mark| mark.name == name) {
                return Some(mark);
            }
            name = match name.rsplit_once('.') {
                Some((outer, _)) => outer,
                None if name.is_empty() => return None,
                None => "",
            };
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter()
    }

    /// The innermost symbol at an offset.
    pub fn at(&self, offset: usize) -> Option<&Mark> {
        let around = |mark: &&Mark| {
            mark.name.is_empty() || (mark.span.start <= offset && offset < mark.span.end)
        };
        self.0
            .iter()
            .filter(around)
            .max_by_key(|mark| (!mark.name.is_empty(), mark.span.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import x\n\n\nclass C:\n    # says\n    @staticmethod\n    def m():\n        pass\n\n\ndef f():\n    return 1\n";

    fn marks() -> Marks {
        Marks::read(Path::new("/w/a.py"), TEXT)
    }

    fn head<'t>(marks: &Marks, name: &str, text: &'t str) -> &'t str {
        let rest = &text[marks.find(name).unwrap().head..];
        rest.lines().next().unwrap()
    }

    #[test]
    fn symbols_stand_at_their_names() {
        let marks = marks();
        assert_eq!(head(&marks, "C.m", TEXT), "m():");
        assert_eq!(head(&marks, "C", TEXT), "C:");
        assert_eq!(head(&marks, "", TEXT), "import x");
        assert_eq!(
            head(&marks, "C.new", TEXT),
            "C:",
            "a new one: where it will be"
        );
        assert_eq!(head(&marks, "g", TEXT), "import x");
    }

    #[test]
    fn the_innermost_symbol_is_at_a_place() {
        let marks = marks();
        let at = |what: &str| marks.at(TEXT.find(what).unwrap()).unwrap().name.clone();
        assert_eq!(at("import"), "");
        assert_eq!(at("class"), "C");
        assert_eq!(at("# says"), "C.m");
        assert_eq!(at("pass"), "C.m");
        assert_eq!(at("return"), "f");
        assert_eq!(marks.at(TEXT.len()).unwrap().name, "", "past the end");
    }

    #[test]
    fn symbols_move_with_the_text() {
        for (from, to) in [
            ("import x", "import x, y"),
            ("import x\n\n\n", ""),
            ("pass", "pass\n        pass"),
            ("def m", "async def m"),
            ("1\n", "2\n"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            let mut moved = marks();
            moved.shift(&Splice::between(TEXT, &text));
            for name in ["C", "C.m", "f"] {
                let fresh = Marks::read(Path::new("/w/a.py"), &text);
                let expected = head(&fresh, name, &text);
                assert_eq!(head(&moved, name, &text), expected, "{from} → {to}");
            }
        }
    }

    #[test]
    fn what_is_deleted_stands_where_it_was() {
        let text = TEXT.replace("def f():\n    return 1\n", "");
        let mut marks = marks();
        marks.shift(&Splice::between(TEXT, &text));
        assert_eq!(marks.find("f").unwrap().head, text.len());
    }

    #[test]
    fn a_splice_is_as_small_as_it_can_be() {
        let splice = Splice::between("abcd", "abXd");
        assert_eq!((splice.range, splice.inserted), (ByteRange::new(2, 3), 1));
        let grown = Splice::between("aa", "aaa");
        assert_eq!((grown.range, grown.inserted), (ByteRange::new(2, 2), 1));
        assert_eq!(Splice::between("a", "a").inserted, 0);
    }
}
