//! `window/*` requests: messages, questions and documents, for clients without views of their own.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use tower_lsp::Client;
use tower_lsp::lsp_types::request::{ShowDocument, ShowMessageRequest};
use tower_lsp::lsp_types::{
    MessageActionItem, MessageType, ShowDocumentParams, ShowMessageRequestParams, Url,
};

use super::outgoing::{AFTER_ANSWER, send_request};
use starling_text::harmless;
use starling_workspace::private_directory;

/// How long the client may take to open a document.
const OPEN_DEADLINE: Duration = Duration::from_secs(10);
/// How long a person may take to answer a question.
const PERSON_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of ignored settings that are listed.
const MAX_WARNING_LINES: usize = 5;
/// Maximum number of characters of a message.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Escapes the invisible characters of a text of several lines. A model may have written the text.
pub fn seen(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(harmless).collect();
    lines.join("\n")
}

/// The messages and documents of one client.
#[derive(Debug)]
pub struct ClientWindow {
    client: Client,
    /// The directory of the documents that are shown.
    folder: PathBuf,
    negotiated: OnceLock<WindowSupport>,
}

/// The parts of `window/*` that the client supports.
#[derive(Debug, Clone, Copy, Default)]
struct WindowSupport {
    /// The client opens documents.
    documents: bool,
    /// The client has a Starling plugin.
    plugin: bool,
}

impl ClientWindow {
    pub fn new(client: Client, folder: PathBuf) -> ClientWindow {
        ClientWindow {
            client,
            folder: folder.join(std::process::id().to_string()),
            negotiated: OnceLock::new(),
        }
    }

    /// Sets what the client supports. Later calls have no effect.
    pub fn set_negotiated(&self, documents: bool, plugin: bool) {
        self.negotiated
            .get_or_init(|| WindowSupport { documents, plugin });
    }

    fn negotiated(&self) -> WindowSupport {
        self.negotiated.get().copied().unwrap_or_default()
    }

    async fn pause(&self) {
        if !self.negotiated().plugin {
            tokio::time::sleep(AFTER_ANSWER).await;
        }
    }

    /// Shows a text as a document, or as a message if the client does not open documents.
    pub async fn show_document(&self, name: &str, text: &str) {
        if !(self.negotiated().documents && self.show_as_file(name, text).await) {
            let cut: String = text.chars().take(MAX_MESSAGE_CHARS).collect();
            self.inform(&cut).await;
        }
    }

    async fn show_as_file(&self, name: &str, text: &str) -> bool {
        let path = self.folder.join(name);
        let written = async {
            private_directory(&self.folder)?;
            tokio::fs::write(&path, text).await
        };
        if let Err(error) = written.await {
            tracing::warn!(path = %path.display(), %error, "not shown as a document");
            return false;
        }
        let Ok(uri) = Url::from_file_path(&path) else {
            return false;
        };
        let params = ShowDocumentParams {
            uri,
            external: Some(false),
            take_focus: Some(true),
            selection: None,
        };
        self.pause().await;
        let answer = send_request::<ShowDocument>(&self.client, params, OPEN_DEADLINE).await;
        answer.is_ok_and(|shown| shown.success)
    }

    /// Asks the user to choose. Returns `None` if no choice is made.
    pub async fn choose<'c>(&self, question: &str, choices: &[&'c str]) -> Option<&'c str> {
        let action = |title: &&str| MessageActionItem {
            title: (*title).to_owned(),
            properties: Default::default(),
        };
        let params = ShowMessageRequestParams {
            typ: MessageType::INFO,
            message: seen(question),
            actions: Some(choices.iter().map(action).collect()),
        };
        self.pause().await;
        let answer =
            send_request::<ShowMessageRequest>(&self.client, params, PERSON_DEADLINE).await;
        let chosen = answer.ok()??;
        choices
            .iter()
            .find(|title| **title == chosen.title)
            .copied()
    }

    pub async fn inform(&self, text: &str) {
        self.pause().await;
        self.client
            .show_message(MessageType::INFO, seen(text))
            .await;
    }

    pub async fn warn(&self, text: &str) {
        self.client
            .show_message(MessageType::WARNING, seen(text))
            .await;
    }

    /// Warns about project settings that are ignored.
    pub async fn warn_ignored_settings(&self, ignored: &[String]) {
        let lines = ignored
            .iter()
            .take(MAX_WARNING_LINES)
            .map(|line| harmless(line));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if let more @ 1.. = ignored.len().saturating_sub(MAX_WARNING_LINES) {
            text += &format!("\n… {more} more; `starling config explain` lists all");
        }
        self.warn(&format!("Starling: {text}")).await;
    }

    /// Removes the documents that were shown.
    pub fn remove_files(&self) {
        match std::fs::remove_dir_all(&self.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::info!(%error, "what was shown stays on the disk"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_escape_invisible_characters() {
        assert_eq!(seen("a\x1b[2J\n\u{202e}b\r\n"), "a\\u{1b}[2J\n\\u{202e}b");
    }
}
