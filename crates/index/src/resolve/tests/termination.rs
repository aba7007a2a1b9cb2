//! Cyclic and very long code.

use crate::resolve::Resolver;
use crate::testing::code_of;

#[test]
fn cyclic_imports_and_inheritance_terminate() {
    let files = [
        (
            "a.py",
            "from b import *\nfrom b import X\ntry: pass\nexcept E: X = X\nclass A(B): pass\n",
        ),
        (
            "b.py",
            "from a import *\nfrom a import X, A\ntry: pass\nexcept E: X = X()\nclass B(A):\n    def f(self): return self.f().f()\n",
        ),
        (
            "c.py",
            "from a import X, B\nfrom c import Y\nclass L(L): pass\nclass P(Q): pass\nclass Q(P):\n    def g(self): pass\nP().g()\nX.g()\nglobal X\n",
        ),
    ];
    let code = code_of(files.iter().copied());
    let mut resolver = Resolver::new(&code);
    for symbol in [
        "b.py::B.f",
        "b.py::B",
        "c.py::Q.g",
        "c.py::L",
        "a.py::A",
        "a.py::",
    ] {
        let found = resolver.references(&symbol.parse().unwrap()).unwrap();
        // The import of `X` leads nowhere, so `X.g` may be any object's.
        assert_eq!(found.complete, symbol != "c.py::Q.g", "{symbol}");
        assert!(symbol.ends_with("::") || !found.uses.is_empty(), "{symbol}");
    }
    assert!(
        resolver
            .references(&"c.py::nothing".parse().unwrap())
            .is_none()
    );
    assert!(resolver.references(&"no.py::A".parse().unwrap()).is_none());
}

#[test]
fn very_long_chains_of_calls_and_classes_terminate() {
    let calls = format!(
        "class A:\n    def f(self): return self\nA(){}\n",
        ".f()".repeat(3_000)
    );
    let dots = format!("x{}\n", ".f".repeat(3_000));
    let names: String = (1..3_000).map(|n| format!("x{n} = x{}\n", n - 1)).collect();
    let names = format!("class A:\n    def f(self): pass\nx0 = A()\n{names}x2999.f()\n");
    let bases: String = (1..1_000)
        .map(|n| format!("class B{n}(B{}): pass\n", n - 1))
        .collect();
    let bases = format!("class B0:\n    def f(self): pass\n{bases}B999().f()\n");
    for (text, symbol) in [
        (&calls, "m.py::A.f"),
        (&names, "m.py::A.f"),
        (&bases, "m.py::B0.f"),
    ] {
        let code = code_of([("m.py", text.as_str()), ("n.py", dots.as_str())]);
        let found = Resolver::new(&code)
            .references(&symbol.parse().unwrap())
            .unwrap();
        assert!(!found.uses.is_empty(), "{symbol}");
    }
}
