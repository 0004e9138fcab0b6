#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what PyTorch's allocator is asked for in training steps of a small transformer, as a trace that allocator_peers replays.

    torch_trace.py OUTPUT

Lines of "allocate|free|use, block, stream, bytes"; comments say how much PyTorch reserved itself. Sizes, order and streams are PyTorch's
history; record_stream, which that does not tell of, is put where the allocator's own counters stood at the call. Prints one line of JSON.
"""
import json
import sys

import torch

STEPS = (768, 512, 1024, 640, 896, 320)  # lengths of sequences
LAYERS, WIDTH, HEADS, VOCABULARY, BATCH = 8, 512, 8, 16384, 8
STREAMS = 16


def position():
    """How many allocations and frees there have been."""
    counts = torch.cuda.memory_stats()
    return counts["allocation.all.allocated"] + counts["allocation.all.freed"]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.out = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.out(self.layers(self.words(tokens)))


def train(uses):
    copying, computing = torch.cuda.Stream(), torch.cuda.current_stream()

    def fetched(length):
        """A batch that a stream of its own copies, as loaders do."""
        batch = torch.randint(VOCABULARY, (2, BATCH, length)).pin_memory()
        with torch.cuda.stream(copying):
            tokens, labels = batch[0].to("cuda", non_blocking=True), batch[1].to("cuda", non_blocking=True)
        computing.wait_stream(copying)
        for tensor in (tokens, labels):
            tensor.record_stream(computing)
            uses.append((position(), tensor.data_ptr(), computing.cuda_stream))
        return tokens, labels

    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for length in STEPS:
        tokens, labels = fetched(length)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not loss.isfinite().item():
            sys.exit("torch_trace: the loss is not finite")


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


def main(output):
    torch.manual_seed(1)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
    uses = []
    first = position()
    train(uses)
    torch.cuda.synchronize()
    counts = torch.cuda.memory_stats()
    history = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    lines = written(history, [(at - first, address, stream) for at, address, stream in uses])
    seen = {"torch": torch.__version__, "lines": len(lines), "uses": sum(line.startswith("use") for line in lines),
            "reserved_peak": counts["reserved_bytes.all.peak"], "requested_peak": counts["requested_bytes.all.peak"]}
    with open(output, "w", encoding="ascii") as file:
        file.write(f"# recorded from PyTorch {seen['torch']}: {len(STEPS)} training steps of a transformer of {LAYERS} layers\n")
        file.write(f"# PyTorch reserved {seen['reserved_peak']} bytes at most, where {seen['requested_peak']} were asked for at most\n")
        file.write("\n".join(lines) + "\n")
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1])
