#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes faults/sim/COVERAGE.md: what the simulated driver answers, entry point by entry point.

    gen_sim_coverage.py --root DIR [--check]

The entry points are the rows of faults/driver/effects.def; which have a model say the binding tables of faults/sim; why others have none
says faults/sim/entry/coverage.def. A model whose body is nothing but `return CODE;` must be listed there. --check fails when
the file is not what would be written.
"""
import argparse
import re
import sys
import textwrap
from pathlib import Path

VERSION = re.compile(r"(?:_v\d+)?(?:_ptsz|_ptds)?$")
CONSTANT = re.compile(r"^CUresult api::(\w+)\([^)]*\)\s*\{\s*return\s+(?:CUDA_\w+);\s*\}", re.M)


def fail(message):
    sys.exit(f"gen_sim_coverage: {message}")


def rows(path, macro):
    text = re.sub(r"//.*", "", path.read_text())
    return re.findall(rf"^{macro}\((.*)\)\s*$", text, re.M)


def family(name):
    return re.match(r"[A-Z]+[a-z0-9]*|[A-Z]+", name).group(0)


def listing(names):
    out = []
    for line in textwrap.wrap(", ".join(f"`{name}`" for name in sorted(names)), 136, break_long_words=False, break_on_hyphens=False):
        out.append(line)
    return out


def build(root):
    sim = root / "faults/sim"
    bases = [row.split(",")[0].strip() for row in rows(root / "faults/driver/effects.def", "CUAUDIT_EFFECT")]
    bound = {}
    for table in sorted(sim.rglob("*bindings.def")):
        for row in rows(table, "CUAUDIT_SIM"):
            symbol, model = [word.strip() for word in row.split(",")][:2]
            bound.setdefault(VERSION.sub("", symbol), set()).add(model)
    strangers = sorted(set(bound) - set(bases))
    if strangers:
        fail(f"models of entry points without a row in effects.def: {' '.join(strangers)}")
    table = sim / "entry/coverage.def"
    profile = {row.strip() for row in rows(table, "CUAUDIT_FROM_PROFILE")}
    effectless = {row.strip() for row in rows(table, "CUAUDIT_WITHOUT_EFFECT")}
    none = {row.strip() for row in rows(table, "CUAUDIT_KNOWS_NONE")}
    for name in sorted((profile | effectless | none) - set(bases)):
        fail(f"coverage.def names {name}, effects.def does not")
    constant = set()
    for source in sorted(sim.rglob("*_calls.cc")):
        constant |= {match.group(1) for match in CONSTANT.finditer(source.read_text())}
    for base, models in bound.items():
        if models <= constant and base not in effectless | none:
            fail(f"the model of {base} always answers one code: say so in coverage.def (CUAUDIT_WITHOUT_EFFECT, CUAUDIT_KNOWS_NONE)")
    reasons = {}
    for row in rows(table, "CUAUDIT_NOT_SUPPORTED"):
        group, reason = row.split(",", 1)
        reasons[group.strip()] = reason.strip().strip('"')
    members = []
    for row in rows(table, "CUAUDIT_MEMBER"):
        group, pattern = row.split(",", 1)
        members.append((group.strip(), re.compile(pattern.strip())))
    absent = {group: [] for group in reasons}
    for base in bases:
        if base in bound:
            continue
        group = next((name for name, pattern in members if pattern.fullmatch(base)), None)
        if group is None:
            fail(f"{base} has no model and no reason in coverage.def")
        absent[group].append(base)
    from_profile = [base for base in bound if base in profile]
    without = [base for base in bound if base in effectless]
    knows_none = [base for base in bound if base in none]
    modelled = [base for base in bound if base not in profile | effectless | none]
    total = len(bases)
    out = ["# What the simulated driver answers", "",
           "Written by `scripts/gen_sim_coverage.py --root .`; a test fails when it is stale. Names without `cu`, whatever their version.", "",
           "| entry points | how many |", "| --- | --- |",
           f"| modelled: state is kept, arguments are checked | {len(modelled)} |",
           f"| answered from the profile of the device | {len(from_profile)} |",
           f"| accepted, without an effect | {len(without)} |",
           f"| refused as by the driver, what they ask for is never there | {len(knows_none)} |",
           f"| not supported | {sum(len(names) for names in absent.values())} |",
           f"| all | {total} |", "", "## Modelled", ""]
    families = {}
    for base in modelled:
        families.setdefault(family(base), []).append(base)
    for name in sorted(families):
        out += listing(families[name])
        out.append("")
    out += ["## From the profile", ""] + listing(from_profile)
    out += ["", "## Accepted, without an effect", ""] + listing(without)
    out += ["", "## Refused, what they ask for is never there", ""] + listing(knows_none)
    out += ["", "## Not supported", ""]
    for group, reason in reasons.items():
        if absent[group]:
            out += [f"{reason}:", ""] + listing(absent[group]) + [""]
    return "\n".join(out).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = options.root / "faults/sim/COVERAGE.md"
    text = build(options.root)
    if not options.check:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        fail(f"{path} is stale: run scripts/gen_sim_coverage.py --root {options.root}")


if __name__ == "__main__":
    main()
