"""Carries out a Torch quant_plan.json with the real library on a CPU, on random tokens.

It builds the config from the plan and from nothing else, and takes the steps that `quark-cli
torch-llm-ptq` takes. Calibration reads a few short samples: what is written has the same size, and
random tokens say nothing about accuracy.

    python apply_torch_plan.py plan.json MODEL_FOLDER OUTPUT_FOLDER
"""

import argparse
import json
import pathlib

import torch
from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors
from quark.torch.utils.llm import get_model, preprocess_for_quantization


def config_of(plan):
    """The library's config for a plan."""
    config = LLMTemplate.get(plan["model"]["model_type"]).get_config(
        scheme=plan["global_scheme"],
        algorithm=plan["algorithm"].split(",") if plan["algorithm"] else None,
        kv_cache_scheme=plan["kv_cache_scheme"],
        attention_scheme=plan.get("attention_scheme"),
        min_kv_scale=plan.get("min_kv_scale", 0.0),
        layer_config=plan["layer_quant_config"],
        exclude_layers=plan["exclude_layers"],
    )
    config.kv_cache_post_rope = plan.get("kv_cache_post_rope", False)
    return config


def samples(plan, vocabulary):
    """Random tokens, of the plan's samples the first few, and short."""
    calibration = plan["calibration"]
    count, length = min(4, calibration["num_calib_data"]), min(32, calibration["seq_len"])
    torch.manual_seed(0)
    return [torch.randint(0, vocabulary, (1, length)) for _ in range(count)]


def apply(plan, model, output):
    """Quantizes and exports; gives the bytes of the safetensors files."""
    assert plan["export_format"] == "hf_format", plan["export_format"]
    model, _ = get_model(model, "auto", "cpu", False, False, trust_remote_code=plan["trust_remote_code"])
    preprocess_for_quantization(model)
    quantizer = ModelQuantizer(config_of(plan))
    model = quantizer.quantize_model(model, samples(plan, model.config.vocab_size))
    model = quantizer.freeze(model)
    with torch.no_grad():
        export_safetensors(
            model=model,
            output_dir=output,
            custom_mode=plan.get("custom_mode", "quark"),
            weight_format="real_quantized",
            pack_method="reorder",
        )
    return sum(file.stat().st_size for file in pathlib.Path(output).glob("*.safetensors"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan")
    parser.add_argument("model")
    parser.add_argument("output")
    arguments = parser.parse_args()
    plan = json.loads(pathlib.Path(arguments.plan).read_text())
    print("RESULT " + json.dumps({"bytes": apply(plan, arguments.model, arguments.output)}))


if __name__ == "__main__":
    main()
