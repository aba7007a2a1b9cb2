//! How a small model writes a new test: it is shown the function and one test of the file where the new
//! one belongs. Its answer is added to that file; nothing that is there changes.

use std::collections::BTreeSet;

use super::goal::Goal;
use super::hub::Hub;
use super::lookup::Lookup;
use super::protocol::{AddSymbol, Pick, Propose};
use super::small::Words;
use crate::index::is_test_file;
use crate::ports::Tokens;
use crate::prompts::{Prompt, TestSmallPrompt, TestSystemSmall};
use crate::syntax::{FilePath, Language, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// The longest test.
const LONGEST: Tokens = Tokens(200);
/// A file of tests that is longer, in bytes, is shown in part.
const FILE_MOST: usize = 2_000;
/// Where the tests of a project without any are put.
const FOLDER: &str = "tests";

/// A function to be tested, and the file of its tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub target: SymbolPath,
    pub file: FilePath,
}

/// Whether the owner of a symbol is to write a new test into its file.
pub(super) fn is_asked_of(hub: &Hub, symbol: &SymbolPath) -> bool {
    hub.goal == Goal::NewTest && symbol.is_module() && is_test_file(&symbol.file)
}

/// The owner that writes the test: that of the file where it belongs. `None` where it is not known what
/// is to be tested.
pub(super) fn pick(hub: &Hub) -> Option<Pick> {
    let Place { target, file } = place(hub)?;
    Some(Pick {
        symbol: SymbolPath::module(file).to_string(),
        why: format!("a test for {target} belongs there"),
        ..Pick::default()
    })
}

/// What is to be tested, and where: the function that the task names, else the first that its words lead
/// to.
pub(super) fn place(hub: &Hub) -> Option<Place> {
    let lookup = hub.lookup();
    let located = hub.state().located.clone();
    let is_code = |symbol: &SymbolPath| {
        !symbol.is_module()
            && !is_test_file(&symbol.file)
            && Language::of(&symbol.file) == Language::Python
    };
    let mut symbols: Vec<SymbolPath> = located.into_iter().map(|one| one.symbol).collect();
    symbols.retain(is_code);
    let words: Vec<&str> = hub.task.text.split(|c: char| !is_of_name(c)).collect();
    let is_named = |symbol: &&SymbolPath| words.contains(&symbol.base_name());
    let target = symbols.iter().find(is_named).or(symbols.first())?.clone();
    let file = file_for(&lookup, &hub.task.text, &target);
    Some(Place { target, file })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The test file that the task names, else the one that says the name of the function or of its module
/// most often, else a new one.
fn file_for(lookup: &Lookup, task: &str, target: &SymbolPath) -> FilePath {
    let is_tests =
        |file: &FilePath| is_test_file(file) && file.name().contains("test") && is_python(file);
    let mut named = lookup.files_named_in(task).into_iter();
    if let Some(file) = named.find(is_tests) {
        return file;
    }
    let stem = target.file.name().trim_end_matches(".py");
    let says = |file: &FilePath| {
        let Ok(tree) = lookup.tree(file) else {
            return 0;
        };
        let words = tree.text().split(|c: char| !is_of_name(c));
        let is_it = |word: &&str| *word == target.base_name() || *word == stem;
        words.filter(is_it).count() + usize::from(file.name().contains(stem))
    };
    let tests: Vec<&FilePath> = lookup
        .files()
        .iter()
        .filter(|file| is_tests(file))
        .collect();
    let best = tests.iter().map(|file| (says(file), *file));
    // Of files that say it as often, the first.
    let best = best.rev().max_by_key(|(count, _)| *count);
    match best {
        Some((count, file)) if count > 0 => file.clone(),
        _ => {
            let folder = tests
                .first()
                .and_then(|file| file.as_str().rsplit_once('/'));
            let folder = match (folder, tests.is_empty()) {
                (Some((folder, _)), _) => format!("{folder}/"),
                (None, true) => format!("{FOLDER}/"),
                (None, false) => String::new(),
            };
            FilePath::new(format!("{folder}test_{stem}.py"))
        }
    }
}

fn is_python(file: &FilePath) -> bool {
    Language::of(file) == Language::Python
}

/// What the owner of a test file is asked. Its answer ends with the first test.
pub(super) fn words(hub: &Hub, file: &FilePath) -> Option<Words> {
    let Place { target, .. } = place(hub)?;
    let lookup = hub.lookup();
    let found = lookup.symbol(&target).ok()?;
    let kind = match found.symbol.kind {
        SymbolKind::Method => "method",
        SymbolKind::Class => "class",
        SymbolKind::Function | SymbolKind::Module => "function",
    };
    // Of a method, its class is imported.
    let outermost = target.name.split('.').next().unwrap_or_default();
    let importable = lookup.index().importable(outermost, file);
    let import = importable.first().map(|one| one.statement.as_str());
    let failing = hub.state().failing.clone();
    let example = example(&lookup, file, &failing).unwrap_or_default();
    let head = match example.lines().next() {
        Some(head) if head.starts_with("class ") => {
            let bases = head.find('(').map_or(":", |at| &head[at..]);
            format!(
                "class Test{}{bases}\n    ",
                in_camel_case(target.base_name())
            )
        }
        Some(_) | None => String::new(),
    };
    let import = import.map_or(String::new(), |import| format!("{import}\n\n\n"));
    let stop = ["\ndef ", "\nclass ", "\nif ", "\n    def "];
    let prompt = TestSmallPrompt {
        task: hub.task.text.clone(),
        kind: kind.to_owned(),
        name: target.name.clone(),
        source: found.source().trim_end().to_owned(),
        tests: lookup
            .tree(file)
            .map_or_else(|_| String::new(), |tree| in_part(&tree, &example)),
    };
    Some(Words {
        system: TestSystemSmall {}.render(),
        text: prompt.render(),
        beginning: format!("```python\n{import}{head}def test_"),
        stop: stop.map(str::to_owned).to_vec(),
        longest: LONGEST,
    })
}

/// `AveragePerMonth` of `average_per_month`.
fn in_camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}", first.to_uppercase())
    };
    words.map(capital).collect()
}

/// A file of tests; of a longer one what stands before its first test, and the example.
fn in_part(tree: &SymbolTree, example: &str) -> String {
    let text = tree.text();
    if text.len() <= FILE_MOST {
        return text.trim_end().to_owned();
    }
    let is_test = |symbol: &&Symbol| symbol.path.base_name().to_lowercase().starts_with("test");
    let first = tree
        .symbols()
        .iter()
        .filter(is_test)
        .map(|test| test.span.start)
        .min();
    let mut end = first.unwrap_or(0).min(FILE_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n\n\n{example}", text[..end].trim_end())
}

/// The shortest test of a file that does not fail; one in a class with the first line of the class.
fn example(lookup: &Lookup, file: &FilePath, failing: &BTreeSet<String>) -> Option<String> {
    let tree = lookup.tree(file).ok()?;
    let is_test = |symbol: &&Symbol| {
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
        let name = symbol.path.base_name();
        let fails = || {
            failing
                .iter()
                .any(|id| id.split(['.', ':', '[']).any(|part| part == name))
        };
        is_function && name.starts_with("test") && !fails()
    };
    let tests = tree.symbols().iter().filter(is_test);
    let test = tests.min_by_key(|test| test.span.of(tree.text()).len())?;
    let source = test.span.of(tree.text()).trim_end();
    let class = test.parent.map(|class| tree.get(class));
    let class = class.filter(|class| class.kind == SymbolKind::Class);
    let Some(class) = class else {
        return Some(source.to_owned());
    };
    let head = class.span.of(tree.text()).lines().next()?;
    Some(format!("{head}\n    {}", source.trim_start()))
}

/// The answer as an addition to a test file: its imports, and the tests of other names than are there.
/// `None` where it holds no test.
pub(super) fn as_added(tree: &SymbolTree, change: &Propose) -> Option<Propose> {
    let source = change.source.as_deref()?;
    let answer = SymbolTree::parse(tree.file().clone(), source.into());
    let is_new = |symbol: &&Symbol| {
        let is_top = symbol
            .parent
            .is_none_or(|parent| answer.get(parent).path.is_module());
        let name = symbol.path.base_name();
        let is_test = match symbol.kind {
            SymbolKind::Function => name.starts_with("test"),
            SymbolKind::Class => name.contains("Test"),
            SymbolKind::Method | SymbolKind::Module => false,
        };
        is_top && is_test && tree.find(&symbol.path.name).is_none()
    };
    let added: Vec<AddSymbol> = answer
        .symbols()
        .iter()
        .filter(is_new)
        .map(|symbol| AddSymbol {
            source: symbol.span.of(source).to_owned(),
            beside: None,
            inside: false,
        })
        .collect();
    let imports = source.lines().take_while(|line| !line.starts_with("def "));
    let imports = imports.filter(|line| line.starts_with("import ") || line.starts_with("from "));
    (!added.is_empty()).then(|| Propose {
        source: None,
        imports: imports.map(str::to_owned).collect(),
        add: added,
        ..change.clone()
    })
}
