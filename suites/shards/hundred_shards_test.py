#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A hundred shards of each round write the report and the trials of one local sweep, whatever their order.

    hundred_shards_test.py --tool build/dev/bin/cuaudit --program build/dev/bin/e2e/steps
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SHARDS = 100


def without_header(path):
    report = json.loads(path.read_text())
    del report["header"]
    return json.dumps(report, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    tool = os.path.abspath(arguments.tool)
    program = ["--", os.path.abspath(arguments.program), "86", "leaking"]
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)

        def run(*words, expected=0):
            outcome = subprocess.run([tool, *words], cwd=here, capture_output=True, text=True)
            assert outcome.returncode == expected, f"{words}: {outcome.returncode}\n{outcome.stdout}{outcome.stderr}"

        def formats(name):
            return [f"--format=json={name}.json", "--trials", f"{name}.trials"]

        run("sweep", "--driver=sim", *formats("local"), *program, expected=1)
        run("plan", "--driver=sim", "--shards", str(SHARDS), "--to", "plan", *program)
        for number in reversed(range(SHARDS)):
            run("run-shard", "plan", str(number))
        run("plan", "plan")
        for number in range(SHARDS):
            run("run-shard", "plan", str(number * 37 % SHARDS))
        run("merge", "plan", *formats("merged"), expected=1)
        assert without_header(here / "merged.json") == without_header(here / "local.json")
        assert (here / "merged.trials").read_bytes() == (here / "local.trials").read_bytes()
        print(f"equal: {SHARDS} shards of each round")
    return 0


if __name__ == "__main__":
    sys.exit(main())
