//! Updates the run's workspace with the user's current texts, so that checks use these texts
//! instead of those from the start of the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::state::checker::Checker;
use starling_core::EditorError;
use starling_syntax::FilePath;
use starling_workspace::{Snapshot, may_show};

/// Maximum time to wait for the editor's reply.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of attempts to read all texts while none of them changes.
const TRIES: u32 = 8;
/// Maximum number of closed files that are read from disk. All open files are read.
const CLOSED_MOST: usize = 256;

/// The texts of files; `None` for a file that does not exist.
type CurrentTexts = BTreeMap<FilePath, Option<Arc<str>>>;

/// Returns the run's workspace with the user's current texts.
pub(crate) async fn world(checker: &Checker) -> Snapshot {
    refresh(checker).await;
    checker.world().snapshot.clone()
}

/// Updates the run's workspace with the user's texts. The workspace stays unchanged if the editor
/// does not reply.
pub(crate) async fn refresh(checker: &Checker) {
    for _ in 0..TRIES {
        let epoch = checker.world().epoch;
        let Ok(Ok(texts)) = timeout(DEADLINE, texts(checker)).await else {
            return;
        };
        let texts = texts.iter().map(|(file, text)| (file, text.as_ref()));
        if checker.saw(epoch, texts) {
            return;
        }
    }
}

/// Returns the user's current text of one file, and stores it in the run's workspace. If other agents
/// change the workspace during each of [`TRIES`] attempts, the text is returned without being stored.
///
/// # Errors
/// See [`EditorError`].
pub(crate) async fn text(checker: &Checker, file: &FilePath) -> Result<Arc<str>, EditorError> {
    let Some(editor) = &checker.services.editor else {
        return Err(EditorError::Missing { file: file.clone() });
    };
    let mut attempt = 1;
    loop {
        let epoch = checker.world().epoch;
        let current = timeout(DEADLINE, editor.current(file)).await;
        let current = current.unwrap_or_else(|_| {
            Err(EditorError::Unreadable {
                file: file.clone(),
                message: format!("the editor did not return its text within {DEADLINE:?}"),
            })
        })?;
        let shown = may_show(file, &current.text);
        if checker.saw(epoch, [(file, Some(&current.text))]) || attempt == TRIES {
            return shown
                .map(|()| current.text)
                .map_err(|error| EditorError::Forbidden {
                    why: error.to_string(),
                });
        }
        attempt += 1;
    }
}

/// Returns the current texts of all open files. Files whose text in the workspace differs from the
/// disk may have been closed meanwhile, so their current texts are read as well.
async fn texts(checker: &Checker) -> Result<CurrentTexts, EditorError> {
    let Some(editor) = &checker.services.editor else {
        return Ok(CurrentTexts::new());
    };
    let open = editor.open_texts().await?;
    let mut texts: CurrentTexts = open
        .into_iter()
        .map(|(file, text)| (file, Some(text)))
        .collect();
    let closed: Vec<(FilePath, Option<Arc<str>>)> = {
        let state = checker.world();
        let laid_over = state.snapshot.overlay().clone().into_iter();
        let closed = laid_over.filter(|(file, _)| !texts.contains_key(file));
        closed.take(CLOSED_MOST).collect()
    };
    for (file, shown) in closed {
        let current = match shown {
            Some(shown) => editor.current_as_shown(&file, &shown).await,
            None => editor.current(&file).await,
        };
        match current {
            Ok(current) => drop(texts.insert(file, Some(current.text))),
            Err(EditorError::Missing { .. }) => drop(texts.insert(file, None)),
            Err(EditorError::Unreadable { .. } | EditorError::Forbidden { .. }) => {}
            Err(gone @ EditorError::Gone) => return Err(gone),
        }
    }
    let policy = checker.policy();
    texts.retain(|file, _| policy.may_read(file).is_ok());
    Ok(texts)
}
