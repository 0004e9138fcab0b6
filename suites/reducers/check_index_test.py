#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The index as it is passes; with one thing wrong it does not, and the line names it."""
import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays as it is
import check_index  # noqa: E402

FOLDER = Path(__file__).parent
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
