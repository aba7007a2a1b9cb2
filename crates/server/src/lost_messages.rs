//! Messages of the client that cannot be read. Each may have opened or changed a document, so the server
//! may have no text or an old text of it. The user is told once which file to close and open again.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Request;
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Url,
};

use super::documents::Doubt;
use starling_rpc::frames::Malformed;

/// The notification that takes the place of a message that cannot be read. So it is handled in its
/// order among the other notifications.
pub const LOST: &str = "starling/messageLost";
/// Maximum number of files that a warning names.
const NAMED: usize = 5;

/// The parameters of [`LOST`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LostMessage {
    /// The document that the message is about, if that can be read.
    pub uri: Option<Url>,
}

impl LostMessage {
    /// Returns the notification [`LOST`].
    pub fn into_notification(self) -> Request {
        Request::build(LOST).params(json!(self)).finish()
    }
}

/// Returns the notification itself, or [`LOST`] if it is about the text of a document and its
/// parameters cannot be read. tower-lsp would drop it.
pub fn readable_notification(request: Request) -> Request {
    let params = request.params().unwrap_or(&Value::Null);
    let error = match request.method() {
        "textDocument/didOpen" => DidOpenTextDocumentParams::deserialize(params).err(),
        "textDocument/didChange" => DidChangeTextDocumentParams::deserialize(params).err(),
        "textDocument/didClose" => DidCloseTextDocumentParams::deserialize(params).err(),
        _ => None,
    };
    let Some(error) = error else { return request };
    tracing::error!(%error, method = request.method(), "a notification cannot be read");
    let uri = uri_in(params);
    LostMessage { uri }.into_notification()
}

/// Returns what may be lost with a malformed message; `None` if it cannot have changed the text of a
/// document. The parts that cannot be decoded are U+FFFD, so a name with that character may be another.
pub fn lost_with(malformed: &Malformed) -> Option<LostMessage> {
    let body = match malformed {
        Malformed::Noise => return None,
        Malformed::NotUtf8 { body } => body.as_ref(),
        Malformed::NotAMessage { body, .. } => Some(&**body),
        Malformed::Headers | Malformed::TooLong(_) | Malformed::Cut | Malformed::NotJson(_) => None,
    };
    let method = body.and_then(|body| body["method"].as_str());
    let lost = match (method.filter(|method| is_legible(method)), body) {
        (
            Some("textDocument/didOpen" | "textDocument/didChange" | "textDocument/didClose"),
            Some(body),
        ) => LostMessage {
            uri: uri_in(&body["params"]),
        },
        (Some(_), Some(_)) => return None,
        (_, None) | (None, _) => LostMessage::default(),
    };
    Some(lost)
}

/// Returns the URI of the document in the parameters of a message, if it can be read.
fn uri_in(params: &Value) -> Option<Url> {
    let uri = params["textDocument"]["uri"].as_str();
    uri.filter(|uri| is_legible(uri))
        .and_then(|uri| Url::parse(uri).ok())
}

fn is_legible(text: &str) -> bool {
    !text.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns the text of the warning about documents that have become doubtful.
pub fn warning(doubt: &Doubt) -> Option<String> {
    let doubtful = &doubt.documents;
    let named = doubtful.iter().take(NAMED);
    let named: Vec<String> = named.map(|path| path.display().to_string()).collect();
    let more = match doubtful.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = format!("{}{more}", named.join(", "));
    match doubtful.len() {
        _ if doubt.any_unopened => {
            let open = match doubtful.is_empty() {
                true => String::new(),
                false => format!(", and close the open ones and open them again ({named})"),
            };
            Some(format!(
                "Starling could not read a message of the editor, so it does not know which files are \
                 open: open each file that it should change{open}"
            ))
        }
        0 => None,
        1 => Some(format!(
            "Starling could not read a message of the editor about {named}, so it may have an old text of \
             this file: close the file and open it again"
        )),
        _ => Some(format!(
            "Starling could not read a message of the editor, so it may have old texts of the open files: \
             close them and open them again ({named})"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_rpc::frames::MessageReader;

    /// Returns what is lost with a message that cannot be decoded.
    async fn lost(body: &[u8]) -> Option<LostMessage> {
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        let bytes = [head.as_bytes(), body].concat();
        let mut reader = MessageReader::new(&bytes[..]);
        let read = reader.next::<Request>().await.unwrap().unwrap();
        lost_with(&read.unwrap_err())
    }

    #[tokio::test]
    async fn message_that_is_not_utf_8_leaves_only_its_own_document_in_doubt() {
        let of = |method: &[u8], uri: &[u8], text: &[u8]| {
            let parts: [&[u8]; 7] = [
                br#"{"jsonrpc":"2.0","method":""#,
                method,
                br#"","params":{"textDocument":{"uri":""#,
                uri,
                br#"","text":""#,
                text,
                br#""}}}"#,
            ];
            parts.concat()
        };
        let open = b"textDocument/didOpen";
        let uri = Url::parse("file:///w/a.py").unwrap();
        for text in [&b"caf\xe9"[..], b"\xff\\ud800"] {
            let found = lost(&of(open, b"file:///w/a.py", text)).await;
            assert_eq!(found.unwrap().uri.as_ref(), Some(&uri));
        }
        for illegible in [
            of(open, b"file:///w/\xe9.py", b""),
            of(b"textDocument/didOpe\xee", b"file:///w/a.py", b""),
            b"{\"method\":\"textDocument/didOpen\",\xe9".to_vec(),
            b"{".to_vec(),
        ] {
            assert_eq!(lost(&illegible).await.unwrap().uri, None);
        }
        let hover = of(b"textDocument/hover", b"file:///w/a.py", b"\xe9");
        assert!(lost(&hover).await.is_none());
    }

    #[test]
    fn warning_says_that_any_file_may_be_open() {
        let doubt = |documents: &[&str], any_unopened| Doubt {
            documents: documents.iter().map(std::path::PathBuf::from).collect(),
            any_unopened,
        };
        assert_eq!(warning(&doubt(&[], false)), None);
        let any = warning(&doubt(&[], true)).unwrap();
        assert!(
            any.ends_with("open each file that it should change"),
            "{any}"
        );
        let both = warning(&doubt(&["/w/a.py"], true)).unwrap();
        assert!(both.ends_with("open them again (/w/a.py)"), "{both}");
    }
}
