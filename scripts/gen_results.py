#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/RESULTS.md: what the committed data say about the harness, in one place: defects found, recall and false alarms, mutants killed,
fuzzing, and what grows in libraries of others. No figure is typed in.

    gen_results.py            writes it
    gen_results.py --check    fails when the committed one is not what would be written
"""
import argparse
import csv
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
import gen_defect_table  # noqa: E402
import measurements  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


def fail(message):
    sys.exit(f"gen_results: {message}")


def read(root, name):
    try:
        return (root / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        fail(f"{name}: not found")


def table(head, rows):
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)]


def defects(root):
    """Of the generated table its sums, and its rows without what each defect is."""
    text, _ = gen_defect_table.build(root)
    lines = text.splitlines()
    sums = [line for line in lines if re.match(r"- (simulated|GPU) ", line)]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(r"\| [A-Z]\d+ \| ", line)]
    notes = [line for line in lines if re.match(r"\[\d+\] ", line)]
    return ["## Defects", "", "Published and reduced, in [`suites/reducers/DEFECTS.md`](../suites/reducers/DEFECTS.md) with what each is and expects.", "",
            *sums, "", *table(["row", "reducer", "simulated, defective", "simulated, repaired", "GPU, defective", "GPU, repaired"],
                              [[row[0], row[2], *row[4:8]] for row in rows]), "", *notes]


def rules(root):
    text = read(root, "suites/planted/KILL_MATRIX.md")
    said = re.findall(r"^- (?:planted|positive): .*$", text, re.MULTILINE)
    if len(said) != 2:
        fail("suites/planted/KILL_MATRIX.md: expected a line for planted and one for positive rows")
    return ["## Recall and false alarms", "", "Of planted defects and of positive cases, rule by rule and kind by kind in",
            "[`suites/planted/KILL_MATRIX.md`](../suites/planted/KILL_MATRIX.md).", "", *said]


def mutants(root):
    text = read(root, "suites/mutants/MUTANTS.md")
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    survivors = re.findall(r"^- `.*$", text.split("## Survivors", 1)[-1].split("\n## ", 1)[0], re.MULTILINE)
    if not rows or sum(int(row[3]) for row in rows[:-1]) != len(survivors):
        fail("suites/mutants/MUTANTS.md: expected a table and one line for each survivor")
    return ["## Mutants of the harness", "", "Single lines made wrong; more in [`suites/mutants/MUTANTS.md`](../suites/mutants/MUTANTS.md).", "",
            *table(["code", "mutants", "killed", "survived"], rows), "", "Survivors, with the reason why nothing can tell them:", "", *survivors]


def fuzz_inputs(root, target):
    """How many inputs of each kind the archive of a fuzz target has (scripts/fuzz_inputs)."""
    name = f"suites/fuzz/inputs/{target}.tar.gz"
    try:
        with tarfile.open(root / name) as archive:
            return Counter(member.partition("/")[0] for member in archive.getnames())
    except (OSError, tarfile.TarError, EOFError) as why:
        fail(f"{name}: expected the archive of a fuzz target: {why}")


def fuzzing(root):
    runs = {}
    for row in csv.DictReader(read(root, "measurements/two_cores/fuzz_runs.tsv").splitlines(), delimiter="\t"):
        runs.setdefault(row["target"], []).append({key: int(row[key]) for key in ("cpu_seconds", "executions", "edges", "features", "finds")})
    rows = []
    for target, of in sorted(runs.items()):
        seconds, executions = (sum(run[key] for run in of) for key in ("cpu_seconds", "executions"))
        inputs = fuzz_inputs(root, target)
        rows.append([f"`{target}`", f"{seconds / 60:.1f}", executions, executions // max(seconds, 1), *(max(run[key] for run in of) for key in ("edges", "features")),
                     sum(run["finds"] for run in of), inputs["regressions"], inputs["corpus"]])
    whole = sum(run["cpu_seconds"] for of in runs.values() for run in of)
    return ["## Fuzzing", "", "All recorded runs (`measurements/two_cores/fuzz_runs.tsv`), AddressSanitizer and UndefinedBehaviorSanitizer on, on cores that others used too;",
            "how fast a quiet core is and what was found: [`suites/fuzz/README.md`](../suites/fuzz/README.md). A find is an input that ended a run; each became a",
            "regression input with the mend, those found while a mend was being written stand for the same one.", "",
            *table(["target", "CPU minutes", "executions", "a second", "edges", "features", "finds", "regression inputs", "corpus"], rows), "",
            f"{whole / 3600:.1f} CPU hours in all."]


def growth(row):
    said = [f"{kind} {count:g} per cycle" for kind, count in sorted(row.get("per_cycle", {}).items())]
    said += [f"{name} {count} bytes per cycle" for name, count in sorted(row.get("meters", {}).items())]
    by = next((frame for grown in row.get("grown", []) for frame in grown["by"] if not frame.startswith("python")), "")
    return ", ".join(said) + (f" ({row['grown'][0]['acquired']}, {by})" if by else "")


def libraries(root):
    results, skips, newest = {}, {}, None
    for run in measurements.runs(root):  # of each library the latest
        found = [result for result in run.get("results", []) if result["name"].startswith("libraries ") and result.get("version")]
        left_out = [entry for entry in run.get("skipped", []) if entry["name"].startswith("libraries ")]
        for entry in found + left_out:
            results.pop(entry["name"], None)
            skips.pop(entry["name"], None)
        results.update((result["name"], result) for result in found)
        skips.update((entry["name"], entry) for entry in left_out)
        newest = run if found else newest
    if newest is None:
        fail("measurements: expected a gpu_check.json with results of libraries")
    rows = []
    for result in results.values():
        kinds = [row for row in result["rows"] if not row["kind"].startswith("lost_")]
        planted = [row for row in result["rows"] if row["kind"].startswith("lost_")]
        grows = [f"{row['kind']}: {growth(row)}" for row in kinds if row["outcome"] == "grows"]
        others = sorted({rule for row in kinds for rule in row.get("others", [])})
        linked = sorted({file for row in kinds for file in row.get("linked") or []})
        left_out = [f"{row['kind']}: {row['outcome']}" for row in kinds if row["outcome"] not in ("grows", "nothing grows")]
        rows.append([result["version"], ", ".join(row["kind"] for row in kinds if row["outcome"] in ("grows", "nothing grows")),
                     f"linked: {', '.join(linked)}" if linked else "dlopen", "; ".join(grows) or "nothing", ", ".join(f"`{rule}`" for rule in others) or "none",
                     "; ".join(left_out + [f"{row['kind']} {'found' if row['outcome'] == 'grows' else '**not found**'}" for row in planted]) or ""])
    skipped = [f"- not exercised: {entry['name']}: {entry['reason']}" for entry in skips.values()]
    return ["## Libraries that no one here wrote", "",
            f"`scripts/gpu_check --only libraries` on an {newest['gpu']}, {newest['driver']}, {newest['date']} (`measurements`), alone on the GPU: ten and more marked cycles of each",
            "kind of object made, used and destroyed. How to do that to another one: [`suites/gpu/LIBRARIES.md`](../suites/gpu/LIBRARIES.md).", "",
            *table(["library", "kinds tried", "finds the driver by", "grows", "other rules", "left out, planted"], rows), "", *skipped]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    parts = [part(options.root) for part in (rules, mutants, fuzzing, libraries, defects)]
    text = "\n".join(["# Results", "", "Generated by `scripts/gen_results.py` from the results of tests and runs that are committed; a test fails when this page is stale.", ""] +
                     [line for part in parts for line in [*part, ""]])
    page = options.root / "docs/RESULTS.md"
    if not options.check:
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
    elif not page.is_file() or page.read_text() != text:
        fail(f"{page} is not what the data say: run scripts/gen_results.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
