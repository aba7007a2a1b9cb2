//! Source for one symbol that defines other symbols, too.

use super::*;

const TEXT: &str = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n\n\ndef f():\n    return 3\n\n\ndef g():\n    return 4\n";

fn result(symbol: &str, source: &str) -> Option<String> {
    let rewrites = divided(&tree(TEXT), symbol, source)?;
    let done = rewrite(&tree(TEXT), &rewrites).expect("the parts fit the file");
    Some(done.text)
}

#[test]
fn source_with_several_definitions_is_divided_by_symbols() {
    let both = "def f():\n    return g() + 1\n\n\ndef g():\n    return 5\n";
    let expected = TEXT.replace("return 3", "return g() + 1");
    let expected = expected.replace("return 4", "return 5");
    assert_eq!(result("f", both), Some(expected));
    let rewrites = divided(&tree(TEXT), "f", both).unwrap();
    let first = whole("f", "def f():\n    return g() + 1");
    assert_eq!(rewrites, [first, whole("g", "def g():\n    return 5")]);
    // A method and a new one beside it, indented or not.
    let method = "def f(self):\n    return self.h()\n\ndef h(self):\n    return 6\n";
    let indented: String = method
        .lines()
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        })
        .collect();
    let expected = TEXT.replacen(
        "return 1\n",
        "return self.h()\n\n    def h(self):\n        return 6\n",
        1,
    );
    assert_eq!(result("A.f", method).as_deref(), Some(&*expected));
    assert_eq!(result("A.f", &indented), Some(expected));
}

#[test]
fn repeated_neighbour_is_left_out() {
    let source = "def f():\n    return 7\n\n\ndef g():\n    return 4\n";
    let rewrites = divided(&tree(TEXT), "f", source).unwrap();
    assert_eq!(rewrites, [whole("f", "def f():\n    return 7")]);
}

#[test]
fn source_that_is_not_several_definitions_with_the_symbol_is_not_divided() {
    for source in [
        "def f():\n    return 7\n",
        "def g():\n    return 7\n\n\ndef h():\n    return 8\n",
        "X = 1\n\n\ndef f():\n    return X\n\n\ndef h():\n    return 8\n",
        "def f():\n    return 7\n\n\ndef f():\n    return 8\n",
    ] {
        assert_eq!(divided(&tree(TEXT), "f", source), None, "{source}");
    }
    let both = "def f():\n    return 7\n\n\ndef g():\n    return 8\n";
    assert_eq!(divided(&tree(TEXT), "", both), None);
}
