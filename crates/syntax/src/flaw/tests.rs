use std::sync::Arc;

use super::super::FilePath;
use super::*;

/// Returns the line numbers of the syntax errors, counted from 1.
fn lines(text: &str) -> Vec<u32> {
    let tree = SymbolTree::parse(FilePath::new("m.py"), Arc::from(text));
    let mut lines: Vec<u32> = flaws(&tree)
        .iter()
        .map(|flaw| tree.lines().number_at(flaw.at))
        .collect();
    lines.dedup();
    lines
}

#[test]
fn code_that_python_rejects_is_reported_as_a_syntax_error() {
    for (text, line) in [
        ("def f():\n\nx = 1\n", 1),
        ("class A:\n", 1),
        ("if x:\n    a\n  b\n", 3),
        ("def f():\n    x = 1\n   y = 2\n", 3),
        ("class A:\n    x = 1\n     y = 2\n", 3),
        ("if x:\n    a\n  else:\n    b\n", 3),
        ("a\n    b\n", 2),
        ("def f():\n\ta\n        b\n", 3),
        ("if x:\n        if y:\n\ta\n", 2),
        ("try:\n    a\nb\n", 1),
        ("def f(): pass\nreturn 5\n", 2),
        ("class A:\n    return 5\n", 2),
        ("def f(a=1, b): pass\n", 1),
        ("def f(a, a): pass\n", 1),
        ("f(a=1, 2)\n", 1),
        ("print 'x'\n", 1),
        ("x = (1,\n", 1),
        ("def f(:\n    pass\n", 1),
        ("def f(self)\n    pass\n", 1),
    ] {
        assert_eq!(lines(text).first(), Some(&line), "{text:?}");
    }
}

#[test]
fn code_that_python_accepts_has_no_syntax_error() {
    for text in [
        "",
        "\u{feff}x = 1\n",
        "\u{c}\nx = 1\n\u{c}def f(): pass\n",
        "def f(a, /, b=1, *, c, d=2, **e): return a\n",
        "f(a, *b, c=1, *d, **e)\n",
        "if x: pass\nelif y:\n\tpass\nelse: pass\n",
        "for x in y:\n  a; b\nelse:\n     c\n",
        "try:\n    a\nexcept* X:\n    b\n",
        "x = 1 + \\\n    2; y = 3\n",
        "if x:\n    a\n# c\n        # d\n    b\n",
        "def f():\n    '''a\nb'''\n    return (\n1)\n",
        "match x:\n    case 1: pass\n    case _:\n        pass\n",
        "class A:\n    def f(self): ...\n    x: int\n",
        "async def f():\n    async with a as b, c: await d\n",
        "lambda *a, b=1, **c: (yield)\n",
    ] {
        assert_eq!(lines(text), [0; 0], "{text:?}");
    }
}

#[test]
fn python_2_print_and_exec_statements_are_syntax_errors() {
    for (text, flawed) in [
        ("print x\n", true),
        ("print(x)\n", false),
        ("print\n", false),
        ("print >> f, x\n", false),
        ("exec 'x'\n", true),
        ("exec('x')\n", false),
    ] {
        assert_eq!(!lines(text).is_empty(), flawed, "{text:?}");
    }
}

#[test]
fn clauses_must_be_indented_like_their_statement() {
    for (text, line) in [
        ("try:\n    a\n  except X:\n    b\n", 3),
        ("try:\n    a\n finally:\n    b\n", 3),
        ("if x:\n    # only this\n", 1),
        ("class A:\n    'Doc.'\n      # fine\n     x = 1\n", 4),
        ("if x:\ny = 1\n", 1),
    ] {
        assert_eq!(lines(text).first(), Some(&line), "{text:?}");
    }
    for text in [
        "class A:\n    def f(self):\n        return lambda: 0\n",
        "x = [\n  1,\n      2]\n",
        "f(a,\n*b,\n  c=1)\n",
        "try:\n    a\nexcept X: b\nelse: c\nfinally: d\n",
        "while x:\n    a\nelse:\n    b\n",
        "with a:\n\tb\n",
    ] {
        assert_eq!(lines(text), [0; 0], "{text:?}");
    }
}

#[test]
fn file_without_a_grammar_has_no_syntax_errors() {
    let tree = SymbolTree::parse(FilePath::new("notes.md"), Arc::from("def f(:\n"));
    assert_eq!(flaws(&tree), []);
}
