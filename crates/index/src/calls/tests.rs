use super::super::testing::snapshot_of;
use crate::Index;
use starling_syntax::FilePath;

/// Returns the calls that stop fitting their callee when `changes` are applied to the files
/// `before`, each as `file:line callee is called why`.
fn bad(before: &[(&str, &str)], changes: &[(&str, &str)]) -> Vec<String> {
    let is_kept = |(name, _): &&(&str, &str)| !changes.iter().any(|(other, _)| other == name);
    let mut after: Vec<(&str, &str)> = before.iter().filter(is_kept).copied().collect();
    after.extend(changes);
    let files = changes.iter().map(|(name, _)| FilePath::new(*name));
    let files: Vec<FilePath> = files.collect();
    let old = Index::new(snapshot_of(before));
    let new = Index::new(snapshot_of(&after));
    let found = new.newly_bad_calls(&old, &files).into_iter();
    let words = found.map(|one| {
        let (file, line, callee, why) = (one.file, one.line, one.callee.name, one.why);
        format!("{file}:{line} {callee} is called {why}")
    });
    words.collect()
}

/// Returns why a call does not fit the definitions in `m.py`, as the words after `is called`, or
/// `None` if it fits. The call is in a function of another file.
fn misfit(definitions: &str, call: &str) -> Option<String> {
    let user = |call: &str| {
        format!(
            "import m\nfrom m import *\n\n\ndef use(x, box: m.Box, other):\n    made = m.Box(1)\n    {call}\n"
        )
    };
    let (old, new) = (user("pass"), user(call));
    let definitions = format!("{definitions}\n\n{BOX}");
    let found = bad(
        &[("m.py", &definitions), ("user.py", &old)],
        &[("user.py", &new)],
    );
    assert!(found.len() < 2, "{found:?}");
    let why = found.first()?.split(" is called ").nth(1)?;
    Some(why.to_owned())
}

const BOX: &str = "\
class Box:
    def __init__(self, size, *, lid=False):
        self.size = size

    def put(self, thing, at=0):
        return self.size

    @classmethod
    def of(cls, size):
        return cls(size)

    @staticmethod
    def area(w, h):
        return w * h

    @property
    def lid(self) -> \"Box\":
        return self
";

#[test]
fn call_that_does_not_fit_its_definition_is_reported() {
    let table = [
        ("f(1)", "without `b`, and needs it"),
        ("m.f(1)", "without `b`, and needs it"),
        ("f()", "without `a`, `b`, and needs it"),
        ("f(1, 2, 3, 4)", "with 4 arguments by position, and takes 3"),
        ("f(1, 2, d=4)", "with `d=`, and has no such parameter"),
        ("f(1, 2, a=4)", "with two values for `a`"),
        ("return [f(y) for y in x]", "without `b`, and needs it"),
        ("g(1, 2)", "with 2 arguments by position, and takes 1"),
        ("g(1)", "without `k`, and needs it"),
        ("h(a=1)", "with `a=`, and has no such parameter"),
        ("Box()", "without `size`, and needs it"),
        ("Box(1, True)", "with 2 arguments by position, and takes 1"),
        ("made.put()", "without `thing`, and needs it"),
        (
            "made.put(1, 2, 3)",
            "with 3 arguments by position, and takes 2",
        ),
        ("box.put(1, to=2)", "with `to=`, and has no such parameter"),
        ("box.lid.put()", "without `thing`, and needs it"),
        ("Box(1).put()", "without `thing`, and needs it"),
        ("Box.put(made)", "without `thing`, and needs it"),
        ("Box.of()", "without `size`, and needs it"),
        ("made.of(1, 2)", "with 2 arguments by position, and takes 1"),
        ("m.Box.area(1)", "without `h`, and needs it"),
        ("made.area(1)", "without `h`, and needs it"),
    ];
    let definitions = "def f(a, b, c=1):\n    return a\n\n\ndef g(a, *, k):\n    return a\n\n\ndef h(a, /):\n    return a\n";
    for (call, expected) in table {
        assert_eq!(
            misfit(definitions, call).as_deref(),
            Some(expected),
            "{call}"
        );
    }
}

#[test]
fn fitting_or_uncertain_call_is_not_reported() {
    let definitions = "\
import functools

def f(a, b, c=1):
    return a

def rest(a, *more, **named):
    return a

def decorated_by(g):
    return g

@decorated_by
def decorated(a):
    return a

@functools.singledispatch
def dispatched(a):
    return a

if True:
    def twice(a):
        return a
else:
    def twice(a, b):
        return a

def replaced(a):
    return a

def replace():
    global replaced
    replaced = print

class Meta(metaclass=type):
    def __init__(self, a):
        pass

class New:
    def __new__(cls, a, b):
        return object.__new__(cls)

    def __init__(self, a):
        pass

class Wide(Box if True else object):
    pass

class Narrow:
    def go(self, a):
        return a

class Wider(Narrow):
    def go(self, a, b=1):
        return a

def narrow() -> Narrow:
    return Narrow()
";
    for call in [
        "f(1, 2)",
        "f(1, b=2)",
        "f(*x)",
        "f(1, **x)",
        "rest(1, 2, 3, d=4)",
        "decorated(1, 2)",
        "dispatched(1, 2)",
        "twice(1, 2, 3)",
        "replaced(1, 2)",
        "Meta(1, 2)",
        "New(1, 2)",
        "Wide()",
        "unknown(1)",
        "other.put()",
        "x(1, 2, 3)",
        "made.put(1, at=2)",
        "Box.put(made, 1)",
        "Box.area(1, 2)",
        "narrow().go(1, 2)",
        "f = other; f(1)",
        "made = other; made.put()",
        "made.put = other; made.put()",
        "if isinstance(box, int): box.put()",
        "with raises(TypeError): f(1)",
    ] {
        assert_eq!(misfit(definitions, call), None, "{call}");
    }
    let tried = "try:\n        f(1)\n    except TypeError:\n        pass";
    assert_eq!(misfit(definitions, tried), None);
    let other = tried.replace("TypeError", "ValueError");
    assert!(misfit(definitions, &other).is_some());
    assert!(misfit(definitions, "narrow().go()").is_some());
}

#[test]
fn call_of_a_class_is_compared_with_its_init_or_data_class_fields() {
    let definitions = "\
import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar

import attr

@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)
    seen: bool = field(init=False, default=False)
    COUNT: ClassVar[int] = 0

@dataclasses.dataclass
class Solid(Point):
    z: int = 0

@dataclass(kw_only=True)
class Named:
    name: str

@dataclass(init=False)
class Own:
    name: str

@attr.s
class Attrs:
    name: str

class Heir(Point):
    pass

class Wrong(ValueError):
    def __init__(self, what, why):
        super().__init__(what)

class Plain:
    name: str
";
    for (call, expected) in [
        ("Point()", Some("without `x`, and needs it")),
        (
            "Point(1, 2, [], True)",
            Some("with 4 arguments by position, and takes 3"),
        ),
        (
            "Point(1, seen=True)",
            Some("with `seen=`, and has no such parameter"),
        ),
        (
            "Point(1, COUNT=1)",
            Some("with `COUNT=`, and has no such parameter"),
        ),
        ("Point(1, 2, tags=[])", None),
        ("Solid(1, 2, [], 4)", None),
        (
            "Solid(1, 2, [], 4, 5)",
            Some("with 5 arguments by position, and takes 4"),
        ),
        ("Heir()", Some("without `x`, and needs it")),
        ("Named(name=1)", None),
        ("Named(1)", Some("with 1 argument by position, and takes 0")),
        ("Own(1, 2, 3)", None),
        ("Attrs(1, 2, 3)", None),
        ("Wrong(1)", Some("without `why`, and needs it")),
        ("Plain(1)", None),
    ] {
        assert_eq!(misfit(definitions, call).as_deref(), expected, "{call}");
    }
}

#[test]
fn changed_definition_is_compared_with_its_calls_in_all_files() {
    let shop = "def total(a):\n    return a\n\n\nclass Cart:\n    def __init__(self, size):\n        self.size = size\n\n    \
                def put(self, a):\n        return self.take(a)\n\n    def take(self, a):\n        return a\n\n\nclass Big(Cart):\n    \
                def __init__(self, size):\n        super().__init__(size)\n\n\nclass Small(Cart):\n    pass\n";
    let user = "from shop import Small, total as sum_of\n\n\ndef f():\n    return sum_of(1)\n\n\ndef g():\n    return Small(1).put(2)\n";
    let keeper = "from shop import Cart\n\n\nclass Keeper:\n    def __init__(self, cart: Cart):\n        self.cart = cart\n\n    \
                  def go(self):\n        return self.cart.put(1)\n";
    let files = [("shop.py", shop), ("user.py", user), ("keeper.py", keeper)];
    let changed = |old: &str, new: &str| {
        assert!(shop.contains(old), "{old}");
        bad(&files, &[("shop.py", &shop.replacen(old, new, 1))])
    };
    assert_eq!(
        changed("def total(a)", "def total(a, b)"),
        ["user.py:5 total is called without `b`, and needs it"]
    );
    assert_eq!(
        changed("def put(self, a)", "def put(self, a, b)"),
        [
            "keeper.py:9 Cart.put is called without `b`, and needs it",
            "user.py:9 Cart.put is called without `b`, and needs it"
        ]
    );
    assert_eq!(
        changed("def take(self, a)", "def take(self)"),
        ["shop.py:10 Cart.take is called with 1 argument by position, and takes 0"]
    );
    assert_eq!(
        changed("__init__(self, size)", "__init__(self, size, lid)"),
        [
            "shop.py:18 Cart.__init__ is called without `lid`, and needs it",
            "user.py:9 Small is called without `lid`, and needs it"
        ]
    );
    assert_eq!(changed("def total(a)", "def total(a, b=1)"), [""; 0]);
    assert_eq!(changed("def total(a)", "@cached\ndef total(a, b)"), [""; 0]);
    let mended = user.replace("sum_of(1)", "sum_of(1, 2)");
    let both = [
        ("shop.py", &*shop.replace("total(a)", "total(a, b)")),
        ("user.py", &*mended),
    ];
    assert_eq!(bad(&files, &both), [""; 0]);
    assert_eq!(
        bad(&files, &[("user.py", &mended)]),
        ["user.py:5 total is called with 2 arguments by position, and takes 1"]
    );
}

#[test]
fn call_that_did_not_fit_before_the_change_is_not_reported() {
    let files = [
        ("m.py", "def f(a):\n    return a\n"),
        ("user.py", "from m import f\n\n\ndef g():\n    return f()\n"),
    ];
    let changed = |text: &str| bad(&files, &[("m.py", text)]);
    assert_eq!(changed("def f(a, b):\n    return a\n"), [""; 0]);
    let more =
        "from m import f\n\n\ndef g():\n    return f() + f(1, 2)\n\n\ndef h():\n    return f()\n";
    assert_eq!(bad(&files, &[("user.py", more)]).len(), 2);
}

#[test]
fn call_of_a_monkeypatched_function_is_not_reported() {
    let test = "import m\n\n\ndef test_f(monkeypatch):\n    monkeypatch.setattr(m, \"f\", lambda a, b: a)\n    assert m.f(1, 2)\n";
    let files = [("m.py", "def f(a):\n    return a\n"), ("test_m.py", "")];
    assert_eq!(bad(&files, &[("test_m.py", test)]), [""; 0]);
    let without = test.replace("    monkeypatch.setattr(m, \"f\", lambda a, b: a)\n", "");
    assert_eq!(bad(&files, &[("test_m.py", &without)]).len(), 1);
}

/// Classes that decide how a unit moves, and (in `BATTLE`) callers that do not know which of the
/// classes they use.
const BRAINS: &str = "\
from abc import ABC, abstractmethod


class Brain(ABC):
    @abstractmethod
    def pick(self, foes):
        ...

    def advance(self, me, board):
        return me


class Near(Brain):
    def pick(self, foes):
        return foes[0]


class Coward(Near):
    def advance(self, me, board):
        return super().advance(me, board)
";
const BATTLE: &str = "\
from brains import Brain


class Battle:
    def __init__(self, brain):
        self.brain = brain

    def turn(self, unit):
        return self.brain.advance(unit, self)


def plan(brain: Brain, unit):
    return brain.advance(unit, None)
";

/// Returns the calls that stop fitting after these replacements in `brains.py` and `battle.py`.
/// Each pair is an old part of the text and the new one.
fn bad_of(brains: &[(&str, &str)], battle: &[(&str, &str)]) -> Vec<String> {
    let changed = |text: &str, parts: &[(&str, &str)]| {
        parts.iter().fold(text.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        })
    };
    let (new_brains, new_battle) = (changed(BRAINS, brains), changed(BATTLE, battle));
    let files = [("brains.py", BRAINS), ("battle.py", BATTLE)];
    bad(
        &files,
        &[("brains.py", &new_brains), ("battle.py", &new_battle)],
    )
}

#[test]
fn call_that_fits_only_some_of_the_overriding_methods_after_a_change_is_reported() {
    let base = (
        "advance(self, me, board):\n        return me",
        "advance(self, me, board, taken):\n        return me",
    );
    let heir = (
        "advance(self, me, board):\n        return super()",
        "advance(self, me, board, taken):\n        return super()",
    );
    let inner = (
        "super().advance(me, board)",
        "super().advance(me, board, taken)",
    );
    let turn = ("advance(unit, self)", "advance(unit, self, set())");
    let plan = ("advance(unit, None)", "advance(unit, None, set())");
    let needs = "without `taken`, and needs it";
    let three = "with 3 arguments by position, and takes 2";
    for (brains, battle, expected) in [
        (vec![base, heir, inner], vec![turn, plan], vec![]),
        (
            vec![base],
            vec![],
            vec![
                format!("battle.py:9 Brain.advance is called {needs}"),
                format!("battle.py:13 Brain.advance is called {needs}"),
                format!("brains.py:20 Brain.advance is called {needs}"),
            ],
        ),
        (
            vec![base, heir],
            vec![turn, plan],
            vec![format!("brains.py:20 Brain.advance is called {needs}")],
        ),
        // The override still takes the old arguments, while the base class takes the new ones.
        (
            vec![base, ("super().advance(me, board)", "me")],
            vec![turn, plan],
            vec![
                format!("battle.py:9 Coward.advance is called {three}"),
                format!("battle.py:13 Coward.advance is called {three}"),
            ],
        ),
        (
            vec![heir],
            vec![],
            vec![
                format!("battle.py:9 Coward.advance is called {needs}"),
                format!("battle.py:13 Coward.advance is called {needs}"),
            ],
        ),
        (
            vec![base, heir, inner],
            vec![plan],
            vec![format!("battle.py:9 Brain.advance is called {needs}")],
        ),
        // A call with the new arguments, while the definitions are unchanged.
        (
            vec![],
            vec![turn],
            vec![format!("battle.py:9 Brain.advance is called {three}")],
        ),
        // An abstract method that takes a new argument, while its only implementation does not. No
        // call uses it.
        (
            vec![(
                "pick(self, foes):\n        ...",
                "pick(self, foes, me):\n        ...",
            )],
            vec![],
            vec![],
        ),
    ] {
        assert_eq!(bad_of(&brains, &battle), expected, "{brains:?} {battle:?}");
    }
}

#[test]
fn super_call_in_a_mixin_is_compared_with_the_next_class_in_resolution_order() {
    let text = "\
class Unit:
    def hurt(self, amount):
        return amount


class Armor:
    def hurt(self, amount):
        return super().hurt(amount - 1)

    def twice(self):
        return self.hurt(1) + self.heal(1)


class Healing:
    def heal(self, amount):
        return amount


class Knight(Armor, Healing, Unit):
    pass


def strike(target):
    return target.hurt(3)
";
    let changed = |parts: &[(&str, &str)]| {
        let new = parts.iter().fold(text.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        bad(&[("units.py", text)], &[("units.py", &new)])
    };
    let unit = (
        "hurt(self, amount):\n        return amount\n",
        "hurt(self, amount, by):\n        return amount\n",
    );
    let armor = (
        "hurt(self, amount):\n        return super().hurt(amount - 1)",
        "hurt(self, amount, by):\n        return super().hurt(amount - 1, by)",
    );
    let own = ("self.hurt(1)", "self.hurt(1, self)");
    let strike = ("target.hurt(3)", "target.hurt(3, None)");
    assert_eq!(changed(&[unit, armor, own, strike]), [""; 0]);
    assert_eq!(
        changed(&[unit, armor, own]),
        ["units.py:24 Unit.hurt is called without `by`, and needs it"]
    );
    assert_eq!(
        changed(&[unit]),
        [
            "units.py:8 Unit.hurt is called without `by`, and needs it",
            "units.py:24 Unit.hurt is called without `by`, and needs it"
        ]
    );
    assert_eq!(
        changed(&[("heal(self, amount)", "heal(self, amount, how)")]),
        ["units.py:11 Healing.heal is called without `how`, and needs it"]
    );
    // `target` has no known type, so it may be a `Pen`, whose `hurt` is unchanged.
    let other = (
        "def strike",
        "class Pen:\n    def hurt(self, a):\n        return a\n\n\ndef strike",
    );
    let with_other = text.replacen(other.0, other.1, 1);
    let new = [unit, armor, own]
        .iter()
        .fold(with_other.clone(), |text, (old, new)| {
            text.replacen(old, new, 1)
        });
    assert_eq!(
        bad(&[("units.py", &with_other)], &[("units.py", &new)]),
        [""; 0]
    );
}

#[test]
fn override_that_was_already_incompatible_before_the_change_is_not_reported() {
    let text = "\
class Shape:
    def draw(self, on):
        return on

    def show(self):
        return self.draw(1)


class Text(Shape):
    def draw(self, on, font):
        return on


def paint(shape, text: Text):
    return shape.draw(1), text.draw(1, 2)
";
    for (old, new) in [
        ("draw(self, on):", "draw(self, on, width=1):"),
        ("draw(self, on, font):", "draw(self, on, font, size=1):"),
        ("return self.draw(1)", "return self.draw(2)"),
    ] {
        let new = text.replacen(old, new, 1);
        assert_eq!(bad(&[("m.py", text)], &[("m.py", &new)]), [""; 0], "{new}");
    }
}

#[test]
fn method_call_on_an_object_of_a_class_looked_up_by_string_is_checked() {
    let found = "import importlib\n\n\ndef lookup(module, name):\n    return getattr(importlib.import_module(module), name)\n";
    let user = "from found import lookup\n\n\nclass Battle:\n    def __init__(self, name):\n        self.brain = lookup(\"brains\", name)()\n\n    def turn(self, unit):\n        return self.brain.advance(unit, self)\n";
    let files = [
        ("brains.py", BRAINS),
        ("found.py", found),
        ("user.py", user),
    ];
    let brains = BRAINS
        .replace(
            "advance(self, me, board)",
            "advance(self, me, board, taken)",
        )
        .replace("advance(me, board)", "advance(me, board, taken)");
    assert_eq!(
        bad(&files, &[("brains.py", &brains)]),
        ["user.py:9 Brain.advance is called without `taken`, and needs it"]
    );
}
