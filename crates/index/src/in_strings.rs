//! Finds names in strings of code and of data files, and names in scripts. A registry, a route or
//! `getattr` may look up a symbol by such a string.

use std::sync::Arc;

use super::generated::is_generated;
use super::names::Names;
use super::read::on_all_cores;
use super::search::text_of;
use super::{in_formats, in_scripts, in_templates};
use starling_syntax::{FilePath, Language, StringLiteral, SymbolTree, string_literals};
use starling_text::ByteRange;
use starling_workspace::Snapshot;
use tree_sitter::Node;

/// Extensions of data files in which strings are searched.
const DATA: [&str; 11] = [
    "cfg",
    "conf",
    "csv",
    "ini",
    "json",
    "jsonl",
    "properties",
    "toml",
    "tsv",
    "yaml",
    "yml",
];
/// Characters that separate the parts of a string: `handlers:EchoHandler`,
/// `pkg/handlers#EchoHandler`.
const BETWEEN: [char; 6] = ['.', ':', '/', '#', '"', '\''];
/// Extensions that mark a string as a file name: `templates/total.html` is a file, not the `total`
/// of the code.
pub(super) const FILES: [&str; 22] = [
    "cfg", "css", "csv", "db", "gif", "html", "ini", "jpg", "js", "json", "log", "md", "pdf",
    "png", "py", "rst", "sql", "svg", "toml", "txt", "xml", "yaml",
];

/// An occurrence of a name outside of code: as a whole part of a string without white space
/// (`"handlers:EchoHandler"`), in a string that Python evaluates (`"{cart.total}"`, `eval("total()")`), in a
/// line of a script or notebook that uses the name, or in an expression of a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InString {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    /// Whether the string looks like a URL or a file path.
    pub is_address: bool,
    /// Whether the string is exactly the name, as a key is, and no code visibly looks the name up.
    pub is_word: bool,
    /// Whether the name occurs in a line of a script or template, not in a string.
    pub is_script: bool,
    /// Whether the name occurs in an expression of a template.
    pub is_template: bool,
}

/// Returns the occurrences of `name` as a whole part of a string, in the order of files and lines.
/// Leaves out docstrings, type annotations in strings, and the names in `__all__`.
pub(super) fn in_strings(snapshot: &Snapshot, name: &str) -> Vec<InString> {
    if name.is_empty() {
        return Vec::new();
    }
    let files = snapshot.files_with_hidden();
    let found = on_all_cores(&files, || (), |file| in_file(snapshot, file, name));
    let mut found: Vec<InString> = found.into_iter().flatten().collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the occurrences of a name in the strings and lines of one file.
pub(super) fn in_file(snapshot: &Snapshot, file: &FilePath, name: &str) -> Vec<InString> {
    if !is_searched(file) {
        return match in_templates::is_template(file) {
            true => in_template(snapshot, file, name),
            false => Vec::new(),
        };
    }
    let is_text = is_data(file) || in_scripts::is_script(file);
    let text = text_of(snapshot, file).filter(|text| text.contains(name));
    match text {
        Some(text) if is_text || is_unread(file, &text) => in_text(file, &text, name),
        Some(text) => in_code(file, text, name),
        None => Vec::new(),
    }
}

/// Returns whether the index holds no names of a Python file: it is hidden or generated. Its lines are
/// searched as those of a script.
fn is_unread(file: &FilePath, text: &str) -> bool {
    file.as_str().split('/').any(|part| part.starts_with('.')) || is_generated(text)
}

/// Returns whether a file is searched for strings, or for lines of code: a Python module, a data
/// file or a script.
pub(super) fn is_searched(file: &FilePath) -> bool {
    let is_code = Language::of(file) == Language::Python && !in_templates::is_template(file);
    is_code || is_data(file) || in_scripts::is_script(file)
}

/// Returns whether a string lists a name among the fields of a named tuple: `namedtuple("Point", "x
/// y")`.
pub(super) fn is_field(snapshot: &Snapshot, name: &str) -> bool {
    let lists = |text: &str| {
        let is_list = |c: char| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ');
        let mut strings = text.split(['"', '\'']).filter(|part| part.contains(name));
        text.contains("namedtuple")
            && strings.any(|part| {
                let mut words = part.split([',', ' ']);
                part.chars().all(is_list) && words.any(|word| word == name)
            })
    };
    snapshot.files().iter().any(|file| {
        let is_code = Language::of(file) == Language::Python;
        let text = text_of(snapshot, file).filter(|text| is_code && text.contains(name));
        text.is_some_and(|text| lists(&text))
    })
}

fn is_data(file: &FilePath) -> bool {
    let ending = file.name().rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| DATA.contains(&ending))
}

fn in_code(file: &FilePath, text: Arc<str>, name: &str) -> Vec<InString> {
    let tree = SymbolTree::parse(file.clone(), text);
    let text = tree.text();
    let names = Names::read(&tree);
    let is_followed = |at: usize| {
        let at = at as u32;
        let found = names.occurrence_at(at).and_then(|id| names.occurrence(id));
        found.is_some_and(|one| one.at == at && names.name(one.name) == name)
    };
    let mut found = Vec::new();
    for string in literals(&tree, name) {
        let written = &string.written;
        let whole: String = written.iter().map(|part| part.of(text)).collect();
        let is_one = !whole.contains(char::is_whitespace);
        let mut parts = written.iter().filter(|_| is_one).flat_map(|part| {
            let places = parts_at(text, *part, name);
            places.filter(|at| !is_followed(*at)).collect::<Vec<_>>()
        });
        let part = parts.next();
        let at = part.or_else(|| {
            let read = in_formats::read_at(&tree, string.whole, written, name);
            read.filter(|at| !is_followed(*at))
        });
        if let Some(at) = at {
            found.push(InString {
                file: file.clone(),
                line: names.line(at as u32),
                is_address: part.is_some() && is_address(&whole, name),
                is_word: whole == name && !in_formats::is_looked_up(&tree, string.whole),
                is_script: false,
                is_template: false,
            });
        }
    }
    found
}

/// Returns the string literals that contain a name, without docstrings.
fn literals(tree: &SymbolTree, name: &str) -> Vec<StringLiteral> {
    let mut found = Vec::new();
    let Some(root) = tree.root() else {
        return found;
    };
    for string in tree.strings() {
        let node = root.descendant_for_byte_range(string.start, string.end);
        let node = node.filter(|_| string.of(tree.text()).contains(name));
        if node.is_some_and(|node| !is_statement(node)) {
            found.extend(string_literals(tree, *string));
        }
    }
    found
}

/// Returns whether a string is a whole statement, as a docstring is.
fn is_statement(string: Node<'_>) -> bool {
    let around = string.parent().map(|parent| match parent.kind() {
        "concatenated_string" => parent.parent().map_or("", |parent| parent.kind()),
        kind => kind,
    });
    around == Some("expression_statement")
}

/// Returns the offsets in a range of a text where a name is a whole part, delimited by separators.
fn parts_at<'t>(
    text: &'t str,
    range: ByteRange,
    name: &'t str,
) -> impl Iterator<Item = usize> + 't {
    let places = text[range.start..range.end].match_indices(name);
    places.map(move |(at, _)| range.start + at).filter(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[*at + name.len()..].chars().next();
        let parts = |c: Option<char>| c.is_none_or(|c| BETWEEN.contains(&c));
        parts(before) && parts(after)
    })
}

/// Returns whether a string is a URL or a file path.
fn is_address(string: &str, name: &str) -> bool {
    let ending = string.rsplit_once('.').map(|(_, ending)| ending);
    let is_file = ending.is_some_and(|ending| ending != name && FILES.contains(&ending));
    is_file || string.starts_with('/') || string.contains("://")
}

/// Returns the strings of a data file and the lines of a script. Some files are both.
fn in_text(file: &FilePath, text: &str, name: &str) -> Vec<InString> {
    let mut found = match is_data(file) {
        true => in_data(file, text, name),
        false => Vec::new(),
    };
    if !is_data(file) || in_scripts::is_script(file) {
        let known: Vec<u32> = found.iter().map(|one| one.line).collect();
        let lines = in_scripts::lines(file, text, name).into_iter();
        let lines = lines.filter(|line| !known.contains(line));
        found.extend(lines.map(|line| InString {
            file: file.clone(),
            line,
            is_address: false,
            is_word: false,
            is_script: true,
            is_template: false,
        }));
    }
    found
}

/// Returns the lines of templates whose expressions use a name.
pub(super) fn in_templates(snapshot: &Snapshot, name: &str) -> Vec<InString> {
    let files = snapshot.files().iter();
    let files = files.filter(|file| in_templates::is_template(file));
    let found = files.flat_map(|file| in_template(snapshot, file, name));
    found.collect()
}

fn in_template(snapshot: &Snapshot, file: &FilePath, name: &str) -> Vec<InString> {
    let text = text_of(snapshot, file).filter(|text| text.contains(name));
    let lines = text.map(|text| in_templates::lines(&text, name));
    let lines = lines.into_iter().flatten();
    let found = lines.map(|line| InString {
        file: file.clone(),
        line,
        is_address: false,
        is_word: false,
        is_script: true,
        is_template: true,
    });
    found.collect()
}

fn in_data(file: &FilePath, text: &str, name: &str) -> Vec<InString> {
    let is_json = file.name().ends_with(".json");
    let is_table = file.name().ends_with(".csv") || file.name().ends_with(".tsv");
    let mut found = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        if !written.contains(name) {
            continue;
        }
        let has_name = |string: &&&str| {
            let whole = ByteRange::new(0, string.len());
            let is_one = !string.contains(char::is_whitespace);
            // The name alone is more likely a word of the table, such as a column.
            let is_word = is_table && **string == name;
            let is_part = is_one && !is_word && parts_at(string, whole, name).next().is_some();
            is_part || in_formats::attribute_at(string, name).is_some()
        };
        let strings = match is_table {
            true => cells_of(written),
            false => strings_of(written, is_json),
        };
        found.extend(strings.iter().find(has_name).map(|string| InString {
            file: file.clone(),
            line,
            is_address: is_address(string, name),
            is_word: **string == *name,
            is_script: false,
            is_template: false,
        }));
    }
    found
}

/// Returns the cells in a line of a table, with or without quotation marks.
fn cells_of(line: &str) -> Vec<&str> {
    line.split([',', ';', '\t', '"']).map(str::trim).collect()
}

/// Returns the strings in a line of a data file: the quoted strings and, except in JSON, the
/// unquoted strings.
fn strings_of(line: &str, is_json: bool) -> Vec<&str> {
    const OPENS: [char; 6] = [' ', '\t', ',', '[', '{', '('];
    let mut found = Vec::new();
    let mut bare_from = 0;
    let mut rest = line.char_indices();
    let mut before = ' ';
    let mut end = line.len();
    while let Some((at, c)) = rest.next() {
        let opens = OPENS.contains(&before) || matches!(before, '=' | ':');
        let is_comment =
            c == '#' && before.is_whitespace() || c == ';' && line[..at].trim().is_empty();
        if is_comment && !is_json {
            end = at;
            break;
        }
        if opens && matches!(c, '"' | '\'') {
            bare(&line[bare_from..at], is_json, &mut found);
            let mut escaped = false;
            let close = rest.find(|(_, other)| {
                let is_end = *other == c && !escaped;
                escaped = *other == '\\' && !escaped;
                is_end
            });
            let close = close.map_or(line.len(), |(close, _)| close);
            found.push(&line[at + 1..close]);
            bare_from = (close + 1).min(line.len());
        }
        before = c;
    }
    bare(&line[bare_from.min(end)..end], is_json, &mut found);
    found
}

/// Adds the unquoted strings in a part of a line.
fn bare<'l>(part: &'l str, is_json: bool, into: &mut Vec<&'l str>) {
    if is_json {
        return;
    }
    for piece in part.split([',', '[', ']', '{', '}', '=']) {
        for piece in piece.split(": ") {
            let piece = piece.trim().trim_start_matches("- ").trim();
            if !piece.is_empty() {
                into.push(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;

    /// Returns the line of each string in a file that contains the name `Echo`, followed by `~` if
    /// the string is an address.
    fn lines(file: &str, text: &str) -> Vec<String> {
        let found = in_strings(&snapshot_of(&[(file, text)]), "Echo");
        let words = found.iter().map(|one| {
            let mark = if one.is_address { "~" } else { "" };
            format!("{}{mark}", one.line)
        });
        words.collect()
    }

    #[test]
    fn name_is_found_as_a_whole_part_of_a_string() {
        for string in [
            "'Echo'",
            "\"handlers:Echo\"",
            "\"handlers.Echo\"",
            "\"pkg/handlers/Echo\"",
            "\"handlers#Echo\"",
            "\"handlers:Echo.run\"",
            "r'handlers:Echo'",
            "'''handlers:Echo'''",
            "f'{package}.Echo'",
            "f\"{load('handlers:Echo')}\"",
            "'more' ':Echo'",
        ] {
            let text = format!("X = 1\nY = {{'echo': {string}}}\n");
            assert_eq!(lines("a.py", &text), ["2"], "{string}");
        }
        for string in ["'/Echo'", "'https://x.org/Echo'", "'pages/Echo.html'"] {
            assert_eq!(
                lines("a.py", &format!("X = {string}\n")),
                ["1~"],
                "{string}"
            );
        }
    }

    #[test]
    fn name_is_found_in_strings_that_python_evaluates() {
        for code in [
            "'a {0.Echo} ({0.size})'.format(x)",
            "'a {x.Echo!r:>3} of it'",
            "'{x.more[0].Echo.name:{x.width}} of it'",
            "'a {x:{y.Echo}} of it'",
            "'{.Echo} ' 'of it'",
            "'{Echo}'.format(**globals())",
            "'{Echo.name} of it'.format_map(vars(module))",
            "'%(Echo)s of it' % globals()",
            "('{Echo} ' 'of it').format(**vars(x))",
            "Template('$Echo of it').substitute(globals())",
            "Template('${Echo}').substitute(**locals())",
            "'{Echo} of it'\nlog(Y.format(**globals()))",
            "'Echo,x'.split(',')",
            "'x Echo'.split()",
            "eval('Echo() + 1')",
            "builtins.exec(dedent('x = Echo()'))",
            "compile('Echo()', '', 'eval')",
            "timeit.timeit('Echo()', globals=globals())",
            "timeit.repeat(stmt=f'Echo({n})')",
            "[eval(one) for one in eval('[Echo()]')]",
        ] {
            let text = format!("X = 1\nY = {code}\n");
            assert_eq!(lines("a.py", &text), ["2"], "{code}");
        }
        for line in ["text: \"{0.Echo} of it\"", "text = '{x.Echo!r}'"] {
            assert_eq!(lines("a.yaml", line), ["1"], "{line}");
        }
    }

    #[test]
    fn name_is_not_found_in_other_fields_and_lists() {
        for code in [
            "'{Echo}'.format(Echo=1)",
            "'%(Echo)s' % {'a': 1}",
            "Template('$Echo').substitute(x=1)",
            "'{{x.Echo}} of it'.format(y)",
            "'{x.Echoes} {x.MyEcho}'",
            "'{x:.Echo}'",
            "'{x and y.Echo}'",
            "'an Echo of it!'.split()",
            "'Echo, x'",
            "re.compile('Echo +')",
            "frame.eval('Echo + 1')",
            "eval('MyEcho()')",
            "log('an Echo', eval('x'))",
        ] {
            let text = format!("Y = {code}\n");
            assert_eq!(lines("a.py", &text), [""; 0], "{code}");
        }
    }

    #[test]
    fn name_is_not_found_in_prose_in_code_or_inside_a_longer_name() {
        for text in [
            "X = 'handlers:EchoHandler'\n",
            "X = 'handlers:MyEcho'\n",
            "X = 'handlers:Echo-2'\n",
            "X = 'an Echo of it'\n",
            "X = 'see handlers:Echo'\n",
            "X = f'Echo{n}'\n",
            "X = f'{Echo.name}'\n",
            "# 'handlers:Echo'\n",
            "def f():\n    'Echo'\n",
            "class Echo:\n    \"\"\"Echo\"\"\"\n",
            "class Echo:\n    pass\n\n\ndef f(x: 'Echo') -> 'list[Echo]':\n    pass\n",
            "__all__ = ['Echo']\n\n\nclass Echo:\n    pass\n",
        ] {
            assert_eq!(lines("a.py", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn name_is_found_in_strings_of_data_files() {
        for (file, line) in [
            ("a.json", "{\"echo\": \"handlers:Echo\"}"),
            ("a.json", "{\"Echo\": {}}"),
            ("a.toml", "echo = \"handlers:Echo\"  # why"),
            ("a.toml", "[tool.handlers.Echo]"),
            ("a.yaml", "echo: handlers:Echo"),
            ("a.yml", "  - handlers.Echo"),
            ("a.yml", "all: [handlers.Add, 'handlers.Echo']"),
            ("a.yml", "Echo: it's one"),
            ("a.ini", "echo = handlers.Echo"),
            ("setup.cfg", "    echo=handlers:Echo"),
            ("a.csv", "1,handlers:Echo,two words"),
            ("a.csv", "two words; \"handlers.Echo\""),
            ("a.tsv", "two words\thandlers:Echo"),
        ] {
            assert_eq!(lines(file, &format!("\n{line}\n")), ["2"], "{line}");
        }
        for (file, line) in [
            ("a.json", "{\"echo\": \"an Echo\"}"),
            ("a.toml", "# handlers:Echo"),
            ("a.ini", "; handlers.Echo"),
            ("a.yaml", "text: The Echo of it"),
            ("a.yaml", "echo: handlers:Echoes"),
            ("a.md", "\"Echo\""),
            ("a.csv", "Echo,\"Echo\""),
            ("a.csv", "\"the handlers:Echo of it\""),
        ] {
            assert_eq!(lines(file, &format!("\n{line}\n")), [""; 0], "{line}");
        }
    }
}
