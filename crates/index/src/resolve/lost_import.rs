//! Imports of modules that are removed.

use super::dangling::{Dangling, Holder};
use super::resolver::Resolver;
use super::source::{FileId, Source};
use crate::names::{Import, Imported, Names};
use starling_syntax::{FilePath, SymbolPath};

/// An import as it is written: its leading dots, its module and the name that it imports.
type WrittenImport = (u32, Vec<String>, Option<String>);

impl<S: Source> Resolver<'_, S> {
    /// Returns the imports of a file that led to one of the removed modules in `earlier`, an earlier
    /// state of the workspace, and lead to no module any more. `before` is the file in that state.
    pub(crate) fn lost_imports(
        &mut self,
        file: FileId,
        (earlier, before): (&mut Self, FileId),
        is_removed: &dyn Fn(&FilePath) -> bool,
    ) -> Vec<Dangling> {
        let old = earlier.names(before);
        let mut lost: Vec<(WrittenImport, FilePath)> = Vec::new();
        for import in old.imports() {
            let target = earlier.target_file(before, &old, import);
            if let Some(target) = target.filter(is_removed) {
                lost.push((written(&old, import), target));
            }
        }
        let names = self.names(file);
        let mut found: Vec<Dangling> = Vec::new();
        for import in names.imports() {
            let own = written(&names, import);
            let removed = lost.iter().find(|(import, _)| *import == own);
            let (Some((_, target)), Some(at)) = (removed, names.occurrence(import.module)) else {
                continue;
            };
            let is_known = found.iter().any(|one| one.offset == at.at);
            if is_known || self.target_file(file, &names, import).is_some() {
                continue;
            }
            let path = self.path(file);
            let symbol = self.source.symbol(file, names.owner(at.at));
            found.push(Dangling {
                line: names.line(at.at),
                offset: at.at,
                symbol: symbol.unwrap_or_else(|| SymbolPath::module(path.clone())),
                name: names.name(at.name).to_owned(),
                file: path,
                of: Holder::Removed(target.clone()),
            });
        }
        found
    }

    /// Returns the file of the module that an import names, or of the module that contains the
    /// imported name.
    fn target_file(&mut self, file: FileId, names: &Names, import: &Import) -> Option<FilePath> {
        let module = self.imported_module(file, names, import, import.parts as usize)?;
        let part = match import.what {
            Imported::Name(name) => self.submodule(module, names.name(name)),
            Imported::First | Imported::Whole | Imported::Star => None,
        };
        let found = self.module_file(part.unwrap_or(module))?;
        Some(self.path(found))
    }
}

fn written(names: &Names, import: &Import) -> WrittenImport {
    let name = match import.what {
        Imported::Name(name) => Some(names.name(name).to_owned()),
        Imported::First | Imported::Whole | Imported::Star => None,
    };
    let parts = names.module_parts(import).map(str::to_owned);
    (import.level, parts.collect(), name)
}
