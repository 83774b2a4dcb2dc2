//! Texts of many kinds, as people paste and write them: each leads to the right skill, or to a question.

use quantplan::planner::route::{Arguments, Reply};

use crate::route::{ask, error};

fn skills(reply: &Reply) -> Vec<&str> {
    reply.routes.iter().map(|way| way.skill.as_str()).collect()
}

#[test]
fn messages_without_their_tracebacks_lead_to_the_skill_that_goes_on() {
    let check = |text: &str, expected: &[&str]| {
        assert_eq!(skills(&error(text)), expected, "{text}");
    };
    check(
        "ImportError: KV cache quantization requires transformers>=4.54. Please install: `pip install 'transformers>=4.54'`",
        &["quark-install"],
    );
    check(
        "ImportError: inverse_quantizer.py requires compressed-tensors>=0.15, but found compressed-tensors==0.12.2 in the environment. Please update compressed-tensors.",
        &["quark-install"],
    );
    check(
        "RuntimeError: GptOssExperts weights are on 'meta' (not materialized). Move fused parameters to a real device before preprocessing.",
        &["quark-torch-debug"],
    );
    check(
        "ValueError: Custom_mode must be one of `quark`, `fp8`, `awq`, got gptq.",
        &["quark-torch-debug"],
    );
    check(
        "ValueError: save_path '/models/q' must differ from pretrained_model_path '/models/q'.",
        &["quark-torch-file2file-quantization", "quark-torch-debug"],
    );
    check(
        "NotImplementedError: Quark's standard (in-memory) quantization flow does not support 'FP8Experts' with is_transposed=True. Use `--file2file_quantization` for this checkpoint instead.",
        &["quark-torch-file2file-quantization", "quark-torch-quant-plan"],
    );
    check(
        "ValueError: AMD Quark does not support using GPTQ with `desc_act=True` and `static_groups=False`. Please use `static_groups=True`, or disable `desc_act`.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "ValueError: The field `is_dynamic` cannot be None when Dtype is int8 in QTensorConfig.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "ValueError: The group_size should be specified in the quantization config when using qscheme=QSchemeType.per_group. Got group_size=None.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "ImportError: Loading a Quark quantized model requires the `quark` library but it was not found in the environment. Please refer to https://quark.docs.amd.com/latest/install.html.",
        &["quark-install"],
    );
    check(
        "ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`",
        &["quark-install"],
    );
    check(
        "ValueError: Detected some but not all shards of model.layers.3.mlp.gate_up_proj are quantized. All shards of fused layers to have the same precision.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 90. Current capability: 80.",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "NotImplementedError: No quark compatible scheme was found. Weight config: {'dtype': 'int4'}, Input config: None",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "RuntimeError: HIP error: invalid device function\nHIP kernel errors might be asynchronously reported",
        &["quark-torch-install"],
    );
    check(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 191.98 GiB",
        &["quark-torch-debug", "quark-torch-quant-plan"],
    );
    check(
        "ValueError: The checkpoint you are trying to load has model type `gr00t_n1_5` but Transformers does not recognize this architecture.",
        &["quark-torch-model-intake", "quark-torch-quant-plan"],
    );
    check(
        "OSError: meta-llama/Llama-3.2-1B does not appear to have a file named model.safetensors",
        &["quark-workspace-validate"],
    );
    check("bash: rocminfo: command not found", &["quark-env-preflight"]);
    check(
        "FileNotFoundError: [Errno 2] No such file or directory: 'calib_images/'",
        &["quark-workspace-validate"],
    );
    check("FileNotFoundError: [Errno 2] No such file or directory: 'g++'", &["quark-install"]);
    check(
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        &["quark-workspace-validate"],
    );
    check(
        "[QUARK-ERROR]: CPU version of custom ops library compilation failed:'gbk' codec can't decode byte 0x92 in position 7760: illegal multibyte sequence",
        &["quark-onnx-install", "quark-onnx-quant-plan"],
    );
    check("NameError: name 'custom_element_types' is not defined", &["quark-onnx-install"]);
    check(
        "ValueError: Unable to get valid quantization scale for weight input 'fc.weight' when quantizing bias 'fc.bias' to int32.",
        &["quark-onnx-debug"],
    );
    check(
        "TypeError: collect_histogram received float64 data for tensor '/Cast_output_0'; only float16/float32 inputs are supported.",
        &["quark-onnx-debug", "quark-onnx-quant-plan"],
    );
    check("ValueError: Initializer 'bn1.running_var' has nan.", &["quark-onnx-debug"]);
    check(
        "RuntimeError: Unable to find data type for weight_name='onnx::MatMul_2831'. shape_inference failed to return a type probably this node is from a different domain or using an input produced by such an operator.",
        &["quark-onnx-debug"],
    );
    check(
        "F20250311 01:44:14.530906 18868 shape_inference.cpp:1499] Check failed: scale.size() == 2 || scale.size() == 3 Scale should have two dimensions",
        &["quark-onnx-debug", "quark-onnx-quant-plan"],
    );
    check(
        "[Vitis AI EP] No. of Operators :   CPU   440",
        &["quark-onnx-debug", "quark-onnx-quant-plan"],
    );
    check(
        "  File \"/v/site-packages/quark/onnx/algorithm/interface.py\", line 186, in x\n    raise\nValueError: Unsupported adaquantt algorithm.",
        &["quark-onnx-debug", "quark-onnx-quant-plan"],
    );
    check(
        "npm ERR! code ERESOLVE unable to resolve dependency tree",
        &["quark-onnx-debug", "quark-torch-debug"],
    );
}

#[test]
fn goals_in_plain_words_and_other_languages_lead_to_one_skill() {
    let check = |text: &str, expected: &str| {
        let reply = ask(Arguments { goal: Some(text.to_owned()), ..Arguments::default() });
        assert_eq!(skills(&reply), [expected], "{text}");
        assert!(reply.ask.is_none(), "{text}");
    };
    check("my quantized resnet outputs garbage on the NPU", "quark-onnx-debug");
    check(
        "my model got slower after quantization on the NPU, most ops fall back to CPU",
        "quark-onnx-debug",
    );
    check("I have an XINT8 model with bad accuracy", "quark-onnx-quant-plan");
    check("does A16W8 work on Strix Halo?", "quark-onnx-quant-plan");
    check("should i use MinMax or Percentile for a transformer onnx", "quark-onnx-quant-plan");
    check("do I need calibration data for fp8?", "quark-torch-quant-plan");
    check("is there a GPU on this box?", "quark-env-preflight");
    check("run calibration with percentile and 500 images", "quark-onnx-quant-plan");
    check("use adaquant instead of adaround", "quark-onnx-quant-plan");
    check("validate /out/quantized_model.onnx against the plan", "quark-onnx-result-validator");
    check("CUDAExecutionProvider is missing in onnxruntime", "quark-onnx-install");
    check("Comment installer onnxruntime pour ROCm ?", "quark-onnx-install");
    check("ich will mein onnx-Modell für die NPU quantisieren", "quark-onnx-ptq-workflow");
    check("quiero cuantizar resnet50.onnx a INT8 para CPU", "quark-onnx-ptq-workflow");
    check("ONNXモデルをINT8に量子化したい", "quark-onnx-ptq-workflow");
    check("我想把Qwen2.5-7B量化成MXFP4", "quark-torch-ptq");
    check("Je veux quantifier un modèle Hugging Face en int4 avec AWQ", "quark-torch-ptq");
    check("quantize meta-llama/Llama-3.1-70B to FP8 for vLLM on MI300X", "quark-torch-ptq");
    check("KV cache in fp8 please", "quark-torch-quant-plan");
    check("exclude lm_head and the first layer from quantization, mxfp4", "quark-torch-quant-plan");
    check("which calibration dataset should I use for a code LLM", "quark-torch-quant-plan");
    check("Is FP8 or MXFP4 better for Qwen3 on MI355X?", "quark-torch-quant-plan");
    check("find the fastest quantization for my LLM on this GPU", "quark-torch-quant-perf");
    check(
        "quantize a 671B DeepSeek checkpoint without loading it into memory",
        "quark-torch-file2file-quantization",
    );
    check(
        "Did quark quantize everything except lm_head in the exported checkpoint?",
        "quark-torch-result-validator",
    );
    check("I need ROCm PyTorch for gfx1151", "quark-torch-install");
    check("is my torch built for ROCm 7?", "quark-torch-install");
    check("find out why my AWQ run crashed", "quark-torch-debug");
    check("pip can't find amd-quark", "quark-install");
    check("怎么安装 amd-quark？", "quark-install");
    check("what drivers does my NPU have", "quark-env-preflight");
    check("where should I save outputs", "quark-workspace-validate");
}

#[test]
fn wishes_that_are_not_clear_or_not_quarks_are_asked_about() {
    for text in [
        "quantize my model",
        "hello",
        "write me a poem about quantization",
        "deploy the model to kubernetes",
        "convert pytorch to onnx",
        "My calibration crashes with an exception",
        "what is the weather in Munich",
        "quantize with bitsandbytes nf4",
    ] {
        let reply = ask(Arguments { goal: Some(text.to_owned()), ..Arguments::default() });
        assert!(reply.ask.is_some(), "{text}: {:?}", skills(&reply));
        assert!((1..=3).contains(&reply.routes.len()), "{text}");
        assert!(reply.recognised.is_none(), "{text}");
    }
}

#[test]
fn a_message_that_a_library_raises_says_in_which_file() {
    let reply = error(
        "ValueError: SmoothQuant requires a non-None calibration_data_reader; the calibration cache stores per-tensor ranges only",
    );
    assert!(reply.recognised.is_none());
    let reason = &reply.routes[0].reason;
    assert!(reason.contains("onnxruntime/quantization"), "{reason}");
}
