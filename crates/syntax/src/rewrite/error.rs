use super::super::{FilePath, SymbolTree};

/// Maximum number of names that an error lists.
const NAMES: usize = 30;

/// The reason why a rewrite is impossible. Each message tells the model what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    #[error("no symbol `{name}` in {file}; it has: {known}")]
    NoSymbol {
        file: FilePath,
        name: String,
        known: String,
    },
    #[error(
        "it is unclear where the definitions of {file} stand among the statements of `source`: send the whole text of the file with every definition, or patch the lines, add a symbol or add imports instead"
    )]
    WholeModule { file: FilePath },
    #[error(
        "the source for `{symbol}` contains no definition: send all of it, from its decorators to its last line, or patch the lines that change"
    )]
    NoDefinition { symbol: String },
    #[error(
        "the source for `{symbol}` defines {names}: send `{symbol}` alone, and add the others as new symbols"
    )]
    ManyDefinitions { symbol: String, names: String },
    #[error(
        "line {line} of the source for `{symbol}` lies outside of the definition: `{text}`; send the definition alone, and change imports and module code on their own"
    )]
    CodeOutside {
        symbol: String,
        line: u32,
        text: String,
    },
    #[error(
        "`{symbol}` is a {old}, but the source defines a {new}: keep the kind, or delete the symbol and add a new one"
    )]
    OtherKind {
        symbol: String,
        old: &'static str,
        new: &'static str,
    },
    #[error("{file}: line {line} would be invalid Python ({what}): `{text}`; nothing was changed")]
    Syntax {
        file: FilePath,
        line: u32,
        text: String,
        what: &'static str,
    },
    #[error(
        "line {line} of the source for {symbol} is invalid Python ({what}): `{text}`; nothing was changed"
    )]
    SourceSyntax {
        symbol: String,
        line: u32,
        text: String,
        what: &'static str,
    },
    #[error(
        "hunk {hunk} for `{symbol}` has no old text: give the current text of the lines to replace"
    )]
    EmptyHunk { symbol: String, hunk: usize },
    #[error("the old text of hunk {hunk} is not in `{symbol}`; {hint}")]
    HunkNotFound {
        symbol: String,
        hunk: usize,
        hint: String,
    },
    #[error(
        "the old text of hunk {hunk} occurs {count} times in `{symbol}`, at lines {lines}: add lines around it, so that it occurs once"
    )]
    HunkAmbiguous {
        symbol: String,
        hunk: usize,
        count: usize,
        lines: String,
    },
    #[error("`{symbol}` already exists: rewrite it instead of adding it")]
    Exists { symbol: String },
    #[error(
        "`{symbol}` is not a class, so nothing can be added inside it: add the new symbol after it, or rewrite it"
    )]
    NotAClass { symbol: String },
    #[error(
        "`{symbol}` shares its last line with other code: rewrite the symbol that contains it instead"
    )]
    SharedLine { symbol: String },
    #[error(
        "`delete` of all of {file} deletes the file: give it alone, without `source`, `hunks`, `add` or `imports`"
    )]
    DeleteModule { file: FilePath },
    #[error("`{statement}` is not an import statement: add it with a patch of the module body")]
    NotAnImport { statement: String },
    #[error(
        "imports cannot be added to {file}, because its language is not supported: patch its text instead"
    )]
    NoGrammar { file: FilePath },
    #[error("two rewrites change the same text, at lines {first} and {second}: join them into one")]
    Overlap { first: u32, second: u32 },
}

impl RewriteError {
    /// Returns a short description of the problem for the user, without the advice to the model.
    pub fn in_short(&self) -> String {
        match self {
            RewriteError::NoSymbol { file, name, .. } => format!("{file} has no symbol `{name}`"),
            RewriteError::WholeModule { file } => {
                format!("the change would replace all of {file}")
            }
            RewriteError::NoDefinition { symbol } => {
                format!("the new text of `{symbol}` contains no definition")
            }
            RewriteError::ManyDefinitions { symbol, names } => {
                format!("the new text of `{symbol}` defines {names}")
            }
            RewriteError::CodeOutside { symbol, text, .. } => {
                format!("the new text of `{symbol}` has code outside of it: `{text}`")
            }
            RewriteError::OtherKind {
                symbol, old, new, ..
            } => format!("`{symbol}` is a {old}, but the new text defines a {new}"),
            RewriteError::Syntax { .. } | RewriteError::SourceSyntax { .. } => {
                let whole = self.to_string();
                let told = whole.strip_suffix("; nothing was changed");
                told.unwrap_or(&whole).to_owned()
            }
            RewriteError::EmptyHunk { symbol, .. } => {
                format!("the change does not contain the lines of `{symbol}` that it replaces")
            }
            RewriteError::HunkNotFound { symbol, .. } => {
                format!("the lines that the change replaces are not in `{symbol}`")
            }
            RewriteError::HunkAmbiguous { symbol, count, .. } => {
                format!("the lines that the change replaces occur {count} times in `{symbol}`")
            }
            RewriteError::Exists { symbol } => format!("`{symbol}` already exists"),
            RewriteError::NotAClass { symbol } => {
                format!("`{symbol}` is not a class: nothing can be added inside it")
            }
            RewriteError::SharedLine { symbol } => {
                format!("`{symbol}` shares its last line with other code")
            }
            RewriteError::DeleteModule { file } => {
                format!("the change would delete {file} and change it as well")
            }
            RewriteError::NotAnImport { statement } => {
                format!("`{statement}` is not an import statement")
            }
            RewriteError::NoGrammar { file } => {
                format!("imports cannot be added to {file}, because its language is not supported")
            }
            RewriteError::Overlap { .. } => "two parts of the change overlap".to_owned(),
        }
    }

    /// Returns the error for an unknown symbol. The error lists the existing symbols, likely
    /// matches first.
    pub(super) fn no_symbol(tree: &SymbolTree, name: &str) -> Self {
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let mut names: Vec<&str> = tree.symbols()[1..]
            .iter()
            .map(|symbol| symbol.path.name.as_str())
            .collect();
        names.sort_by_key(|known| last(known) != last(name));
        let left = names.len().saturating_sub(NAMES);
        names.truncate(NAMES);
        let mut known = names.join(", ");
        if left > 0 {
            known.push_str(&format!(" and {left} more"));
        } else if known.is_empty() {
            known.push_str("only the module body, whose name is empty");
        }
        RewriteError::NoSymbol {
            file: tree.file().clone(),
            name: name.to_owned(),
            known,
        }
    }
}
