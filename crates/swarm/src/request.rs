//! Change requests: one agent asks the owner of another symbol to change it.

use std::sync::Arc;

use super::event::{Cause, Event, Party};
use super::hub::Hub;
use super::protocol::RequestChange;

/// Sends a change request. The returned text tells the sender the result.
///
/// # Errors
/// Returns a message if the request was not sent.
pub(super) fn request_change(
    hub: &Arc<Hub>,
    from: &Party,
    wanted: &RequestChange,
) -> Result<String, String> {
    let symbol = hub.lookup().address(&wanted.symbol)?;
    if wanted.reason.trim().is_empty() {
        return Err("Say in `reason` what must hold afterwards, and why.".to_owned());
    }
    if let Party::Agent(own) = from
        && (own == &symbol || hub.owner_of(&symbol).as_ref() == Some(own))
    {
        return Err(format!(
            "{symbol} is your own: propose the change yourself."
        ));
    }
    if let Err(exhausted) = hub.ledger.count_message() {
        hub.not_woken(symbol.to_string(), from, exhausted.to_string());
        return Err(exhausted.to_string());
    }
    let (owner, reason) = hub.addressee(&symbol, &wanted.reason);
    let cause = Cause::ChangeRequest {
        from: from.clone(),
        reason: reason.clone(),
    };
    hub.event(Event::ChangeRequested {
        from: from.clone(),
        to: Party::Agent(owner.clone()),
        reason,
    });
    match hub.wake(&owner, cause) {
        Ok(_) => Ok(format!(
            "Sent to the owner of {owner}; you need not wait for it."
        )),
        Err(error) => {
            hub.not_woken(owner.to_string(), from, error.to_string());
            Err(format!("Not sent: {error}"))
        }
    }
}
