#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recorded results: measurements/ is what its page says, scripts/measurements.py keeps the latest of each, and each verdict of
scripts/gen_defect_table.py comes from one.

    results_test.py --root SOURCES [CLASS...]
"""
import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

LARGEST = 5_000_000  # bytes of all recordings
parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
options, rest = parser.parse_known_args()
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("measurements", options.root / "scripts/measurements.py")
measurements = importlib.util.module_from_spec(spec)
spec.loader.exec_module(measurements)


class TheTree(unittest.TestCase):
    here = options.root / "measurements"

    def files(self):
        return [path for path in self.here.rglob("*") if path.is_file()]

    def test_all_of_it_is_small(self):
        self.assertLess(sum(path.stat().st_size for path in self.files()), LARGEST)

    def test_the_page_names_each_file_and_no_other(self):
        page = (self.here / "README.md").read_text()
        there = {f"{path.parent.name}/{path.name}" for path in self.files() if path.name != "README.md"}
        named = set()
        for section in re.split(r"^## ", page, flags=re.M)[1:]:
            directory = re.match(r"`(\S+)`", section)[1]
            for cell in re.findall(r"^\| (`[^|]*) \|", section, re.M):
                first, *others = re.findall(r"`([^`]+)`", cell)
                stem, suffix = first.rsplit("_", 1)[0], Path(first).suffix
                named |= {f"{directory}/{name}" if "." in name else f"{directory}/{stem}{name}{suffix}" for name in [first, *others]}
        self.assertEqual(named, there)

    def test_results_are_as_they_are_written(self):
        for path in self.here.glob("*/gpu_check.json"):
            data = json.loads(path.read_text())
            self.assertEqual(path.read_text(), measurements.text_of(data), path)
            self.assertEqual(data, measurements.without_places(data), path)
            self.assertEqual(path.parent.name.split("_")[-1], data["driver"])
            order = [(run["date"], run["time"]) for run in data["runs"]]
            self.assertEqual(order, sorted(order))
            for i, run in enumerate(data["runs"]):
                self.assertEqual(measurements.without_superseded(data["runs"][:i], run), data["runs"][:i], f"{path}: {measurements.name_of(run)}")


    def test_recordings_name_no_place_of_the_machine_that_recorded(self):
        for path in self.here.rglob("*"):
            if not path.is_file() or path.suffix == ".json":
                continue
            contents = [path.read_bytes()]
            if path.name.endswith(".tar.xz"):
                with tarfile.open(path) as archive:
                    contents = [archive.extractfile(member).read() for member in archive if member.isfile()]
                self.assertTrue(contents, path)
            for content in contents:
                self.assertIsNone(re.search(rb"(?<![\w./])/(?:data|home|mnt|opt|root|srv|tmp|work)/[\w.-]+", content), path)


class Adding(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.results = self.root / "results"
        self.results.mkdir()

    def add(self, **summary):
        (self.results / "summary.json").write_text(json.dumps({"gpu": "NVIDIA RTX A6000, 590.1", "time": "10:00", "commit": "c", "skipped": [], "tests": {}, **summary}))
        measurements.print = lambda *_: None
        measurements.add(self.root, self.results)
        return [(run["date"], [entry["name"] for entry in run["results"]], run["tests"]) for run in measurements.runs(self.root)]

    def refused(self, **summary):
        with self.assertRaises(SystemExit) as ended:
            self.add(**{"date": "2026-01-05", "results": [], **summary})
        self.assertNotIn("\n", str(ended.exception))
        return str(ended.exception)

    def test_the_later_result_stays(self):
        one, two = {"name": "one", "passed": True}, {"name": "two", "passed": True}
        tests = {"a_test": {"A.One": "failed", "A.Two": "passed"}}
        self.assertEqual(self.add(date="2026-01-01", results=[one, two], tests=tests), [("2026-01-01", ["one", "two"], tests)])
        cut_off = {"name": "two", "passed": False, "partial": True}
        self.assertEqual(self.add(date="2026-01-02", results=[one, cut_off], tests={"a_test": {"A.One": "passed"}}),
                         [("2026-01-01", ["two"], {"a_test": {"A.Two": "passed"}}), ("2026-01-02", ["one", "two"], {"a_test": {"A.One": "passed"}})])
        (self.results / "record_use.tsv").write_text("# a table\n")
        done = self.add(date="2026-01-03", results=[two], skipped=[{"name": "one", "reason": "not here"}], tests=tests)
        self.assertEqual(done, [("2026-01-03", ["two"], tests)])
        directory = self.root / "measurements/rtx_a6000_590.1"
        self.assertEqual(sorted(path.name for path in directory.iterdir()), ["gpu_check.json", "record_use.tsv"])

    def test_what_is_refused(self):
        self.assertIn("expected a device and a driver version", self.refused(gpu="simulated"))
        self.assertIn("expected a device and a driver version", self.refused(gpu="?"))
        for said in ("at /home/me/tree/a.cc:3", "/opt/python run -- p", "in (/tmp/x)", "error:\n/usr/lib/a", "/scratch/me", "/nfs/a", "/Users/me", "/workspace/a"):
            message = self.refused(results=[{"name": "one", "passed": True, "output": said}])
            self.assertIn("of the machine that measured: leave its last name alone there", message)
        place = {"name": "one", "passed": False, "stderr": ["File \"/usr/lib/python3.11/json/a.py\", line 3", "in /scratch/me/tree/"], "rows": 3}
        self.assertEqual(measurements.without_places(place), {**place, "stderr": ["File \"a.py\", line 3", "in tree"]})
        self.add(date="2026-01-05", results=[measurements.without_places(place)])
        self.add(date="2026-01-06", results=[{"name": "one", "passed": True, "output": "suites/home/a.cc:3, /dev/nvidia0, 3/4"}])
        self.assertIn("add older ones first", self.refused())
        (self.root / "measurements/rtx_a6000_590.1/gpu_check.json").write_text("{\n,")
        self.assertIn("gpu_check.json:2: expected JSON", self.refused())
        self.results = self.root / "none"
        with self.assertRaises(SystemExit) as ended:
            measurements.add(self.root, self.results)
        self.assertIn("summary.json: expected a JSON file", str(ended.exception))


    def test_a_folder_with_results_is_measured_into_once(self):
        earlier = self.results / "summary.json"
        earlier.write_text("earlier")
        done = subprocess.run([sys.executable, options.root / "scripts/gpu_check", "--build", self.root, "--out", self.results, "--driver", "sim"], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"gpu_check: --out: {self.results} has the summary.json of an earlier call, expected another folder\n")
        self.assertEqual(earlier.read_text(), "earlier")


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


class DefectTree:
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
        return subprocess.run([sys.executable, options.root / "scripts/gen_defect_table.py", "--root", self.root, *arguments], capture_output=True, text=True)

    def row(self, name, file=""):
        lines = (self.folder / "DEFECTS.md").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"| {name} |") and file in line).split(" | ")[4:]


class DefectTable(unittest.TestCase):
    """scripts/gen_defect_table.py on small data: each verdict comes from a result, and data that say something else than the table are noticed."""

    def test_each_verdict_comes_from_a_result(self):
        with tempfile.TemporaryDirectory() as directory:
            tree = DefectTree(directory)
            runs = [{"date": "2026-01-01", "results": [{"name": "two defective sweep", "passed": False}, {"name": "two repaired sweep", "passed": True}],
                     "tests": {"one_test": {"One.Loses": "passed"}}}]
            tree.measured(runs)
            self.assertTrue(tree.run("--check").returncode != 0, "a table that is not there passes the check")
            done = tree.run()
            self.assertTrue(done.returncode == 0, done.stderr)
            self.assertTrue(tree.run("--check").returncode == 0, "the table just written fails the check")
            self.assertTrue(tree.row("X1") == ["found", "silent", "not run", "not run |"], f"X1: {tree.row('X1')}")
            self.assertTrue(tree.row("X2") == ["found", "**not silent**", "**not found**", "silent |"], f"X2: {tree.row('X2')}")
            self.assertTrue(tree.row("X3") == ["skipped", "silent", "[1]", "[1] |"], f"X3: {tree.row('X3')}")
            # A later run's results count, wherever it stands.
            runs.insert(0, {"date": "2026-01-02", "results": [{"name": "two defective sweep", "passed": True}],
                            "tests": {"one_test": {"One.Dies": "passed", "One.Silent": "passed"}}})
            tree.measured(runs)
            self.assertTrue(tree.run("--check").returncode != 0, "new results of a GPU go unnoticed")
            tree.run()
            self.assertTrue(tree.row("X1")[2:] == ["found", "silent |"] and tree.row("X2")[2:] == ["found", "silent |"], f"later: {tree.row('X1')} {tree.row('X2')}")
            self.assertTrue(tree.row("X3")[2:] == ["[1]", "silent |"], f"what runs there in spite of the note: {tree.row('X3')}")
            self.assertTrue(tree.row("X3", "four.cc")[2:] == ["found, 1 of 2 tests [2]", "silent |"], f"in part: {tree.row('X3', 'four.cc')}")
            # Second order holds a program against the same vector; what was cut off against none.
            for day, step, cell in (("03", {"partial": True, "passed": False}, "silent |"), ("04", {"partial": False, "passed": False}, "**not silent** |"),
                                    ("05", {"partial": False, "passed": True}, "silent |")):
                runs.append({"date": f"2026-01-{day}", "results": [{"name": "second order two repaired", **step}]})
                tree.measured(runs)
                tree.run()
                self.assertTrue(tree.row("X2")[3] == cell, f"second order, {step}: {tree.row('X2')}")
            tree.put("measurements/other/gpu_check.json", {"gpu": "simulated", "runs": []})
            self.assertTrue("expected results of a GPU" in tree.run().stderr, "results of the simulated driver pass for a GPU's")
            (tree.root / "measurements/other/gpu_check.json").unlink()
            # A verdict that was typed in, a result that changed, a test without any.
            table = tree.folder / "DEFECTS.md"
            table.write_text(table.read_text().replace("**not silent**", "silent"))
            self.assertTrue(tree.run("--check").returncode != 0, "a verdict that was typed in goes unnoticed")
            tree.run()
            tree.put("suites/reducers/simulated_results.json", {"tests": {**SIMULATED, "one_test": {**SIMULATED["one_test"], "One.Loses": "failed"}}})
            self.assertTrue(tree.run("--check").returncode != 0, "a test that fails now goes unnoticed")
            tree.put("suites/reducers/simulated_results.json", {"tests": {"one_test": SIMULATED["one_test"]}})
            lacking = tree.run("--check")
            self.assertTrue(lacking.returncode != 0 and "ctest: reducer_two_defective_sweep" in lacking.stderr, f"a test without a result goes unnoticed: {lacking.stderr}")
            tree.put("suites/reducers/simulated_results.json", "{")
            broken = tree.run("--check")
            self.assertTrue(broken.returncode != 0 and len(broken.stderr.splitlines()) == 1, f"a broken file: {broken.stderr}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest])
