#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what cuaudit reports about a reducer with the vector that is expected of it; prints PASS or FAIL for every row.

usage: check_vectors.py --expected FILE --reducer NAME --form FORM REPORT.json [--host]
       check_vectors.py --expected FILE --reducer NAME --form FORM --cuaudit CUAUDIT --mode sweep|cycles [--driver sim|real] [--host] [--exact]
                        [--jobs N] [--depth 1|2] [--keep REPORT.json] [--skip-without-driver] -- PROGRAM

The first form judges a report that exists, the second makes it, and keeps it where --keep says. --exact also replays every fault row, each turn
of a loop, and compares the whole vector of that one trial. --jobs: trials and replays at a time. --depth 1: no second faults are tried, and no
call that fails after its work; rows that need one are not judged, but --exact replays them. Without --host the host kinds are left out.
A form without rows must have no finding at all.
exit: 0 all rows pass, 1 some do not, 2 usage, 77 no driver (--skip-without-driver)
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

HOST_KINDS = {"host_heap", "dlopen_reference", "mutex", "file_descriptor", "thread"}
LOST = {"leak", "orphaned"}


def functions(stack):
    return [frame["function"] for frame in stack if frame["function"]]


def within(name, stack):
    """True where the stack passes through the function; also where no name could be resolved."""
    names = functions(stack)
    return not names or name is None or name in names


def innermost(name, stack):
    names = [frame["function"] for frame in stack if frame["file"]]
    return not names or name in names[:1]


class Check:
    def __init__(self, host):
        self.host = host
        self.failures = 0

    def say(self, passed, row, text):
        self.failures += not passed
        print(f"{'PASS' if passed else 'FAIL'} {row.get('id', '-') if row else '-':4} {text}")

    def wanted(self, vector):
        return Counter({kind: count for kind, count in vector.items() if self.host or kind not in HOST_KINDS})

    def counted(self, findings):
        vector = Counter()
        for finding in findings:
            if self.host or finding["kind"] not in HOST_KINDS:
                vector[finding["kind"]] += finding["count"]
        return vector

    def fault_rows(self, rows, findings):
        """The findings of the sweep that name a fault: each belongs to a row, each row has its vector."""
        faulted = [finding for finding in findings if finding["fault"]]
        rows = [row for row in rows if row["mode"] == "sweep"]
        taken = [[] for _ in rows]
        for finding in faulted:
            fault = finding["fault"]
            home = [i for i, row in enumerate(rows) if row["fault"]["call"] == fault["call"]
                    and fault["occurrence"] in row["fault"]["occurrences"] and within(row["fault"]["in"], fault["stack"])
                    and fault["how"] == row["fault"].get("how", "refuse")
                    and [later["call"] for later in finding.get("then", [])] == row.get("then", [])]
            if home and (finding["rule"] == rows[home[0]].get("rule") or finding["rule"] in LOST):
                taken[home[0]].append(finding)
            elif self.host or finding["kind"] not in HOST_KINDS:
                self.say(False, None, f"unexpected {finding['rule']}: {finding['count']} {finding['kind']}, {fault['text']}")
        for row, mine in zip(rows, taken):
            if "rule" in row:
                rules = [finding["rule"] for finding in mine]
                text = f"{row['fault']['call']} in {row['fault']['in']}: {', '.join(rules) or 'nothing'}"
                passed = rules == [row["rule"]] and mine[0]["count"] == 1
                self.say(passed, row, text + ("" if passed else f", expected one {row['rule']}"))
                continue
            got = self.counted(mine)
            expected = [self.wanted(row[key]) for key in ("leaks", "first_seen") if key in row]
            text = f"{row['fault']['call']} in {row['fault']['in']}" + (f", slot {row['slot']}" if "slot" in row else "")
            self.say(got in expected, row, f"{text}: {show(got)}" + ("" if got in expected else f", expected {show(expected[0])}"))

    def rule_rows(self, rows, findings):
        """Violations that need no fault."""
        plain = [finding for finding in findings if not finding["fault"] and finding["rule"] != "growth"]
        for row in rows:
            if row["mode"] != "any" or (row["kind"] in HOST_KINDS and not self.host):
                continue
            mine = [finding for finding in plain if finding["rule"] == row["rule"] and finding["kind"] == row["kind"]
                    and finding["where"].startswith(row.get("where", "")) and within(row["in"], finding["where_stack"])]
            plain = [finding for finding in plain if finding not in mine]
            self.say(len(mine) == 1, row, f"{row['rule']} of {row['kind']} in {row['in']}: {len(mine)} findings")
        for finding in plain:
            if self.host or finding["kind"] not in HOST_KINDS:
                self.say(False, None, f"unexpected {finding['rule']}: {finding['count']} {finding['kind']} at {finding['where']}")

    def cycle_rows(self, rows, report):
        rows = [row for row in rows if row["mode"] == "cycles"]
        total = Counter()
        for row in rows:
            wanted = self.wanted(row["per_cycle"])
            total += wanted
            # What the driver keeps for itself has no place in the program and is no finding.
            grown = [cycle for cycle in report["cycles"]["rows"] if cycle["per_cycle"] and cycle["kind"] in wanted
                     and cycle["acquired"].get("call") != "(inside the driver)" and innermost(row["acquired_in"], cycle["acquired"]["stack"])]
            got = Counter()
            for cycle in grown:
                got[cycle["kind"]] += cycle["per_cycle"]
            bytes_grown = sum(cycle["bytes_per_cycle"] for cycle in grown)
            passed = got == wanted and (not wanted or bytes_grown == row.get("bytes_per_cycle", bytes_grown))
            self.say(passed, row, f"in {row['acquired_in']}: {show(got)} per cycle, {bytes_grown} bytes")
        got = Counter({kind: count for kind, count in report["per_cycle"].items() if self.host or kind not in HOST_KINDS})
        self.say(got == total, None, f"growth per cycle: {show(got)}" + ("" if got == total else f", expected {show(total)}"))

    def report(self, rows, report):
        if report["outcome"] not in ("clean", "findings"):
            self.say(False, None, f"outcome {report['outcome']}: {report.get('message', '')}")
            return
        if report["mode"] == "cycles":
            self.cycle_rows(rows, report)
        else:
            if report["totals"]["fired"] == 0:
                self.say(False, None, "no fault fired")
            self.fault_rows(rows, report["findings"])
        self.rule_rows(rows, report["findings"])
        if not rows:
            wrong = len(report["findings"])
            self.say(wrong == 0, None, f"{report['totals']['trials']} trials, {wrong} findings, expected none")

    def replays(self, rows, sweep, cuaudit, jobs):
        """The whole vector of one trial, for every turn: a sweep report shows a place that fails again only once."""
        codes = {finding["fault"]["call"]: finding["fault"]["code"] for finding in sweep["findings"] if finding["fault"]}
        asked = []
        for row in rows:
            if row["mode"] != "sweep" or "then" in row or not self.wanted(row["leaks"]):
                continue
            call, how = row["fault"]["call"], row["fault"].get("how", "refuse")
            asked += [(row, f"{call}#{turn}={codes.get(call, 'UNKNOWN')},{how}") for turn in row["fault"]["occurrences"]]
        with ThreadPoolExecutor(jobs) as several:
            reports = several.map(lambda one: cuaudit("replay", "--fault", one[1]), asked)
            for (row, text), replay in zip(asked, reports):
                wanted = self.wanted(row["leaks"])
                got = self.counted(finding for finding in replay["findings"] if finding["fault"] and finding["rule"] in LOST)
                self.say(got == wanted, row, f"replay {text}: {show(got)}" + ("" if got == wanted else f", expected {show(wanted)}"))


def show(vector):
    return ", ".join(f"{count:g} {kind}" for kind, count in sorted(vector.items()) if count) or "nothing"


def runner(args):
    def run(mode, *options):
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "report.json")
            command = [args.cuaudit, mode, "--driver", args.driver, "--format", "json", "--output", output, *options]
            command += ["--host"] if args.host else ["--no-host"]
            if mode == "sweep":
                command += ["--depth", str(args.depth), *(["--jobs", str(args.jobs)] if args.jobs else [])]
            program = args.program + (["{n}"] if mode == "cycles" else ["2"])
            done = subprocess.run([*command, "--", *program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode == 3 and args.skip_without_driver:
                print("skipped: " + done.stderr.strip())
                sys.exit(77)
            if done.returncode not in (0, 1) or not os.path.exists(output):
                print(f"FAIL -    cuaudit {mode} exited with {done.returncode}: {done.stderr.strip()}")
                sys.exit(1)
            if args.keep and mode == args.mode:
                shutil.copy(output, args.keep)
            with open(output, encoding="utf-8") as file:
                return json.load(file)
    return run


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--reducer", required=True)
    parser.add_argument("--form", required=True)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--cuaudit")
    parser.add_argument("--mode", choices=["sweep", "cycles"], default="sweep")
    parser.add_argument("--driver", default="sim")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--depth", type=int, choices=[1, 2], default=2)
    parser.add_argument("--keep")
    parser.add_argument("--skip-without-driver", action="store_true")
    parser.add_argument("program", nargs="+", help="report file, or the program after --")
    args = parser.parse_args()
    with open(args.expected, encoding="utf-8") as file:
        expected = json.load(file).get(args.reducer, {})
    if args.form not in expected:
        parser.error(f"{args.expected} has no form {args.form} of {args.reducer}")
    first = lambda row: "then" not in row and row.get("fault", {}).get("how", "refuse") == "refuse"
    rows = [row for row in expected[args.form] if args.depth == 2 or first(row)]
    check = Check(args.host)
    if args.cuaudit:
        cuaudit = runner(args)
        report = cuaudit(args.mode)
    else:
        with open(args.program[0], encoding="utf-8") as file:
            report = json.load(file)
    check.report(rows, report)
    if args.exact and args.cuaudit and args.mode == "sweep":
        check.replays(rows, report, cuaudit, args.jobs or 1)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
