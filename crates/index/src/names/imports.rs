//! Reads import statements.

use super::kinds::{Field, Kind};
use super::model::{BindingKind, Import, ImportId, Imported, OccurrenceId, Role};
use super::reader::Reader;

/// The module that an import statement refers to: the number of leading dots, and the parts of its
/// dotted name.
#[derive(Clone, Copy)]
struct ModuleReference {
    level: u32,
    first: OccurrenceId,
    parts: u32,
}

impl Reader<'_> {
    fn next_import(&self) -> ImportId {
        ImportId(self.out.imports.len() as u32)
    }

    fn add_import(&mut self, module: ModuleReference, what: Imported) -> ImportId {
        let id = self.next_import();
        self.out.imports.push(Import {
            scope: self.scope,
            level: module.level,
            module: module.first,
            parts: module.parts,
            what,
        });
        id
    }

    /// Reads `import a.b, c as d`.
    pub(super) fn import(&mut self) {
        self.children(|reader, kind| match kind {
            Kind::DottedName => {
                let module = reader.module(0);
                let id = reader.add_import(module, Imported::First);
                if module.parts > 0 {
                    reader.bind(reader.scope, module.first, BindingKind::Import(id));
                }
            }
            Kind::Aliased => {
                let mut module = None;
                reader.children(|reader, kind| match (kind, module) {
                    (Kind::DottedName, _) => module = Some(reader.module(0)),
                    (Kind::Identifier, Some(module)) => {
                        let id = reader.add_import(module, Imported::Whole);
                        let alias = reader.note_in(Role::Alias, id.0, reader.scope);
                        reader.bind(reader.scope, alias, BindingKind::Import(id));
                    }
                    _ => {}
                });
            }
            _ => {
                reader.visit(kind);
            }
        });
    }

    /// Reads `from a.b import c, d as e` and `from .a import *`.
    pub(super) fn import_from(&mut self) {
        let mut module = ModuleReference {
            level: 0,
            first: OccurrenceId(0),
            parts: 0,
        };
        self.children(|reader, kind| match (reader.field(), kind) {
            (Field::Module, Kind::RelativeImport) => module = reader.relative(),
            (Field::Module, Kind::DottedName) => module = reader.module(0),
            (_, Kind::Wildcard) => {
                reader.add_import(module, Imported::Star);
            }
            (_, Kind::DottedName | Kind::Aliased) => reader.imported(module, kind),
            _ => {
                reader.visit(kind);
            }
        });
    }

    fn relative(&mut self) -> ModuleReference {
        let first = OccurrenceId(self.out.occurrences.len() as u32);
        let mut module = ModuleReference {
            level: 0,
            first,
            parts: 0,
        };
        self.children(|reader, kind| match kind {
            Kind::ImportPrefix => {
                module.level = reader.written().matches('.').count() as u32;
            }
            Kind::DottedName => module = reader.module(module.level),
            _ => {}
        });
        module
    }

    /// Reads the dotted name at the cursor as the name of a module.
    fn module(&mut self, level: u32) -> ModuleReference {
        let first = OccurrenceId(self.out.occurrences.len() as u32);
        let import = self.next_import();
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                reader.note_in(Role::ImportedModule, import.0, reader.scope);
            }
        });
        ModuleReference {
            level,
            first,
            parts: self.out.occurrences.len() as u32 - first.0,
        }
    }

    /// Reads one name of a `from` import: `f` or `f as g`.
    fn imported(&mut self, module: ModuleReference, kind: Kind) {
        let import = self.next_import();
        let mut bound = None;
        if kind == Kind::DottedName {
            bound = self.imported_name(import);
        } else {
            let mut name = None;
            self.children(|reader, kind| match (kind, name) {
                (Kind::DottedName, _) => name = reader.imported_name(import),
                (Kind::Identifier, Some(_)) => {
                    bound = Some(reader.note_in(Role::Alias, import.0, reader.scope));
                }
                _ => {}
            });
            if let (Some(name), Some(alias)) = (name, bound) {
                let name = self.name_of(name);
                self.add_import(module, Imported::Name(name));
                self.bind(self.scope, alias, BindingKind::Import(import));
            }
            return;
        }
        if let Some(bound) = bound {
            let name = self.name_of(bound);
            self.add_import(module, Imported::Name(name));
            self.bind(self.scope, bound, BindingKind::Import(import));
        }
    }

    fn imported_name(&mut self, import: ImportId) -> Option<OccurrenceId> {
        let mut found = None;
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                found = Some(reader.note_in(Role::ImportedName, import.0, reader.scope));
            }
        });
        found
    }
}
