#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The whole comparison in small, on the simulated driver: every loop runs, every row has its columns, a peer that cannot run says why.

    check_peers_smoke.py ALLOCATOR_PEERS PEERS_DIRECTORY DROP_IN_DIRECTORY RUNTIME_DIRECTORY

No time is checked: the simulated driver has none.
"""
import os
import re
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
ours = ("cuaudit policy:poll", "cuaudit policy:wait", "cuaudit plug-in")
for peer in ours:
    own = [row for row in table if row["peer"] == peer]
    loops = {row["loop"] for row in own}
    assert loops == {"pair", "mixed", "shared_stream", "free_elsewhere", "training_trace", "serving_trace", "record", "record_alone", "record_paired",
                     "split_and_merge"}, (peer, loops, done.stderr)
    assert {row["bytes"] for row in own if row["loop"] == "pair"} == {"512", "65536", "1048576", "8388608", "67108864"}
    for row in own:
        assert int(row["operations"]) > 0, row
        if row["loop"].endswith("_trace"):
            assert int(row["reserved_peak"]) >= int(row["asked_peak"]) > 0, row
    assert sorted((row["uses"], row["state"]) for row in own if row["loop"] == "record") == [("0", "ready"), ("1", "held"), ("1", "ready"), ("4", "held"),
                                                                                            ("4", "ready")]
    paired = [row for row in own if row["loop"] == "record_paired"]
    assert [(row["uses"], row["state"]) for row in paired] == [("0", "ready"), ("1", "held"), ("4", "held")], paired
    parts = r"( p(10|25|50|75) -?[0-9]+\.[0-9]){4}"
    assert all(re.fullmatch(f"beyond cuEventRecord{parts}; cuEventRecord beyond itself{parts}; cuEventRecord p50 [0-9]+\\.[0-9]", row["note"]) for row in paired), paired
    state = next(row for row in own if row["loop"] == "split_and_merge")
    assert state["operations"] == "2000" and "events " in state["note"], state
others = {row["peer"]: row["note"] for row in table if row["peer"] not in (*ours, "driver")}
assert set(others) == {"pytorch", "cub", "cudaMallocAsync", "cudaMalloc"}, others
assert others["pytorch"].startswith("not built"), others
for peer in ("cub", "cudaMallocAsync", "cudaMalloc"):
    assert all(int(row["operations"]) > 0 for row in table if row["peer"] == peer), [row for row in table if row["peer"] == peer]
bad = subprocess.run([program, "--peers", peers, "--rounds", "1", "--max-threads", "1", "--settings", "policy:never"], env=environment, capture_output=True, text=True,
                     timeout=60)
assert "expected poll or wait" in bad.stdout, bad.stdout
# Only what is asked for runs.
chosen = subprocess.run([program, "--peers", peers, "--rounds", "2", "--seconds-per-row", "0.002", "--max-threads", "1", "--loops", "record_paired,cuEventRecord"],
                        env=environment, capture_output=True, text=True, timeout=60)
rows = [line.split("\t") for line in chosen.stdout.splitlines() if not line.startswith("#")][1:]
assert {(row[1], row[2]) for row in rows if row[7] != "0"} == {("driver", "cuEventRecord"), *((peer, "record_paired") for peer in ours)}, rows
unknown = subprocess.run([program, "--peers", peers, "--loops", "record_twice"], env=environment, capture_output=True, text=True, timeout=60)
assert unknown.returncode != 0 and "record_twice" in unknown.stderr, unknown
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
assert {row["loop"] for row in its} == {"pair", "mixed", "shared_stream", "free_elsewhere", "training_trace", "serving_trace", "record", "record_alone", "record_paired"}, its
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
# What is printed is read back; what is no trace is one line with its place.
with tempfile.TemporaryDirectory() as directory:
    file = f"{directory}/trace"
    def replay(lines):
        with open(file, "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")
        return subprocess.run([program, "--peers", peers, "--rounds", "1", "--seconds-per-row", "0.001", "--max-threads", "1", "--split-merge-cycles", "0",
                               "--settings", "policy:wait", "--recorded-trace", file], env=environment, capture_output=True, text=True, timeout=60)
    rows = [dict(zip(columns, line.split("\t"))) for line in replay(["# a comment", *trace]).stdout.splitlines() if not line.startswith("#")][1:]
    own = {row["loop"]: row for row in rows if row["peer"] == "cuaudit policy:wait"}
    assert int(own["recorded_trace"]["operations"]) > 0, own
    assert [own["recorded_trace"][key] for key in ("asked_peak", "reserved_peak")] == [own["training_trace"][key] for key in ("asked_peak", "reserved_peak")], own
    for lines, said in ((["allocate\t0\t0"], "1: four words between tabs expected"), (["allocate\t0\t0\t1\t1"], "1: four words between tabs expected"),
                        (["allocate\t-1\t0\t1"], "1: the number of a block expected"), (["allocate\t0\t16\t1"], "1: the number of a stream expected, below 16"),
                        (["allocate\t0\t0\t99999999999999999999"], "1: a number of bytes expected"), (["allocate\t0\t0\t0"], "1: more than 0 bytes expected"),
                        (["#", "allocate\t0\t0\t1", "allocate\t0\t0\t1"], "3: the block is allocated already"), (["free\t0\t0\t0"], "1: the block is not allocated"),
                        (["grow\t0\t0\t0"], "1: allocate, free or use expected"), (["#"], "no allocation in it")):
        refused = replay(lines)
        assert refused.returncode == 2 and refused.stdout == "" and refused.stderr.strip().startswith(f"allocator_peers: {file}") and said in refused.stderr, refused
        assert refused.stderr.count("\n") == 1, refused.stderr
# Side by side: who is slower or reserves more is found, and a table without the other peer is no comparison.
compare = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/compare_allocator_peers.py")
def compared(ours, theirs, reserved=100):
    row = "1\t{}\ttraining_trace\t0\t1\t0\t\t9\t{}\t{}\t{}\t1\t100\t{}\t"
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as out:
        out.write("# a comment\n" + "\n".join(["\t".join(columns), row.format("cuaudit", ours, ours, ours, reserved), row.format("pytorch", *[theirs] * 3, 100)]) + "\n")
        out.flush()
        return subprocess.run([sys.executable, compare, out.name], capture_output=True, text=True)
for (ours, theirs, reserved), code, said in (((10, 40, 100), 0, "4.00 times as fast"), ((40, 10, 100), 1, ": 1 slower, 0 with more reserved"),
                                             ((10, 40, 110), 1, ": 0 slower, 1 with more reserved"), ((10, "", 100), 3, "0 workloads")):
    seen = compared(ours, theirs, reserved)
    assert seen.returncode == code and said in seen.stdout, seen
print(f"{len(table)} rows")
