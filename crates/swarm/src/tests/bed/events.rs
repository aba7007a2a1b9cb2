//! What the events of a run say.

use crate::*;

/// Waits until a matching event is in the log of a run.
pub async fn until(handle: &RunHandle, happened: impl Fn(&Event) -> bool) {
    let mut cursor = handle.log.follow();
    while let Some(stamped) = cursor.next().await {
        if matches!(&stamped.record, Record::Event(event) if happened(event)) {
            return;
        }
    }
    panic!("it did not happen: {:#?}", handle.log.events());
}

/// Returns the agents that were woken (started), in order, each with the cause.
pub fn woken(events: &[Event]) -> Vec<(String, Cause)> {
    let woken = |event: &Event| match event {
        Event::AgentWoken {
            agent: ActorId::Agent(symbol),
            cause,
        } => Some((symbol.to_string(), cause.clone())),
        _ => None,
    };
    events.iter().filter_map(woken).collect()
}

/// Returns the stop reason of a finished run.
pub fn stop(events: &[Event]) -> StopReason {
    match events.last() {
        Some(Event::RunFinished { stop_reason, .. }) => stop_reason.clone(),
        other => panic!("the last event is {other:?}"),
    }
}

/// Returns whether tests prove the changes of a finished run, and its headline.
pub fn ending(events: &[Event]) -> (Proof, String) {
    match events.last() {
        Some(Event::RunFinished {
            ending: Some(Ending {
                proof, headline, ..
            }),
            ..
        }) => (*proof, headline.clone()),
        other => panic!("the last event is {other:?}"),
    }
}

/// Returns why replies were malformed or proposals were refused, in order.
pub fn malformed(events: &[Event]) -> Vec<String> {
    let what = |event: &Event| match event {
        Event::Malformed { what, .. } | Event::ProposalRefused { why: what, .. } => {
            Some(what.clone())
        }
        _ => None,
    };
    events.iter().filter_map(what).collect()
}
