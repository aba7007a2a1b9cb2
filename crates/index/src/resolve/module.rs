//! Maps dotted module names to files.

use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::ModuleId;
use crate::names::{Import, Imported, Names};
use starling_syntax::FilePath;

/// Directories below the root that often contain packages.
const ROOTS: [&str; 4] = ["", "src/", "lib/", "python/"];

/// Standard library modules whose names projects also use for their own packages. An import of such
/// a name from a different project of the workspace refers to the standard library.
const STANDARD: &[&str] = &[
    "abc",
    "array",
    "ast",
    "asyncio",
    "calendar",
    "code",
    "codecs",
    "collections",
    "compression",
    "concurrent",
    "contextlib",
    "copy",
    "csv",
    "ctypes",
    "dataclasses",
    "datetime",
    "email",
    "encodings",
    "enum",
    "functools",
    "graphlib",
    "html",
    "http",
    "importlib",
    "inspect",
    "io",
    "itertools",
    "json",
    "logging",
    "math",
    "multiprocessing",
    "numbers",
    "operator",
    "os",
    "pathlib",
    "platform",
    "profile",
    "queue",
    "random",
    "re",
    "resource",
    "select",
    "signal",
    "site",
    "sqlite3",
    "string",
    "test",
    "time",
    "token",
    "types",
    "typing",
    "xml",
];

/// A module: its path without extension, and its file. A directory without `__init__.py` has no
/// file.
#[derive(Debug, Clone)]
pub(super) struct Module {
    pub(super) path: String,
    pub(super) file: Option<FileId>,
}

impl<S: Source> Resolver<'_, S> {
    pub(super) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    pub(super) fn module_file(&self, id: ModuleId) -> Option<FileId> {
        self.module(id).file
    }

    /// Returns the module at a path without extension.
    fn module_at(&mut self, path: &str) -> ModuleId {
        if let Some(id) = self.module_ids.get(path) {
            return *id;
        }
        let endings = ["/__init__.py", ".py", "/__init__.pyi", ".pyi"];
        let file = endings
            .iter()
            .find_map(|ending| self.source.file(&format!("{path}{ending}")));
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(Module {
            path: path.to_owned(),
            file,
        });
        self.module_ids.insert(path.to_owned(), id);
        id
    }

    /// Returns the module that a file defines.
    pub(super) fn module_of_file(&mut self, file: FileId) -> ModuleId {
        let path = self.path(file);
        let path = path.as_str();
        let path = path.rsplit_once('.').map_or(path, |(path, _)| path);
        let path = path.strip_suffix("/__init__").unwrap_or(path).to_owned();
        self.module_at(&path)
    }

    /// Returns the module `name` below another module, if it has a file.
    pub(super) fn submodule(&mut self, module: ModuleId, name: &str) -> Option<ModuleId> {
        let path = format!("{}/{name}", self.module(module).path);
        let id = self.module_at(&path);
        self.module_file(id).map(|_| id)
    }

    /// Returns the module named by the first `parts` parts of an import's dotted name, if the whole
    /// name is a module of the workspace.
    pub(super) fn imported_module(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        parts: usize,
    ) -> Option<ModuleId> {
        let written: Vec<&str> = names.module_parts(import).collect();
        let key = (file, import.module, import.what);
        let base = match self.bases.get(&key) {
            Some(base) => base.clone(),
            None => {
                let base = self.base_of(file, names, import, &written);
                self.bases.insert(key, base.clone());
                base
            }
        }?;
        let parts = written.get(..parts)?;
        let path = joined(&base, parts);
        Some(self.module_at(&path))
    }

    /// Returns the module that must contain part `at` of an import's dotted name as a submodule, or `None`
    /// if the part is a top-level module or its package is not in the workspace.
    pub(super) fn package_of_part(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        at: usize,
    ) -> Option<ModuleId> {
        if at == 0 && import.level == 0 {
            return None;
        }
        let written: Vec<&str> = names.module_parts(import).collect();
        let package = written.get(..at)?;
        let whole = Import {
            what: Imported::Whole,
            ..*import
        };
        let base = self.base_of(file, names, &whole, package)?;
        Some(self.module_at(&joined(&base, package)))
    }

    /// Returns the directory in which a dotted name resolves.
    fn base_of(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        parts: &[&str],
    ) -> Option<String> {
        let path = self.path(file);
        let directory = path.directory();
        if import.level > 0 {
            let mut base = directory;
            for _ in 1..import.level {
                base = base.rsplit_once('/').map_or("", |(above, _)| above);
            }
            return Some(base.to_owned());
        }
        let mut roots = ROOTS
            .map(|root| root.trim_end_matches('/').to_owned())
            .to_vec();
        roots.extend(self.roots_above(&path));
        // A namespace package has no `__init__.py`, so the imported name must be checked as a
        // module.
        let name = match import.what {
            Imported::Name(name) => Some(names.name(name)),
            Imported::First | Imported::Whole | Imported::Star => None,
        };
        let known = roots.into_iter().find(|root| self.holds(root, parts, name));
        known.or_else(|| self.root_elsewhere(parts, name))
    }

    /// Returns whether a dotted name, or `name` below it, is a module in a directory.
    fn holds(&mut self, root: &str, parts: &[&str], name: Option<&str>) -> bool {
        let module = self.module_at(&joined(root, parts));
        let file = self.module_file(module);
        let has_it = |name| self.submodule(module, name).is_some();
        let is_file = file.is_some() || name.is_some_and(has_it);
        is_file && !parts.is_empty()
    }

    /// Returns the only other directory of the workspace in which a dotted name is a module. In a
    /// monorepo this is the root of another project.
    fn root_elsewhere(&mut self, parts: &[&str], name: Option<&str>) -> Option<String> {
        let first = parts.first().filter(|first| !is_standard(first))?;
        let roots = self.source.roots_of(first).to_vec();
        let mut fitting = roots
            .into_iter()
            .filter(|root| self.holds(root, parts, name));
        let only = fitting.next()?;
        fitting.next().is_none().then_some(only)
    }

    /// Returns the parent directories of a file that are not packages; scripts and tests import
    /// from them.
    fn roots_above(&self, file: &FilePath) -> Vec<String> {
        let mut roots = Vec::new();
        let mut directory = file.directory();
        while !directory.is_empty() {
            if self
                .source
                .file(&format!("{directory}/__init__.py"))
                .is_none()
            {
                roots.push(directory.to_owned());
            }
            directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
        }
        roots
    }
}

/// Returns whether a top-level module belongs to the standard library, according to `STANDARD`.
pub(crate) fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name)
}

fn joined(base: &str, parts: &[&str]) -> String {
    let mut path = base.to_owned();
    for part in parts {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}
