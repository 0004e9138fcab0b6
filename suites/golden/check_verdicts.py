#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds docs/VERDICTS.md to the rules that cuaudit knows: each has a heading with its name and, below it, its title.

    check_verdicts.py --tool build/dev/bin/cuaudit --page docs/VERDICTS.md
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(prog="check_verdicts")
parser.add_argument("--tool", type=Path, required=True)
parser.add_argument("--page", type=Path, required=True)
options = parser.parse_args()

listed = json.loads(subprocess.run([options.tool, "list", "rules", "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
rules = {row["rule"]: row["title"] for row in listed}
page = dict(re.findall(r"^### (\w+)\n\*(.*)\*$", options.page.read_text(), re.M))
problems = [f"{name}: has no heading and title in the page" for name in rules if name not in page]
problems += [f"{name}: the page says '{page[name]}', cuaudit says '{title}'" for name, title in rules.items() if page.get(name, title) != title]
problems += [f"{name}: is no rule of cuaudit" for name in page if name not in rules]
for problem in problems:
    print(f"{options.page}: {problem}", file=sys.stderr)
sys.exit(1 if problems or not rules else 0)
