//! Stands for the model where none is to be used.

use async_trait::async_trait;
use starling_core::{ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile};

/// A model that answers every request with an error.
pub struct NoModel {
    profile: ModelProfile,
}

impl NoModel {
    pub fn new(profile: ModelProfile) -> NoModel {
        NoModel { profile }
    }
}

#[async_trait]
impl ChatModel for NoModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        _request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        Err(ModelError::Unavailable {
            model: self.profile.name.clone(),
            message: "no model is to be used (`--model none`), but this needs one".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{profile, request};
    use starling_core::NoWatch;

    #[tokio::test]
    async fn every_request_is_an_error_that_names_the_option() {
        let model = NoModel::new(profile("none"));
        let error = model.chat(&request("a"), &NoWatch).await.unwrap_err();
        assert!(error.to_string().contains("--model none"), "{error}");
    }
}
