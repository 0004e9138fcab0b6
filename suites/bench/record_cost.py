#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `cuaudit record` costs, as the ratio recorded : plain within one run; on a driver that does nothing, and on the simulated one.

    record_cost.py --tool build/dev/bin/cuaudit --build build/bench [--rounds 7] [--turns 100] [--table FILE.tsv]

Plain and recorded runs of record_cost take turns; a row is the median of the rounds. `--build` holds record_cost, the driver that does nothing
(lib/null) and the drop-in libraries that are measured; the tool only makes the recording. No test asserts a time.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = ["asks", "waits", "events", "step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    build = options.build.resolve()
    program, null, drop_in = build / "bin/record_cost", build / "lib/null", build / "lib/cuaudit"

    def run(environment):
        done = subprocess.run([program, str(options.turns)], env={**os.environ, **environment}, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program}: exit {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)

    def recorded(scratch, driver):
        """The variables that --print-environment prints, with the drop-in that is measured."""
        journal = Path(scratch) / "record.journal"
        journal.unlink(missing_ok=True)
        printed = subprocess.run([options.tool, "record", "--print-environment", "--journal", journal, "--driver=sim"], capture_output=True, text=True)
        if printed.returncode != 0:
            sys.exit(printed.stderr)
        variables = dict(re.findall(r"^export (\w+)='(.*)'$", printed.stdout, re.M))
        own = (options.tool.resolve().parent.parent / "lib/cuaudit").as_posix()
        variables = {name: value.replace(own, str(drop_in)) for name, value in variables.items()}
        variables["CUAUDIT_OPTIONS"] = variables["CUAUDIT_OPTIONS"].replace("driver=sim", driver)  # without a device node the tool asks for none
        return variables

    drivers = {
        "nothing": ({"LD_LIBRARY_PATH": str(null)}, f"driver=real;real_driver={null}/libcuda.so.1"),
        "simulated": ({"LD_LIBRARY_PATH": str(drop_in), "CUAUDIT_OPTIONS": "driver=sim"}, "driver=sim"),
    }
    lines = ["driver\trow\tplain_ns\trecorded_ns\tratio\trounds"]
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        for name, (plain, driver) in drivers.items():
            seen = {"plain": [], "recorded": []}
            for _ in range(options.rounds):
                seen["plain"].append(run(plain))
                seen["recorded"].append(run(recorded(scratch, driver)))
            for row in ROWS:
                before, after = (statistics.median(one[row] for one in seen[which]) for which in ("plain", "recorded"))
                lines.append(f"{name}\t{row}\t{before:.1f}\t{after:.1f}\t{after / before:.3f}\t{options.rounds}")
    print("\n".join(lines))
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
