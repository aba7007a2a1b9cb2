use super::FilePath;

/// A language that Starling knows by a grammar, or plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    /// No grammar: the whole file is one symbol.
    Plain,
}

impl Language {
    /// The language of a file, by its name.
    pub fn of(file: &FilePath) -> Self {
        match file.name().rsplit_once('.') {
            Some((_, "py" | "pyi" | "pyw")) => Language::Python,
            Some(_) | None => Language::Plain,
        }
    }
}
