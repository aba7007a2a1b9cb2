//! What is known of values from outside the workspace: whether they can be, hold or return objects of the
//! workspace.

use super::common_names::is_common;
use crate::names::is_built_in;

/// Modules of the standard library whose functions and objects neither hold nor return objects of the
/// workspace, except through `OPEN_MEMBERS` and `HOOKS`.
const CLOSED_MODULES: &str = "array base64 binascii bz2 calendar cmath colorsys csv datetime decimal difflib email \
    errno fractions getpass glob gzip hashlib hmac html http io json keyword linecache locale logging lzma math \
    mimetypes numbers os pathlib platform pprint re secrets shlex shutil signal socket ssl stat \
    string struct subprocess sys sysconfig tempfile textwrap time timeit token tokenize tomllib traceback \
    unicodedata urllib uuid xml zipfile zlib zoneinfo";
/// Functions and attributes in closed modules that return or hold objects that they were given, or call a
/// method of them: `math.floor(x)` returns what `x.__floor__` does.
const OPEN_MEMBERS: &str = "_current_frames _getframe ceil choice detach exc_info exception excepthook floor \
    getsignal getHandlerByName handlers last_exc last_value meta_path path_hooks path_importer_cache prod raw \
    sumprod trunc unraisablehook";
/// Keyword arguments by which a call is told which objects to make: `json.loads(text, object_hook=Cart)`.
pub(super) const HOOKS: [&str; 13] = [
    "_class",
    "_factory",
    "cls",
    "element_factory",
    "message_factory",
    "object_hook",
    "object_pairs_hook",
    "parse_constant",
    "parse_float",
    "parse_int",
    "parser",
    "policy",
    "target",
];
/// Functions of the standard library that return an object of one type from outside, although they are not
/// written like a class.
const MAKERS: [&str; 1] = ["connect"];
/// Built-in functions whose result depends on the objects that they are given: they return one of them,
/// or what its methods return (`sum`, `abs`, `round`), or make a class or descriptor of them.
const PASS_ON: [&str; 17] = [
    "abs",
    "anext",
    "classmethod",
    "divmod",
    "eval",
    "getattr",
    "iter",
    "max",
    "min",
    "next",
    "pow",
    "property",
    "round",
    "staticmethod",
    "sum",
    "super",
    "type",
];
/// Functions that return a module that they look up, or the names of a module or a scope, and classes
/// whose objects can have such names.
const NAMESPACES: [&str; 11] = [
    "SimpleNamespace",
    "__import__",
    "globals",
    "import_module",
    "load_module",
    "locals",
    "module_from_spec",
    "resolve_name",
    "run_module",
    "run_path",
    "vars",
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
    /// A module that code looks up at run time, or an object with the names of a module:
    /// `sys.modules["shop"]`, `import_module("shop")`, `globals()`, `SimpleNamespace(**vars(shop))`.
    /// Its attributes and results are of this kind, too.
    Namespace,
}

impl OutsideKind {
    /// Returns what an imported name is. `module` is the first part of the module's name, `name` the
    /// name in the module, or `None` for the module itself.
    pub(super) fn imported(module: Option<&str>, name: Option<&str>) -> Self {
        let is_closed = module.is_some_and(is_closed_module);
        match name {
            _ if is_closed => {
                name.map_or(OutsideKind::Closed, |name| OutsideKind::Closed.member(name))
            }
            Some(name) if NAMESPACES.contains(&name) => OutsideKind::Namespace,
            Some(name) if !is_like_class(name) => OutsideKind::Object,
            Some(_) | None => OutsideKind::Container,
        }
    }

    /// Returns what a name is that no code of the workspace binds.
    pub(super) fn unbound(name: &str) -> Self {
        match name {
            _ if PASS_ON.contains(&name) => OutsideKind::Any,
            _ if NAMESPACES.contains(&name) => OutsideKind::Namespace,
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
            OutsideKind::Closed if name == "modules" => OutsideKind::Namespace,
            OutsideKind::Closed if is_open_member(name) => OutsideKind::Any,
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container if NAMESPACES.contains(&name) => OutsideKind::Namespace,
            OutsideKind::Container if is_like_class(name) => OutsideKind::Container,
            OutsideKind::Container => OutsideKind::Object,
            OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
            OutsideKind::Namespace => OutsideKind::Namespace,
        }
    }

    /// Returns what a call returns.
    pub(super) fn called(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container => OutsideKind::Object,
            OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
            OutsideKind::Namespace => OutsideKind::Namespace,
        }
    }

    /// Returns what an instance of a class is, or what a context manager returns.
    pub(super) fn instance(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container | OutsideKind::Object => OutsideKind::Object,
            OutsideKind::Any => OutsideKind::Any,
            OutsideKind::Namespace => OutsideKind::Namespace,
        }
    }

    /// Returns what an element is.
    pub(super) fn held(self) -> Self {
        match self {
            OutsideKind::Closed => OutsideKind::Closed,
            OutsideKind::Container | OutsideKind::Object | OutsideKind::Any => OutsideKind::Any,
            OutsideKind::Namespace => OutsideKind::Namespace,
        }
    }

    /// Returns whether an attribute of this name can be one of a class of the workspace.
    pub(super) fn may_have(self, name: &str) -> bool {
        match self {
            OutsideKind::Closed | OutsideKind::Container => false,
            OutsideKind::Object => !is_common(name),
            OutsideKind::Any | OutsideKind::Namespace => true,
        }
    }
}

fn is_open_member(name: &str) -> bool {
    OPEN_MEMBERS.split_whitespace().any(|one| one == name)
}

fn is_closed_module(name: &str) -> bool {
    CLOSED_MODULES.split_whitespace().any(|one| one == name)
}

/// Returns whether a name is written like that of a class: `Session`, but not `SESSION`. Functions that
/// make objects of one type count as classes.
fn is_like_class(name: &str) -> bool {
    if MAKERS.contains(&name) {
        return true;
    }
    let name = name.trim_start_matches('_');
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}
