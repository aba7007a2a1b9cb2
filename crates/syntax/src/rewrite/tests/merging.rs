//! Tests that imports are merged into existing import statements.

use super::*;

fn check(text: &str, statements: &[&str], expected: &str) {
    assert_eq!(made(text, import(statements)).text, expected);
}

#[test]
fn existing_import_is_not_added_again() {
    check("import a, b\n", &["import b", "import a"], "import a, b\n");
    check("import a.b\n", &["import a.b"], "import a.b\n");
    check(
        "import a as b\n",
        &["import a"],
        "import a as b\nimport a\n",
    );
    let long = "from a import (\n    b,\n    c as d,\n)\n";
    check(long, &["from a import b", "from a import  c  as  d"], long);
    check("", &["import a", "import a"], "import a\n");
    // An import inside a function is not available in the rest of the module.
    check(
        "def f():\n    import a\n",
        &["import a"],
        "import a\n\ndef f():\n    import a\n",
    );
}

#[test]
fn merged_import_keeps_comments_and_parentheses() {
    check(
        "from .a import b; x = 1\n",
        &["from .a import c"],
        "from .a import b, c; x = 1\n",
    );
    check(
        "from a import (b,)\n",
        &["from a import c"],
        "from a import (b, c,)\n",
    );
    check(
        "from a import b, \\\n    c\n",
        &["from a import d"],
        "from a import b, \\\n    c\nfrom a import d\n",
    );
    check(
        "from a import b\nfrom a.c import d\n",
        &["from a.c import e", "from a import f", "import g"],
        "import g\nfrom a import b, f\nfrom a.c import d, e\n",
    );
    check(
        "from a import b\n",
        &["from a import *"],
        "from a import b\nfrom a import *\n",
    );
}

#[test]
fn future_imports_come_before_other_imports() {
    let check_future = |text: &str, statements: &[&str]| {
        let done = made(text, import(statements));
        let future = done
            .text
            .find("from __future__")
            .expect("the import exists");
        let other = done.text.find("import os").expect("the import exists");
        assert!(future < other, "{}", done.text);
        assert!(done.text.starts_with("'''Doc.'''"), "{}", done.text);
    };
    check_future(
        "'''Doc.'''\nimport os\n",
        &["from __future__ import annotations"],
    );
    check_future(
        "'''Doc.'''\n\nx = 1\n",
        &["import os", "from __future__ import annotations"],
    );
    check(
        "from __future__ import a\nimport os\n",
        &["import re", "from __future__ import b"],
        "from __future__ import a, b\nimport os\nimport re\n",
    );
}

#[test]
fn imports_are_applied_together_with_other_rewrites() {
    let text = "import os\n\n\ndef f():\n    return 1\n";
    let all = [
        import(&["from math import pi"]),
        whole("f", "def f():\n    return pi\n"),
        add("f", Place::After, "def g():\n    return os\n"),
    ];
    let done = rewrite(&tree(text), &all).expect("all rewrites are accepted");
    assert_eq!(
        done.text,
        "import os\nfrom math import pi\n\n\ndef f():\n    return pi\n\n\ndef g():\n    return os\n"
    );
    assert_eq!(done.touched, ["", "f", "g"]);
    assert_eq!(done.changes.apply(text).as_deref(), Ok(done.text.as_str()));
}
