#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what sweep_cost.py --table wrote: seconds of the processor for a whole sweep against its driver calls, as one SVG.

    scripts/plot_sweep_cost.py TABLE.tsv OUTPUT.svg

Both axes are logarithmic; the grey line is what the first row would cost if each call cost the same.
"""
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#d1495b", "#4a9e5c"]
COLUMNS = ["isolation", "driver_calls", "trials", "seconds", "processor_seconds"]
WIDTH, HEIGHT, LEFT, TOP = 460, 300, 70, 60


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
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    Path(sys.argv[2]).write_text("\n".join(draw(*read(sys.argv[1]))) + "\n")


if __name__ == "__main__":
    main()
