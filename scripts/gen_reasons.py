#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/REASONS.md from the table that cuaudit itself uses.

    gen_reasons.py --cuaudit PROGRAM [--check]

--check fails when the file is not what would be written.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "REASONS.md"
HEAD = """# Reasons

A report counts by reason what was not tried, not judged or not looked at. This page lists the reasons. `...` stands for a name or a number.
`cuaudit explain --rule ID` prints one of them; verdicts and rules are in [VERDICTS.md](VERDICTS.md). `scripts/gen_reasons.py` writes this page.
"""


def page(cuaudit):
    listed = subprocess.run([cuaudit, "list", "reasons", "--format=json"], capture_output=True, text=True, check=True).stdout
    text = HEAD
    about = None
    for row in json.loads(listed):
        if row.get("about") != about:
            about = row["about"]
            text += f"\n## {about}\n"
        if not text.endswith("|\n"):
            text += "\n| id | what the report counts | what to do |\n| --- | --- | --- |\n"
        text += f"| `{row['reason']}` | {row['title']} | {row['what to do']} |\n"
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuaudit", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page(arguments.cuaudit)
    if not arguments.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/REASONS.md is not what the table says: scripts/gen_reasons.py --cuaudit PROGRAM writes it")


main()
