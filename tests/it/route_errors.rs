//! Error texts as people paste them, and where each leads.

use crate::route::error;

/// A traceback through these files, outermost first, as `path:function:source line`.
fn traceback(frames: &[&str], message: &str) -> String {
    let mut text = "Traceback (most recent call last):\n".to_owned();
    for (line, frame) in frames.iter().enumerate() {
        let mut parts = frame.splitn(3, ':');
        let mut part = || parts.next().unwrap_or("pass");
        text.push_str(&format!(
            "  File \"{}\", line {}, in {}\n    {}\n",
            part(),
            100 + line * 37,
            part(),
            part()
        ));
    }
    text + message
}

const API: &str = "/opt/venv/lib/python3.12/site-packages/quark/onnx/quantization/api.py:quantize_model:quantize_static(model_input, model_output, calibration_data_reader, **kwargs)";
const QUANTIZE: &str = "/opt/venv/lib/python3.12/site-packages/quark/onnx/quantization/quantize.py:quantize_static:run_calibration(model, reader)";
const ORT: &str = "/opt/venv/lib/python3.12/site-packages/onnxruntime/capi/onnxruntime_inference_collection.py:_create_inference_session:sess = C.InferenceSession(session_options, self._model_path, True, self._read_config_from_model)";
const CLI: &str = "/work/examples/torch/language_modeling/llm_ptq/quantize_quark.py:main:model = quantizer.quantize_model(model, calib_dataloader)";
const HF: &str = "/opt/venv/lib/python3.12/site-packages/transformers/models/auto/auto_factory.py:from_pretrained:config, kwargs = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code, **kwargs)";
const TORCH_API: &str = "/opt/venv/lib/python3.12/site-packages/quark/torch/quantization/api.py:quantize_model:model = self._do_calibration(model, dataloader)";

#[test]
fn real_tracebacks_are_recognised() {
    let check = |frames: &[&str], message: &str, id: &str, skill: &str| {
        let text = traceback(frames, message);
        let reply = error(&text);
        let seen = reply.recognised.as_ref().map(|r| r.id.as_str());
        assert_eq!(seen, Some(id), "{text}");
        assert_eq!(reply.routes[0].skill, *skill, "{text}");
        assert!(reply.ask.is_none(), "{text}");
    };
    let script = "/home/me/quant.py:<module>:import thing";
    let debug = "quark-onnx-debug";
    let install = "quark-onnx-install";
    let intake = "quark-onnx-model-intake";
    check(
        &["<stdin>:<module>:import quark"],
        "ModuleNotFoundError: No module named 'quark'\n",
        "quark-missing",
        "quark-install",
    );
    check(
        &[script],
        "ModuleNotFoundError: No module named 'onnxruntime.quantization'; 'onnxruntime' is not a package",
        "onnxruntime-missing",
        install,
    );
    check(&[script], "ModuleNotFoundError: No module named 'onnx'", "onnx-missing", install);
    check(
        &["/v/lib/python3.11/site-packages/quark/onnx/__init__.py:<module>:import torch"],
        "ModuleNotFoundError: No module named 'torch'",
        "torch-missing",
        "quark-torch-install",
    );
    check(
        &["/v/lib/python3.11/site-packages/quark/torch/__init__.py:<module>:import transformers"],
        "ModuleNotFoundError: No module named 'transformers'",
        "transformers-missing",
        "quark-install",
    );
    check(
        &[script],
        "ModuleNotFoundError: No module named 'evaluate'",
        "dependency-missing",
        "quark-install",
    );
    check(
        &[
            "/v/site-packages/quark/onnx/operators/custom_ops/__init__.py:<module>:verify_ninja_availability()",
        ],
        "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
        "ninja-missing",
        install,
    );
    check(
        &[
            "/v/site-packages/quark/onnx/operators/custom_ops/build_custom_ops.py:compile_library:subprocess.run(command)",
        ],
        "RuntimeError: Error building extension 'custom_ops_gpu': [1/7] /usr/local/cuda/bin/nvcc --generate-dependencies\nfatal error: cuda_runtime.h: No such file or directory",
        "custom-ops-compile",
        install,
    );
    check(
        &[API, ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.Fail: [ONNXRuntimeError] : 1 : FAIL : Failed to load library C:\\Users\\me\\quark\\custom_ops.dll with error: 126",
        "custom-op-library-load",
        install,
    );
    check(
        &["infer.py:<module>:ort.InferenceSession('m.onnx')", ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from m.onnx failed:Fatal error: com.amd.quark:BFPQuantizeDequantize(-1) is not a registered function/op",
        "custom-op-unregistered",
        debug,
    );
    check(
        &[ORT],
        "ValueError: Specified provider 'ROCMExecutionProvider' is not in available provider names. Available providers: 'CPUExecutionProvider'",
        "provider-not-available",
        debug,
    );
    check(
        &[],
        "2026-03-01 11:02:33.1 [E:onnxruntime:Default, provider_bridge_ort.cc:1992 TryGetProviderInfo_CUDA] /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:1637 Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open shared object file: No such file or directory",
        "provider-library",
        install,
    );
    check(
        &[script],
        "AttributeError: module 'onnxruntime' has no attribute 'SessionOptions'",
        "two-onnxruntimes",
        install,
    );
    check(
        &[API],
        "FileNotFoundError: Input model file ./nets/det_v3.onnx does not exist.",
        "model-file-missing",
        "quark-workspace-validate",
    );
    check(
        &[
            API,
            "/v/site-packages/onnx/external_data_helper.py:load_external_data_for_tensor:with open(path) as f",
        ],
        "FileNotFoundError: [Errno 2] No such file or directory: '/nets/llm/decoder.onnx_data'",
        "external-data-missing",
        intake,
    );
    check(
        &[API, QUANTIZE],
        "ValueError: Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 3189562441",
        "model-over-2gb",
        debug,
    );
    check(
        &[ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf: [ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from /nets/a.onnx failed:Protobuf parsing failed.",
        "model-invalid",
        intake,
    );
    check(
        &[API, QUANTIZE],
        "ValueError: Per-Channel support with QDQ format requires onnx opset version 13 or above.",
        "per-channel-opset",
        intake,
    );
    check(
        &[API],
        "[QUARK-ERROR]: The input model is already a quantized model.\nTraceback (most recent call last):\n  File \"/v/site-packages/quark/onnx/quant_utils.py\", line 88, in scan\n    x = ops[0]\nIndexError: list index out of range",
        "already-quantized",
        intake,
    );
    check(
        &[
            API,
            "/v/site-packages/onnxruntime/quantization/shape_inference.py:quant_pre_process:raise Exception",
        ],
        "Exception: Incomplete symbolic shape inference",
        "shape-inference",
        intake,
    );
    check(
        &[API, "/v/site-packages/onnx/checker.py:check_model:C.check_model(x)"],
        "onnx.onnx_cpp2py_export.checker.ValidationError: No Op registered for MyPlugin_TRT with domain_version of 17",
        "unknown-op-domain",
        intake,
    );
    check(
        &[
            API,
            "/v/site-packages/quark/onnx/calibration/data_readers.py:get_reader:raise ValueError",
        ],
        "ValueError: A calibration data reader is required for quantization.",
        "reader-required",
        debug,
    );
    check(
        &[API, QUANTIZE],
        "ValueError: The data reader should implement the '__len__' method to provide the data size.",
        "reader-no-length",
        debug,
    );
    check(&[API, QUANTIZE], "ValueError: No data is collected.", "no-data-collected", debug);
    check(
        &[API, QUANTIZE],
        "ValueError: Invalid averaging constant, which should not be < 0 or > 1.",
        "averaging-constant",
        debug,
    );
    check(
        &[API, QUANTIZE, ORT],
        "ValueError: Required inputs (['pixel_values']) are missing from input feed (['input.1']).",
        "calibration-input-missing",
        debug,
    );
    check(
        &[API, QUANTIZE, ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n index: 1 Got: 224 Expected: 3\n Please fix either the inputs/outputs or the model.",
        "calibration-input-shape",
        debug,
    );
    check(
        &[API, QUANTIZE, ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. Actual: (tensor(uint8)) , expected: (tensor(float))",
        "calibration-input-type",
        debug,
    );
    check(
        &[
            API,
            QUANTIZE,
            "/v/site-packages/onnxruntime/quantization/calibrate.py:collect_absolute_value:data_arr = np.asarray(data_arr)",
        ],
        "ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after 2 dimensions. The detected shape was (8, 1) + inhomogeneous part.",
        "histogram-dynamic-shapes",
        debug,
    );
    check(
        &[API, QUANTIZE],
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 61.0 GiB for an array with shape (16367255552,) and data type float32",
        "calibration-memory",
        debug,
    );
    check(
        &["plan.py:<module>:get_default_config('BFP8')"],
        "ValueError: Unexpected config name: BFP8",
        "preset-unknown",
        debug,
    );
    check(
        &[API],
        "ValueError: Only ExtendedQuantFormat.QDQ supports wide bits quantization types.",
        "wide-types-format",
        debug,
    );
    check(
        &[API, QUANTIZE],
        "RuntimeError: Unsupported DequantizeLinear operator, dequantization from 10.",
        "block-format-qdq",
        debug,
    );
    check(
        &[API, QUANTIZE],
        "ValueError: Only per-tensor quantization is supported when enable_npu_cnn=True, 'per_channel' must be False.",
        "npu-cnn-per-channel",
        debug,
    );
    check(
        &[API, QUANTIZE],
        "ValueError: When enable_npu_cnn=True, ActivationSymmetric must be set to true.",
        "npu-cnn-activation-symmetric",
        debug,
    );
    check(&[API], "TypeError: Only str and tuple are supported.", "subgraph-not-tuple", debug);
    check(
        &[
            API,
            "/v/lib/site-packages/quark/onnx/algorithm/bc/bias_correction.py:bias_correction:quant_output = outputs[name]",
        ],
        "KeyError: '/backbone/conv2/Conv_output_0_DequantizeLinear_Output'",
        "bias-correction-extended",
        debug,
    );
    check(
        &[
            API,
            "/v/site-packages/quark/onnx/finetuning/fast_finetune.py:fast_finetune:model.to(optim_device)",
            "/v/site-packages/torch/cuda/__init__.py:_lazy_init:raise AssertionError",
        ],
        "AssertionError: Torch not compiled with CUDA enabled",
        "finetune-device",
        debug,
    );
    check(
        &[
            API,
            "/v/site-packages/quark/onnx/finetuning/train_torch/train_model.py:train:loss.backward()",
        ],
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 7.78 GiB of which 12.31 MiB is free.",
        "finetune-memory",
        debug,
    );
    check(
        &[API],
        "AssertionError: Please specify the rotation config via option 'RConfigPath'",
        "quarot-config",
        debug,
    );
    check(
        &["x.py:<module>:AutoMixprecisionConfig(target_quant_type=t)"],
        "TypeError: AutoMixprecisionConfig.__init__() got an unexpected keyword argument 'act_target_quant_type'",
        "automixprecision-interface",
        debug,
    );
    check(
        &[],
        "WARNING: Logging before InitGoogleLogging() is written to STDERR\nF20260110 vaip_core.cpp:322 [VAIP] check fail: subgraph compile failed at node /head/MaxPool: 160 vs 159",
        "npu-compile",
        debug,
    );
    check(
        &[API, ORT],
        "onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. CUDA failure 2: out of memory ; GPU=0",
        "gpu-memory-onnx",
        debug,
    );
    check(
        &["q.py:<module>:open(out)"],
        "PermissionError: [Errno 13] Permission denied: '/srv/models/out/yolo_int8.onnx'",
        "permission",
        "quark-workspace-validate",
    );
    check(
        &[CLI, TORCH_API],
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB (GPU 0; 15.77 GiB total capacity)",
        "gpu-memory",
        "quark-torch-debug",
    );
    check(
        &[CLI, "/v/site-packages/torch/nn/functional.py:linear:return x"],
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported",
        "no-kernel-image",
        "quark-torch-install",
    );
    check(
        &[CLI, HF],
        "ValueError: Unrecognized model in /data/my-net. Should have a `model_type` key in its config.json, or contain one of the following strings in its name: albert, bert",
        "trust-remote-code",
        "quark-torch-model-intake",
    );
    check(
        &[CLI, HF],
        "OSError: Can't load tokenizer for 'acme/net-7b'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.",
        "tokenizer",
        "quark-torch-model-intake",
    );
    check(
        &[CLI, HF],
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-2) Cannot access gated repo for url",
        "hub-access",
        "quark-workspace-validate",
    );
    check(
        &[CLI, "/v/site-packages/transformers/cache_utils.py:__getattr__:raise"],
        "AttributeError: 'DynamicCache' object has no attribute 'get_usable_length'",
        "transformers-version",
        "quark-install",
    );
    check(
        &[CLI, TORCH_API],
        "ValueError: Unsupported quantization scheme: w_mxfp5",
        "scheme-unknown",
        "quark-torch-debug",
    );
    check(
        &[CLI, TORCH_API],
        "NotImplementedError: No built-in gptq configuration is available for the qwen3_moe architecture. Please provide one.",
        "algorithm-not-built-in",
        "quark-torch-debug",
    );
    check(
        &[
            CLI,
            "/v/site-packages/quark/torch/quantization/observer/observer.py:forward:raise ValueError",
        ],
        "ValueError: The tensor's dim 13696 is not divisible by group_size=512",
        "group-size",
        "quark-torch-debug",
    );
    check(
        &[CLI, TORCH_API],
        "KeyError: 'model.layers.17.mlp.experts.3.up_proj'",
        "template-layers-mismatch",
        "quark-torch-debug",
    );
    check(
        &[CLI, TORCH_API],
        "RuntimeError: expected scalar type BFloat16 but found Half",
        "dtype-mismatch",
        "quark-torch-debug",
    );
    check(
        &[CLI, "/v/site-packages/quark/torch/export/gguf_export/api.py:convert:import gguf"],
        "ModuleNotFoundError: No module named 'gguf'",
        "gguf-missing",
        "quark-install",
    );
    check(
        &[CLI, TORCH_API],
        "MemoryError: Out of memory. The available GPU memory is insufficient to load the entire model. You can try adding '--multi_device' ",
        "sharded-memory",
        "quark-torch-debug",
    );
    check(
        &[CLI, TORCH_API],
        "RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!",
        "mxfp4-needs-gpu",
        "quark-torch-debug",
    );
    check(
        &[],
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. amd-quark 0.13 requires onnx<=1.22.0,>=1.21.0, but you have onnx 1.16.0 which is incompatible.",
        "version-conflict",
        "quark-install",
    );
}

#[test]
fn a_traceback_of_two_hundred_lines_is_read_to_its_message() {
    let frame = "/v/site-packages/torch/nn/modules/module.py:_call_impl:return forward_call(*args, **kwargs)  # trust_remote_code out of memory";
    let mut frames = vec![API, QUANTIZE];
    frames.extend(std::iter::repeat_n(frame, 100));
    let reply = error(&traceback(&frames, "ValueError: No data is collected.\n"));
    assert_eq!(reply.recognised.unwrap().id, "no-data-collected");
}

#[test]
fn an_unknown_error_goes_to_the_library_that_raised_it() {
    let check = |frames: &[&str], message: &str, skills: &[&str]| {
        let text = traceback(frames, message);
        let reply = error(&text);
        assert!(reply.recognised.is_none(), "{text}: {:?}", reply.recognised);
        let found: Vec<&str> = reply.routes.iter().map(|way| way.skill.as_str()).collect();
        assert_eq!(found, skills, "{text}");
    };
    check(&[API, QUANTIZE], "RuntimeError: the moon is full", &["quark-onnx-debug"]);
    check(&[ORT], "RuntimeError: something else", &["quark-onnx-debug"]);
    check(&[CLI, TORCH_API], "RuntimeError: the moon is full", &["quark-torch-debug"]);
    check(&[HF], "TypeError: 'NoneType' object is not iterable", &["quark-torch-debug"]);
    // Quark-ONNX calls torch: its own frames say which flow it was.
    let torch = "/v/site-packages/torch/autograd/__init__.py:backward:run()";
    check(&[API, torch], "RuntimeError: element 0 of tensors", &["quark-onnx-debug"]);
    check(&[], "it just stopped", &["quark-onnx-debug", "quark-torch-debug"]);
    assert!(error("it just stopped").ask.is_some());
}
