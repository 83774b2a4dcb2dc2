//! How the ONNX intake grows: with the graph, not with the file.
//!
//! The large models are sparse files: the weights are holes, which cost no disk and no time to make.
//! Before the timings the peak of resident memory is printed, over reading the large models only.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::Criterion;
use quantplan::intake::onnx::wire::Limits;
use quantplan::intake::onnx::{self, Model};

/// A field with a length: its tag, then the length, then the bytes.
fn field(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    prefix(out, number, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn prefix(out: &mut Vec<u8>, number: u64, length: u64) {
    varint(out, number << 3 | 2);
    varint(out, length);
}

fn integer(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn node(op: &str, name: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for input in inputs {
        field(&mut out, 1, input.as_bytes());
    }
    field(&mut out, 2, output.as_bytes());
    field(&mut out, 3, name.as_bytes());
    field(&mut out, 4, op.as_bytes());
    out
}

/// The header of a tensor of float32 up to the bytes of its value.
fn tensor_head(name: &str, rows: u64, columns: u64) -> Vec<u8> {
    let mut out = Vec::new();
    integer(&mut out, 1, rows);
    integer(&mut out, 1, columns);
    integer(&mut out, 2, 1);
    field(&mut out, 8, name.as_bytes());
    prefix(&mut out, 9, rows * columns * 4);
    out
}

/// A chain of `layers` dense layers of 2048 by 2048, 16.8 MB each.
fn write_large(path: &Path, layers: u64) {
    const SIDE: u64 = 2048;
    const BYTES: u64 = SIDE * SIDE * 4;
    let mut nodes = Vec::new();
    let mut heads = Vec::new();
    for layer in 0..layers {
        let (input, weight) = (format!("h{layer}"), format!("w{layer}"));
        let output = format!("h{}", layer + 1);
        field(&mut nodes, 1, &node("MatMul", &format!("/fc{layer}"), &[&input, &weight], &output));
        let head = tensor_head(&weight, SIDE, SIDE);
        let mut start = Vec::new();
        prefix(&mut start, 5, head.len() as u64 + BYTES);
        start.extend(head);
        heads.push(start);
    }
    let graph =
        nodes.len() as u64 + heads.iter().map(|head| head.len() as u64 + BYTES).sum::<u64>();
    let mut start = Vec::new();
    integer(&mut start, 1, 8);
    prefix(&mut start, 7, graph);
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&start).unwrap();
    file.write_all(&nodes).unwrap();
    for head in heads {
        file.write_all(&head).unwrap();
        file.seek(SeekFrom::Current(BYTES as i64)).unwrap();
    }
    file.write_all(&imports()).unwrap();
    file.flush().unwrap();
}

fn imports() -> Vec<u8> {
    let mut opset = Vec::new();
    integer(&mut opset, 2, 17);
    let mut out = Vec::new();
    field(&mut out, 8, &opset);
    out
}

/// A model whose graph is `graph`.
fn write_model(path: &Path, graph: &[u8]) {
    let mut model = Vec::new();
    integer(&mut model, 1, 8);
    field(&mut model, 7, graph);
    model.extend(imports());
    fs::write(path, model).unwrap();
}

/// Transformer layers of twelve nodes each, with one small weight for all products.
fn write_nodes(path: &Path, nodes: u64) {
    const LAYER: [(&str, &[&str]); 12] = [
        ("MatMul", &["x", "w"]),
        ("MatMul", &["x", "w"]),
        ("MatMul", &["x", "w"]),
        ("Transpose", &["1"]),
        ("MatMul", &["0", "3"]),
        ("Div", &["4", "s"]),
        ("Softmax", &["5"]),
        ("MatMul", &["6", "2"]),
        ("MatMul", &["7", "w"]),
        ("Add", &["8", "x"]),
        ("LayerNormalization", &["9", "w"]),
        ("Relu", &["10"]),
    ];
    let mut graph = Vec::new();
    for index in 0..nodes {
        let (layer, (op, inputs)) = (index / 12, LAYER[index as usize % 12]);
        let name = |input: &&str| match *input {
            "w" | "s" => (*input).to_owned(),
            "x" => format!("h{layer}"),
            place => format!("t{}", layer * 12 + place.parse::<u64>().unwrap()),
        };
        let inputs: Vec<String> = inputs.iter().map(name).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let output = if index % 12 == 11 { format!("h{}", layer + 1) } else { format!("t{index}") };
        field(&mut graph, 1, &node(op, &format!("/layer.{layer}/{op}_{index}"), &inputs, &output));
    }
    let mut weight = tensor_head("w", 4, 4);
    weight.extend([0; 64]);
    field(&mut graph, 5, &weight);
    write_model(path, &graph);
}

fn write_tensors(path: &Path, tensors: u64) {
    let mut graph = Vec::new();
    for index in 0..tensors {
        let mut tensor = tensor_head(&format!("w{index}"), 4, 4);
        tensor.extend([0; 64]);
        field(&mut graph, 5, &tensor);
    }
    write_model(path, &graph);
}

fn read(path: &Path) -> Model {
    onnx::read(black_box(path), &Limits::default()).unwrap()
}

/// The time until the model is there; giving its memory back comes after the answer.
fn time_to_read(path: &Path) -> Duration {
    let start = Instant::now();
    let model = read(path);
    let time = start.elapsed();
    drop(black_box(model));
    time
}

/// Peak of resident memory in KiB, where the system says it.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    // 114 layers are 1.9 GB, 179 are 3 GB.
    write_large(&path("1.9GB"), 114);
    write_large(&path("3.0GB"), 179);
    let before = peak_kib();
    read(&path("1.9GB"));
    read(&path("3.0GB"));
    println!(
        "peak resident memory: {before:?} KiB before, {:?} KiB after both large models",
        peak_kib()
    );

    write_nodes(&path("60k nodes"), 60_000);
    write_nodes(&path("240k nodes"), 240_000);
    write_tensors(&path("100k tensors"), 100_000);
    println!("60k nodes, first read in this process: {:?}", time_to_read(&path("60k nodes")));
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("intake");
    for name in ["1.9GB", "3.0GB", "60k nodes", "240k nodes", "100k tensors"] {
        let path = path(name);
        println!("{name}: {} bytes", fs::metadata(&path).unwrap().len());
        group.bench_function(name, |bench| {
            bench.iter_custom(|rounds| (0..rounds).map(|_| time_to_read(&path)).sum());
        });
    }
    group.finish();
    criterion.final_summary();
}
