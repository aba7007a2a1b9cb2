//! References to methods: overrides, mixins, and values of unknown type.

use super::fixture::check_references;
use crate::resolve::Resolver;
use crate::testing::code_of;
use starling_syntax::SymbolPath;

#[test]
fn method_call_on_a_value_of_unknown_type_is_not_a_certain_reference() {
    let a = (
        "a.py",
        "class A:\n    def run(self): pass\n    def go(self): self.run()\n",
    );
    let uses = (
        "b.py",
        "def g(x, a):\n    x.run()\n    a.run()\n    'x'.run()\n",
    );
    check_references(
        &[a, uses],
        "a.py::A.run",
        &[
            "a.py:2:8",
            "a.py:3:23",
            "b.py:2:6 likely",
            "b.py:3:6 likely",
        ],
    );
    let stranger = ("c.py", "class Z:\n    def run(self): pass\nZ().run()\n");
    check_references(
        &[a, uses, stranger],
        "a.py::A.run",
        &[
            "a.py:2:8",
            "a.py:3:23",
            "b.py:2:6 possible",
            "b.py:3:6 likely",
        ],
    );
}

#[test]
fn references_to_a_base_method_include_uses_in_subclasses() {
    let text = "class A:\n    def f(self): pass\nclass B(A):\n    def g(self): self.f()\nclass C(A):\n    def f(self): super().f()\nC().f()\n";
    check_references(
        &[("m.py", text)],
        "m.py::A.f",
        &["m.py:2:8", "m.py:4:22", "m.py:6:25"],
    );
    check_references(&[("m.py", text)], "m.py::C.f", &["m.py:6:8", "m.py:7:4"]);
}

#[test]
fn references_to_an_override_include_calls_through_the_base_class() {
    let text = "class A:\n    def f(self): pass\n    def g(self): return self.f()\n    @classmethod\n    def h(cls): return cls.k()\n    @classmethod\n    def k(cls): pass\n\
        class B(A):\n    def f(self): pass\n    @classmethod\n    def k(cls): pass\n\
        class Unrelated:\n    def f(self): pass\n    def g(self): return self.f()\n\
        def use(): return A.f(A())\n";
    check_references(
        &[("m.py", text)],
        "m.py::B.f",
        &["m.py:3:29 possible", "m.py:9:8"],
    );
    check_references(
        &[("m.py", text)],
        "m.py::B.k",
        &["m.py:5:27 possible", "m.py:11:8"],
    );
}

#[test]
fn references_to_a_method_include_calls_in_mixins_and_reads_of_properties() {
    let text = "class Mixin:\n    def line(self): return self.label()\n\
        class A:\n    @property\n    def cost(self): return 1\n    def total(self): return self.cost\n\
        class B(Mixin, A):\n    def label(self): return ''\n    @property\n    def cost(self): return 2\n";
    check_references(
        &[("m.py", text)],
        "m.py::B.label",
        &["m.py:2:32 likely", "m.py:8:8"],
    );
    check_references(
        &[("m.py", text)],
        "m.py::B.cost",
        &["m.py:6:33 possible", "m.py:10:8"],
    );
}

#[test]
fn instantiation_is_a_reference_to_init() {
    let text = "class A:\n    def __init__(self): pass\nclass B(A): pass\nclass C(A):\n    def __init__(self): super().__init__()\nA()\nB()\nC()\nA\n";
    check_references(
        &[("m.py", text)],
        "m.py::A.__init__",
        &["m.py:2:8", "m.py:5:32", "m.py:6:0", "m.py:7:0"],
    );
}

#[test]
fn call_of_a_method_named_like_a_built_in_method_is_only_a_possible_reference() {
    let text = "class A:\n    def pop(self): pass\ndef g(x, a):\n    x.pop()\n    a.pop()\n";
    let expected = ["m.py:2:8", "m.py:4:6 possible", "m.py:5:6 likely"];
    check_references(&[("m.py", text)], "m.py::A.pop", &expected);
}

#[test]
fn mixin_method_may_refer_to_a_member_of_a_subclass() {
    let mixin = "class Share:\n    def share(self):\n        return self.short()\n";
    let note =
        "from mixins import Share\n\nclass Note(Share):\n    def short(self):\n        return 1\n";
    check_references(
        &[("mixins.py", mixin), ("note.py", note)],
        "note.py::Note.short",
        &["mixins.py:3:20 likely", "note.py:4:8"],
    );
}

#[test]
fn class_with_all_methods_of_a_protocol_may_implement_it() {
    let protocols = (
        "p.py",
        "from typing import Protocol\n\
         class Sink(Protocol):\n    def write(self): ...\n    def flush(self): ...\n\
         class Timed(Sink, Protocol):\n    def at(self): ...\n\
         class Named(Sink):\n    def write(self): pass\n    def flush(self): pass\n",
    );
    let classes = (
        "c.py",
        "class Base:\n    def flush(self): pass\n\
         class File(Base):\n    def write(self): pass\n\
         class Half:\n    def write(self): pass\n",
    );
    let uses = (
        "u.py",
        "from p import Named, Sink, Timed\n\
         def one(s: Sink): s.write()\n\
         def two(t: Timed): t.write()\n\
         def three(n: Named): n.write()\n",
    );
    let code = code_of([protocols, classes, uses]);
    let mut resolver = Resolver::new(&code);
    let told =
        |all: Vec<SymbolPath>| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
    let found = resolver.implementing(&"p.py::Sink.write".parse().unwrap());
    assert_eq!(told(found), ["c.py::File.write"]);
    let found = resolver.implementing(&"p.py::Named.write".parse().unwrap());
    assert_eq!(told(found), [""; 0]);
    let mut lines = |symbol: &str| -> Vec<u32> {
        let found = resolver.uses_through_protocols(&symbol.parse().unwrap());
        found.iter().map(|one| one.access.line).collect()
    };
    assert_eq!(lines("c.py::File.write"), [2]);
    assert_eq!(lines("c.py::Half.write"), [0; 0]);
    assert_eq!(lines("p.py::Named.write"), [0; 0]);
}
