#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a full sweep costs, by length of the lifecycle: first and second order, every fault, nothing pruned.

    sweep_cost.py --build build/release [--calls 16,106,1006,3006] [--isolation fork,spawn] [--jobs 2] [--table FILE.tsv]

    sweep_cost.py --plot TABLE.tsv OUTPUT.svg

Prints a table as in harness/sweep/README.md; --table writes one that --plot draws: seconds of the processor for a whole sweep against its
driver calls, both axes logarithmic; the grey line is what the first row would cost if each call cost the same. Seconds of the processor
count the tool and all that it waited for.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#d1495b", "#4a9e5c"]
COLUMNS = ["isolation", "driver_calls", "trials", "seconds", "processor_seconds"]
WIDTH, HEIGHT, LEFT, TOP = 460, 300, 70, 60


def sweep(build, calls, isolation, jobs):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [build / "bin/cuaudit", "sweep", "--driver=sim", "--no-prune", f"--isolation={isolation}", f"--jobs={jobs}", "--format=json",
                   "--output", report.name, "--", build / "bin/e2e/steps", str(calls)]
        with tempfile.TemporaryFile() as errors:
            began = time.monotonic()
            process = subprocess.Popen(command, stderr=errors)
            _, status, used = os.wait4(process.pid, 0)
            wall = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            if process.returncode != 0:
                sys.exit(f"{command[0]}: expected a clean sweep, got status {process.returncode}: {errors.read().decode(errors='replace')}")
        totals = json.loads(Path(report.name).read_text())["totals"]
        return totals, wall, used.ru_utime + used.ru_stime


def read(path):
    comments, series = [], {}
    columns = None
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line.startswith("#"):
            comments.append(line[1:].strip())
        elif columns is None:
            columns = line.split("\t")
            if columns[:len(COLUMNS)] != COLUMNS:
                sys.exit(f"{path}:{number}: expected the columns {' '.join(COLUMNS)}")
        else:
            row = dict(zip(columns, line.split("\t")))
            try:
                series.setdefault(row["isolation"], []).append((int(row["driver_calls"]), float(row["processor_seconds"])))
            except (KeyError, ValueError):
                sys.exit(f"{path}:{number}: expected {len(COLUMNS)} columns, the numbers among them positive")
    if not series:
        sys.exit(f"{path}: no rows")
    return comments, {isolation: sorted(points) for isolation, points in series.items()}


def draw(comments, series):
    points = [point for line in series.values() for point in line]
    left, right = math.log10(min(p[0] for p in points)), math.log10(max(p[0] for p in points))
    low, high = math.floor(math.log10(min(p[1] for p in points))), math.ceil(math.log10(max(p[1] for p in points)))
    right, high = max(right, left + 1), max(high, low + 1)

    def x(calls):
        return LEFT + WIDTH * (math.log10(calls) - left) / (right - left)

    def y(seconds):
        return TOP + HEIGHT * (1 - (math.log10(seconds) - low) / (high - low))

    width, height = LEFT + WIDTH + 40, TOP + HEIGHT + 50
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield f'<text x="{LEFT}" y="20" font-weight="bold">Seconds of the processor for all first and second faults</text>'
    yield f'<text x="{LEFT}" y="38" fill="#555">{escape(comments[0] if comments else "")}</text>'
    for power in range(low, high + 1):
        yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{10 ** power:g}</text>'
    for calls in sorted({p[0] for p in points}):
        yield f'<text x="{x(calls):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{calls:,}</text>'
    yield f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">driver calls of the lifecycle</text>'
    for i, (isolation, line) in enumerate(sorted(series.items())):
        colour = COLOURS[i % len(COLOURS)]
        first, last = line[0], line[-1]
        straight = first[1] * last[0] / first[0]
        yield f'<line x1="{x(first[0]):.1f}" y1="{y(first[1]):.1f}" x2="{x(last[0]):.1f}" y2="{y(straight):.1f}" stroke="#bbb" stroke-dasharray="4 3"/>'
        yield f'<polyline points="{" ".join(f"{x(c):.1f},{y(s):.1f}" for c, s in line)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for calls, seconds in line:
            yield f'<circle cx="{x(calls):.1f}" cy="{y(seconds):.1f}" r="3" fill="{colour}"><title>{calls:,} calls: {seconds:.2f} s</title></circle>'
        yield f'<text x="{x(last[0]) - 8:.1f}" y="{y(last[1]) - 8:.1f}" text-anchor="end" fill="{colour}">{escape(isolation)}</text>'
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--calls", default="16,106,1006,3006")
    parser.add_argument("--isolation", default="fork")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", type=Path)
    parser.add_argument("--plot", type=Path, nargs=2, metavar=("TABLE.tsv", "OUTPUT.svg"))
    options = parser.parse_args()
    if options.plot:
        options.plot[1].write_text("\n".join(draw(*read(options.plot[0]))) + "\n")
        return
    if not options.build:
        parser.error("expected --build or --plot")
    rows = [f"# programs/steps.c, nothing pruned, {options.jobs} jobs", "isolation\tdriver_calls\ttrials\tseconds\tprocessor_seconds"]
    print("| isolation | driver calls | trials | seconds | of the processor | ms of it a trial |")
    print("| --- | --- | --- | --- | --- | --- |")
    for isolation in options.isolation.split(","):
        for calls in (int(word) for word in options.calls.split(",")):
            totals, wall, cpu = sweep(options.build, calls, isolation, options.jobs)
            print(f"| {isolation} | {totals['calls']} | {totals['trials']} | {wall:.2f} | {cpu:.2f} | {1000 * cpu / totals['trials']:.2f} |", flush=True)
            rows.append(f"{isolation}\t{totals['calls']}\t{totals['trials']}\t{wall:.2f}\t{cpu:.2f}")
            if options.table:
                options.table.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
