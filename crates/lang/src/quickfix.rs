//! Import statements in a server's quick fixes. Only the statement is used, not the edit: Starling
//! chooses the position as for every other import.

use std::path::Path;

use ropey::Rope;
use serde::Deserialize;
use serde_json::Value;

use super::convert::WireRange;
use super::documents::path;
use starling_text::Encoding;

/// Maximum number of statements. More would not be a useful choice.
const MOST: usize = 12;

/// Returns the import statements that define `name`, in the server's order.
pub(super) fn imports(
    actions: &Value,
    file: &Path,
    text: &str,
    encoding: Encoding,
    name: &str,
) -> Vec<String> {
    let rope = Rope::from_str(text);
    let mut found: Vec<String> = Vec::new();
    for action in actions.as_array().into_iter().flatten() {
        let by_edit = edited(action, file, &rope, encoding)
            .into_iter()
            .find_map(|line| statement(&line, name));
        let titled = || titled(action["title"].as_str()?, name);
        if let Some(statement) = by_edit.or_else(titled)
            && !found.contains(&statement)
            && found.len() < MOST
        {
            found.push(statement);
        }
    }
    found
}

/// Returns the lines that an action changes in the file, as they are after the edit.
fn edited(action: &Value, file: &Path, text: &Rope, encoding: Encoding) -> Vec<String> {
    let mut lines = Vec::new();
    for edit in edits(action, file) {
        let (Ok(range), Some(new)) = (
            WireRange::deserialize(&edit["range"]),
            edit["newText"].as_str(),
        ) else {
            continue;
        };
        let range = range.bytes(text, encoding);
        let first = text.byte_to_line(range.start);
        let last = text.byte_to_line(range.end);
        let before = text.byte_slice(text.line_to_byte(first)..range.start);
        let after = text.line(last);
        let after = after.byte_slice(range.end - text.line_to_byte(last)..);
        let changed = format!("{before}{new}{after}");
        lines.extend(changed.lines().map(str::to_owned));
    }
    lines
}

fn edits<'a>(action: &'a Value, file: &Path) -> Vec<&'a Value> {
    let is_file = |uri: &str| path(uri).as_deref() == Some(file);
    let edit = &action["edit"];
    let plain = edit["changes"].as_object().into_iter().flatten();
    let plain = plain
        .filter(|(uri, _)| is_file(uri))
        .map(|(_, edits)| edits);
    let documents = edit["documentChanges"].as_array().into_iter().flatten();
    let documents = documents
        .filter(|change| change["textDocument"]["uri"].as_str().is_some_and(is_file))
        .map(|change| &change["edits"]);
    plain
        .chain(documents)
        .filter_map(Value::as_array)
        .flatten()
        .collect()
}

/// Returns the import of only `name` from a line that imports it.
fn statement(line: &str, name: &str) -> Option<String> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("from ") {
        let (module, names) = rest.split_once(" import ")?;
        let names = names.split('#').next()?.trim_matches(['(', ')', ' ']);
        let wanted = |one: &&str| {
            let bound = one.rsplit(" as ").next().unwrap_or(one);
            bound.trim() == name
        };
        let one = names.split(',').map(str::trim).find(wanted)?;
        return is_path(module).then(|| format!("from {module} import {one}"));
    }
    let module = line.strip_prefix("import ")?.trim();
    (module == name && is_path(module)).then(|| format!("import {module}"))
}

/// Returns the import from an action's title, which may be the statement or a dotted name.
fn titled(title: &str, name: &str) -> Option<String> {
    statement(title, name).or_else(|| {
        let (module, last) = title.strip_prefix("import ")?.rsplit_once('.')?;
        (last == name && is_path(module)).then(|| format!("from {module} import {name}"))
    })
}

fn is_path(module: &str) -> bool {
    !module.is_empty()
        && module
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn action(title: &str, line: u32, column: u32, new: &str) -> Value {
        let at = json!({"line": line, "character": column});
        json!({"title": title, "kind": "quickfix", "edit": {"changes": {"file:///p/a.py": [
            {"range": {"start": at, "end": at}, "newText": new},
        ]}}})
    }

    fn found(actions: &[Value], name: &str) -> Vec<String> {
        let text = "import os\nfrom x import (\n    y,\n)\nname\n";
        imports(
            &json!(actions),
            Path::new("/p/a.py"),
            text,
            Encoding::Utf8,
            name,
        )
    }

    #[test]
    fn import_statements_are_extracted_from_quick_fixes() {
        let actions = [
            action(
                "import collections.name",
                0,
                0,
                "from collections import name\n",
            ),
            action("again", 0, 9, "\nfrom collections import name"),
            action("from z import name", 4, 0, "name"),
            action("Ignore 'unresolved-reference'", 4, 4, "  # type: ignore"),
            action("qualify collections.name", 4, 0, "collections."),
            action("into the list", 2, 4, "name, "),
        ];
        assert_eq!(
            found(&actions, "name"),
            ["from collections import name", "from z import name"]
        );
        // The edit extends a multi-line list, so the statement comes from the title.
        let merged = [action("import x.name", 2, 4, "name,\n    ")];
        assert_eq!(found(&merged, "name"), ["from x import name"]);
    }

    #[test]
    fn quick_fix_imports_only_the_requested_name_in_this_file() {
        let merged = action("t", 0, 9, ", sys\nfrom m import other as name, more");
        assert_eq!(found(&[merged], "name"), ["from m import other as name"]);
        let module = action("t", 0, 0, "import name\n");
        assert_eq!(found(&[module], "name"), ["import name"]);
        let elsewhere = json!({"title": "t", "edit": {"documentChanges": [{
            "textDocument": {"uri": "file:///p/b.py", "version": 1},
            "edits": [{"range": {"start": {"line": 0, "character": 0},
                "end": {"line": 0, "character": 0}}, "newText": "import name\n"}],
        }]}});
        assert!(found(&[elsewhere], "name").is_empty());
        let odd = action("t", 0, 0, "from os;x import name\n");
        assert!(found(&[odd], "name").is_empty());
    }

    #[test]
    fn invalid_quick_fixes_are_ignored() {
        for odd in [
            json!(null),
            json!({}),
            json!([1, {"edit": 3}, {"edit": {"changes": {"file:///p/a.py": 1}}}]),
        ] {
            let all = imports(&odd, Path::new("/p/a.py"), "", Encoding::Utf8, "x");
            assert!(all.is_empty());
        }
        let far = action("import q.name", 99, 99, "x");
        assert_eq!(found(&[far], "name"), ["from q import name"]);
    }
}
