//! Who the server says it is, and what it tells a model before anything else.

use rmcp::model::{Implementation, ResourcesCapability, ServerCapabilities, ServerConfig};

use crate::{
    mcp::icons::{PLAN, icon},
    planner::VERSION,
};

/// Hosts hide tools behind a search and show the first sentence there, so it carries the words people use.
const INSTRUCTIONS: &str = "\
Makes a confirmed quantization plan (quant_plan.json) for AMD Quark: post-training quantization of ONNX \
models to INT8, XINT8, A8W8, A16W8 or BF16 for CPU, GPU and the Ryzen AI NPU, and of Hugging Face LLMs to \
FP8, MXFP4, INT4 or INT8. It plans only: it never quantizes, exports or runs anything.

Order of calls: `propose_plan` with the path of the model (or `analyze_model` first, to look at its facts) \
gives a session and a draft, or a handoff to another skill. When the draft has questions, ask the user and \
call `revise_plan` with what they said; never assume a deployment target. Then `render_decision_table`, \
show the user the whole table, `confirm_plan` with its digest, and after the yes `emit_plan`. \
`explain` answers what any name means, `route_recovery` says which skill repairs an error, `check_plan` \
holds a plan file against rules and confirmation.

Only the user can confirm a plan: `confirm_plan` asks them, and no argument does it for them. Every revision \
takes an earlier yes away. An error reads `CODE: message`, with one `hint:` that names the next step. \
A `session_id` is all that another agent, or a restarted server, needs to go on.";

/// Name, version and capabilities.
pub(super) fn config() -> ServerConfig {
    let mut resources = ResourcesCapability::default();
    resources.subscribe = Some(true);
    resources.list_changed = Some(true);
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .enable_resources_with(resources)
        .enable_completions()
        .build();
    let identity = Implementation::new("quantplan", VERSION)
        .with_title("Quantization planner for AMD Quark")
        .with_description(
            "Plans the quantization of models for AMD Quark; nothing is written before the user confirms.",
        )
        .with_icons(vec![icon(PLAN)]);
    ServerConfig::new(capabilities).with_server_info(identity).with_instructions(INSTRUCTIONS)
}
