#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An audit with a budget spends it on first faults before second ones, and finds every defect that an unlimited one finds in its first faults.

    budget_test.py --tool build/dev/bin/cuaudit --programs build/dev/bin/e2e --reducers build/dev/bin/reducers [--budget 5min]

The cases are reducers of this tree and programs of suites/e2e. All of them are audited without a limit. A defect counts as one of first
faults when a trial with a single fault, or none, shows it. How much a budget cuts is a matter of how busy the machine is, so that the order
of the work is looked at with a budget that is never spent: the audit comes to each case before it comes to one again, the log of each sweep
has all single faults before the first trial with two, and nothing is missing at the end. --budget instead measures what an audit with that
budget finds. Prints what each audit did. Exit status: 0 the order is right and nothing is missing, 1 not.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from trial_log import trials_of  # noqa: E402  (its folder is known only here)

NEVER_SPENT = "1000h"


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
    done = subprocess.run([tool, "audit", "--config", project, "--out", out, "--progress=plain", *options], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"audit: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    told = done.stdout.strip().splitlines()
    for line in told[:-1]:
        if "defect" not in line and ": clean" not in line:
            print("  " + line)
    return time.monotonic() - begun, told[-1], re.findall(r"^cuaudit: case \d+ of \d+: (.*)$", done.stderr, re.MULTILINE)


def wrong_order(tool, chosen, turns, folder):
    """What is wrong in the order of the work: of the audit, which began its cases in `turns`, and of the sweep of each case by its log."""
    wrong = []
    if sorted(turns[: len(chosen)]) != sorted(chosen):
        wrong.append(f"a case was begun again before all had been begun: {turns[:len(chosen)]}")
    second = 0
    for name, command in chosen.items():
        work = folder / f"work_{name}"
        options = ["--driver=sim", "--progress=none", "--no-shrink", "--work-dir", work, "--budget", NEVER_SPENT]
        options += ["--host"] if name.startswith("leak_") else []
        words = [str(word) for word in command]
        subprocess.run([tool, "sweep", *options, "--", *words], capture_output=True, check=False)
        faults = [len(trial["faults"]) for trial in trials_of(work / "trials.jsonl")]
        if not faults:
            wrong.append(f"{name}: no trial in {work}/trials.jsonl")
        if faults != sorted(faults, key=lambda count: count > 1):
            wrong.append(f"{name}: a single fault was tried after two: {faults}")
        second += sum(count > 1 for count in faults)
    if second == 0:
        wrong.append("no sweep tried two faults")
    print(f"order: {len(turns)} turns of {len(chosen)} cases; {second} trials with a second fault, all behind single ones" if not wrong else "order: wrong")
    return wrong


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
    parser.add_argument("--budget", help="measure what an audit with this budget finds")
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
        seconds, told, _ = audit(arguments.tool, folder / "cuaudit.toml", folder / "whole", arguments.option)
        every, first, trials, second = defects_of(folder / "whole")
        print(f"unlimited: {seconds:.1f} s: {told}")
        print(f"measured: {len(chosen)} cases: {trials} trials, {second} with a second fault; {len(every)} defects, {len(first)} by first faults")
        budget = arguments.budget or NEVER_SPENT
        took, cut, turns = audit(arguments.tool, folder / "cuaudit.toml", folder / "budget", ["--budget", budget, *arguments.option])
        found, _, trials, second = defects_of(folder / "budget")
        print(f"--budget {budget}: {took:.1f} s: {cut}")
        print(f"measured: {trials} trials, {second} with a second fault; {len(found & every)} defects, {len(found & first)} by first faults")
        wrong = [] if arguments.budget else wrong_order(arguments.tool, chosen, turns, folder)
    wrong += [f"not found: {case} {fingerprint}" for case, fingerprint in sorted(first - found)]
    if len(chosen) < 20 or len(first) < 10:
        wrong.append("expected at least 20 cases and 10 defects of first faults")
    for line in wrong:
        print(f"budget_test: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
