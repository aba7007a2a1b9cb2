//! Updates the run's workspace with the user's current texts. All checks use these texts instead of
//! the texts from the start of the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::hub::Hub;
use starling_core::EditorError;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Time limit for the editor's reply.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of attempts to read a consistent state while texts change.
const TRIES: u32 = 8;
/// Maximum number of closed files that are read from disk. All open files are read.
const CLOSED_MOST: usize = 256;

type Texts = BTreeMap<FilePath, Option<Arc<str>>>;

/// Returns the run's workspace with the user's current texts.
pub(super) async fn world(hub: &Arc<Hub>) -> Snapshot {
    refresh(hub).await;
    hub.state().world.clone()
}

/// Updates the run's workspace with the user's texts. The workspace stays unchanged if the editor
/// does not reply.
pub(super) async fn refresh(hub: &Arc<Hub>) {
    for _ in 0..TRIES {
        let epoch = hub.state().epoch;
        let Ok(Ok(texts)) = timeout(DEADLINE, texts(hub)).await else {
            return;
        };
        let texts = texts.iter().map(|(file, text)| (file, text.as_ref()));
        if hub.saw(epoch, texts) {
            return;
        }
    }
}

/// Returns the user's current text of one file, and updates the run's workspace.
///
/// # Errors
/// See [`EditorError`].
pub(super) async fn text(hub: &Arc<Hub>, file: &FilePath) -> Result<Arc<str>, EditorError> {
    let unreadable = |message: String| EditorError::Unreadable {
        file: file.clone(),
        message,
    };
    for _ in 0..TRIES {
        let epoch = hub.state().epoch;
        let current = timeout(DEADLINE, hub.outside.editor.current(file)).await;
        let current = current.unwrap_or_else(|_| {
            let message = format!("the editor did not give its text within {DEADLINE:?}");
            Err(unreadable(message))
        })?;
        if hub.saw(epoch, [(file, Some(&current.text))]) {
            return Ok(current.text);
        }
    }
    let message = format!("the workspace changed {TRIES} times while it was read");
    Err(unreadable(message))
}

/// Returns the texts of all open files, and of files in the workspace overlay that may have been
/// closed.
async fn texts(hub: &Arc<Hub>) -> Result<Texts, EditorError> {
    let editor = &hub.outside.editor;
    let open = editor.open_texts().await?;
    let mut texts: Texts = open
        .into_iter()
        .map(|(file, text)| (file, Some(text)))
        .collect();
    let closed: Vec<FilePath> = {
        let state = hub.state();
        let laid_over = state.world.overlay().keys();
        let closed = laid_over.filter(|file| !texts.contains_key(file));
        closed.take(CLOSED_MOST).cloned().collect()
    };
    for file in closed {
        match editor.current(&file).await {
            Ok(current) => drop(texts.insert(file, Some(current.text))),
            Err(EditorError::Missing { .. }) => drop(texts.insert(file, None)),
            Err(EditorError::Unreadable { .. } | EditorError::Forbidden { .. }) => {}
            Err(gone @ EditorError::Gone) => return Err(gone),
        }
    }
    let policy = hub.policy();
    texts.retain(|file, _| policy.may_read(file).is_ok());
    Ok(texts)
}
