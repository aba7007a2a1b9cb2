//! Refactorings that are requested exactly: no model is asked, whichever is configured.

use super::*;

const SHAPES: &str = "class Shape:\n    def area(self):\n        return 1\n\n\nclass Other:\n    \
                      def area(self):\n        return 2\n";
const USES: &str = "from shapes import Shape\n\n\ndef sure(shape: Shape):\n    return shape.area()\n\n\n\
                    def unsure(thing):\n    return thing.area()\n";

fn rename(symbol: &str, to: &str) -> Refactoring {
    Refactoring::Rename {
        symbol: symbol.to_owned(),
        to: to.to_owned(),
        only_if_certain: false,
    }
}

/// The result of a refactoring.
struct Refactored {
    why: StopReason,
    ending: (Proof, String),
    texts: Vec<String>,
    /// The reasons of the proposals.
    reasons: Vec<String>,
}

/// Carries out a refactoring with a model that must not be asked.
async fn run(files: &[(&str, &str)], refactoring: Refactoring) -> Refactored {
    let mut bed = Bed::new(files, Scripted::native()).with(|task| {
        task.text = refactoring.in_words();
        task.refactoring = Some(refactoring.clone());
    });
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0, "{events:#?}");
    let reasons = events.iter().filter_map(|event| match event {
        Event::ProposalMade { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    Refactored {
        why: stop(&events),
        ending: ending(&events),
        texts: files.iter().map(|file| bed.read(file.0)).collect(),
        reasons: reasons.collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn refactoring_is_made_without_the_model_that_is_configured() {
    let files = [
        ("stats.py", STATS),
        ("report.py", REPORT),
        ("test_stats.py", TESTS),
    ];
    for symbol in ["rate", "stats.py::rate"] {
        let Refactored { why, texts, .. } = run(&files, rename(symbol, "error_rate")).await;
        assert_eq!(why, StopReason::Settled, "{symbol}");
        assert!(texts[0].starts_with("def error_rate("), "{texts:?}");
        assert!(texts[1].contains("{error_rate(hits, total)"), "{texts:?}");
    }
    let unused = [(
        "a.py",
        "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    )];
    let symbol = "f".to_owned();
    let Refactored { why, texts, .. } = run(&unused, Refactoring::Delete { symbol }).await;
    assert_eq!(why, StopReason::Settled);
    assert_eq!(texts, ["def g():\n    return 2\n"]);
}

#[tokio::test(start_paused = true)]
async fn certain_uses_are_renamed_and_the_others_are_told() {
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    let refactoring = rename("Shape.area", "surface");
    let Refactored {
        texts,
        reasons,
        ending: (proof, headline),
        ..
    } = run(&files, refactoring).await;
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let expected = "Done, but 1 place may mean another `area`: uses.py:9";
    assert!(headline.starts_with(expected), "{headline}");
    assert_eq!(texts[0], SHAPES.replacen("area", "surface", 1));
    assert_eq!(texts[1], USES.replace("shape.area", "shape.surface"));
    let doubt = "not certain: 1 place may mean another `area`: uses.py:9";
    assert!(reasons.iter().all(|one| one.contains(doubt)), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renamed_if_only_a_certain_rename_is_wanted_and_a_use_is_not() {
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    let refactoring = Refactoring::Rename {
        symbol: "Shape.area".to_owned(),
        to: "surface".to_owned(),
        only_if_certain: true,
    };
    let Refactored { why, texts, .. } = run(&files, refactoring).await;
    let StopReason::NothingChanged { why } = why else {
        panic!("{why:?}");
    };
    assert!(why.contains("uses.py:9"), "{why}");
    assert_eq!(texts, [SHAPES, USES]);
}

#[tokio::test(start_paused = true)]
async fn name_that_is_not_that_of_one_symbol_is_refused() {
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    for (symbol, to, expected) in [
        (
            "area",
            "surface",
            "several symbols are called `area`: shapes.py::Other.area, shapes.py::Shape.area",
        ),
        (
            "Shap",
            "Form",
            "there is no symbol `Shap`; did you mean `Shape`?",
        ),
        (
            "shapes.py::Shap",
            "Form",
            "There is no symbol shapes.py::Shap.",
        ),
        (
            "shapes.py::",
            "form",
            "shapes.py is a file: name a symbol in it",
        ),
        ("Shape", "a-b", "`a-b` is no name for a symbol"),
        ("Shape", "class", "`class` is no name for a symbol"),
        ("Shape", "Shape", "`Shape` is already called `Shape`"),
        (
            "Shape",
            "Other",
            "shapes.py already contains the name `Other`",
        ),
    ] {
        let Refactored { why, texts, .. } = run(&files, rename(symbol, to)).await;
        let StopReason::NothingChanged { why } = why else {
            panic!("{symbol}: {why:?}");
        };
        assert!(why.starts_with(expected), "{symbol}: {why}");
        assert_eq!(texts, [SHAPES, USES]);
    }
}
