//! The arguments of the commands that query the code index.

use std::path::PathBuf;

use clap::Args;

use crate::cli::option_values::path;
use starling_index::Position;
use starling_syntax::FilePath;

/// The arguments that all commands that query the code index have.
#[derive(Debug, Clone, Default, Args)]
pub struct CodeArgs {
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

// The arguments of `starling index`.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Parse every file again: neither read nor write the cache of the index.
    #[arg(long)]
    pub no_cache: bool,
    /// List the text files that are left out of the index, each with the reason, and the files that are
    /// indexed without symbols (notebooks, Cython).
    #[arg(long)]
    pub skipped: bool,
    #[command(flatten)]
    pub code: CodeArgs,
}

// A text that is given as an argument or as a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TextArgs {
    /// A task, a question, or the output of failing tests; `-` reads it from stdin.
    pub text: Option<String>,
    /// Read the text from this file; `-` is stdin.
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
}

// The arguments of `starling locate`.
#[derive(Debug, Args)]
pub struct LocateArgs {
    #[command(flatten)]
    pub text: TextArgs,
    /// Maximum number of symbols, and of files, to list.
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    #[command(flatten)]
    pub code: CodeArgs,
}

// The arguments of `starling map`.
#[derive(Debug, Args)]
pub struct MapArgs {
    /// Maximum size of the map, in tokens.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens: u32,
    /// Rank the code by its relevance to this text, such as a task; `-` reads the text from stdin.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub query: Option<String>,
    /// Read the text of --query from this file; `-` is stdin.
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub code: CodeArgs,
}

// The arguments of `starling references`.
#[derive(Debug, Args)]
pub struct ReferencesArgs {
    /// The symbol or the variable of a module, for example shop/cart.py::Cart.total, or only Cart.total if
    /// the project has one symbol of that name. shop/cart.py:: is the module itself.
    #[arg(value_name = "PATH::SYMBOL")]
    pub symbol: String,
    /// Maximum number of references to list. Default: all.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    #[command(flatten)]
    pub code: CodeArgs,
}

// The arguments of `starling definition`.
#[derive(Debug, Args)]
pub struct DefinitionArgs {
    /// Position of a name in a file of the project. Lines and columns (in characters) start at 1.
    #[arg(value_name = "PATH:LINE:COL", value_parser = position)]
    pub position: Position,
    #[command(flatten)]
    pub code: CodeArgs,
}

// The arguments of `starling symbols`.
#[derive(Debug, Args)]
pub struct SymbolsArgs {
    /// Name of a symbol, or parts or initials of the name: QuerySet.filter, "query filter", qsf.
    pub query: String,
    /// Maximum number of symbols to list.
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    #[command(flatten)]
    pub code: CodeArgs,
}

fn position(text: &str) -> Result<Position, String> {
    let wrong = || "expected path/to/file.py:LINE:COLUMN; lines and columns start at 1".to_owned();
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    let (rest, column) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (file, line) = rest.rsplit_once(':').ok_or_else(wrong)?;
    match (file.is_empty(), number(line), number(column)) {
        (false, Some(line), Some(column)) => Ok(Position {
            file: FilePath::new(file),
            line,
            column,
        }),
        (true, ..) | (_, None, _) | (.., None) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_consists_of_a_file_a_line_and_a_column() {
        let read = position("./a:b/c.py:3:14").unwrap();
        assert_eq!(
            (read.file.as_str(), read.line, read.column),
            ("a:b/c.py", 3, 14)
        );
        for wrong in [
            "",
            "a.py",
            "a.py:1",
            "a.py:1:",
            "a.py:0:1",
            "a.py:1:0",
            "a.py:-1:1",
            ":1:1",
            "a.py:x:1",
        ] {
            assert!(position(wrong).is_err(), "{wrong}");
        }
    }
}
