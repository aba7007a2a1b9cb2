use std::sync::Arc;

use super::super::{FilePath, SymbolTree};
use super::*;

pub(super) fn contract(text: &str) -> Contract {
    let tree = SymbolTree::parse(FilePath::new("m.py"), Arc::from(text));
    tree.symbols()[1].contract.clone()
}

#[test]
fn all_kinds_of_parameters_are_read() {
    let text = "def f(a, b: int, /, c=1, *args: str, d, e: 'x' = (\n    2,\n), **kw): pass\n";
    let read: Vec<(String, ParameterKind, Option<String>, Option<String>)> = contract(text)
        .parameters
        .unwrap()
        .into_iter()
        .map(|p| (p.name, p.kind, p.annotation, p.default))
        .collect();
    use ParameterKind::*;
    let some = |text: &str| Some(text.to_owned());
    let expected = [
        ("a", PositionalOnly, None, None),
        ("b", PositionalOnly, some("int"), None),
        ("c", Positional, None, some("1")),
        ("args", VarPositional, some("str"), None),
        ("d", KeywordOnly, None, None),
        ("e", KeywordOnly, some("'x'"), some("(2,)")),
        ("kw", VarKeyword, None, None),
    ]
    .map(|(name, kind, annotation, default)| (name.to_owned(), kind, annotation, default));
    assert_eq!(read, expected);
    let after_star = contract("def f(a, *, b): pass").parameters.unwrap();
    assert_eq!(after_star[1].kind, KeywordOnly);
    assert_eq!(
        contract("def f(\n    # none\n): pass").parameters,
        Some(vec![])
    );
}

#[test]
fn decorators_return_type_and_exceptions_are_read() {
    let text = "\
@a.b
@c(
    1,  # one
)
async def f() -> list[
    int
]:
    def inner():
        yield 1
        raise Inner
    raise ValueError('x') from error
    try: pass
    except E as e: raise
    raise errors.Other
    raise ValueError
    raise e
";
    let f = contract(text);
    assert_eq!(f.decorators, ["@a.b", "@c(1,)"]);
    assert_eq!(f.returns.as_deref(), Some("list[int]"));
    assert!(f.is_async && !f.is_generator);
    assert_eq!(f.raises, ["ValueError", "errors.Other"]);
    let class = contract("class A(B, c.D[int], metaclass=M, **kw): pass");
    assert_eq!(class.bases, ["B", "c.D[int]", "metaclass=M", "**kw"]);
    assert_eq!(class.parameters, None);
}

#[test]
fn function_is_a_generator_only_if_its_own_body_contains_a_yield() {
    assert!(contract("def f():\n    x = yield\n").is_generator);
    assert!(contract("def f():\n    yield from g()\n").is_generator);
    assert!(!contract("def f():\n    return lambda: (yield)\n").is_generator);
}

#[test]
fn raise_and_yield_in_nested_functions_and_classes_are_ignored() {
    let text = "\
def f():
    class Local:
        raise InClass
        def g(self):
            yield 2
            raise InMethod
    for x in y:
        with z:
            if x: raise Deep(x)
            else: raise Deep(y)
    raise make_error('x')
    raise errors[0]
    raise _Private
";
    let f = contract(text);
    assert!(!f.is_generator);
    assert!(!f.raises.contains(&"InMethod".to_owned()), "{:?}", f.raises);
    for name in ["Deep", "_Private", "make_error"] {
        let count = f.raises.iter().filter(|raised| *raised == name).count();
        assert_eq!(count, 1, "{name} in {:?}", f.raises);
    }
    assert!(contract("def f():\n    return [(yield x) for x in y]\n").is_generator);
    assert!(contract("async def f():\n    async for x in y:\n        yield x\n").is_generator);
    let method =
        "class A:\n    @staticmethod\n    @a.b(c)\n    def f(x: 'A' = None, /) -> None: ...\n";
    let tree = SymbolTree::parse(FilePath::new("m.py"), Arc::from(method));
    let contract = &tree.symbols()[2].contract;
    assert_eq!(contract.decorators, ["@staticmethod", "@a.b(c)"]);
    assert_eq!(contract.returns.as_deref(), Some("None"));
    let parameter = &contract.parameters.as_ref().unwrap()[0];
    assert_eq!(parameter.kind, ParameterKind::PositionalOnly);
    assert_eq!(parameter.annotation.as_deref(), Some("'A'"));
}

/// Checks the described changes between two signatures, and whether these changes can break
/// callers.
fn check(old: &str, new: &str, expected: &[&str], breaks: bool) {
    let (old, new) = (contract(old), contract(new));
    assert_eq!(old.changes(&new), expected);
    assert_eq!(old.can_break(&new), breaks, "{expected:?}");
    assert!(old.changes(&old).is_empty() && !old.can_break(&old));
}

#[test]
fn parameter_changes_are_described_and_classified_as_breaking_or_harmless() {
    check(
        "def f(x): 0",
        "def f(x, y): 0",
        &["parameter \"y\" added (required)"],
        true,
    );
    check(
        "def f(x): 0",
        "def f(x, y=1): 0",
        &["parameter \"y\" added (optional)"],
        false,
    );
    check(
        "def f(x): 0",
        "def f(y=1, x=2): 0",
        &[
            "parameter \"y\" added before others (optional)",
            "default of parameter \"x\" `2` added",
        ],
        true,
    );
    check(
        "def f(x): 0",
        "def f(x, *, y): 0",
        &["parameter \"y\" added (required)"],
        true,
    );
    check(
        "def f(x): 0",
        "def f(x, *a, y=1, **k): 0",
        &[
            "parameter \"a\" added (optional)",
            "parameter \"y\" added (optional)",
            "parameter \"k\" added (optional)",
        ],
        false,
    );
    check(
        "def f(x, y): 0",
        "def f(x): 0",
        &["parameter \"y\" removed"],
        true,
    );
    check(
        "def f(x, y): 0",
        "def f(y, x): 0",
        &["parameters reordered: y, x"],
        true,
    );
    check("def f(*, x, y): 0", "def f(*, y, x): 0", &[], false);
    check(
        "def f(x): 0",
        "def f(*, x): 0",
        &["parameter \"x\" changed from positional to keyword only"],
        true,
    );
    check(
        "def f(x, /): 0",
        "def f(x): 0",
        &["parameter \"x\" changed from positional only to positional"],
        false,
    );
    check(
        "def f(x=1): 0",
        "def f(x=2): 0",
        &["default of parameter \"x\" changed from `1` to `2`"],
        true,
    );
    check(
        "def f(x=1): 0",
        "def f(x): 0",
        &["default of parameter \"x\" `1` removed"],
        true,
    );
    check(
        "def f(x: int): 0",
        "def f(x: str): 0",
        &["annotation of parameter \"x\" changed from `int` to `str`"],
        false,
    );
    check("def f(x, y): 0", "def f(\n    x,\n    y,\n): 0", &[], false);
}

#[test]
fn parameter_that_takes_the_position_of_another_can_break() {
    // Before the change, `f(1, 2)` passed the 2 to `rest`.
    check(
        "def f(x, *rest): 0",
        "def f(x, y=1, *rest): 0",
        &["parameter \"y\" added before others (optional)"],
        true,
    );
    check(
        "def f(x, *, y): 0",
        "def f(y, x): 0",
        &[
            "parameter \"y\" changed from keyword only to positional",
            "parameter \"y\" moved before others",
        ],
        true,
    );
    check(
        "def f(*rest, y): 0",
        "def f(y, *rest): 0",
        &[
            "parameter \"y\" changed from keyword only to positional",
            "parameter \"y\" moved before others",
        ],
        true,
    );
    check(
        "def f(x, *, y): 0",
        "def f(x, y): 0",
        &["parameter \"y\" changed from keyword only to positional"],
        false,
    );
    check(
        "def f(x, y, *, z): 0",
        "def f(y, x, z): 0",
        &[
            "parameter \"z\" changed from keyword only to positional",
            "parameters reordered: y, x",
        ],
        true,
    );
    check(
        "def f(x, *a, k=1): 0",
        "def f(x, *a, j=2, k=1): 0",
        &["parameter \"j\" added (optional)"],
        false,
    );
}

#[test]
fn changes_of_star_parameters_can_break() {
    check(
        "def f(x): 0",
        "def f(*x): 0",
        &["parameter \"x\" changed from positional to any positional"],
        true,
    );
    check(
        "def f(**k): 0",
        "def f(k): 0",
        &["parameter \"k\" changed from any keyword to positional"],
        true,
    );
    check(
        "def f(*a, **k): 0",
        "def f(): 0",
        &["parameter \"a\" removed", "parameter \"k\" removed"],
        true,
    );
    check(
        "def f(x): 0",
        "def f(x, /): 0",
        &["parameter \"x\" changed from positional to positional only"],
        true,
    );
    check(
        "def f(*, x): 0",
        "def f(*, x=1): 0",
        &["default of parameter \"x\" `1` added"],
        false,
    );
    check(
        "def f(x: int, y): 0",
        "def f(x, y: str): 0",
        &[
            "annotation of parameter \"x\" `int` removed",
            "annotation of parameter \"y\" `str` added",
        ],
        false,
    );
}

#[test]
fn changes_of_name_async_and_annotations_are_described() {
    check(
        "def f(): 0",
        "def g(): 0",
        &["renamed from `f` to `g`"],
        true,
    );
    check("def f(): 0", "async def f(): 0", &["became async"], true);
    check(
        "def f(): yield",
        "def f(): 0",
        &["is no longer a generator"],
        true,
    );
    check(
        "def f() -> int: 0",
        "def f(): 0",
        &["return annotation `int` removed"],
        false,
    );
    check("def f(): 0", "def f(): raise E", &["raises `E`"], false);
    check(
        "def f(): raise E",
        "def f(): raise F()",
        &["no longer raises `E`", "raises `F`"],
        false,
    );
    check(
        "@property\ndef f(): 0",
        "def f(): 0",
        &["decorator `@property` removed"],
        true,
    );
    check(
        "def f(): 0",
        "@cache\ndef f(): 0",
        &["decorator `@cache` added"],
        true,
    );
    check(
        "class A(B, C): 0",
        "class A(C, B): 0",
        &["order or number of bases changed"],
        true,
    );
    check(
        "class A(B): 0",
        "class A(B, C): 0",
        &["base `C` added"],
        false,
    );
    check("class A(B): 0", "class A: 0", &["base `B` removed"], true);
    check("class A: 0", "def A(): 0", &["became a function"], true);
    check(
        "async def f(): 0",
        "def f(): 0",
        &["is no longer async"],
        true,
    );
    check(
        "def f(): 0",
        "def f(): yield",
        &["became a generator"],
        true,
    );
    check(
        "def A(): 0",
        "class A: 0",
        &["is no longer a function"],
        true,
    );
    check(
        "@a\n@b\ndef f(): 0",
        "@b\n@a\ndef f(): 0",
        &["order or number of decorators changed"],
        true,
    );
    check(
        "class A(B, metaclass=M): 0",
        "class A(B): 0",
        &["base `metaclass=M` removed"],
        true,
    );
    check(
        "def f() -> int: 0",
        "def f() -> str: 0",
        &["return annotation changed from `int` to `str`"],
        false,
    );
}

/// Returns whether a call with arguments such as `1, 2, b=3, *x` keeps its meaning.
fn holds(old: &str, new: &str, call: &str, receiver: Receiver) -> bool {
    let (old, new) = (
        contract(&format!("{old}: pass")),
        contract(&format!("{new}: pass")),
    );
    let parts = call
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut given = Arguments::default();
    for part in parts {
        match part.split_once('=') {
            Some((name, _)) => given.keywords.push(name.to_owned()),
            None if part.starts_with('*') => given.is_open = true,
            None => given.positional += 1,
        }
    }
    old.call_holds(&new, &given, receiver)
}

#[test]
fn call_stays_valid_if_its_arguments_bind_to_the_same_parameters() {
    let given = |old, new, call| holds(old, new, call, Receiver::Given);
    // A required parameter is added: keyword-only or positional.
    assert!(given("def f(a)", "def f(a, *, b)", "1, b=2"));
    assert!(!given("def f(a)", "def f(a, *, b)", "1"));
    assert!(given("def f(a)", "def f(a, b)", "1, 2"));
    assert!(!given("def f(a)", "def f(a, b)", "1, *more"));
    assert!(!given("def f(a)", "def f(b, a)", "1"));
    // A parameter is renamed: only keyword arguments break.
    assert!(given("def f(a, b)", "def f(a, c)", "1, 2"));
    assert!(!given("def f(a, b)", "def f(a, c)", "1, b=2"));
    // A parameter is removed, or parameters are reordered.
    assert!(given("def f(a, b=1)", "def f(a)", "1"));
    assert!(!given("def f(a, b=1)", "def f(a)", "1, 2"));
    assert!(!given("def f(a, b=1, c=2)", "def f(a, c=2)", "1, 2"));
    assert!(!given("def f(a, b)", "def f(b, a)", "1, 2"));
    assert!(given("def f(a, b)", "def f(b, a)", "a=1, b=2"));
    // A default changed: only calls that rely on the default break.
    assert!(given("def f(a=1)", "def f(a=2)", "3"));
    assert!(!given("def f(a=1)", "def f(a=2)", ""));
    // The functions differ in more than their parameters.
    assert!(!given("def f(a)", "async def f(a)", "1"));
    assert!(!given("class A", "class B", ""));
    // With a bound receiver, the object before the dot is the first argument.
    let bound = |old, new, call| holds(old, new, call, Receiver::Bound);
    assert!(bound("def f(self, a)", "def f(self, a, b)", "1, 2"));
    assert!(!bound("def f(self, a)", "def f(self, a, b)", "1"));
}

#[test]
fn override_can_replace_the_base_method_if_it_accepts_all_its_calls() {
    let stands = |own: &str, other: &str| {
        let (own, other) = (
            contract(&format!("{own}: pass")),
            contract(&format!("{other}: pass")),
        );
        own.stands_in_for(&other)
    };
    assert!(stands("def f(self, a, b)", "def f(self, a, b)"));
    assert!(!stands("def f(self, a)", "def f(self, a, b)"));
    assert!(stands("def f(self, a, *args, **kw)", "def f(self, a, b)"));
    assert!(!stands("def f(self, a, **kw)", "def f(self, a, b)"));
    assert!(stands("def f(self, a, **kw)", "def f(self, a, *, b)"));
    assert!(!stands("def f(self, a, b)", "def f(self, a)"));
    assert!(stands("def f(self, a, b=1)", "def f(self, a)"));
    assert!(!stands("def f(self)", "async def f(self)"));
    assert!(!stands("@property\ndef f(self)", "def f(self)"));
    assert!(stands(
        "@property\ndef f(self)",
        "@cached_property\ndef f(self)"
    ));
}

#[test]
fn property_that_loses_its_decorator_becomes_a_plain_function() {
    let becomes = |old: &str, new: &str| {
        let of = |decorator: &str| contract(&format!("{decorator}\ndef f(self): pass"));
        of(old).becomes_plain_function(&of(new))
    };
    for old in [
        "@property",
        "@functools.cached_property",
        "@kept_property(ttl=3)",
    ] {
        assert!(becomes(old, ""), "{old}");
        assert!(becomes(old, "@functools.lru_cache(maxsize=1)"), "{old}");
        assert!(!becomes(old, "@property"), "{old}");
        assert!(!becomes(old, "@lazy"), "another descriptor may do the same");
    }
    assert!(!becomes("", ""));
    assert!(!becomes("@f.setter", ""));
    let call = Arguments::default();
    let (old, new) = (
        contract("@property\ndef f(self): pass"),
        contract("def f(self): pass"),
    );
    assert!(old.call_holds(&new, &call, Receiver::Bound));
    assert!(!new.call_holds(&old, &call, Receiver::Bound));
}
