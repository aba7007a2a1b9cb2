//! Waits for the text of an edit. The client's reply is a hint: an edit is applied when its text
//! arrives.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tower_lsp::lsp_types::request::ApplyWorkspaceEdit;
use tower_lsp::lsp_types::{ApplyWorkspaceEditParams, ApplyWorkspaceEditResponse};

use super::closed::{ClosedEdit, EditPlacement};
use super::{ClientEditor, EditOutcome, POLL_INTERVAL, SentEdit, TextError, refused, stale};
use crate::documents::StoreClosed;
use crate::outgoing::{ClientRequestError, send_request};
use crate::session::disk_text;
use starling_core::{ApplyError, CurrentText, Effect};

/// How long the client may take to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the text may take to arrive after the client has replied that the edit is applied. In
/// some editors the user has to press a key first.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the text of an edit may take to arrive after the client has refused the edit. Some
/// clients refuse an edit and make it all the same.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the disk is read while an edit of a closed file is in progress. A text that another
/// program writes meanwhile has to be known to put the text right.
const DISK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a text may be unexplained before the edit counts as misplaced.
const UNCLEAR_TIMEOUT: Duration = Duration::from_secs(2);
const TEXT_MISSING: &str = "it said that the edit was applied, but the text did not come";

/// The client's reply to an edit. It is a hint; the document's text decides.
struct EditReply {
    kind: EditReplyKind,
    /// Why the edit counts as refused if its text does not arrive.
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditReplyKind {
    Applied,
    Refused,
    /// The client did not reply in time.
    Missing,
}

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

impl SentEdit<'_> {
    /// Returns the current text if it is the text after the edit; otherwise why the edit is not
    /// applied.
    fn settled(
        &self,
        now: Result<CurrentText, TextError>,
        message: String,
    ) -> Result<CurrentText, ApplyError> {
        match now {
            Ok(current) if current.text == self.after => Ok(current),
            Ok(current) if *current.text != *self.base => Err(stale(self.file)),
            Ok(_) | Err(TextError::Disk(_)) => Err(refused(self.file, message)),
            Err(TextError::StoreClosed) => Err(ApplyError::Gone),
        }
    }
}

impl ClientEditor {
    pub(super) async fn send(
        &self,
        sent: &SentEdit<'_>,
        request: ApplyWorkspaceEditParams,
        mut arrived: oneshot::Receiver<CurrentText>,
    ) -> EditOutcome {
        let reply = send_request::<ApplyWorkspaceEdit>(&self.client, request, REPLY_TIMEOUT);
        let reply = tokio::select! {
            biased;
            Ok(current) = &mut arrived => return EditOutcome::Known(Ok(current)),
            never = self.note_disk(sent) => match never {},
            reply = reply => reply,
        };
        let reply = EditReply::of(reply);
        if let (Some(edit), EditReplyKind::Applied) = (&sent.closed, reply.kind) {
            edit.claim();
        }
        match &sent.closed {
            _ if sent.effect == Effect::Delete => {
                EditOutcome::Known(self.deletion(sent, reply).await)
            }
            Some(edit) => self.arrival_in_closed(sent, edit, reply, arrived).await,
            None => EditOutcome::Known(self.arrival_in_open(sent, reply, arrived).await),
        }
    }

    /// Records the texts that a closed file has on disk while an edit of it is in progress.
    async fn note_disk(&self, sent: &SentEdit<'_>) -> Infallible {
        let Some(edit) = &sent.closed else {
            return pending().await;
        };
        let mut polls = interval(DISK_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            polls.tick().await;
            if let Ok(text) = disk_text(sent.path.to_owned()).await {
                edit.texts.push(text.into());
            }
        }
    }

    /// Waits until a file is deleted.
    async fn deletion(
        &self,
        sent: &SentEdit<'_>,
        reply: EditReply,
    ) -> Result<CurrentText, ApplyError> {
        let patience = reply.timeout().min(REFUSAL_TIMEOUT);
        let began = Instant::now();
        loop {
            match tokio::fs::try_exists(sent.path).await {
                Ok(false) => {
                    return Ok(CurrentText {
                        text: Arc::clone(&sent.after),
                        version: None,
                    });
                }
                Ok(true) | Err(_) if began.elapsed() >= patience => {
                    return Err(refused(sent.file, reply.message));
                }
                Ok(true) | Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Waits for the text of an open document after any reply. If the text does not arrive in time,
    /// the edit counts as refused.
    async fn arrival_in_open(
        &self,
        sent: &SentEdit<'_>,
        reply: EditReply,
        mut arrived: oneshot::Receiver<CurrentText>,
    ) -> Result<CurrentText, ApplyError> {
        let began = Instant::now();
        let mut changes = self.documents.changes();
        loop {
            let now = self.read(sent.path).await;
            let version = now.as_ref().ok().and_then(|now| now.version);
            let settled = sent.settled(now, reply.message.clone());
            if settled.is_ok() {
                return settled;
            }
            // The document may have had the text for a moment before the user typed on.
            if let Ok(current) = arrived.try_recv() {
                return Ok(current);
            }
            // The document changed otherwise, if only in its version, so the refusal was right.
            let is_over = reply.kind != EditReplyKind::Applied && version != sent.version;
            let left = reply.timeout().saturating_sub(began.elapsed());
            if left.is_zero() || is_over {
                if let Err(ApplyError::Refused { .. }) = settled {
                    self.watch_given_up_edit(sent, arrived);
                }
                return settled;
            }
            tokio::select! {
                biased;
                came = &mut arrived => return came.map_err(|_| ApplyError::Gone),
                changed = changes.changed() => if changed.is_err() {
                    return Err(ApplyError::Gone);
                },
                () = sleep(left) => {}
            }
        }
    }

    /// Waits for the text of a file that was not open, in its buffer or on disk, after any reply.
    /// If the text does not arrive in time, the edit counts as refused. It is not sent again,
    /// because it could still arrive.
    async fn arrival_in_closed(
        &self,
        sent: &SentEdit<'_>,
        edit: &ClosedEdit,
        reply: EditReply,
        mut arrived: oneshot::Receiver<CurrentText>,
    ) -> EditOutcome {
        let (began, mut unclear) = (Instant::now(), None);
        let mut changes = self.documents.changes();
        let mut polls = interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.placement(sent.path, edit).await {
                Err(StoreClosed) => return EditOutcome::Known(Err(ApplyError::Gone)),
                Ok((_, EditPlacement::InPlace)) => return EditOutcome::in_place(edit),
                Ok((_, EditPlacement::Misplaced { before, after })) => {
                    return EditOutcome::misplaced(edit, Some((before, after)));
                }
                Ok((now, EditPlacement::Unclear | EditPlacement::Absent))
                    if reply.kind == EditReplyKind::Refused && now != edit.base =>
                {
                    let came = arrived.try_recv().map_err(|_| stale(sent.file));
                    return EditOutcome::Known(came);
                }
                Ok((now, EditPlacement::Absent)) if now == edit.base => unclear = None,
                Ok((_, placement @ (EditPlacement::Unclear | EditPlacement::Absent))) => {
                    let since: Instant = *unclear.get_or_insert_with(Instant::now);
                    if reply.kind == EditReplyKind::Applied && since.elapsed() >= UNCLEAR_TIMEOUT {
                        if placement == EditPlacement::Absent {
                            self.watch_given_up_edit(sent, arrived);
                        }
                        return EditOutcome::misplaced(edit, None);
                    }
                }
            }
            if began.elapsed() >= reply.timeout() {
                break;
            }
            tokio::select! {
                biased;
                came = &mut arrived => {
                    return EditOutcome::Known(came.map_err(|_| ApplyError::Gone));
                }
                changed = changes.changed() => if changed.is_err() {
                    return EditOutcome::Known(Err(ApplyError::Gone));
                },
                never = self.note_disk(sent) => match never {},
                _ = polls.tick() => {}
            }
        }
        self.watch_given_up_edit(sent, arrived);
        EditOutcome::Known(Err(refused(sent.file, reply.message)))
    }

    /// Returns the current text of a file that was not open when an edit was sent, and the edit's
    /// placement in it.
    pub(super) async fn placement(
        &self,
        path: &Path,
        edit: &ClosedEdit,
    ) -> Result<(Arc<str>, EditPlacement), StoreClosed> {
        let open = self.documents.read(path.to_owned()).await?;
        let disk = disk_text(path.to_owned()).await.ok().map(Arc::from);
        let (now, disk) = match open {
            Some(current) => (current.text, disk),
            None => (disk.unwrap_or_else(|| "".into()), None),
        };
        let placement = edit.placement(&now, disk.as_ref());
        Ok((now, placement))
    }
}

impl EditOutcome {
    fn in_place(edit: &ClosedEdit) -> EditOutcome {
        // Text that was typed elsewhere in the file belongs to the user, not to the edit.
        EditOutcome::Known(Ok(CurrentText {
            text: Arc::clone(&edit.after),
            version: None,
        }))
    }

    fn misplaced(edit: &ClosedEdit, texts: Option<(Arc<str>, Arc<str>)>) -> EditOutcome {
        let edit = edit.clone();
        EditOutcome::Misplaced { edit, texts }
    }
}
