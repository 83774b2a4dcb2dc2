"""Plans, then quantizes: each case through the `quantplan` binary and the real amd-quark.

    python run.py ../../target/release/quantplan [onnx] [sizes] [flags]

A case fails when the plan is refused, the library refuses the plan, or what comes out is not what the
plan promised. `onnx`: power-of-two scales for the NPU, a file that ONNX Runtime loads without custom ops.
`sizes`: the bytes of a quantized Hugging Face model. `flags`: arguments that the programs' parsers take.
Without a name all three run.
"""

import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

import planned

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures/onnx/good"

# model, preset, target, and what must hold of the result.
CASES = [
    ("small_cnn.onnx", "XINT8", "npu_cnn", {"powers": True, "plain": True}),
    ("small_cnn.onnx", "XINT8_ADAROUND", "npu_cnn", {"powers": True, "plain": True}),
    ("small_cnn.onnx", "A8W8", "cpu", {"plain": True}),
    ("small_cnn.onnx", "INT8_CNN_DEFAULT", "cpu", {"plain": True}),
    ("small_cnn.onnx", "INT8_CNN_ACCURATE", "cpu", {"plain": True}),
    ("small_cnn.onnx", "A16W8", "cpu", {"plain": True}),
    ("small_cnn.onnx", "BF16", "cpu", {"plain": True}),
    ("small_cnn.onnx", "S8S8_AAWS", "cpu", {"plain": True}),
    ("small_cnn.onnx", "BFP16", "cpu", {"plain": False, "insist": True}),
    ("mlp.onnx", "UINT8_DYNAMIC_QUANT", "cpu", {"plain": True}),
]


def run(binary, model, preset, target, want, folder):
    """Plans and applies one case; gives what is wrong, and the ops of the result."""
    flags = ["--target", target, *planned.settings(preset=preset), "--samples", "64"]
    if want.get("insist"):
        flags += ["--insist", "preset"]
    try:
        path, plan = planned.plan(binary, FIXTURES / model, folder, *flags)
    except planned.NoPlan as error:
        return [f"no plan\n{error}"], None
    applied = subprocess.run(
        [sys.executable, str(HERE / "apply_onnx_plan.py"), str(path), str(FIXTURES / model),
         f"{folder}/quantized.onnx", "--iterations", "5"],
        capture_output=True, text=True, check=False, cwd=folder,
    )
    lines = [line for line in applied.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        return [f"the library refused the plan\n{applied.stdout[-500:]}{applied.stderr[-1500:]}"], None
    result = json.loads(lines[0].removeprefix("RESULT "))
    wrong = []
    if plan["preset"] != preset:
        wrong.append(f"the plan has {plan['preset']}")
    if "powers" in want and result["scales_are_powers_of_two"] != want["powers"]:
        wrong.append(f"scales are powers of two: {result['scales_are_powers_of_two']}")
    if (result["runs"]["plain"] == "ok") != want["plain"]:
        wrong.append(f"plain ONNX Runtime: {result['runs']['plain']}")
    if result["runs"]["with_quark_ops"] != "ok":
        wrong.append(f"with Quark's ops: {result['runs']['with_quark_ops']}")
    return wrong, result["ops"]


def onnx(binary):
    """Runs every ONNX case; gives how many failed, of how many."""
    failed = 0
    for model, preset, target, want in CASES:
        with tempfile.TemporaryDirectory() as folder:
            wrong, ops = run(binary, model, preset, target, want, folder)
        print(f"{'FAILED' if wrong else 'ok'} {preset} on {target}: {'; '.join(wrong) or ops}", flush=True)
        failed += bool(wrong)
    return failed, len(CASES)


def group(name):
    """The function that runs a group of cases; each needs packages that the others do not."""
    return onnx if name == "onnx" else importlib.import_module(f"torch_{name}").check


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    failures = 0
    for name in sys.argv[2:] or ("onnx", "sizes", "flags"):
        failed, cases = group(name)(binary)
        print(f"{name}: {cases - failed} passed or skipped, {failed} failed", flush=True)
        failures += failed
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
