//! Change requests: one agent asks the owner of another symbol to change it.

use std::sync::Arc;

use crate::event::actor::ActorId;
use crate::event::events::{Cause, Event};
use crate::protocol::RequestChange;
use crate::state::run_context::RunContext;

/// Sends a change request to the owner of a symbol. Returns a description of the result for the
/// sender.
///
/// # Errors
/// Returns a message if the request was not sent.
pub(crate) fn request_change(
    run: &Arc<RunContext>,
    from: &ActorId,
    wanted: &RequestChange,
) -> Result<String, String> {
    let symbol = run.lookup().address(&wanted.symbol)?;
    if wanted.reason.trim().is_empty() {
        return Err("Say in `reason` what must hold afterwards, and why.".to_owned());
    }
    if let ActorId::Agent(own) = from
        && (own == &symbol || run.owner_of(&symbol).as_ref() == Some(own))
    {
        return Err(format!(
            "{symbol} is your own: propose the change yourself."
        ));
    }
    if let Err(exhausted) = run.budget.count_message() {
        run.not_woken(symbol.to_string(), from, exhausted.to_string());
        return Err(exhausted.to_string());
    }
    let (owner, reason) = run.addressee(&symbol, &wanted.reason);
    let cause = Cause::ChangeRequest {
        from: from.clone(),
        reason: reason.clone(),
    };
    run.event(Event::ChangeRequested {
        from: from.clone(),
        to: ActorId::Agent(owner.clone()),
        reason,
    });
    match run.wake(&owner, cause) {
        Ok(_) => Ok(format!(
            "Sent to the owner of {owner}; you need not wait for it."
        )),
        Err(error) => {
            run.not_woken(owner.to_string(), from, error.to_string());
            Err(format!("Not sent: {error}"))
        }
    }
}
