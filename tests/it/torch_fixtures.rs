//! Small Hugging Face models, made by a program: a safetensors writer of twenty lines and configs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The name, element type and shape of a tensor.
pub type Tensor = (String, &'static str, Vec<u64>);

pub fn tensor(name: &str, dtype: &'static str, shape: &[u64]) -> Tensor {
    (name.to_owned(), dtype, shape.to_vec())
}

fn bytes_of(dtype: &str, shape: &[u64]) -> u64 {
    let width = match dtype {
        "F32" | "I32" => 4,
        "BF16" | "F16" => 2,
        "I64" => 8,
        _ => 1,
    };
    shape.iter().product::<u64>() * width
}

/// A file whose weights are zeros.
pub fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    let mut at = 0;
    for (name, dtype, shape) in tensors {
        let end = at + bytes_of(dtype, shape);
        header.insert(
            name.clone(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]}),
        );
        at = end;
    }
    file(&Value::Object(header).to_string(), at as usize)
}

/// A file with this header and this many bytes of data.
pub fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// Writes a folder with a config, a tokenizer and one file of weights.
pub fn folder(config: &Value, tensors: &[Tensor]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "config.json", config.to_string());
    write(folder.path(), "tokenizer.json", "{}");
    if !tensors.is_empty() {
        write(folder.path(), "model.safetensors", safetensors(tensors));
    }
    folder
}

pub fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(folder.join(name), bytes).unwrap();
}

/// Writes shards and the index over them.
pub fn shards(folder: &Path, shards: &[&[Tensor]]) {
    let total = shards.len();
    let mut map = serde_json::Map::new();
    let mut size = 0;
    for (at, tensors) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{total:05}.safetensors", at + 1);
        write(folder, &name, safetensors(tensors));
        for (tensor, dtype, shape) in *tensors {
            map.insert(tensor.clone(), json!(name));
            size += bytes_of(dtype, shape);
        }
    }
    let index = json!({"metadata": {"total_size": size}, "weight_map": map});
    write(folder, "model.safetensors.index.json", index.to_string());
}

/// A config of the Llama kind, 64 wide.
pub fn llama() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 96, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16", "max_position_embeddings": 128, "transformers_version": "4.51.0"
    })
}

/// A config with experts of the Qwen kind.
pub fn qwen_moe() -> Value {
    let mut config = llama();
    config["architectures"] = json!(["Qwen3MoeForCausalLM"]);
    config["model_type"] = json!("qwen3_moe");
    config["head_dim"] = json!(32);
    config["num_experts"] = json!(4);
    config["num_experts_per_tok"] = json!(2);
    config["moe_intermediate_size"] = json!(48);
    config["decoder_sparse_step"] = json!(1);
    config["mlp_only_layers"] = json!([0]);
    config
}

/// Attention and norms of one layer, with heads of `head`.
pub fn attention(prefix: &str, head: u64) -> Vec<Tensor> {
    let linear = |name: &str, out: u64, into: u64| {
        tensor(&format!("{prefix}.self_attn.{name}.weight"), "BF16", &[out, into])
    };
    vec![
        tensor(&format!("{prefix}.input_layernorm.weight"), "BF16", &[64]),
        linear("q_proj", 4 * head, 64),
        linear("k_proj", 2 * head, 64),
        linear("v_proj", 2 * head, 64),
        linear("o_proj", 64, 4 * head),
        tensor(&format!("{prefix}.post_attention_layernorm.weight"), "BF16", &[64]),
    ]
}

/// A gated feed-forward block.
pub fn gated(prefix: &str, inner: u64) -> Vec<Tensor> {
    let linear = |name: &str, out: u64, into: u64| {
        tensor(&format!("{prefix}.{name}.weight"), "BF16", &[out, into])
    };
    vec![
        linear("gate_proj", inner, 64),
        linear("up_proj", inner, 64),
        linear("down_proj", 64, inner),
    ]
}

/// The embeddings, and the head when it has a weight of its own.
pub fn ends(prefix: &str, head: Option<&str>) -> Vec<Tensor> {
    let mut all = vec![
        tensor(&format!("{prefix}.embed_tokens.weight"), "BF16", &[96, 64]),
        tensor(&format!("{prefix}.norm.weight"), "BF16", &[64]),
    ];
    all.extend(head.map(|name| tensor(&format!("{name}.weight"), "BF16", &[96, 64])));
    all
}

/// The tensors of [`llama`].
pub fn llama_tensors() -> Vec<Tensor> {
    let mut all = ends("model", Some("lm_head"));
    for layer in 0..2 {
        all.extend(attention(&format!("model.layers.{layer}"), 16));
        all.extend(gated(&format!("model.layers.{layer}.mlp"), 160));
    }
    all
}

/// The tensors of [`qwen_moe`].
pub fn qwen_moe_tensors() -> Vec<Tensor> {
    let mut all = ends("model", Some("lm_head"));
    all.extend(attention("model.layers.0", 32));
    all.extend(gated("model.layers.0.mlp", 160));
    all.extend(attention("model.layers.1", 32));
    all.push(tensor("model.layers.1.mlp.gate.weight", "BF16", &[4, 64]));
    for expert in 0..4 {
        all.extend(gated(&format!("model.layers.1.mlp.experts.{expert}"), 48));
    }
    all
}
