//! Properties of rewriting, tested on realistic Python: only the rewritten symbol changes, every
//! change can be undone, and two changes of one base give the same result in both orders or
//! conflict.
//!
//! The tests run 13,500 cases with fixed seeds.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use starling_syntax::{
    FilePath, Place, Rewrite, Rewritten, Symbol, SymbolKind, SymbolTree, rewrite,
};
use starling_text::{ByteRange, ChangeSet};

const FILES: &[&str] = &[
    include_str!("../fixtures/python/broken.py"),
    include_str!("../fixtures/python/conditional.py"),
    include_str!("../fixtures/python/decorated.py"),
    include_str!("../fixtures/python/dense.py"),
    include_str!("../fixtures/python/nested.py"),
    include_str!("../fixtures/python/plain.py"),
    include_str!("../fixtures/python/tabbed.py"),
    include_str!("../fixtures/python/texts.py"),
    include_str!("../fixtures/python/waiting.py"),
    include_str!("../fixtures/python/windows.py"),
];

/// The format in which a file of the corpus is written.
#[derive(Debug, Clone, Copy)]
enum CorpusFormat {
    AsIs,
    Crlf,
    Tabs,
    NoFinalBreak,
    ByteOrderMark,
}

fn runner(cases: u32, seed: u64) -> TestRunner {
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    })
}

/// Generates a file of the corpus in one of its variants.
fn corpus() -> impl Strategy<Value = String> {
    let variants = prop::sample::select(vec![
        CorpusFormat::AsIs,
        CorpusFormat::Crlf,
        CorpusFormat::Tabs,
        CorpusFormat::NoFinalBreak,
        CorpusFormat::ByteOrderMark,
    ]);
    (0..FILES.len(), variants).prop_map(|(file, variant)| {
        let text = FILES[file];
        match variant {
            CorpusFormat::AsIs => text.to_owned(),
            CorpusFormat::Crlf => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            CorpusFormat::Tabs => with_tabs(text),
            CorpusFormat::NoFinalBreak => text.trim_end().to_owned(),
            CorpusFormat::ByteOrderMark => format!("\u{feff}{text}"),
        }
    })
}

fn with_tabs(text: &str) -> String {
    let tabbed = |line: &str| {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        format!("{}{}", "\t".repeat(spaces / 4), &line[spaces / 4 * 4..])
    };
    text.split_inclusive('\n').map(tabbed).collect()
}

fn parse(text: &str) -> SymbolTree {
    SymbolTree::parse(FilePath::new("corpus.py"), Arc::from(text))
}

/// Picks any symbol but the module body, or `None` if there is no other.
fn pick(tree: &SymbolTree, index: Index) -> Option<&Symbol> {
    let symbols = &tree.symbols()[1..];
    (!symbols.is_empty()).then(|| index.get(symbols))
}

/// One line of a source: code with its depth below the definition, or a line inside a string.
#[derive(Debug, Clone)]
enum Line {
    Code(usize, String),
    Verbatim(String),
}

impl Line {
    /// Returns the text that must appear in the result: a complete line inside a string, or code
    /// without its indentation.
    fn content(&self) -> &str {
        match self {
            Line::Code(_, text) | Line::Verbatim(text) => text,
        }
    }
}

/// The indentation and line breaks with which a model writes the new source of a symbol.
#[derive(Debug, Clone)]
struct SourceStyle {
    /// Indentation of the first line.
    base: String,
    /// Indentation of each further level.
    unit: &'static str,
    line_break: &'static str,
    /// Text after the last line.
    ending: &'static str,
}

fn writing() -> impl Strategy<Value = SourceStyle> {
    let units = prop::sample::select(vec!["    ", "  ", "\t"]);
    let breaks = prop::sample::select(vec!["\n", "\r\n"]);
    let endings = prop::sample::select(vec!["", "\n", "\n\n  \n"]);
    (0..3usize, units, breaks, endings).prop_map(|(depth, unit, line_break, ending)| SourceStyle {
        base: unit.repeat(depth),
        unit,
        line_break,
        ending,
    })
}

impl SourceStyle {
    fn write(&self, lines: &[Line]) -> String {
        let written: Vec<String> = lines
            .iter()
            .map(|line| match line {
                Line::Code(_, text) if text.is_empty() => String::new(),
                Line::Code(depth, text) => {
                    format!("{}{}{text}", self.base, self.unit.repeat(*depth))
                }
                Line::Verbatim(text) => text.clone(),
            })
            .collect();
        written.join(self.line_break) + self.ending
    }
}

/// Groups of lines for a body. `>` indents a line, and `|` marks a line inside a string.
const STATEMENTS: &[&[&str]] = &[
    &["x = 1"],
    &["# noted"],
    &[""],
    &["", "", "y = x  # why"],
    &["text = '''first", "|  second", "|# third", "|'''"],
    &["value = f\"\"\"{x:", "|>3}", "|\"\"\".strip(", ">1,", ")"],
    &[
        "if x:",
        ">y = 2",
        ">if y:",
        ">>pass",
        "else:",
        ">raise ValueError(",
        ">>'z',",
        ">)",
    ],
    &["for i in range(3):", ">print(i)"],
    &["größe = 'ß🐦'"],
    &["def inner(a, *, b=1):", ">return a"],
    &[
        "@cache",
        "class Inner:",
        ">def deep(self):",
        ">>return 1",
        "",
        ">z = 2",
    ],
    &["with open(p) as f:", ">while True:", ">>break"],
    &[
        "try:",
        ">x()",
        "except E as e:",
        ">raise",
        "finally:",
        ">pass",
    ],
    &["total = 1 + \\", ">>2"],
];

const HEADS: &[&[&str]] = &[
    &["def NAME(self, a: int = 1, *args, **kw) -> int:"],
    &["async def NAME():"],
    &["def NAME(", ">a,  # one", ">b=(1,", ">>2),", "):"],
    &["# about it", "def NAME(x):  # here"],
    &["# about it", "# at length", "@d(1)", "@e", "def NAME():"],
];

fn lines(group: &[&str], depth: usize) -> Vec<Line> {
    let read = |line: &&str| match line.strip_prefix('|') {
        Some(text) => Line::Verbatim(text.to_owned()),
        None => {
            let text = line.trim_start_matches('>');
            let deeper = line.len() - text.len();
            Line::Code(depth + deeper, text.to_owned())
        }
    };
    group.iter().map(read).collect()
}

/// Generates a function with any body. `NAME` is replaced by the name.
fn function(depth: usize) -> impl Strategy<Value = Vec<Line>> {
    let statements = prop::collection::vec(prop::sample::select(STATEMENTS.to_vec()), 0..6);
    (prop::sample::select(HEADS.to_vec()), statements).prop_map(move |(head, statements)| {
        let mut function = lines(head, depth);
        for statement in statements {
            function.extend(lines(statement, depth + 1));
        }
        function.push(Line::Code(depth + 1, "return None".to_owned()));
        function
    })
}

fn class() -> impl Strategy<Value = Vec<Line>> {
    prop::collection::vec(function(1), 0..3).prop_map(|methods| {
        let mut class = lines(
            &["@final", "class NAME(Base, metaclass=Meta):", ">'''Doc.'''"],
            0,
        );
        for (index, method) in methods.into_iter().enumerate() {
            class.push(Line::Code(0, String::new()));
            class.extend(named(method, &format!("method{index}")));
        }
        class
    })
}

fn named(lines: Vec<Line>, name: &str) -> Vec<Line> {
    let fill = |line| match line {
        Line::Code(depth, text) => Line::Code(depth, text.replace("NAME", name)),
        Line::Verbatim(text) => Line::Verbatim(text),
    };
    lines.into_iter().map(fill).collect()
}

/// Checks the properties of every rewrite.
fn check_laws(base: &str, done: &Rewritten) -> Result<(), TestCaseError> {
    prop_assert_eq!(&done.changes.apply(base).unwrap(), &done.text);
    let back = ChangeSet::between(&done.text, base);
    prop_assert!(done.changes.compose(&back).unwrap().apply(base).unwrap() == base);
    prop_assert_eq!(&**done.tree.text(), done.text.as_str());
    check_ownership(&done.tree)
}

/// Checks that every byte has exactly one innermost symbol.
fn check_ownership(tree: &SymbolTree) -> Result<(), TestCaseError> {
    let mut owned: Vec<(ByteRange, &Symbol)> = Vec::new();
    for symbol in tree.symbols() {
        owned.extend(
            tree.own_ranges(symbol)
                .into_iter()
                .map(|range| (range, symbol)),
        );
    }
    owned.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    for (range, symbol) in owned {
        prop_assert_eq!(range.start, end);
        prop_assert_eq!(&tree.owner(range.start).path, &symbol.path);
        prop_assert_eq!(&tree.owner(range.end - 1).path, &symbol.path);
        end = range.end;
    }
    prop_assert_eq!(end, tree.text().len());
    for symbol in tree.symbols() {
        prop_assert!(symbol.span.covers(symbol.definition));
        prop_assert_eq!(&tree.find(&symbol.path.name).unwrap().path, &symbol.path);
    }
    Ok(())
}

/// Returns whether a symbol shares no line with other code.
fn stands_alone(base: &str, symbol: &Symbol) -> bool {
    let before = base[..symbol.span.start].trim_start_matches('\u{feff}');
    let starts = before.is_empty() || before.ends_with(['\n', '\u{c}']);
    let ends = symbol.span.end == base.len() || base[..symbol.span.end].ends_with('\n');
    starts && ends
}

fn is_inside(name: &str, outer: &str) -> bool {
    name.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[test]
fn full_rewrite_changes_only_its_symbol() {
    let strategy = (corpus(), any::<Index>(), function(0), class(), writing());
    let made = Cell::new(0);
    let run = |(base, index, function, class, writing): (String, Index, _, _, SourceStyle)| {
        let tree = parse(&base);
        let Some(symbol) = pick(&tree, index) else {
            return Ok(());
        };
        let source = if symbol.kind == SymbolKind::Class {
            class
        } else {
            function
        };
        let source = named(source, symbol.path.base_name());
        let written = writing.write(&source);
        let change = Rewrite::Whole {
            symbol: symbol.path.name.clone(),
            source: written,
        };
        let done = match rewrite(&tree, &[change]) {
            Ok(done) => done,
            Err(_) if !stands_alone(&base, symbol) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        check_laws(&base, &done)?;
        prop_assert!(done.text.starts_with(&base[..symbol.span.start]));
        prop_assert!(done.text.ends_with(&base[symbol.span.end..]));
        for name in &done.touched {
            prop_assert!(is_inside(name, &symbol.path.name), "{} was touched", name);
        }
        made.set(made.get() + 1);
        check_content(&base, symbol, &done, &source)
    };
    runner(6000, 1).run(&strategy, run).unwrap();
    assert!(made.get() > 5900, "{} were made", made.get());
}

/// Checks that the rewritten symbol, parsed again, has the lines of the source. If the source has
/// no comments above it, the symbol keeps its own.
fn check_content(
    base: &str,
    symbol: &Symbol,
    done: &Rewritten,
    source: &[Line],
) -> Result<(), TestCaseError> {
    let now = done
        .tree
        .find(&symbol.path.name)
        .expect("the symbol is still there");
    prop_assert_eq!(now.span.start, symbol.span.start);
    prop_assert_eq!(
        now.span.end,
        done.text.len() - (base.len() - symbol.span.end)
    );
    let has_comments = source[0].content().starts_with('#');
    let kept = if has_comments {
        symbol.span.start
    } else {
        symbol.definition.start
    };
    let mut expected: Vec<&str> = base[symbol.span.start..kept]
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    expected.extend(
        source
            .iter()
            .map(Line::content)
            .filter(|line| !line.is_empty()),
    );
    let verbatim: Vec<&str> = source
        .iter()
        .filter_map(|line| match line {
            Line::Verbatim(text) => Some(text.as_str()),
            Line::Code(..) => None,
        })
        .collect();
    let is_verbatim = |line: &&str| verbatim.contains(line);
    let found: Vec<&str> = now
        .span
        .of(&done.text)
        .lines()
        .map(|line| {
            if is_verbatim(&line) {
                line
            } else {
                line.trim()
            }
        })
        .filter(|line| !line.is_empty())
        .collect();
    prop_assert_eq!(found, expected);
    // The symbol contains the same number of symbols as the source parsed alone.
    let plain = SourceStyle {
        base: String::new(),
        unit: "    ",
        line_break: "\n",
        ending: "\n",
    };
    let alone = parse(&plain.write(source));
    let count = |tree: &SymbolTree, name: &str| {
        let symbols = tree.symbols().iter();
        symbols
            .filter(|symbol| is_inside(&symbol.path.name, name))
            .count()
    };
    let name = symbol.path.base_name();
    prop_assert_eq!(count(&done.tree, &now.path.name), count(&alone, name));
    Ok(())
}

/// A change to a symbol other than replacing it as a whole.
#[derive(Debug, Clone)]
enum Change {
    PatchLine(Index, &'static str),
    Delete,
    Add(Place),
    Import(Vec<&'static str>),
}

fn change() -> impl Strategy<Value = Change> {
    let imports = vec![
        "import os",
        "import zlib",
        "from os import path, sep",
        "from typing import Any as A",
    ];
    let patches = prop::sample::select(vec!["  # noted", " + 1", "", "\npass", "\n\n"]);
    prop_oneof![
        4 => (any::<Index>(), patches).prop_map(|(line, new)| Change::PatchLine(line, new)),
        2 => Just(Change::Delete),
        2 => prop::sample::select(vec![Place::After, Place::Inside]).prop_map(Change::Add),
        1 => prop::sample::subsequence(imports, 1..4).prop_map(Change::Import),
    ]
}

impl Change {
    fn rewrite(&self, base: &str, symbol: &Symbol) -> Rewrite {
        let name = symbol.path.name.clone();
        match self {
            Change::PatchLine(index, more) => {
                let lines: Vec<&str> = symbol.span.of(base).lines().collect();
                let line = *index.get(&lines);
                let indent = &line[..line.len() - line.trim_start().len()];
                let new = format!("{line}{}", more.replace('\n', &format!("\n{indent}")));
                Rewrite::Patch {
                    symbol: name,
                    hunks: vec![(line.to_owned(), new)],
                }
            }
            Change::Delete => Rewrite::Delete { symbol: name },
            Change::Add(place) => Rewrite::Add {
                beside: name,
                place: *place,
                source: "# new\ndef brand_new(a):\n    return a\n".to_owned(),
            },
            Change::Import(statements) => Rewrite::Import {
                statements: statements.iter().map(|text| (*text).to_owned()).collect(),
            },
        }
    }
}

#[test]
fn partial_rewrites_do_not_change_other_symbols() {
    let strategy = (corpus(), any::<Index>(), change());
    let made = Cell::new(0);
    let run = |(base, index, change): (String, Index, Change)| {
        let tree = parse(&base);
        let Some(symbol) = pick(&tree, index) else {
            return Ok(());
        };
        let Ok(done) = rewrite(&tree, &[change.rewrite(&base, symbol)]) else {
            // A patch can break the syntax, and a line can occur twice. In these cases nothing is
            // changed.
            return Ok(());
        };
        made.set(made.get() + 1);
        check_laws(&base, &done)?;
        let container = symbol
            .parent
            .map_or("", |id| tree.get(id).path.name.as_str());
        let name = symbol.path.name.as_str();
        for touched in &done.touched {
            let is_expected = match change {
                // A line that is added behind the symbol's end belongs to an enclosing symbol.
                Change::PatchLine(_, more) => {
                    let is_around = touched.is_empty() || is_inside(name, touched);
                    is_inside(touched, name) || (more.starts_with('\n') && is_around)
                }
                // The blank lines around a symbol belong to its container.
                Change::Delete => touched == container || is_inside(touched, name),
                Change::Add(_) => {
                    touched == container || touched == name || touched.ends_with("brand_new")
                }
                Change::Import(_) => touched.is_empty(),
            };
            prop_assert!(is_expected, "{:?} touched {}", change, touched);
        }
        Ok(())
    };
    runner(2500, 2).run(&strategy, run).unwrap();
    assert!(made.get() > 1500, "{} were made", made.get());
}

#[test]
fn two_rewrites_of_the_same_base_merge_or_conflict() {
    let one = || {
        (
            any::<Index>(),
            function(0),
            class(),
            writing(),
            change(),
            any::<bool>(),
        )
    };
    let strategy = (corpus(), one(), one());
    let (agreed, conflicts) = (Cell::new(0), Cell::new(0));
    let run = |(base, first, second): (String, _, _)| {
        let tree = parse(&base);
        let make = |(index, function, class, writing, change, is_whole): (
            Index,
            _,
            _,
            SourceStyle,
            Change,
            bool,
        )| {
            let symbol = pick(&tree, index)?;
            let source = if symbol.kind == SymbolKind::Class {
                class
            } else {
                function
            };
            let change = if is_whole {
                Rewrite::Whole {
                    symbol: symbol.path.name.clone(),
                    source: writing.write(&named(source, symbol.path.base_name())),
                }
            } else {
                change.rewrite(&base, symbol)
            };
            Some(rewrite(&tree, &[change]).ok()?.changes)
        };
        let (Some(ours), Some(theirs)) = (make(first), make(second)) else {
            return Ok(());
        };
        match (ours.rebase(&theirs), theirs.rebase(&ours)) {
            (Ok(ours_last), Ok(theirs_last)) => {
                let one = ours_last.apply(&theirs.apply(&base).unwrap()).unwrap();
                let other = theirs_last.apply(&ours.apply(&base).unwrap()).unwrap();
                prop_assert_eq!(&one, &other);
                agreed.set(agreed.get() + 1);
                check_ownership(&parse(&one))
            }
            (Err(ours), Err(theirs)) => {
                prop_assert_eq!((ours.ours, ours.theirs), (theirs.theirs, theirs.ours));
                conflicts.set(conflicts.get() + 1);
                Ok(())
            }
            (Ok(_), Err(conflict)) | (Err(conflict), Ok(_)) => Err(TestCaseError::fail(format!(
                "only one side sees: {conflict}"
            ))),
        }
    };
    runner(2000, 3).run(&strategy, run).unwrap();
    let counts = (agreed.get(), conflicts.get());
    assert!(counts.0 > 900 && counts.1 > 90, "{counts:?}");
}

#[test]
fn every_byte_of_a_damaged_file_has_exactly_one_owner() {
    let cut = prop::collection::vec((any::<Index>(), 0..3u8), 1..6);
    let strategy = (corpus(), cut, any::<Index>());
    let run = |(base, cuts, index): (String, Vec<(Index, u8)>, Index)| {
        let mut lines: Vec<&str> = base.split_inclusive('\n').collect();
        for (at, what) in cuts {
            let at = at.index(lines.len());
            match what {
                0 => lines[at] = "",
                1 => lines[at] = lines[at].trim_start(),
                _ => lines.insert(at, "  ]) def (x): '''\n"),
            }
        }
        let text = lines.concat();
        let tree = parse(&text);
        check_ownership(&tree)?;
        // Rewriting a symbol with its own text is not a change.
        let Some(symbol) = pick(&tree, index) else {
            return Ok(());
        };
        let change = Rewrite::Whole {
            symbol: symbol.path.name.clone(),
            source: symbol.span.of(&text).to_owned(),
        };
        let done =
            rewrite(&tree, &[change]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(done.changes.is_empty() && done.touched.is_empty() && done.losses.is_empty());
        Ok(())
    };
    runner(1500, 4).run(&strategy, run).unwrap();
}

const TOKENS: &[&str] = &[
    "def ",
    "class ",
    "f",
    "(",
    ")",
    ":",
    "\n",
    "\r\n",
    "\r",
    "    ",
    "\t",
    "'''",
    "\"",
    "#",
    "@",
    "return ",
    "import os",
    "from x import y",
    "pass",
    "🐦",
    "ß",
    "\u{c}",
    "\u{feff}",
    "\\",
    ";",
    "[",
    "]",
    "= 1",
    "...",
    "if x:",
];

#[test]
fn invalid_rewrite_is_rejected_or_changes_only_its_symbol() {
    let text = || prop::collection::vec(prop::sample::select(TOKENS), 0..14);
    let strategy = (corpus(), any::<Index>(), text(), text(), 0..6u8);
    let run = |(base, index, one, two, kind): (String, Index, Vec<&str>, Vec<&str>, u8)| {
        let tree = parse(&base);
        let name = index.get(tree.symbols()).path.name.clone();
        let (one, two) = (one.concat(), two.concat());
        let add = |place, source| Rewrite::Add {
            beside: name.clone(),
            place,
            source,
        };
        let whole = |source| Rewrite::Whole {
            symbol: name.clone(),
            source,
        };
        let change = match kind {
            0 => whole(format!("def f():{one}")),
            1 => whole(one),
            2 => add(Place::After, format!("def f():{one}")),
            3 => add(Place::Inside, one),
            4 => Rewrite::Import {
                statements: vec![one, two],
            },
            _ => Rewrite::Patch {
                symbol: name,
                hunks: vec![(one, two)],
            },
        };
        match rewrite(&tree, &[change]) {
            Ok(done) => check_laws(&base, &done),
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                Ok(())
            }
        }
    };
    runner(1500, 5).run(&strategy, run).unwrap();
}
