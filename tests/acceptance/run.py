"""Plans, then quantizes: each case through the `quantplan` binary and the real amd-quark.

    python run.py ../../target/release/quantplan

A case fails when the plan is refused, the library refuses the plan, or what comes out is not what the
plan promised: power-of-two scales for the NPU, a file that ONNX Runtime loads without custom ops, the
number of quantized layers.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

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


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    for model, preset, target, want in CASES:
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "quant_plan.json"
            command = [
                str(binary), "plan", str(FIXTURES / model), "--target", target, "--set", f"preset={preset}",
                "--samples", "64", "--yes", "--json", "--workspace", folder, "--state-dir", f"{folder}/state",
                "--output", str(plan),
            ]
            if want.get("insist"):
                command += ["--insist", "preset"]
            planned = subprocess.run(command, capture_output=True, text=True, check=False)
            if planned.returncode != 0:
                print(f"FAILED {preset}: no plan\n{planned.stdout[-1500:]}{planned.stderr[-500:]}")
                failed += 1
                continue
            chosen = json.loads(plan.read_text())["preset"]
            applied = subprocess.run(
                [sys.executable, str(HERE / "apply_onnx_plan.py"), str(plan), str(FIXTURES / model),
                 f"{folder}/quantized.onnx", "--iterations", "5"],
                capture_output=True, text=True, check=False, cwd=folder,
            )
            lines = [line for line in applied.stdout.splitlines() if line.startswith("RESULT ")]
            if not lines:
                print(f"FAILED {preset}: the library refused the plan\n{applied.stdout[-500:]}{applied.stderr[-1500:]}")
                failed += 1
                continue
            result = json.loads(lines[0].removeprefix("RESULT "))
            wrong = []
            if chosen != preset:
                wrong.append(f"the plan has {chosen}")
            if "powers" in want and result["scales_are_powers_of_two"] != want["powers"]:
                wrong.append(f"scales are powers of two: {result['scales_are_powers_of_two']}")
            if (result["runs"]["plain"] == "ok") != want["plain"]:
                wrong.append(f"plain ONNX Runtime: {result['runs']['plain']}")
            if result["runs"]["with_quark_ops"] != "ok":
                wrong.append(f"with Quark's ops: {result['runs']['with_quark_ops']}")
            print(f"{'FAILED' if wrong else 'ok'} {preset} on {target}: {'; '.join(wrong) or result['ops']}")
            failed += bool(wrong)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
