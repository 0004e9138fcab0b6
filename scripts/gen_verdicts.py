#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/VERDICTS.md from the tables that cuaudit itself uses (reports/words) and the text in this file.

    gen_verdicts.py --cuaudit PROGRAM [--check]

--check fails when the file is not what would be written.
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "VERDICTS.md"

HEAD = """# How to read a report

A report has one **outcome**: what the whole audit amounts to. A sweep has many trials, and each trial has one **verdict**.
A trial can have several **findings** and **notes**; each names the **rule** that was broken. This page lists all of these
words, what each means, and what to do. `cuaudit explain --rule WORD` prints one of them.

- [Outcomes](#outcomes) · [Verdicts](#verdicts) · [Why a trial proves nothing](#why-a-trial-proves-nothing)
- Rules: [something is left](#something-is-left) · [wrong releases and uses](#wrong-releases-and-uses) ·
  [queued work](#queued-work-simulated-driver-only) · [the program died](#the-program-died) ·
  [wrong reports](#wrong-reports) · [notes](#notes)
- [Beside an earlier release](#beside-an-earlier-release)
- [The lines at the top of a report](#the-lines-at-the-top-of-a-report) · [Reasons](#reasons)

This page is generated: `scripts/gen_verdicts.py` writes it from the tables in `reports/words`.

## Outcomes

"""

OUTCOMES = """
The exit status is that of `cuaudit`; `–`: only lifecycles in C++ (`cuaudit::AuditOutcome`) have this outcome.

- The headline `left: 3 objects, 2 defects` is a `run` with the outcome `left`. Not counted is what the CUDA runtime keeps for itself
  ([kept_by_library](#kept_by_library)), and what a table of `--lifetime` allows ([process_lifetime](#process_lifetime)).
- The headline `no rule broken, 3 objects left` is a `run` that may leave objects (`--allow-left`, `--lifetime`). `cuaudit cycles`
  tells whether they grow.
- The headline `clean, 2 trials abandoned at exit` is explained at [abandoned_at_exit](#abandoned_at_exit).
- The headline `clean; 3 host places left, judged with --host` is explained at [host_left](#host_left).

## Verdicts

The verdict of a trial is the first in this list that applies.

"""

# The first that applies is the verdict (harness/verdict/README.md).
ORDER = ["not_exercised", "hang", "crash", "abort", "misuse", "leak", "not_recovered", "misreported", "release_refused",
         "retained_for_retry", "abandoned_at_exit", "benign", "absorbed", "pass"]

MISSED = """
## Why a trial proves nothing

The note of such a trial says why. A sweep without findings is `not_exercised` when it has one.

"""

RULES = """
## Rules

In a report a rule stands before the object, as in `leak: 1 stream`. The line in italics is the title that the report prints.
What is wrong on the host is a finding only with `--host`; `cycles` and lifecycles judge the host by default.
"""

# Heading, text below it, and which rules of `cuaudit list rules` stand there.
SECTIONS = [
    ("Something is left", "", lambda row: row["level"] == "finding" and (row["verdict"] == "leak" or row["rule"] == "left_at_exit")),
    ("Wrong releases and uses", "", lambda row: row["level"] == "finding" and row["verdict"] == "misuse" and not row["proof"]),
    ("Queued work (simulated driver only)",
     "These rules need to know which operations are ordered behind which. Only the simulated driver can tell. `--schedule` runs\n"
     "queued work in another order. The finding names both calls.\n", lambda row: row["proof"]),
    ("The program died",
     "What a dead program leaves cannot be judged: leaks behind a crash are not seen. Repair these first, then sweep again.\n",
     lambda row: row["level"] == "finding" and row["verdict"] in ("crash", "abort", "hang")),
    ("Wrong reports",
     "A program *reports* with `cuaudit_report` (`cuaudit/mark.h`), a lifecycle with what its steps return. With `--strict-exit` the\n"
     "exit status is a report, too. The report of a lifecycle words these titles a little differently.\n",
     lambda row: row["level"] == "finding" and row["verdict"] in ("misreported", "not_recovered", "not_exercised")),
    ("Notes", "Notes are counted and shown, and never make an outcome `findings`. The last ones are about a trial or the program, not about an object.\n",
     lambda row: row["level"] != "finding"),
]

CHANGES = """
## Beside an earlier release

`cuaudit compare BASE HEAD` says one of these of each defect.

"""

LINES = """
## The lines at the top of a report

| line | what it says |
| --- | --- |
| `world` | the options of the simulated driver |
| `scope` | `pinned`: cuaudit holds a reference of each primary context, so its end hides nothing |
| `host` | which host resources were looked at, and why others were not |
| `totals` | driver calls, places that make them, trials, trials in which the failure happened |
| `verdicts` | how many trials have which verdict |
| `trials` | what the trials ran in (`--isolation`), and why one was spawned instead |
| `pruned` | failures that were not tried, because one in an equal state was (`--no-prune` tries all) |
| `coverage` | ways to fail that were reached, of all that the program can reach |
| `skipped` | what could not be checked or tried, with the reason and how often |

## Reasons

A report counts by reason what was not tried, not judged or not looked at. `[...]` stands for what varies.
"""

OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*(?:=[A-Za-z0-9,]+)?)")
NAME = re.compile(r"(?<![\w`:])(cu[A-Z]\w*(?:@site=\.\.\.#2)?|pthread_\w+|cuaudit/\w+\.h|cuaudit (?:cycles|sweep)|[A-Z]\w+::\w+|AnyCode\(\)|[A-Z]+_[A-Z_]+|TMPDIR)(?![\w`])")


def marked(text):
    """Options, files and names of code as code; a bar would end the cell of a table."""
    text = OPTION.sub(r"`\1`", text)
    text = NAME.sub(r"`\1`", text)
    return text.replace("|", "\\|")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def rules(listed):
    text, told = "", set()
    for heading, below, belongs in SECTIONS:
        text += f"\n## {heading}\n" + (f"\n{below}" if below else "")
        for row in listed:
            if not belongs(row):
                continue
            told.add(row["rule"])
            # What the simulated driver proves has one explanation, which stands below the heading.
            meaning = "" if row["proof"] else marked(row["explanation"]) + "\n"
            text += f"\n### {row['rule']}\n*{row['title']}*\n\n{meaning}**Do:** {marked(row['what to do'])}\n"
    missing = [row["rule"] for row in listed if row["rule"] not in told]
    if missing:
        sys.exit(f"gen_verdicts: in no section: {', '.join(missing)}")
    return text


def reasons(listed):
    text, about = "", None
    for row in listed:
        if row["about"] != about:
            about = row["about"]
            text += f"\n### {about}\n\n" + table(["id", "what the report counts", "what to do"], [])
        text += f"| `{row['reason']}` | {marked(row['title'])} | {marked(row['what to do'])} |\n"
    return text


def page(cuaudit):
    def listed(what):
        return json.loads(subprocess.run([cuaudit, "list", what, "--format=json"], capture_output=True, text=True, check=True).stdout)

    verdicts = {row["verdict"]: row for row in listed("verdicts")}
    if sorted(verdicts) != sorted(ORDER):
        sys.exit(f"gen_verdicts: ORDER has other verdicts than cuaudit: {sorted(set(verdicts) ^ set(ORDER))}")
    outcomes = [[f"`{row['outcome']}`", row["exit"] or "–", f"{row['title'].capitalize()}. {marked(row['explanation'])}", marked(row["what to do"])]
                for row in listed("outcomes")]
    shown = [[f"`{name}`", f"{verdicts[name]['title'].capitalize()}. {marked(verdicts[name]['explanation'])}", marked(verdicts[name]["what to do"])]
             for name in ORDER]
    missed = [[marked(row["title"]), marked(row["what to do"])] for row in listed("missed")]
    changes = [[f"`{row['change']}`", marked(row["explanation"]), marked(row["what to do"])] for row in listed("changes")[1:]]
    return (HEAD + table(["outcome", "exit", "what it means", "what to do"], outcomes) + OUTCOMES
            + table(["verdict", "what it means", "what to do"], shown) + MISSED + table(["the note says", "what to do"], missed) + RULES
            + rules(listed("rules")) + CHANGES + table(["change", "what it means", "what to do"], changes) + LINES + reasons(listed("reasons")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuaudit", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page(arguments.cuaudit)
    if not arguments.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/VERDICTS.md is not what the tables say: scripts/gen_verdicts.py --cuaudit PROGRAM writes it")


main()
