//! A source that holds everything in memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::source::{FileId, Source};
use crate::index::names::{Names, SymbolNumber};
use crate::syntax::{FilePath, SymbolPath, SymbolTree};

/// The names of some files.
#[derive(Debug, Default)]
pub struct Memory {
    files: Vec<File>,
    by_path: FxHashMap<String, FileId>,
    mentioning: FxHashMap<String, Vec<FileId>>,
}

#[derive(Debug)]
struct File {
    path: FilePath,
    names: Arc<Names>,
    symbols: Vec<String>,
}

impl Memory {
    /// Adds a parsed file.
    pub fn add(&mut self, tree: &SymbolTree) {
        let symbols = tree.symbols().iter().map(|symbol| symbol.path.name.clone());
        self.add_names(tree.file().clone(), Names::read(tree), symbols.collect());
    }

    fn add_names(&mut self, path: FilePath, names: Names, symbols: Vec<String>) {
        let id = FileId(self.files.len() as u32);
        self.by_path.insert(path.as_str().to_owned(), id);
        for identifier in names.identifiers() {
            match self.mentioning.get_mut(identifier) {
                Some(files) => files.push(id),
                None => {
                    self.mentioning.insert(identifier.to_owned(), vec![id]);
                }
            }
        }
        self.files.push(File {
            path,
            names: Arc::new(names),
            symbols,
        });
    }

    fn get(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0 as usize)
    }
}

impl Source for Memory {
    fn file(&self, path: &str) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    fn path(&self, file: FileId) -> FilePath {
        self.get(file)
            .map_or_else(|| FilePath::new(""), |file| file.path.clone())
    }

    fn mentioning(&self, identifier: &str) -> Vec<FileId> {
        self.mentioning.get(identifier).cloned().unwrap_or_default()
    }

    fn names(&self, file: FileId) -> Option<Arc<Names>> {
        self.get(file).map(|file| file.names.clone())
    }

    fn symbol(&self, file: FileId, number: SymbolNumber) -> Option<SymbolPath> {
        let file = self.get(file)?;
        let name = file.symbols.get(number.index())?;
        Some(SymbolPath::new(file.path.clone(), name))
    }

    fn find(&self, symbol: &SymbolPath) -> Option<(FileId, SymbolNumber)> {
        let id = self.file(symbol.file.as_str())?;
        let symbols = &self.get(id)?.symbols;
        let number = symbols.iter().position(|name| *name == symbol.name)?;
        Some((id, SymbolNumber(number as u32)))
    }
}
