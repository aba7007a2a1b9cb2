//! Creates the conversation of an agent, with the system prompt for its role.

use crate::context::prompt_parts::is_small;
use crate::event::actor::{ActorId, actor_name};
use crate::protocol::conversation::Conversation;
use crate::state::run_context::RunContext;
use starling_core::prompts::{
    AgentSystem, AgentSystemSmall, AgentSystemText, Prompt, SoloSystem, SoloSystemText,
};
use starling_core::{Role, ToolCalling};

/// Creates an agent's conversation with the system prompt for its role and protocol.
pub(crate) fn conversation_of(run: &RunContext, actor: &ActorId) -> Conversation {
    let profile = run.services.models.agent.profile();
    let solo = matches!(actor, ActorId::Solo);
    let system = match (solo, profile.tool_calling) {
        (true, ToolCalling::Native) => SoloSystem {}.render(),
        (true, ToolCalling::Text) => SoloSystemText {}.render(),
        (false, ToolCalling::Native) => AgentSystem {}.render(),
        (false, ToolCalling::Text) if is_small(profile) => AgentSystemSmall {}.render(),
        (false, ToolCalling::Text) => AgentSystemText {}.render(),
    };
    let name = if solo {
        "solo".to_owned()
    } else {
        format!("agent {}", actor_name(actor))
    };
    Conversation::new(name, Role::Agent, system)
}
