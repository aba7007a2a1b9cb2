//! Reads names in strings: types in quotes, which may refer to classes that are defined later, and
//! the names in `__all__`.

use super::model::{Expr, ExprId, Role};
use super::reader::{Reader, Value};

/// Maximum nesting depth of types in strings. Deeper types are ignored.
const MOST_DEPTH: u32 = 20;

/// Returns the offset and the content of a string literal, without its quotes.
fn content(written: &str) -> Option<(usize, &str)> {
    let quote = written.find(['"', '\''])?;
    let long = &written[quote..];
    let mark = if long.starts_with("\"\"\"") || long.starts_with("'''") {
        3
    } else {
        1
    };
    let end = written.len().checked_sub(mark)?;
    let start = quote + mark;
    written.get(start..end).map(|content| (start, content))
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    starts && chars.all(|c| c.is_alphanumeric() || c == '_')
}

impl<'t> Reader<'t> {
    /// Reads the string at the cursor as a name in `__all__`.
    pub(super) fn export(&mut self, written: &'t str) {
        if let Some((start, name)) = content(written).filter(|(_, name)| is_identifier(name)) {
            let at = self.start() + start as u32;
            self.note_text(name, at, Role::Export, 0, self.scope);
        }
    }

    /// Reads the string at the cursor as a type.
    pub(super) fn forward_type(&mut self, written: &'t str) -> Value {
        let Some((start, text)) = content(written) else {
            return Value::UNKNOWN;
        };
        let mut types = TypeStringParser {
            base: self.start() as usize + start,
            text,
            at: 0,
            depth: 0,
        };
        let value = types.union(self);
        Value::Id(value)
    }
}

/// A parser of types in strings, such as `a.B[C, D] | E`. It stops at syntax that it does not
/// support.
struct TypeStringParser<'t> {
    base: usize,
    text: &'t str,
    at: usize,
    depth: u32,
}

impl<'t> TypeStringParser<'t> {
    fn union(&mut self, reader: &mut Reader<'t>) -> ExprId {
        if self.depth == MOST_DEPTH {
            self.at = self.text.len();
            return ExprId::UNKNOWN;
        }
        self.depth += 1;
        let mut value = self.primary(reader);
        while self.eat('|') {
            let other = self.primary(reader);
            value = reader.keep(Value::New(Expr::Either(value, other)));
        }
        self.depth -= 1;
        value
    }

    fn primary(&mut self, reader: &mut Reader<'t>) -> ExprId {
        let mut value = ExprId::UNKNOWN;
        let mut receiver = ExprId::NONE;
        while let Some((name, at)) = self.word() {
            let at = (self.base + at) as u32;
            let id = reader.note_text(name, at, Role::Read, receiver.0, reader.scope);
            value = ExprId::of(id);
            receiver = value;
            if !self.eat('.') {
                break;
            }
        }
        if self.eat('[') {
            let mark = reader.stack.len();
            loop {
                let argument = self.union(reader);
                reader.stack.push(argument);
                if !self.eat(',') {
                    break;
                }
            }
            self.eat(']');
            let arguments = reader.keep_stack(mark);
            value = reader.keep(Value::New(Expr::Item(value, arguments)));
        }
        value
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Returns the next identifier and its offset in the text.
    fn word(&mut self) -> Option<(&'t str, usize)> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let len = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let word = is_identifier(&rest[..len]).then_some((&rest[..len], self.at));
        self.at += word.map_or(0, |(word, _)| word.len());
        word
    }
}
