use std::sync::Arc;

use super::*;
use starling_syntax::{FilePath, SymbolTree};

fn read(text: &str) -> Names {
    Names::read(&SymbolTree::parse(FilePath::new("m.py"), Arc::from(text)))
}

/// Formats an expression for comparison in tests.
fn format_expr(names: &Names, id: ExprId) -> String {
    let of = |id| format_expr(names, id);
    match names.expr(id) {
        ExprContent::Unknown => if id.is_some() { "?" } else { "" }.to_owned(),
        ExprContent::Occurrence(id) => {
            let found = names.occurrence(id).unwrap();
            let name = names.name(found.name);
            match found.receiver().is_some() {
                true => format!("{}.{name}", of(found.receiver())),
                false => name.to_owned(),
            }
        }
        ExprContent::Built(expr) => match expr {
            Expr::Call(called) => format!("{}()", of(called)),
            Expr::TypeOf(value) => format!("type({})", of(value)),
            Expr::Super(_) => "super()".to_owned(),
            Expr::Item(base, list) => {
                let list: Vec<String> = names.run(list).iter().map(|id| of(*id)).collect();
                format!("{}[{}]", of(base), list.join(","))
            }
            Expr::Either(a, b) => format!("{}|{}", of(a), of(b)),
            Expr::Tuple(list) => {
                let list: Vec<String> = names.run(list).iter().map(|id| of(*id)).collect();
                format!("({})", list.join(","))
            }
            Expr::List(first) => format!("[{}]", of(first)),
            Expr::Part(value, index) => format!("part {index} of {}", of(value)),
            Expr::Element(value) => format!("element of {}", of(value)),
            Expr::Entered(value) => format!("entered {}", of(value)),
            Expr::Caught(value) => format!("caught {}", of(value)),
            Expr::Literal => "literal".to_owned(),
            Expr::None => "None".to_owned(),
        },
    }
}

/// Checks the occurrences of `text` except plain reads, each with its role and its receiver.
fn check_roles(text: &str, expected: &[&str]) {
    let names = read(text);
    let found: Vec<String> = (names.occurrences().iter())
        .filter(|found| found.role != Role::Read || found.receiver().is_some())
        .map(|found| {
            let name = names.name(found.name);
            let written = &text[found.at as usize..];
            assert!(written.starts_with(name), "{name} is not at {}", found.at);
            let receiver = format_expr(&names, found.called().unwrap_or_else(|| found.receiver()));
            let of = if receiver.is_empty() { "" } else { " of " };
            format!("{name} {:?}{of}{receiver}", found.role)
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

/// Checks the bindings of `text`, in the order of scopes and positions.
fn check_bindings(text: &str, expected: &[&str]) {
    let names = read(text);
    let mut bindings = names.bindings.clone();
    bindings.sort_by_key(|binding| (binding.scope, binding.occurrence));
    let found: Vec<String> = bindings
        .iter()
        .map(|binding| {
            let scope = binding.scope.0;
            let name = names.name(binding.name);
            let typed = |word: &str, annotation, value| {
                format!(
                    "{word}: {} = {}",
                    format_expr(&names, annotation),
                    format_expr(&names, value)
                )
            };
            let what = match binding.kind {
                BindingKind::Import(id) => format!("import {}", id.0),
                BindingKind::Class(symbol) => format!("class {}", symbol.0),
                BindingKind::Function(symbol) => format!("def {}", symbol.0),
                BindingKind::Parameter {
                    place,
                    annotation,
                    default,
                } => typed(&format!("{place:?}"), annotation, default),
                BindingKind::Value { annotation, value } => typed("value", annotation, value),
                BindingKind::Attribute { annotation, value } => {
                    typed("attribute", annotation, value)
                }
                BindingKind::Global => "global".to_owned(),
                BindingKind::Nonlocal => "nonlocal".to_owned(),
            };
            format!("{scope} {name} {what}")
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn attribute_occurrences_have_their_receivers() {
    check_roles(
        "a.b.c(k=1).d\nself.x[0].y\nsuper().f\n(p or q).r\n'x'.join",
        &[
            "b Read of a",
            "c Call of a.b",
            "k Keyword of a.b.c",
            "d Read of a.b.c()",
            "x Read of self",
            "y Read of self.x[literal]",
            "super Call",
            "f Read of super()",
            "r Read of p|q",
            "join Read of literal",
        ],
    );
}

#[test]
fn occurrences_have_the_role_of_their_syntax() {
    check_roles(
        "@d\ndef f(a, *b): f()\nclass C(B): x = 1\ndel x, o.y\no.z = 1\nx += 1",
        &[
            "f Definition",
            "a Parameter",
            "b Parameter",
            "f Call",
            "C Definition",
            "x Store",
            "x Delete",
            "y Delete of o",
            "z Store of o",
            "x Store",
        ],
    );
}

#[test]
fn imports_have_their_module_parts_and_names() {
    let text = "import a.b, c as d\nfrom ..e.f import g, h as i\nfrom . import *\n";
    check_roles(
        text,
        &[
            "a ImportedModule",
            "b ImportedModule",
            "c ImportedModule",
            "d Alias",
            "e ImportedModule",
            "f ImportedModule",
            "g ImportedName",
            "h ImportedName",
            "i Alias",
        ],
    );
    let names = read(text);
    let imports: Vec<String> = (names.imports().iter())
        .map(|import| {
            let parts: Vec<&str> = names.module_parts(import).collect();
            format!("{} {} {:?}", import.level, parts.join("."), import.what)
        })
        .collect();
    assert_eq!(
        imports,
        [
            "0 a.b First",
            "0 c Whole",
            "2 e.f Name(NameId(6))",
            "2 e.f Name(NameId(7))",
            "1  Star",
        ]
    );
    check_bindings(
        text,
        &[
            "0 a import 0",
            "0 d import 1",
            "0 g import 2",
            "0 i import 3",
        ],
    );
}

#[test]
fn assignments_bind_values_and_annotations() {
    check_bindings(
        "x = A()\ny: B = z = c\na, (b, *r) = p, q\nwith C() as w: pass\nfor e in es: pass\ntry: pass\nexcept (E, F) as g: pass\nif (n := N()): pass\n",
        &[
            "0 x value:  = A()",
            "0 y value: B = c",
            "0 z value:  = c",
            "0 a value:  = part 0 of (p,q)",
            "0 b value:  = ?",
            "0 r value:  = ?",
            "0 w value:  = entered C()",
            "0 e value:  = element of es",
            "0 g value:  = caught (E,F)",
            "0 n value:  = N()",
        ],
    );
}

#[test]
fn attributes_of_self_belong_to_the_class() {
    check_bindings(
        "class A:\n    def f(me, o):\n        me.x: T = X()\n        o.y = me\n        def g(): me.z = 1\n        def h(me): me.w = 1\n    @staticmethod\n    def s(a): a.b = 1\n    @classmethod\n    def c(cls): cls.v = V()\n",
        &[
            "0 A class 1",
            "1 f def 2",
            "1 x attribute: T = X()",
            "1 z attribute:  = literal",
            "1 s def 5",
            "1 c def 6",
            "1 v attribute:  = V()",
            "2 me First:  = ",
            "2 o Later:  = ",
            "2 g def 3",
            "2 h def 4",
            "4 me First:  = ",
            "5 a First:  = ",
            "6 cls First:  = ",
        ],
    );
}

#[test]
fn parameters_have_their_position_annotation_and_default() {
    check_bindings(
        "def f(a, b: B = d, *c: C, e: E, **g): pass\nlambda x, y=1: x\n",
        &[
            "0 f def 1",
            "1 a First:  = ",
            "1 b Later: B = d",
            "1 c Rest:  = ",
            "1 e Later: E = ",
            "1 g Rest:  = ",
            "2 x Later:  = ",
            "2 y Later:  = literal",
        ],
    );
    let names = read("def f(a=b): a\n");
    let scopes: Vec<u32> = names
        .occurrences()
        .iter()
        .map(|found| found.scope.0)
        .collect();
    // `f` and the default belong to the outer scope, the parameter and its use to the inner one.
    assert_eq!(scopes, [0, 1, 0, 1]);
}

#[test]
fn comprehension_scope_excludes_its_first_iterable() {
    let names = read("[x.a for x in xs if (y := x)]\n");
    let found: Vec<(&str, u32)> = (names.occurrences().iter())
        .map(|found| (names.name(found.name), found.scope.0))
        .collect();
    let expected = [("x", 1), ("a", 1), ("x", 1), ("xs", 0), ("y", 1), ("x", 1)];
    assert_eq!(found, expected);
    let y = names.find("y").unwrap();
    assert_eq!(names.bindings(ScopeId::MODULE, y).len(), 1);
}

#[test]
fn types_in_strings_and_names_in_all_are_read() {
    check_roles(
        "__all__ = ['f', \"g\"]\n__all__ += ('h',)\nx: 'a.B[C] | D' = 'no'\ny: Literal['E']\n",
        &[
            "__all__ Store",
            "f Export",
            "g Export",
            "__all__ Store",
            "h Export",
            "x Store",
            "B Read of a",
            "y Store",
        ],
    );
    check_bindings(
        "x: 'a.B[C] | D'\ndef f(p: \"P\"): pass",
        &["0 x value: a.B[C]|D = ", "0 f def 1", "1 p Later: P = "].map(|line| {
            if line.starts_with("1 p") {
                "1 p First: P = "
            } else {
                line
            }
        }),
    );
}

#[test]
fn only_strings_that_are_elements_of_all_are_exported_names() {
    check_roles(
        "__all__ = []\n__all__.append('f')\n__all__.extend(['g'])\n__all__ += list(('h',))\n\
         __all__ = ['i' if a == 'no' else 'j', *['k']]\n\
         __all__ = [n for n in names if n != 'no'] + 'no'.split('no')\n\
         others.extend(['no'])\nm.__all__.append('no')\n__all__.index('no')\n",
        &[
            "__all__ Store",
            "append Call of __all__",
            "f Export",
            "extend Call of __all__",
            "g Export",
            "__all__ Store",
            "list Call",
            "h Export",
            "__all__ Store",
            "i Export",
            "j Export",
            "k Export",
            "__all__ Store",
            "n Store",
            "split Call of literal",
            "extend Call of others",
            "__all__ Read of m",
            "append Call of m.__all__",
            "index Call of __all__",
        ],
    );
}

#[test]
fn functions_have_their_role_and_result_values() {
    let names = read(
        "class A:\n    @property\n    def p(self) -> B: return self.x\n    @p.setter\n    def p(self, v): pass\n    @cached_property\n    def c(self): yield C()\n    def __new__(cls): return None\nasync def g(): yield from h()\n",
    );
    let roles: Vec<FunctionRole> = names.functions.iter().map(|f| f.role).collect();
    use FunctionRole::{ClassMethod, Plain, Property};
    assert_eq!(roles, [Property, Property, Property, ClassMethod, Plain]);
    let given: Vec<String> = (names.functions.iter())
        .flat_map(|function| names.given(function.scope))
        .map(|given| format!("{:?} {}", given.how, format_expr(&names, given.value)))
        .collect();
    assert_eq!(
        given,
        ["Return self.x", "Yield C()", "Return None", "YieldFrom h()"]
    );
    assert_eq!(format_expr(&names, names.functions[0].returns), "B");
    let bases = read("class A(B, c.D[E], metaclass=M): pass\n");
    let class = bases.classes()[0];
    let list: Vec<String> = bases
        .run(class.bases)
        .iter()
        .map(|id| format_expr(&bases, *id))
        .collect();
    assert_eq!(list, ["B", "c.D[E]"]);
}

/// Checks the type tests in `text`, each with the part of the text in which it holds.
fn check_narrowings(text: &str, expected: &[(&str, &str)]) {
    let names = read(text);
    let found: Vec<(String, &str)> = (names.narrowings().iter())
        .map(|test| {
            let what = format!(
                "{} {}",
                format_expr(&names, test.tested),
                format_expr(&names, test.class)
            );
            (
                what,
                text[test.start as usize..test.end as usize].trim_matches([':', ' ', '\n']),
            )
        })
        .collect();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(what, text)| (what.as_str(), *text))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn isinstance_test_narrows_the_type_in_its_branch() {
    check_narrowings(
        "if isinstance(x, A):\n    x.f\nelse:\n    x.g\n",
        &[("x A", "x.f")],
    );
    check_narrowings(
        "x.f if isinstance(x, (A, B)) else x.g\n",
        &[("x (A,B)", "x.f")],
    );
    check_narrowings("if y or isinstance(x, A):\n    x.f\n", &[]);
    check_narrowings(
        "def f(x):\n    if not isinstance(x, A):\n        return x.g\n    x.f\ny\n",
        &[("x A", "x.f")],
    );
    check_narrowings(
        "def f(x):\n    assert isinstance(x.y, A)\n    x.y.f\n",
        &[("x.y A", "x.y.f")],
    );
}

#[test]
fn match_patterns_bind_and_read_names() {
    check_roles(
        "match v:\n    case A(x, y=z) as w: pass\n    case m.C | other: pass\n    case [*rest]: pass\n",
        &[
            "x Store",
            "y Read of ?",
            "z Store",
            "w Store",
            "C Read of m",
            "other Store",
            "rest Store",
        ],
    );
}

#[test]
fn owner_and_line_of_an_offset_are_found() {
    let text = "class A:\n    @d\n    def f(self):\n        x\n    y\nz\n";
    let names = read(text);
    let owner = |word: &str| names.owner(text.find(word).unwrap() as u32).0;
    assert_eq!(
        [
            owner("class"),
            owner("@d"),
            owner("x"),
            owner("y\n"),
            owner("z")
        ],
        [1, 2, 2, 1, 0]
    );
    let x = text.find('x').unwrap() as u32;
    assert_eq!((names.line(x), names.line_start(4)), (4, Some(x - 8)));
    let at = |offset| {
        names
            .occurrence_at(offset)
            .map(|id| names.occurrence(id).unwrap().at)
    };
    assert_eq!((at(x), at(x + 1), at(x - 2)), (Some(x), Some(x), None));
    let identifiers: Vec<&str> = names.identifiers().collect();
    assert_eq!(identifiers, ["A", "d", "f", "self", "x", "y", "z"]);
}

#[test]
fn names_are_stored_and_read_back() {
    let names = read(
        "from a import b as c\nclass A(c.D):\n    def f(self) -> 'E':\n        return self.x(k=1)\n",
    );
    let stored = postcard::to_allocvec(&names).unwrap();
    assert_eq!(postcard::from_bytes::<Names>(&stored).unwrap(), names);
    for end in 0..stored.len() {
        let _ = postcard::from_bytes::<Names>(&stored[..end]);
    }
}

#[test]
fn malformed_or_deeply_nested_text_does_not_panic() {
    let deep = format!("x = {}y{}\n", "(".repeat(5_000), ")".repeat(5_000));
    let chain = format!("x = a{}\n", ".b()".repeat(5_000));
    let sum = format!("x = a{}\n", " + a.b".repeat(5_000));
    let nested: String = (0..400)
        .map(|depth| format!("{}if a:\n", " ".repeat(depth)))
        .collect();
    for text in [
        "",
        "def",
        "class (:\n  def f(:\n",
        "from import x\nimport\nfrom . import (a, \n",
        "x: 'a[' = 1",
        "x: '\u{e9}.\u{e9}[\u{e9}]'",
        "@\nclass",
        "lambda: (yield)",
        "\u{feff}def f(): pass",
        "f'{x!r:{y}}' f'{'",
        "def f(\n\nclass A(B:\n x = self.\n",
        "print 'x' % y",
        "exec 'a' in b",
        &deep,
        &chain,
        &sum,
        &nested,
    ] {
        let names = read(text);
        for (index, found) in names.occurrences().iter().enumerate() {
            told_shallow(&names, *found);
            assert!(names.scope(found.scope).is_some());
            assert!(
                index == 0 || names.occurrences()[index - 1].at < found.at,
                "{text}"
            );
        }
    }
    assert!(read(&sum).occurrences().len() > 10_000);
    let plain = SymbolTree::parse(FilePath::new("a.txt"), Arc::from("x = 1"));
    assert_eq!(Names::read(&plain), Names::default());
}

fn told_shallow(names: &Names, found: Occurrence) {
    assert!(!names.name(found.name).is_empty());
}
