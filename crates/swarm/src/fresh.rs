//! The user's texts as they are now. Whatever is checked is checked with them, not with those of the
//! start of the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::hub::Hub;
use starling_core::EditorError;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// How long the editor is waited for.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often texts are read again when others are changed meanwhile.
const TRIES: u32 = 8;
/// Closed files that are looked at on disk; those that are open are all taken in.
const CLOSED_MOST: usize = 256;

type Texts = BTreeMap<FilePath, Option<Arc<str>>>;

/// The run's world with the user's texts as they are now.
pub(super) async fn world(hub: &Arc<Hub>) -> Snapshot {
    refresh(hub).await;
    hub.state().world.clone()
}

/// Lets the run's world follow the user's texts. It stays as it is when the editor does not answer.
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

/// The user's text of one file; the run's world follows it.
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

/// All open files, and those that stand in place of the ones on disk and may have been closed since.
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
