#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/gen_defect_table.py on small data: each verdict comes from a result, and data that say something else than the table are noticed.

usage: defect_table_test.py GEN_DEFECT_TABLE
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

INDEX = {"rows": [
    {"id": "X1", "about": "one", "reducers": [{"file": "one.cc", "form": "lifecycle", "judged_by": "one_test", "defective": ["One.Loses", "One.Dies"],
                                               "repaired": ["One.Silent"], "expected": "stream 1"}]},
    {"id": "X2", "about": "two", "reducers": [{"file": "two.c", "form": "program", "judged_by": "ctest", "defective": ["reducer_two_defective_sweep"],
                                               "repaired": ["reducer_two_repaired_sweep"], "expected": "event 1"}]},
    {"id": "X3", "about": "three", "reducers": [{"file": "three.cc", "form": "lifecycle", "judged_by": "one_test", "defective": ["One.Crashes"],
                                                 "repaired": ["One.Silent"], "expected": "crash", "only_simulated": "it crashes"},
                                                {"file": "four.cc", "form": "lifecycle", "judged_by": "one_test", "defective": ["One.Crashes", "One.Dies"],
                                                 "repaired": ["One.Silent"], "expected": "crash, event 1", "only_simulated": "one crashes"}]},
    {"id": "X4", "about": "four", "left_out": "not written"}]}
SIMULATED = {"one_test": {"One.Loses": "passed", "One.Dies": "passed", "One.Silent": "passed", "One.Crashes": "skipped"},
             "ctest": {"reducer_two_defective_sweep": "passed", "reducer_two_repaired_sweep": "failed"}}
problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


class Tree:
    def __init__(self, directory):
        self.root = Path(directory)
        self.folder = self.root / "suites/reducers"
        self.folder.mkdir(parents=True)
        self.put("suites/reducers/reducers.json", INDEX)
        self.put("suites/reducers/simulated_results.json", {"driver": "simulated", "tests": SIMULATED})

    def put(self, name, data):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data))

    def measured(self, runs):
        self.put("measurements/h200_1.2/gpu_check.json", {"gpu": "H200", "driver": "1.2", "runs": runs})

    def run(self, *arguments):
        return subprocess.run([sys.executable, sys.argv[1], "--root", self.root, *arguments], capture_output=True, text=True)

    def row(self, name, file=""):
        lines = (self.folder / "DEFECTS.md").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"| {name} |") and file in line).split(" | ")[4:]


with tempfile.TemporaryDirectory() as directory:
    tree = Tree(directory)
    runs = [{"date": "2026-01-01", "results": [{"name": "two defective sweep", "passed": False}, {"name": "two repaired sweep", "passed": True}],
             "tests": {"one_test": {"One.Loses": "passed"}}}]
    tree.measured(runs)
    expect(tree.run("--check").returncode != 0, "a table that is not there passes the check")
    done = tree.run()
    expect(done.returncode == 0, done.stderr)
    expect(tree.run("--check").returncode == 0, "the table just written fails the check")
    expect(tree.row("X1") == ["found", "silent", "not run", "not run |"], f"X1: {tree.row('X1')}")
    expect(tree.row("X2") == ["found", "**not silent**", "**not found**", "silent |"], f"X2: {tree.row('X2')}")
    expect(tree.row("X3") == ["skipped", "silent", "[1]", "[1] |"], f"X3: {tree.row('X3')}")
    # A later run's results count, wherever it stands.
    runs.insert(0, {"date": "2026-01-02", "results": [{"name": "two defective sweep", "passed": True}],
                    "tests": {"one_test": {"One.Dies": "passed", "One.Silent": "passed"}}})
    tree.measured(runs)
    expect(tree.run("--check").returncode != 0, "new results of a GPU go unnoticed")
    tree.run()
    expect(tree.row("X1")[2:] == ["found", "silent |"] and tree.row("X2")[2:] == ["found", "silent |"], f"later: {tree.row('X1')} {tree.row('X2')}")
    expect(tree.row("X3")[2:] == ["[1]", "silent |"], f"what runs there in spite of the note: {tree.row('X3')}")
    expect(tree.row("X3", "four.cc")[2:] == ["found, 1 of 2 tests [2]", "silent |"], f"in part: {tree.row('X3', 'four.cc')}")
    # Second order holds a program against the same vector; what was cut off against none.
    for day, step, cell in (("03", {"partial": True, "passed": False}, "silent |"), ("04", {"partial": False, "passed": False}, "**not silent** |"),
                            ("05", {"partial": False, "passed": True}, "silent |")):
        runs.append({"date": f"2026-01-{day}", "results": [{"name": "second order two repaired", **step}]})
        tree.measured(runs)
        tree.run()
        expect(tree.row("X2")[3] == cell, f"second order, {step}: {tree.row('X2')}")
    tree.put("measurements/other/gpu_check.json", {"gpu": "simulated", "runs": []})
    expect("expected results of a GPU" in tree.run().stderr, "results of the simulated driver pass for a GPU's")
    (tree.root / "measurements/other/gpu_check.json").unlink()
    # A verdict that was typed in, a result that changed, a test without any.
    table = tree.folder / "DEFECTS.md"
    table.write_text(table.read_text().replace("**not silent**", "silent"))
    expect(tree.run("--check").returncode != 0, "a verdict that was typed in goes unnoticed")
    tree.run()
    tree.put("suites/reducers/simulated_results.json", {"tests": {**SIMULATED, "one_test": {**SIMULATED["one_test"], "One.Loses": "failed"}}})
    expect(tree.run("--check").returncode != 0, "a test that fails now goes unnoticed")
    tree.put("suites/reducers/simulated_results.json", {"tests": {"one_test": SIMULATED["one_test"]}})
    lacking = tree.run("--check")
    expect(lacking.returncode != 0 and "ctest: reducer_two_defective_sweep" in lacking.stderr, f"a test without a result goes unnoticed: {lacking.stderr}")
    tree.put("suites/reducers/simulated_results.json", "{")
    broken = tree.run("--check")
    expect(broken.returncode != 0 and len(broken.stderr.splitlines()) == 1, f"a broken file: {broken.stderr}")

print("\n".join(problems) or "as expected")
sys.exit(1 if problems else 0)
