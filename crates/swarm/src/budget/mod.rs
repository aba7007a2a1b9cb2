//! Budget of one run, shared by all its agents.
//!
//! Each model request reserves its worst case before it is sent, and is charged at that reservation
//! until the provider reports the usage. At any time, the spent and reserved amounts together are
//! within the limits of calls, tokens and dollars. A limit can be exceeded only if a provider
//! reports more than the reservation: the reported usage is charged, and later reservations for
//! that model grow accordingly.

mod account;
mod amount;
mod call;
mod clock;
mod reservation;
mod spent;
#[cfg(test)]
mod tests;

pub use account::Budget;
pub use call::{CallBudget, CallFailed};
pub use clock::{ExternalTime, PersonWait, WorkInProgress};
pub use reservation::Reservation;
pub use spent::{Committed, Exhausted, SHORTEST_ANSWER, Spent};
