#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An audit of many cases with a budget finds every defect that the unlimited one finds in its first faults.

    budget_test.py --tool build/dev/bin/cuaudit --programs build/dev/bin/e2e --reducers build/dev/bin/reducers [--budget 5min]

The cases are reducers of this tree and programs of suites/e2e. First all of them are audited without a limit. A defect counts as one of
first faults when a trial with a single fault, or none, shows it. Then the same cases are audited anew in the time that this took. With a budget
each case is begun several times, and others may use the machine more than before, so that what is missing is looked for once more, in three
times the time, before the test fails; --budget takes one time instead. Prints what each audit did. Exit status: 0 all were found, 1 not.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time


def cases(programs, reducers, cycles):
    """Name of a case -> its command."""
    found = {}
    for name in ("early_returns", "graph_owner", "picture_pool", "preallocation", "host_state"):
        for form in ("defective", "repaired"):
            found[f"{name}_{form}"] = [reducers / f"{name}_{form}", cycles]
    for name in ("vmaf_a1_state_by_value", "vmaf_a2_function_table", "vmaf_a3_ring_buffer"):
        found[name] = [reducers / name, "defective"]
    for release in ("base", "regression", "repaired"):
        found[f"release_{release}"] = [programs / "releases", release]
    for mode in ("honest", "twice", "swallow", "wrong", "stuck"):
        found[f"reports_{mode}"] = [programs / "reports", mode]
    for kind in ("device_memory", "array", "module"):
        found[f"leak_{kind}"] = [programs / "leak_kind", kind, "1", "clean"]
    for name in ("defective", "client_linked"):
        found[name] = [programs / name]
    return found


def audit(tool, project, out, options):
    begun = time.monotonic()
    done = subprocess.run([tool, "audit", "--config", project, "--out", out, "--progress=none", *options], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"audit: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    told = done.stdout.strip().splitlines()
    for line in told[:-1]:
        if "defect" not in line and ": clean" not in line:
            print("  " + line)
    return time.monotonic() - begun, told[-1]


def defects_of(out):
    """All defects as (case, fingerprint); those that single faults show; trials; and how many second faults were tried."""
    every, first, trials, second = set(), set(), 0, 0
    for row in json.loads((out / "audit.json").read_text())["cases"]:
        if "trials" in row:
            lines = (out / row["trials"]).read_text().splitlines()
            second += sum(len(json.loads(line).get("faults", [])) > 1 for line in lines)
        for name in row["reports"]:
            report = json.loads((out / name).read_text())
            trials += report["totals"]["trials"]
            for defect in report["defects"]:
                key = (row["name"], defect["fingerprint"])
                every.add(key)
                shown = {fingerprint for member in defect["members"] for fingerprint in member["findings"]}
                if any(finding["fingerprint"] in shown and not finding.get("then") for finding in report["findings"]):
                    first.add(key)
    return every, first, trials, second


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--reducers", required=True, type=pathlib.Path)
    parser.add_argument("--cycles", default="1", help="of the reducers")
    parser.add_argument("--budget", help="instead of the time of the unlimited audit")
    parser.add_argument("--option", action="append", default=[], help="of both audits, such as --option=--no-prune")
    arguments = parser.parse_args()
    chosen = cases(arguments.programs.resolve(), arguments.reducers.resolve(), arguments.cycles)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lines = ["[defaults]", 'driver = "sim"']
        for name, command in chosen.items():
            lines += [f"[case.{name}]", "command = " + json.dumps([str(word) for word in command])]
            lines += ["host = true"] if name.startswith("leak_") else []  # it ends by exit right after a failure
        (folder / "cuaudit.toml").write_text("\n".join(lines) + "\n")
        seconds, told = audit(arguments.tool, folder / "cuaudit.toml", folder / "whole", arguments.option)
        every, first, trials, second = defects_of(folder / "whole")
        print(f"unlimited: {seconds:.1f} s: {told}")
        print(f"measured: {len(chosen)} cases: {trials} trials, {second} with a second fault; {len(every)} defects, {len(first)} by first faults")
        budgets = [arguments.budget] if arguments.budget else [f"{max(1, math.ceil(seconds * part))}s" for part in (1, 3)]
        for budget in budgets:
            took, cut = audit(arguments.tool, folder / "cuaudit.toml", folder / budget, ["--budget", budget, *arguments.option])
            found, _, trials, second = defects_of(folder / budget)
            print(f"--budget {budget}: {took:.1f} s: {cut}")
            print(f"measured: {trials} trials, {second} with a second fault; {len(found & every)} defects, {len(found & first)} by first faults")
            missing = sorted(first - found)
            if not missing:
                break
    for case, fingerprint in missing:
        print(f"not found: {case} {fingerprint}")
    if len(chosen) < 20 or len(first) < 10:
        print("budget_test: expected at least 20 cases and 10 defects of first faults")
        return 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
