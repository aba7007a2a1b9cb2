//! The types of values, and the members that they have.

use super::fixture::check_defined;

#[test]
fn members_are_looked_up_in_method_resolution_order() {
    let base = "class A:\n    def f(self): pass\n    def g(self): self.f$()\nclass B(A): pass\nclass C(A):\n    def f(self): pass\nclass D(B, C): pass\n";
    check_defined(base, &["m.py::A.f"]);
    let base = base.replace('$', "");
    for (text, expected) in [
        ("D().f$()", "m.py::C.f"),
        ("D().g$()", "m.py::A.g"),
        ("B.f$", "m.py::A.f"),
        ("x = C()\nx.f$", "m.py::C.f"),
        ("class E(D):\n    def f(self): super().f$()", "m.py::C.f"),
        (
            "class E(C):\n    def f(self): super(C, self).f$()",
            "m.py::C.f",
        ),
        (
            "class E(C):\n    @classmethod\n    def h(cls): cls.g$",
            "m.py::A.g",
        ),
        ("class E(C):\n    def h(this): this.g$", "m.py::A.g"),
        (
            "import m\nclass E(m.C[int]):\n    def h(self): self.f$",
            "m.py::C.f",
        ),
    ] {
        check_defined(&format!("{base}{text}\n"), &[expected]);
    }
}

#[test]
fn type_of_an_attribute_is_inferred_from_assignments_and_annotations() {
    let text = "class A:\n    def f(self): pass\nclass B:\n    z: 'A'\n    def __init__(self, y: A = None):\n        self.x = A()\n        self.y = y\n    @property\n    def p(self): return self.x\n    def m(self) -> A: ...\n    def s(self): return self\n    def t(self): return type(self)()\n";
    for use_of in [
        "B().x.f$",
        "B().y.f$",
        "B().z.f$",
        "B().p.f$",
        "B().m().f$",
        "B().s().p.f$",
        "B().t().x.f$",
        "b = B()\nb.x.f$",
        "B().x$.f",
        "def g(b: B | None): b.x.f$",
        "def g(b: 'Optional[B]'): b.p.f$",
        "for b in [B()]: b.x.f$",
        "def g(bs: list[B]):\n    for b in bs: b.x.f$",
        "def g(c: type[B]): c().x.f$",
        "(a, b) = (1, B())\nb.x.f$",
        "b = None or B()\nb.x.f$",
        "def make(): return B()\nmake().x.f$",
        "def make():\n    yield B()\nwith make() as b: b.x.f$",
        "def g(b):\n    if isinstance(b, B): b.x.f$",
        "def g(b=B()): b.x.f$",
        "[b.x.f$ for b in (B(),)]",
        "b = cast('B', 1)\nb.x.f$",
        "if (b := B()): b.x.f$",
    ] {
        let expected = if use_of.contains("x$") {
            "m.py:6:13"
        } else {
            "m.py::A.f"
        };
        check_defined(&format!("{text}{use_of}\n"), &[expected]);
    }
    check_defined(
        "class E(Exception):\n    def f(self): pass\ntry: x\nexcept (E, ValueError) as e: e.f$\n",
        &["m.py::E.f"],
    );
    check_defined(
        "class C:\n    def __enter__(self): return self\n    def f(self): pass\nwith C() as c, open('x') as d: c.f$\n",
        &["m.py::C.f"],
    );
}

#[test]
fn method_that_returns_self_returns_the_subclass() {
    let text = "class A:\n    def clone(self): return self.__class__()\n    @classmethod\n    def make(cls): return cls()\nclass B(A):\n    def f(self): pass\n";
    check_defined(&format!("{text}B().clone().f$\n"), &["m.py::B.f"]);
    check_defined(&format!("{text}B.make().clone().f$\n"), &["m.py::B.f"]);
}

#[test]
fn decorated_function_has_the_type_that_its_decorator_returns() {
    let text = "from typing import Callable\nclass Command:\n    def main(self): pass\ndef command(name) -> Callable[[int], Command]: ...\ndef same(f): return f\n";
    check_defined(
        &format!("{text}@command('x')\n@same\ndef cli(): pass\ncli.main$()\n"),
        &["m.py::Command.main"],
    );
    check_defined(
        &format!("{text}@same\ndef make(): return Command()\nmake().main$()\n"),
        &["m.py::Command.main"],
    );
}

#[test]
fn only_assignments_that_can_reach_a_use_determine_its_type() {
    let text = "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\n";
    let both = ["m.py::A.f", "m.py::B.f"];
    for (body, expected) in [
        ("x = A()\n    x = B()\n    x.f$()", &both[1..]),
        ("x = A()\n    x.f$()\n    x = B()", &both[..1]),
        ("x = A()\n    if y: x = B()\n    x.f$()", &both[..]),
        ("if y: x = A()\n    else: x = B()\n    x.f$()", &both[..]),
        (
            "x = A()\n    while y:\n        x.f$()\n        x = B()",
            &both[..],
        ),
        (
            "x = A()\n    for y in z:\n        x = B()\n        x.f$()",
            &both[1..],
        ),
        ("x = A()\n    x = x.f$()", &both[..1]),
        ("x = A()\n    x += 1\n    x.f$()", &both[..1]),
        ("x = A()\n    def h(): x.f$()\n    x = B()", &both[..]),
        ("x = A()\n    [x.f$() for y in z]\n    x = B()", &both[..1]),
        ("try: x = A()\n    except E: x = B()\n    x.f$()", &both[..]),
    ] {
        check_defined(&format!("{text}def g(y, z):\n    {body}\n"), expected);
    }
}

#[test]
fn iteration_over_a_subclass_of_a_generic_list_has_the_element_type() {
    let text = "class A:\n    def f(self): pass\nclass L(list[A]):\n    def g(self):\n";
    check_defined(
        &format!("{text}        for a in self: a.f$()\n"),
        &["m.py::A.f"],
    );
    check_defined(&format!("{text}        self[0].f$()\n"), &["m.py::A.f"]);
    check_defined(
        &format!("{text}        if isinstance(a := self.x, A): a.f$()\n"),
        &["m.py::A.f"],
    );
}
