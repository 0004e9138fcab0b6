#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of faults/driver are complete, and what is missing, doubled or of yesterday is named.

    tables_test.py effects|outputs --root DIR --include DIR --compiler CXX
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("table", choices=("effects", "outputs"))
parser.add_argument("--root", type=Path, required=True)
parser.add_argument("--include", required=True)
parser.add_argument("--compiler", required=True)
options = parser.parse_args()
driver = options.root / "faults/driver"
effects, outputs, page = ((driver / name).read_text() for name in ("effects.def", "outputs.def", "OUTPUTS.md"))


def run(script, *arguments):
    return subprocess.run([sys.executable, options.root / "scripts" / script, *arguments, "--include", options.include, "--compiler", options.compiler],
                          capture_output=True, text=True)


def generate(effects_text):
    """Makes the driver table of this text."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "effects.def"
        file.write_text(effects_text)
        return run("gen_driver_table.py", "--graphics-types", driver / "graphics_types", "--effects", file, "--out", Path(directory) / "out")


def check(outputs_text, effects_text=effects, page_text=page):
    """Runs the check of OUTPUTS.md on a tree that has these tables."""
    with tempfile.TemporaryDirectory() as directory:
        there = Path(directory) / "faults/driver"
        there.mkdir(parents=True)
        (there / "graphics_types").symlink_to(driver / "graphics_types")
        for name, text in (("outputs.def", outputs_text), ("effects.def", effects_text), ("OUTPUTS.md", page_text)):
            (there / name).write_text(text)
        return run("gen_outputs.py", "--root", directory, "--check")


def without(text, beginning):
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(beginning))


def effects_cases():
    """[(name, what is run, what must be said of it; None: nothing)]"""
    row = next(line for line in effects.splitlines() if line.startswith("CUAUDIT_EFFECT(StreamCreate,"))
    return [
        ("as it is", lambda: generate(effects), None),
        ("a row dropped", lambda: generate(effects.replace(row, "")), "cuStreamCreate is declared by the headers and has no row"),
        ("a row doubled", lambda: generate(effects.replace(row, row + "\n" + row)), "cuStreamCreate has more than one row"),
        ("a row without a function", lambda: generate(effects + row.replace("StreamCreate,", "StreamInvent,") + "\n"),
         "the row cuStreamInvent names no function"),
    ]


def outputs_cases():
    row = 'CUAUDIT_OUTPUT(CtxGetCurrent, pctx, "the current context", "its owner\'s")\n'
    acquires = "CUAUDIT_EFFECT(StreamCreate,                                        Acquires,         Stream,              0,  _)"
    assert row in outputs and acquires in effects
    cases = [
        ("as it is", lambda: check(outputs), None),
        ("an output without a row", lambda: check(outputs.replace(row, "")), "cuCtxGetCurrent: pctx points to CUcontext and has no row"),
        ("a call that no longer acquires", lambda: check(outputs, effects.replace(acquires, "CUAUDIT_EFFECT(StreamCreate, Uses, None, _, _)")),
         "cuStreamCreate: phStream points to CUstream"),
        ("a row doubled", lambda: check(outputs + row), "one is doubled or malformed"),
        ("a kind that nobody gives back", lambda: check(without(outputs, "CUAUDIT_GIVEN_BACK(Stream,")), "no row says how a Stream is given back"),
    ]
    version = next(line.split()[-1] for line in (Path(options.include) / "cuda.h").read_text(errors="replace").splitlines()
                   if line.startswith("#define CUDA_VERSION"))
    if int(version) >= 13000:  # compared with complete headers only
        cases += [
            ("a row without a parameter", lambda: check(outputs + row.replace("pctx", "invented")), "cuCtxGetCurrent has no parameter invented"),
            ("a page of yesterday", lambda: check(outputs, effects, page + "\n"), "is not what this program writes"),
        ]
    return cases


failures = 0
for case, act, expected in effects_cases() if options.table == "effects" else outputs_cases():
    done = act()
    good = done.returncode == 0 if expected is None else done.returncode != 0 and expected in done.stderr
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {case}" + ("" if good else f": exit {done.returncode}, {done.stderr.strip()!r}, expected {expected!r}"))
sys.exit(1 if failures else 0)
