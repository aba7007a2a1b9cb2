//! Requests of the view in which a task is written: completion of mentions, and the available
//! models.

use serde::{Deserialize, Serialize};

pub const MENTIONS: &str = "starling/mentions";
pub const MODELS: &str = "starling/models";

/// Arguments of `starling/mentions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MentionsParams {
    /// The mention as far as it is typed, with its prefix: `@car`, `#Cart.t`.
    pub mention: String,
}

/// The reply to `starling/mentions`, the best match first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MentionsReply {
    pub items: Vec<MentionItem>,
}

/// A completed mention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MentionItem {
    /// The whole mention with its prefix: `@shop/cart.py`, `#Cart.total`.
    pub text: String,
    /// Where the symbol is defined, as `path:line`; empty for a file.
    pub detail: String,
}
