#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports written from the expected rows pass; the same reports with one thing wrong do not."""
import copy
import io
import json
import sys
import unittest
from contextlib import redirect_stdout
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays as it is
import check_vectors  # noqa: E402

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text(encoding="utf-8"))


def frame(function):
    return {"module": "m", "function": function, "file": "m.c", "line": 1, "offset": 1}


def finding(rule, kind, count, fault, where="", where_in=None):
    return {"rule": rule, "kind": kind, "count": count, "fault": fault, "where": where,
            "where_stack": [frame(where_in)] if where_in else []}


def perfect(rows, mode):
    report = {"mode": mode, "outcome": "findings" if rows else "clean", "totals": {"fired": 1, "trials": 1}, "findings": [],
              "per_cycle": {}, "cycles": {"rows": []}}
    for row in rows:
        if row["mode"] == "sweep" and mode == "sweep":
            fault = {"call": row["fault"]["call"], "occurrence": row["fault"]["occurrences"][0], "text": "t",
                     "how": row["fault"].get("how", "refuse"), "stack": [frame(row["fault"]["in"])]}
            found = [finding("leak", kind, count, fault) for kind, count in row["leaks"].items()]
            if "rule" in row:
                found.append(finding(row["rule"], "", 1, fault))
            for one in found:
                if "then" in row:
                    one["then"] = [{"call": call} for call in row["then"]]
            report["findings"] += found
        if row["mode"] == "any":
            report["findings"].append(finding(row["rule"], row["kind"], 1, None, row.get("where", ""), row["in"]))
        if row["mode"] == "cycles" and mode == "cycles":
            for turn, (kind, count) in enumerate(row["per_cycle"].items()):
                report["per_cycle"][kind] = report["per_cycle"].get(kind, 0) + count
                report["cycles"]["rows"].append({"kind": kind, "per_cycle": count, "acquired": {"stack": [frame(row["acquired_in"])]},
                                                 "bytes_per_cycle": 0 if turn else row.get("bytes_per_cycle", 0)})
    return report


def failures(rows, report):
    check = check_vectors.Check(host=True)
    with redirect_stdout(io.StringIO()):
        check.report(rows, report)
    return check.failures


def cases():
    for program, expected in EXPECTED.items():
        for form in expected:
            if form not in ("program", "cycles", "about"):
                for mode in ("sweep", "cycles"):
                    yield f"{program} {form} {mode}", expected[form], perfect(expected[form], mode)


class CheckVectors(unittest.TestCase):
    def test_every_row_as_expected_passes(self):
        for name, rows, report in cases():
            with self.subTest(name):
                self.assertEqual(failures(rows, report), 0)

    def test_each_missing_finding_fails(self):
        for name, rows, report in cases():
            for i in range(len(report["findings"])):
                broken = copy.deepcopy(report)
                gone = broken["findings"].pop(i)
                with self.subTest(name, gone=gone):
                    self.assertGreater(failures(rows, broken), 0)

    def test_each_wrong_count_fails(self):
        for name, rows, report in cases():
            for i, one in enumerate(report["findings"]):
                if one["fault"]:
                    broken = copy.deepcopy(report)
                    broken["findings"][i]["count"] += 1
                    with self.subTest(name, finding=one):
                        self.assertGreater(failures(rows, broken), 0)

    def test_each_unexpected_finding_fails(self):
        fault = {"call": "cuMemFree", "occurrence": 1, "text": "t", "stack": [frame("main")]}
        for name, rows, report in cases():
            extra = [finding("double_release", "stream", 1, None, "cuStreamDestroy", "main")]
            if report["mode"] == "sweep":
                extra += [finding("leak", "stream", 1, fault), finding("crash", "none", 1, fault)]
            for one in extra:
                broken = copy.deepcopy(report)
                broken["findings"].append(one)
                with self.subTest(name, finding=one):
                    self.assertGreater(failures(rows, broken), 0)

    def test_each_wrong_growth_fails(self):
        for name, rows, report in cases():
            for i in range(len(report["cycles"]["rows"])):
                broken = copy.deepcopy(report)
                broken["cycles"]["rows"][i]["per_cycle"] += 1
                with self.subTest(name, row=i):
                    self.assertGreater(failures(rows, broken), 0)
            if report["mode"] == "cycles":
                broken = copy.deepcopy(report)
                broken["per_cycle"]["module"] = 1
                with self.subTest(name):
                    self.assertGreater(failures(rows, broken), 0)

    def test_a_run_that_proved_nothing_fails(self):
        for name, rows, report in cases():
            broken = copy.deepcopy(report)
            broken["outcome"] = "not_exercised"
            with self.subTest(name):
                self.assertGreater(failures(rows, broken), 0)
            if report["mode"] == "sweep":
                broken = copy.deepcopy(report)
                broken["totals"]["fired"] = 0
                with self.subTest(name):
                    self.assertGreater(failures(rows, broken), 0)


if __name__ == "__main__":
    unittest.main()
