use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tower_lsp::lsp_types::MessageType;

use super::arrival::{EditReplyKind, PendingReply, REFUSAL_TIMEOUT, is_outdated};
use super::tracked::{EditPlacement, TextPair, TrackedEdit};
use super::{ClientEditor, POLL_INTERVAL, SentEdit};
use crate::documents::StoreClosed;
use crate::window::seen;
use starling_core::{ApplyError, DocVersion, Editor, Effect};
use starling_swarm::sending::{self, Purpose};
use starling_text::{ChangeSet, lines_in_words};

/// How long a file is watched for an edit that was given up: it counts as not applied, but the
/// client may still apply it.
const WATCH_DURATION: Duration = Duration::from_secs(600);

/// How long a file is watched for a second application of an edit, after the client replied that it applied
/// the edit.
const WATCH_AFTER_REPLY: Duration = Duration::from_secs(1);

/// The edits whose result is decided, but which may still arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenUpEdits(Arc<Mutex<Vec<Arc<GivenUpEdit>>>>);

/// Whether an edit that may still arrive counts as applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecidedResult {
    NotApplied,
    /// The file contains the text of the edit, but the client has not replied: perhaps the user made the
    /// same change, and the client makes it a second time.
    Applied,
}

/// An edit whose result is decided, but which may still arrive.
#[derive(Debug)]
struct GivenUpEdit {
    result: DecidedResult,
    path: PathBuf,
    edit: TrackedEdit,
    /// The version of the open document for which the edit was made.
    version: Option<DocVersion>,
    since: Instant,
    /// Whether another edit of the file was sent and, as far as is known, made. The texts until then
    /// are not attributed to this one.
    is_superseded: AtomicBool,
    /// The texts that the file had until another edit was sent.
    until_other: Mutex<Vec<Arc<str>>>,
    /// The texts before and after this edit, if it was made while another edit was on its way.
    found: Mutex<Option<TextPair>>,
    /// Whether the edit counts as arrived only if the text changes exactly as the edit changes it.
    /// Set if the lines of the edit may be in the text for another reason.
    is_exact: AtomicBool,
}

impl GivenUpEdit {
    fn new(sent: &SentEdit<'_>, result: DecidedResult, is_exact: bool) -> Arc<GivenUpEdit> {
        Arc::new(GivenUpEdit {
            result,
            path: sent.path.to_owned(),
            edit: sent.edit.clone(),
            version: match result {
                DecidedResult::NotApplied => sent.version,
                DecidedResult::Applied => None,
            },
            since: Instant::now(),
            is_superseded: AtomicBool::new(false),
            until_other: Mutex::default(),
            found: Mutex::default(),
            is_exact: AtomicBool::new(is_exact),
        })
    }

    /// Returns the texts before and after this edit if these texts show that it was made since it was
    /// given up.
    fn made_among(&self, texts: Vec<Arc<str>>) -> Option<TextPair> {
        match self.result {
            DecidedResult::NotApplied => self.edit.made_among(texts),
            DecidedResult::Applied => self.edit.made_again_among(texts),
        }
    }

    fn until_other(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        let until = self.until_other.lock();
        until.unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> MutexGuard<'_, Option<TextPair>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenUpEdits {
    /// Records that another edit of a file was sent, which leads to the text `after`.
    pub(super) fn supersede(&self, path: &Path, after: &Arc<str>) {
        let all = self.lock().clone();
        for one in all.iter().filter(|one| one.path == path) {
            let placement = one.edit.placement(after, None);
            if placement != EditPlacement::Absent || one.edit.is_in(after) {
                one.is_exact.store(true, Ordering::Relaxed);
            }
            *one.until_other() = match one.is_superseded.swap(true, Ordering::Relaxed) {
                true => Vec::new(),
                false => one.edit.earlier_texts(),
            };
        }
    }

    /// Records that another edit of a file has ended. Texts that the file had before that edit was made
    /// (all texts, if it was not made) may be results of an edit that was given up.
    pub(super) fn resume(&self, path: &Path, other: &TrackedEdit, is_made: bool) {
        let all = self.lock().clone();
        let mut all: Vec<_> = all.iter().filter(|one| one.path == path).collect();
        all.retain(|one| !one.edit.texts.is(&other.texts));
        if all.is_empty() {
            return;
        }
        let texts = match is_made {
            true => other.texts_before(),
            false => other.earlier_texts(),
        };
        for one in all {
            let until = std::mem::take(&mut *one.until_other());
            let texts: Vec<_> = until.into_iter().chain(texts.iter().cloned()).collect();
            if is_made {
                let mut found = one.found();
                *found = found.take().or_else(|| one.made_among(texts));
            } else {
                one.edit.texts.replace(texts);
                one.is_superseded.store(false, Ordering::Relaxed);
            }
        }
    }

    fn remove(&self, edit: &Arc<GivenUpEdit>) {
        self.lock().retain(|one| !Arc::ptr_eq(one, edit));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<GivenUpEdit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientEditor {
    /// Undoes an edit that the client applied to another text than the one it was made for, if that
    /// text is known. Otherwise shows the user one message.
    pub(super) async fn take_back_misplaced(
        &self,
        path: &Path,
        edit: TrackedEdit,
        texts: Option<TextPair>,
    ) -> ApplyError {
        let file = &edit.file;
        let removes_typed = texts.as_ref().is_some_and(|pair| pair.after == edit.after);
        let moved = match removes_typed {
            true => {
                "the file changed while the editor made Starling's edit, so the edit removed text that was \
                 typed meanwhile"
            }
            false => {
                "the file changed while the editor made Starling's edit, so the edit was made at the wrong \
                 position"
            }
        };
        let misplaced = |message: String| ApplyError::Misplaced {
            file: file.clone(),
            message,
        };
        let why = match texts {
            Some(TextPair { before, after }) => {
                let inverse = ChangeSet::between(&after, &before);
                let editor: Arc<dyn Editor> = Arc::new(self.clone());
                let label = "undo an edit at the wrong position";
                let purpose = Purpose::TakeBack;
                match sending::send(&editor, file, &after, &inverse, label, purpose).await {
                    Ok(_) => return misplaced(format!("{moved}; it was taken back")),
                    Err(failure) => failure.why().to_owned(),
                }
            }
            None => "the text before it is not known".to_owned(),
        };
        let now = self.placement(path, &edit).await;
        let is_missing = now.as_ref().is_ok_and(|now| now.is_missing);
        let now = now.map_or_else(|StoreClosed| Arc::clone(&edit.base), |now| now.text);
        let lines = |lines| format!(", {}", lines_in_words(lines));
        let told = match edit.added_lines(&now) {
            _ if is_missing => format!(
                "{file}: the file went away while the editor made Starling's edit, so the edit could \
                 not be found; it counts as not applied: look at the file where it is now"
            ),
            Some(added) => format!(
                "{file}{}: {moved}; it could not be taken back ({why}), so it is still in the file and \
                 counts as not applied: undo it yourself",
                lines(added)
            ),
            None => format!(
                "{file}{}: the file changed while the editor made Starling's edit, and {why}, so nothing \
                 more is written; the edit counts as not applied: look at these lines, they differ from \
                 what the edit was made for",
                edit.differing_lines(&now).map_or_else(String::new, lines)
            ),
        };
        self.warn(&told).await;
        misplaced(format!("{moved}, and could not be taken back ({why})"))
    }

    /// Watches for an edit that counts as not applied. If the client still applies it, the edit is
    /// undone or the user gets a message.
    pub(super) fn watch_given_up_edit(&self, sent: &SentEdit<'_>, is_outdated: bool) {
        let purpose = match sent.effect {
            Effect::Change => Purpose::TakeBack,
            Effect::Create => Purpose::TakeBackFile,
            // A late deletion cannot be recognized by a text.
            Effect::Delete => return,
        };
        let late = GivenUpEdit::new(sent, DecidedResult::NotApplied, is_outdated);
        self.given_up.lock().push(Arc::clone(&late));
        let editor = self.clone();
        tokio::spawn(async move {
            let comes = timeout(WATCH_DURATION, editor.wait_for_arrival(&late)).await;
            editor.given_up.remove(&late);
            if let Ok(Some(arrival)) = comes {
                editor.answer_arrival(&late, arrival, purpose).await;
            }
        });
    }

    /// Watches for a second application of an edit whose text is in the file before the client replied. If
    /// the client makes the edit once more, that is undone.
    pub(super) fn watch_unanswered_edit(&self, sent: &SentEdit<'_>, reply: PendingReply) {
        let late = GivenUpEdit::new(sent, DecidedResult::Applied, true);
        self.given_up.lock().push(Arc::clone(&late));
        let editor = self.clone();
        tokio::spawn(async move {
            let over = async {
                sleep(match reply.await.kind {
                    EditReplyKind::Applied => WATCH_AFTER_REPLY,
                    EditReplyKind::Refused | EditReplyKind::Missing => WATCH_DURATION,
                })
                .await;
            };
            let again = tokio::select! {
                biased;
                arrival = editor.wait_for_arrival(&late) => arrival,
                () = over => None,
            };
            editor.given_up.remove(&late);
            if let Some(arrival) = again {
                let purpose = Purpose::TakeBack;
                editor.answer_arrival(&late, arrival, purpose).await;
            }
        });
    }

    async fn answer_arrival(self, late: &GivenUpEdit, arrival: Arrival, purpose: Purpose<'static>) {
        match arrival {
            Arrival::Made(pair) => self.take_back_late(late, pair, purpose).await,
            Arrival::Suspected(now) => {
                let file = &late.edit.file;
                let lines = late.edit.differing_lines(&now);
                let lines =
                    lines.map_or_else(String::new, |lines| format!(", {}", lines_in_words(lines)));
                let message = format!(
                    "{file}{lines}: the file changed, and it seems that the editor made Starling's edit \
                     in the same moment, when it already counted as not applied; the text before it is \
                     not known, so nothing more is written: look at these lines"
                );
                self.warn(&message).await;
            }
        }
    }

    /// Logs a warning and shows it to the user.
    async fn warn(&self, message: &str) {
        tracing::warn!("{message}");
        let client = &self.client;
        client
            .show_message(MessageType::WARNING, seen(message))
            .await;
    }

    /// Undoes an edit that arrived after its result was decided, and shows the user a message.
    async fn take_back_late(self, late: &GivenUpEdit, pair: TextPair, purpose: Purpose<'static>) {
        let file = &late.edit.file;
        let inverse = ChangeSet::between(&pair.after, &pair.before);
        let client = self.client.clone();
        let editor: Arc<dyn Editor> = Arc::new(self);
        let label = "undo an edit that came too late";
        let sent = sending::send(&editor, file, &pair.after, &inverse, label, purpose).await;
        let (kind, what) = match sent {
            Ok(_) => (MessageType::INFO, "it was taken back".to_owned()),
            Err(failure) => {
                let counts = match late.result {
                    DecidedResult::NotApplied => "counts as not applied",
                    DecidedResult::Applied => "may be there twice",
                };
                let why = failure.why();
                let what = format!(
                    "it could not be taken back ({why}), so it is still in the file and {counts}: undo it \
                     yourself, or keep it"
                );
                (MessageType::WARNING, what)
            }
        };
        let message = match late.result {
            DecidedResult::NotApplied => format!(
                "{file}: the editor made Starling's edit too late, when it already counted as not applied; {what}"
            ),
            DecidedResult::Applied => format!(
                "{file}: the editor made Starling's edit when the file already contained the same change; {what}"
            ),
        };
        tracing::warn!("{message}");
        client.show_message(kind, seen(&message)).await;
    }

    /// Waits for an edit that was given up.
    async fn wait_for_arrival(&self, late: &GivenUpEdit) -> Option<Arrival> {
        let mut changes = self.documents.changes();
        let mut polls = interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let turn = self.turns.of(&late.path);
        loop {
            {
                // A text that arrives while another edit is in progress is attributed to that edit.
                let _turn = turn.lock().await;
                match self.look_for(late).await {
                    Ok(GivenUpEditState::Arrived(arrival)) => return Some(arrival),
                    Ok(GivenUpEditState::Impossible) | Err(StoreClosed) => return None,
                    Ok(GivenUpEditState::Open) => {}
                }
            }
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() {
                    return None;
                },
                _ = polls.tick() => {}
            }
        }
    }

    async fn look_for(&self, late: &GivenUpEdit) -> Result<GivenUpEditState, StoreClosed> {
        let edit = &late.edit;
        let last = edit.texts.last();
        let now = self.placement(&late.path, edit).await?;
        let found = late.found().take();
        let is_superseded = late.is_superseded.swap(false, Ordering::Relaxed);
        if is_superseded && found.is_none() {
            edit.texts.restart(now.text);
            return Ok(GivenUpEditState::Open);
        }
        edit.texts.push_after(last.as_ref(), Arc::clone(&now.text));
        if late.result == DecidedResult::Applied {
            return Ok(
                match found.or_else(|| late.made_among(edit.earlier_texts())) {
                    Some(pair) => GivenUpEditState::Arrived(Arrival::Made(pair)),
                    None => GivenUpEditState::Open,
                },
            );
        }
        let is_outdated = is_outdated(late.version, now.version);
        let as_sent = || TextPair {
            before: Arc::clone(&edit.base),
            after: Arc::clone(&edit.after),
        };
        let made = match now.placement {
            _ if found.is_some() => found,
            _ if is_outdated || late.is_exact.load(Ordering::Relaxed) => {
                late.made_among(edit.earlier_texts())
            }
            EditPlacement::InPlace => Some(as_sent()),
            EditPlacement::Misplaced(ref pair) => Some(pair.clone()),
            EditPlacement::Absent | EditPlacement::Unclear => edit.is_in(&now.text).then(as_sent),
        };
        if let Some(pair) = made {
            // If two equal edits were given up, only one of the two tasks that watch for them
            // undoes the late text.
            self.given_up.supersede(&late.path, &now.text);
            return Ok(GivenUpEditState::Arrived(Arrival::Made(pair)));
        }
        if now.has_gaps(late.version) && edit.is_suspected(&now.text) {
            return Ok(GivenUpEditState::Arrived(Arrival::Suspected(now.text)));
        }
        // A client that respects versions refuses the edit of an open document that has changed.
        let is_over = is_outdated && late.since.elapsed() >= REFUSAL_TIMEOUT;
        Ok(if is_over {
            GivenUpEditState::Impossible
        } else {
            GivenUpEditState::Open
        })
    }
}

/// Whether an edit that was given up has arrived, can still arrive, or cannot arrive any more.
enum GivenUpEditState {
    Arrived(Arrival),
    /// The edit can no longer arrive.
    Impossible,
    /// The edit can still arrive.
    Open,
}

/// How an edit that counts as not applied was found in the file after all.
enum Arrival {
    /// The edit changed the file from the first text to the second.
    Made(TextPair),
    /// This text of the file probably contains the edit. The text before the edit is not known.
    Suspected(Arc<str>),
}
