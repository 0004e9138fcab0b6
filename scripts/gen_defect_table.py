#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes suites/reducers/DEFECTS.md: defect by defect, whether the defective form is found with its exact vector and the repaired one stays
silent, on the simulated driver and on GPUs. Every verdict comes from recorded results of tests; none is typed in.

    gen_defect_table.py                     writes the table from the committed data
    gen_defect_table.py --check             fails when the committed table is not what would be written, or a test of the index has no result
    gen_defect_table.py --record BUILD      runs the tests of suites/reducers/reducers.json on the simulated driver first, and keeps what
                                            each of them said in suites/reducers/simulated_results.json; --only PROGRAM runs the tests
                                            of that program (ctest: of check_vectors.py) and leaves the other results as they are

Results of GPUs are the runs in measurements/*/gpu_check.json (scripts/measurements.py); of two for the same test the later one's counts.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.dont_write_bytecode = True
import measurements  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
WORDS = {"defective": ("found", "**not found**"), "repaired": ("silent", "**not silent**")}
STEP = re.compile(r"(?:second order )?(?P<program>\w+) (?P<form>defective|repaired|only_a4)(?: (?P<mode>sweep|cycles))?")


def fail(message):
    sys.exit(f"gen_defect_table: {message}")


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        fail(f"{path}: not found")
    except json.JSONDecodeError as error:
        fail(f"{path}:{error.lineno}: expected JSON: {error.msg}")


def reducers(index):
    for row in index["rows"]:
        for reducer in row.get("reducers", []):
            yield row, reducer


def wanted(index):
    """program -> the tests of it that the index names."""
    tests = {}
    for _, reducer in reducers(index):
        for form in WORDS:
            tests.setdefault(reducer["judged_by"], set()).update(reducer.get(form, []))
    return tests


def gtest_results(program, environment):
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.json"
        subprocess.run([program, f"--gtest_output=json:{results}"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=False)
        data = load(results)
    return {f"{suite['name']}.{test['name']}": "failed" if test.get("failures") else "skipped" if test["result"] == "SKIPPED" else "passed"
            for suite in data["testsuites"] for test in suite["testsuite"]}


def ctest_results(build, names):
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.xml"
        subprocess.run(["ctest", "--test-dir", build, "-R", f"^({'|'.join(sorted(names))})_sim$", "--output-junit", results, "-j2"],
                       stdout=subprocess.DEVNULL, check=False)
        cases = xml.parse(results).getroot().iter("testcase")
        said = {"run": "passed", "fail": "failed"}
        return {case.get("name").removesuffix("_sim"): said.get(case.get("status"), "skipped") for case in cases}


def record(index, build, only, results):
    environment = dict(os.environ, CUAUDIT_OPTIONS="driver=sim")
    programs = wanted(index)
    if only and only not in programs:
        fail(f"--only {only}: expected one of {', '.join(sorted(programs))}")
    for program, tests in sorted(programs.items()):
        if only and program != only:
            continue
        said = ctest_results(build, tests) if program == "ctest" else gtest_results(build / "bin" / program, environment)
        results[program] = {test: said[test] for test in sorted(tests) if test in said}
    return {"driver": "simulated", "tests": results}


def gpu_results(root):
    """program -> test -> (result, run); the device of each run."""
    tests, devices = {}, {}
    for run in measurements.runs(root):
        said = {program: dict(results) for program, results in run.get("tests", {}).items()}
        # What check_vectors.py said; a sweep that was cut off was not held against its vector, a rejudged one against a wrong one.
        for entry in run.get("results", []):
            step = STEP.fullmatch(entry["name"])
            if step and (step["mode"] or entry["name"].startswith("second order ")) and not entry.get("rejudged") and not entry.get("partial"):
                test = f"reducer_{step['program']}_{step['form']}_{step['mode'] or 'sweep'}"
                said.setdefault("ctest", {}).setdefault(test, "passed" if entry["passed"] else "failed")
        name = measurements.name_of(run)
        for program, results in said.items():
            for test, result in results.items():
                tests.setdefault(program, {})[test] = (result, name)
        if said:
            devices[name] = f"{run['gpu']}, {run['driver']}, code as of {run.get('commit') or 'its day, no commit was recorded'}"
    return tests, devices


def cell(reducer, form, results):
    """What the tests of one form say together: one word."""
    tests = reducer.get(form, [])
    if not tests:
        return "none"
    said = [results.get(reducer["judged_by"], {}).get(test) for test in tests]
    if "failed" in said:
        return WORDS[form][1]
    if None in said:
        return "not run"
    return "skipped" if "skipped" in said else WORDS[form][0]


def gpu_cell(reducer, form, results, note):
    """As `cell`; where tests can run on the simulated driver alone, what the others said, and the note's number."""
    tests = reducer.get(form, [])
    said = [results.get(reducer["judged_by"], {}).get(test) for test in tests]
    if not note or "failed" in said or said.count("passed") == len(tests):
        return cell(reducer, form, results)
    passed = f"{WORDS[form][0]}, {said.count('passed')} of {len(tests)} tests " if "passed" in said else ""
    return f"{passed}[{note}]"


def count_of(word):
    return "with a note alone" if word.startswith("[") else word.split(",")[0].strip("*") + (" in part" if "," in word else "")


def build(root):
    folder = root / "suites/reducers"
    index, simulated = load(folder / "reducers.json"), load(folder / "simulated_results.json")["tests"]
    gpu, devices = gpu_results(root)
    gpu_said = {program: {test: result for test, (result, _) in results.items()} for program, results in gpu.items()}
    used = {gpu[r["judged_by"]][t][1] for _, r in reducers(index) for form in WORDS for t in r.get(form, []) if t in gpu.get(r["judged_by"], {})}
    lines, notes, count = [], [], {}
    for row in index["rows"]:
        if not row.get("reducers"):
            lines.append(f"| {row['id']} | {row['about']} | none: {row['left_out']} | | | | | |")
        for reducer in row.get("reducers", []):
            cells = [cell(reducer, form, simulated) for form in WORDS]
            note = reducer.get("only_simulated")
            notes += [note] if note else []
            cells += [gpu_cell(reducer, form, gpu_said, note and list(dict.fromkeys(notes)).index(note) + 1) for form in WORDS]
            for place, word in zip(("simulated defective", "simulated repaired", "GPU defective", "GPU repaired"), cells):
                count.setdefault(place, {}).setdefault(count_of(word), 0)
                count[place][count_of(word)] += 1
            lines.append(f"| {row['id']} | {row['about']} | `{reducer['file']}` | {reducer['expected']} | " + " | ".join(cells) + " |")
    lacking = sorted(f"{program}: {test}" for program, tests in wanted(index).items() for test in tests if test not in simulated.get(program, {}))
    text = ["# Defects and what the harness says about them", "",
            "Generated by `scripts/gen_defect_table.py` from `reducers.json` (what each test stands for), `simulated_results.json` and",
            "`measurements` (what the tests said). *found*: the test holds the defective form to its exact vector, fault by fault, and passed.",
            "*silent*: not one finding in the repaired form. *not run*: no recorded run of it. Of a C program on a GPU each failing place is held to its",
            "vector once; every turn of its loops, too, where the step of `gpu_check.json` says `exact`, as all do on the simulated driver.", ""]
    for place, words in count.items():
        text.append(f"- {place}: " + ", ".join(f"{number} {word}" for word, number in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))))
    text += ["", "| row | defect | reducer | expected of the defective form | simulated, defective | simulated, repaired | GPU, defective | GPU, repaired |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |", *lines, ""]
    text += [f"[{number}] simulated driver only: {note}." for number, note in enumerate(dict.fromkeys(notes), 1)]
    text += ([""] if notes else []) + ["Results on GPUs, of each test the latest:", ""] + [f"- {name}: {devices[name]}" for name in sorted(used)]
    text += [] if used else ["none recorded"]
    return "\n".join(text) + "\n", lacking


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", type=Path, metavar="BUILD")
    parser.add_argument("--only", metavar="PROGRAM")
    options = parser.parse_args()
    folder = options.root / "suites/reducers"
    if not (folder / "reducers.json").is_file():
        print("gen_defect_table: there is no suites/reducers/reducers.json", file=sys.stderr)
        return 77
    if not options.record and not (folder / "simulated_results.json").is_file():
        fail("suites/reducers/simulated_results.json is not there: run scripts/gen_defect_table.py --record BUILD")
    if options.record:
        before = load(folder / "simulated_results.json")["tests"] if options.only else {}
        results = record(load(folder / "reducers.json"), options.record.resolve(), options.only, before)
        (folder / "simulated_results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    text, lacking = build(options.root)
    table = folder / "DEFECTS.md"
    if lacking:
        fail(f"simulated_results.json has no result of {'; '.join(lacking[:5])}: run scripts/gen_defect_table.py --record BUILD")
    if not options.check:
        table.write_text(text)
    elif not table.is_file() or table.read_text() != text:
        fail(f"{table} is not what the data say: run scripts/gen_defect_table.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
