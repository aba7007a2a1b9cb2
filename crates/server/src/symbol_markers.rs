//! The positions of the symbols of an open document. The document is parsed now and then, and the
//! markers move with every edit in between, so that no request waits for the parser.

use std::path::Path;
use std::sync::Arc;

use starling_syntax::{FilePath, SymbolTree};
use starling_text::ByteRange;

/// The position of one symbol. Offsets are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolMarker {
    /// The name in the symbol path; empty for the module body.
    pub name: String,
    /// Where the definition starts, decorators included.
    pub definition_start: usize,
    /// Where the name starts in the definition.
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
    /// Returns the single replacement that turns `old` into `new`.
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

/// The symbols of a document, outer before inner. The module body is first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolMarkers(Arc<Vec<SymbolMarker>>);

impl SymbolMarkers {
    /// Parses a text.
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

    /// Returns a symbol by its name, or the innermost enclosing symbol that exists.
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

    /// Returns the innermost symbol at an offset.
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
    fn marker_contains_the_position_of_the_symbol_name() {
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
    fn innermost_symbol_at_an_offset_is_found() {
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
    fn symbol_markers_move_with_edits() {
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
    fn deleted_symbol_keeps_its_position() {
        let text = TEXT.replace("def f():\n    return 1\n", "");
        let mut markers = markers();
        markers.shift(&Splice::between(TEXT, &text));
        assert_eq!(markers.find("f").unwrap().name_start, text.len());
    }

    #[test]
    fn splice_between_two_texts_is_minimal() {
        let splice = Splice::between("abcd", "abXd");
        assert_eq!((splice.range, splice.inserted), (ByteRange::new(2, 3), 1));
        let grown = Splice::between("aa", "aaa");
        assert_eq!((grown.range, grown.inserted), (ByteRange::new(2, 2), 1));
        assert_eq!(Splice::between("a", "a").inserted, 0);
    }
}
