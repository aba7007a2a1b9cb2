//! Finds the definition of the identifier at a position.

use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Target, Variable};
use crate::names::{BindingKind, SymbolNumber};
use starling_syntax::{FilePath, SymbolPath};

/// The position of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedAt {
    pub file: FilePath,
    /// Line of the definition, counted from 1.
    pub line: u32,
    /// Byte offset from the start of the line.
    pub column: u32,
    /// The defined symbol; `None` for variables, parameters and attributes.
    pub symbol: Option<SymbolPath>,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the definitions of the identifier at a line (counted from 1) and byte column
    /// (counted from 0). Returns nothing if there is no identifier, or if its definition is unknown
    /// or outside of the workspace.
    pub fn definition(&mut self, file: &FilePath, line: u32, column: u32) -> Vec<DefinedAt> {
        self.start();
        let Some(file) = self.source.file(file.as_str()) else {
            return Vec::new();
        };
        let names = self.names(file);
        let start = names.line_start(line);
        let Some(id) = start.and_then(|start| names.occurrence_at(start.saturating_add(column)))
        else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for target in self.targets(file, id).list {
            match target {
                Target::Variable(variable) => self.places(variable, &mut found),
                Target::Module(module) => {
                    if let Some(file) = self.module_file(module) {
                        found.push(DefinedAt {
                            file: self.path(file),
                            line: 1,
                            column: 0,
                            symbol: self.source.symbol(file, SymbolNumber(0)),
                        });
                    }
                }
                Target::Outside => {}
            }
        }
        found
    }

    /// Adds the positions of the bindings of a variable. If the variable is a class or function,
    /// adds only its definitions.
    fn places(&mut self, variable: Variable, into: &mut Vec<DefinedAt>) {
        let file = variable.file;
        let names = self.names(file);
        let bindings = names.bindings(variable.scope, variable.name);
        let is_symbol = |kind| matches!(kind, BindingKind::Class(_) | BindingKind::Function(_));
        let has_symbol = bindings.iter().any(|binding| is_symbol(binding.kind));
        for binding in bindings {
            if has_symbol != is_symbol(binding.kind) {
                continue;
            }
            let symbol = match binding.kind {
                BindingKind::Class(symbol) | BindingKind::Function(symbol) => {
                    self.source.symbol(file, symbol)
                }
                BindingKind::Import(_) | BindingKind::Global | BindingKind::Nonlocal => continue,
                BindingKind::Parameter { .. }
                | BindingKind::Value { .. }
                | BindingKind::Attribute { .. } => None,
            };
            into.extend(self.place(file, binding.occurrence, symbol));
        }
    }

    fn place(
        &mut self,
        file: FileId,
        occurrence: crate::names::OccurrenceId,
        symbol: Option<SymbolPath>,
    ) -> Option<DefinedAt> {
        let names = self.names(file);
        let found = names.occurrence(occurrence)?;
        let line = names.line(found.at);
        Some(DefinedAt {
            file: self.path(file),
            line,
            column: found.at - names.line_start(line).unwrap_or(found.at),
            symbol,
        })
    }
}
