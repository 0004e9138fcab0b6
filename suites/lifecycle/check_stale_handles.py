#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No handle of something that is gone may reach a genuine driver in process, which would end the process: checked without a GPU.

usage: check_stale_handles.py --cuaudit CUAUDIT --drop-in LIBRARY --stand-in PRELOAD -- PROGRAM [ARGUMENT...]

Runs a test program of lifecycles under `cuaudit run`, on the drop-in library instead of a genuine driver (stand_in_driver.c), so that trials share
it as they share a GPU's, and reads what the ledger says of all calls that reached it: those of the trials as the gate passed them on, and those that
clean up between trials. Stale addresses and allocation handles are allowed: a genuine driver answers them with an error (suites/contract).
What the tests themselves say here is not judged: meters of the process see the simulated driver, too.
exit: 0 none, 1 some, 2 usage
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

RULES = {"use_after_release", "double_release", "over_released_reference", "unknown_handle"}
CHECKED_BY_THE_DRIVER = {"device_memory", "managed_memory", "stream_ordered_memory", "pinned_memory", "host_registration", "address_reservation",
                         "physical_memory", "mapping"}
FEWEST_CALLS = 1000


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--cuaudit", required=True)
    parser.add_argument("--drop-in", required=True)
    parser.add_argument("--stand-in", required=True)
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "report.json"
        done = subprocess.run([args.cuaudit, "run", "--driver=sim", "--no-host", "--records", "4000000", "--format", "json", "--output", output, "--",
                               "env", f"LD_PRELOAD={args.stand_in}", f"CUAUDIT_STAND_IN={args.drop_in}", *args.program],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if not output.is_file():
            print(done.stdout[-2000:])
            return 1
        report = json.loads(output.read_text(encoding="utf-8"))
    calls = report["totals"]["calls"]
    stale = [finding for finding in report["findings"] if finding["rule"] in RULES and finding["kind"] not in CHECKED_BY_THE_DRIVER]
    died = [finding for finding in report["findings"] if finding["rule"] in ("crash", "abort", "hang")]
    for finding in stale + died:
        stack = [frame["function"][:60] for frame in finding["where_stack"] if frame["function"]]
        print(f"FAIL {finding['rule']} {finding['kind']}, {finding['count']} times at {finding['where']}: {' < '.join(stack[:8])}")
    if calls < FEWEST_CALLS:
        print(f"FAIL {calls} calls reached the driver, expected {FEWEST_CALLS} at least\n{done.stdout[-2000:]}")
    print(f"{calls} calls, {len(stale)} with stale handles")
    return 1 if stale or died or calls < FEWEST_CALLS else 0


if __name__ == "__main__":
    sys.exit(main())
