"""Whether the size that a Torch plan expects is the size of what Quark writes, within 2 %."""

import contextlib
import io
import os
import tempfile

import apply_torch_plan
import planned
import tiny_models

BOUND = 0.02

# model, and the rows of the table that are set.
CASES = [
    *(("llama", {"global_scheme": scheme}) for scheme in ("int4_wo_128", "uint4_wo_32", "fp8", "int8", "mxfp4")),
    ("llama", {"global_scheme": "ptpc_fp8"}),
    ("llama", {"global_scheme": "nvfp4"}),
    ("llama", {"global_scheme": "fp8", "kv_cache_scheme": "fp8"}),
    ("llama", {"global_scheme": "int4_wo_128", "algorithm": "null", "exclude_layers": '["lm_head","*down_proj"]',
               "layer_quant_config": '{"*o_proj":"fp8"}'}),
    ("llama", {"global_scheme": "fp8", "exclude_layers": "[]"}),
    *(("qwen3_tied", {"global_scheme": scheme}) for scheme in ("uint4_wo_32", "fp8", "mxfp4")),
    *(("qwen3_moe", {"global_scheme": scheme}) for scheme in ("uint4_wo_32", "fp8", "mxfp4")),
    *(("mixtral", {"global_scheme": scheme}) for scheme in ("uint4_wo_32", "fp8")),
    # Its head comes out in MXFP4, excluded or not.
    ("gpt_oss", {"global_scheme": "fp8"}),
]


def difference(binary, model, rows, folder):
    """Bytes that the plan expects, and bytes that are written."""
    _, plan = planned.plan(binary, model, folder, *planned.settings(**rows))
    for row in ("global_scheme", "kv_cache_scheme"):
        assert plan[row] == rows.get(row), f"{row} is {plan[row]}"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        written = apply_torch_plan.apply(plan, str(model), f"{folder}/quantized")
    return plan["expected"]["weight_bytes_after"], written


def check(binary):
    """Runs every case and prints a table; gives the number of those that fail."""
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        models = {name: tiny_models.make(name, root) for name in {name for name, _ in CASES}}
        for name, rows in CASES:
            with tempfile.TemporaryDirectory() as folder:
                # Quark writes files into the working directory.
                os.chdir(folder)
                said = ", ".join(str(value) for value in rows.values())
                try:
                    expected, written = difference(binary, models[name], rows, folder)
                    share = expected / written - 1
                    wrong = abs(share) > BOUND
                    found = f"{expected:>9} {written:>9} {share:+8.2%}"
                except Exception as error:  # noqa: BLE001 - a case that breaks must not hide the others
                    wrong, found = True, f"{type(error).__name__}: {str(error)[:400]}"
                os.chdir(root)
            print(f"{'FAILED' if wrong else 'ok':6} {name:10} {found}  {said}", flush=True)
            failed += wrong
    return failed, len(CASES)
