#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""measurements/ is what its page says, and scripts/measurements.py keeps the latest of each result.

    measurements_test.py --root SOURCES
"""
import argparse
import importlib.util
import json
import re
import sys
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
            self.assertEqual(path.parent.name.split("_")[-1], data["driver"])
            order = [(run["date"], run["time"]) for run in data["runs"]]
            self.assertEqual(order, sorted(order))
            for i, run in enumerate(data["runs"]):
                self.assertEqual(measurements.without_superseded(data["runs"][:i], run), data["runs"][:i], f"{path}: {measurements.name_of(run)}")


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
        self.add(date="2026-01-06", results=[{"name": "one", "passed": True}])
        self.assertIn("add older ones first", self.refused())
        (self.root / "measurements/rtx_a6000_590.1/gpu_check.json").write_text("{\n,")
        self.assertIn("gpu_check.json:2: expected JSON", self.refused())
        self.results = self.root / "none"
        with self.assertRaises(SystemExit) as ended:
            measurements.add(self.root, self.results)
        self.assertIn("summary.json: expected a JSON file", str(ended.exception))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest])
