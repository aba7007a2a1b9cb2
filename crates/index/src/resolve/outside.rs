//! What is known of values from outside the workspace: whether they can be, hold or return objects of the
//! workspace.

use super::common_names::is_common;
use crate::names::is_built_in;

/// Modules of the standard library whose functions and objects neither hold nor return objects of the
/// workspace.
const CLOSED_MODULES: &str = "array base64 binascii bz2 calendar cmath colorsys csv datetime decimal difflib email \
    errno fractions getpass glob gzip hashlib hmac html http io json keyword linecache locale logging lzma math \
    mimetypes numbers os pathlib platform pprint re secrets shlex shutil signal socket sqlite3 ssl stat statistics \
    string struct subprocess sys sysconfig tempfile textwrap time timeit token tokenize tomllib traceback \
    unicodedata urllib uuid warnings xml zipfile zlib zoneinfo";
/// Built-in functions that return one of the objects that they are given.
const PASS_ON: [&str; 9] = [
    "anext", "eval", "getattr", "iter", "max", "min", "next", "super", "vars",
];
/// Built-in containers, and functions that return containers.
const CONTAINERS: [&str; 11] = [
    "dict",
    "enumerate",
    "filter",
    "frozenset",
    "list",
    "map",
    "reversed",
    "set",
    "sorted",
    "tuple",
    "zip",
];
/// Annotations that allow any object.
const ANY_TYPE: [&str; 2] = ["Any", "object"];

/// What a value from outside the workspace can be, hold or return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum OutsideKind {
    /// A value that neither holds nor returns objects of the workspace: a string, `os.environ`.
    Closed,
    /// A module, class or container. Its own attributes are from outside; what it holds or returns
    /// can be of the workspace.
    Container,
    /// An object of a type from outside. It can stand for an object of the workspace, as a proxy does.
    Object,
    /// An object that code from outside holds or returns: `flask.g.cart`, `max(carts)`. It can be of
    /// any type.
    Any,
}

impl OutsideKind {
    /// Returns what an imported name is. `module` is the first part of the module's name, `name` the
    /// name in the module, or `None` for the module itself.
    pub(super) fn imported(module: Option<&str>, name: Option<&str>) -> Self {
        let is_closed = module.is_some_and(is_closed_module);
        match name {
            _ if is_closed => OutsideKind::Closed,
            Some(name) if !is_like_class(name) => OutsideKind::Object,
            Some(_) | None => OutsideKind::Container,
        }
    }

    /// Returns what a name is that no code of the workspace binds.
    pub(super) fn unbound(name: &str) -> Self {
        match name {
            _ if PASS_ON.contains(&name) => OutsideKind::Any,
            _ if CONTAINERS.contains(&name) => OutsideKind::Container,
            _ if is_built_in(name) => OutsideKind::Closed,
            _ => OutsideKind::imported(None, Some(name)),
        }
    }

    /// Returns what an expression is whose annotation names this type.
    pub(super) fn annotated(self, name: &str) -> Self {
        match self {
            _ if ANY_TYPE.contains(&name) => OutsideKind::Any,
            OutsideKind::Container if CONTAINERS.contains(&name) => OutsideKind::Container,
            _ => self.instance(),
        }
    }

    /// Returns what an attribute is.
    pub(super) fn member(self, name: &str) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container if is_like_class(name) => OutsideKind::Container,
            OutsideKind::Container => OutsideKind::Object,
            OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
        }
    }

    /// Returns what a call returns.
    pub(super) fn called(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container => OutsideKind::Object,
            OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
        }
    }

    /// Returns what an instance of a class is, or what a context manager returns.
    pub(super) fn instance(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container | OutsideKind::Object => OutsideKind::Object,
            OutsideKind::Any => OutsideKind::Any,
        }
    }

    /// Returns what an element is.
    pub(super) fn held(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container | OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
        }
    }

    /// Returns whether an attribute of this name can be one of a class of the workspace.
    pub(super) fn may_have(self, name: &str) -> bool {
        match self {
            OutsideKind::Closed | OutsideKind::Container => false,
            OutsideKind::Object => !is_common(name),
            OutsideKind::Any => true,
        }
    }
}

fn is_closed_module(name: &str) -> bool {
    CLOSED_MODULES.split_whitespace().any(|one| one == name)
}

/// Returns whether a name is written like that of a class: `Session`, but not `SESSION`.
fn is_like_class(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}
