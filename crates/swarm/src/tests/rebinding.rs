//! Imports and additions that would bind a name again that the code of other owners uses.

use serde_json::{Value, json};

use super::bed::*;
use crate::*;

const MODULE: &str = "import json\n\n\ndef f(xs):\n    return xs\n\n\ndef total(xs):\n    \
                      return json.dumps(sum(xs))\n";

/// Runs the owner of `own`, which makes this proposal. Returns the text of the module at the end,
/// and the events.
async fn proposes(own: &str, text: &str, proposal: Value) -> (String, Vec<Event>) {
    let model = Scripted::native().on(
        &format!("agent {own}"),
        [call("propose", proposal), finish("done")],
    );
    let mut bed = Bed::new(&[("a.py", text)], model).begin(&[own]);
    let events = bed.run().await;
    (bed.read("a.py"), events)
}

/// Returns a proposal that changes `f` to this body and adds an import.
fn using(body: &str, import: &str) -> Value {
    let source = format!("def f(xs):\n    {body}\n");
    json!({"reason": "r", "source": source, "imports": [import]})
}

#[tokio::test(start_paused = true)]
async fn import_that_rebinds_a_name_used_by_other_owners_is_refused() {
    for (body, import, told) in [
        (
            "return sum(xs)",
            "from math import prod as sum",
            &["`sum` another meaning", "built into Python", "a.py::total"][..],
        ),
        (
            "return json.getcwd()",
            "import os as json",
            &["`json` another meaning", "already binds it", "a.py::total"],
        ),
        (
            "return total",
            "from os import getcwd as total",
            &["`total` another meaning", "already binds it"],
        ),
        (
            "return getcwd()",
            "from os import *",
            &["`*` another meaning", "every public name"],
        ),
        (
            "return __getattr__",
            "from os import getenv as __getattr__",
            &["Python itself uses that name"],
        ),
    ] {
        let (left, events) = proposes("a.py::f", MODULE, using(body, import)).await;
        assert_eq!(left, MODULE, "{import}: {events:#?}");
        let refused = malformed(&events);
        for part in told {
            assert!(refused[0].contains(part), "{import}: {refused:?}");
        }
        let advice = "import inside a.py::f, or use `request_change` with symbol a.py::.";
        assert!(refused[0].ends_with(advice), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn import_is_applied_if_it_rebinds_no_name_that_other_owners_use() {
    for (body, import) in [
        ("return os.getcwd()", "import os"),
        ("return json.loads(xs)", "import json"),
        ("return max(xs)", "from numpy import max"),
        (
            "from math import prod as sum\n    return sum(xs)",
            "import os",
        ),
    ] {
        let (left, events) = proposes("a.py::f", MODULE, using(body, import)).await;
        assert!(left.contains(body), "{import}: {events:#?}");
        assert_eq!(left.matches("import json").count(), 1, "{left}");
    }
}

#[tokio::test(start_paused = true)]
async fn owner_of_the_module_body_may_rebind_a_name_by_an_import() {
    for import in ["from math import prod as sum", "from os import *"] {
        let proposal = json!({"reason": "r", "imports": [import]});
        let (left, events) = proposes("a.py::", MODULE, proposal).await;
        assert!(left.contains(import), "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn import_that_rebinds_a_used_name_is_refused_even_without_a_code_change() {
    let import = json!(["import os as json"]);
    let proposal = json!({"reason": "r", "symbol": "a.py::", "imports": import});
    let (left, events) = proposes("a.py::f", MODULE, proposal).await;
    assert_eq!(left, MODULE, "{events:#?}");
    assert!(malformed(&events)[0].contains("`json` another meaning"));
}

#[tokio::test(start_paused = true)]
async fn new_function_that_shadows_a_used_builtin_is_refused() {
    let add = |source: &str| json!({"reason": "r", "add": [{"source": source}]});
    let hides = add("def sum(xs):\n    return 0\n");
    let (left, events) = proposes("a.py::f", MODULE, hides).await;
    assert_eq!(left, MODULE, "{events:#?}");
    assert!(malformed(&events)[0].contains("`sum` another meaning"));
    let free = add("def product(xs):\n    return 0\n");
    let (left, events) = proposes("a.py::f", MODULE, free).await;
    assert!(left.contains("def product"), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn new_file_that_shadows_an_imported_module_is_refused() {
    let files = [
        ("a/__init__.py", ""),
        ("a/m.py", "def helper(x):\n    return x\n"),
        ("a/u.py", "import json\nfrom a.m import helper\n"),
        ("pytest.ini", "[pytest]\npythonpath = code .\n"),
        ("code/x.py", ""),
    ];
    for (own, told) in [
        (
            "code/a/__init__.py",
            Some("would hide a/__init__.py, which is imported by a/u.py"),
        ),
        (
            "a/m/__init__.py",
            Some("would hide a/m.py, which is imported by a/u.py"),
        ),
        (
            "json.py",
            Some("would hide the module `json` of Python's standard library"),
        ),
        (
            "iniconfig.py",
            Some("would hide the module `iniconfig` of an installed package, which the tools"),
        ),
        (
            "json.cpython-312-x86_64-linux-gnu.so",
            Some("would hide the module `json` of Python's standard library"),
        ),
        (
            "iniconfig/__init__.so",
            Some("would hide the module `iniconfig` of an installed package, which the tools"),
        ),
        (
            "a/m.pyd",
            Some("would hide a/m.py, which is imported by a/u.py"),
        ),
        ("a/json.py", None),
        ("a/iniconfig.py", None),
        ("other.py", None),
    ] {
        let proposal = json!({"reason": "r", "source": "x = 1\n"});
        let model = Scripted::native().on(
            &format!("agent {own}::"),
            [call("propose", proposal), finish("done")],
        );
        let begin = format!("{own}::");
        let mut bed = Bed::new(&files, model).begin(&[&begin]);
        let events = bed.run().await;
        let refused = malformed(&events);
        match told {
            Some(told) => assert!(refused[0].contains(told), "{own}: {refused:?}"),
            None => assert!(refused.is_empty(), "{own}: {refused:?}"),
        }
    }
}
