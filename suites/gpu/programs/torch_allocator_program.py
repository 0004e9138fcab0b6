#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch on our allocator: values, streams, graphs, running out, counters and a snapshot.

    torch_allocator_program.py LIBCUAUDIT_ALLOCATOR.SO SNAPSHOT_FILE

Prints one line of JSON with what was seen; exit 1 when something differs from what was expected.
"""
import ctypes
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "unit/allocator"))
import read_snapshot  # noqa: E402

library, snapshot_file = sys.argv[1:]
functions = ctypes.CDLL(library)
functions.cuaudit_last_error.restype = ctypes.c_char_p
functions.cuaudit_statistic.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong)]
functions.cuaudit_record_use.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
seen, wrong = {"torch": torch.__version__}, []


def expect(condition, text):
    if not condition:
        wrong.append(text)


def counter(name):
    value = ctypes.c_longlong()
    if functions.cuaudit_statistic(0, name.encode(), ctypes.byref(value)) != 0:
        wrong.append(f"{name}: {functions.cuaudit_last_error().decode()}")
    return value.value


allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "cuaudit_malloc", "cuaudit_free")
hooks = {"set_init_fn": "cuaudit_init", "set_reset_fn": "cuaudit_reset", "set_memory_fraction_fn": "cuaudit_memory_fraction",
         "set_base_alloc_fn": "cuaudit_base_alloc", "set_record_stream_fn": "cuaudit_record_stream",
         "set_begin_allocate_to_pool": "cuaudit_begin_allocate_to_pool", "set_end_allocate_to_pool_fn": "cuaudit_end_allocate_to_pool",
         "set_release_pool": "cuaudit_release_pool"}
inner = allocator.allocator()
seen["hooks"] = [name for name in hooks if hasattr(inner, name)]
for name in seen["hooks"]:
    getattr(inner, name)(ctypes.cast(getattr(functions, hooks[name]), ctypes.c_void_p).value)
expect("set_record_stream_fn" in seen["hooks"], "this PyTorch has no set_record_stream_fn")
torch.cuda.memory.change_current_allocator(allocator)

# A buffer made on one stream, read on another, given back at once: what comes after it in its memory must not be what is read.
producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
generator = torch.Generator().manual_seed(1)
different = 0
for round_number in range(200):
    size = int(torch.randint(1, 1 << 21, (1,), generator=generator))
    with torch.cuda.stream(producer):
        source = torch.full((size,), float(round_number), device="cuda")
    consumer.wait_stream(producer)
    with torch.cuda.stream(consumer):
        for _ in range(4):
            result = torch.sin(source) * 2 + source
        if round_number % 2:
            source.record_stream(consumer)
        else:
            expect(functions.cuaudit_record_use(source.data_ptr(), consumer.cuda_stream) == 0, "cuaudit_record_use")
    del source
    with torch.cuda.stream(producer):
        overwritten = torch.full((size,), -1.0e9, device="cuda")
    consumer.synchronize()
    expected = torch.sin(torch.tensor(float(round_number), device="cuda")) * 2 + round_number
    different += int((result != expected).sum())
    del overwritten, result
torch.cuda.synchronize()
expect(different == 0, f"{different} values of {200} rounds are not what was written")
seen["uses_recorded"] = counter("uses_recorded") + counter("uses_degraded")
expect(seen["uses_recorded"] >= 100, "no uses were recorded")

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch = torch.randn(512, 256, device="cuda")
losses = []
for _ in range(30):
    loss = ((model(batch) - batch) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
expect(losses[-1] < losses[0], f"training does not learn: {losses[0]} to {losses[-1]}")

try:
    torch.empty(1 << 48, dtype=torch.uint8, device="cuda")
    wrong.append("256 TiB were allocated")
except RuntimeError as error:
    seen["out_of_memory"] = str(error).splitlines()[0]
    expect("out of memory on device 0" in str(error), f"the account is not in {error}")
expect(float(torch.ones(4, device="cuda").sum()) == 4.0, "nothing works after running out")

if "set_begin_allocate_to_pool" in seen["hooks"]:
    try:
        fixed = torch.ones(1 << 16, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = (fixed * 2) + 1
        fixed.fill_(20)
        graph.replay()
        torch.cuda.synchronize()
        expect(bool((doubled == 41).all()), "the graph's replay has other values")
        seen["graph"] = "replayed"
        del graph, doubled
    except Exception as error:
        seen["graph"] = f"{type(error).__name__}: {error}"[:300]
        wrong.append("the graph was not captured and replayed")

seen["allocations"] = counter("allocation.all.allocated")
expect(seen["allocations"] > 500, "the allocations are not ours")
expect(functions.cuaudit_snapshot(snapshot_file.encode()) == 0, functions.cuaudit_last_error().decode())
data = Path(snapshot_file).read_bytes()
found = read_snapshot.problems(read_snapshot.read(data))
expect(not found, f"snapshot: {found[:3]}")
seen["snapshot_bytes"] = len(data)
seen["trace_entries"] = sum(len(trace) for trace in read_snapshot.read(data)["device_traces"])
large = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")  # so that there is something whole to give back, whatever the pages are
reserved = counter("reserved_bytes.all.current")
del model, optimizer, batch, loss, large
torch.cuda.empty_cache()
seen["reserved_after_empty_cache"], seen["reserved_before"] = counter("reserved_bytes.all.current"), reserved
expect(seen["reserved_after_empty_cache"] <= reserved - (256 << 20), "empty_cache did not give 256 MiB back")
print(json.dumps({**seen, "wrong": wrong}))
sys.exit(1 if wrong else 0)
