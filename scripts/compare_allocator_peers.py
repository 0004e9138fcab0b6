#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our allocator beside PyTorch's, workload by workload, from a table of allocator_peers.

    compare_allocator_peers.py TABLE [--beside PEER]
    compare_allocator_peers.py TABLE --plot OUTPUT.svg

A line for each workload: the quickest of its rounds' medians, since a host that others use too only makes some slower, how many times as
fast ours is, and of traces what both reserve over what is asked for. record_alone and record_paired are not counted: PyTorch's
record_stream only notes the stream, and pays with the free, which `record` times. What RecordUse costs is seen beside cuEventRecord. The
last line counts, and says how many are slower by the median of their rounds' medians. --plot draws the cost of an allocation and its free against threads instead, for each loop, the median of several rounds;
both axes are logarithmic. Exit 1: a workload of ours is slower, or a trace reserves more; 3: the table has no rows of that peer.
"""
import argparse
import collections
import math
import re
import statistics
import sys
from pathlib import Path
from xml.sax.saxutils import escape

OURS = "cuaudit"
FEW_ROUNDS = 3
RECORD_USE_BUDGET_NS = 50
RESERVED_SLACK = 1.001  # bytes of two allocators that round alike
NOT_COUNTED = ("record_alone", "record_paired")
COLOURS = ["#1b6ca8", "#4a9e5c", "#d1495b", "#edae49", "#66507a", "#7a7a7a"]
PANELS = [("pair", "512", "pair, 512 B"), ("pair", "65536", "pair, 64 KiB"), ("pair", "8388608", "pair, 8 MiB"), ("mixed", "0", "mixed, 512 B to 8 MiB"),
          ("free_elsewhere", "65536", "freed on another thread, 64 KiB"), ("shared_stream", "65536", "one shared stream, 64 KiB")]
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 190, 62, 64, 78


def read(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    if not lines or "loop" not in lines[0]:
        sys.exit(f"{path}:1: a table of allocator_peers expected")
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def workloads(rows):
    """{workload: {peer: (ns of an operation of one thread in the quickest round, in the middle one, reserved over asked or None)}}."""
    found = {}
    for row in rows:
        if row["operations"] in ("", "0") or not row["median_ns"] or float(row["median_ns"]) == 0:
            continue
        key = (row["loop"], int(row["bytes"]), int(row["threads"]), int(row["uses"]), row["state"])
        found.setdefault(key, {}).setdefault(row["peer"], []).append(
            (float(row["median_ns"]), float(row["reserved_peak"]) / float(row["asked_peak"]) if row["reserved_peak"] not in ("", "0") else None))
    return {key: {peer: (min(time for time, _ in values), statistics.median(time for time, _ in values), max((part for _, part in values if part is not None), default=None))
                  for peer, values in peers.items()} for key, peers in found.items()}


def beyond_event_record(rows):
    """What RecordUse takes beyond cuEventRecord at the same moment, and what is noise: cuEventRecord beyond itself. A line for each of a few
    rounds; the middle, the lowest and the highest of many."""
    paired = collections.defaultdict(list)
    for row in rows:
        if row["loop"] == "record_paired" and row["peer"].startswith(OURS) and row["operations"] != "0":
            paired[row["peer"], int(row["uses"])].append(row["note"])
    for (peer, uses), notes in sorted(paired.items()):
        words = f"RecordUse, {uses} other uses pending, {peer}"
        if len(notes) <= FEW_ROUNDS:
            for number, note in enumerate(notes, 1):
                print(f"{words}, round {number}: {note}")
            continue
        beyond, noise, own = (sorted(float(number) for number in numbers)
                              for numbers in zip(*([re.findall(r"p50 (-?[0-9.]+)", note) for note in notes])))
        within = sum(number <= RECORD_USE_BUDGET_NS for number in beyond)
        print(f"{words}: beyond cuEventRecord {statistics.median(beyond):.1f} ns in the middle of {len(notes)} rounds' medians, {beyond[0]:.1f} to {beyond[-1]:.1f}, "
              f"{within} at most {RECORD_USE_BUDGET_NS}; cuEventRecord beyond itself {noise[0]:.1f} to {noise[-1]:.1f}, alone {own[0]:.1f} to {own[-1]:.1f}")


def read_to_draw(path):
    comments, rows, columns = [], [], None
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line.startswith("#"):
            comments.append(line[1:].strip())
            continue
        cells = line.split("\t")
        if columns is None:
            columns = cells
            missing = {"peer", "loop", "bytes", "threads", "median_ns"} - set(columns)
            if missing:
                sys.exit(f"{path}:{number}: no column {', '.join(sorted(missing))}")
        elif len(cells) != len(columns):
            sys.exit(f"{path}:{number}: {len(cells)} columns, {len(columns)} expected")
        else:
            rows.append(dict(zip(columns, cells)))
    if not rows:
        sys.exit(f"{path}: no rows")
    return comments, rows


def series(rows, loop, size):
    points = {}
    for row in rows:
        if row["loop"] == loop and row["bytes"] == size and row["median_ns"]:
            points.setdefault(row["peer"], {}).setdefault(int(row["threads"]), []).append(float(row["median_ns"]))
    return {peer: sorted((threads, statistics.median(values)) for threads, values in by.items()) for peer, by in points.items()}


def panel(left, top, title, lines, colours, highest_threads, lowest, highest):
    def x(threads):
        return left + WIDTH * math.log2(threads) / max(math.log2(highest_threads), 1)

    def y(value):
        return top + HEIGHT * (1 - (math.log10(value) - lowest) / (highest - lowest))

    yield f'<text x="{left}" y="{top - 8}" font-weight="bold">{escape(title)}</text>'
    for power in range(lowest, highest + 1):
        yield f'<line x1="{left}" x2="{left + WIDTH}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{10 ** power:,}</text>'
    threads = 1
    while threads <= highest_threads:
        yield f'<text x="{x(threads):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{threads}</text>'
        threads *= 2
    for peer, points in sorted(lines.items()):
        path = " ".join(f"{x(t):.1f},{y(max(v, 10 ** lowest)):.1f}" for t, v in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colours[peer]}" stroke-width="2"/>'
        for t, v in points:
            yield f'<circle cx="{x(t):.1f}" cy="{y(max(v, 10 ** lowest)):.1f}" r="2.5" fill="{colours[peer]}"><title>{escape(peer)}: {v:,.1f} ns</title></circle>'


def draw(comments, rows):
    panels = [(title, series(rows, loop, size)) for loop, size, title in PANELS]
    panels = [(title, lines) for title, lines in panels if lines]
    if not panels:
        sys.exit("none of the loops that are drawn has a row with figures")
    peers = sorted({peer for _, lines in panels for peer in lines})
    colours = {peer: COLOURS[i % len(COLOURS)] for i, peer in enumerate(peers)}
    values = [value for _, lines in panels for points in lines.values() for _, value in points if value > 0]
    threads = max(t for _, lines in panels for points in lines.values() for t, _ in points)
    lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    highest = max(highest, lowest + 1)
    down = (len(panels) + 2) // 3
    width, height = LEFT + 3 * (WIDTH + GAP), TOP + down * (HEIGHT + GAP) + 20
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield f'<text x="{LEFT}" y="20">Median nanoseconds of an allocation and its free, against threads (each on a core of its own). {escape(comments[0] if comments else "")}</text>'
    for i, peer in enumerate(peers):
        yield f'<rect x="{LEFT + 170 * i}" y="30" width="12" height="12" fill="{colours[peer]}"/><text x="{LEFT + 170 * i + 18}" y="40">{escape(peer)}</text>'
    for i, (title, lines) in enumerate(panels):
        yield from panel(LEFT + i % 3 * (WIDTH + GAP), TOP + 20 + i // 3 * (HEIGHT + GAP), title, lines, colours, threads, lowest, highest)
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--beside", default="pytorch")
    parser.add_argument("--plot", type=Path, metavar="OUTPUT.svg")
    options = parser.parse_args()
    if options.plot:
        options.plot.write_text("\n".join(draw(*read_to_draw(options.table))) + "\n")
        return 0
    slower = more = compared = slower_by_median = 0
    rows = read(options.table)
    for (loop, size, threads, uses, state), peers in workloads(rows).items():
        if options.beside not in peers:
            continue
        other_time, other_median, other_part = peers[options.beside]
        for peer, (time, median, part) in peers.items():
            if not peer.startswith(OURS):
                continue
            if loop not in NOT_COUNTED:
                compared += 1
                slower += time > other_time
                slower_by_median += median > other_median
            words = [f"{loop:15} {size or '':9} {threads:2} threads {uses} uses {state:5} {peer:22} {time:10.1f} ns, {options.beside} {other_time:10.1f} ns,"
                     f" {other_time / time:8.2f} times as fast"]
            if median > other_median:
                words.append(f"by medians {median:.1f} ns, {options.beside} {other_median:.1f} ns")
            if part is not None and other_part is not None:
                more += part > RESERVED_SLACK * other_part
                words.append(f"reserved {part:.4f}, {options.beside} {other_part:.4f}")
            print("; ".join(words))
    beyond_event_record(rows)
    print(f"{compared} workloads beside {options.beside}: {slower} slower, {more} with more reserved; {slower_by_median} slower by medians of rounds")
    return 3 if compared == 0 else int(slower + more > 0)


if __name__ == "__main__":
    sys.exit(main())
