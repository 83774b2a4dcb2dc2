//! Small ONNX models, written field by field, and bytes that only pretend to be models.
//!
//! The files under `tests/fixtures/onnx` are what [`good`] and [`bad`] make; a test in `intake` says when they
//! are not, and `QUANTPLAN_WRITE_FIXTURES=1` writes them anew. Every good one loads in ONNX Runtime, except
//! those whose ops it does not know (`custom_domain`, `quark_ops`) and `external_missing`.

/// A protobuf message being written.
#[derive(Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn int(self, field: u64, value: i64) -> Self {
        self.varint(field << 3).varint(value as u64)
    }

    pub fn float(self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5).raw(&value.to_le_bytes())
    }

    pub fn bytes(self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2).varint(value.len() as u64).raw(value)
    }

    pub fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub fn message(self, field: u64, value: Message) -> Self {
        self.bytes(field, &value.0)
    }

    pub fn each<T>(
        self,
        items: impl IntoIterator<Item = T>,
        add: impl Fn(Self, T) -> Self,
    ) -> Self {
        items.into_iter().fold(self, add)
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

pub const FLOAT: i64 = 1;
pub const UINT8: i64 = 2;
pub const INT8: i64 = 3;
pub const INT64: i64 = 7;
pub const BOOL: i64 = 9;
pub const FLOAT16: i64 = 10;

/// A dimension of an input: a size, a symbol, or nothing.
#[derive(Clone, Copy)]
pub enum Size {
    Is(i64),
    Called(&'static str),
    Unsaid,
}
use Size::{Called, Is, Unsaid};

pub fn node(op: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let node = Message::default()
        .each(inputs, |m, name| m.text(1, name))
        .each(outputs, |m, name| m.text(2, name));
    let node = if name.is_empty() { node } else { node.text(3, name) };
    node.text(4, op)
}

pub fn int_attribute(name: &str, value: i64) -> Message {
    Message::default().text(1, name).int(3, value).int(20, 2)
}

pub fn ints_attribute(name: &str, values: &[i64]) -> Message {
    Message::default().text(1, name).each(values, |m, value| m.int(8, *value)).int(20, 7)
}

pub fn floats_attribute(name: &str, values: &[f32]) -> Message {
    Message::default().text(1, name).each(values, |m, value| m.float(7, *value)).int(20, 6)
}

pub fn tensor_attribute(name: &str, tensor: Message) -> Message {
    Message::default().text(1, name).message(5, tensor).int(20, 4)
}

pub fn graph_attribute(name: &str, graph: Message) -> Message {
    Message::default().text(1, name).message(6, graph).int(20, 5)
}

pub fn tensor(name: &str, dtype: i64, dims: &[i64], raw: &[u8]) -> Message {
    header(name, dtype, dims).bytes(9, raw)
}

/// A tensor without its value.
pub fn header(name: &str, dtype: i64, dims: &[i64]) -> Message {
    Message::default().each(dims, |m, dim| m.int(1, *dim)).int(2, dtype).text(8, name)
}

/// A tensor of small regular values, like freshly initialized weights.
pub fn weights(name: &str, dims: &[i64]) -> Message {
    let value = |index: i64| ((index * 37 % 101) as f32 - 50.0) / 400.0;
    let count = dims.iter().product();
    let raw: Vec<u8> = (0..count).flat_map(|index| value(index).to_le_bytes()).collect();
    tensor(name, FLOAT, dims, &raw)
}

/// The same with one value for every element.
pub fn filled(name: &str, dims: &[i64], value: f32) -> Message {
    let raw: Vec<u8> = (0..dims.iter().product()).flat_map(|_: i64| value.to_le_bytes()).collect();
    tensor(name, FLOAT, dims, &raw)
}

pub fn ints(name: &str, values: &[i64]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, INT64, &[values.len() as i64], &raw)
}

pub fn value(name: &str, dtype: i64, shape: &[Size]) -> Message {
    let dim = |size: &Size| match size {
        Is(size) => Message::default().int(1, *size),
        Called(symbol) => Message::default().text(2, symbol),
        Unsaid => Message::default(),
    };
    let shape = Message::default().each(shape, |m, size| m.message(1, dim(size)));
    let tensor = Message::default().int(1, dtype).message(2, shape);
    Message::default().text(1, name).message(2, Message::default().message(1, tensor))
}

/// A graph: nodes, initializers, inputs, outputs.
pub fn graph(
    nodes: &[Message],
    initializers: &[Message],
    inputs: &[Message],
    outputs: &[Message],
) -> Message {
    Message::default()
        .each(nodes, |m, node| m.message(1, node.clone()))
        .text(2, "graph")
        .each(initializers, |m, tensor| m.message(5, tensor.clone()))
        .each(inputs, |m, input| m.message(11, input.clone()))
        .each(outputs, |m, output| m.message(12, output.clone()))
}

pub fn opset(domain: &str, version: i64) -> Message {
    Message::default().text(1, domain).int(2, version)
}

/// A model of IR version 8 with these imports.
pub fn model(graph: Message, opsets: &[(&str, i64)]) -> Message {
    Message::default()
        .int(1, 8)
        .text(2, "quantplan")
        .text(3, "1")
        .message(7, graph)
        .each(opsets, |m, (domain, version)| m.message(8, opset(domain, *version)))
}

fn conv(name: &str, input: &str, weight: &str, output: &str, stride: i64) -> Message {
    node("Conv", name, &[input, weight], &[output])
        .message(5, ints_attribute("kernel_shape", &[3, 3]))
        .message(5, ints_attribute("pads", &[1, 1, 1, 1]))
        .message(5, ints_attribute("strides", &[stride, stride]))
}

fn batch_norm(stage: &str, channels: i64) -> (Message, Vec<Message>) {
    let name = |part: &str| format!("{stage}.bn.{part}");
    let (input, output) = (format!("{stage}.conv"), format!("{stage}.norm"));
    let parts = ["scale", "bias", "mean", "var"].map(name);
    let inputs: Vec<&str> =
        [input.as_str()].into_iter().chain(parts.iter().map(|p| p.as_str())).collect();
    let tensors = parts.iter().zip([1.0, 0.1, 0.0, 1.0]);
    (
        node("BatchNormalization", &format!("/{stage}/bn"), &inputs, &[&output]),
        tensors.map(|(name, value)| filled(name, &[channels], value)).collect(),
    )
}

/// Two blocks of Conv, BatchNormalization and Relu, then a classifier of ten classes, for an input of that shape.
fn cnn(shape: &[Size], opset: i64) -> Message {
    let (norm1, stats1) = batch_norm("stage1", 8);
    let (norm2, stats2) = batch_norm("stage2", 16);
    let nodes = [
        conv("/stage1/conv", "image", "stage1.weight", "stage1.conv", 1),
        norm1,
        node("Relu", "/stage1/relu", &["stage1.norm"], &["stage1"]),
        conv("/stage2/conv", "stage1", "stage2.weight", "stage2.conv", 2),
        norm2,
        node("Relu", "/stage2/relu", &["stage2.norm"], &["stage2"]),
        node("GlobalAveragePool", "/pool", &["stage2"], &["pooled"]),
        node("Flatten", "/flatten", &["pooled"], &["features"]),
        node(
            "Gemm",
            "/classifier",
            &["features", "classifier.weight", "classifier.bias"],
            &["logits"],
        )
        .message(5, int_attribute("transB", 1)),
    ];
    let mut initializers =
        vec![weights("stage1.weight", &[8, 3, 3, 3]), weights("stage2.weight", &[16, 8, 3, 3])];
    initializers.extend(stats1);
    initializers.extend(stats2);
    initializers
        .extend([weights("classifier.weight", &[10, 16]), filled("classifier.bias", &[10], 0.0)]);
    let outputs = [value("logits", FLOAT, &[shape[0], Is(10)])];
    model(graph(&nodes, &initializers, &[value("image", FLOAT, shape)], &outputs), &[("", opset)])
}

/// A static NCHW classifier that every target can take.
pub fn small_cnn() -> Vec<u8> {
    cnn(&[Is(1), Is(3), Is(32), Is(32)], 17).into_bytes()
}

/// The same with a free batch and free sides.
pub fn dynamic_cnn() -> Vec<u8> {
    cnn(&[Called("batch"), Is(3), Called("height"), Unsaid], 17).into_bytes()
}

/// As Paddle exports it: opset 11, IR version 3, sizes of -1 and `?`, initializers among the inputs, no names.
pub fn paddle_style() -> Vec<u8> {
    let nodes = [
        node("Conv", "", &["x", "w"], &["a"]).message(5, ints_attribute("kernel_shape", &[3, 3])),
        node("Relu", "", &["a"], &["b"]),
        node("Conv", "", &["b", "v"], &["y"]).message(5, ints_attribute("kernel_shape", &[1, 1])),
    ];
    let inputs = [
        value("x", FLOAT, &[Is(-1), Is(3), Called("?"), Called("?")]),
        value("w", FLOAT, &[Is(4), Is(3), Is(3), Is(3)]),
        value("v", FLOAT, &[Is(2), Is(4), Is(1), Is(1)]),
    ];
    let initializers = [weights("w", &[4, 3, 3, 3]), weights("v", &[2, 4, 1, 1])];
    let outputs = [value("y", FLOAT, &[Is(-1), Is(2), Called("?"), Called("?")])];
    let graph = graph(&nodes, &initializers, &inputs, &outputs);
    Message::default()
        .int(1, 3)
        .text(2, "PaddlePaddle")
        .message(7, graph)
        .message(8, opset("", 11))
        .into_bytes()
}

/// A channels-last input that the model transposes itself.
pub fn channels_last_cnn() -> Vec<u8> {
    let nodes = [
        node("Transpose", "t", &["image"], &["nchw"])
            .message(5, ints_attribute("perm", &[0, 3, 1, 2])),
        conv("c1", "nchw", "w", "a", 1),
        conv("c2", "a", "v", "y", 1),
    ];
    let initializers = [weights("w", &[4, 3, 3, 3]), weights("v", &[4, 4, 3, 3])];
    let inputs = [value("image", FLOAT, &[Is(1), Is(16), Is(16), Is(3)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(4), Is(16), Is(16)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// Three dense layers.
pub fn mlp() -> Vec<u8> {
    let layer = |index: usize, input: &str, output: &str| {
        let (weight, bias) = (format!("w{index}"), format!("b{index}"));
        node("Gemm", &format!("/fc{index}"), &[input, &weight, &bias], &[output])
    };
    let nodes = [
        layer(1, "x", "h1"),
        node("Relu", "/relu1", &["h1"], &["a1"]),
        layer(2, "a1", "h2"),
        node("Relu", "/relu2", &["h2"], &["a2"]),
        layer(3, "a2", "y"),
    ];
    let initializers = [
        weights("w1", &[16, 24]),
        filled("b1", &[24], 0.0),
        weights("w2", &[24, 24]),
        filled("b2", &[24], 0.0),
        weights("w3", &[24, 4]),
        filled("b3", &[4], 0.0),
    ];
    let inputs = [value("x", FLOAT, &[Is(1), Is(16)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(4)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// One encoder block: attention over a mask, LayerNormalization, a feed-forward part with a written-out GELU.
pub fn transformer() -> Vec<u8> {
    let product = |name: &str, input: &str, weight: &str, output: &str| {
        node("MatMul", &format!("/{name}/MatMul"), &[input, weight], &[output])
    };
    let nodes = [
        product("q", "x", "wq", "q"),
        product("k", "x", "wk", "k"),
        product("v", "x", "wv", "v"),
        node("Transpose", "/kt", &["k"], &["kt"]).message(5, ints_attribute("perm", &[0, 2, 1])),
        product("scores", "q", "kt", "raw"),
        node("Div", "/scale", &["raw", "root"], &["scaled"]),
        node("Add", "/mask", &["scaled", "mask"], &["masked"]),
        node("Softmax", "/softmax", &["masked"], &["p"]).message(5, int_attribute("axis", -1)),
        product("context", "p", "v", "context"),
        product("out", "context", "wo", "projected"),
        node("Add", "/residual", &["x", "projected"], &["sum"]),
        node("LayerNormalization", "/ln", &["sum", "gain", "shift"], &["normed"]),
        product("up", "normed", "w1", "up"),
        node("Div", "/gelu/div", &["up", "root2"], &["g1"]),
        node("Erf", "/gelu/erf", &["g1"], &["g2"]),
        node("Add", "/gelu/add", &["g2", "one"], &["g3"]),
        node("Mul", "/gelu/mul", &["up", "g3"], &["g4"]),
        product("down", "g4", "w2", "y"),
    ];
    let initializers = [
        weights("wq", &[8, 8]),
        weights("wk", &[8, 8]),
        weights("wv", &[8, 8]),
        weights("wo", &[8, 8]),
        weights("w1", &[8, 16]),
        weights("w2", &[16, 8]),
        filled("gain", &[8], 1.0),
        filled("shift", &[8], 0.0),
        filled("root", &[], 2.828_427),
        filled("root2", &[], std::f32::consts::SQRT_2),
        filled("one", &[], 1.0),
    ];
    let tokens = [Called("batch"), Called("sequence"), Is(8)];
    let inputs = [
        value("x", FLOAT, &tokens),
        value("mask", FLOAT, &[Called("batch"), Called("sequence"), Called("sequence")]),
    ];
    model(graph(&nodes, &initializers, &inputs, &[value("y", FLOAT, &tokens)]), &[("", 17)])
        .into_bytes()
}

/// An LSTM and a dense layer.
pub fn lstm() -> Vec<u8> {
    let nodes = [
        node("LSTM", "/lstm", &["x", "w", "r"], &["states"])
            .message(5, int_attribute("hidden_size", 4)),
        node("Squeeze", "/squeeze", &["states", "axis"], &["flat"]),
        node("MatMul", "/fc", &["flat", "fc"], &["y"]),
    ];
    let initializers = [
        weights("w", &[1, 16, 3]),
        weights("r", &[1, 16, 4]),
        weights("fc", &[4, 2]),
        ints("axis", &[1]),
    ];
    let inputs = [value("x", FLOAT, &[Is(5), Is(1), Is(3)])];
    let outputs = [value("y", FLOAT, &[Is(5), Is(1), Is(2)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// One step of a GRU, written out in dense layers and gates as PyTorch exports a `GRUCell`.
pub fn gru_cell() -> Vec<u8> {
    let part = |op: &str, inputs: &[&str], output: &str| {
        node(op, &format!("/{output}"), inputs, &[output])
    };
    let split = |input: &str, outputs: &[&str]| {
        node("Split", &format!("/split_{input}"), &[input, "thirds"], outputs)
            .message(5, int_attribute("axis", 1))
    };
    let nodes = [
        part("Gemm", &["x", "wi", "bi"], "gi"),
        part("Gemm", &["h", "wh", "bh"], "gh"),
        split("gi", &["ir", "iz", "in"]),
        split("gh", &["hr", "hz", "hn"]),
        part("Add", &["ir", "hr"], "r0"),
        part("Sigmoid", &["r0"], "r"),
        part("Add", &["iz", "hz"], "z0"),
        part("Sigmoid", &["z0"], "z"),
        part("Mul", &["r", "hn"], "gated"),
        part("Add", &["in", "gated"], "n0"),
        part("Tanh", &["n0"], "n"),
        part("Sub", &["one", "z"], "keep"),
        part("Mul", &["keep", "n"], "new"),
        part("Mul", &["z", "h"], "old"),
        part("Add", &["new", "old"], "y"),
    ];
    let initializers = [
        weights("wi", &[6, 12]),
        weights("wh", &[4, 12]),
        filled("bi", &[12], 0.0),
        filled("bh", &[12], 0.0),
        filled("one", &[], 1.0),
        ints("thirds", &[4, 4, 4]),
    ];
    let inputs = [value("x", FLOAT, &[Is(1), Is(6)]), value("h", FLOAT, &[Is(1), Is(4)])];
    model(graph(&nodes, &initializers, &inputs, &[value("y", FLOAT, &[Is(1), Is(4)])]), &[("", 17)])
        .into_bytes()
}

/// Convolutions in the branches of an `If`, one of them inside a `Loop` inside its branch.
pub fn control_flow() -> Vec<u8> {
    let out = || value("out", FLOAT, &[Is(1), Is(3), Is(8), Is(8)]);
    let body = graph(
        &[
            conv("looped", "carried", "w", "next", 1),
            node("Identity", "go_on", &["again"], &["still"]),
        ],
        &[],
        &[
            value("step", INT64, &[]),
            value("again", BOOL, &[]),
            value("carried", FLOAT, &[Is(1), Is(3), Is(8), Is(8)]),
        ],
        &[value("still", BOOL, &[]), value("next", FLOAT, &[Is(1), Is(3), Is(8), Is(8)])],
    );
    let then = graph(
        &[node("Loop", "loop", &["times", "", "x"], &["out"])
            .message(5, graph_attribute("body", body))],
        &[tensor("times", INT64, &[], &2_i64.to_le_bytes())],
        &[],
        &[out()],
    );
    let otherwise = graph(&[conv("plain", "x", "w", "out", 1)], &[], &[], &[out()]);
    let branch = node("If", "if", &["flag"], &["y"])
        .message(5, graph_attribute("then_branch", then))
        .message(5, graph_attribute("else_branch", otherwise));
    let inputs = [value("flag", BOOL, &[]), value("x", FLOAT, &[Is(1), Is(3), Is(8), Is(8)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(3), Is(8), Is(8)])];
    model(graph(&[branch], &[weights("w", &[3, 3, 3, 3])], &inputs, &outputs), &[("", 17)])
        .into_bytes()
}

/// A convolution between Q/DQ pairs, its weight stored as int8.
pub fn qdq() -> Vec<u8> {
    let nodes = [
        node("QuantizeLinear", "q", &["x", "scale", "zero"], &["xq"]),
        node("DequantizeLinear", "dq", &["xq", "scale", "zero"], &["xd"]),
        node("DequantizeLinear", "dqw", &["w", "scale", "zero"], &["wd"]),
        conv("conv", "xd", "wd", "y", 1),
    ];
    let raw: Vec<u8> = (0..108_u8).collect();
    let initializers = [
        tensor("w", INT8, &[4, 3, 3, 3], &raw),
        filled("scale", &[], 0.05),
        tensor("zero", INT8, &[], &[0]),
    ];
    let inputs = [value("x", FLOAT, &[Is(1), Is(3), Is(8), Is(8)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(4), Is(8), Is(8)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// An int8 weight that is cast and scaled, without any quantized op.
pub fn int8_weights() -> Vec<u8> {
    let nodes = [
        node("Cast", "cast", &["w"], &["f"]).message(5, int_attribute("to", FLOAT)),
        node("Mul", "scale", &["f", "s"], &["wd"]),
        node("MatMul", "fc", &["x", "wd"], &["y"]),
    ];
    let raw: Vec<u8> = (0..=255_u8).cycle().take(512).collect();
    let initializers = [tensor("w", INT8, &[16, 32], &raw), filled("s", &[], 0.01)];
    let inputs = [value("x", FLOAT, &[Is(1), Is(16)])];
    model(
        graph(&nodes, &initializers, &inputs, &[value("y", FLOAT, &[Is(1), Is(32)])]),
        &[("", 17)],
    )
    .into_bytes()
}

/// An image of bytes, cast and scaled to float: a float model.
pub fn byte_image_cnn() -> Vec<u8> {
    let nodes = [
        node("Cast", "cast", &["image"], &["f"]).message(5, int_attribute("to", FLOAT)),
        node("Div", "scale", &["f", "s"], &["x"]),
        conv("conv1", "x", "w", "a", 1),
        conv("conv2", "a", "v", "y", 1),
    ];
    let initializers =
        [weights("w", &[4, 3, 3, 3]), weights("v", &[4, 4, 3, 3]), filled("s", &[], 255.0)];
    let inputs = [value("image", UINT8, &[Is(1), Is(3), Is(16), Is(16)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(4), Is(16), Is(16)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// Half precision throughout.
pub fn fp16_cnn() -> Vec<u8> {
    let half = |name: &str, dims: &[i64]| {
        let raw: Vec<u8> =
            (0..dims.iter().product()).flat_map(|_: i64| 0x2c00_u16.to_le_bytes()).collect();
        tensor(name, FLOAT16, dims, &raw)
    };
    let nodes = [conv("conv1", "x", "w", "a", 1), conv("conv2", "a", "v", "y", 1)];
    let initializers = [half("w", &[4, 3, 3, 3]), half("v", &[4, 4, 3, 3])];
    let inputs = [value("x", FLOAT16, &[Is(1), Is(3), Is(8), Is(8)])];
    let outputs = [value("y", FLOAT16, &[Is(1), Is(4), Is(8), Is(8)])];
    model(graph(&nodes, &initializers, &inputs, &outputs), &[("", 17)]).into_bytes()
}

/// A dense layer whose weight lies in the file `location`, after the first 64 bytes.
pub fn external_at(location: &str) -> Vec<u8> {
    let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
    let weight = header("w", FLOAT, &[16, 8])
        .message(13, entry("location", location))
        .message(13, entry("offset", "64"))
        .message(13, entry("length", "512"))
        .int(14, 1);
    let nodes = [node("MatMul", "fc", &["x", "w"], &["y"])];
    let inputs = [value("x", FLOAT, &[Is(1), Is(16)])];
    model(graph(&nodes, &[weight], &inputs, &[value("y", FLOAT, &[Is(1), Is(8)])]), &[("", 17)])
        .into_bytes()
}

/// A model function in a domain of its own, called twice.
pub fn functions() -> Vec<u8> {
    let function = Message::default()
        .text(1, "Twice")
        .text(4, "a")
        .text(5, "b")
        .message(7, node("Add", "double", &["a", "a"], &["b"]))
        .message(9, opset("", 17))
        .text(10, "local");
    let call = |name: &str, input: &str, output: &str| {
        node("Twice", name, &[input], &[output]).text(7, "local")
    };
    let nodes = [call("first", "x", "t"), call("second", "t", "y")];
    let sides = |name: &str| value(name, FLOAT, &[Is(2)]);
    model(graph(&nodes, &[], &[sides("x")], &[sides("y")]), &[("", 17), ("local", 1)])
        .message(25, function)
        .into_bytes()
}

/// An op that nobody but its maker knows, with a name that tries to write on the reader's screen.
pub fn custom_domain() -> Vec<u8> {
    let nodes = [
        node("Mystery", "`ignore\nthis`", &["x"], &["t"]).text(7, "com.acme\u{1b}[2J"),
        node("Relu", "relu", &["t"], &["y"]),
    ];
    let sides = |name: &str| value(name, FLOAT, &[Is(2)]);
    model(graph(&nodes, &[], &[sides("x")], &[sides("y")]), &[("", 17), ("com.acme\u{1b}[2J", 1)])
        .into_bytes()
}

/// A convolution after one of Quark's own ops.
pub fn quark_ops() -> Vec<u8> {
    let nodes = [
        node("BFPQuantizeDequantize", "bfp", &["x"], &["t"]).text(7, "com.amd.quark"),
        conv("conv", "t", "w", "y", 1),
    ];
    let inputs = [value("x", FLOAT, &[Is(1), Is(3), Is(8), Is(8)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(4), Is(8), Is(8)])];
    model(
        graph(&nodes, &[weights("w", &[4, 3, 3, 3])], &inputs, &outputs),
        &[("", 17), ("com.amd.quark", 1)],
    )
    .into_bytes()
}

/// Weights in Constant nodes, as a tensor, floats and integers; imports repeated, `ai.onnx.ml` first.
pub fn constants() -> Vec<u8> {
    let constant = |output: &str, attribute: Message| {
        node("Constant", &format!("/{output}"), &[], &[output]).message(5, attribute)
    };
    let nodes = [
        constant("w", tensor_attribute("value", weights("", &[4, 3, 3, 3]))),
        constant("gain", floats_attribute("value_floats", &[1.0, 2.0, 3.0, 4.0])),
        constant("shape", ints_attribute("value_ints", &[1, -1])),
        constant("axes", ints_attribute("value_ints", &[1, 2])),
        conv("conv", "x", "w", "a", 1),
        node("Reshape", "flat", &["a", "shape"], &["b"]),
        node("Unsqueeze", "gain2", &["gain", "axes"], &["c"]),
        node("Mul", "mul", &["a", "c"], &["d"]),
        node("Flatten", "flat2", &["d"], &["e"]),
        node("Add", "add", &["b", "e"], &["y"]),
    ];
    let inputs = [value("x", FLOAT, &[Is(1), Is(3), Is(4), Is(4)])];
    let outputs = [value("y", FLOAT, &[Is(1), Is(64)])];
    model(graph(&nodes, &[], &inputs, &outputs), &[("ai.onnx.ml", 2), ("", 13), ("", 17)])
        .into_bytes()
}

/// Inputs that are no tensors, a sparse initializer, and arithmetic only.
pub fn odd_values() -> Vec<u8> {
    let element = Message::default()
        .int(1, FLOAT)
        .message(2, Message::default().message(1, Message::default().int(1, 3)));
    let list = Message::default()
        .message(4, Message::default().message(1, Message::default().message(1, element)));
    let inputs = [Message::default().text(1, "list").message(2, list), value("at", INT64, &[])];
    let nodes = [
        node("SequenceAt", "pick", &["list", "at"], &["x"]),
        node("Mul", "mul", &["x", "s"], &["y"]),
    ];
    let sparse = Message::default()
        .message(1, tensor("s", FLOAT, &[1], &2.5_f32.to_le_bytes()))
        .message(2, tensor("", INT64, &[1], &1_i64.to_le_bytes()))
        .int(3, 3);
    let graph = graph(&nodes, &[], &inputs, &[value("y", FLOAT, &[Is(3)])]).message(15, sparse);
    model(graph, &[("", 17)]).into_bytes()
}

/// Graphs inside graphs, `levels` deep.
pub fn nested(levels: usize) -> Vec<u8> {
    let innermost = graph(&[node("Identity", "", &["x"], &["y"])], &[], &[], &[]);
    let wrapped = (1..levels).fold(innermost, |inner, _| {
        let branch =
            node("If", "", &["c"], &["y"]).message(5, graph_attribute("then_branch", inner));
        Message::default().message(1, branch)
    });
    model(wrapped, &[("", 17)]).into_bytes()
}

/// The models that are read, by file name.
pub fn good() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("byte_image_cnn.onnx", byte_image_cnn()),
        ("channels_last_cnn.onnx", channels_last_cnn()),
        ("constants.onnx", constants()),
        ("control_flow.onnx", control_flow()),
        ("custom_domain.onnx", custom_domain()),
        ("dynamic_cnn.onnx", dynamic_cnn()),
        ("external.onnx", external_at("external.onnx_data")),
        ("external_missing.onnx", external_at("absent.onnx_data")),
        ("fp16_cnn.onnx", fp16_cnn()),
        ("functions.onnx", functions()),
        ("gru_cell.onnx", gru_cell()),
        ("int8_weights.onnx", int8_weights()),
        ("lstm.onnx", lstm()),
        ("mlp.onnx", mlp()),
        ("odd_values.onnx", odd_values()),
        ("paddle_style.onnx", paddle_style()),
        ("qdq.onnx", qdq()),
        ("quark_ops.onnx", quark_ops()),
        ("small_cnn.onnx", small_cnn()),
        ("transformer.onnx", transformer()),
    ]
}

/// Files beside the good models.
pub fn data() -> Vec<(&'static str, Vec<u8>)> {
    vec![("external.onnx_data", vec![0; 64 + 512])]
}

/// The files that are refused, by file name.
pub fn bad() -> Vec<(&'static str, Vec<u8>)> {
    let start = || Message::default().int(1, 8).text(2, "quantplan");
    let cnn = small_cnn();
    // The graph says that it goes on where it ends.
    let node_past_graph = Message::default().varint(1 << 3 | 2).varint(100).raw(b"\x0a\x01x");
    vec![
        ("child_past_parent.onnx", start().message(7, node_past_graph).raw(&[0; 200]).into_bytes()),
        ("empty.onnx", Vec::new()),
        ("endless_varint.onnx", start().raw(&[0x28]).raw(&[0xff; 40]).into_bytes()),
        ("garbage.onnx", (0..=255).rev().collect()),
        ("group.onnx", start().raw(&[0x3b, 0x3c]).into_bytes()),
        ("huge_length.onnx", start().varint(7 << 3 | 2).varint(u64::MAX).raw(b"abc").into_bytes()),
        ("json.onnx", br#"{"model_type": "llama"}"#.to_vec()),
        (
            "lfs_pointer.onnx",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n".to_vec(),
        ),
        ("nested.onnx", nested(200)),
        ("no_graph.onnx", start().message(8, opset("", 17)).into_bytes()),
        ("no_opset.onnx", start().message(7, graph(&[], &[], &[], &[])).into_bytes()),
        ("png.onnx", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec()),
        ("safetensors.onnx", b"\x10\0\0\0\0\0\0\0{\"__metadata__\":{}".to_vec()),
        ("truncated.onnx", cnn[..cnn.len() / 2].to_vec()),
        ("wrong_kind.onnx", start().int(7, 5).into_bytes()),
        ("zip.onnx", b"PK\x03\x04\x14\0\0\0\0\0archive/data.pkl".to_vec()),
    ]
}
