//! Change requests: one agent asks the owner of another symbol to change it.

use std::sync::Arc;

use super::event::{Cause, Event, Party};
use super::hub::Hub;
use super::protocol::RequestChange;
use crate::syntax::SymbolPath;

/// Sends a change request; the text tells the sender what became of it.
pub(super) fn request_change(hub: &Arc<Hub>, from: &Party, wanted: &RequestChange) -> String {
    let symbol: SymbolPath = match wanted.symbol.parse() {
        Ok(symbol) => symbol,
        Err(error) => return format!("{error}"),
    };
    if wanted.reason.trim().is_empty() {
        return "Say in `reason` what must hold afterwards, and why.".to_owned();
    }
    if let Party::Agent(own) = from
        && (own == &symbol || hub.owner_of(&symbol).as_ref() == Some(own))
    {
        return format!("{symbol} is your own: propose the change yourself.");
    }
    if let Err(exhausted) = hub.ledger.count_message() {
        return exhausted.to_string();
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
        Ok(_) => format!("Sent to the owner of {owner}; you need not wait for it."),
        Err(error) => format!("Not sent: {error}"),
    }
}
