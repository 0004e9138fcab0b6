#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the table of allocator_peers: cost of an allocation and its free against threads, for each loop, as one SVG.

    scripts/plot_allocator_peers.py TABLE.tsv OUTPUT.svg

Of several rounds the median is drawn. Both axes are logarithmic.
"""
import math
import statistics
import sys
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#4a9e5c", "#d1495b", "#edae49", "#66507a", "#7a7a7a"]
PANELS = [("pair", "512", "pair, 512 B"), ("pair", "65536", "pair, 64 KiB"), ("pair", "8388608", "pair, 8 MiB"), ("mixed", "0", "mixed, 512 B to 8 MiB"),
          ("free_elsewhere", "65536", "freed on another thread, 64 KiB"), ("shared_stream", "65536", "one shared stream, 64 KiB")]
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 190, 62, 64, 78


def read(path):
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
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    comments, rows = read(sys.argv[1])
    text = "\n".join(draw(comments, rows)) + "\n"
    Path(sys.argv[2]).write_text(text)


if __name__ == "__main__":
    main()
