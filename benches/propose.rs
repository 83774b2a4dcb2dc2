//! How long the rules take for a graph of 5,000 nodes, facts in memory; the bound is 2 ms.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quantplan::{
    catalogue::Catalogue,
    facts::{
        ModelAnalysis,
        graph::{Graph, NodeText, Tensor},
    },
    intent::Intent,
    rules::{self, Context, Outcome},
};
use serde_json::json;

/// A chain of convolutions with a box decoder at its end.
fn graph(nodes: usize) -> Graph {
    let (mut all, mut tensors) = (Vec::new(), Vec::new());
    for i in 0..nodes {
        let op_type = ["Conv", "Sigmoid", "Mul", "Concat"][i % 4];
        let weight = format!("model.{i}.weight");
        let mut inputs = vec![format!("/model.{}/output_0", i.wrapping_sub(1)), weight.clone()];
        if op_type == "Conv" {
            tensors.push(Tensor {
                name: weight,
                dtype: "float32".to_owned(),
                dims: vec![64, 64, 3, 3],
                bytes: 147_456,
            });
        } else {
            inputs.pop();
        }
        let output =
            if i + 1 == nodes { "output0".to_owned() } else { format!("/model.{i}/output_0") };
        all.push(NodeText {
            name: format!("/model.{i}/{op_type}"),
            op_type: op_type.to_owned(),
            inputs,
            outputs: vec![output],
            top: true,
            ..NodeText::default()
        });
    }
    Graph::new(all, tensors)
}

fn analysis(nodes: usize) -> ModelAnalysis {
    let each = nodes / 4;
    serde_json::from_value(json!({
        "analysis_status": "complete",
        "model": {"model_path": "big.onnx", "model_type": "onnx", "estimated_size_gb": 0.2, "onnx_specific": {
            "opsets": [{"domain": "ai.onnx", "version": 17}],
            "input_layout_guess": "NCHW",
            "inputs": [{"name": "images", "dtype": "float32", "shape": [1, 3, 640, 640]}],
            "outputs": [{"name": "output0", "dtype": "float32", "shape": [1, 84, 8400]}],
            "has_dynamic_dims": false, "has_qdq_already": false, "architecture_guess": "cnn"
        }},
        "quantization_targets": {"onnx_specific": {
            "op_counts": {"Conv": each, "Sigmoid": each, "Mul": each, "Concat": each},
            "quantizable_op_counts": {"Conv": each, "Mul": each}
        }}
    }))
    .unwrap()
}

fn propose(criterion: &mut Criterion) {
    let (graph, analysis) = (graph(5000), analysis(5000));
    let cases = [
        ("npu_cnn", json!({"deployment_target": "npu_cnn"})),
        (
            "npu_cnn, lists of nodes",
            json!({"deployment_target": "npu_cnn", "values": {
                "onnx_specific.nodes_to_exclude": ["/model.4999/Concat", "/model.4998/Mul", "^/model\\.1.*Sigmoid"]
            }}),
        ),
    ];
    for (name, intent) in cases {
        let intent: Intent = serde_json::from_value(intent).unwrap();
        let context = Context {
            analysis: &analysis,
            graph: Some(&graph),
            modules: None,
            files: None,
            environment: None,
            install: None,
            torch_install: None,
            session_context: None,
            intent: &intent,
            catalogue: Catalogue,
        };
        assert!(matches!(rules::plan(&context), Ok(Outcome::Draft(_))));
        criterion.bench_function(name, |bencher| bencher.iter(|| rules::plan(black_box(&context))));
    }
}

criterion_group!(benches, propose);
criterion_main!(benches);
