"""The plans of the cases: what `quantplan plan` writes without asking anybody."""

import json
import pathlib
import subprocess


class NoPlan(Exception):
    """The plan was refused, or something has to happen first."""


def plan(binary, model, folder, *flags):
    """Plans a model; gives the plan's path and what is in it."""
    output = pathlib.Path(folder) / "quant_plan.json"
    command = [
        str(binary), "plan", str(model), "--yes", "--json", "--workspace", str(folder),
        "--state-dir", f"{folder}/state", "--output", str(output), "--overwrite", *flags,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise NoPlan(f"{done.stdout[-1500:]}{done.stderr[-500:]}")
    return output, json.loads(output.read_text())


def settings(**values):
    """The flags that set rows of the table."""
    return [part for row, value in values.items() for part in ("--set", f"{row}={value}")]
