#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a full sweep costs, by length of the lifecycle: first and second order, every fault, nothing pruned.

    sweep_cost.py --build build/release [--calls 16,106,1006,3006] [--isolation fork,spawn] [--jobs 2] [--table FILE.tsv]

Prints a table as in harness/sweep/README.md; --table writes one for scripts/plot_sweep_cost.py. Seconds of the processor count the tool
and all that it waited for.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def sweep(build, calls, isolation, jobs):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [build / "bin/cuaudit", "sweep", "--driver=sim", "--no-prune", f"--isolation={isolation}", f"--jobs={jobs}", "--format=json",
                   "--output", report.name, "--", build / "bin/e2e/steps", str(calls)]
        with tempfile.TemporaryFile() as errors:
            began = time.monotonic()
            process = subprocess.Popen(command, stderr=errors)
            _, status, used = os.wait4(process.pid, 0)
            wall = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            if process.returncode != 0:
                sys.exit(f"{command[0]}: expected a clean sweep, got status {process.returncode}: {errors.read().decode(errors='replace')}")
        totals = json.loads(Path(report.name).read_text())["totals"]
        return totals, wall, used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--calls", default="16,106,1006,3006")
    parser.add_argument("--isolation", default="fork")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    rows = [f"# programs/steps.c, nothing pruned, {options.jobs} jobs", "isolation\tdriver_calls\ttrials\tseconds\tprocessor_seconds"]
    print("| isolation | driver calls | trials | seconds | of the processor | ms of it a trial |")
    print("| --- | --- | --- | --- | --- | --- |")
    for isolation in options.isolation.split(","):
        for calls in (int(word) for word in options.calls.split(",")):
            totals, wall, cpu = sweep(options.build, calls, isolation, options.jobs)
            print(f"| {isolation} | {totals['calls']} | {totals['trials']} | {wall:.2f} | {cpu:.2f} | {1000 * cpu / totals['trials']:.2f} |", flush=True)
            rows.append(f"{isolation}\t{totals['calls']}\t{totals['trials']}\t{wall:.2f}\t{cpu:.2f}")
            if options.table:
                options.table.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
