use serde::{Deserialize, Serialize};

/// Something that a rewrite took away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lost", rename_all = "snake_case")]
pub enum Loss {
    Child { name: String },
    Decorator { text: String },
    Comment { text: String },
    Docstring,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Child { name } => write!(f, "the symbol `{name}`"),
            Loss::Decorator { text } => write!(f, "the decorator `{text}`"),
            Loss::Comment { text } => write!(f, "the comment `{text}`"),
            Loss::Docstring => f.write_str("the docstring"),
        }
    }
}

/// Lines (from 1) with text that stands for code left out: `# ... rest unchanged`, `# existing code`,
/// `[omitted]`, a lone `...` with such a comment. A plain `...` body (stub, protocol, overload), an
/// ellipsis in an index, string or doctest is none; a mark that `before` has on a line of its own is none either.
pub fn omission_marks(before: &str, after: &str) -> Vec<(u32, String)> {
    todo!()
}
