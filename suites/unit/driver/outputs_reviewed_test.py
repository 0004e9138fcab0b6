#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OUTPUTS.md is what its tables say, and an output, a row or a kind without its partner is named."""
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
driver = options.root / "faults/driver"
outputs, effects = (driver / "outputs.def").read_text(), (driver / "effects.def").read_text()
page = (driver / "OUTPUTS.md").read_text()


def check(outputs_text, effects_text, page_text=page):
    """Runs the check on a tree that has these tables."""
    with tempfile.TemporaryDirectory() as directory:
        there = Path(directory) / "faults/driver"
        there.mkdir(parents=True)
        (there / "graphics_types").symlink_to(driver / "graphics_types")
        for name, text in (("outputs.def", outputs_text), ("effects.def", effects_text), ("OUTPUTS.md", page_text)):
            (there / name).write_text(text)
        return subprocess.run([sys.executable, options.root / "scripts/gen_outputs.py", "--root", directory, "--include", options.include, "--compiler",
                               options.compiler, "--check"], capture_output=True, text=True)


def without(text, beginning):
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(beginning))


row = 'CUAUDIT_OUTPUT(CtxGetCurrent, pctx, "the current context", "its owner\'s")\n'
assert row in outputs
cases = [
    ("as it is", outputs, effects, page, None),
    ("an output without a row", outputs.replace(row, ""), effects, page, "cuCtxGetCurrent: pctx points to CUcontext and has no row"),
    ("a call that no longer acquires", outputs, effects.replace("CUAUDIT_EFFECT(StreamCreate,                                        Acquires,         Stream,              0,  _)",
                                                                "CUAUDIT_EFFECT(StreamCreate, Uses, None, _, _)"), page, "cuStreamCreate: phStream points to CUstream"),
    ("a row without a parameter", outputs + row.replace("pctx", "invented"), effects, page, "cuCtxGetCurrent has no parameter invented"),
    ("a row doubled", outputs + row, effects, page, "one is doubled or malformed"),
    ("a kind that nobody gives back", without(outputs, "CUAUDIT_GIVEN_BACK(Stream,"), effects, page, "no row says how a Stream is given back"),
    ("a page of yesterday", outputs, effects, page + "\n", "is not what this program writes"),
]
older = int(next(line.split()[-1] for line in (Path(options.include) / "cuda.h").read_text(errors="replace").splitlines()
                 if line.startswith("#define CUDA_VERSION"))) < 13000
failures = 0
for name, outputs_text, effects_text, page_text, expected in cases:
    if older and expected in ("cuCtxGetCurrent has no parameter invented", "is not what this program writes"):
        continue  # compared with complete headers only
    done = check(outputs_text, effects_text, page_text)
    good = done.returncode == 0 if expected is None else done.returncode != 0 and expected in done.stderr
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {name}" + ("" if good else f": exit {done.returncode}, {done.stderr.strip()!r}, expected {expected!r}"))
sys.exit(1 if failures else 0)
