//! Plans the quantization of models for AMD Quark: one engine, an MCP server and a command line over it.
//!
//! Data flows one way: a path is read by [`intake`] into facts, [`rules`] reason over facts, intent,
//! environment and [`catalogue`] to a draft, [`session`] keeps what happened to it, [`render`] shows it, the
//! user answers, and [`emit`] writes the plan.
//!
//! # Invariants
//!
//! Each has a test that fails when it breaks.
//!
//! 1. Rules do no I/O, read no clock, cannot fail. The same inputs give byte-identical plans.
//! 2. Every decision names the rule that took it and where its value came from.
//! 3. Only `emit::prepare` makes a plan that can be written; it takes a `&Confirmed`, and only
//!    `Presented::confirm` makes one. A session read back from the store is replayed event by event through
//!    the same transitions, so an edited store cannot skip the question.
//! 4. A yes binds to a digest. A revision, another analysis, another catalogue version: another digest, no yes.
//! 5. No argument that a model can type confirms a plan, unless a team opted in to relayed answers; the
//!    plan then says so.
//! 6. No weight is read. Work and memory of intake grow with the graph, not with the file.
//! 7. While serving, stdout carries JSON-RPC and nothing else.
//! 8. Text that came from a model file is data: escaped wherever it is shown.
//! 9. State belongs to the session id, never to the connection. A process that dies at any step leaves a
//!    whole file or none, and the next one can go on.
//!
//! # Layers
//!
//! A module imports only from rows above its own; `tests/it/layering.rs` holds the whole table.
//!
//! | row | modules |
//! |---|---|
//! | words | [`vocab`] |
//! | data | [`facts`], [`intent`], [`catalogue`], [`plan`] |
//! | pure | [`estimate`], [`rules`], [`session`], [`render`], [`schema`] |
//! | edges | [`intake`], [`probe`], [`store`], [`emit`] |
//! | use cases | [`planner`] |
//! | faces | [`mcp`], [`cli`] |

pub mod catalogue;
pub mod cli;
pub mod emit;
pub mod estimate;
pub mod facts;
pub mod intake;
pub mod intent;
pub mod mcp;
pub mod plan;
pub mod planner;
pub mod probe;
pub mod render;
pub mod rules;
pub mod schema;
pub mod session;
pub mod store;
pub mod vocab;
