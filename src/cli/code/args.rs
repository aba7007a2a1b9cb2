//! The arguments of the commands that query the index.

use std::path::PathBuf;

use clap::Args;

use starling_index::Position;
use starling_syntax::FilePath;

/// What every question takes.
#[derive(Debug, Clone, Default, Args)]
pub struct CodeArgs {
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// The answer as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Read everything anew, and keep nothing.
    #[arg(long)]
    pub no_cache: bool,
    /// List the text files that are left out, with the reasons, and the files whose code has no symbols
    /// here (notebooks, Cython).
    #[arg(long)]
    pub skipped: bool,
    #[command(flatten)]
    pub code: CodeArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TextArgs {
    /// A task, a question, or the output of failing tests; `-` reads it from stdin.
    pub text: Option<String>,
    /// Read the text from this file; `-` is stdin.
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LocateArgs {
    #[command(flatten)]
    pub text: TextArgs,
    /// How many symbols and files.
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    #[command(flatten)]
    pub code: CodeArgs,
}

#[derive(Debug, Args)]
pub struct MapArgs {
    /// The most tokens that the map may have.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens: u32,
    /// Draw the map around what this text is about; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub query: Option<String>,
    /// The same, read from this file; `-` is stdin.
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub code: CodeArgs,
}

#[derive(Debug, Args)]
pub struct ReferencesArgs {
    /// For example shop/cart.py::Cart.total, or Cart.total where it is the only one; the module body is
    /// shop/cart.py::
    #[arg(value_name = "PATH::SYMBOL")]
    pub symbol: String,
    /// How many at most; all by default.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    #[command(flatten)]
    pub code: CodeArgs,
}

#[derive(Debug, Args)]
pub struct DefinitionArgs {
    /// A place in a file of the project; lines and columns (characters) are counted from 1.
    #[arg(value_name = "PATH:LINE:COL", value_parser = position)]
    pub position: Position,
    #[command(flatten)]
    pub code: CodeArgs,
}

#[derive(Debug, Args)]
pub struct SymbolsArgs {
    /// A name, or parts or initials of one: QuerySet.filter, "query filter", qsf.
    pub query: String,
    /// How many at most.
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    #[command(flatten)]
    pub code: CodeArgs,
}

fn position(text: &str) -> Result<Position, String> {
    let wrong = || "write path/to/file.py:LINE:COLUMN, counted from 1".to_owned();
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
    fn a_position_is_a_file_a_line_and_a_column() {
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
