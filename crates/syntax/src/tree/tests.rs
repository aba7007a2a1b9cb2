use super::*;

fn parse(text: &str) -> SymbolTree {
    SymbolTree::parse(FilePath::new("m.py"), Arc::from(text))
}

/// Returns each symbol as `name@first-last` and checks the ownership of all bytes.
fn symbols(text: &str) -> Vec<String> {
    let tree = parse(text);
    check_ownership(&tree);
    tree.symbols()[1..]
        .iter()
        .map(|symbol| format!("{}@{}-{}", symbol.path.name, symbol.lines.0, symbol.lines.1))
        .collect()
}

/// Checks that every byte has exactly one owner, and that the owner's own ranges contain the byte.
fn check_ownership(tree: &SymbolTree) {
    let mut owned = vec![0; tree.text().len()];
    for symbol in tree.symbols() {
        for range in tree.own_ranges(symbol) {
            for count in &mut owned[range.start..range.end] {
                *count += 1;
            }
            for at in [range.start, range.end - 1] {
                assert_eq!(tree.owner(at).path, symbol.path);
            }
        }
    }
    assert!(owned.iter().all(|count| *count == 1));
}

#[test]
fn definitions_nest_to_any_depth() {
    let text = "\
class A:
    class B:
        def f(self):
            def g():
                class C: pass
            return g

    if True:
        def h(self): pass
    else:
        async def h(self): pass

def A(): pass
";
    assert_eq!(
        symbols(text),
        [
            "A@1-11",
            "A.B@2-6",
            "A.B.f@3-6",
            "A.B.f.g@4-5",
            "A.B.f.g.C@5-5",
            "A.h@9-9",
            "A.h#2@11-11",
            "A#2@13-13"
        ]
    );
    let kinds: Vec<SymbolKind> = parse(text)
        .symbols()
        .iter()
        .map(|symbol| symbol.kind)
        .collect();
    use SymbolKind::*;
    assert_eq!(
        kinds,
        [
            Module, Class, Class, Method, Function, Class, Method, Method, Function
        ]
    );
}

#[test]
fn comment_belongs_to_the_adjacent_symbol() {
    let text = "\
# of the module

# of f
# also
@decorator  # too
def f():  # too
    pass  # too
    # end of f

    # still f
# of the module
x = 1
    # odd, of the module
def g(): pass  # of g

# of the module
";
    assert_eq!(symbols(text), ["f@3-10", "g@14-14"]);
}

#[test]
fn comment_between_two_symbols_is_assigned_by_indentation() {
    let text = "\
class A:
    def f(self):
        pass
        # of f
    # of g
    def g(self):
        pass
    # of A
# of B
class B: pass
";
    assert_eq!(symbols(text), ["A@1-8", "A.f@2-4", "A.g@5-7", "B@9-10"]);
}

#[test]
fn hash_sign_in_a_string_is_not_a_comment() {
    assert_eq!(symbols("x = '''\n# no'''\ndef f(): pass\n"), ["f@3-3"]);
}

#[test]
fn shebang_encoding_and_byte_order_mark_belong_to_the_module() {
    let text = "\u{feff}#!/usr/bin/python\n# -*- coding: utf-8 -*-\n# of f\ndef f(): pass\n";
    assert_eq!(symbols(text), ["f@3-4"]);
    let tree = parse("\u{feff}def f(): pass");
    assert_eq!(tree.find("f").unwrap().span, ByteRange::new(3, 16));
    let tree = parse("x\n\u{c}\n\u{c}def f(): pass\n");
    assert_eq!(tree.find("f").unwrap().span, ByteRange::new(5, 19));
}

#[test]
fn symbols_are_found_in_unusual_layouts() {
    assert_eq!(symbols("def f(): pass; x = 1\n"), ["f@1-1"]);
    assert_eq!(symbols("def f(): pass;\n\n"), ["f@1-1"]);
    assert_eq!(
        symbols("class A:\r\n\tdef f(self):\r\n\t\treturn 1\r\n\r\nx = 1"),
        ["A@1-3", "A.f@2-3"]
    );
    assert_eq!(symbols("def größe():\n    return 'ß'"), ["größe@1-2"]);
    assert_eq!(symbols(""), [""; 0]);
    assert_eq!(
        symbols("if 1:\n  def f():\n    pass\n\n  x = 2\n"),
        ["f@2-3"]
    );
}

#[test]
fn symbols_after_a_syntax_error_are_found() {
    let text = "def f(:\n    pass\n\nclass A:\n    def g(self):\n        return 1 +\n\n    def h(self):\n        pass\n\ndef k():\n    pass\n";
    let tree = parse(text);
    check_ownership(&tree);
    assert!(!tree.errors().is_empty());
    let names: Vec<&str> = tree
        .symbols()
        .iter()
        .map(|symbol| symbol.contract.name.as_str())
        .collect();
    assert!(names.contains(&"h") && names.contains(&"k"), "{names:?}");
}

#[test]
fn file_without_a_grammar_is_one_symbol() {
    let tree = SymbolTree::parse(FilePath::new("notes.md"), Arc::from("# A\ndef f(): pass\n"));
    check_ownership(&tree);
    assert_eq!(tree.symbols().len(), 1);
    assert_eq!(tree.module().lines, (1, 2));
    assert!(tree.errors().is_empty());
}

#[test]
fn symbols_are_found_by_name_line_and_byte() {
    let text = "x = 1\n\nclass A:\n    y = 2\n\n    def f(self):\n\n        pass\n";
    let tree = parse(text);
    let at = |line| tree.at_line(line).path.name.as_str();
    assert_eq!(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 99].map(at),
        ["", "", "A", "A", "A", "A.f", "A.f", "A.f", "", ""]
    );
    assert_eq!(tree.find("A.f").unwrap().parent, Some(SymbolId(1)));
    assert!(tree.find("f").is_none());
    assert!(tree.find("").unwrap().path.is_module());
    assert_eq!(tree.owner(usize::MAX).path.name, "");
    let own: Vec<&str> = tree
        .own_ranges(tree.find("A").unwrap())
        .iter()
        .map(|range| range.of(text))
        .collect();
    assert_eq!(own, ["class A:\n    y = 2\n\n"]);
}

#[test]
fn doc_is_the_first_paragraph_of_the_docstring() {
    let text = "\"\"\"Module\n\nMore.\n\"\"\"\ndef f():\n    r'''\n    First line\n    goes on.\n\n    Second.\n    '''\nclass A:\n    b'no'\ndef g():\n    # c\n    'one' 'two'\ndef h(): 'x' + y\ndef i(): f'{x}'\n";
    let docs: Vec<Option<String>> = parse(text)
        .symbols()
        .iter()
        .map(|symbol| symbol.doc.clone())
        .collect();
    let docs: Vec<Option<&str>> = docs.iter().map(Option::as_deref).collect();
    assert_eq!(
        docs,
        [
            Some("Module"),
            Some("First line goes on."),
            None,
            Some("one"),
            None,
            None
        ]
    );
}

/// Generates lines of Python, including invalid ones, in any order and with any indentation.
fn random_python_lines() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let line = prop::sample::select(vec![
        "def f(a, b=1):",
        "async def g(*a): pass",
        "class A(B):",
        "@property",
        "@a.b('c')",
        "# a comment",
        "return 1",
        "yield",
        "raise E from e",
        "x = (1,",
        ")",
        "\"\"\"doc",
        "\"\"\"",
        "'one' 'two'",
        "if x:",
        "else:",
        "try:",
        "pass; y = 2",
        "",
        "\u{c}",
        "def (",
        "class",
        "f'{x!r:>{y}}'",
        "größe = '🙂'",
        "\\",
    ]);
    let indent = prop::sample::select(vec!["", "    ", "        ", "\t", "  "]);
    let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r", ""]);
    let lines = prop::collection::vec((indent, line, end), 0..24);
    lines.prop_map(|lines| {
        let text = lines.into_iter();
        text.map(|(indent, line, end)| format!("{indent}{line}{end}"))
            .collect()
    })
}

#[test]
fn every_byte_of_any_text_has_exactly_one_owner() {
    use proptest::test_runner::{Config, RngSeed, TestRunner};
    let mut runner = TestRunner::new(Config {
        cases: 2_000,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..Config::default()
    });
    let law = runner.run(&random_python_lines(), |text| {
        let tree = parse(&text);
        check_ownership(&tree);
        for (at, symbol) in tree.symbols().iter().enumerate() {
            assert!(symbol.span.covers(symbol.definition), "{symbol:?}");
            assert!(symbol.definition.covers(symbol.body) || symbol.body.is_empty());
            let found = tree.find(&symbol.path.name).unwrap();
            assert_eq!(found.path, symbol.path, "names are given once");
            for child in &symbol.children {
                let child = tree.get(*child);
                assert!(symbol.span.covers(child.span), "{symbol:?} {child:?}");
                assert_eq!(child.parent, Some(SymbolId(at)));
            }
        }
        // All other functions that read a tree must also accept any text.
        crate::outline(&tree, 5);
        crate::references(&tree, "f");
        for symbol in tree.symbols() {
            crate::signature(&tree, symbol);
        }
        Ok(())
    });
    law.unwrap();
}

#[test]
fn line_of_a_symbol_is_the_line_of_its_name() {
    let tree = parse("# of f\n@a\n@b\ndef f(): pass\n");
    let symbol = tree.find("f").expect("the function exists");
    assert_eq!((symbol.lines.0, tree.line_of(symbol)), (1, 4));
    assert_eq!(tree.line_of(tree.module()), 1);
}

/// Collects all comments and the outermost strings below a node by visiting every node.
fn every_mark(node: Node<'_>, comments: &mut Vec<ByteRange>, strings: &mut Vec<ByteRange>) {
    let range = ByteRange::new(node.start_byte(), node.end_byte());
    match node.kind() {
        "comment" => comments.push(range),
        "string" => strings.push(range),
        _ => {
            for child in node.children(&mut node.walk()) {
                every_mark(child, comments, strings);
            }
        }
    }
}

#[test]
fn comments_and_strings_in_expressions_are_all_found() {
    let dense = "\
total = a * (b + 'one')  # after
def f(x=g('two'), *y):  # behind
    return x[(yield)] + h(  # inside
        a, 'three' + f'{b['four']}', [i for i in 'five'])
    assert a.b.c(d=e), not \"six\"
x = lambda: (yield 1)
broken = (def 'seven' # eight
";
    let mut texts = vec![dense.to_owned()];
    for entry in std::fs::read_dir(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/python"
    ))
    .unwrap()
    {
        texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let mut seen = 0;
    for text in &texts {
        let tree = parse(text);
        let (mut comments, mut strings) = (Vec::new(), Vec::new());
        every_mark(tree.root().unwrap(), &mut comments, &mut strings);
        assert_eq!(tree.comments(), comments, "{text}");
        assert_eq!(tree.strings(), strings, "{text}");
        seen += comments.len() + strings.len();
    }
    assert!(seen > 30, "{seen}");
    assert!(parse(dense).find("f").unwrap().contract.is_generator);
}

#[test]
fn text_that_takes_too_long_to_parse_is_reported_as_one_error() {
    let text = format!("def f():\n    return 1{}\n", " \\\n".repeat(30_000));
    let tree = SymbolTree::parse(FilePath::new("a.py"), text.as_str().into());
    assert!(tree.is_unparsed());
    assert_eq!(tree.errors(), [ByteRange::new(0, text.len())]);
    assert_eq!(tree.symbols().len(), 1);
    let plain = SymbolTree::parse(FilePath::new("a.txt"), text.into());
    assert!(!plain.is_unparsed() && plain.errors().is_empty());
}
