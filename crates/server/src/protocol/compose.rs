//! The requests of a view in which a task is written: completion of mentions, and the models to choose
//! from.

use serde::{Deserialize, Serialize};

pub const MENTIONS: &str = "starling/mentions";
pub const MODELS: &str = "starling/models";

/// Arguments of `starling/mentions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MentionsParams {
    /// The mention as far as it is typed, with its marker: `@car`, `#Cart.t`.
    pub mention: String,
}

/// The answer to `starling/mentions`, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MentionsReply {
    pub items: Vec<MentionItem>,
}

/// A mention that completes what is typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MentionItem {
    /// The whole mention, with its marker: `@shop/cart.py`, `#Cart.total`.
    pub text: String,
    /// Where the symbol is defined, as `path:line`; empty for a file.
    pub detail: String,
}

/// The answer to `starling/models`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelsReply {
    /// The model that a run uses whose request names none; null where the configuration does not decide.
    pub chosen: Option<String>,
    /// Models that can be named: those of the configuration, then `local`.
    pub models: Vec<ModelItem>,
    /// Providers whose keys are in the server's environment.
    pub keys: Vec<ProviderKey>,
}

/// A model that a request can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelItem {
    pub name: String,
    /// What the name stands for, in words.
    pub detail: String,
}

/// A provider whose key is in the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderKey {
    pub provider: String,
    /// The environment variable that holds the key.
    pub variable: String,
    /// How the name of a model of this provider begins, as `--model` takes it; null where the provider
    /// has to be added to the configuration first.
    pub prefix: Option<String>,
}
