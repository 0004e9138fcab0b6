#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites reducers step by step, as releases of a program do, and holds `cuaudit compare` to what each step really changed.

  history.py --tool cuaudit --library libcuda.so.1 --cuda INCLUDE --reducers DIR [--steps 30] [--seed 1] [--clang clang] [--keep DIR]

Each step rewrites each program once (renames its file, renames or moves or splits a function, adds calls before a site, shifts lines),
changes compiler or optimisation now and then, and plants or repairs a defect in one of them. Each release is compiled, swept and compared
with the one before, once as a report and once as a baseline file.

What really changed is known without the comparison: a plain build of the same sources before any rewriting, with the same defects planted,
says by its fingerprints which defects there are. Exits 1 when a planted defect is not new, a repaired one not fixed (against a report; a
baseline file may say not run), something is new or fixed in a step that plants or repairs nothing, or fewer than 98 % are unchanged.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

# A program and the places where it forgets to unwind: each occurrence of the marker can be right (1) or wrong (0) by itself.
PROGRAMS = {
    "early_returns": {"marker": "kUnwinds", "sites": {
        "import_surface": 0, "open_plain": 0, "open_with_priority": 0, "kernel_open": 0, "pinned_alloc": 0}},
    "picture_pool": {"marker": "kUnwinds", "sites": {"drain_stream_ensure": 0, "picture_alloc": 0}},
}
OPTIMISED = [["-O1", "-fno-inline"], ["-O0"], ["-O2"], ["-O3"]]
FUNCTION = r"^static [A-Za-z_][\w \*]*?[ \*]{name}\([^;{{}}]*\) \{{$"


class Release:
    """One program as a release has it: sources, flags, and the present names of its functions."""

    def __init__(self, name, source):
        self.name = name
        self.file = name + ".c"
        self.source = source
        self.parts = {}
        self.compiler = "gcc"
        self.optimise = OPTIMISED[0]
        self.wrong = {}

    def copy(self):
        other = Release(self.name, self.source)
        other.file, other.parts, other.compiler = self.file, dict(self.parts), self.compiler
        other.optimise, other.wrong = self.optimise, dict(self.wrong)
        return other


def with_sites(name, source):
    """Each site gets a macro of its own in the place of the marker."""
    program = PROGRAMS[name]
    for site in program["sites"]:
        begin, end = body_of(source, site)
        body = source[begin:end]
        macro = "UNWINDS_" + site.upper()
        assert program["marker"] in body, (name, site)
        source = source[:begin] + body.replace(program["marker"], macro) + source[end:]
    return source.replace("enum { kUnwinds = 0 };", "enum { kUnwinds = 1 };")


def body_of(source, function):
    """Begin and end of a definition; a line '}' ends it."""
    match = re.search(FUNCTION.format(name=re.escape(function)), source, re.M)
    assert match, function
    end = source.index("\n}\n", match.start()) + 3
    return match.start(), end


def functions_of(source):
    return [name for name in re.findall(FUNCTION.format(name=r"(\w+)"), source, re.M) if name not in ("report", "leave", "enter")]


# Rewritings. Each takes a release, a function of it and the number of the step, and says what it did.
def rename_file(release, function, step):
    release.file = f"{release.name}_{step}.c"
    return f"file {release.file}"


def rename_function(release, function, step):
    stem = re.sub(r"_r\d+$", "", function)
    words = stem.split("_")
    new = f"{'_'.join(reversed(words)) if len(words) > 1 else 'do_' + stem}_r{step}"
    release.source = re.sub(rf"\b{function}\b", new, release.source)
    for part in release.parts:
        release.parts[part] = re.sub(rf"\b{function}\b", new, release.parts[part])
    return f"{function} is {new}"


def move_down(release, function, step):
    begin, end = body_of(release.source, function)
    body = release.source[begin:end]
    prototype = body[:body.index(" {\n")] + ";\n"
    release.source = release.source[:begin] + prototype + release.source[end:] + "\n" + body
    return f"{function} to the end"


def move_to_file(release, function, step):
    begin, end = body_of(release.source, function)
    part = f"part_{release.name}_{step}.h"
    release.parts[part] = release.source[begin:end]
    release.source = release.source[:begin] + f'#include "{part}"\n' + release.source[end:]
    return f"{function} to {part}"


def add_calls(release, function, step):
    begin, end = body_of(release.source, function)
    head = release.source.index("{\n", begin) + 2
    added = "  {\n    CUdevice before;\n    int version;\n    (void)cuCtxGetDevice(&before);\n    (void)cuDriverGetVersion(&version);\n  }\n"
    release.source = release.source[:head] + added + release.source[head:]
    return f"calls at the begin of {function}"


def split(release, function, step):
    """The body becomes a function of its own, which the old one calls."""
    begin, end = body_of(release.source, function)
    body = release.source[begin:end]
    signature = body[:body.index(" {\n")]
    inner = f"{re.sub(r'_s[0-9]+$', '', function)}_s{step}"
    arguments = signature[signature.index("(") + 1:-1]
    names = [] if arguments in ("void", "") else [re.search(r"(\w+)$", one.strip()).group(1) for one in arguments.split(",")]
    call = f"{inner}({', '.join(names)});\n"
    kept = "  " if signature.startswith("static void ") else "  return "
    outer = f"{signature} {{\n{kept}{call}}}\n"
    release.source = release.source[:begin] + re.sub(rf"\b{function}\(", f"{inner}(", body, count=1) + "\n" + outer + release.source[end:]
    return f"{inner} out of {function}"


def shift_lines(release, function, step):
    begin, _ = body_of(release.source, function)
    release.source = release.source[:begin] + "// More is said here.\n" * (1 + step % 7) + release.source[begin:]
    return f"lines before {function}"


REWRITINGS = [rename_file, rename_function, move_down, move_to_file, add_calls, split, shift_lines]


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
        # Each of these defects shows with one fault.
        run([self.options.tool, "sweep", "--driver=sim", "--depth=1", f"--format=json={report}", "--", program], expected=(0, 1))
        self.reports[key] = report
        return report


def run(command, expected=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode not in expected:
        sys.exit(f"history.py: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fingerprints(report):
    with open(report, encoding="utf-8") as file:
        return {defect["fingerprint"] for defect in json.load(file)["defects"]}


def compare(options, base, head, directory):
    out = os.path.join(directory, "comparison.json")
    run([options.tool, "compare", base, head, "--fail-on=none", f"--format=json={out}"])
    with open(out, encoding="utf-8") as file:
        return json.load(file)


class Counts:
    def __init__(self):
        self.rows = {name: [0, 0] for name in ("unchanged", "planted", "repaired", "new without a plant", "fixed without a repair")}
        self.misses = []

    def add(self, comparison, before, after, where, of_file):
        """`before` and `after` are what the plain builds have."""
        is_count = {word: comparison["counts"][word] for word in ("new", "changed", "unchanged", "fixed", "not_run")}
        want = {"unchanged": len(before & after), "new": len(after - before), "fixed": len(before - after)}
        for row, word, other in (("unchanged", "unchanged", "unchanged"), ("planted", "new", "new"), ("repaired", "fixed", "fixed")):
            found = is_count[word] + (is_count["not_run"] if of_file and row == "repaired" else 0)
            self.rows[row][0] += min(found, want[other])
            self.rows[row][1] += want[other]
        # A rewriting may make two defects of one (another function is blamed for some failing calls), so more may be new than was planted.
        self.rows["new without a plant"][0] += is_count["new"] if want["new"] == 0 else 0
        self.rows["fixed without a repair"][0] += is_count["fixed"] if want["fixed"] == 0 else 0
        if is_count["unchanged"] != want["unchanged"] or is_count["new"] != want["new"] or is_count["fixed"] != want["fixed"]:
            self.misses.append(f"{where}: expected {want}, got {is_count}")

    def bad(self):
        rows = self.rows
        return (rows["planted"][0] < rows["planted"][1] or rows["repaired"][0] < rows["repaired"][1] or rows["fixed without a repair"][0] != 0
                or rows["new without a plant"][0] != 0 or rows["unchanged"][0] < 0.98 * rows["unchanged"][1])


def next_release(options, release, step, chance, change_defect):
    new = release.copy()
    said = []
    rewriting = REWRITINGS[(step + len(release.name)) % len(REWRITINGS)]
    candidates = functions_of(new.source)
    sites = [name for name in candidates if any(site.split("_")[0] in name for site in new.wrong)]
    said.append(rewriting(new, chance.choice(sites or candidates), step))
    if step % 5 == 2:
        new.compiler = "clang" if new.compiler == "gcc" and options.clang else "gcc"
        said.append(new.compiler)
    if step % 3 == 1:
        new.optimise = OPTIMISED[(step // 3 + 1) % len(OPTIMISED)]
        said.append(" ".join(new.optimise))
    if change_defect:
        site = chance.choice(sorted(new.wrong))
        new.wrong[site] = not new.wrong[site]
        said.append(("planted in " if new.wrong[site] else "repaired in ") + site)
    return new, ", ".join(said)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--tool", "--library", "--cuda", "--reducers"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gcc", default="gcc")
    parser.add_argument("--clang", default=shutil.which("clang") or "")
    parser.add_argument("--keep", help="folder for sources, programs and reports")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    directory = options.keep or tempfile.mkdtemp(prefix="cuaudit_history_")
    os.makedirs(directory, exist_ok=True)
    builder = Builder(options, directory)
    by_report, by_file = Counts(), Counts()
    began = time.monotonic()
    releases, plain = {}, {}
    for name, program in PROGRAMS.items():
        with open(os.path.join(options.reducers, name + ".c"), encoding="utf-8") as file:
            releases[name] = Release(name, with_sites(name, file.read()))
        for number, site in enumerate(program["sites"]):
            releases[name].wrong[site] = number % 2 == 0
        plain[name] = releases[name].copy()
    names = sorted(releases)
    for step in range(1, options.steps + 1):
        for place, name in enumerate(names):
            new, said = next_release(options, releases[name], step, chance, (step + place) % len(names) == 0)
            before = fingerprints(builder.report_of(plain[name], "plain"))
            plain[name].wrong = dict(new.wrong)
            after = fingerprints(builder.report_of(plain[name], "plain"))
            base, head = builder.report_of(releases[name], said), builder.report_of(new, said)
            releases[name] = new
            where = f"step {step}, {name}: {said}"
            print(where, flush=True)
            by_report.add(compare(options, base, head, directory), before, after, where, False)
            baseline = os.path.join(directory, "baseline.txt")
            run([options.tool, "baseline", "write", base, baseline])
            by_file.add(compare(options, baseline, head, directory), before, after, where, True)
    print(f"{options.steps} steps of {len(names)} programs, {len(builder.reports)} sweeps, {time.monotonic() - began:.0f} s")
    for counts, base in ((by_report, "a report"), (by_file, "a baseline file")):
        said = ", ".join(f"{row} {found}" + (f" of {wanted}" if "without" not in row else "")
                         for row, (found, wanted) in counts.rows.items())
        print(f"against {base}: {said}")
        for miss in counts.misses:
            print(f"  {miss}")
    if not options.keep:
        shutil.rmtree(directory)
    return 1 if by_report.bad() or by_file.bad() else 0


if __name__ == "__main__":
    sys.exit(main())
