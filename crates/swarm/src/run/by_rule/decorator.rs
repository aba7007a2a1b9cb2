//! Decorators of the standard library that do not register what they decorate.

use crate::lookup::Lookup;

/// Names of decorators that do not register the decorated function or class.
const PLAIN: [&str; 23] = [
    "abstractmethod",
    "asynccontextmanager",
    "cache",
    "cached_property",
    "classmethod",
    "contextmanager",
    "dataclass",
    "dataclass_transform",
    "deprecated",
    "final",
    "lru_cache",
    "no_type_check",
    "overload",
    "override",
    "property",
    "runtime_checkable",
    "singledispatch",
    "singledispatchmethod",
    "staticmethod",
    "total_ordering",
    "type_check_only",
    "unique",
    "wraps",
];
/// The names of the modules that define them, also under the usual short names.
const MODULES: [&str; 11] = [
    "abc",
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "t",
    "te",
    "typing",
    "typing_extensions",
    "warnings",
    "",
];

/// Returns whether a decorator makes a pytest fixture with the name of its function. The parameters that
/// take the fixture count as uses of the function.
pub(super) fn is_fixture(decorator: &str) -> bool {
    let called = decorator.trim().trim_start_matches('@');
    let (called, arguments) = called.split_once('(').unwrap_or((called, ""));
    ["fixture", "pytest.fixture"].contains(&called.trim()) && !arguments.contains("name")
}

/// Returns whether a decorator (`@functools.wraps(f)`) does not register the symbol called `own` under its
/// name. A decorator of the project that has a name of the standard library is another one.
pub(super) fn registers_nothing(lookup: &Lookup, decorator: &str, own: &str) -> bool {
    let called = decorator.trim().trim_start_matches('@');
    let called = called.split('(').next().unwrap_or_default().trim();
    let (module, name) = called.rsplit_once('.').unwrap_or(("", called));
    if module == own && ["getter", "setter", "deleter"].contains(&name) {
        return true;
    }
    let is_of_project = module.is_empty() && lookup.index().is_defined(name);
    MODULES.contains(&module) && PLAIN.contains(&name) && !is_of_project
}
