#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reader of trial logs says what the report of the same sweep says."""
import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from trial_log import trials_of  # noqa: E402  (its folder is known only here)


class TrialLog(unittest.TestCase):
    def test_says_what_the_report_says(self):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            subprocess.run([TOOL, "sweep", "--driver=sim", "--no-shrink", "--work-dir", f"{folder}/work", "--format=json", "--output", report, "--", *PROGRAM],
                           stderr=subprocess.DEVNULL, check=False)
            run = json.loads(report.read_text())
            trials = trials_of(Path(folder) / "work/trials.jsonl")
        self.assertEqual(len(trials), run["totals"]["trials"])
        self.assertEqual(Counter(trial["verdict"] for trial in trials), run["totals"]["verdicts"])
        self.assertEqual(sum(len(trial["findings"]) for trial in trials), sum(finding["trials"] for finding in run["findings"]))
        self.assertIn(run["findings"][0]["fault"]["text"], {trial["faults"][0] for trial in trials})
        self.assertEqual({finding["rule"] for finding in run["findings"]}, {finding["rule"] for trial in trials for finding in trial["findings"]})

    def test_leaves_out_a_line_that_was_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "trials.jsonl"
            line = '{"trial":3,"faults":[0,2],"as":0,"new":[["s","cuMemAlloc#*=OUT_OF_MEMORY,refuse"],["r",{"verdict":"pass"}]]}\n'
            log.write_text(line + '{"trial":4,"fau')
            self.assertEqual(trials_of(log), [{"verdict": "pass", "trial": 3, "faults": ["cuMemAlloc#2=OUT_OF_MEMORY,refuse"], "findings": []}])
            self.assertEqual(trials_of(Path(folder) / "none"), [])


parser = argparse.ArgumentParser()
parser.add_argument("tool")
parser.add_argument("program", nargs="+")
arguments = parser.parse_args()
TOOL, PROGRAM = arguments.tool, arguments.program
unittest.main(argv=["trial_log_test"])
