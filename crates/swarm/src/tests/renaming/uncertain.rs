//! Uses that may not be of the symbol: on objects that code from outside returns, on objects of unknown
//! type, and by code from outside.

use super::refactoring::{Refactored, rename, run};
use super::*;
use starling_syntax::FilePath;

const REPORT: &str = "class Report:\n    def getvalue(self):\n        return 'report'\n";

fn certain_rename(symbol: &str, to: &str) -> Refactoring {
    Refactoring::Rename {
        symbol: symbol.to_owned(),
        to: to.to_owned(),
        only_if_certain: true,
    }
}

fn delete(symbol: &str) -> Refactoring {
    Refactoring::Delete {
        symbol: symbol.to_owned(),
    }
}

/// Checks that a refactoring changes nothing and gives this reason.
async fn check_refused(files: &[(&str, &str)], refactoring: Refactoring, expected: &str) {
    let asked = refactoring.in_words();
    let Refactored { why, texts, .. } = run(files, refactoring).await;
    let StopReason::NothingChanged { why } = why else {
        panic!("{asked}: {why:?} {texts:?}");
    };
    assert!(why.contains(expected), "{asked}: {why}");
    let unchanged = files.iter().map(|(_, text)| *text);
    assert_eq!(texts, unchanged.collect::<Vec<_>>(), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn use_on_the_result_of_the_standard_library_is_not_certain() {
    let money = "class Money:\n    def in_cents(self):\n        return 100\n\n\nFIRST = Money()\n\n\n\
                 def revenue():\n    return 3\n";
    for line in [
        "print(sum([FIRST], FIRST).in_cents())",
        "print(round(FIRST).in_cents())",
        "import json; print(json.loads('{}', object_hook=lambda d: Money()).in_cents())",
        "import sys; print(sys.modules['money'].FIRST.in_cents())",
    ] {
        let report = format!("from money import FIRST, Money\n\n{line}\n");
        let files = [("money.py", money), ("report.py", report.as_str())];
        for refactoring in [
            certain_rename("Money.in_cents", "to_cents"),
            delete("Money.in_cents"),
        ] {
            check_refused(&files, refactoring, "report.py:3").await;
        }
    }
    for line in [
        "print(sys.modules['money'].revenue())",
        "print(importlib.import_module('money').revenue())",
        "report = lambda shop: shop.revenue()",
    ] {
        let by_name = format!("import importlib, sys\n\n{line}\n");
        let files = [("money.py", money), ("report.py", by_name.as_str())];
        for refactoring in [certain_rename("revenue", "income"), delete("revenue")] {
            let expected = "`revenue` may be used elsewhere as well: report.py:3";
            check_refused(&files, refactoring, expected).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn use_on_an_object_of_unknown_type_is_never_certain() {
    let out = "def dump(source):\n    return source.getvalue()\n";
    let files = [("report.py", REPORT), ("out.py", out)];
    let expected = "1 place may mean another `getvalue`: out.py:2";
    check_refused(
        &files,
        certain_rename("Report.getvalue", "text_of"),
        expected,
    )
    .await;

    let Refactored {
        texts,
        ending: (proof, headline),
        ..
    } = run(&files, rename("Report.getvalue", "text_of")).await;
    assert_eq!(texts[1], out.replace("getvalue", "text_of"), "{headline}");
    assert_eq!(proof, Proof::Unproven);
    let expected = "Done, but 1 changed place may mean another `getvalue`: out.py:2";
    assert!(headline.starts_with(expected), "{headline}");

    // In an editor, the user confirms the use.
    let mut bed = Bed::new(&files, Scripted::native());
    let lookup = bed.checker().lookup();
    let edits = crate::renaming::rename_edits(&lookup, "Report.getvalue", "text_of").unwrap();
    let certain: Vec<&str> = edits.certain.keys().map(FilePath::as_str).collect();
    let unsure: Vec<&str> = edits.unsure.keys().map(FilePath::as_str).collect();
    assert_eq!((certain, unsure), (vec!["report.py"], vec!["out.py"]));
}

#[tokio::test(start_paused = true)]
async fn method_that_code_from_outside_calls_by_its_name_is_not_certainly_known() {
    let shop = "class Conn:\n    def close(self):\n        return 1\n\n    def shut(self):\n        \
                return 2\n\n\nclass Row:\n    def keys(self):\n        return ['a']\n";
    let main = "from contextlib import closing\nfrom shop import Conn, Row\n\nwith closing(Conn()):\n    \
                print(dict(Row()))\n";
    let files = [("shop.py", shop), ("main.py", main)];
    for (refactoring, expected) in [
        (
            certain_rename("Conn.close", "end"),
            "code from outside may call `close` by its name, as it does for files",
        ),
        (
            delete("Row.keys"),
            "code from outside may call `keys` by its name, as it does for mappings",
        ),
    ] {
        check_refused(&files, refactoring, expected).await;
    }
    let Refactored {
        texts,
        ending: (_, headline),
        ..
    } = run(&files, rename("Conn.close", "end")).await;
    assert!(texts[0].contains("def end("), "{headline}");
    let expected = "Done, but code from outside may call `close` by its name";
    assert!(headline.starts_with(expected), "{headline}");
    let Refactored { texts, reasons, .. } = run(&files, certain_rename("Conn.shut", "end")).await;
    assert!(texts[0].contains("def end("), "{reasons:?}");
}
