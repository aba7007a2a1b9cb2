use futures::FutureExt;
use serde_json::json;
use tower_lsp::lsp_types::Position as LspPosition;

use super::*;
use starling_text::position_of;

const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

fn range(start: (u32, u32), end: (u32, u32)) -> Range {
    Range::new(
        LspPosition::new(start.0, start.1),
        LspPosition::new(end.0, end.1),
    )
}

fn spliced(text: &str, range: Range, insert: &str, encoding: Encoding) -> String {
    let mut rope = Rope::from_str(text);
    splice(&mut rope, range, insert, encoding);
    rope.to_string()
}

#[test]
fn splice_counts_columns_in_the_units_of_the_encoding() {
    for (encoding, after_smile) in ENCODINGS.into_iter().zip([5, 3, 2]) {
        let smile = range((1, 1), (1, after_smile));
        assert_eq!(
            spliced("x\r\na🙂b\r\n", smile, "é", encoding),
            "x\r\naéb\r\n",
            "{encoding:?}"
        );
    }
}

#[test]
fn splice_replaces_every_range_in_every_encoding() {
    let text = "a🙂b\r\n\r\nçd🙂\n🙂\u{301}e\rlast 𝔘";
    let between_break = |at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
    let places: Vec<usize> = (0..=text.len())
        .filter(|at| text.is_char_boundary(*at) && !between_break(*at))
        .collect();
    let rope = Rope::from_str(text);
    for encoding in ENCODINGS {
        let place = |at| {
            let position = position_of(&rope, at, encoding);
            (position.line, position.column)
        };
        for (index, start) in places.iter().enumerate() {
            for end in &places[index..] {
                let mut expected = text.to_owned();
                expected.replace_range(start..end, "é\r\n🙂");
                let range = range(place(*start), place(*end));
                let found = spliced(text, range, "é\r\n🙂", encoding);
                assert_eq!(found, expected, "{encoding:?} {start}..{end}");
            }
        }
    }
}

#[test]
fn splice_clamps_range_to_text() {
    for encoding in ENCODINGS {
        let splice = |start, end| spliced("ab\r\ncd", range(start, end), "X", encoding);
        assert_eq!(splice((0, 99), (0, 99)), "abX\r\ncd", "before the break");
        assert_eq!(splice((0, u32::MAX), (1, 0)), "abXcd");
        assert_eq!(splice((9, 0), (9, 9)), "ab\r\ncdX");
        assert_eq!(splice((1, 1), (u32::MAX, u32::MAX)), "ab\r\ncX");
        assert_eq!(splice((1, 1), (0, 1)), "aXd", "ends in the wrong order");
    }
    // A position inside of a multi-byte character does not panic, and other text is kept.
    for encoding in [Encoding::Utf8, Encoding::Utf16] {
        let found = spliced("🙂b", range((0, 1), (0, 1)), "X", encoding);
        assert!(["X🙂b", "🙂Xb"].contains(&found.as_str()), "{found}");
    }
}

fn uri(path: &str) -> Url {
    Url::from_file_path(path).unwrap()
}

fn opened(path: &str, version: i32, text: &str) -> DocumentMessage {
    DocumentMessage::Opened {
        uri: uri(path),
        version: DocVersion(version),
        text: text.to_owned(),
    }
}

fn changed(path: &str, version: i32, changes: serde_json::Value) -> DocumentMessage {
    DocumentMessage::Changed {
        uri: uri(path),
        version: DocVersion(version),
        changes: serde_json::from_value(changes).unwrap(),
        encoding: Encoding::Utf16,
    }
}

async fn text_of(documents: &DocumentStore, path: &str) -> Option<(String, i32)> {
    let current = documents.read(path.into()).await.unwrap()?;
    Some((current.text.to_string(), current.version?.0))
}

#[tokio::test]
async fn applies_changes_of_one_message_in_order() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    documents.send(opened("/w/a.py", 1, "🙂one\r\n"));
    // The second range refers to the text after the first change.
    documents.send(changed(
        "/w/a.py",
        2,
        json!([
            {"range": range((0, 2), (0, 5)), "text": "two\r\nthree"},
            {"range": range((1, 0), (1, 5)), "text": "3"},
        ]),
    ));
    let expected = Some(("🙂two\r\n3\r\n".to_owned(), 2));
    assert_eq!(text_of(&documents, "/w/a.py").await, expected);
    documents.send(changed("/w/a.py", 3, json!([{"text": "all new"}])));
    let expected = Some(("all new".to_owned(), 3));
    assert_eq!(text_of(&documents, "/w/a.py").await, expected);
}

#[tokio::test]
async fn did_change_without_edits_updates_the_document_version() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    documents.send(opened("/w/a.py", 1, "x"));
    documents.send(changed("/w/a.py", 2, json!([])));
    assert_eq!(
        text_of(&documents, "/w/a.py").await,
        Some(("x".to_owned(), 2))
    );
}

#[tokio::test]
async fn document_store_returns_texts_only_of_open_files() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let start = json!({"line": 0, "character": 0});
    let part = json!([{"range": {"start": start, "end": start}, "text": "x"}]);
    documents.send(changed("/w/a.py", 2, part));
    assert_eq!(text_of(&documents, "/w/a.py").await, None);
    documents.send(DocumentMessage::Opened {
        uri: Url::parse("untitled:Untitled-1").unwrap(),
        version: DocVersion(1),
        text: "never a file".to_owned(),
    });
    documents.send(opened("/w/a.py", 1, "a"));
    documents.send(opened("/w/b.py", 1, "b"));
    let before_close = documents.read_all();
    documents.send(DocumentMessage::Closed {
        uri: uri("/w/a.py"),
    });
    assert_eq!(text_of(&documents, "/w/a.py").await, None);
    let names = |all: Vec<(PathBuf, Arc<str>)>| {
        let mut names: Vec<_> = all.into_iter().map(|(path, _)| path).collect();
        names.sort();
        names
    };
    let (a, b) = (PathBuf::from("/w/a.py"), PathBuf::from("/w/b.py"));
    assert_eq!(names(before_close.await.unwrap()), [a, b.clone()]);
    assert_eq!(names(documents.read_all().await.unwrap()), [b]);
}

#[tokio::test]
async fn expected_text_is_detected_between_two_changes_of_one_message() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let expect = |base: &str, after: &str| {
        documents.expect(
            "/w/a.py".into(),
            base.into(),
            after.into(),
            TextHistory::default(),
        )
    };
    documents.send(opened("/w/a.py", 4, "old"));
    assert!(matches!(
        expect("other", "new").await,
        Ok(ExpectReply::Stale)
    ));
    let Ok(ExpectReply::Open {
        version, arrived, ..
    }) = expect("old", "new").await
    else {
        panic!("the text of the base is there");
    };
    assert_eq!(version, DocVersion(4));
    documents.send(changed("/w/b.py", 1, json!([{"text": "new"}])));
    documents.send(opened("/w/b.py", 1, "new"));
    let mut arrived = arrived;
    assert!(text_of(&documents, "/w/b.py").await.is_some());
    assert!((&mut arrived).now_or_never().is_none(), "another file");
    documents.send(changed(
        "/w/a.py",
        5,
        json!([{"text": "new"}, {"text": "new and more"}]),
    ));
    assert_eq!(*arrived.await.unwrap().text, *"new");
    let now = text_of(&documents, "/w/a.py").await;
    assert_eq!(now, Some(("new and more".to_owned(), 5)));
}

#[tokio::test]
async fn expected_text_is_detected_when_the_file_is_opened() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let expected = documents.expect(
        "/w/a.py".into(),
        "old".into(),
        "new".into(),
        TextHistory::default(),
    );
    let Ok(ExpectReply::Closed { arrived }) = expected.await else {
        panic!("it is not open");
    };
    documents.send(opened("/w/a.py", 1, "new"));
    assert_eq!(arrived.await.unwrap().version, Some(DocVersion(1)));
}

#[tokio::test]
async fn symbols_parsed_before_a_document_is_reopened_are_ignored() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let path = PathBuf::from("/w/a.py");
    let old = "def f():\n    pass\n";
    let new = "x = 1\n\n\ndef f():\n    pass\n";
    documents.send(opened("/w/a.py", 1, old));
    assert!(documents.view(path.clone()).await.unwrap().is_some());
    documents.send(DocumentMessage::Closed {
        uri: uri("/w/a.py"),
    });
    documents.send(opened("/w/a.py", 1, new));
    // A parse that began before the document was closed ends only after it was opened again.
    documents.send(DocumentMessage::SymbolsRead {
        path: path.clone(),
        opening: OpenId(1),
        markers: SymbolMarkers::read(&path, old),
    });
    let document = documents.view(path).await.unwrap().unwrap();
    let head = document.markers.find("f").unwrap().name_start;
    assert_eq!(head, new.find("f()").unwrap());
}

#[tokio::test]
async fn document_is_uncertain_after_a_lost_change_message() {
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let expect = |path: &str| {
        documents.expect(
            path.into(),
            "old".into(),
            "new".into(),
            TextHistory::default(),
        )
    };
    let is_in_doubt = async |path: &str| matches!(expect(path).await, Ok(ExpectReply::Uncertain));
    documents.send(opened("/w/a.py", 1, "old"));
    let lost = documents.message_lost(None).await.unwrap();
    assert_eq!(lost, doubt(&["/w/a.py"], true));
    let again = documents.message_lost(None).await.unwrap();
    assert_eq!(again, doubt(&[], false), "each document is told once");
    assert!(is_in_doubt("/w/a.py").await);
    // An incremental change does not end the uncertainty, because it applies to a stored text that
    // may differ from the editor's. Only the full text ends it.
    let start = json!({"line": 0, "character": 0});
    let nothing = json!({"range": {"start": start, "end": start}, "text": ""});
    documents.send(changed("/w/a.py", 2, json!([nothing])));
    assert!(is_in_doubt("/w/a.py").await);
    documents.send(changed("/w/a.py", 3, json!([{"text": "old"}])));
    assert!(!is_in_doubt("/w/a.py").await);
    // The lost message may have opened this document.
    assert!(is_in_doubt("/w/b.py").await);
    documents.send(changed("/w/b.py", 2, json!([nothing])));
    assert!(is_in_doubt("/w/b.py").await);
    documents.send(opened("/w/b.py", 3, "old"));
    assert!(!is_in_doubt("/w/b.py").await);
    // A lost message about one document leaves the others certain.
    let uri = Url::parse("file:///w/b.py").unwrap();
    let lost = documents.message_lost(Some(uri)).await.unwrap();
    assert_eq!(lost, doubt(&["/w/b.py"], false));
    assert!(is_in_doubt("/w/b.py").await);
    assert!(!is_in_doubt("/w/a.py").await);
}

fn doubt(documents: &[&str], any_unopened: bool) -> Doubt {
    Doubt {
        documents: documents.iter().map(PathBuf::from).collect(),
        any_unopened,
    }
}

#[tokio::test]
async fn file_whose_opening_was_lost_is_uncertain_under_every_name_until_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("a.py"), folder.path().join("link.py"));
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let documents = DocumentStore::open(tokio::runtime::Handle::current());
    let (old, new): (Arc<str>, Arc<str>) = ("old".into(), "new".into());
    let expect = async |path: &PathBuf| {
        let texts = TextHistory::default();
        let expected = documents.expect(path.clone(), old.clone(), new.clone(), texts);
        expected.await.unwrap()
    };
    let uri = Url::from_file_path(&link).unwrap();
    let lost = documents.message_lost(Some(uri.clone())).await.unwrap();
    assert_eq!(lost, doubt(&[link.to_str().unwrap()], false));
    let again = documents.message_lost(Some(uri)).await.unwrap();
    assert_eq!(again, Doubt::default());
    for path in [&real, &link] {
        assert!(matches!(expect(path).await, ExpectReply::Uncertain));
    }
    let other = folder.path().join("b.py");
    assert!(matches!(expect(&other).await, ExpectReply::Closed { .. }));
    // The whole text is as good as an opening.
    let whole = json!([{"text": "ol"}, {
        "range": {"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 2}},
        "text": "d",
    }]);
    documents.send(changed(link.to_str().unwrap(), 2, whole));
    assert!(matches!(expect(&link).await, ExpectReply::Open { .. }));
    assert!(matches!(expect(&real).await, ExpectReply::Closed { .. }));
}
