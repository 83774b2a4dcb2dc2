"""Whether the arguments of Torch plans are taken by the programs' own parsers, and mean what the plans say.

No model is loaded. `quark-cli` is part of the package. `quantize_quark.py` is not: its parser is looked at
where QUARK_CHECKOUT names a checkout of the Quark repository.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import pathlib
import tempfile

import apply_torch_plan
import planned
import tiny_models
from quark.experimental.cli.main import get_cli_parser
from quark.torch import LLMTemplate

SCRIPT = "examples/torch/language_modeling/llm_ptq/quantize_quark.py"
CLI = "quark-cli torch-llm-ptq"
# Schemes that no exporter takes.
NOT_SAVED = {"mx6", "mx9", "bfp16"}

# Rows of the table that are set, and further flags of `quantplan plan`.
CASES = [
    *(({"global_scheme": scheme} | ({"export_format": "none"} if scheme in NOT_SAVED else {}), [])
      for scheme in LLMTemplate.get_supported_schemes()),
    ({"global_scheme": "fp8", "kv_cache_scheme": "fp8"}, []),
    ({"global_scheme": "fp8", "kv_cache_scheme": "fp8", "min_kv_scale": 1.0}, []),
    ({"global_scheme": "fp8", "kv_cache_scheme": "fp8", "min_kv_scale": 0.5, "kv_cache_post_rope": "true"}, []),
    ({"global_scheme": "fp8", "kv_cache_scheme": "fp8", "attention_scheme": "fp8"}, []),
    *(({"global_scheme": "int4_wo_128", "algorithm": algorithm}, []) for algorithm in
      ("null", "awq", "gptq", "gptaq", "qronos", "awq,gptq", "smoothquant,gptq", "rotation,gptq")),
    *(({"global_scheme": "int8", "algorithm": algorithm}, []) for algorithm in ("smoothquant", "autosmoothquant")),
    ({"global_scheme": "mxfp4", "algorithm": "rotation"}, []),
    ({"global_scheme": "int4_wo_128", "algorithm": "awq", "algorithm_config": "/tmp/awq.json"}, []),
    ({"global_scheme": "fp8", "exclude_layers": "null"}, []),
    ({"global_scheme": "fp8", "exclude_layers": "[]"}, []),
    ({"global_scheme": "fp8", "exclude_layers": '["lm_head","*down_proj"]'}, []),
    ({"global_scheme": "mxfp4", "layer_quant_config": '{"*o_proj":"fp8","*.0.mlp.*":"mxfp6_e2m3"}'}, []),
    *(({"global_scheme": "ptpc_fp8", "device_strategy": strategy}, []) for strategy in
      ("single", "multi_device", "multi_gpu", "cpu", "file_to_file")),
    ({"global_scheme": "uint4_wo_32", "export_format": "gguf"}, []),
    ({"global_scheme": "fp8", "export_format": "none"}, []),
    ({"global_scheme": "uint4_wo_128", "algorithm": "awq", "custom_mode": "awq"}, []),
    ({"global_scheme": "fp8", "custom_mode": "fp8"}, []),
    *(({"global_scheme": "fp8", "evaluation_intent": intent}, []) for intent in ("none", "smoke", "full", "mlperf")),
    ({"global_scheme": "fp8", "trust_remote_code": "true"}, []),
    ({"global_scheme": "fp8", "template_file": "/tmp/template.json"}, []),
    ({"global_scheme": "fp8", "calibration.dataset": "wikitext", "calibration.num_calib_data": 64,
      "calibration.seq_len": 128, "calibration.batch_size": 2}, []),
    ({"global_scheme": "fp8", "entry_point": "quantize_quark.py"}, []),
    ({}, ["--goal", "best accuracy"]),
    ({}, ["--goal", "smallest"]),
    ({}, ["--goal", "AMD MI355X"]),
]


def script_parser(path):
    """The parser that the script makes, without running the script."""
    tree = ast.parse(path.read_text())
    main = next(node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test))
    until = next(at for at, node in enumerate(main.body) if "parse_args()" in ast.unparse(node))
    names = {"argparse": argparse, "LLMTemplate": LLMTemplate, "os": os}
    exec(compile(ast.Module(main.body[:until], []), str(path), "exec"), names)  # noqa: S102
    return names["parser"]


def parsers():
    """The parsers there are, by the name of the entry point, and the words that come first."""
    found = {CLI: (get_cli_parser(), ["torch-llm-ptq"])}
    checkout = os.environ.get("QUARK_CHECKOUT")
    if checkout:
        found["quantize_quark.py"] = (script_parser(pathlib.Path(checkout) / SCRIPT), [])
    return found


def parse(parser, words):
    """What the parser makes of the words; its complaint is the error."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parser.parse_args(words)
    except SystemExit as error:
        raise ValueError(said.getvalue().strip().splitlines()[-1]) from error


def meaning(plan, script):
    """What the arguments must come out as."""
    strategy = plan["device_strategy"]
    means = {
        "quant_scheme": plan["global_scheme"],
        "kv_cache_dtype": plan["kv_cache_scheme"],
        "quant_algo": plan["algorithm"].split(",") if plan["algorithm"] else None,
        "exclude_layers": plan["exclude_layers"],
        "layer_quant_scheme": [list(pair) for pair in plan["layer_quant_config"].items()] or None,
        "dataset": plan["calibration"]["dataset"],
        "num_calib_data": plan["calibration"]["num_calib_data"],
        "seq_len": plan["calibration"]["seq_len"],
        "batch_size": plan["calibration"]["batch_size"],
        "multi_device": strategy == "multi_device",
        "skip_evaluation": plan["evaluation_intent"] == "none",
    }
    if strategy == "cpu":
        means["device"] = "cpu"
    if not script:
        return {
            **means,
            "no_trust_remote_code": not plan["trust_remote_code"],
            "template_file": plan.get("template_file"),
        }
    config = plan.get("algorithm_config")
    export = plan["export_format"]
    return {
        **means,
        "trust_remote_code": plan["trust_remote_code"],
        "multi_gpu": "auto" if strategy == "multi_gpu" else None,
        "file2file_quantization": strategy == "file_to_file",
        "attention_dtype": plan.get("attention_scheme"),
        "min_kv_scale": plan.get("min_kv_scale", 0.0),
        "kv_cache_post_rope": plan.get("kv_cache_post_rope", False),
        "model_export": None if export == "none" else [export],
        "custom_mode": plan.get("custom_mode", "quark"),
        "quant_algo_config_file": [[plan["algorithm"], config]] if config else None,
    }


def differences(plan, parser, first):
    """Where what the parser makes of the arguments is not what the plan says."""
    words = [*first, "--model_dir", "/model", "--output_dir", "/quantized", *plan["arguments"]]
    found = vars(parse(parser, words))
    wanted = meaning(plan, script=not first)
    # What the programs do with their arguments next; it checks the names.
    if plan["model"]["model_type"] in LLMTemplate.list_available():
        apply_torch_plan.config_of(plan)
    return [f"{name} is {found[name]}, not {value}" for name, value in wanted.items() if found[name] != value]


def departures(plan, rows):
    """The rows that the plan does not take as they were asked for."""
    wrong = []
    for row, asked in rows.items():
        found = plan
        for part in row.split("."):
            found = found.get(part)
        if row == "evaluation_intent":
            found = plan.get("evaluation_metric", found)
        # `null` asks for the template's list, and an option that stays as it is is left out.
        if row != "exclude_layers" or asked != "null":
            try:
                asked = json.loads(str(asked))
            except ValueError:
                pass
            if found != asked:
                wrong.append(f"{row} is {found} in the plan")
    return wrong


def check(binary):
    """Runs every case; gives how many failed, of how many."""
    known = parsers()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        model = tiny_models.make("llama", folder)
        for rows, flags in CASES:
            said = ", ".join([*(f"{row}={value}" for row, value in rows.items()), *flags[1:]])
            entry = ""
            try:
                insisted = [part for row in rows for part in ("--insist", row)]
                _, plan = planned.plan(binary, model, folder, *planned.settings(**rows), *insisted, *flags)
                entry = plan["entry_point"]
                wrong = departures(plan, rows)
                if entry in known:
                    wrong += differences(plan, *known[entry])
                state = "FAILED" if wrong else "ok" if entry in known else "skipped"
            except Exception as error:  # noqa: BLE001 - a case that breaks must not hide the others
                wrong, state = [f"{type(error).__name__}: {str(error)[:400]}"], "FAILED"
            print(f"{state:7} {entry:24} {said}{': ' if wrong else ''}{'; '.join(wrong)}", flush=True)
            failed += bool(wrong)
    return failed, len(CASES)
