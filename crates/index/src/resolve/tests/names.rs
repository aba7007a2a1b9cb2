//! Names, the scopes that bind them, and keyword arguments.

use super::fixture::{check_defined, check_references};

#[test]
fn locals_and_parameters_hide_module_names() {
    check_defined("f = 1\ndef g(f): return f$\n", &["m.py:2:6"]);
    check_defined("f = 1\ndef g():\n    f$\n    f = 2\n", &["m.py:4:4"]);
    check_defined("def f(): pass\ndef g(): return f$\n", &["m.py::f"]);
    check_defined("x = 1\nlambda x: x$\n", &["m.py:2:7"]);
    check_defined("def f(a=a$): pass\na = 1\n", &["m.py:2:0"]);
}

#[test]
fn comprehension_variable_is_visible_only_in_the_comprehension() {
    check_defined("x = 1\n[x$ for x in y]\n", &["m.py:2:7"]);
    check_defined("x = 1\n[y for x in x$]\n", &["m.py:1:0"]);
    check_defined(
        "class A:\n    x = 1\n    y = [z for z in x$]\n",
        &["m.py:2:4"],
    );
    check_defined(
        "x = 0\nclass A:\n    x = 1\n    y = [x$ for z in w]\n",
        &["m.py:1:0"],
    );
}

#[test]
fn plain_name_in_a_method_does_not_resolve_to_a_class_member() {
    check_defined(
        "def f(): pass\nclass A:\n    def f(self): f$()\n",
        &["m.py::f"],
    );
    check_defined(
        "class A:\n    def f(self): pass\n    g = f$\n",
        &["m.py::A.f"],
    );
    // A class body does not see names that are bound further below.
    check_defined(
        "def f(): pass\nclass A:\n    g = f$\n    def f(self): pass\n",
        &["m.py::f"],
    );
}

#[test]
fn class_body_reads_the_module_name_before_its_own_assignment() {
    for (text, expected) in [
        (
            "def f(): pass\nclass A:\n    f = staticmethod(f$)\n",
            "m.py::f",
        ),
        (
            "def f(): pass\ndef make():\n    class A:\n        f = staticmethod(f$)\n    return A\n",
            "m.py::f",
        ),
        // Before the class binds the name, it does not see the variable of the enclosing function.
        (
            "def f(): pass\ndef make(f):\n    class A:\n        f = f$\n    return A\n",
            "m.py::f",
        ),
        (
            "def f(): pass\ndef make(f):\n    class A:\n        g = f$\n    return A\n",
            "m.py:2:9",
        ),
        (
            "def f(): pass\nclass A:\n    f$ = staticmethod(f)\n",
            "m.py:3:4",
        ),
        (
            "def f(): pass\nclass A:\n    f = staticmethod(f)\n    g = f$\n",
            "m.py:3:4",
        ),
        (
            "x = 1\nclass A:\n    for x in y:\n        z = x$\n",
            "m.py:3:8",
        ),
        (
            "x = 1\nclass A:\n    with y as x:\n        z = x$\n",
            "m.py:3:14",
        ),
        (
            "x = 1\nclass A:\n    try:\n        pass\n    except E as x:\n        z = x$\n",
            "m.py:5:16",
        ),
        (
            "x = 1\nclass A:\n    if (x := 2):\n        z = x$\n",
            "m.py:3:8",
        ),
    ] {
        check_defined(text, &[expected]);
    }
}

#[test]
fn global_and_nonlocal_names_resolve_to_the_outer_scope() {
    check_defined("x = 1\ndef f():\n    global x\n    x$ = 2\n", &["m.py:1:0"]);
    check_defined(
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x$ = 2\n",
        &["m.py:2:4"],
    );
    check_defined("global x\nx$ = 1\n", &["m.py:2:0"]);
}

#[test]
fn keyword_argument_resolves_to_the_parameter() {
    check_defined("def f(a): pass\nf(a$=1)\n", &["m.py:1:6"]);
    check_defined(
        "class A:\n    def __init__(self, a): pass\nA(a$=1)\n",
        &["m.py:2:23"],
    );
    check_defined("class A:\n    a: int\nA(a$=1)\n", &["m.py:2:4"]);
}

#[test]
fn redefinitions_of_a_name_share_their_references() {
    let text = "try:\n    def f(): pass\nexcept E:\n    def f(): pass\nf()\n";
    let places = ["m.py:2:8", "m.py:4:8", "m.py:5:0"];
    check_references(&[("m.py", text)], "m.py::f", &places);
    check_references(&[("m.py", text)], "m.py::f#2", &places);
}
