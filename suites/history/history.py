#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites reducers step by step, as releases of a program do, and holds `cuaudit compare` to what each step really changed.

  history.py --tool cuaudit --library libcuda.so.1 --cuda INCLUDE --reducers DIR [--steps 30] [--seeds 1,2] [--depth 1] [--clang clang] [--keep DIR]

Each step rewrites each program once (renames its file, renames or moves or splits a function, adds calls before a site, shifts lines),
changes compiler or optimisation now and then, and plants or repairs a defect in one of them. Each release is compiled, swept and compared
with the one before, once as a report and once as a baseline file.

What really changed is known without the comparison, and not by fingerprints: each defect has a *place*, the forgetful function in which it was planted
and the line that acquires what is lost, both as they were before any rewriting. A plain build of the unchanged sources with the same defects says
which places lose something. Held against the comparison:

  new        each place that was planted has a new defect, and nothing is new anywhere else
  fixed      each defect of a place that was repaired is fixed (a baseline file may say not run), and no other one
  in doubt   a baseline file may say of a defect whose blamed function has another name that it is not run, beside a new one of its place
  unchanged  every other defect is taken for one of the same place, and for no other; at least 98 % of them are unchanged

At the end a forgetful function is copied, and the copy is called beside the old one: what the copy loses is new, and nothing else is.

Exits 1 when one of these does not hold. What the sweep itself says otherwise of a rewritten program than of the plain one, such as two defects where
there was one because another function is blamed, is counted and listed, and is no fault of the comparison.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
from rewritings import PROGRAMS, Release, body_of, next_release, with_sites  # noqa: E402


class Builder:
    def __init__(self, options, directory):
        self.options = options
        self.directory = directory
        self.reports = {}

    def report_of(self, release, title):
        """Compiles and sweeps; answers the file of the report. Equal releases are swept once."""
        key = json.dumps([release.file, release.source, release.parts, release.compiler, release.optimise, release.wrong], sort_keys=True)
        if key in self.reports:
            return self.reports[key]
        directory = os.path.join(self.directory, f"{release.name}.{len(self.reports)}")
        os.makedirs(directory)
        with open(os.path.join(directory, release.file), "w", encoding="utf-8") as out:
            out.write(release.source)
        for part, text in release.parts.items():
            with open(os.path.join(directory, part), "w", encoding="utf-8") as out:
                out.write(text)
        program = os.path.join(directory, release.name)
        compiler = self.options.clang if release.compiler == "clang" else self.options.gcc
        defines = [f"-DUNWINDS_{site.upper()}={0 if wrong else 1}" for site, wrong in release.wrong.items()]
        run([compiler, "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-g", *release.optimise, *defines, "-isystem", self.options.cuda,
             os.path.join(directory, release.file), "-o", program, self.options.library, "-ldl", "-lpthread"])
        report = os.path.join(directory, "report.json")
        # Each of the planted defects shows with one fault. More faults show them on more ways.
        run([self.options.tool, "sweep", "--driver=sim", f"--depth={self.options.depth}", f"--format=json={report}", "--", program], expected=(0, 1))
        self.reports[key] = report
        return report


def run(command, expected=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode not in expected:
        sys.exit(f"history.py: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def places(release, report):
    """fingerprint -> place"""
    with open(report, encoding="utf-8") as file:
        return {defect["fingerprint"]: release.place_of(defect) for defect in json.load(file)["defects"]}


def sites(release, report):
    return {place[0] for place in places(release, report).values()}


def compare(options, base, head, directory):
    out = os.path.join(directory, "comparison.json")
    run([options.tool, "compare", base, head, "--fail-on=none", f"--format=json={out}"])
    with open(out, encoding="utf-8") as file:
        return json.load(file)


class Counts:
    """What the comparisons with one sort of base say, held against what each step really did."""

    def __init__(self):
        self.rows = {name: [0, 0] for name in ("planted places new", "repaired defects fixed", "other defects unchanged")}
        self.wrong = []    # what a comparison says and is not so
        self.changed = []  # unchanged defects that are said to have changed
        self.doubts = []   # what may have been renamed, in the eyes of a baseline file: one new and one not run

    def add(self, comparison, base, head, before, after, where, of_file):
        """`base` and `head` are the places of the releases by fingerprint, `before` and `after` the sites that lose something."""
        planted, repaired = after - before, before - after
        new_at = set()
        gone = {one["fingerprint"]: one["change"] for one in comparison["gone"]}
        # A baseline file does not know all functions. So a new defect may be told beside one of the same place that is not run, never fixed.
        doubtful = [base[one] for one, change in gone.items() if of_file and change == "not_run" and base[one][0] not in repaired]
        for defect in comparison["defects"]:
            place = head[defect["fingerprint"]]
            if defect["change"] == "new":
                new_at.add(place[0])
                if place in doubtful:
                    self.doubts.append(f"{where}: new at {place}, which is not run")
                elif place[0] not in planted:
                    self.wrong.append(f"{where}: new at {place}, where nothing was planted")
                continue
            self.rows["other defects unchanged"][1] += 1
            # Of several the first one is the pair; others are defects of the base that are a part of this one.
            taken = [one["fingerprint"] for one in defect.get("taken_for", [])]
            pairs = [one for one in taken if one in base] or [defect["fingerprint"]]
            others = [base.get(one) for one in pairs if base.get(one) != place]
            if others:
                self.wrong.append(f"{where}: {place} is taken for {others}")
            elif defect["change"] == "unchanged":
                self.rows["other defects unchanged"][0] += 1
            else:
                self.changed.append(f"{where}: {place} changed, was {defect['was']}")
        for site in planted:
            self.rows["planted places new"][1] += 1
            self.rows["planted places new"][0] += site in new_at
            if site not in new_at:
                self.wrong.append(f"{where}: nothing is new at {site}, where a defect was planted")
        for fingerprint, place in base.items():
            if place[0] in repaired:
                good = gone.get(fingerprint) == "fixed" or (of_file and gone.get(fingerprint) == "not_run")
                self.rows["repaired defects fixed"][1] += 1
                self.rows["repaired defects fixed"][0] += good
                if not good:
                    self.wrong.append(f"{where}: {place} was repaired, and is {gone.get(fingerprint, 'still there')}")
            elif fingerprint in gone:
                if place not in doubtful or place not in [head[one["fingerprint"]] for one in comparison["defects"] if one["change"] == "new"]:
                    self.wrong.append(f"{where}: {place} is {gone[fingerprint]}, and nobody repaired it")
                self.rows["other defects unchanged"][1] += 1

    def bad(self):
        unchanged, all_others = self.rows["other defects unchanged"]
        return bool(self.wrong) or unchanged < 0.98 * all_others


def play(options, builder, seed, counts, split):
    """One history. `counts` has a Counts for each sort of base."""
    chance = random.Random(seed)
    releases, plain = {}, {}
    for name, program in PROGRAMS.items():
        with open(os.path.join(options.reducers, name + ".c"), encoding="utf-8") as file:
            releases[name] = Release(name, with_sites(name, file.read()))
        for number, site in enumerate(program["sites"]):
            releases[name].wrong[site] = number % 2 == 0
        plain[name] = releases[name].copy()
    names = sorted(releases)
    for step in range(1, options.steps + 1):
        for turn, name in enumerate(names):
            old = releases[name]
            new, said = next_release(options, old, step, chance, (step + turn) % len(names) == 0)
            before = sites(plain[name], builder.report_of(plain[name], "plain"))
            plain[name].wrong = dict(new.wrong)
            plain_report = builder.report_of(plain[name], "plain")
            after = sites(plain[name], plain_report)
            base, head = builder.report_of(old, said), builder.report_of(new, said)
            releases[name] = new
            where = f"seed {seed}, step {step}, {name}: {said}"
            print(where, flush=True)
            at_base, at_head, at_plain = places(old, base), places(new, head), places(plain[name], plain_report)
            if len(at_head) != len(at_plain):
                split.append(f"{where}: {len(at_head)} defects, the plain program has {len(at_plain)}")
            if {place[0] for place in at_head.values()} != after:
                sys.exit(f"history.py: {where}: the sweep finds {sorted(set(at_head.values()))}, planted are {sorted(after)}")
            counts[0].add(compare(options, base, head, builder.directory), at_base, at_head, before, after, where, False)
            baseline = os.path.join(builder.directory, "baseline.txt")
            run([options.tool, "baseline", "write", base, baseline])
            counts[1].add(compare(options, baseline, head, builder.directory), at_base, at_head, before, after, where, True)


COPY = "picture_copy"
SECOND = """  if (failed == 0) {
    Picture second;
    failed = report("copy", picture_copy(context, &second));
    picture_free(context, failed == 0 ? &second : &picture);
  }
"""


def copied(release):
    """A forgetful function once more under another name, as when somebody begins a new one with a copy of an old one. Both are called."""
    begin, end = body_of(release.source, "picture_alloc")
    body = release.source[begin:end].replace("picture_alloc(", COPY + "(")
    called = '  failed = report("picture alloc", picture_alloc(context, &picture));\n'
    assert called in release.source
    new = release.copy()
    new.source = (release.source[:end] + "\n" + body + release.source[end:]).replace(called, called + SECOND)
    return new


def play_copy(options, builder, count):
    """What the copy loses is new beside a release without it, and gone the other way round. Nothing else is new or gone. Answers what is not so."""
    with open(os.path.join(options.reducers, "picture_pool.c"), encoding="utf-8") as file:
        old = Release("picture_pool", with_sites("picture_pool", file.read()))
    old.wrong = {site: True for site in PROGRAMS["picture_pool"]["sites"]}
    new = copied(old)
    base, head = builder.report_of(old, "without a copy"), builder.report_of(new, "with a copy")
    with open(head, encoding="utf-8") as file:
        of_copy = {defect["fingerprint"] for defect in json.load(file)["defects"]
                   if COPY in [frame["function"] for frame in defect["acquired"]["stack"]]}
    wrong = [] if of_copy else ["the copy loses nothing"]
    baselines = []
    for report in (base, head):
        baselines.append(os.path.join(builder.directory, f"copy{len(baselines)}.txt"))
        run([options.tool, "baseline", "write", report, baselines[-1]])
    for one in (base, baselines[0]):
        for defect in compare(options, one, head, builder.directory)["defects"]:
            count[0] += 1
            # What a function is blamed for that both call has changed: it fails at more places.
            if (defect["change"] == "new") != (defect["fingerprint"] in of_copy):
                wrong.append(f"a copied function: {defect['fingerprint']} is {defect['change']}")
    for one in (head, baselines[1]):
        gone = {defect["fingerprint"] for defect in compare(options, one, base, builder.directory)["gone"]}
        count[0] += len(of_copy)
        wrong += [f"a copy that is gone: {fingerprint}" for fingerprint in gone ^ of_copy]
    return wrong


def main():
    parser = argparse.ArgumentParser()
    for name in ("--tool", "--library", "--cuda", "--reducers"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", default="1", help="numbers with commas between: one history each")
    parser.add_argument("--depth", type=int, default=1, help="faults in one trial of the sweeps")
    parser.add_argument("--gcc", default="gcc")
    parser.add_argument("--clang", default=shutil.which("clang") or "")
    parser.add_argument("--keep", help="folder for sources, programs and reports")
    options = parser.parse_args()
    directory = options.keep or tempfile.mkdtemp(prefix="cuaudit_history_")
    os.makedirs(directory, exist_ok=True)
    builder = Builder(options, directory)
    counts, split = (Counts(), Counts()), []
    began = time.monotonic()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    for seed in seeds:
        play(options, builder, seed, counts, split)
    print(f"{len(seeds)} histories of {options.steps} steps of {len(PROGRAMS)} programs, depth {options.depth}, {len(builder.reports)} sweeps, "
          f"{time.monotonic() - began:.0f} s")
    for one, base in zip(counts, ("a report", "a baseline file")):
        print(f"against {base}: " + ", ".join(f"{row} {found} of {all_of}" for row, (found, all_of) in one.rows.items()))
        print(f"  wrong {len(one.wrong)}, said to have changed {len(one.changed)}, in doubt {len(one.doubts)}")
        for line in one.wrong + one.changed + one.doubts:
            print(f"    {line}")
    print(f"steps in which the sweep itself has another number of defects than of the plain program: {len(split)}")
    for line in split:
        print(f"    {line}")
    count = [0]
    copies = play_copy(options, builder, count)
    print(f"a function copied with its defects, and the copy removed: wrong {len(copies)} of {count[0]}")
    for line in copies:
        print(f"    {line}")
    if not options.keep:
        shutil.rmtree(directory)
    return 1 if copies or any(one.bad() for one in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
