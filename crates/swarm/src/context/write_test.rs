//! Prompts for a small model that writes a new test. The prompt shows the function to test and one
//! test of the target file. The reply is added to that file, and existing code is not changed.

use std::collections::BTreeSet;

use crate::lookup::Lookup;
use crate::protocol::{AddSymbol, Pick, Propose};
use crate::state::checker::Checker;
use crate::task::goal::Goal;
use starling_core::Tokens;
use starling_core::prompts::{Prompt, TestSmallPrompt, TestSystemSmall};
use starling_index::is_test_file;
use starling_syntax::{
    FilePath, Language, Symbol, SymbolKind, SymbolPath, SymbolTree, module_imports,
};

/// Maximum length of a test.
const LONGEST: Tokens = Tokens(200);
/// Maximum size in bytes of a test file that is shown whole.
const FILE_MOST: usize = 2_000;
/// Directory for the tests of a project that has no tests.
const FOLDER: &str = "tests";

/// A function to test, and the file for its tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewTestTarget {
    pub target: SymbolPath,
    pub file: FilePath,
}

/// Returns whether the task asks for a new test and the agent that owns `symbol` must write it,
/// because `symbol` is a test file.
pub(crate) fn is_asked_of(checker: &Checker, symbol: &SymbolPath) -> bool {
    checker.goal == Goal::NewTest && symbol.is_module() && is_test_file(&symbol.file)
}

/// Picks the test file to which the test is added. Returns `None` if it is unknown which function
/// to test.
pub(crate) fn pick(checker: &Checker) -> Option<Pick> {
    let NewTestTarget { target, file } = place(checker)?;
    Some(Pick {
        symbol: SymbolPath::module(file).to_string(),
        why: format!("a test for {target} belongs there"),
        ..Pick::default()
    })
}

/// Returns the function to test and the file for the test. The function is the one that the task
/// names, otherwise the first candidate of a search without a model.
pub(crate) fn place(checker: &Checker) -> Option<NewTestTarget> {
    let lookup = checker.lookup();
    let located = checker.world().located.clone();
    let is_code = |symbol: &SymbolPath| {
        !symbol.is_module()
            && !is_test_file(&symbol.file)
            && Language::of(&symbol.file) == Language::Python
    };
    let mut symbols: Vec<SymbolPath> = located.into_iter().map(|one| one.symbol).collect();
    symbols.retain(is_code);
    let words: Vec<&str> = checker.task.text.split(|c: char| !is_of_name(c)).collect();
    let is_named = |symbol: &&SymbolPath| words.contains(&symbol.base_name());
    let target = symbols.iter().find(is_named).or(symbols.first())?.clone();
    let file = file_for(&lookup, &checker.task.text, &target);
    Some(NewTestTarget { target, file })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the test file that the task names, otherwise the test file that mentions the function or
/// its module most often, otherwise a new file.
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
    // Among files with the same count, the first one is used.
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

/// The style of the tests in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TestStyle {
    /// A passing test of this or another file; empty if there is none.
    example: String,
    is_from_other_file: bool,
    /// Base class of test classes; `None` if the test runner also collects plain functions as
    /// tests.
    base: Option<String>,
    /// The statements that import the base class.
    imports: Vec<String>,
}

impl TestStyle {
    /// Returns the style of the file, otherwise the style of the first other file with a test.
    fn of(checker: &Checker, file: &FilePath) -> TestStyle {
        let lookup = checker.lookup();
        let failing = checker.tests().failing.clone();
        let is_other = |other: &&FilePath| {
            *other != file
                && is_test_file(other)
                && is_python(other)
                && other.name().contains("test")
        };
        let mut others: Vec<&FilePath> = lookup.files().iter().filter(is_other).collect();
        others.sort_by_key(|other| other.directory() != file.directory());
        let own = example(&lookup, file, &failing);
        // A failing test is not used as an example, but the base class of its test class is used.
        let own =
            own.or_else(|| Some((String::new(), example(&lookup, file, &BTreeSet::new())?.1)));
        let (found, is_from_other_file) = match own {
            Some(own) => (Some((own, file)), false),
            None => {
                let mut found = others
                    .into_iter()
                    .filter_map(|other| Some((example(&lookup, other, &failing)?, other)));
                (found.next(), true)
            }
        };
        if let Some(((example, base), from)) = found {
            let imports = match (&base, lookup.tree(from)) {
                (Some(base), Ok(tree)) => imports_of(&tree, base),
                (Some(_) | None, _) => Vec::new(),
            };
            return TestStyle {
                example,
                is_from_other_file,
                base,
                imports,
            };
        }
        let command = checker.services.tests.command().unwrap_or_default();
        match command.contains("unittest") {
            true => TestStyle {
                base: Some("unittest.TestCase".to_owned()),
                imports: vec!["import unittest".to_owned()],
                ..TestStyle::default()
            },
            false => TestStyle::default(),
        }
    }

    /// Returns the reply. If the test runner collects tests only from classes, the tests of the
    /// reply are moved into a class.
    fn fitted(&self, target: &SymbolPath, file: &FilePath, source: &str) -> String {
        let Some(base) = &self.base else {
            return source.to_owned();
        };
        let answer = SymbolTree::parse(file.clone(), source.into());
        let is_top = |symbol: &&Symbol| {
            let parent = symbol.parent.map(|parent| answer.get(parent));
            parent.is_some_and(|parent| parent.path.is_module())
        };
        let is_loose = |symbol: &&Symbol| {
            symbol.kind == SymbolKind::Function && symbol.path.base_name().starts_with("test")
        };
        let top: Vec<&Symbol> = answer.symbols().iter().filter(is_top).collect();
        let loose: Vec<&Symbol> = top.iter().copied().filter(is_loose).collect();
        let mut text = source.to_owned();
        for symbol in top.iter().rev() {
            let head = symbol.name.end..symbol.body.start;
            if is_loose(symbol) {
                text.replace_range(symbol.span.start..symbol.span.end, "");
            } else if symbol.kind == SymbolKind::Class
                && symbol.path.base_name().contains("Test")
                && !source[head].contains('(')
            {
                text.insert_str(symbol.name.end, &format!("({base})"));
            }
        }
        if !loose.is_empty() {
            let methods = loose.iter().map(|test| as_method(&answer, test));
            let methods: Vec<String> = methods.collect();
            let class = class_name(target);
            let methods = methods.join("\n");
            text = format!("{}\n\n\nclass {class}({base}):\n{methods}", text.trim_end());
        }
        let is_missing = |import: &&String| !source.lines().any(|line| line == import.as_str());
        let imports = self.imports.iter().filter(is_missing);
        let imports: String = imports.map(|import| format!("{import}\n")).collect();
        format!("{imports}{}", text.trim_start())
    }
}

/// Converts a test function to an indented method.
fn as_method(tree: &SymbolTree, test: &Symbol) -> String {
    let parameters = &tree.text()[test.name.end..test.body.start];
    let is_method = parameters
        .trim_start_matches(['(', ' '])
        .starts_with("self");
    let span = test.span.of(tree.text());
    let mut source = span.to_owned();
    if !is_method {
        let at = test.name.end - test.span.start;
        let is_empty = parameters.trim_start_matches(['(', ' ']).starts_with(')');
        let own = if is_empty { "self" } else { "self, " };
        if let Some(open) = source[at..].find('(') {
            source.insert_str(at + open + 1, own);
        }
    }
    let indented = source.trim_end().lines().map(|line| match line.is_empty() {
        true => String::from("\n"),
        false => format!("    {line}\n"),
    });
    indented.collect()
}

/// Returns the import statements of a file that bind the first part of a name.
fn imports_of(tree: &SymbolTree, name: &str) -> Vec<String> {
    let first = name.split(['.', '[', ',']).next().unwrap_or(name).trim();
    let statements = module_imports(tree).into_iter();
    let statements = statements.map(|range| range.of(tree.text()).trim().to_owned());
    let binds = |statement: &String| {
        let mut words = statement.split(|c: char| !is_of_name(c)).rev();
        words.any(|word| word == first)
    };
    statements
        .filter(|statement| binds(statement) && !statement.contains('\n'))
        .map(|statement| match statement.split_once(" import ") {
            Some((from, names)) if names.contains(',') => format!("{from} import {first}"),
            Some(_) | None => statement,
        })
        .collect()
}

fn class_name(target: &SymbolPath) -> String {
    format!("Test{}", in_camel_case(target.base_name()))
}

/// Returns the prompt for the agent that owns a test file. Stop sequences end the reply after the
/// first test.
pub(crate) fn words(checker: &Checker, file: &FilePath) -> Option<SmallPrompt> {
    let NewTestTarget { target, .. } = place(checker)?;
    let lookup = checker.lookup();
    let found = lookup.symbol(&target).ok()?;
    let kind = match found.symbol.kind {
        SymbolKind::Method => "method",
        SymbolKind::Class => "class",
        SymbolKind::Function | SymbolKind::Module => "function",
    };
    // To test a method, the test must import the outermost class that contains it.
    let outermost = target.name.split('.').next().unwrap_or_default();
    let importable = lookup.index().importable(outermost, file);
    let import = importable.first().map(|one| one.statement.as_str());
    let style = TestStyle::of(checker, file);
    let is_in_class = style.example.starts_with("class ");
    let head = match &style.base {
        Some(base) => format!("class {}({base}):\n    ", class_name(&target)),
        None if is_in_class => format!("class {}:\n    ", class_name(&target)),
        None => String::new(),
    };
    let has_file = lookup.tree(file).is_ok();
    let own = style.imports.iter().filter(|_| !has_file);
    let import = own.map(String::as_str).chain(import);
    let import: Vec<&str> = import.collect();
    let import = match import.is_empty() {
        true => String::new(),
        false => format!("{}\n\n\n", import.join("\n")),
    };
    let stop = ["\ndef ", "\nclass ", "\nif ", "\n    def "];
    let prompt = TestSmallPrompt {
        task: checker.task.text.clone(),
        kind: kind.to_owned(),
        name: target.name.clone(),
        source: found.source().trim_end().to_owned(),
        tests: match (lookup.tree(file), style.is_from_other_file) {
            (Ok(tree), false) => in_part(&tree, &style.example),
            (Ok(_) | Err(_), _) => String::new(),
        },
        example: match style.is_from_other_file {
            true => style.example,
            false => String::new(),
        },
        base: style.base.unwrap_or_default(),
    };
    Some(SmallPrompt {
        system: TestSystemSmall {}.render(),
        text: prompt.render(),
        beginning: format!("```python\n{import}{head}def test_"),
        stop: stop.map(str::to_owned).to_vec(),
        longest: LONGEST,
    })
}

/// Converts `average_per_month` to `AveragePerMonth`.
fn in_camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}", first.to_uppercase())
    };
    words.map(capital).collect()
}

/// Returns the text of a test file for the prompt. A long file is reduced to the text before its
/// first test, and the example.
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

/// Returns the shortest passing test of a file, and the base classes of its class. If the test is
/// in a class, it is returned with the first line of the class.
fn example(
    lookup: &Lookup,
    file: &FilePath,
    failing: &BTreeSet<String>,
) -> Option<(String, Option<String>)> {
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
        return Some((source.to_owned(), None));
    };
    let bases = &tree.text()[class.name.end..class.body.start];
    let bases = bases
        .split_once('(')
        .and_then(|(_, bases)| bases.rsplit_once(')'));
    let bases = bases.map(|(bases, _)| bases.trim().to_owned());
    let head = match &bases {
        Some(bases) => format!("class {}({bases}):", class.path.base_name()),
        None => format!("class {}:", class.path.base_name()),
    };
    let shown = format!("{head}\n    {}", source.trim_start());
    Some((shown, bases.filter(|bases| !bases.is_empty())))
}

/// Returns the reply's tests in classes that the file already has. Each gets a new class, so that
/// existing code does not change.
fn beside_known_classes(tree: &SymbolTree, answer: &SymbolTree) -> Vec<String> {
    let is_known =
        |class: &&Symbol| class.kind == SymbolKind::Class && tree.find(&class.path.name).is_some();
    let mut classes = Vec::new();
    for class in answer.symbols().iter().filter(is_known) {
        let is_new = |symbol: &&Symbol| {
            let name = symbol.path.base_name();
            name.starts_with("test") && tree.find(&symbol.path.name).is_none()
        };
        let methods = class.children.iter().map(|child| answer.get(*child));
        let methods = methods.filter(is_new).map(|method| {
            let text = method.span.of(answer.text());
            format!("    {}", text.trim())
        });
        let methods: Vec<String> = methods.collect();
        if methods.is_empty() {
            continue;
        }
        let name = class.path.base_name();
        let free = (2..).map(|number| format!("{name}{number}"));
        let free = free.into_iter().find(|name| tree.find(name).is_none());
        let bases = &answer.text()[class.name.end..class.body.start];
        let bases = bases.trim_end().trim_end_matches(':');
        if let Some(name) = free {
            classes.push(format!("class {name}{bases}:\n{}\n", methods.join("\n\n")));
        }
    }
    classes
}

/// Returns the reply in the form of a new test file, in the style of the existing tests.
pub(crate) fn as_file(checker: &Checker, file: &FilePath, change: &Propose) -> Option<Propose> {
    let NewTestTarget { target, .. } = place(checker)?;
    let source = change.source.as_deref()?;
    Some(Propose {
        source: Some(TestStyle::of(checker, file).fitted(&target, file, source)),
        ..change.clone()
    })
}

/// Returns the reply as an addition to a test file: its imports, and its tests under names that are
/// not used yet. Returns `None` if the reply contains no test.
pub(crate) fn as_added(checker: &Checker, tree: &SymbolTree, change: &Propose) -> Option<Propose> {
    let fitted = as_file(checker, tree.file(), change);
    let change = fitted.as_ref().unwrap_or(change);
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
    let added = answer.symbols().iter().filter(is_new);
    let mut added: Vec<String> = added
        .map(|symbol| symbol.span.of(source).to_owned())
        .collect();
    added.extend(beside_known_classes(tree, &answer));
    let added: Vec<AddSymbol> = added
        .into_iter()
        .map(|source| AddSymbol {
            source,
            beside: None,
            inside: false,
        })
        .collect();
    let is_code = |line: &&str| line.starts_with("def ") || line.starts_with("class ");
    let imports = source.lines().take_while(|line| !is_code(line));
    let imports = imports.filter(|line| line.starts_with("import ") || line.starts_with("from "));
    (!added.is_empty()).then(|| Propose {
        source: None,
        imports: imports.map(str::to_owned).collect(),
        add: added,
        ..change.clone()
    })
}

/// The parts of a prompt for a small model.
pub(crate) struct SmallPrompt {
    pub system: String,
    pub text: String,
    /// Prefix of the reply.
    pub beginning: String,
    /// Stop sequences of the reply.
    pub stop: Vec<String>,
    /// Maximum length of the reply.
    pub longest: Tokens,
}
