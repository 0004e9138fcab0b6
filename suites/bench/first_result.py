#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When a long sweep says what it found first: seconds from its start, and from the first trial with a finding in its log, and of the whole sweep.

    first_result.py --build build/release [--calls 1006]

The trial that loses an object ends before its line stands in the log, and the log is looked at each millisecond, so the second figure is what a
person waits at least for; the first one is what a person waits at most.
"""
import argparse
import subprocess
import tempfile
import threading
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--calls", default="1006")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "work/trials.jsonl"
        logged = []

        def watch():
            while not logged:
                if log.is_file() and '"findings":' in log.read_text():
                    logged.append(time.monotonic())
                time.sleep(0.001)

        threading.Thread(target=watch, daemon=True).start()
        began = time.monotonic()
        process = subprocess.Popen([options.build / "bin/cuaudit", "sweep", "--driver=sim", "--work-dir", f"{folder}/work", "--format=json", "--output",
                                    f"{folder}/report.json", "--", options.build / "bin/e2e/steps", options.calls, "leaking"], stderr=subprocess.PIPE, text=True)
        said = None
        for line in process.stderr:
            if "first found" in line and said is None:
                said = time.monotonic()
                print(line.strip())
        process.wait()
        ended = time.monotonic()
    print(f"said after {said - began:.3f} s, {said - logged[0]:+.3f} s from when the log had it; the whole sweep {ended - began:.2f} s")


main()
