//! Budget of one model call, which may consist of several requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::account::Budget;
use super::reservation::Reservation;
use super::spent::Exhausted;
use starling_core::{
    ChatModel, ChatReply, ChatWatch, Cost, ModelError, ModelNotice, Tokens, ToolCalling, WorstCase,
};
use starling_dialogue::ModelFailure;

/// Why a call returned no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallFailed {
    #[error(transparent)]
    Budget(#[from] Exhausted),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl CallFailed {
    /// Returns whether the model rejected tool calls, so that the call can be repeated with the
    /// text protocol.
    pub fn is_for_tools(&self, model: &Arc<dyn ChatModel>) -> bool {
        let is_refusal = matches!(self, CallFailed::Model(ModelError::NoTools { .. }));
        is_refusal && model.profile().tool_calling == ToolCalling::Text
    }
}

impl ModelFailure for CallFailed {
    fn of_model(&self) -> Option<&ModelError> {
        match self {
            CallFailed::Budget(_) => None,
            CallFailed::Model(error) => Some(error),
        }
    }
}

/// The reservation of the current request of a call. The first request is reserved when the call
/// starts; retries, fallbacks and continuations are reserved through [`ChatWatch::reserve`]. While
/// a call waits for its next reservation, it holds no other reservation.
#[derive(Debug)]
pub struct CallBudget {
    budget: Budget,
    state: Mutex<CallState>,
}

/// The open request of a call and the cost of its earlier requests.
#[derive(Debug)]
struct CallState {
    open: Option<Reservation>,
    /// Whether part of the open request's reply has arrived.
    answer_began: bool,
    cost: Cost,
}

impl CallBudget {
    /// Creates the budget of a call and reserves the call's first request.
    ///
    /// # Errors
    /// See [`Budget::reserve`].
    pub async fn open(budget: &Budget, first: WorstCase) -> Result<Self, Exhausted> {
        let reservation = budget.reserve(first).await?;
        Ok(CallBudget {
            budget: budget.clone(),
            state: Mutex::new(CallState {
                open: Some(reservation),
                answer_began: false,
                cost: Cost::default(),
            }),
        })
    }

    /// Returns the maximum output of the open request.
    pub fn max_output(&self) -> Tokens {
        let state = self.state();
        let open = state.open.as_ref();
        open.map_or(Tokens(0), Reservation::max_output)
    }

    /// Reserves the next request and returns its maximum output. A request that is still open is
    /// charged in full.
    ///
    /// # Errors
    /// See [`Budget::reserve`].
    pub async fn reserve_next(&self, next: &WorstCase) -> Result<Tokens, Exhausted> {
        self.abandon();
        let reservation = self.budget.reserve(next.clone()).await?;
        let max_output = reservation.max_output();
        let mut state = self.state();
        state.answer_began = false;
        state.open = Some(reservation);
        Ok(max_output)
    }

    /// Charges the last request and returns the cost of the call. Without a result, a request that
    /// is still open is charged in full.
    pub fn close(self, result: Option<&Result<ChatReply, ModelError>>) -> Cost {
        if let Some(result) = result {
            self.request_ended(result.as_ref());
        }
        self.abandon();
        self.state().cost
    }

    /// Charges the open request in full, because its actual usage will never be reported.
    fn abandon(&self) {
        let mut state = self.state();
        if let Some(reservation) = state.open.take() {
            state.cost += reservation.abandoned();
        }
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tracks the requests of a call while the model replies. Notices from the model client are
/// ignored.
#[async_trait]
impl ChatWatch for CallBudget {
    fn delta(&self, _text: &str) {
        self.state().answer_began = true;
    }

    fn notice(&self, _notice: ModelNotice) {}

    /// Charges the open request. Does nothing if no request is open.
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
