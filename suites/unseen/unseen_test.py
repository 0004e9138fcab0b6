#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sweeps the programs of programs.tar.xz and compares what is found with found.tsv.

    unseen_test.py --build build/dev --cuda /usr/local/cuda [--only NAME]... [--jobs N]
    unseen_test.py ... --write                 writes found.tsv anew
    unseen_test.py ... --with '--how burst'    further options of each sweep, of the correct and repaired forms: nothing else may be found than without them
    unseen_test.py ... --driver real --budget 60s    on the machine's driver, each sweep for so long at most; prints what is found, and compares nothing

Exit status: 0 all is as found.tsv says, 1 it is not.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOM = Path(__file__).resolve().parent
FOUND = ROOM / "found.tsv"
HEAD = "program\tform\trules\n"


def head_line(source, word):
    found = re.search(rf"^// {word}: (.*)$", source.read_text(), re.M)
    return found.group(1) if found else ""


class Programs:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.tool = arguments.build.resolve() / "bin/cuaudit"
        self.drop_in = arguments.build.resolve() / "lib/cuaudit"
        with tarfile.open(ROOM / "programs.tar.xz") as archive:
            archive.extractall(directory)

    def rows(self):
        """(source, form) of every program; a defective one has a repaired form, made by -DFIXED."""
        for source in sorted(self.directory.glob("*/*.c*")):
            if self.arguments.only and not any(source.stem.startswith(name) for name in self.arguments.only):
                continue
            if self.arguments.further and head_line(source, "how").startswith(("cycles", "run")):
                continue
            if source.parent.name == "correct":
                yield source, "correct"
            else:
                if not self.arguments.further:
                    yield source, "defective"
                yield source, "repaired"

    def build(self, source, form):
        program = self.directory / f"{source.stem}_{form}"
        cudart = self.drop_in / "cudart"
        compiler = ["c++", "-std=c++17"] if source.suffix == ".cc" else ["cc", "-std=gnu11"]
        command = [*compiler, "-g", "-O0", "-w", "-pthread", str(source), "-o", str(program), "-isystem", str(self.arguments.cuda / "include"),
                   f"-L{cudart}", f"-L{self.drop_in}", "-Wl,--as-needed", "-lcudart", "-lcuda", "-ldl", f"-Wl,-rpath,{cudart}"]
        if form == "repaired":
            command.append("-DFIXED")
        subprocess.run(command, check=True)
        return program

    def sweep(self, source, form):
        """The rules of what is found. Of a program without findings "-" where it is clean, else the outcome.
        On the machine's driver the ways to fail that were tried are printed, too: 12/46 where there was no time for all."""
        program = self.build(source, form)
        begin = time.monotonic()
        report = self.directory / f"{program.name}.json"
        verb, *options = (head_line(source, "how") or "sweep").split()
        words = {"cycles": ["--n", "1,10"], "sweep": self.arguments.budget}.get(verb, [])
        outcome = subprocess.run([str(self.tool), verb, f"--driver={self.arguments.driver}", *words, *options, *self.arguments.further, "--progress=none",
                                  f"--format=json={report}", "--", str(program), *(["{n}"] if verb == "cycles" else [])],
                                 cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        ways = "-"
        if outcome.returncode not in (0, 1, 3) or not report.exists():
            found = f"exit status {outcome.returncode}: {outcome.stderr.strip()[-300:]}"
        else:
            audit = json.loads(report.read_text())
            found = " ".join(sorted({finding["rule"] for finding in audit["findings"]})) or ("-" if audit["outcome"] == "clean" else audit["outcome"])
            if coverage := audit.get("coverage"):
                ways = f"{coverage['reached']}/{coverage['reachable']}"
        if self.arguments.driver != "sim":
            print(source.stem, form, found, ways, round(time.monotonic() - begin, 1), sep="\t", flush=True)
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cuda", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--driver", default="sim")
    parser.add_argument("--with", dest="further", type=shlex.split, default=[])
    parser.add_argument("--budget", type=lambda value: ["--budget", value], default=[])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write and (arguments.only or arguments.further or arguments.driver != "sim"):
        parser.error("--write: expected all programs on the simulated driver, without --only, --with or another --driver")
    expected = {(name, form): rules for name, form, rules in (line.split("\t") for line in FOUND.read_text().splitlines()[1:])}
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        programs = Programs(arguments, Path(directory))
        rows = list(programs.rows())
        if not rows:
            parser.error(f"--only: expected the begin of the name of a program{' that sweeps' if arguments.further else ''}, not {' '.join(arguments.only)}")
        found = dict(zip(((source.stem, form) for source, form in rows), pool.map(lambda row: programs.sweep(*row), rows)))
        # Where threads race for jobs, one of them may get them all on a loaded machine: then a fault of the other one does not fire.
        for source, form in rows:
            row = (source.stem, form)
            if arguments.driver == "sim" and found[row] == "not_exercised" != expected.get(row, found[row]):
                print(f"{source.stem}, {form}: not_exercised beside the others; swept again alone")
                found[row] = programs.sweep(source, form)
    if arguments.write:
        FOUND.write_text(HEAD + "".join(f"{name}\t{form}\t{rules}\n" for (name, form), rules in found.items()))
        return 0
    wrong = 0
    for row, rules in found.items():
        if arguments.driver == "sim" and rules != expected.get(row):
            print(f"{row[0]}, {row[1]}: {rules}; expected {expected.get(row)}")
            wrong += 1
    if not arguments.only and not arguments.further and found.keys() != expected.keys():
        print("found.tsv lists other programs than programs.tar.xz holds")
        wrong += 1
    print(f"{len(found)} sweeps, {wrong} otherwise than found.tsv says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
