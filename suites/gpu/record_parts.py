#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch run on a GPU, recorded there and explained elsewhere.

    record_parts.py --explain FILE --tool build/dev/bin/cuaudit      on any machine: exit 0 as expected, 1 otherwise, 77 no such file

scripts/gpu_check --only record makes the file (pytorch.journal in its --out directory, some megabytes at most) and measures what recording costs: plain and
recorded runs of 400 steps in turn, medians. Commit the file as measurements/DEVICE/pytorch.journal.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "programs/torch_recorded.py"
STEPS, LEAKS = 12, 3
LARGEST = 4_000_000  # bytes that are committed


def wrong_in(tool, file):
    """What an explanation of the recording lacks, on this machine; None: it was made by a cuaudit of other headers or another version."""
    seen = subprocess.run([str(tool), "explain", str(file)], capture_output=True, text=True)
    if seen.returncode == 2 and re.search("another version of cuaudit|other CUDA headers", seen.stderr):
        return None
    cycles = subprocess.run([str(tool), "cycles", "--from-journal", str(file)], capture_output=True, text=True)
    expected = {
        "explain: exit 1": seen.returncode == 1,
        "its beginning": "it begins with the program" in seen.stdout,
        "the genuine driver": "on the genuine driver" in seen.stdout,
        f"{LEAKS} streams left": re.search(rf"\b{LEAKS} stream\b", seen.stdout) is not None,
        "their place, a Python function": "forget_stream" in seen.stdout,
        "a build id of a module that is not here": os.path.exists("/dev/nvidiactl") or "build id" in seen.stdout,
        "cycles: judged": cycles.returncode in (1, 3),
        "cycles: the streams": "cuStreamCreate" in cycles.stdout,
    }
    return [name for name, holds in expected.items() if not holds]


def record_pytorch(check, python):
    """Records some steps for a machine without a GPU, then what recording costs."""
    journal = check.out / "pytorch.journal"
    journal.unlink(missing_ok=True)
    record = [check.tool, "record", "--driver=real", "--journal", journal, "--"]
    plain = check.run([python, PROGRAM, STEPS, LEAKS])
    if plain.returncode == 77:
        return check.skip("record pytorch", plain.stderr.strip())
    done = check.run([*record, python, PROGRAM, STEPS, LEAKS])
    size = journal.stat().st_size if journal.is_file() else 0
    missing = wrong_in(check.tool, journal) if size else ["a recording"]
    check.note("record pytorch", done.returncode == 0 and done.stdout == plain.stdout and missing == [] and size < LARGEST, bytes=size, missing=missing,
               same_output=done.stdout == plain.stdout, stderr=done.stderr[-400:])
    scratch = check.out / "cost.journal"
    seconds = {"plain": [], "recorded": []}
    for _ in range(5):
        for which in seconds:
            scratch.unlink(missing_ok=True)
            command = [python, PROGRAM, 400, 0] if which == "plain" else [*record[:4], scratch, "--", python, PROGRAM, 400, 0]
            lines = check.run(command).stderr.splitlines()
            seconds[which].append(float(next(line for line in lines if re.fullmatch(r"[0-9.]+", line))))
    scratch.unlink(missing_ok=True)
    medians = {which: statistics.median(values) for which, values in seconds.items()}
    check.note("record pytorch cost", True, ratio=round(medians["recorded"] / medians["plain"], 3), **medians)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--explain", type=Path, required=True)
    parser.add_argument("--tool", type=Path, required=True)
    options = parser.parse_args()
    # A folder: the recordings of all devices in it.
    files = sorted(options.explain.glob("*/pytorch.journal")) if options.explain.is_dir() else [options.explain]
    files = [file for file in files if file.is_file()]
    if not files:
        print(f"{options.explain}: no pytorch.journal: none was recorded yet")
        return 77
    seen = 0
    for file in files:
        missing = wrong_in(options.tool, file)
        if missing is None:
            print(f"{file}: made by a cuaudit that was built from other CUDA headers, or of another version")
            continue
        seen += 1
        if missing:
            print(f"{file}: expected: {'; '.join(missing)}")
            return 1
    return 0 if seen else 77


if __name__ == "__main__":
    sys.exit(main())
