//! Where the symbols of an open document are: read from its text now and then, and moved along with
//! every edit in between, so that no request waits for a parser.

use std::path::Path;
use std::sync::Arc;

use starling_syntax::{FilePath, SymbolTree};
use starling_text::ByteRange;

/// One symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolMarker {
    /// As in its symbol path; empty for the module body.
    pub name: String,
    /// Where its definition starts, decorators included.
    pub definition_start: usize,
    /// Where its name stands in its definition.
    pub name_start: usize,
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
pub struct SymbolMarkers(Arc<Vec<SymbolMarker>>);

impl SymbolMarkers {
    /// Reads a text.
    pub fn read(path: &Path, text: &str) -> SymbolMarkers {
        let tree = SymbolTree::parse(FilePath::new(path.to_string_lossy()), text.into());
        let marker = |symbol: &starling_syntax::Symbol| SymbolMarker {
            name: symbol.path.name.clone(),
            definition_start: symbol.definition.start,
            name_start: match symbol.name.is_empty() {
                true => symbol.span.start,
                false => symbol.name.start,
            },
            span: symbol.span,
        };
        SymbolMarkers(Arc::new(tree.symbols().iter().map(marker).collect()))
    }

    pub fn shift(&mut self, splice: &Splice) {
        for marker in Arc::make_mut(&mut self.0) {
            marker.definition_start = splice.moved(marker.definition_start);
            marker.name_start = splice.moved(marker.name_start);
            marker.span = ByteRange::new(
                splice.moved(marker.span.start),
                splice.moved(marker.span.end),
            );
        }
    }

    /// A symbol by its name, or the innermost context it that is there.
    pub fn find(&self, name: &str) -> Option<&SymbolMarker> {
        let mut name = name;
        loop {
            if let Some(marker) = self.0.iter().find(|marker| marker.name == name) {
                return Some(marker);
            }
            name = match name.rsplit_once('.') {
                Some((outer, _)) => outer,
                None if name.is_empty() => return None,
                None => "",
            };
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &SymbolMarker> {
        self.0.iter()
    }

    /// The innermost symbol at an offset.
    pub fn at(&self, offset: usize) -> Option<&SymbolMarker> {
        let context = |marker: &&SymbolMarker| {
            marker.name.is_empty() || (marker.span.start <= offset && offset < marker.span.end)
        };
        self.0
            .iter()
            .filter(context)
            .max_by_key(|marker| (!marker.name.is_empty(), marker.span.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import x\n\n\nclass C:\n    # says\n    @staticmethod\n    def m():\n        pass\n\n\ndef f():\n    return 1\n";

    fn markers() -> SymbolMarkers {
        SymbolMarkers::read(Path::new("/w/a.py"), TEXT)
    }

    fn name_start<'t>(markers: &SymbolMarkers, name: &str, text: &'t str) -> &'t str {
        let rest = &text[markers.find(name).unwrap().name_start..];
        rest.lines().next().unwrap()
    }

    #[test]
    fn symbols_stand_at_their_names() {
        let markers = markers();
        assert_eq!(name_start(&markers, "C.m", TEXT), "m():");
        assert_eq!(name_start(&markers, "C", TEXT), "C:");
        assert_eq!(name_start(&markers, "", TEXT), "import x");
        assert_eq!(
            name_start(&markers, "C.new", TEXT),
            "C:",
            "a new one: where it will be"
        );
        assert_eq!(name_start(&markers, "g", TEXT), "import x");
    }

    #[test]
    fn the_innermost_symbol_is_at_a_place() {
        let markers = markers();
        let at = |what: &str| markers.at(TEXT.find(what).unwrap()).unwrap().name.clone();
        assert_eq!(at("import"), "");
        assert_eq!(at("class"), "C");
        assert_eq!(at("# says"), "C.m");
        assert_eq!(at("pass"), "C.m");
        assert_eq!(at("return"), "f");
        assert_eq!(markers.at(TEXT.len()).unwrap().name, "", "past the end");
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
            let mut moved = markers();
            moved.shift(&Splice::between(TEXT, &text));
            for name in ["C", "C.m", "f"] {
                let fresh = SymbolMarkers::read(Path::new("/w/a.py"), &text);
                let expected = name_start(&fresh, name, &text);
                assert_eq!(name_start(&moved, name, &text), expected, "{from} → {to}");
            }
        }
    }

    #[test]
    fn what_is_deleted_stands_where_it_was() {
        let text = TEXT.replace("def f():\n    return 1\n", "");
        let mut markers = markers();
        markers.shift(&Splice::between(TEXT, &text));
        assert_eq!(markers.find("f").unwrap().name_start, text.len());
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
