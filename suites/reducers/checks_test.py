#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of the reducers notice what they are for. CheckVectors: reports written from the expected rows pass; the same reports with one
thing wrong do not. CheckIndexTest: the index as it is passes; with one thing wrong it does not, and the line names it.
"""
import copy
import io
import json
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays as it is
import check_index  # noqa: E402
import check_vectors  # noqa: E402

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


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


ROWS = json.loads((FOLDER / "reducers.json").read_text(encoding="utf-8"))["rows"]


def problems(rows, programs=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reducers.json"
        path.write_text(json.dumps({"rows": rows}), encoding="utf-8")
        index = check_index.Index(path, {})
    index.folder = FOLDER
    index.programs = programs or {}
    index.check()
    return index.problems


class CheckIndexTest(unittest.TestCase):
    def setUp(self):
        self.rows = copy.deepcopy(ROWS)
        self.row = next(row for row in self.rows if row["id"] == "B1")
        self.program = next(one for one in self.row["reducers"] if one["judged_by"] == "ctest")
        self.lifecycle = next(one for one in self.row["reducers"] if one["judged_by"] == "reducer_test")

    def expect(self, text, programs=None):
        found = problems(self.rows, programs)
        self.assertEqual([line for line in found if text in line], found)
        self.assertEqual(len(found), 1, found)

    def named(self):
        return {"reducer_test": {test for row in self.rows for one in row.get("reducers", []) if one["judged_by"] == "reducer_test"
                                 for test in one["defective"] + one["repaired"]}}

    def test_the_index_passes(self):
        self.assertEqual(problems(self.rows, self.named()), [])

    def test_a_row_is_missing(self):
        self.rows.remove(next(row for row in self.rows if row["id"] == "A1"))
        self.assertIn("A1: not in the index", problems(self.rows))

    def test_a_row_stands_twice(self):
        self.rows.append(next(row for row in self.rows if row["id"] == "A1"))
        self.assertEqual(len(problems(self.rows)), 2)

    def test_reducers_and_a_reason_to_have_none(self):
        self.row["left_out"] = "because"
        self.expect("B1: needs what it is about, and reducers or the reason")

    def test_neither_reducers_nor_a_reason(self):
        self.rows.append({"id": "E99", "about": "nothing", "reducers": []})
        self.expect("E99: needs what it is about, and reducers or the reason")

    def test_a_form_is_missing(self):
        self.program["repaired"] = []
        self.expect("B1: picture_pool.c has no repaired form and no reason")

    def test_a_missing_form_has_a_reason(self):
        self.program["repaired"] = []
        self.program["no_repaired"] = "nobody repaired it"
        self.assertEqual(problems(self.rows), [])

    def test_a_test_is_missing(self):
        programs = self.named()
        programs["reducer_test"].remove(self.lifecycle["defective"][0])
        self.expect("B1: reducer_test has no test " + self.lifecycle["defective"][0], programs)

    def test_a_test_is_in_no_row(self):
        programs = self.named()
        programs["reducer_test"].add("New.Test")
        self.expect("reducer_test: New.Test is in no row", programs)

    def test_a_vector_is_missing(self):
        self.program["defective"] = ["reducer_picture_pool_defective_cycles"]
        self.expect("B1: reducer_picture_pool_defective_cycles: expected.json has no cycles vector for B1")

    def test_a_judge_that_is_none(self):
        self.program["defective"] = ["reducer_picture_pool"]
        self.expect("B1: reducer_picture_pool is not reducer_<program>_<form>_<mode>")

    def test_a_file_is_missing(self):
        family = [(row["id"], one) for row in self.rows for one in row.get("reducers", []) if one["file"] == "vmaf_pools.cc"]
        for _, one in family:
            one["file"] = "nowhere.cc"
        found = problems(self.rows)
        self.assertEqual(found, [*(f"{row}: there is no nowhere.cc" for row, _ in family), "vmaf_pools.cc: is in no row"])

    def test_an_unknown_key(self):
        self.program["vector"] = "stream 1"
        self.expect("B1: missing keys [], unknown keys ['vector']")


if __name__ == "__main__":
    unittest.main()
