#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The whole comparison in small, on the simulated driver: every loop runs, every row has its columns, a peer that cannot run says why.

    check_peers_smoke.py ALLOCATOR_PEERS PEERS_DIRECTORY DROP_IN_DIRECTORY RUNTIME_DIRECTORY

No time is checked: the simulated driver has none.
"""
import os
import shutil
import subprocess
import sys
import tempfile

program, peers, drop_in, runtime = sys.argv[1:]
environment = dict(os.environ, LD_LIBRARY_PATH=f"{runtime}:{drop_in}", CUAUDIT_OPTIONS="driver=sim;scope=process;device_memory=16GiB")
done = subprocess.run([program, "--peers", peers, "--rounds", "1", "--seconds-per-row", "0.002", "--max-threads", "2", "--split-merge-cycles", "2000"],
                      env=environment, capture_output=True, text=True)
if done.returncode != 0:
    sys.exit(f"exit {done.returncode}: {done.stderr}")
lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
columns, rows = lines[0].split("\t"), [line.split("\t") for line in lines[1:]]
assert all(len(row) == len(columns) for row in rows), "columns"
table = [dict(zip(columns, row)) for row in rows]
for peer in ("cuaudit policy:poll", "cuaudit policy:wait"):
    own = [row for row in table if row["peer"] == peer]
    loops = {row["loop"] for row in own}
    assert loops == {"pair", "mixed", "shared_stream", "free_elsewhere", "training_trace", "serving_trace", "record", "record_alone", "record_beside",
                     "split_and_merge"}, (peer, loops, done.stderr)
    assert {row["bytes"] for row in own if row["loop"] == "pair"} == {"512", "65536", "1048576", "8388608", "67108864"}
    for row in own:
        assert int(row["operations"]) > 0, row
        if row["loop"].endswith("_trace"):
            assert int(row["reserved_peak"]) >= int(row["asked_peak"]) > 0, row
    assert sorted((row["uses"], row["state"]) for row in own if row["loop"] == "record") == [("0", "ready"), ("1", "held"), ("1", "ready"), ("4", "held"),
                                                                                            ("4", "ready")]
    state = next(row for row in own if row["loop"] == "split_and_merge")
    assert state["operations"] == "2000" and "events " in state["note"], state
others = {row["peer"]: row["note"] for row in table if row["peer"] not in ("cuaudit policy:poll", "cuaudit policy:wait", "driver")}
assert set(others) == {"pytorch", "cub", "cudaMallocAsync", "cudaMalloc"}, others
assert others["pytorch"].startswith("not built"), others
for peer in ("cub", "cudaMallocAsync", "cudaMalloc"):
    assert all(int(row["operations"]) > 0 for row in table if row["peer"] == peer), [row for row in table if row["peer"] == peer]
bad = subprocess.run([program, "--peers", peers, "--rounds", "1", "--max-threads", "1", "--settings", "policy:never"], env=environment, capture_output=True, text=True,
                     timeout=60)
assert "expected poll or wait" in bad.stdout, bad.stdout
# A peer that throws has rows that say so, and the others have theirs.
with tempfile.TemporaryDirectory() as directory:
    for name, source in (("torch", "throwing"), ("ours", "ours")):
        shutil.copy(f"{peers}/libpeer_{source}.so", f"{directory}/libpeer_{name}.so")
    thrown = subprocess.run([program, "--peers", directory, "--rounds", "1", "--seconds-per-row", "0.002", "--max-threads", "2", "--split-merge-cycles", "100",
                             "--settings", "policy:poll"], env=environment, capture_output=True, text=True, timeout=60)
assert thrown.returncode == 0, thrown.stderr
rows = [dict(zip(columns, line.split("\t"))) for line in thrown.stdout.splitlines() if not line.startswith("#")][1:]
own = [row for row in rows if row["peer"] == "cuaudit policy:poll"]
assert own and all(int(row["operations"]) > 0 for row in own), own
its = [row for row in rows if row["peer"] == "pytorch"]
assert {row["loop"] for row in its} == {"pair", "mixed", "shared_stream", "free_elsewhere", "training_trace", "serving_trace", "record", "record_alone", "record_beside"}, its
failed = {row["loop"]: row["note"] for row in its if row["operations"] == "0"}
assert set(failed) == {row["loop"] for row in its} and all(note for note in failed.values()), its
assert [row["note"] for row in its if row["loop"] == "pair" and row["bytes"] == "512"] == ["threw: Allocate in two"] * 2, its
assert failed["record"] == "threw" and failed["training_trace"].startswith("threw: ") and failed["free_elsewhere"] == "free threw on another thread", failed
assert subprocess.run([program, "--peers", "/nowhere"], env=environment, capture_output=True).returncode != 0
trace = subprocess.run([program, "--print-trace", "training"], capture_output=True, text=True).stdout.splitlines()
live = {}
for line in trace:
    kind, block, _, _ = line.split("\t")
    assert (block in live) == (kind != "allocate"), line
    live[block] = True
    if kind == "free":
        del live[block]
assert not live and len(trace) > 10000
print(f"{len(table)} rows")
