//! How the Hugging Face intake grows: with the tensors, not with the weights.
//!
//! The shards are sparse files: the weights are holes, which cost no disk and no time to make.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;

use criterion::Criterion;
use quantplan::intake::hf;
use quantplan::intake::safetensors::Limits;

/// Bytes of one tensor of 2048 by 2048 in bfloat16.
const BYTES: u64 = 2048 * 2048 * 2;

/// A mixture of experts in `shards` files of `tensors` tensors each, with its index.
fn write_model(folder: &Path, shards: u64, tensors: u64) {
    fs::create_dir(folder).unwrap();
    let config = r#"{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "hidden_size": 2048, "num_hidden_layers": 400, "num_attention_heads": 16, "vocab_size": 4096,
        "num_experts": 128, "moe_intermediate_size": 2048, "torch_dtype": "bfloat16"}"#;
    fs::write(folder.join("config.json"), config).unwrap();
    let mut map = String::new();
    for shard in 0..shards {
        let file = format!("model-{:05}-of-{shards:05}.safetensors", shard + 1);
        let mut header = String::from("{\"__metadata__\":{\"format\":\"pt\"}");
        for at in 0..tensors {
            let number = shard * tensors + at;
            let part = ["gate_proj", "up_proj", "down_proj"][number as usize % 3];
            let (layer, expert) = (number / 384, number / 3 % 128);
            let name = format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight");
            let (begin, end) = (at * BYTES, (at + 1) * BYTES);
            write!(
                header,
                ",\"{name}\":{{\"dtype\":\"BF16\",\"shape\":[2048,2048],\"data_offsets\":[{begin},{end}]}}"
            )
            .unwrap();
            write!(map, "{}\"{name}\":\"{file}\"", if map.is_empty() { "" } else { "," }).unwrap();
        }
        header.push('}');
        let mut out = File::create(folder.join(file)).unwrap();
        out.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
        out.write_all(header.as_bytes()).unwrap();
        out.set_len(8 + header.len() as u64 + tensors * BYTES).unwrap();
    }
    let index = format!("{{\"metadata\":{{\"total_size\":0}},\"weight_map\":{{{map}}}}}");
    fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let mut group = criterion.benchmark_group("safetensors");
    for (shards, tensors) in [(200, 6), (200, 100), (200, 450)] {
        let name = format!("{shards} shards of {tensors} tensors");
        let path = folder.path().join(&name);
        write_model(&path, shards, tensors);
        let model = hf::read(&path, &Limits::default()).unwrap();
        let modules = model.modules.unwrap();
        println!("{name}: {} linear modules, {} bytes", modules.linears.len(), modules.total_bytes);
        group.bench_function(&name, |bench| {
            bench.iter(|| black_box(hf::read(&path, &Limits::default()).unwrap()));
        });
    }
    group.finish();
    criterion.final_summary();
}
