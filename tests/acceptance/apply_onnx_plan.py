"""Carries out an ONNX quant_plan.json with the real library, on random calibration samples.

It builds the quantizer call from the plan and from nothing else: the preset by its name, then the
fields and extra options that the plan carries. It shows that a plan is accepted and what comes out;
random samples say nothing about accuracy.

    python apply_onnx_plan.py plan.json model.onnx quantized.onnx [--iterations N]
"""

import argparse
import collections
import json
import sys

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization.calibrate import CalibrationDataReader, CalibrationMethod

from quark.onnx import (
    Int16Method,
    LayerWiseMethod,
    ModelQuantizer,
    PowerOfTwoMethod,
    get_library_path,
)
from quark.onnx.quantization.config.config import Config
from quark.onnx.quantization.config.custom_config import get_default_config

METHODS = {
    "CalibrationMethod": CalibrationMethod,
    "PowerOfTwoMethod": PowerOfTwoMethod,
    "LayerWiseMethod": LayerWiseMethod,
    "Int16Method": Int16Method,
}

DTYPES = {"float32": np.float32, "float16": np.float16, "int64": np.int64, "int32": np.int32, "uint8": np.uint8}


class RandomSamples(CalibrationDataReader):
    """Yields what the plan says that the reader must yield."""

    def __init__(self, inputs, count):
        rng = np.random.default_rng(0)
        self.samples = []
        for _ in range(max(1, count)):
            sample = {}
            for entry in inputs:
                shape = [int(size) if size.isdigit() else 1 for size in entry["shape"].split("x") if size]
                dtype = DTYPES[entry["dtype"]]
                values = rng.random(shape)
                sample[entry["name"]] = (values if np.issubdtype(dtype, np.floating) else values * 2).astype(dtype)
            self.samples.append(sample)
        self.rewind()

    def get_next(self):
        return next(self.iterator, None)

    def rewind(self):
        self.iterator = iter(self.samples)


def config_of(plan, iterations):
    """The library's config for a plan."""
    specific = plan["onnx_specific"]
    calibration = plan["calibration"]
    config = get_default_config(plan["preset"])
    if calibration["identifier"]:
        family, member = calibration["identifier"].split(".")
        config.calibrate_method = getattr(METHODS[family], member)
    config.enable_npu_cnn = specific["enable_npu_cnn"]
    config.enable_npu_transformer = specific["enable_npu_transformer"]
    config.include_cle = specific["include_cle"]
    config.include_fast_ft = specific["include_fast_ft"]
    config.use_external_data_format = specific["use_external_data_format"]
    config.execution_providers = specific["execution_providers"]
    config.op_types_to_quantize = specific["op_types_to_quantize"] or []
    config.nodes_to_quantize = specific["nodes_to_quantize"] or []
    config.nodes_to_exclude = specific["nodes_to_exclude"] or []
    # JSON has no tuples, and the library takes nothing else.
    config.subgraphs_to_exclude = [tuple(pair) for pair in specific["subgraphs_to_exclude"]]
    for field, value in specific["config_fields"].items():
        assert hasattr(config, field), field
        setattr(config, field, value)
    config.extra_options = {**config.extra_options, **specific["extra_options"]}
    if iterations and "FastFinetune" in config.extra_options:
        config.extra_options["FastFinetune"]["NumIterations"] = iterations
    return config


def described(path):
    """What is in the quantized file."""
    model = onnx.load(path)
    ops = collections.Counter(f"{node.domain or 'ai.onnx'}::{node.op_type}" for node in model.graph.node)
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    quantizers = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    scales = [values[node.input[1]] for node in quantizers if node.input[1] in values]
    logs = [np.log2(np.abs(np.asarray(scale, dtype=np.float64))).ravel() for scale in scales]
    powers = all(np.all(np.abs(log - np.round(log)) < 1e-6) for log in logs) if logs else None
    return ops, powers


ORT_DTYPES = {f"tensor({name})": dtype for name, dtype in {**DTYPES, "float": np.float32}.items()}


def run(path):
    """Whether ONNX Runtime runs the file, without and with Quark's ops."""
    rng = np.random.default_rng(0)
    results = {}
    for name, ops in (("plain", False), ("with_quark_ops", True)):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if ops:
            options.register_custom_ops_library(get_library_path("cpu"))
        try:
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            feed = {}
            for entry in session.get_inputs():
                shape = [size if isinstance(size, int) and size > 0 else 1 for size in entry.shape]
                feed[entry.name] = rng.random(shape).astype(ORT_DTYPES[entry.type])
            session.run(None, feed)
            results[name] = "ok"
        except Exception as error:  # noqa: BLE001 - the message is the result
            results[name] = str(error)[:120]
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan")
    parser.add_argument("model")
    parser.add_argument("output")
    parser.add_argument("--iterations", type=int, default=0, help="cap fast finetuning, to save time")
    arguments = parser.parse_args()
    with open(arguments.plan, encoding="utf-8") as file:
        plan = json.load(file)
    inputs = plan["expected"].get("calibration_inputs", [])
    config = config_of(plan, arguments.iterations)
    reader = RandomSamples(inputs, min(8, plan["calibration"]["data_size"]))
    dynamic = config.use_dynamic_quant
    ModelQuantizer(Config(global_quant_config=config)).quantize_model(
        arguments.model, arguments.output, None if dynamic else reader
    )
    ops, powers = described(arguments.output)
    result = {
        "preset": plan["preset"],
        "ops": dict(sorted(ops.items())),
        "scales_are_powers_of_two": powers,
        "runs": run(arguments.output),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    sys.exit(main())
