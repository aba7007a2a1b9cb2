//! Where the identifier at a place is defined.

use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Target, Variable};
use crate::names::{BindingKind, SymbolNumber};
use starling_syntax::{FilePath, SymbolPath};

/// Where something is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedAt {
    pub file: FilePath,
    /// From 1.
    pub line: u32,
    /// Bytes from the start of the line, from 0.
    pub column: u32,
    /// The symbol that it is; of variables, parameters and attributes: none.
    pub symbol: Option<SymbolPath>,
}

impl<S: Source> Resolver<'_, S> {
    /// The definitions of the identifier at a line (from 1) and a byte of it (from 0). Nothing: there
    /// is no identifier, it is defined outside the workspace, or nothing is known of it.
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

    /// Where a variable is bound; where it is a symbol, only there.
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
