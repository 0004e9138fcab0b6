#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills a sweep with SIGKILL at seeded random moments, goes on with it each time, and compares the report with one of a whole sweep.

    kill_sweep.py --build build/release [--moments 50] [--seed 1] [--isolation fork]

Status 1 and one line for the first moment after which a finished trial was lost or the report differs.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def command(build, isolation, work, output):
    return [build / "bin/cuaudit", "sweep", "--driver=sim", f"--isolation={isolation}", "--format=json", "--work-dir", work, "--output", output, "--",
            build / "bin/e2e/steps", "106", "leaking"]


def report(path):
    document = json.loads(path.read_text())
    del document["header"]
    return document


def lines(path):
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isolation", default="fork")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        began = time.monotonic()
        subprocess.run(command(options.build, options.isolation, place / "whole", place / "whole.json"), stderr=subprocess.DEVNULL, check=False)
        whole_seconds = time.monotonic() - began
        whole = report(place / "whole.json")
        early = 0
        for moment in range(options.moments):
            work, output = place / f"work-{moment}", place / f"{moment}.json"
            process = subprocess.Popen(command(options.build, options.isolation, work, output), stderr=subprocess.DEVNULL)
            try:
                process.wait(draw.uniform(0, whole_seconds))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                early += 1
            finished = [line for line in lines(work / "trials.jsonl") if line.endswith(b"\n")]
            again = subprocess.run(command(options.build, options.isolation, work, output), stderr=subprocess.PIPE, check=False)
            if not output.exists():
                sys.exit(f"moment {moment} of seed {options.seed}: no report: {again.stderr.decode(errors='replace').strip()}")
            if lines(work / "trials.jsonl")[:len(finished)] != finished:
                sys.exit(f"moment {moment} of seed {options.seed}: a finished trial was run again")
            if report(output) != whole:
                sys.exit(f"moment {moment} of seed {options.seed}: the report differs from that of a whole sweep")
    print(f"{options.moments} moments, {early} of them before the end: no finished trial lost, all reports equal")


if __name__ == "__main__":
    main()
