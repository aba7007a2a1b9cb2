//! The account of one model call, which may take several requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Exhausted, Ledger, Reservation};
use starling_core::{ChatReply, ChatWatch, Cost, ModelError, ModelNotice, Tokens, WorstCase};

/// Holds the reservation of the request under way. The first request is reserved when the call
/// begins; retries, fallbacks and continuations reserve theirs through
/// [`ChatWatch::reserve`]. No reservation is held while another one is waited for.
#[derive(Debug)]
pub struct CallBudget {
    ledger: Ledger,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: Option<Reservation>,
    /// Whether any part of the answer of the open request has arrived.
    answer_began: bool,
    cost: Cost,
}

impl CallBudget {
    /// Reserves the first request of a call.
    ///
    /// # Errors
    /// See [`Ledger::reserve`].
    pub async fn open(ledger: &Ledger, first: WorstCase) -> Result<Self, Exhausted> {
        let reservation = ledger.reserve(first).await?;
        Ok(CallBudget {
            ledger: ledger.clone(),
            state: Mutex::new(State {
                open: Some(reservation),
                answer_began: false,
                cost: Cost::default(),
            }),
        })
    }

    /// The longest answer that the open request may ask for.
    pub fn max_output(&self) -> Tokens {
        let state = self.state();
        let open = state.open.as_ref();
        open.map_or(Tokens(0), Reservation::max_output)
    }

    /// Reserves the next request; returns the longest answer that it may ask for. A request that is
    /// still open is booked in full.
    ///
    /// # Errors
    /// See [`Ledger::reserve`].
    pub async fn reserve_next(&self, next: &WorstCase) -> Result<Tokens, Exhausted> {
        self.abandon();
        let reservation = self.ledger.reserve(next.clone()).await?;
        let max_output = reservation.max_output();
        let mut state = self.state();
        state.answer_began = false;
        state.open = Some(reservation);
        Ok(max_output)
    }

    /// Books the last request, and returns what the call cost. Without a result, a request that is
    /// still open is booked in full.
    pub fn close(self, result: Option<&Result<ChatReply, ModelError>>) -> Cost {
        if let Some(result) = result {
            self.request_ended(result.as_ref());
        }
        self.abandon();
        self.state().cost
    }

    /// Books the open request in full: nobody will say what it cost.
    fn abandon(&self) {
        let mut state = self.state();
        if let Some(reservation) = state.open.take() {
            state.cost += reservation.abandoned();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The account that a model keeps while it answers. Notices go to nobody.
#[async_trait]
impl ChatWatch for CallBudget {
    fn delta(&self, _text: &str) {
        self.state().answer_began = true;
    }

    fn notice(&self, _notice: ModelNotice) {}

    /// Books the open request; does nothing when none is open.
    fn request_ended(&self, end: Result<&ChatReply, &ModelError>) {
        let mut state = self.state();
        let Some(reservation) = state.open.take() else {
            return;
        };
        let answer_began = std::mem::take(&mut state.answer_began);
        state.cost += match end {
            Ok(reply) => reservation.answered(reply),
            Err(error) => reservation.failed(error, answer_began),
        };
    }

    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        self.reserve_next(next).await.ok()
    }
}
