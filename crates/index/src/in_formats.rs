//! Finds names in strings that Python evaluates: the replacement fields of format strings, lists of names
//! that are split, and code that is run.

use starling_syntax::SymbolTree;
use starling_text::ByteRange;
use tree_sitter::Node;

/// Calls that return a dictionary of variables or attributes. A format string can refer to its keys.
const NAMESPACES: [&str; 4] = ["globals()", "locals()", "vars(", "__dict__"];
/// Functions that run the code in a string, and the modules that define them.
const RUNNERS: [(&str, &[&str]); 7] = [
    ("Timer", &["timeit"]),
    ("compile", &["builtins"]),
    ("eval", &["builtins"]),
    ("exec", &["builtins"]),
    ("repeat", &["timeit"]),
    ("run", &["cProfile", "profile"]),
    ("timeit", &["timeit"]),
];
/// Functions that take the name of an attribute, a member or a module as a string.
const LOOKUPS: [&str; 12] = [
    "attrgetter",
    "delattr",
    "delitem",
    "getattr",
    "hasattr",
    "import_module",
    "methodcaller",
    "multiple",
    "object",
    "patch",
    "setattr",
    "setitem",
];

/// Returns whether a string is a name that Python looks up: as an argument of a function such as `getattr`,
/// or in a dictionary of variables or attributes (`globals()["total"]`).
pub(super) fn is_looked_up(tree: &SymbolTree, whole: ByteRange) -> bool {
    let text = tree.text();
    let root = tree.root();
    let node = root.and_then(|root| root.descendant_for_byte_range(whole.start, whole.end));
    let looks_up = |node: Node<'_>| {
        let function = node.child_by_field_name("function");
        let name = function.and_then(|function| written(function, text).rsplit('.').next());
        name.is_some_and(|name| LOOKUPS.contains(&name))
    };
    node.is_some_and(|node| ancestors(node).any(looks_up) || is_formatted_with_names(node, text))
}

/// Returns the offset of the first use of a name that Python evaluates in a string literal. `whole` is the
/// range of the literal, and `written` are the ranges of its text.
pub(super) fn read_at(
    tree: &SymbolTree,
    whole: ByteRange,
    written: &[ByteRange],
    name: &str,
) -> Option<usize> {
    let text = tree.text();
    let node = tree
        .root()
        .and_then(|root| root.descendant_for_byte_range(whole.start, whole.end))?;
    let (is_code, is_list) = (is_run(node, text), is_split(node, text));
    let has_namespace = is_formatted_with_names(node, text);
    written.iter().find_map(|part| {
        let content = part.of(text);
        let at = attribute_at(content, name);
        let at = at.or_else(|| has_namespace.then(|| variable_at(content, name))?);
        let at = at
            .or_else(|| (is_code || is_list && lists(content)).then(|| word_at(content, name))?);
        at.map(|at| part.start + at)
    })
}

/// Returns the offset of the first replacement field that reads an attribute with this name, as
/// `{x.name!r:>3}` does.
pub(super) fn attribute_at(content: &str, name: &str) -> Option<usize> {
    fields(content).into_iter().find_map(|(start, field)| {
        let mut places = words(field, name).filter(|at| field[..*at].ends_with('.'));
        places.next().map(|at| start + at)
    })
}

/// Returns the offset of the first place where a format string refers to a variable with this name: `{name}`,
/// `{x[name]}`, `%(name)s`, `$name` or `${name}`.
fn variable_at(content: &str, name: &str) -> Option<usize> {
    let in_field = fields(content).into_iter().find_map(|(start, field)| {
        let mut places = words(field, name).filter(|at| !field[..*at].ends_with('.'));
        places.next().map(|at| start + at)
    });
    let opens = |at: &usize| {
        ["%(", "$", "${"]
            .iter()
            .any(|open| content[..*at].ends_with(open))
    };
    in_field.or_else(|| words(content, name).find(opens))
}

fn word_at(content: &str, name: &str) -> Option<usize> {
    words(content, name).next()
}

/// Returns the offsets at which a name occurs as a whole word.
fn words<'c>(content: &'c str, name: &'c str) -> impl Iterator<Item = usize> + 'c {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let places = content.match_indices(name).map(|(at, _)| at);
    places.filter(move |at| {
        !content[..*at].ends_with(is_part) && !content[at + name.len()..].starts_with(is_part)
    })
}

/// Returns the expression in each replacement field, without conversion and format, and its offset. Includes
/// fields nested in a format, such as `y.width` in `{x:{y.width}}`.
fn fields(content: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = content[at..].find('{') {
        let start = at + open + 1;
        if content[start..].starts_with('{') {
            at = start + 1;
            continue;
        }
        let field = &content[start..];
        let field = &field[..field.find(['{', '}', '!', ':']).unwrap_or(field.len())];
        if is_field_name(field) {
            found.push((start, field));
        }
        at = start + field.len();
    }
    found
}

/// Returns whether a text is the expression of a replacement field, such as `0.name`, `cart.lines[0].name` or
/// `.name`.
fn is_field_name(field: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '-');
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let is_first = |c: char| c.is_alphanumeric() || c == '_';
    field.chars().all(is_name) && first.chars().all(is_first)
}

/// Returns whether a string consists only of names and separators, as `late_total, tax` does.
fn lists(content: &str) -> bool {
    let mut words = content.split([',', ' ', '\n', '|', ';']);
    words.all(|word| {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        word.trim().chars().all(is_name)
    })
}

/// Returns whether code splits the string literal, as in `"a,b".split(",")`.
fn is_split(string: Node<'_>, text: &str) -> bool {
    let access = outer(string).parent();
    let access = access.filter(|access| access.kind() == "attribute");
    let method = access.and_then(|access| access.child_by_field_name("attribute"));
    method.is_some_and(|method| ["split", "rsplit"].contains(&written(method, text)))
}

/// Returns whether a string literal is in the arguments of a function that runs code, such as `eval("f()")`.
fn is_run(string: Node<'_>, text: &str) -> bool {
    ancestors(string).any(|node| {
        let arguments = node.child_by_field_name("arguments");
        let has_string = arguments.is_some_and(|arguments| {
            arguments.start_byte() <= string.start_byte()
                && string.end_byte() <= arguments.end_byte()
        });
        let function = node.child_by_field_name("function");
        node.kind() == "call" && has_string && function.is_some_and(|one| runs(written(one, text)))
    })
}

fn runs(function: &str) -> bool {
    let (module, name) = function.rsplit_once('.').unwrap_or(("", function));
    RUNNERS.iter().any(|(runner, modules)| {
        let is_builtin = module.is_empty() && *runner != "run";
        *runner == name && (is_builtin || modules.contains(&module))
    })
}

/// Returns whether a string literal may be formatted with the variables of a module or function, or the
/// attributes of an object, as in `"{rate}".format(**globals())`. If the literal is assigned to a variable,
/// any such call in the file counts, because it may format the variable.
fn is_formatted_with_names(string: Node<'_>, text: &str) -> bool {
    let whole = ancestors(string).last().unwrap_or(string);
    let scope = match whole.kind() {
        "assignment" if whole.child_by_field_name("right") == Some(outer(string)) => text,
        _ => written(whole, text),
    };
    NAMESPACES.iter().any(|one| scope.contains(one))
}

/// Returns the whole string expression: the literal with adjacent literals and parentheses.
fn outer(string: Node<'_>) -> Node<'_> {
    let mut node = string;
    while let Some(parent) = node.parent() {
        if !["concatenated_string", "parenthesized_expression"].contains(&parent.kind()) {
            break;
        }
        node = parent;
    }
    node
}

/// Returns the expressions that contain a node, from the innermost to the outermost.
fn ancestors(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let is_expression = |node: &Node<'_>| {
        let kind = node.kind();
        let is_statement = ["_statement", "_clause", "_definition"]
            .iter()
            .any(|ending| kind.ends_with(ending));
        !is_statement && !["block", "module"].contains(&kind)
    };
    std::iter::successors(node.parent(), Node::parent).take_while(is_expression)
}

fn written<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    &text[node.start_byte()..node.end_byte()]
}
