#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions and mispredicted branches of each allocator_cost row, per pair or call, counted by callgrind.

    allocator_profile.py BUILD/bin/allocator_cost BUILD/lib/null

Each row runs twice with different numbers of turns, and the difference is divided by the difference: what a process does once counts for
nothing. Below the rows stand the functions in which a mixed pair spends most.
"""
import os
import re
import subprocess
import sys
import tempfile

ROWS = ("native_pair", "plugin_pair", "plugin_legacy_pair", "native_mixed", "plugin_mixed", "native_record_use", "plugin_record_use", "event_record")
SHORT, LONG = 20_000, 60_000
EVENTS = ("Ir", "Bcm", "Bim")


def run(program, libraries, row, turns, out):
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    subprocess.run(["valgrind", "--tool=callgrind", "--branch-sim=yes", f"--callgrind-out-file={out}", program, row, str(turns)],
                   check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names, totals = (), ()
    with open(out, encoding="utf-8") as profile:
        for line in profile:
            if line.startswith("events:"):
                names = line.split()[1:]
            if line.startswith(("totals:", "summary:")):
                totals = [int(word) for word in line.split()[1:]]
    return {name: total for name, total in zip(names, totals)}


def functions(out):
    """Own instructions by function, from callgrind_annotate."""
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show=Ir", out], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+) \([^)]*\)\s+\S*?:(\S.*?)(?: \[.*)?$", line)
        if match:
            name = re.sub(r"\(.*", "", match[2]).replace("cuaudit::alloc::", "").replace("(anonymous namespace)::", "")
            found[name] = found.get(name, 0) + int(match[1].replace(",", ""))
    return found


def main():
    program, libraries = sys.argv[1:3]
    print("row\tinstructions\tmispredicted")
    with tempfile.TemporaryDirectory() as folder:
        shares = {}
        for row in ROWS:
            short, long = os.path.join(folder, "short"), os.path.join(folder, "long")
            a, b = run(program, libraries, row, SHORT, short), run(program, libraries, row, LONG, long)
            each = {name: (b.get(name, 0) - a.get(name, 0)) / (LONG - SHORT) for name in EVENTS}
            print(f"{row}\t{each['Ir']:.0f}\t{each['Bcm'] + each['Bim']:.2f}")
            if row == "native_mixed":
                before, after = functions(short), functions(long)
                shares = {name: (count - before.get(name, 0)) / (LONG - SHORT) for name, count in after.items()}
    print("\nfunction in native_mixed\tinstructions")
    for name, count in sorted(shares.items(), key=lambda item: -item[1])[:16]:
        if count >= 1:
            print(f"{name}\t{count:.0f}")


main()
