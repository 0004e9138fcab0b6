#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds reducers.json against the files, the test programs and the expected vectors that it names, and against the rows there must be.

usage: check_index.py INDEX [NAME=TEST_PROGRAM...]

A test program lists its own tests; one that is named in the index and not given here could not be built, which is said.
exit: 0 the index is right, 1 it is not (one line for each thing), 2 usage
"""
import json
import re
import subprocess
import sys
from pathlib import Path

# Sections of the list of defects and how many rows each has; D and E have no numbers of their own, so these are the least.
SECTIONS = {"A": 6, "B": 12, "C": 7, "D": 14, "E": 12}
FORMS = ("lifecycle", "program")
KEYS = {"file", "form", "judged_by", "defective", "repaired", "expected"}
OPTIONAL = {"only_simulated", "no_defective", "no_repaired"}
# What check_vectors.py judges: reducer_<program>_<form>_<mode>, on the simulated driver with _sim, on a genuine one with _real behind it.
JUDGED = re.compile(r"reducer_(?P<program>\w+)_(?P<form>defective|repaired|only_a4)_(?P<mode>sweep|cycles)")


def tests_of(program):
    """The names of a GoogleTest program's tests, Suite.Test."""
    listed = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names, suite = set(), ""
    for line in listed.splitlines():
        text = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = text if text.endswith(".") else ""
        elif suite:
            names.add(suite + text)
    return names


class Index:
    def __init__(self, path, programs):
        self.folder = path.parent
        self.programs = {name: tests_of(program) for name, program in programs.items()}
        self.problems, self.notes, self.named, self.files = [], [], set(), set()
        self.rows = json.loads(path.read_text(encoding="utf-8"))["rows"]

    def wrong(self, where, text):
        self.problems.append(f"{where}: {text}")

    def judged(self, row, test, file):
        """A row of a program must have a vector in expected.json for the form and mode that the test runs."""
        match = JUDGED.fullmatch(test)
        if match is None or match["program"] + ".c" != file:
            self.wrong(row, f"{test} is not reducer_<program>_<form>_<mode> of {file}")
            return
        expected = json.loads((self.folder / "expected.json").read_text(encoding="utf-8"))[match["program"]]
        modes = {"sweep": ("sweep", "any"), "cycles": ("cycles", "any")}[match["mode"]]
        vectors = expected.get(match["form"])
        if vectors is None:
            self.wrong(row, f"{test}: expected.json has no form {match['form']}")
        elif match["form"] != "repaired" and not any(re.fullmatch(row + "[a-z]?", one["id"]) and one["mode"] in modes for one in vectors):
            self.wrong(row, f"{test}: expected.json has no {match['mode']} vector for {row}")

    def tests(self, row, reducer, form):
        tests = reducer.get(form, [])
        if not tests and not reducer.get("no_" + form):
            self.wrong(row, f"{reducer['file']} has no {form} form and no reason (no_{form})")
        for test in tests:
            self.named.add((reducer["judged_by"], test))
            if reducer["judged_by"] == "ctest":
                self.judged(row, test, reducer["file"])
            elif reducer["judged_by"] in self.programs and test not in self.programs[reducer["judged_by"]]:
                self.wrong(row, f"{reducer['judged_by']} has no test {test}")

    def reducer(self, row, reducer):
        missing, unknown = KEYS - set(reducer), set(reducer) - KEYS - OPTIONAL
        if missing or unknown:
            self.wrong(row, f"missing keys {sorted(missing)}, unknown keys {sorted(unknown)}")
            return
        self.files.add(reducer["file"])
        if not (self.folder / reducer["file"]).is_file():
            self.wrong(row, f"there is no {reducer['file']}")
        if reducer["form"] not in FORMS:
            self.wrong(row, f"form {reducer['form']!r}, expected one of {', '.join(FORMS)}")
        if reducer["judged_by"] != "ctest" and reducer["judged_by"] not in self.programs:
            self.notes.append(f"{row}: {reducer['judged_by']} is not built here, its tests are not looked up")
        for form in ("defective", "repaired"):
            self.tests(row, reducer, form)
        if not reducer["expected"]:
            self.wrong(row, f"{reducer['file']} expects nothing")

    def check(self):
        ids = [row["id"] for row in self.rows]
        for section, least in SECTIONS.items():
            for number in range(1, least + 1):
                if f"{section}{number}" not in ids:
                    self.wrong(f"{section}{number}", "not in the index")
        for row in self.rows:
            if ids.count(row["id"]) != 1 or not re.fullmatch(f"[{''.join(SECTIONS)}][1-9][0-9]*", row["id"]):
                self.wrong(row["id"], "is no row of the list, or stands here twice")
            if bool(row.get("reducers")) == bool(row.get("left_out")) or not row.get("about"):
                self.wrong(row["id"], "needs what it is about, and reducers or the reason why there are none (left_out)")
            for reducer in row.get("reducers", []):
                self.reducer(row["id"], reducer)
        for name, tests in self.programs.items():
            for test in sorted(tests):
                if (name, test) not in self.named:
                    self.wrong(name, f"{test} is in no row")
        for source in sorted(self.folder.iterdir()):
            if source.suffix in (".c", ".cc") and source.name not in self.files and not source.name.endswith("vectors.cc"):  # what reducers share
                self.wrong(source.name, "is in no row")


def main(arguments):
    if not arguments or any("=" not in one for one in arguments[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    index = Index(Path(arguments[0]), dict(one.split("=", 1) for one in arguments[1:]))
    index.check()
    for line in sorted(set(index.notes)):
        print("note: " + line)
    for line in index.problems:
        print("wrong: " + line)
    print(f"{len(index.rows)} rows, {len(index.named)} tests, {len(index.problems)} wrong")
    return 1 if index.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
