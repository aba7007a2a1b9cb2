//! How a citation is written: its notations, and unusual paths.

use super::fixture::{EmptyProject, ODD, check, place, places};
use crate::block::Block;
use crate::cite::marks;

fn found(text: &str) -> Vec<(String, Vec<(u32, u32)>)> {
    marks(text, &EmptyProject)
        .into_iter()
        .map(|m| (m.path, m.lines))
        .collect()
}

#[test]
fn citations_are_found_in_every_notation() {
    let one = |lines| vec![("a/b.py".to_owned(), vec![lines])];
    assert_eq!(found("x [a/b.py:12]."), one((12, 12)));
    assert_eq!(found("x (a/b.py:12-18)."), one((12, 18)));
    assert_eq!(found("x `a/b.py:12–18`."), one((12, 18)));
    assert_eq!(found("x a/b.py:18-12, and"), one((12, 18)));
    assert_eq!(found("x a/b.py:12:5: error"), one((12, 12)));
    assert_eq!(found("x a/b.py#L12-L18"), one((12, 18)));
    assert_eq!(found("x a/b.py::C.f:12"), one((12, 12)));
    assert_eq!(found("x `a/b.py` line 12"), one((12, 12)));
    assert_eq!(found("x a/b.py, line 12 is"), one((12, 12)));
    let two = vec![("a/b.py".to_owned(), vec![(3, 3), (9, 12)])];
    assert_eq!(found("[a/b.py:3, 9-12]"), two);
    assert_eq!(found("[a/b.py:3,9-12]"), two);
    assert_eq!(found("[a.py:3, b.py:9]").len(), 2);
    assert_eq!(found("[a.py:3][b.py:9]").len(), 2);
}

#[test]
fn text_that_resembles_a_citation_is_not_a_citation() {
    for text in [
        "at 10:30 there were 3",
        "http://localhost:8000/x",
        "127.0.0.1:80",
        "a ratio of 2:1",
        "line 12 of it",
        "a.py",
        "x[1:2]",
        "{1: 2}",
        "é:1",
        "note:3",
        "see the note, line 3",
        ".NET:6",
        "...env:3",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn cited_path_may_contain_spaces_and_special_characters() {
    for file in ODD {
        for text in [
            format!("`SEATS` is one [{file}:1]."),
            format!("`SEATS` is one ({file}:1, lib/shop.py:1) as `RATE` is."),
            format!("`SEATS` is one `{file}:1`."),
            format!("In {file}:1 `SEATS` is one. `sit` is below [{file}::sit:4]."),
        ] {
            let block = check(&text);
            assert!(
                block.wrong.is_empty() && block.moved.is_empty(),
                "{text} {block:#?}"
            );
            assert_eq!(block.citations[0].place(), format!("{file}:1"), "{text}");
            assert_eq!(block.text, text.replace("::sit", ""), "{text}");
        }
        let quoted = check(&format!("In `{file}` line 1 `SEATS` is one."));
        assert_eq!(quoted.text, format!("In {file}:1 `SEATS` is one."));
        let mended = check(&format!("`sit` is one [{file}:2]. `SEATS` [{file}:90]."));
        let expected = format!("`sit` is one [{file}:4]. `SEATS` [unverified].");
        assert_eq!(mended.text, expected);
    }
    let root = place();
    let text = format!(
        "`SEATS` is one [{}/{}:1].",
        root.files.root().display(),
        ODD[0]
    );
    assert_eq!(
        Block::check(&text, &root.checker).text,
        format!("`SEATS` is one [{}:1].", ODD[0])
    );
    // A path does not match in the middle of another path.
    assert_eq!(
        check("`SEATS` is one [4/chair.py:1].").text,
        "`SEATS` is one [unverified]."
    );
}

#[test]
fn short_path_is_completed_and_line_range_is_clipped_to_the_file() {
    assert_eq!(
        places("`pay` it is [shop.py:11-99]."),
        ["lib/shop.py:11-13"]
    );
    assert_eq!(places("`OPEN` is one [till.py:1]."), ["lib/deep/till.py:1"]);
}

#[test]
fn citations_of_dotfiles_and_files_without_an_extension_are_checked() {
    for wrong in [
        "Makefile:999",
        "Dockerfile:42",
        "LICENSE:7",
        "id_rsa:4",
        ".env:77",
        ".npmrc:3",
        ".git/config:1",
        "lib/deep/runner:9",
        "runner:9",
    ] {
        for text in [format!("It is so [{wrong}]."), format!("It is so {wrong}.")] {
            let block = check(&text);
            assert_eq!(block.text, "It is so [unverified].", "{text}");
            assert_eq!(block.wrong.len(), 1, "{text}");
        }
    }
    // A file that a model may not read cannot support a claim.
    assert_eq!(check("It is so [.env:1].").wrong.len(), 1);
    assert_eq!(places("It builds all [Makefile:1]."), ["Makefile:1"]);
    assert_eq!(places("It builds all (Makefile, line 1)."), ["Makefile:1"]);
    assert_eq!(places("It is set up [.flake8:1]."), [".flake8:1"]);
    assert_eq!(places("`OPEN` is one [runner:1]."), ["lib/deep/runner:1"]);
    assert_eq!(places("`pay` it is .lib/shop.py:11."), ["lib/shop.py:11"]);
    let prose = "A note:3 of it, at .5:3, in .NET:6 and step:2.";
    assert_eq!(check(prose).text, prose);
}
