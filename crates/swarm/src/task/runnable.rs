//! Finds the examples in a task that can be run: Python snippets, interactive sessions, and commands that run
//! a module or the tests of the project. A snippet is an example only if it uses code of the project and all
//! other names are defined, imported or built in.

use crate::lookup::Lookup;
use starling_core::TryCode;
use starling_index::{is_test_file, undefined_names};
use starling_syntax::{FilePath, Language, SymbolTree};

/// Maximum number of examples in a task (`MOST`), and maximum length of an example in bytes (`LONGEST`).
const MOST: usize = 3;
const LONGEST: usize = 4_000;
const PROMPTS: [&str; 2] = [">>>", "..."];
const FENCES: [&str; 2] = ["```", "~~~"];
/// Languages of fenced blocks that contain shell commands.
const SHELLS: [&str; 4] = ["sh", "bash", "shell", "console"];
/// The prompt before a shell command.
const SHELL_PROMPT: &str = "$ ";
/// Modules outside the project that `python -m` may run, because they run the project's tests.
const RUNNERS: [&str; 3] = ["pytest", "doctest", "unittest"];
/// Directories that contain importable modules, besides the root.
const SOURCES: [&str; 1] = ["src/"];
/// Characters with a special meaning in a shell.
const SHELL: &str = "|&;<>$`\\\"'(){}*?[]!~#=%";

/// Returns whether a text may contain an example. This check is fast, and avoids the search in most tasks.
pub(crate) fn may_be_in(text: &str) -> bool {
    let marks = FENCES.iter().chain(&[PROMPTS[0], SHELL_PROMPT]);
    marks.into_iter().any(|mark| text.contains(mark)) || text.lines().any(is_indented)
}

/// Returns the examples of a task, in order of appearance.
pub(crate) fn examples(lookup: &Lookup, text: &str) -> Vec<TryCode> {
    let mut found: Vec<TryCode> = Vec::new();
    for block in blocks(text) {
        let code = match block.kind {
            BlockKind::Command => command(lookup, &block.text).map(TryCode::Command),
            BlockKind::Session => python(lookup, &block.text).map(TryCode::Session),
            BlockKind::Python => python(lookup, &block.text)
                .filter(|_| does_something(&block.text))
                .map(TryCode::Python),
        };
        found.extend(code.filter(|code| !found.contains(code)));
    }
    found.truncate(MOST);
    found
}

/// Returns a text without fenced blocks and without interactive sessions and their output.
pub(crate) fn without_examples(text: &str) -> String {
    let mut prose = String::new();
    let mut lines = text.lines();
    let mut in_session = false;
    while let Some(line) = lines.next() {
        let written = line.trim_start();
        if let Some(fence) = FENCES.iter().find(|fence| written.starts_with(**fence)) {
            lines.find(|line| line.trim_start().starts_with(fence));
            continue;
        }
        in_session = written.starts_with(PROMPTS[0]) || in_session && !written.is_empty();
        if !in_session {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns a text without the shell commands on lines of their own. What the commands print stays.
pub(crate) fn without_commands(text: &str) -> String {
    let is_shown = |line: &str| line.trim_start().starts_with(SHELL_PROMPT);
    let has_prompt = text.lines().any(is_shown);
    let mut left: Vec<&str> = Vec::new();
    let mut fence: Option<(&str, bool)> = None;
    for line in text.lines() {
        let written = line.trim_start();
        match fence {
            Some((by, _)) if written.starts_with(by) => fence = None,
            Some((_, true)) => continue,
            Some((_, false)) => {}
            None => {
                let opened = FENCES.iter().find(|one| written.starts_with(**one));
                fence = opened.map(|by| {
                    let language = written.trim_start_matches(&by[..1]).trim();
                    (*by, SHELLS.contains(&language) && !has_prompt)
                });
            }
        }
        if !is_shown(line) {
            left.push(line);
        }
    }
    left.join("\n")
}

/// A part of the task that may contain an example.
struct Block {
    kind: BlockKind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Python,
    Session,
    Command,
}

/// Returns the fenced blocks, interactive sessions, shell commands and indented blocks of a text. All
/// sessions outside of fences form one block, because later lines use names from earlier lines.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (fenced, outside) = fenced(text);
    for Fenced { language, lines } in fenced {
        add_lines(&mut blocks, &lines);
        let is_shown = blocks_of_lines(&lines).next().is_some();
        match language {
            "" | "py" | "python" | "python3" if !is_shown => blocks.push(Block {
                kind: BlockKind::Python,
                text: dedented(&lines),
            }),
            language if SHELLS.contains(&language) && !is_shown => {
                let commands = lines.iter().map(|line| Block {
                    kind: BlockKind::Command,
                    text: line.trim().to_owned(),
                });
                blocks.extend(commands);
            }
            _ => {}
        }
    }
    add_lines(&mut blocks, &outside);
    add_indented(&mut blocks, &outside);
    blocks
}

/// A fenced code block, with the language after its opening fence.
struct Fenced<'t> {
    language: &'t str,
    lines: Vec<&'t str>,
}

/// Returns the fenced blocks of a text, and the lines outside of these blocks. An empty line replaces each
/// block.
fn fenced(text: &str) -> (Vec<Fenced<'_>>, Vec<&str>) {
    let (mut blocks, mut outside) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let opened = line.trim_start();
        let fence = FENCES.iter().find(|fence| opened.starts_with(**fence));
        let Some(fence) = fence else {
            outside.push(line);
            continue;
        };
        let language = opened.trim_start_matches(&fence[..1]).trim();
        let closes = |line: &&str| !line.trim_start().starts_with(fence);
        outside.push("");
        blocks.push(Fenced {
            language: language.split([' ', ',', '{']).next().unwrap_or_default(),
            lines: lines.by_ref().take_while(closes).collect(),
        });
    }
    (blocks, outside)
}

/// Adds the indented code blocks, as defined by Markdown, that contain no prompt. Consecutive indented
/// paragraphs form one block.
fn add_indented(blocks: &mut Vec<Block>, lines: &[&str]) {
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut continues = false;
    for paragraph in paragraphs(lines) {
        let is_code = is_code(paragraph) && blocks_of_lines(paragraph).next().is_none();
        match found.last_mut() {
            Some(last) if is_code && continues => {
                last.push("");
                last.extend(paragraph);
            }
            _ if is_code => found.push(paragraph.to_vec()),
            _ => {}
        }
        continues = is_code;
    }
    blocks.extend(found.iter().map(|lines| Block {
        kind: BlockKind::Python,
        text: dedented(lines),
    }));
}

/// Returns the groups of consecutive non-empty lines.
fn paragraphs<'l, 't>(lines: &'l [&'t str]) -> impl Iterator<Item = &'l [&'t str]> {
    let groups = lines.split(|line| line.trim().is_empty());
    groups.filter(|group| !group.is_empty())
}

fn is_code(paragraph: &[&str]) -> bool {
    paragraph.iter().all(|line| is_indented(line))
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// Returns a text without code blocks. In each paragraph, also removes the lines from the first prompt on.
pub(crate) fn prose(text: &str) -> String {
    let (_, outside) = fenced(text);
    let has_prompt = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with(PROMPTS[0]) || line.starts_with(SHELL_PROMPT)
    };
    let mut prose = String::new();
    for paragraph in paragraphs(&outside).filter(|paragraph| !is_code(paragraph)) {
        for line in paragraph.iter().take_while(|line| !has_prompt(line)) {
            prose.push_str(line);
            prose.push('\n');
        }
        prose.push('\n');
    }
    prose
}

/// Adds the interactive session and the shell commands in these lines.
fn add_lines(blocks: &mut Vec<Block>, lines: &[&str]) {
    let session: Vec<&str> = session(lines).collect();
    if !session.is_empty() {
        blocks.push(Block {
            kind: BlockKind::Session,
            text: session.join("\n"),
        });
    }
    let commands = lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix(SHELL_PROMPT));
    blocks.extend(commands.map(|line| Block {
        kind: BlockKind::Command,
        text: line.trim().to_owned(),
    }));
}

/// Returns the code of the interactive session and the shell commands in these lines.
fn blocks_of_lines<'t>(lines: &'t [&'t str]) -> impl Iterator<Item = &'t str> {
    let commands = lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix(SHELL_PROMPT));
    session(lines).chain(commands)
}

/// Returns the code of an interactive session, without prompts and output.
fn session<'t>(lines: &'t [&'t str]) -> impl Iterator<Item = &'t str> {
    let mut is_open = false;
    lines.iter().filter_map(move |line| {
        let written = line.trim_start();
        let prompt = PROMPTS.iter().find(|prompt| written.starts_with(**prompt));
        let code = prompt.map(|prompt| &written[prompt.len()..]);
        let code = code.filter(|code| code.is_empty() || code.starts_with(' '));
        is_open = code.is_some() && (is_open || prompt == Some(&PROMPTS[0]));
        let code = code.filter(|_| is_open)?;
        Some(code.strip_prefix(' ').unwrap_or(code))
    })
}

fn dedented(lines: &[&str]) -> String {
    let depth = |line: &&str| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(depth).min().unwrap_or_default();
    let rest = lines
        .iter()
        .map(|line| line.get(least..).unwrap_or_default());
    rest.collect::<Vec<&str>>().join("\n")
}

/// Returns whether code contains a statement other than a definition or an import.
fn does_something(code: &str) -> bool {
    const NOTHING: [&str; 9] = [
        "def ",
        "async def ",
        "class ",
        "@",
        "import ",
        "from ",
        "#",
        ")",
        "\"\"\"",
    ];
    let lines = code
        .lines()
        .filter(|line| line.starts_with(|c: char| !c.is_whitespace()));
    lines
        .into_iter()
        .any(|line| !NOTHING.iter().any(|start| line.starts_with(start)))
}

/// Returns a Python snippet with the missing imports added. A name can be imported if exactly one module of
/// the project defines the name. Returns `None` if the text is not valid Python, uses an unknown name, or
/// uses nothing of the project.
fn python(lookup: &Lookup, code: &str) -> Option<String> {
    let code = code.trim_end();
    if code.is_empty() || code.len() > LONGEST {
        return None;
    }
    let file = FilePath::new("starling_example.py");
    let tree = SymbolTree::parse(file, code.into());
    if !tree.errors().is_empty() {
        return None;
    }
    let undefined = undefined_names(&tree).into_iter();
    let imports = undefined.map(|name| import_of(lookup, &name));
    let imports: Vec<String> = imports.collect::<Option<_>>()?;
    let is_own = |line: &str| {
        let line = line.trim_start();
        let module = ["import ", "from "]
            .iter()
            .find_map(|word| line.strip_prefix(word));
        module.is_some_and(|module| is_own_module(lookup, module))
    };
    let uses_project = !imports.is_empty() || code.lines().any(is_own);
    uses_project.then(|| format!("{}{code}", imports.concat()))
}

/// Returns the import statement for a function or class. Returns `None` unless exactly one module of the
/// project defines the name.
fn import_of(lookup: &Lookup, name: &str) -> Option<String> {
    let mut defined = lookup.index().definitions(name);
    defined.retain(|one| one.symbol.name == name && !is_test_file(&one.symbol.file));
    let [only] = defined.as_slice() else {
        return None;
    };
    let file = &only.symbol.file;
    let path = file.as_str().strip_suffix(".py")?;
    let path = SOURCES
        .iter()
        .find_map(|source| path.strip_prefix(source))
        .unwrap_or(path);
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_module = Language::of(file) == Language::Python && path.split('/').all(is_name);
    is_module.then(|| format!("from {} import {name}\n", path.replace('/', ".")))
}

/// Returns whether the first part of a dotted name is a module or package of the project.
fn is_own_module(lookup: &Lookup, name: &str) -> bool {
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    let first = &name[..end.unwrap_or(name.len())];
    let snapshot = lookup.index().snapshot();
    let is_of_module = |file: &FilePath| {
        let path = file.as_str();
        let path = SOURCES
            .iter()
            .find_map(|source| path.strip_prefix(source))
            .unwrap_or(path);
        let rest = path.strip_prefix(first);
        rest.is_some_and(|rest| rest == ".py" || rest.starts_with('/') && rest.ends_with(".py"))
    };
    !first.is_empty() && snapshot.files().iter().any(is_of_module)
}

/// Returns whether an import error is about a module or a name that is missing in the project. A task may ask
/// to create either.
pub(crate) fn is_to_be_made(lookup: &Lookup, error: &str) -> bool {
    let after = |words: &str| {
        let (_, rest) = error.split_once(words)?;
        rest.split('\'').next()
    };
    if let Some(module) = after("No module named '") {
        let path = module.replace('.', "/");
        let ends = [format!("{path}.py"), format!("{path}/__init__.py")];
        let is_module = |file: &FilePath| ends.iter().any(|end| file.as_str().ends_with(end));
        let is_there = lookup.files().iter().any(is_module);
        return module.contains('.') && !is_there && is_own_module(lookup, module);
    }
    after("' from '").is_some_and(|module| is_own_module(lookup, module))
}

/// Returns a shell command if all it does is run tests or a module of the project.
fn command(lookup: &Lookup, line: &str) -> Option<String> {
    if line.len() > LONGEST || line.contains(|c: char| c.is_control() || SHELL.contains(c)) {
        return None;
    }
    let mut words = line.split_whitespace();
    let is_safe = match words.next()? {
        "pytest" => true,
        "python" | "python3" if words.next() == Some("-m") => {
            let module = words.next()?;
            RUNNERS.contains(&module) || is_own_module(lookup, module)
        }
        _ => false,
    };
    is_safe.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use starling_index::Index;
    use starling_workspace::Workspace;

    fn found(text: &str) -> Vec<TryCode> {
        let (_dir, lookup) = shop();
        examples(&lookup, text)
    }

    /// Creates a project. Returns its temporary directory and a lookup in the project.
    fn shop() -> (tempfile::TempDir, Lookup) {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("src/shop/__init__.py", ""),
            (
                "src/shop/cart.py",
                "class Cart:\n    pass\ndef total(x):\n    return x\n",
            ),
            ("src/shop/one.py", "def same():\n    pass\n"),
            ("src/shop/two.py", "def same():\n    pass\n"),
            ("tests/test_cart.py", "def test_total():\n    pass\n"),
        ];
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        let world = Workspace::open(root).unwrap().snapshot(Default::default());
        let index = Arc::new(Index::new(world.clone()));
        (dir, Lookup::new(world, index))
    }

    fn python(code: &str) -> TryCode {
        TryCode::Python(code.to_owned())
    }

    #[test]
    fn snippets_that_use_the_project_are_examples() {
        let text = "It fails:\n```python\nfrom shop.cart import total\ntotal([1])\n```\nand\n\n    \
                    ```\n    c = Cart()\n    print(total(c))\n    ```\n";
        let expected = [
            python("from shop.cart import total\ntotal([1])"),
            python(
                "from shop.cart import Cart\nfrom shop.cart import total\nc = Cart()\nprint(total(c))",
            ),
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn session_is_one_example_without_output() {
        let text = "Now\n>>> from shop.cart import total\n>>> for x in [1]:\n...     total(x)\n1\n\nthen \
                    `x`:\n>>> total('a')\nTraceback (most recent call last):\n  ...\nTypeError: no\n";
        let code = "from shop.cart import total\nfor x in [1]:\n    total(x)\ntotal('a')";
        assert_eq!(found(text), [TryCode::Session(code.to_owned())]);
    }

    #[test]
    fn command_is_an_example_only_if_it_runs_tests_or_the_project() {
        let text = "$ python -m shop.cart --all\n$ pytest tests/test_cart.py -q\n$ rm -rf /\n$ python -m pip \
                    install x\n$ pytest; rm x\n$ python setup.py\n";
        let expected = ["python -m shop.cart --all", "pytest tests/test_cart.py -q"];
        assert_eq!(
            found(text),
            expected.map(|line| TryCode::Command(line.to_owned()))
        );
        let fenced = found("```sh\npython3 -m pytest tests\nmake\n```");
        assert_eq!(
            fenced,
            [TryCode::Command("python3 -m pytest tests".to_owned())]
        );
    }

    #[test]
    fn incomplete_or_unrelated_code_is_not_an_example() {
        for text in [
            "```python\nimport os\nos.getcwd()\n```",
            "```python\ntotal(\n```",
            "```python\ntotal(rows)\n```",
            "```python\nsame()\n```",
            "```python\ndef total(x):\n    return x + 1\n```",
            "```json\n{\"total\": 1}\n```",
            "Traceback:\n```\n  File \"shop/cart.py\", line 4, in total\nTypeError: no\n```",
            "It costs $ 5, see total.",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn indented_block_between_empty_lines_is_an_example() {
        let text = "It fails:\n\n    c = Cart()\n\n    print(total(c))\n\nIt should not:\n\n\ttotal([1])\n";
        let expected = [
            python(
                "from shop.cart import Cart\nfrom shop.cart import total\nc = Cart()\n\nprint(total(c))",
            ),
            python("from shop.cart import total\ntotal([1])"),
        ];
        assert!(may_be_in(text));
        assert_eq!(found(text), expected);
        for other in [
            "It fails:\n    total([1])\n",
            "It fails:\n\n    total([1])\nalways.\n",
            "It fails:\n\n    the total is wrong\n",
            "It fails:\n\n  total([1])\n",
        ] {
            assert_eq!(found(other), [], "{other}");
        }
        let session = "It fails:\n\n    >>> total([1])\n    1\n\n    $ pytest\n";
        assert_eq!(found(session).len(), 2);
    }

    #[test]
    fn missing_names_and_modules_of_the_project_may_be_requested() {
        let (_dir, lookup) = shop();
        for (error, expected) in [
            (
                "ImportError: cannot import name 'top' from 'shop.cart' (/x/src/shop/cart.py)",
                true,
            ),
            ("ModuleNotFoundError: No module named 'shop.stats'", true),
            (
                "ImportError: cannot import name 'top' from 'numpy' (/x)",
                false,
            ),
            ("ModuleNotFoundError: No module named 'numpy'", false),
            // The module exists but cannot be imported, because the project is not installed.
            ("ModuleNotFoundError: No module named 'shop'", false),
            ("ModuleNotFoundError: No module named 'shop.cart'", false),
            ("ImportError: attempted relative import", false),
        ] {
            assert_eq!(is_to_be_made(&lookup, error), expected, "{error}");
        }
    }

    #[test]
    fn at_most_three_different_examples_are_taken() {
        let block = |n: u32| format!("```py\ntotal({n})\n```\n");
        let text: String = [1, 1, 2, 3, 4].map(block).concat();
        assert_eq!(found(&text).len(), MOST);
        assert!(may_be_in(&text) && !may_be_in("Fix `total`."));
    }
}
