//! Requests about names: positions for a server, and parsing of its responses.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ropey::Rope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::convert::WireRange;
use super::documents::path;
use starling_core::{NameLocation, TextRequest};
use starling_syntax::FilePath;
use starling_text::{ContentHash, Encoding, position_of};
use starling_workspace::{MAX_FILE_BYTES, PathPolicy, read_bounded};

/// Maximum number of locations of one name. Further ones are dropped.
const MOST: usize = 2000;
/// Maximum number of files to read for the locations.
const FILES: usize = 400;
/// Maximum length of a hover text in characters.
const LONGEST: usize = 2000;

/// A location in the server's encoding.
#[derive(Debug, Clone)]
pub(super) struct ServerLocation {
    path: PathBuf,
    range: WireRange,
    encoding: Encoding,
}

/// Converts a byte offset in a text to a position.
pub(super) fn position(text: &str, at: usize, encoding: Encoding) -> Value {
    let position = position_of(&Rope::from_str(text), at, encoding);
    json!({"line": position.line, "character": position.column})
}

/// Parses the locations in a response: one, several, or links. Locations outside files are dropped.
///
/// # Errors
/// A description of the first invalid location.
pub(super) fn places(answer: Value, encoding: Encoding) -> Result<Vec<ServerLocation>, String> {
    let all = match answer {
        Value::Null => Vec::new(),
        Value::Array(all) => all,
        one => vec![one],
    };
    let place = |one: &Value| {
        let (uri, range) = match one["targetUri"].as_str() {
            Some(uri) => (Some(uri), &one["targetSelectionRange"]),
            None => (one["uri"].as_str(), &one["range"]),
        };
        let uri = uri.ok_or("a location without a file")?;
        let range = WireRange::deserialize(range).map_err(|error| error.to_string())?;
        Ok(path(uri).map(|path| ServerLocation {
            path,
            range,
            encoding,
        }))
    };
    let places = all.iter().take(MOST).map(place);
    places.filter_map(Result::transpose).collect()
}

/// Converts locations to byte ranges in the texts that the server saw: those of the request, or
/// else those on disk.
pub(super) fn spots(
    places: &[ServerLocation],
    request: &TextRequest,
    root: &Path,
) -> Vec<NameLocation> {
    let policy = PathPolicy::of(root);
    let mut texts: HashMap<FilePath, Option<(Rope, ContentHash)>> = HashMap::new();
    let mut spots = Vec::new();
    for place in places {
        let Some(file) = within(root, &place.path) else {
            continue;
        };
        if texts.len() >= FILES && !texts.contains_key(&file) {
            continue;
        }
        let text = texts
            .entry(file.clone())
            .or_insert_with(|| text_of(request, &file, &policy));
        if let Some((rope, of)) = text {
            spots.push(NameLocation {
                range: place.range.bytes(rope, place.encoding),
                of: of.clone(),
                file,
            });
        }
    }
    spots
}

fn within(root: &Path, path: &Path) -> Option<FilePath> {
    let inside = path.strip_prefix(root).ok()?;
    Some(FilePath::new(inside.to_str()?))
}

fn text_of(
    request: &TextRequest,
    file: &FilePath,
    policy: &PathPolicy,
) -> Option<(Rope, ContentHash)> {
    let shown = request.overlay.iter().find(|(other, _)| other == file);
    let text: Arc<str> = match shown {
        _ if *file == request.file => Arc::clone(&request.text),
        Some((_, text)) => text.clone()?,
        None => {
            let bytes = read_bounded(policy.open(file).ok()?, MAX_FILE_BYTES).ok()?;
            String::from_utf8(bytes).ok()?.into()
        }
    };
    Some((Rope::from_str(&text), ContentHash::of(&text)))
}

/// Returns the text of a hover response in any of its formats.
pub(super) fn hover(answer: &Value) -> String {
    let text = |part: &Value| {
        let text = part.as_str().or_else(|| part["value"].as_str());
        text.map(str::trim).unwrap_or_default().to_owned()
    };
    let contents = &answer["contents"];
    let all = match contents.as_array() {
        Some(parts) => parts.iter().map(text).collect::<Vec<_>>().join("\n"),
        None => text(contents),
    };
    all.trim().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use starling_core::Effort;

    const URI: &str = "file:///p/a.py";

    fn range(line: u32, start: u32, end: u32) -> Value {
        json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
    }

    fn found(answer: Value) -> Vec<(String, usize, usize)> {
        let request = TextRequest {
            file: FilePath::new("a.py"),
            text: "x\n🐦ab\n".into(),
            overlay: vec![
                (FilePath::new("gone.py"), None),
                (FilePath::new("b.py"), Some("def f(): pass\n".into())),
            ],
            effort: Effort::Fast,
            deadline: Duration::ZERO,
        };
        let places = places(answer, Encoding::Utf16).unwrap();
        let spots = spots(&places, &request, Path::new("/p"));
        let brief = |spot: NameLocation| (spot.file.to_string(), spot.range.start, spot.range.end);
        spots.into_iter().map(brief).collect()
    }

    #[test]
    fn locations_are_parsed_from_every_response_format() {
        let one = json!({"uri": URI, "range": range(1, 2, 4)});
        let link = json!({"targetUri": "file:///p/b.py", "targetRange": range(0, 0, 13),
            "targetSelectionRange": range(0, 4, 5)});
        let a = ("a.py".to_owned(), 6, 8);
        let b = ("b.py".to_owned(), 4, 5);
        assert_eq!(found(one.clone()), std::slice::from_ref(&a));
        assert_eq!(found(json!([one, link])), [a, b]);
        assert_eq!(found(Value::Null), []);
    }

    #[test]
    fn locations_outside_the_workspace_or_in_missing_files_are_dropped() {
        let at = |uri: &str| json!({"uri": uri, "range": range(0, 0, 1)});
        let elsewhere = [
            "file:///q/a.py",
            "file:///p/gone.py",
            "file:///p/never.py",
            "untitled:1",
        ];
        assert_eq!(found(json!(elsewhere.map(at))), []);
        for odd in [
            json!(7),
            json!([{"uri": URI}]),
            json!({"range": range(0, 0, 1)}),
        ] {
            assert!(places(odd.clone(), Encoding::Utf8).is_err(), "{odd}");
        }
    }

    #[test]
    fn location_carries_the_hash_of_the_text_sent_to_the_server() {
        let request = TextRequest {
            file: FilePath::new("a.py"),
            text: "x".into(),
            overlay: Vec::new(),
            effort: Effort::Fast,
            deadline: Duration::ZERO,
        };
        let places = places(json!({"uri": URI, "range": range(0, 0, 1)}), Encoding::Utf8).unwrap();
        let spots = spots(&places, &request, Path::new("/p"));
        assert_eq!(spots[0].of, ContentHash::of("x"));
    }

    #[test]
    fn hover_text_is_read_from_every_response_format() {
        let told = |contents: Value| hover(&json!({"contents": contents}));
        assert_eq!(told(json!(" f() \n")), "f()");
        assert_eq!(told(json!({"kind": "plaintext", "value": "f()"})), "f()");
        assert_eq!(
            told(json!([{"language": "python", "value": "f()"}, "Doc."])),
            "f()\nDoc."
        );
        assert_eq!(hover(&Value::Null), "");
        assert_eq!(told(json!("ä".repeat(9000))).chars().count(), LONGEST);
    }

    #[test]
    fn positions_use_the_negotiated_encoding() {
        let at = |encoding| position("x\n🐦ab\n", 6, encoding)["character"].clone();
        assert_eq!(at(Encoding::Utf8), 4);
        assert_eq!(at(Encoding::Utf16), 2);
        assert_eq!(at(Encoding::Utf32), 1);
    }
}
