//! The text of a symbol by what it is to a reader: its name, signature, code, docstring, comments
//! and strings.

use crate::syntax::{Symbol, SymbolTree};
use crate::text::ByteRange;

/// What a word of a symbol stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum Field {
    Name,
    Signature,
    Code,
    Doc,
    Comment,
    String,
}

/// How many fields there are.
pub(in crate::index) const FIELDS: usize = 6;

const KEYWORDS: [&str; 37] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "cls",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "self",
    "try", "while", "with", "yield",
];

/// Calls `each` with every piece of text that the symbol owns.
pub(in crate::index) fn pieces<'t>(
    tree: &'t SymbolTree,
    symbol: &'t Symbol,
    mut each: impl FnMut(Field, &'t str),
) {
    each(Field::Name, symbol.path.base_name());
    let mut reader = Reader {
        text: tree.text(),
        definition: symbol.definition.start,
        part: if symbol.name.is_empty() {
            Part::Start
        } else {
            Part::Signature { depth: 0 }
        },
    };
    for range in tree.own_ranges(symbol) {
        reader.read(range, &mut each);
    }
}

/// Where in a symbol the reader stands.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Signature { depth: u32 },
    /// Where a docstring would stand.
    Start,
    Body,
}

struct Reader<'t> {
    text: &'t str,
    definition: usize,
    part: Part,
}

impl<'t> Reader<'t> {
    fn read(&mut self, range: ByteRange, each: &mut impl FnMut(Field, &'t str)) {
        let text = self.text;
        let mut at = range.start;
        while let Some(c) = text[at..range.end].chars().next() {
            let rest = &text[at..range.end];
            let length = match c {
                '#' => {
                    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
                    each(Field::Comment, &rest[1..line]);
                    line
                }
                '"' | '\'' => self.string(rest, each),
                c if c.is_alphabetic() || c == '_' => self.word(at, rest, each),
                c if c.is_ascii_digit() => {
                    let is_number = |c: char| c.is_alphanumeric() || c == '_';
                    self.leave_start();
                    rest.find(|c| !is_number(c)).unwrap_or(rest.len())
                }
                c => {
                    self.sign(at, c);
                    c.len_utf8()
                }
            };
            at += length;
        }
    }

    fn string(&mut self, rest: &'t str, each: &mut impl FnMut(Field, &'t str)) -> usize {
        let (inner, length) = literal(rest);
        let field = match self.part {
            Part::Start => Field::Doc,
            Part::Signature { .. } | Part::Body => Field::String,
        };
        self.leave_start();
        each(field, inner);
        length
    }

    fn word(&mut self, at: usize, rest: &'t str, each: &mut impl FnMut(Field, &'t str)) -> usize {
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let is_prefix = end <= 2 && word.bytes().all(|b| b"rRbBuUfF".contains(&b));
        if is_prefix && rest[end..].starts_with(['"', '\'']) {
            return end + self.string(&rest[end..], each);
        }
        self.leave_start();
        if KEYWORDS.binary_search(&word).is_err() {
            let signature = matches!(self.part, Part::Signature { .. }) && at >= self.definition;
            each(
                if signature {
                    Field::Signature
                } else {
                    Field::Code
                },
                word,
            );
        }
        end
    }

    fn sign(&mut self, at: usize, c: char) {
        match (self.part, c) {
            (Part::Signature { depth }, '(' | '[' | '{') => {
                self.part = Part::Signature { depth: depth + 1 };
            }
            (Part::Signature { depth }, ')' | ']' | '}') => {
                self.part = Part::Signature {
                    depth: depth.saturating_sub(1),
                };
            }
            (Part::Signature { depth: 0 }, ':') if at >= self.definition => self.part = Part::Start,
            (Part::Start, c) if !c.is_whitespace() => self.part = Part::Body,
            (Part::Signature { .. } | Part::Start | Part::Body, _) => {}
        }
    }

    fn leave_start(&mut self) {
        if self.part == Part::Start {
            self.part = Part::Body;
        }
    }
}

/// What stands in the string literal at the beginning of `text`, and how long it is with its quotes.
pub(in crate::index) fn literal(text: &str) -> (&str, usize) {
    let quote = &text[..1];
    let triple = text.len() >= 3 && text[1..].starts_with(&quote.repeat(2));
    let width = if triple { 3 } else { 1 };
    let bytes = text.as_bytes();
    let mut at = width;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !triple => return (&text[width..at], at),
            byte if byte == bytes[0] && (!triple || bytes[at..].starts_with(&bytes[..3])) => {
                return (&text[width..at], at + width);
            }
            _ => at += 1,
        }
    }
    (text.get(width..).unwrap_or_default(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::FilePath;

    fn read(text: &str, name: &str) -> Vec<String> {
        let tree = SymbolTree::parse(FilePath::new("m.py"), text.into());
        let mut found = Vec::new();
        let symbol = tree.find(name).expect("the symbol is there");
        pieces(&tree, symbol, |field, text| {
            found.push(format!("{field:?} {}", text.trim()));
        });
        found
    }

    #[test]
    fn every_word_has_its_field() {
        let text = "'''Top.'''\nX = 1\n# about f\n@cache\ndef f(a: int = g('x: y'), *, b=None):\n    \
                    r\"\"\"Does it.\"\"\"\n    # now\n    return a.b(u'no \\' room', 12)\n";
        assert_eq!(read(text, ""), ["Name", "Doc Top.", "Code X"]);
        assert_eq!(
            read(text, "f"),
            [
                "Name f",
                "Comment about f",
                "Signature cache",
                "Signature f",
                "Signature a",
                "Signature int",
                "Signature g",
                "String x: y",
                "Signature b",
                "Doc Does it.",
                "Comment now",
                "Code a",
                "Code b",
                "String no \\' room",
            ]
        );
    }

    #[test]
    fn a_class_owns_what_its_methods_do_not() {
        let text = "class A(Base, metaclass=M):\n    '''Doc.'''\n    x = 1\n    def f(self):\n        y\n    z = 2\n";
        assert_eq!(
            read(text, "A"),
            [
                "Name A", "Signature A", "Signature Base", "Signature metaclass", "Signature M",
                "Doc Doc.", "Code x", "Code z",
            ]
        );
    }

    #[test]
    fn any_text_is_read() {
        for text in ["'", "'''", "'\\", "\"\"\"\\", "é'é", "def f(", "f'{x", "x = 'a\ny = 1"] {
            read(text, "");
        }
    }
}
