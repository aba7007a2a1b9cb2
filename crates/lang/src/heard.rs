//! Collects a server's notifications and requests, as far as a task waits for them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::documents::path;
use super::known::section;
use starling_rpc::{Connection, Incoming, Reply};

/// Maximum number of methods and progress tokens to keep, as a protection against floods.
const MOST: usize = 1000;

/// The document version whose diagnostics are awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwaitedVersion {
    pub path: PathBuf,
    pub version: i64,
}

/// The messages received so far. Holds at most one list of diagnostics, whatever the server sends.
#[derive(Debug, Default)]
pub(super) struct ServerMessages {
    awaited: Option<AwaitedVersion>,
    /// Diagnostics of exactly the awaited version.
    pub exact: Option<Vec<Value>>,
    /// The last diagnostics of the awaited file without a version, and their sequence number among
    /// all messages.
    pub unversioned: Option<(u64, Vec<Value>)>,
    /// Tokens of progress that the server began and has not ended.
    pub at_work: BTreeSet<String>,
    /// Methods that the server registered dynamically.
    pub registered: BTreeSet<String>,
    /// The server's version, if the server only writes it to its log.
    pub version: Option<String>,
    /// Whether the connection is closed.
    pub closed: bool,
}

impl ServerMessages {
    /// Starts to wait for diagnostics of this text and discards those of others.
    pub fn await_text(&mut self, awaited: AwaitedVersion) {
        self.awaited = Some(awaited);
        self.exact = None;
        self.unversioned = None;
    }

    fn published(&mut self, mut params: Value, order: u64) {
        let Some(awaited) = &self.awaited else {
            return;
        };
        let is_of = params["uri"].as_str().and_then(path);
        if is_of.as_ref() != Some(&awaited.path) {
            return;
        }
        let Value::Array(items) = params["diagnostics"].take() else {
            return;
        };
        match &params["version"] {
            Value::Null => self.unversioned = Some((order, items)),
            version if version.as_i64() == Some(awaited.version) => self.exact = Some(items),
            // Diagnostics of another version.
            _ => {}
        }
    }

    fn progress(&mut self, params: &Value) {
        let token = params["token"].to_string();
        match params["value"]["kind"].as_str() {
            Some("begin") if self.at_work.len() < MOST => drop(self.at_work.insert(token)),
            Some("end") => drop(self.at_work.remove(&token)),
            Some(_) | None => {}
        }
    }

    fn register(&mut self, params: &Value) {
        for one in params["registrations"].as_array().into_iter().flatten() {
            if let Some(method) = one["method"].as_str()
                && self.registered.len() < MOST
            {
                self.registered.insert(method.to_owned());
            }
        }
    }
}

/// Sets [`ServerMessages::closed`] when dropped.
struct MessageListener {
    heard: Arc<watch::Sender<ServerMessages>>,
    settings: Value,
}

impl Drop for MessageListener {
    fn drop(&mut self) {
        self.heard.send_modify(|heard| heard.closed = true);
    }
}

/// Creates the message handler for [`Connection::open`].
pub(super) fn listener(
    heard: Arc<watch::Sender<ServerMessages>>,
    settings: Value,
) -> impl FnMut(&Connection, Incoming, u64) + Send + 'static {
    let ear = MessageListener { heard, settings };
    move |connection, incoming, order| match incoming {
        Incoming::Notification { method, params } => ear.note(&method, params, order),
        Incoming::Request { id, method, params } => {
            connection.reply(id, ear.reply(&method, &params));
        }
    }
}

impl MessageListener {
    fn note(&self, method: &str, params: Value, order: u64) {
        match method {
            "textDocument/publishDiagnostics" => {
                self.heard
                    .send_modify(|heard| heard.published(params, order));
            }
            "$/progress" => self.heard.send_modify(|heard| heard.progress(&params)),
            "window/logMessage" | "window/showMessage" => {
                let message = params["message"].as_str().unwrap_or_default();
                tracing::debug!(message, "language server");
                if let Some(version) = version(message) {
                    let version = Some(version.to_owned());
                    self.heard.send_modify(|heard| heard.version = version);
                }
            }
            _ => {}
        }
    }

    /// Replies to a server's request. Refuses all edits, because a server must never write.
    fn reply(&self, method: &str, params: &Value) -> Reply {
        match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().into_iter().flatten();
                let values = items.map(|item| section(&self.settings, item["section"].as_str()));
                Ok(values.collect())
            }
            "client/registerCapability" => {
                self.heard.send_modify(|heard| heard.register(params));
                Ok(Value::Null)
            }
            "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh" => Ok(Value::Null),
            "workspace/applyEdit" => Ok(json!({"applied": false})),
            _ => Err(format!("{method}: not supported")),
        }
    }
}

/// Extracts the version from `Pyright language server 1.1.2 starting`.
fn version(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(" language server ")?;
    let version = rest.strip_suffix(" starting")?;
    let is_version = |c: char| c.is_ascii_alphanumeric() || c == '.';
    (version.len() < 40 && version.chars().all(is_version)).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ear() -> MessageListener {
        let (heard, _) = watch::channel(ServerMessages::default());
        heard.send_modify(|heard| {
            heard.await_text(AwaitedVersion {
                path: "/p/a.py".into(),
                version: 7,
            });
        });
        MessageListener {
            heard: Arc::new(heard),
            settings: json!({"ty": {"x": 1}}),
        }
    }

    fn publish(ear: &MessageListener, uri: &str, version: Value, order: u64) {
        let items = json!([{"message": version}]);
        let params = json!({"uri": uri, "version": version, "diagnostics": items});
        ear.note("textDocument/publishDiagnostics", params, order);
    }

    #[test]
    fn only_diagnostics_of_the_awaited_version_are_kept() {
        let ear = ear();
        for (uri, version) in [
            ("file:///p/a.py", json!(0)),
            ("file:///p/a.py", json!(8)),
            ("file:///p/a.py", json!("7")),
            ("file:///p/b.py", json!(7)),
            ("untitled:1", json!(7)),
        ] {
            publish(&ear, uri, version, 1);
        }
        assert!(ear.heard.borrow().exact.is_none());
        publish(&ear, "file:///p/a.py", Value::Null, 3);
        assert_eq!(ear.heard.borrow().unversioned.as_ref().unwrap().0, 3);
        publish(&ear, "file:///p/%61.py", json!(7), 4);
        assert_eq!(ear.heard.borrow().exact.as_ref().unwrap().len(), 1);
        ear.heard.send_modify(|heard| {
            heard.await_text(AwaitedVersion {
                path: "/p/a.py".into(),
                version: 14,
            });
        });
        assert!(ear.heard.borrow().exact.is_none());
        assert!(ear.heard.borrow().unversioned.is_none());
        let broken = json!({"uri": "file:///p/a.py", "version": 14, "diagnostics": "none"});
        ear.note("textDocument/publishDiagnostics", broken, 5);
        assert!(ear.heard.borrow().exact.is_none());
    }

    #[test]
    fn progress_is_tracked_by_its_tokens() {
        let ear = ear();
        let say = |token: Value, kind: &str| {
            let params = json!({"token": token, "value": {"kind": kind}});
            ear.note("$/progress", params, 1);
            ear.heard.borrow().at_work.len()
        };
        assert_eq!(say(json!(1), "begin"), 1);
        assert_eq!(say(json!("1"), "begin"), 2);
        assert_eq!(say(json!(1), "report"), 2);
        assert_eq!(say(json!(1), "end"), 1);
        for more in 0..2 * MOST {
            say(json!(more), "begin");
        }
        assert_eq!(ear.heard.borrow().at_work.len(), MOST);
    }

    #[test]
    fn server_requests_are_answered_and_edits_are_refused() {
        let ear = ear();
        let items = json!({"items": [{"section": "ty"}, {"section": "no"}, {}]});
        let answer = ear.reply("workspace/configuration", &items).unwrap();
        assert_eq!(answer, json!([{"x": 1}, null, {"ty": {"x": 1}}]));
        let apply = ear.reply("workspace/applyEdit", &json!({"edit": {}}));
        assert_eq!(apply.unwrap(), json!({"applied": false}));
        assert!(ear.reply("workspace/what", &Value::Null).is_err());
        let registrations =
            json!({"registrations": [{"id": 1, "method": "textDocument/diagnostic"}, {}]});
        ear.reply("client/registerCapability", &registrations)
            .unwrap();
        assert!(
            ear.heard
                .borrow()
                .registered
                .contains("textDocument/diagnostic")
        );
    }

    #[test]
    fn server_version_is_read_from_its_log() {
        let ear = ear();
        for message in [
            "Pyright language server 1.1.414 starting",
            "The language server is not starting",
        ] {
            ear.note("window/logMessage", json!({"message": message}), 1);
        }
        assert_eq!(ear.heard.borrow().version.as_deref(), Some("1.1.414"));
    }

    #[test]
    fn dropping_the_listener_marks_the_connection_closed() {
        let ear = ear();
        let heard = Arc::clone(&ear.heard);
        drop(ear);
        assert!(heard.borrow().closed);
    }
}
