#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One workload of torch_workloads.py on one allocator: what it computed, its time and its memory.

    torch_end_to_end.py WORKLOAD pytorch|pytorch,expandable|cudaMallocAsync|cuaudit[:SETTINGS]

Prints one line of JSON. A workload is carried out five times; the time is the median of the last four, in seconds. `computed` is a hash of all numbers.
Exit 77: no PyTorch or no GPU. `CUAUDIT_ALLOC_PACKAGE` is the folder that has cuaudit_alloc.
"""
import hashlib
import json
import os
import statistics
import sys
import time

workload, allocator = sys.argv[1:3]
ROUNDS = 5
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
PYTORCH = {"pytorch": "", "pytorch,expandable": "expandable_segments:True", "cudaMallocAsync": "backend:cudaMallocAsync"}
if allocator in PYTORCH:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = PYTORCH[allocator]

import torch  # noqa: E402

import torch_workloads  # noqa: E402

if not torch.cuda.is_available():
    print("not here: no GPU that PyTorch can use", file=sys.stderr)
    sys.exit(77)
cuaudit_alloc = None
if allocator not in PYTORCH:
    sys.path.insert(0, os.environ["CUAUDIT_ALLOC_PACKAGE"])
    import cuaudit_alloc
    cuaudit_alloc.enable(allocator.partition(":")[2] or None)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False  # it would write each new block

numbers, seconds = [], []
for _ in range(ROUNDS):
    torch.manual_seed(1)
    work = torch_workloads.WORKLOADS[workload]()
    next(work)
    torch.cuda.synchronize()
    began = time.perf_counter()
    numbers += [number.hex() for number in work]
    torch.cuda.synchronize()
    seconds.append(time.perf_counter() - began)
    del work


def counter(name):
    return cuaudit_alloc.statistic(name) if cuaudit_alloc else torch.cuda.memory_stats()[name]


print(json.dumps({"workload": workload, "allocator": allocator, "seconds": round(statistics.median(seconds[1:]), 4), "reserved_peak": counter("reserved_bytes.all.peak"),
                  "asked_peak": counter("requested_bytes.all.peak") if allocator != "cudaMallocAsync" else None,
                  "computed": hashlib.sha256(" ".join(numbers).encode()).hexdigest()[:16], "last": numbers[-1]}))
