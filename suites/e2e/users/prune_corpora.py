#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sweeps programs and lifecycles with and without pruning and compares the defects: pruning must lose none.

    prune_corpora.py --tool cuaudit --programs DIR [--reducers DIR] [--all] [--only WORD] [--lifecycles TEST...]

Prints for each subject the first faults; the second ones that are tried, of all those of --no-prune and their share; and how many of these
are left by equal states, before equal unwindings stand for each other. Defects are compared by their fingerprints. --lifecycles names test programs whose sweeps are compared as well, each lifecycle in turn.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Long subjects, of which at most this share of the second faults may be tried.
SHARE = 0.10
LONG = ["frames sound 120", "frames two_kinds 120"]
PROGRAMS = [
    "frames gives_up 12", "frames two_kinds 16", "frames later 16",
    "defective", "steps 46 leaking", "marked leaking 2", "leak_kind stream 2", "reports swallow", "reports wrong", "reports twice", "reports keeps",
    "silent retry", "equal_states careful", "equal_states item", "equal_states planes", "equal_states cycles", "equal_states back", "turns", "host_oom defective",
]
REDUCERS = ["host_state_defective"]
# With --all: also these, of which some have tens of thousands of trials without pruning.
MORE_PROGRAMS = [
    "steps 206 leaking", "marked clean 20", "leak_kind event 2", "leak_kind graph 2", "reports output", "reports twice 20", "reports stuck", "reports retry",
    "reports optional", "reports honest 40", "silent optional", "unattended condition", "looping", "misuse", "host_oom repaired", "host_path locked_mutex",
    "deaths abort", "idle",
]
MORE_REDUCERS = [
    "graph_owner_defective", "graph_owner_defective_marked 2", "graph_owner_repaired", "graph_owner_repaired_marked 2", "early_returns_defective", "early_returns_defective_marked 2",
    "early_returns_repaired", "early_returns_repaired_marked 2", "host_state_repaired", "picture_pool_defective", "picture_pool_defective_marked 2",
    "picture_pool_repaired", "picture_pool_repaired_marked 2", "preallocation_defective 2", "preallocation_repaired 2", "preallocation_only_a4 2",
]


def defects_of(report):
    """Each defect's fingerprint with what it says."""
    return {defect["fingerprint"]: f"{defect['rule']}: {defect.get('says', '')}" for defect in report.get("defects", [])}


def stood_for(report):
    """Second faults that an equal unwinding stands for."""
    return sum(count for reason, count in report["totals"].get("pruned", {}).items() if "unwinding" in reason)


def sweep(arguments, program, options):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "report.json"
        subprocess.run([arguments.tool, "sweep", "--driver=sim", "--format=json", "--output", output, *options, "--", *program],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, check=False)
        return json.loads(output.read_text()) if output.exists() else None


def compare(name, first, pruned, whole, wrong):
    tried, all_of_them = pruned["totals"]["trials"] - first, whole["totals"]["trials"] - first
    share = tried / all_of_them if all_of_them else 0
    print(f"{name:44} first {first:5}  second {tried:6} of {all_of_them:6} ({100 * share:5.1f} %), {tried + stood_for(pruned):6} by states  "
          f"defects {len(pruned.get('defects', []))}", flush=True)
    lost = {key: what for key, what in defects_of(whole).items() if key not in defects_of(pruned)}
    more = {key: what for key, what in defects_of(pruned).items() if key not in defects_of(whole)}
    if lost or more:
        wrong.append(f"{name}: only without pruning {lost}, only with pruning {more}")
        print(wrong[-1], flush=True)


def programs(arguments, wrong):
    lists = ((arguments.programs, PROGRAMS, MORE_PROGRAMS), (arguments.reducers, REDUCERS, MORE_REDUCERS))
    for folder, lines in ((folder, few + more * arguments.all) for folder, few, more in lists):
        for line in lines if folder else []:
            name, *rest = line.split()
            if arguments.only and arguments.only not in line or not (folder / name).exists():
                continue
            reports = [sweep(arguments, [folder / name, *rest], options) for options in (["--depth=1"], [], ["--no-prune"])]
            if None in reports:
                wrong.append(f"{line}: no report")
            else:
                compare(line, reports[0]["totals"]["trials"], reports[1], reports[2], wrong)


def long_programs(arguments, wrong):
    for line in LONG:
        name, *rest = line.split()
        first, pruned = (sweep(arguments, [arguments.programs / name, *rest], options) for options in (["--depth=1"], []))
        tried = pruned["totals"]["trials"] - first["totals"]["trials"]
        by_state = tried + stood_for(pruned)
        print(f"{line:44} first {first['totals']['trials']:5}  second {tried:6} of {by_state:6} by states ({100 * tried / by_state:5.1f} %)", flush=True)
        if tried > SHARE * by_state:
            wrong.append(f"{line}: expected at most {100 * SHARE:.0f} % of the second faults to be tried")


def swept(test, options):
    """The reports of all lifecycles that a test program sweeps, by name."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, CUAUDIT_SWEEP=f"{options} --format json={folder}/{{case}}.json", CUAUDIT_OPTIONS="driver=sim")
        subprocess.run([test, "--gtest_brief=1"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return {path.stem: json.loads(path.read_text()) for path in Path(folder).glob("*.json")}


def lifecycles(arguments, wrong):
    for test in arguments.lifecycles:
        first, pruned, whole = (swept(test, options) for options in ("--depth=1", "", "--no-prune"))
        for case in sorted(set(first) & set(pruned) & set(whole)):
            if any(reason.startswith("first faults") for reason in pruned[case]["totals"].get("pruned", {})):
                continue  # its test asks for Prune::All
            compare(f"{Path(test).name} {case}", first[case]["totals"]["trials"], pruned[case], whole[case], wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--programs", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--reducers", type=lambda text: Path(text).resolve())
    parser.add_argument("--only", help="subjects whose line holds this word")
    parser.add_argument("--all", action="store_true", help="also the longer ones, some with tens of thousands of trials")
    parser.add_argument("--lifecycles", nargs="*", default=[])
    arguments = parser.parse_args()
    wrong = []
    if not arguments.only:
        long_programs(arguments, wrong)
    programs(arguments, wrong)
    lifecycles(arguments, wrong)
    if wrong:
        sys.exit("\n".join(wrong))


main()
