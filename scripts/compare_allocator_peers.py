#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our allocator beside PyTorch's, workload by workload, from a table of allocator_peers.

    compare_allocator_peers.py TABLE [--beside PEER]

A line for each workload: the quickest of its rounds' medians, since a host that others use too only makes some slower, how many times as
fast ours is, and of traces what both reserve over what is asked for. record_alone and record_beside are not counted: PyTorch's
record_stream only notes the stream, and pays with the free, which `record` times. What RecordUse costs is seen beside cuEventRecord. The
last line counts. Exit 1: a workload of ours is slower, or a trace reserves more; 3: the table has no rows of that peer.
"""
import argparse
import re
import statistics
import sys

OURS = "cuaudit"
RESERVED_SLACK = 1.001  # bytes of two allocators that round alike
NOT_COUNTED = ("record_alone", "record_beside")


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


def beside_event_record(rows):
    """What RecordUse takes beyond cuEventRecord, which was timed in turn with it: a line for each of ours. A host that others use too makes
    some batches slow, ours or the driver's: so the lowest tenth of each is printed beside the medians."""
    times, tenths = {}, {}
    for row in rows:
        if row["median_ns"] and row["loop"] in ("record_beside", "cuEventRecord_beside"):
            peer = row["peer"] if row["loop"] == "record_beside" else row["note"].removeprefix("beside record_beside of ")
            times.setdefault(peer, {}).setdefault(row["loop"], []).append(float(row["median_ns"]))
            tenth = re.fullmatch(r"lowest tenth (\S+) beside (\S+)", row["note"])
            if tenth:
                tenths.setdefault(peer, []).append(float(tenth[1]) - float(tenth[2]))
    for peer, both in times.items():
        if peer.startswith(OURS) and len(both) == 2:
            use, event = (statistics.median(both[loop]) for loop in ("record_beside", "cuEventRecord_beside"))
            print(f"RecordUse {peer}: {use:.1f} ns, cuEventRecord in turn with it {event:.1f} ns: {use - event:.1f} ns of its own"
                  + (f"; by the lowest tenths {', '.join(f'{each:.1f}' for each in sorted(tenths[peer]))}" if peer in tenths else ""))


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
    beside_event_record(rows)
    print(f"{compared} workloads beside {options.beside}: {slower} slower, {more} with more reserved")
    return 3 if compared == 0 else int(slower + more > 0)


if __name__ == "__main__":
    sys.exit(main())
