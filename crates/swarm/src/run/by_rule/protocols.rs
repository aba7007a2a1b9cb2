//! Methods that code from outside the project calls by their names on any object that it is given.

use super::doubts::Doubt;
use starling_syntax::SymbolPath;

/// Names of methods that the standard library calls on objects of any class: `closing(x)` calls `close`,
/// `print(file=x)` calls `write`, `dict(x)` calls `keys`. Methods that it calls only on objects of its own
/// classes are left out, because a subclass overrides those, and so are special methods (`__enter__`).
const PROTOCOLS: [(&str, &str); 6] = [
    (
        "files",
        "close fileno flush isatty read readable readinto readline readlines seek seekable tell truncate \
         writable write writelines",
    ),
    ("mappings", "keys"),
    ("generators", "aclose asend athrow send throw"),
    ("locks", "acquire release"),
    ("logging", "emit filter format handle"),
    (
        "imports",
        "create_module exec_module find_module find_spec load_module",
    ),
];

/// Checks that the standard library does not call a method of this name on objects that it is given.
///
/// # Errors
/// Returns a doubt, because such an object may be of the method's class.
pub(super) fn not_called_from_outside(method: &SymbolPath) -> Result<(), Doubt> {
    let name = method.base_name();
    let mut names = PROTOCOLS.iter();
    match names.find(|(_, names)| names.split_whitespace().any(|one| one == name)) {
        Some((protocol, _)) => Err(Doubt::from(format!(
            "code from outside may call `{name}` by its name, as it does for {protocol}"
        ))),
        None => Ok(()),
    }
}
