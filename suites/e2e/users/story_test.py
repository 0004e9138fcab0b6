#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs examples/releases/story and looks at what it wrote: story_test.py --tool build/dev/bin/cuaudit --root . --cuda INCLUDE.

Each format has to say of release 1.1 that two defects are new, and of release 1.2 that they are fixed and nothing is new; none may tell the
known defect as a new one. Exit status: 0 they do, 1 not.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ARGUMENTS = None
NEW = ("picture_steps returned without cuStreamDestroy", "picture_alloc returned without cuStreamDestroy")
KNOWN = "drain_stream_ensure returned without cuStreamDestroy"


class Story(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name, "a story")  # a name with a blank
        environment = dict(os.environ, SOURCE_DATE_EPOCH="1767225600", CUDA_HOME=str(pathlib.Path(ARGUMENTS.cuda).parent),
                           PATH=f"{pathlib.Path(ARGUMENTS.tool).resolve().parent}:{os.environ['PATH']}")
        environment.pop("GITHUB_STEP_SUMMARY", None)
        done = subprocess.run([pathlib.Path(ARGUMENTS.root, "examples/releases/story"), cls.folder], env=environment, capture_output=True, text=True, check=False)
        cls.told = done.stdout
        if done.returncode != 0:
            raise AssertionError(f"story: exit status {done.returncode}\n{done.stdout}{done.stderr}")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def text(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def json(self, name):
        return json.loads(self.text(name))

    def test_text(self):
        self.assertIn("3 cases: 1 defect in 1, 2 clean; results in results-1.0", self.told)
        self.assertRegex(self.told, r"(?s)release 1\.1.*2 new, 0 changed, 0 not run, 0 fixed, 1 unchanged.*exit status 1\n== release 1\.2.*0 new.*2 fixed")
        self.assertEqual(self.told.count("exit status"), 1)
        for says in NEW:
            self.assertIn(says, self.text("1.1.txt"))
        self.assertNotIn(KNOWN, self.text("1.1.txt"))
        self.assertIn("fixed:", self.text("1.2.txt"))

    def test_json(self):
        self.assertEqual({name: count for name, count in self.json("1.1.json")["counts"].items() if count}, {"new": 2, "unchanged": 1})
        self.assertEqual({name: count for name, count in self.json("1.2.json")["counts"].items() if count}, {"fixed": 2, "unchanged": 1})

    def test_junit(self):
        failed = {}
        for release in ("1.1", "1.2"):
            suites = xml.etree.ElementTree.fromstring(self.text(f"{release}.xml"))
            failed[release] = len(suites.findall(".//failure"))
        # What is unchanged is no failure: --fail-on decides.
        self.assertEqual(failed, {"1.1": 2, "1.2": 0})

    def test_sarif(self):
        def states(release):
            results = self.json(f"{release}.sarif")["runs"][0]["results"]
            return sorted(one["baselineState"] for one in results if "baselineState" in one)
        self.assertEqual(states("1.1"), ["new", "new", "unchanged"])
        self.assertEqual(states("1.2"), ["absent", "absent", "unchanged"])
        [first] = [one for one in self.json("1.1.sarif")["runs"][0]["results"] if one.get("baselineState") == "new" and NEW[0] in one["message"]["text"]]
        place = first["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("picture_pool.c", self.line_of("cuStreamCreate(&picture")))
        flow = [step["location"]["message"]["text"] for step in first["codeFlows"][0]["threadFlows"][0]["locations"]]
        self.assertEqual(flow[:3], ["acquired by cuStreamCreate", "cuEventCreate#1=OUT_OF_MEMORY,refuse fails", "on the way back cuCtxPopCurrent"])
        self.assertIn(NEW[0], flow)

    def line_of(self, text):
        return 1 + [text in line for line in self.text("picture_pool.c").splitlines()].index(True)

    def test_github_and_gitlab(self):
        self.assertEqual(len(re.findall(r"(?m)^::error file=picture_pool\.c,", self.text("1.1.github.txt"))), 2)
        self.assertNotRegex(self.text("1.2.github.txt"), r"(?m)^::error")
        issues = self.json("1.1.gitlab.json")
        self.assertEqual({one["location"]["path"] for one in issues}, {"picture_pool.c"})
        self.assertEqual((len(issues), len(self.json("1.2.gitlab.json"))), (3, 1))

    def test_markdown_and_html(self):
        self.assertIn("2 new", self.text("1.1.md"))
        self.assertIn("2 fixed", self.text("1.2.md"))
        page = self.text("1.1.html")
        self.assertIn("baseline.txt", page)
        self.assertIn("STEP(cuStreamCreate(", page)  # source lines, without --source-root
        self.assertLess(len(page), 2_000_000)

    def test_it_writes_over_nothing(self):
        done = subprocess.run([pathlib.Path(ARGUMENTS.root, "examples/releases/story"), self.folder], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "usage: story DIRECTORY, one that is not there yet\n"))


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--tool", "--root", "--cuda"):
        parser.add_argument(name, required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
