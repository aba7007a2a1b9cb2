use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A decoded message or the reason why it is malformed.
type ReadResult = Result<Value, Malformed>;

fn framed(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Decodes bytes that arrive in pieces and returns all results.
fn read_in(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<ReadResult> {
    let mut decoder = MessageDecoder::default();
    let mut read = Vec::new();
    for piece in pieces {
        decoder.buffer.extend(piece);
        while let Some(message) = decoder.next() {
            read.push(message);
        }
        // Only an unfinished body may exceed the header limit.
        let most = match decoder.state {
            DecoderState::Headers => MAX_HEADERS,
            DecoderState::Body { length, .. } => length + MAX_HEADERS,
        };
        assert!(decoder.buffer.len() <= most, "{}", decoder.buffer.len());
    }
    read
}

fn read_all(bytes: &[u8]) -> Vec<ReadResult> {
    let whole = read_in([bytes.to_vec()]);
    let single = read_in(bytes.iter().map(|byte| vec![*byte]));
    let values = |read: &[ReadResult]| -> Vec<Value> { read.iter().flatten().cloned().collect() };
    assert_eq!(values(&whole), values(&single), "pieces make a difference");
    whole
}

#[test]
fn consecutive_messages_are_decoded() {
    let bytes = [framed("{\"a\": \"ä🙂\"}"), framed("[1]"), framed("{ }")].concat();
    let expected = [json!({"a": "ä🙂"}), json!([1]), json!({})].map(Ok);
    assert_eq!(read_all(&bytes), expected);
}

#[test]
fn header_variations_are_accepted() {
    for headers in [
        "content-length: 2\r\n\r\n",
        "CONTENT-LENGTH:2\n\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        "Content-Length:  2 \r\nContent-Type: application/json\r\nX-Other: y\r\n\r\n",
        "\r\n\r\nContent-Length: 2\r\n\r\n",
        "Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n",
    ] {
        assert_eq!(
            read_all(format!("{headers}{{}}").as_bytes()),
            [Ok(json!({}))],
            "{headers:?}"
        );
    }
}

/// Checks that malformed bytes give the expected error and that the message after them is read.
#[track_caller]
fn check(bad: &[u8], expected: &Malformed) {
    let sound = framed("{\"id\":1}");
    let read = read_all(&[bad, &sound[..]].concat());
    assert_eq!(
        read,
        [Err(expected.clone()), Ok(json!({"id": 1}))],
        "{:?}",
        String::from_utf8_lossy(bad)
    );
}

fn not_utf8(body: Option<Value>) -> Malformed {
    Malformed::NotUtf8 { body }
}

#[test]
fn message_after_a_malformed_one_is_decoded() {
    check(b"stray words", &Malformed::Noise);
    check(b"stray words\n\n", &Malformed::Noise);
    check(&[0xff, 0, 10, 10], &Malformed::Noise);
    check(b"Content-Length: x\r\n\r\n{}", &Malformed::Headers);
    check(b"Content-Length: -1\r\n\r\n{}", &Malformed::Headers);
    check(b"Content-Type: a/b\r\n\r\n{\"id\":0}", &Malformed::Headers);
    check(
        b"Content-Length: 99999999999\r\n\r\n{}",
        &Malformed::TooLong(99_999_999_999),
    );
    check(
        b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        &Malformed::TooLong(u64::MAX),
    );
    check(b"Content-Length: 99\r\n\r\n{\"id\":0}", &Malformed::Cut);
    check(b"Content-Length: 12\r\n\r\n{\"id\":0}", &Malformed::Cut);
    let text = not_utf8(Some(json!("\u{fffd}")));
    check(b"Content-Length: 3\r\n\r\n\"\xff\"", &text);
    check(b"Content-Length: 2\r\n\r\n\"\xff", &not_utf8(None));
    let unfinished = Malformed::NotJson("EOF while parsing a value at line 1 column 1".into());
    check(b"Content-Length: 1\r\n\r\n ", &unfinished);
    let cut = Malformed::NotJson("EOF while parsing a value at line 1 column 6".into());
    check(b"Content-Length: 6\r\n\r\n{\"id\": 0}", &cut);
}

#[test]
fn endless_noise_is_reported_once_and_not_buffered() {
    let line = b"neither headers nor a message\n".repeat(1000);
    let pieces = (0..50).map(|_| line.clone()).chain([framed("{}")]);
    assert_eq!(read_in(pieces), [Err(Malformed::Noise), Ok(json!({}))]);
}

#[test]
fn invalid_json_rpc_message_is_reported_with_its_id() {
    /// A type that only some JSON objects can be parsed into.
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Message {
        method: String,
    }
    let mut decoder = MessageDecoder::default();
    decoder.buffer.extend(framed("{\"id\":7}"));
    decoder
        .buffer
        .extend(framed("{\"id\":8,\"result\":1,\"error\":{}}"));
    decoder.buffer.extend(framed("{\"method\":\"x\"}"));
    for expected in [(Some(json!(7)), false), (Some(json!(8)), true)] {
        let Some(Err(Malformed::NotAMessage {
            id, is_response, ..
        })) = decoder.next::<Message>()
        else {
            panic!("a message without a method");
        };
        assert_eq!((id, is_response), expected);
    }
    assert_eq!(decoder.next::<Message>().unwrap().unwrap().method, "x");
}

#[test]
fn lone_surrogates_are_replaced_without_changing_the_length() {
    for (given, expected) in [
        (r#""a\ud800b""#, "a\u{fffd}b"),
        (r#""\uDC00\uD800""#, "\u{fffd}\u{fffd}"),
        (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
        (r#""\ud83d\ude00\ude00""#, "😀\u{fffd}"),
        (r#""\\ud800\ud800""#, "\\ud800\u{fffd}"),
        (r#""\ud800\n""#, "\u{fffd}\n"),
    ] {
        let read = decode::<Value>(given.as_bytes()).unwrap();
        assert_eq!(read, json!(expected), "{given}");
    }
    let encoded = b"\"a\xed\xa0\x80b\"";
    assert_eq!(decode::<Value>(encoded), Ok(json!("a\u{fffd}b")));
    let half = not_utf8(Some(json!("\u{fffd}\u{fffd}")));
    assert_eq!(decode::<Value>(b"\"\xed\xa0\""), Err(half));
    let units = |text: &str| text.encode_utf16().count();
    assert_eq!(units("\u{fffd}"), 1, "as many as a lone surrogate");
}

/// Random sequences of message fragments.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"Content-Length: ".to_vec()),
        Just(b"content-length:".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"Content-Type: x\r\n".to_vec()),
        Just(b"{\"id\":".to_vec()),
        Just(b"\"\\ud800\"".to_vec()),
        (0_u64..200).prop_map(|number| number.to_string().into_bytes()),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn valid_messages_are_decoded_between_random_noise(
        noises in prop::collection::vec(noise(), 1..6),
        size in 1_usize..100,
    ) {
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for (number, noise) in noises.iter().enumerate() {
            let message = json!({"sent": number, "text": "\r\n\r\nContent-Length: 3\r\n\r\n"});
            bytes.extend(noise);
            bytes.extend(framed(&message.to_string()));
            sent.push(message);
        }
        let read = read_in(bytes.chunks(size).map(<[u8]>::to_vec));
        let sound: Vec<Value> = read
            .into_iter()
            .flatten()
            .filter(|message| message.get("sent").is_some())
            .collect();
        prop_assert_eq!(sound, sent);
    }
}
