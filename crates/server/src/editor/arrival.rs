//! Waits until the text of an edit is in its file. The client's reply is only a hint: an edit
//! counts as applied when the file contains its text, whatever else has changed in the file.

use std::future::{Future, pending};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tower_lsp::lsp_types::request::ApplyWorkspaceEdit;
use tower_lsp::lsp_types::{ApplyWorkspaceEditParams, ApplyWorkspaceEditResponse};

use super::tracked::{EditPlacement, TextPair, TrackedEdit};
use super::{ClientEditor, EditOutcome, POLL_INTERVAL, SentEdit, refused, stale};
use crate::documents::StoreClosed;
use crate::outgoing::{ClientRequestError, send_request};
use crate::session::disk_text;
use starling_core::{ApplyError, CurrentText, DocVersion, Effect};

/// How long the client may take to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the text may take to arrive after the client has replied that the edit is applied. In
/// some editors the user has to press a key first.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the text of an edit may take to arrive after the client has refused the edit. Some
/// clients report that they refuse an edit but apply it.
pub(super) const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the disk is read while an edit is in progress and its file is not open. If the
/// edit gets to the wrong position because another program writes the file meanwhile, the text
/// before the edit is needed to undo it.
const DISK_INTERVAL: Duration = Duration::from_millis(20);
/// How long the server still waits for an edit that the client reported as applied, if the text of
/// the file changed but does not contain the edit.
const UNCLEAR_TIMEOUT: Duration = Duration::from_secs(2);
const TEXT_MISSING: &str =
    "it reported the edit as applied, but the text of the edit did not arrive";

/// The client's reply to an edit. It is only a hint; the text of the document decides.
pub(super) struct EditReply {
    pub(super) kind: EditReplyKind,
    /// Why the edit counts as refused if its text does not arrive.
    message: String,
}

/// The kind of the client's reply to an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditReplyKind {
    Applied,
    Refused,
    /// The client did not reply in time.
    Missing,
}

/// The client's reply to an edit, which is awaited.
pub(super) type PendingReply = Pin<Box<dyn Future<Output = EditReply> + Send>>;

impl EditReply {
    fn of(reply: Result<ApplyWorkspaceEditResponse, ClientRequestError>) -> EditReply {
        let (kind, message) = match reply {
            Ok(reply) if reply.applied => (EditReplyKind::Applied, TEXT_MISSING.to_owned()),
            Ok(reply) => {
                let reason = reply.failure_reason;
                let reason = reason.unwrap_or_else(|| "it gave no reason".to_owned());
                (EditReplyKind::Refused, reason)
            }
            Err(ClientRequestError::Refused(why)) => (EditReplyKind::Refused, why),
            Err(late @ ClientRequestError::Late(_)) => (EditReplyKind::Missing, late.to_string()),
        };
        EditReply { kind, message }
    }

    /// Returns how long the text of the edit may take to arrive after this reply.
    fn timeout(&self) -> Duration {
        match self.kind {
            EditReplyKind::Applied => ARRIVAL_TIMEOUT,
            EditReplyKind::Refused => REFUSAL_TIMEOUT,
            EditReplyKind::Missing => Duration::ZERO,
        }
    }
}

/// Returns whether the version of an open document differs from the version for which an edit was
/// made. A client refuses such an edit.
pub(super) fn is_outdated(edit: Option<DocVersion>, now: Option<DocVersion>) -> bool {
    edit.is_some() && now.is_some() && now != edit
}

/// The current text of a file, and whether and where it contains an edit.
pub(super) struct PlacedText {
    pub text: Arc<str>,
    pub version: Option<DocVersion>,
    pub placement: EditPlacement,
    /// Whether the file is neither open nor on disk; its text is then empty.
    pub is_missing: bool,
}

impl PlacedText {
    /// Returns whether the file may have had texts that are not known, because it was not open all the
    /// time since the edit was computed for this version.
    pub fn has_gaps(&self, version: Option<DocVersion>) -> bool {
        !self.is_missing && (version.is_none() || self.version.is_none())
    }
}

/// The state of an edit whose text has not arrived yet.
#[derive(Default)]
struct AwaitedEdit {
    /// The client's reply, and when it was received.
    reply: Option<(EditReply, Instant)>,
    /// The time since which the text of the file differs from the edit's base but lacks the edit.
    changed: Option<Instant>,
}

/// Whether the text of an edit is still awaited.
enum EditProgress {
    Ended(EditOutcome),
    /// The edit is awaited for at most this time.
    Waits(Duration),
}

impl ClientEditor {
    /// Sends an edit and waits for its text.
    pub(super) async fn send(
        &self,
        sent: &SentEdit<'_>,
        request: ApplyWorkspaceEditParams,
        arrived: oneshot::Receiver<CurrentText>,
    ) -> EditOutcome {
        let client = self.client.clone();
        let mut reply: PendingReply = Box::pin(async move {
            let reply = send_request::<ApplyWorkspaceEdit>(&client, request, REPLY_TIMEOUT);
            EditReply::of(reply.await)
        });
        if sent.effect == Effect::Delete {
            let reply = self.reply_to_deletion(sent, reply).await;
            return self.deletion(sent, reply).await;
        }
        let mut waiting = AwaitedEdit::default();
        let outcome = self
            .wait_for_text(sent, &mut waiting, &mut reply, arrived)
            .await;
        if waiting.reply.is_none() && matches!(outcome, EditOutcome::Known(Ok(_))) {
            self.watch_unanswered_edit(sent, reply);
        }
        outcome
    }

    /// Waits until the text of an edit is in its file, or can no longer be expected there.
    async fn wait_for_text(
        &self,
        sent: &SentEdit<'_>,
        waiting: &mut AwaitedEdit,
        reply: &mut PendingReply,
        mut arrived: oneshot::Receiver<CurrentText>,
    ) -> EditOutcome {
        let mut changes = self.documents.changes();
        let mut has_arrived = false;
        loop {
            let Ok(now) = self.placement(sent.path, &sent.edit).await else {
                return EditOutcome::Known(Err(ApplyError::Gone));
            };
            let longest = match self.progress(sent, waiting, now) {
                EditProgress::Ended(outcome) => return outcome,
                EditProgress::Waits(longest) => longest,
            };
            tokio::select! {
                biased;
                came = &mut arrived, if !has_arrived => {
                    has_arrived = true;
                    let texts = sent.edit.earlier_texts();
                    let placement = sent.edit.placement_of_result(&texts);
                    if came.is_err() || placement == EditPlacement::InPlace {
                        return EditOutcome::Known(came.map_err(|_| ApplyError::Gone));
                    }
                }
                reply = &mut *reply, if waiting.reply.is_none() => {
                    if reply.kind == EditReplyKind::Applied {
                        sent.edit.claim();
                    }
                    waiting.reply = Some((reply, Instant::now()));
                }
                changed = changes.changed() => if changed.is_err() {
                    return EditOutcome::Known(Err(ApplyError::Gone));
                },
                () = self.next_disk_text(sent) => {}
                () = sleep(longest) => {}
            }
        }
    }

    /// Returns whether the text of an edit is still awaited. An edit is only sent again if the
    /// client can no longer make it: the open document has changed, so the client refuses the old
    /// version, or the file to create already exists.
    fn progress(
        &self,
        sent: &SentEdit<'_>,
        waiting: &mut AwaitedEdit,
        now: PlacedText,
    ) -> EditProgress {
        let placement = match now.placement {
            EditPlacement::InPlace => return EditProgress::Ended(EditOutcome::in_place(sent, now)),
            EditPlacement::Misplaced(ref pair) => {
                let pair = pair.clone();
                return match Self::is_perhaps_by_user(sent, waiting, &now, &pair) {
                    Some(true) => EditProgress::Ended(EditOutcome::in_place(sent, now)),
                    Some(false) => EditProgress::Ended(EditOutcome::misplaced(sent, Some(pair))),
                    None => EditProgress::Waits(REPLY_TIMEOUT),
                };
            }
            ref placement @ (EditPlacement::Absent | EditPlacement::Unclear) => placement,
        };
        let is_changed = now.text != sent.edit.base;
        let changed = is_changed.then(|| waiting.changed.unwrap_or_else(Instant::now));
        waiting.changed = changed;
        let Some((reply, replied)) = &waiting.reply else {
            return EditProgress::Waits(REPLY_TIMEOUT);
        };
        let is_outdated =
            is_outdated(sent.version, now.version) || self.is_blocked(sent, is_changed);
        let is_claimed = reply.kind == EditReplyKind::Applied;
        let mut left = reply.timeout().saturating_sub(replied.elapsed());
        if is_claimed && let Some(since) = changed {
            let patience = UNCLEAR_TIMEOUT.saturating_sub(since.max(*replied).elapsed());
            left = left.min(patience);
        }
        if !left.is_zero() && (is_claimed || !is_outdated) {
            return EditProgress::Waits(left);
        }
        // The file changed in the moment of the edit, so the text before the edit is not known.
        if now.has_gaps(sent.version) && sent.edit.is_suspected(&now.text) {
            return EditProgress::Ended(EditOutcome::misplaced(sent, None));
        }
        let is_skipped = is_outdated && *placement == EditPlacement::Absent;
        if is_claimed && is_changed && !is_skipped {
            if *placement == EditPlacement::Absent {
                self.watch_given_up_edit(sent, is_outdated);
            }
            return EditProgress::Ended(EditOutcome::misplaced(sent, None));
        }
        self.watch_given_up_edit(sent, is_outdated);
        let file = &sent.edit.file;
        let error = match is_outdated && is_changed {
            true => stale(file),
            false => refused(file, reply.message.clone()),
        };
        EditProgress::Ended(EditOutcome::Known(Err(error)))
    }

    /// Returns whether the user made a change that equals the result of a misplaced edit: `None` if
    /// this is decided by the reply to come. The user may have typed in the range of the edit and then
    /// removed that range.
    fn is_perhaps_by_user(
        sent: &SentEdit<'_>,
        waiting: &AwaitedEdit,
        now: &PlacedText,
        pair: &TextPair,
    ) -> Option<bool> {
        if pair.after != sent.edit.after {
            return Some(false);
        }
        let (reply, _) = waiting.reply.as_ref()?;
        // A client that respects versions has refused the edit.
        let is_refused = reply.kind == EditReplyKind::Refused;
        Some(is_refused && is_outdated(sent.version, now.version))
    }

    /// Returns whether the file that an edit creates already exists, and the client refuses to
    /// create existing files.
    fn is_blocked(&self, sent: &SentEdit<'_>, is_changed: bool) -> bool {
        is_changed && sent.effect == Effect::Create && self.settings.refuses_existing
    }

    /// Waits until the file of an edit has a new text on disk while it is not open.
    async fn next_disk_text(&self, sent: &SentEdit<'_>) {
        let mut polls = interval(DISK_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            polls.tick().await;
            let last = sent.edit.texts.last();
            match self.documents.read(sent.path.to_owned()).await {
                Ok(None) => {}
                Ok(Some(_)) => continue,
                Err(StoreClosed) => return pending().await,
            }
            if let Ok(text) = written_text(sent.path, &sent.edit.base).await
                && sent.edit.texts.push_after(last.as_ref(), text.into())
            {
                return;
            }
        }
    }

    /// Waits for the reply to a delete request, and reads the file meanwhile.
    async fn reply_to_deletion(&self, sent: &SentEdit<'_>, mut reply: PendingReply) -> EditReply {
        loop {
            tokio::select! {
                biased;
                reply = &mut reply => return reply,
                () = self.next_disk_text(sent) => {}
            }
        }
    }

    /// Waits until the file of a delete request is deleted. Fails if it still exists after the time
    /// limit.
    async fn deletion(&self, sent: &SentEdit<'_>, reply: EditReply) -> EditOutcome {
        let patience = reply.timeout().min(REFUSAL_TIMEOUT);
        let began = Instant::now();
        loop {
            match tokio::fs::try_exists(sent.path).await {
                Ok(false) if reply.kind != EditReplyKind::Refused => {
                    return EditOutcome::deleted(sent);
                }
                Ok(false) => return EditOutcome::absent(sent),
                Ok(true) | Err(_) if began.elapsed() >= patience => {
                    let error = refused(&sent.edit.file, reply.message);
                    return EditOutcome::Known(Err(error));
                }
                Ok(true) | Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the current text of a file and an edit's placement in it.
    pub(super) async fn placement(
        &self,
        path: &Path,
        edit: &TrackedEdit,
    ) -> Result<PlacedText, StoreClosed> {
        // The current text is read last: a text that arrives during this call must not count as an
        // earlier text.
        let earlier = edit.earlier_texts();
        let open = self.documents.read(path.to_owned()).await?;
        let disk = written_text(path, &edit.base).await;
        let disk = disk.ok().map(Arc::from);
        let is_missing = open.is_none() && disk.is_none();
        let (now, disk) = match open {
            Some(current) => (current, disk),
            None => {
                let text = disk.unwrap_or_else(|| "".into());
                let version = None;
                (CurrentText { text, version }, None)
            }
        };
        let placement = edit.placement_after(earlier, &now.text, disk.as_ref());
        Ok(PlacedText {
            text: now.text,
            version: now.version,
            placement,
            is_missing,
        })
    }
}

/// Returns the text of a file on disk. Programs empty a file before they write it, so an empty text is
/// read once more.
async fn written_text(path: &Path, base: &Arc<str>) -> std::io::Result<String> {
    let text = disk_text(path.to_owned(), Some(base)).await?;
    if !text.is_empty() || base.is_empty() {
        return Ok(text);
    }
    sleep(DISK_INTERVAL).await;
    disk_text(path.to_owned(), Some(base)).await
}

impl EditOutcome {
    fn in_place(sent: &SentEdit<'_>, now: PlacedText) -> EditOutcome {
        let is_exact = now.text == sent.edit.after;
        EditOutcome::Known(Ok(CurrentText {
            // Text that was typed elsewhere in the file belongs to the user, not to the edit.
            text: Arc::clone(&sent.edit.after),
            version: now.version.filter(|_| is_exact),
        }))
    }

    /// The file of a delete request does not exist any more.
    fn absent(sent: &SentEdit<'_>) -> EditOutcome {
        EditOutcome::Known(Ok(CurrentText {
            text: Arc::clone(&sent.edit.after),
            version: None,
        }))
    }

    /// The client has deleted the file. If the user typed in it meanwhile, that text was deleted too.
    fn deleted(sent: &SentEdit<'_>) -> EditOutcome {
        let edit = &sent.edit;
        match edit.earlier_texts().pop() {
            Some(last) if last != edit.base && last != edit.after => {
                let after = Arc::clone(&edit.after);
                EditOutcome::misplaced(
                    sent,
                    Some(TextPair {
                        before: last,
                        after,
                    }),
                )
            }
            Some(_) | None => EditOutcome::absent(sent),
        }
    }

    fn misplaced(sent: &SentEdit<'_>, texts: Option<TextPair>) -> EditOutcome {
        let edit = sent.edit.clone();
        EditOutcome::Misplaced { edit, texts }
    }
}
