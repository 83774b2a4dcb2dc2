//! Rules for the Torch flow, and what they share: the guide to schemes, wishes, look-ups of modules, groups.

pub mod algorithm;
pub mod attention_scheme;
pub mod calibration;
pub mod choice;
pub mod device_strategy;
pub mod entry_point;
pub mod exclude_layers;
pub mod experts;
pub mod export_format;
pub mod fitness;
pub mod global_scheme;
pub mod groups;
pub mod guide;
pub mod hardware;
pub mod intake_risks;
pub mod kv_cache;
pub mod layer_quant_config;
pub mod lookup;
pub mod model_facts;
pub mod model_family;
pub mod quantized_source;
pub mod remote_code;
pub mod result_size;
pub mod tensor_parallel;
pub mod tool_versions;
pub mod wishes;
