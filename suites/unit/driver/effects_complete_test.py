#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The generator accepts effects.def as it is, and names the culprit when a row is missing, doubled or has no function."""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
parser.add_argument("--include", required=True)
parser.add_argument("--compiler", required=True)
options = parser.parse_args()
table = options.root / "faults/driver/effects.def"


def generate(effects_text):
    with tempfile.TemporaryDirectory() as directory:
        effects = Path(directory) / "effects.def"
        effects.write_text(effects_text)
        return subprocess.run(
            [sys.executable, options.root / "scripts/gen_driver_table.py", "--include", options.include, "--graphics-types",
             options.root / "faults/driver/graphics_types", "--effects", effects, "--observed", options.root / "faults/driver/observed_codes.def",
             "--compiler", options.compiler, "--out", Path(directory) / "out"], capture_output=True, text=True)


text = table.read_text()
row = next(line for line in text.splitlines() if line.startswith("CUAUDIT_EFFECT(StreamCreate,"))
cases = [
    ("as it is", text, None),
    ("a row dropped", text.replace(row, ""), "cuStreamCreate is declared by the headers and has no row"),
    ("a row doubled", text.replace(row, row + "\n" + row), "cuStreamCreate has more than one row"),
    ("a row without a function", text + row.replace("StreamCreate,", "StreamInvent,") + "\n", "the row cuStreamInvent names no function"),
]
failures = 0
for name, effects, expected in cases:
    done = generate(effects)
    good = done.returncode == 0 if expected is None else done.returncode != 0 and expected in done.stderr
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {name}" + ("" if good else f": exit {done.returncode}, {done.stderr.strip()!r}, expected {expected!r}"))
sys.exit(1 if failures else 0)
