#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what PyTorch's allocator is asked for in a workload of torch_workloads.py, as a trace that allocator_peers replays.

    torch_trace.py WORKLOAD OUTPUT

Lines of "allocate|free|use, block, stream, bytes"; comments say how much PyTorch reserved itself. Sizes, order and streams are PyTorch's
history; record_stream, which that does not tell of, is put where the allocator's own counters stood at the call. Prints one line of JSON.
"""
import json
import math
import sys

import torch

import torch_workloads

STREAMS = 16


def position():
    """How many allocations and frees there have been."""
    counts = torch.cuda.memory_stats()
    return counts["allocation.all.allocated"] + counts["allocation.all.freed"]


def written(history, uses):
    lines, numbers, spare, streams = [], {}, [], {}

    def number_of(stream):
        return streams.setdefault(stream, len(streams)) % STREAMS

    uses = sorted(uses)
    at = 0

    def put_uses(until):
        while uses and uses[0][0] <= until:
            _, address, stream = uses.pop(0)
            if address in numbers:
                lines.append(f"use\t{numbers[address]}\t{number_of(stream)}\t0")

    for entry in history:
        if entry["action"] not in ("alloc", "free_requested"):
            continue
        put_uses(at)
        at += 1
        if entry["action"] == "alloc":
            numbers[entry["addr"]] = spare.pop() if spare else len(numbers)
            lines.append(f"allocate\t{numbers[entry['addr']]}\t{number_of(entry['stream'])}\t{entry['size']}")
        elif entry["addr"] in numbers:
            spare.append(numbers.pop(entry["addr"]))
            lines.append(f"free\t{spare[-1]}\t0\t0")
    put_uses(at)
    return lines


def main(workload, output):
    torch.manual_seed(1)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
    uses = []
    first = position()
    tell = torch_workloads.tell_stream

    def noted(tensor, stream):
        tell(tensor, stream)
        uses.append((position(), tensor.data_ptr(), stream.cuda_stream))

    torch_workloads.tell_stream = noted
    for number in torch_workloads.WORKLOADS[workload]():
        if number is not None and not math.isfinite(number):
            sys.exit(f"torch_trace: {workload} gives {number}")
    torch.cuda.synchronize()
    counts = torch.cuda.memory_stats()
    history = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    lines = written(history, [(at - first, address, stream) for at, address, stream in uses])
    seen = {"workload": workload, "torch": torch.__version__, "lines": len(lines), "uses": sum(line.startswith("use") for line in lines),
            "reserved_peak": counts["reserved_bytes.all.peak"], "requested_peak": counts["requested_bytes.all.peak"]}
    with open(output, "w", encoding="ascii") as file:
        file.write(f"# recorded from PyTorch {seen['torch']}: {workload}. {torch_workloads.WORKLOADS[workload].__doc__}\n")
        file.write(f"# PyTorch reserved {seen['reserved_peak']} bytes at most, where {seen['requested_peak']} were asked for at most\n")
        file.write("\n".join(lines) + "\n")
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
