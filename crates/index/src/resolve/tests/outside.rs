//! Objects of code outside the workspace.

use super::fixture::check_references;
use crate::resolve::Resolver;
use crate::testing::code_of;

/// Returns the references of `W.mark` in `a.py`, as `line certainty`, and whether they are complete.
fn marks(head: &str, use_: &str) -> (Vec<String>, bool) {
    let text = format!("from w import W\n{head}\n{use_}\n");
    let code = code_of([
        ("w.py", "class W:\n    def mark(self):\n        pass\n"),
        ("a.py", text.as_str()),
    ]);
    let found = Resolver::new(&code).references(&"w.py::W.mark".parse().unwrap());
    let found = found.unwrap();
    let uses = found
        .uses
        .iter()
        .filter(|one| one.file.as_str() == "a.py")
        .map(|one| format!("{:?}", one.certainty));
    (uses.collect(), found.complete)
}

#[test]
fn attribute_of_an_object_that_outside_code_holds_is_possible() {
    for (head, use_) in [
        ("from flask import g", "g.w.mark()"),
        ("import flask", "flask.g.w.mark()"),
        ("import flask", "flask.g.mark()"),
        ("from flask import current_app", "current_app.w.mark"),
        (
            "import threading\nlocal = threading.local()",
            "local.w.mark()",
        ),
        (
            "from types import SimpleNamespace\nns = SimpleNamespace(w=W())",
            "ns.w.mark()",
        ),
        ("import builtins", "builtins.w.mark()"),
        ("from flask import g\nw = g.w", "w.mark()"),
        ("from flask import g", "g.get('w').mark()"),
        (
            "from flask import g\ndef w():\n    return g.w",
            "w().mark()",
        ),
        (
            "from werkzeug.local import LocalProxy\nw = LocalProxy(W)",
            "w.mark()",
        ),
        ("from copy import deepcopy", "deepcopy(W()).mark()"),
        ("def all_of() -> dict[str, W]: ...", "all_of()['w'].mark()"),
        ("ws = [W()]", "max(ws).mark()"),
        ("def f(w: object): w.mark()", ""),
        ("from typing import Any\ndef f(w: Any): w.mark()", ""),
        (
            "from flask import Flask\nclass App(Flask):\n    def f(self): self.w.mark()",
            "",
        ),
        ("def f(*args): args[0].mark()", ""),
        ("from flask import g", "for w in g.ws: w.mark()"),
        ("from flask import g", "with g.w as w: w.mark()"),
        ("ws = [W()]", "sum(ws, W()).mark()"),
        ("", "abs(W()).mark()"),
        ("", "round(W(), 1).mark()"),
        ("", "divmod(W(), 2)[0].mark()"),
        ("", "pow(W(), 2).mark()"),
        ("", "type('X', (W,), {})().mark()"),
        ("", "globals()['w'].mark()"),
        ("", "locals()['w'].mark()"),
        ("import w", "vars(w)['w'].mark()"),
        ("import sys", "sys.modules['w'].w.mark()"),
        ("from sys import modules", "modules.get('w').w.mark()"),
        ("import sys", "sys.exc_info()[1].mark()"),
        ("import importlib", "importlib.import_module('w').w.mark()"),
        ("import json", "json.loads(x, object_hook=W).mark()"),
        (
            "from json import load",
            "load(x, parse_float=W)['a'].mark()",
        ),
        (
            "import sqlite3\ndb = sqlite3.connect(x)",
            "for w in db.execute(y): w.mark()",
        ),
        ("import statistics", "statistics.mode(ws).mark()"),
        ("import math", "math.prod(ws).mark()"),
        (
            "import warnings",
            "with warnings.catch_warnings(record=True) as c: c[0].message.mark()",
        ),
        (
            "class Box:\n    w = property(lambda self: W())",
            "Box().w.mark()",
        ),
        (
            "from types import SimpleNamespace\nimport w",
            "SimpleNamespace(**vars(w)).mark()",
        ),
    ] {
        let expected = (vec!["Possible".to_owned()], false);
        assert_eq!(marks(head, use_), expected, "{head}: {use_}");
    }
    assert_eq!(
        marks("def f(w): w.mark()", ""),
        (vec!["Likely".to_owned()], true)
    );
}

#[test]
fn attribute_of_a_value_of_a_known_outside_type_is_no_reference() {
    for (head, use_) in [
        ("", "'a'.mark()"),
        ("", "'a b'.split()[0].mark()"),
        ("", "[1].mark()"),
        ("def f(x: str, y: dict[str, int]): x.mark(); y.mark()", ""),
        ("import flask", "flask.mark()"),
        ("from flask import Flask", "Flask.mark()"),
        ("import os", "os.environ.mark()"),
        ("import json", "json.loads(x)['a'].mark()"),
        ("import re", "re.match(a, b).mark()"),
        ("from pathlib import Path", "Path('a').parent.mark()"),
        ("def f(**options): options.mark()", ""),
        ("", "str(W()).mark()"),
        ("", "int(x).mark()"),
        ("", "open(x).mark()"),
        ("import io", "io.StringIO().mark()"),
        ("import json", "json.dumps(x, cls=W).mark()"),
        ("import math", "math.sqrt(x).mark()"),
    ] {
        assert_eq!(marks(head, use_), (Vec::new(), true), "{head}: {use_}");
    }
}

#[test]
fn common_method_name_on_an_outside_object_is_possible_only_if_something_holds_the_object() {
    let text = "import os, requests\nfrom flask import Flask, g\n\nSession = requests.Session\n\n\n\
                def f(cart):\n    g.cart.add(1)\n    g.add(2)\n    requests.Session().add(3)\n    Flask(1).add(4)\n    \
                [].add(5)\n    os.environ.add(6)\n    cart.add(7)\n";
    let code = code_of([
        (
            "cart.py",
            "class Cart:\n    def add(self, x):\n        pass\n",
        ),
        ("a.py", text),
    ]);
    let found = Resolver::new(&code).references(&"cart.py::Cart.add".parse().unwrap());
    let found = found.unwrap();
    let told: Vec<String> = found
        .uses
        .iter()
        .filter(|one| one.file.as_str() == "a.py")
        .map(|one| format!("{} {:?}", one.line, one.certainty))
        .collect();
    assert_eq!(told, ["8 Possible", "14 Likely"]);
}

#[test]
fn attribute_of_a_module_that_is_looked_up_at_run_time_is_a_read_of_a_namespace() {
    let text = "import sys\nfrom types import SimpleNamespace\nfrom flask import g\nimport m\nfrom importlib import import_module\n\n\
                sys.modules['m'].mark()\nimport_module('m').mark()\nshop = sys.modules.get('m')\nshop.mark\n\
                SimpleNamespace(**vars(m)).mark()\nm.mark()\ng.mark()\n'a'.mark()\n";
    let code = code_of([("m.py", "def mark():\n    pass\n"), ("a.py", text)]);
    let found = Resolver::new(&code).reads_of_namespaces("mark");
    let lines: Vec<u32> = found.iter().map(|one| one.line).collect();
    assert_eq!(lines, [7, 8, 10, 11]);
}

#[test]
fn method_call_on_an_object_from_outside_the_workspace_is_no_reference_to_a_module_function() {
    let files = [
        ("m.py", "def mark():\n    pass\n"),
        ("a.py", "from flask import g\ng.w.mark()\n"),
    ];
    check_references(&files, "m.py::mark", &["m.py:1:4"]);
}
