#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our allocator beside PyTorch's, workload by workload, from a table of allocator_peers.

    compare_allocator_peers.py TABLE [--beside PEER]

A line for each workload: the quickest of its rounds' medians, since a host that others use too only makes some slower, how many times as
fast ours is, and of traces what both reserve over what is asked for. record_alone and record_paired are not counted: PyTorch's
record_stream only notes the stream, and pays with the free, which `record` times. What RecordUse costs is seen beside cuEventRecord. The
last line counts. Exit 1: a workload of ours is slower, or a trace reserves more; 3: the table has no rows of that peer.
"""
import argparse
import collections
import re
import statistics
import sys

OURS = "cuaudit"
FEW_ROUNDS = 3
RECORD_USE_BUDGET_NS = 50
RESERVED_SLACK = 1.001  # bytes of two allocators that round alike
NOT_COUNTED = ("record_alone", "record_paired")


def read(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    if not lines or "loop" not in lines[0]:
        sys.exit(f"{path}:1: a table of allocator_peers expected")
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def workloads(rows):
    """{workload: {peer: (ns of an operation of one thread, reserved over asked or None)}}."""
    found = {}
    for row in rows:
        if row["operations"] in ("", "0") or not row["median_ns"] or float(row["median_ns"]) == 0:
            continue
        key = (row["loop"], int(row["bytes"]), int(row["threads"]), int(row["uses"]), row["state"])
        found.setdefault(key, {}).setdefault(row["peer"], []).append(
            (float(row["median_ns"]), float(row["reserved_peak"]) / float(row["asked_peak"]) if row["reserved_peak"] not in ("", "0") else None))
    return {key: {peer: (min(time for time, _ in values), max((part for _, part in values if part is not None), default=None))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--beside", default="pytorch")
    options = parser.parse_args()
    slower = more = compared = 0
    rows = read(options.table)
    for (loop, size, threads, uses, state), peers in workloads(rows).items():
        if options.beside not in peers:
            continue
        other_time, other_part = peers[options.beside]
        for peer, (time, part) in peers.items():
            if not peer.startswith(OURS):
                continue
            if loop not in NOT_COUNTED:
                compared += 1
                slower += time > other_time
            words = [f"{loop:15} {size or '':9} {threads:2} threads {uses} uses {state:5} {peer:22} {time:10.1f} ns, {options.beside} {other_time:10.1f} ns,"
                     f" {other_time / time:8.2f} times as fast"]
            if part is not None and other_part is not None:
                more += part > RESERVED_SLACK * other_part
                words.append(f"reserved {part:.4f}, {options.beside} {other_part:.4f}")
            print("; ".join(words))
    beyond_event_record(rows)
    print(f"{compared} workloads beside {options.beside}: {slower} slower, {more} with more reserved")
    return 3 if compared == 0 else int(slower + more > 0)


if __name__ == "__main__":
    sys.exit(main())
