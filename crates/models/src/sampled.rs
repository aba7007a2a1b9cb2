//! Samples: the same model with a different temperature and seed for each sample.

use std::sync::Arc;

use async_trait::async_trait;

use starling_core::{ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile};

/// Factor that keeps the seeds of samples distinct from the seeds within one conversation.
const APART: u64 = 1_000_003;

/// A model with the temperature and seed of one sample.
pub(super) struct SampledModel {
    pub(super) model: Arc<dyn ChatModel>,
    /// Overrides the temperature of every request.
    pub(super) temperature: Option<f32>,
    pub(super) seed: u64,
}

#[async_trait]
impl ChatModel for SampledModel {
    fn profile(&self) -> &ModelProfile {
        self.model.profile()
    }

    fn fills(&self) -> bool {
        self.model.fills()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let own = self.seed.wrapping_mul(APART);
        let sampled = ChatRequest {
            temperature: self.temperature.unwrap_or(request.temperature),
            seed: request.seed.map(|seed| seed.wrapping_add(own)),
            beginning: String::new(),
            following: String::new(),
            ..request.clone()
        };
        self.model.chat(&sampled, watch).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::testing::{profile, reply, request};
    use starling_core::{Finish, NoWatch};

    /// A model that records the temperature and seed of each request.
    struct RequestRecorder {
        profile: ModelProfile,
        asked: Mutex<Vec<(f32, Option<u64>)>>,
    }

    #[async_trait]
    impl ChatModel for RequestRecorder {
        fn profile(&self) -> &ModelProfile {
            &self.profile
        }

        async fn chat(
            &self,
            request: &ChatRequest,
            _watch: &dyn ChatWatch,
        ) -> Result<ChatReply, ModelError> {
            let asked = (request.temperature, request.seed);
            self.asked.lock().unwrap().push(asked);
            Ok(reply("m", "", Finish::Stop))
        }
    }

    #[tokio::test]
    async fn sampled_model_sets_its_own_temperature_and_seeds() {
        let heard = Arc::new(RequestRecorder {
            profile: profile("m"),
            asked: Mutex::default(),
        });
        for (temperature, seed) in [(None, 0), (Some(0.8), 1), (Some(0.8), 2)] {
            let model: Arc<dyn ChatModel> = heard.clone();
            let sampled = SampledModel {
                model,
                temperature,
                seed,
            };
            for turn in 0..2 {
                let request = ChatRequest {
                    seed: Some(turn),
                    beginning: String::new(),
                    following: String::new(),
                    ..request()
                };
                sampled.chat(&request, &NoWatch).await.unwrap();
            }
        }
        let asked = heard.asked.lock().unwrap();
        assert_eq!(asked[..2], [(0.0, Some(0)), (0.0, Some(1))]);
        assert_eq!(asked[2..4], [(0.8, Some(APART)), (0.8, Some(APART + 1))]);
        assert_eq!(asked[4].1, Some(2 * APART));
    }
}
