//! Imports of one module: where they are written, and those that a removal of the module leaves.

use super::dangling::{Dangling, Holder};
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::ModuleId;
use crate::names::{Import, Imported, NameId, Names, Occurrence, Role};
use starling_syntax::FilePath;

/// An import of a module, with the position of the last part of the module's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleImport {
    pub file: FilePath,
    /// Line of the name, counted from 1.
    pub line: u32,
    /// Byte offset of the name.
    pub offset: u32,
    pub form: ImportForm,
}

/// How an import uses the name of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportForm {
    /// The import binds the module under its own name, as `import a` and `from p import a` do.
    BindsName,
    /// The import only names the module, as `from a import f` and `import a as b` do.
    Names,
    /// `import p.a`: other code uses the module by its dotted name.
    Dotted,
}

/// An import as it is written: its leading dots, its module and the name that it imports.
type WrittenImport = (u32, Vec<String>, Option<String>);

impl<S: Source> Resolver<'_, S> {
    /// Returns the imports of the module `target` in a file.
    pub(crate) fn imports_of(&mut self, file: FileId, target: &FilePath) -> Vec<ModuleImport> {
        let names = self.names(file);
        let mut found: Vec<ModuleImport> = Vec::new();
        for (number, import) in names.imports().iter().enumerate() {
            if self.target_file(file, &names, import).as_ref() != Some(target) {
                continue;
            }
            let of_import = |role: Role| {
                let is_it = move |one: &&Occurrence| {
                    one.role == role && one.import().is_some_and(|id| id.index() == number)
                };
                names.occurrences().iter().find(is_it)
            };
            let last = import.module.index() + (import.parts as usize).saturating_sub(1);
            let module = names.occurrences().get(last);
            let is_part = match import.what {
                Imported::Name(name) => self.imported_part(file, &names, import, name).is_some(),
                Imported::First | Imported::Whole | Imported::Star => false,
            };
            let (at, form) = match (import.what, is_part) {
                (_, true) if of_import(Role::Alias).is_some() => {
                    (of_import(Role::ImportedName), ImportForm::Names)
                }
                (_, true) => (of_import(Role::ImportedName), ImportForm::BindsName),
                (Imported::First, _) if import.parts > 1 => (module, ImportForm::Dotted),
                (Imported::First, _) => (module, ImportForm::BindsName),
                (Imported::Whole | Imported::Star | Imported::Name(_), _) => {
                    (module, ImportForm::Names)
                }
            };
            let Some(at) = at.map(|at| at.at) else {
                continue;
            };
            if found.iter().all(|one| one.offset != at) {
                found.push(ModuleImport {
                    file: self.path(file),
                    line: names.line(at),
                    offset: at,
                    form,
                });
            }
        }
        found
    }

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
            found.push(self.dangling_at(file, &names, at, Holder::Removed(target.clone())));
        }
        found
    }

    /// Returns the file of the module that an import names, or of the module that contains the
    /// imported name.
    fn target_file(&mut self, file: FileId, names: &Names, import: &Import) -> Option<FilePath> {
        let module = self.imported_module(file, names, import, import.parts as usize)?;
        let part = match import.what {
            Imported::Name(name) => self.imported_part(file, names, import, name),
            Imported::First | Imported::Whole | Imported::Star => None,
        };
        let found = self.module_file(part.unwrap_or(module))?;
        Some(self.path(found))
    }

    /// Returns the submodule that `from package import name` imports.
    fn imported_part(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        name: NameId,
    ) -> Option<ModuleId> {
        let module = self.imported_module(file, names, import, import.parts as usize)?;
        self.submodule(module, names.name(name))
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
