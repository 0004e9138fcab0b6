#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's parts of gpu_check: its workloads (programs/torch_workloads.py), what they ask of an allocator and what they take on several; and a run that is
recorded on a GPU and explained elsewhere.

    torch_parts.py --explain FILE --tool build/dev/bin/cuaudit       on any machine: exit 0 as expected, 1 otherwise, 77 no such file

scripts/gpu_check --only record makes the file (pytorch.journal in its --out directory, some megabytes at most) and measures what recording costs: plain and
recorded runs of 400 steps in turn, medians. Commit the file as measurements/DEVICE/pytorch.journal.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOT = PROGRAMS.parents[2]
TRACED = {"transformer": "torch_trace.tsv", "generation": "torch_trace_generation.tsv", "diffusion": "torch_trace_diffusion.tsv", "finetuning": "torch_trace_finetuning.tsv"}
WORKLOADS = ("resnet", "transformer", "server", "generation", "diffusion", "finetuning")
MOVING = "expandable_segments:True,policy:wait,trust_stream_handles:True,page_size_mb:16,remap_budget:1.0"
ALLOCATORS = ("pytorch", "pytorch,expandable", "cudaMallocAsync", "cuaudit", "cuaudit:expandable_segments:True", f"cuaudit:{MOVING}")
COLUMNS = ("workload", "allocator", "seconds", "reserved_peak", "asked_peak", "computed")
STEPS, LEAKS = 12, 3  # of programs/torch_recorded.py
LARGEST = 4_000_000  # bytes of a recording that is committed


def record_traces(check, python):
    """For allocator_peers, which replays them on each allocator. One that is among the results already is not recorded again."""
    for workload, name in TRACED.items():
        if (check.out / name).is_file():
            continue
        done = check.run([python, PROGRAMS / "torch_trace.py", workload, check.out / name], timeout=120)
        if "No module named 'torch'" in done.stderr:
            return check.skip("torch trace", "no PyTorch here")
        check.note(f"torch trace of {workload}", done.returncode == 0, said=done.stdout.strip()[-300:], stderr="" if done.returncode == 0 else done.stderr[-600:])


def replay_traces(check, python):
    """Time and memory of the recorded workloads and the made ones on the allocators in one process, without PyTorch's own work between: on an idle
    device, and, beside ours with expandable segments and with pages that move, PyTorch's with expandable ones, on an idle device and a busy one."""
    check.torch_peer(python)
    comments, rows = [], []
    for workload, name in TRACED.items():
        if not (check.out / name).is_file():
            continue
        loops = "training_trace,serving_trace,recorded_trace" if name == TRACED["transformer"] else "recorded_trace"
        for is_expandable, arguments in ((False, ["--rounds", "4"]),
                                         (True, ["--rounds", "3", "--working", "--settings", "policy:poll", "expandable_segments:True", MOVING])):
            table = check.out / "replayed.tsv"
            done = check.run([check.build / "bin/allocator_peers", "--peers", check.build / "lib/peers", "--loops", loops, "--budget-seconds", "40",
                              "--recorded-trace", check.out / name, "--output", table, *arguments], timeout=90,
                             env=check.peers_environment(PYTORCH_CUDA_ALLOC_CONF=f"expandable_segments:{is_expandable}"))
            compared = check.run([sys.executable, ROOT / "scripts/compare_allocator_peers.py", table])
            check.note(f"trace of {workload}{', expandable' if is_expandable else ''}", done.returncode == 0 and table.is_file(),
                       said=compared.stdout.splitlines()[-2:], stderr=done.stderr[-300:])
            for line in table.read_text().splitlines() if table.is_file() else []:
                if line.startswith("#"):
                    comments += [line] if line not in comments else []
                else:
                    rows.append(f"workload\tsegments\t{line}" if line.startswith("round\t") else f"{workload}\t{'expandable' if is_expandable else 'plain'}\t{line}")
            table.unlink(missing_ok=True)
    (check.out / "trace_peers.tsv").write_text("\n".join([*comments, *dict.fromkeys(rows)]) + "\n")


def end_to_end(check, python):
    """Each workload on each allocator in turn: the same numbers, its time, its memory."""
    package = check.out / "package"
    shutil.copytree(ROOT / "allocator/python/cuaudit_alloc", package / "cuaudit_alloc", dirs_exist_ok=True)
    shutil.copy(check.build / "lib/cuaudit/libcuaudit_allocator.so", package / "cuaudit_alloc")
    rows = []
    for workload in WORKLOADS:
        for allocator in ALLOCATORS:
            done = check.run([python, PROGRAMS / "torch_end_to_end.py", workload, allocator], env=dict(os.environ, CUAUDIT_ALLOC_PACKAGE=str(package)), timeout=120)
            if done.returncode == 77:
                return check.skip("end to end", done.stderr.strip()[-200:])
            if done.returncode != 0:
                check.note(f"{workload} on {allocator}", False, stderr=done.stderr[-600:])
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
        of = [row for row in rows if row["workload"] == workload]
        check.note(f"{workload} end to end", len({row["computed"] for row in of}) == 1 and len(of) == len(ALLOCATORS),
                   computed=sorted({row["computed"] for row in of}), seconds={row["allocator"]: row["seconds"] for row in of})
    shutil.rmtree(package)
    lines = ["\t".join(COLUMNS), *("\t".join(str(row[name]) if row[name] is not None else "" for name in COLUMNS) for row in rows)]
    (check.out / "torch_end_to_end.tsv").write_text("\n".join(lines) + "\n")


def wrong_in(tool, file):
    """What an explanation of the recording lacks, on this machine; None: it was made by a cuaudit of other headers or another version."""
    seen = subprocess.run([str(tool), "explain", str(file)], capture_output=True, text=True)
    if seen.returncode == 2 and re.search("another version of cuaudit|other CUDA headers", seen.stderr):
        return None
    cycles = subprocess.run([str(tool), "cycles", "--from-journal", str(file)], capture_output=True, text=True)
    expected = {
        "explain: exit 1": seen.returncode == 1,
        "its beginning": "it begins with the program" in seen.stdout,
        "the genuine driver": "on the genuine driver" in seen.stdout,
        f"{LEAKS} streams left": re.search(rf"\b{LEAKS} stream\b", seen.stdout) is not None,
        "their place, a Python function": "forget_stream" in seen.stdout,
        "a build id of a module that is not here": os.path.exists("/dev/nvidiactl") or "build id" in seen.stdout,
        "cycles: judged": cycles.returncode in (1, 3),
        "cycles: the streams": "cuStreamCreate" in cycles.stdout,
    }
    return [name for name, holds in expected.items() if not holds]


def record_pytorch(check, python):
    """Records some steps for a machine without a GPU, then what recording costs."""
    journal = check.out / "pytorch.journal"
    journal.unlink(missing_ok=True)
    record = [check.tool, "record", "--driver=real", "--journal", journal, "--"]
    plain = check.run([python, PROGRAMS / "torch_recorded.py", STEPS, LEAKS])
    if plain.returncode == 77:
        return check.skip("record pytorch", plain.stderr.strip())
    done = check.run([*record, python, PROGRAMS / "torch_recorded.py", STEPS, LEAKS])
    size = journal.stat().st_size if journal.is_file() else 0
    missing = wrong_in(check.tool, journal) if size else ["a recording"]
    check.note("record pytorch", done.returncode == 0 and done.stdout == plain.stdout and missing == [] and size < LARGEST, bytes=size, missing=missing,
               same_output=done.stdout == plain.stdout, stderr=done.stderr[-400:])
    scratch = check.out / "cost.journal"
    seconds = {"plain": [], "recorded": []}
    for _ in range(5):
        for which in seconds:
            scratch.unlink(missing_ok=True)
            command = [python, PROGRAMS / "torch_recorded.py", 400, 0] if which == "plain" else [*record[:4], scratch, "--", python, PROGRAMS / "torch_recorded.py", 400, 0]
            lines = check.run(command).stderr.splitlines()
            seconds[which].append(float(next(line for line in lines if re.fullmatch(r"[0-9.]+", line))))
    scratch.unlink(missing_ok=True)
    medians = {which: statistics.median(values) for which, values in seconds.items()}
    check.note("record pytorch cost", True, ratio=round(medians["recorded"] / medians["plain"], 3), **medians)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--explain", type=Path, required=True)
    parser.add_argument("--tool", type=Path, required=True)
    options = parser.parse_args()
    # A folder: the recordings of all devices in it.
    files = sorted(options.explain.glob("*/pytorch.journal")) if options.explain.is_dir() else [options.explain]
    files = [file for file in files if file.is_file()]
    if not files:
        print(f"{options.explain}: no pytorch.journal: none was recorded yet")
        return 77
    seen = 0
    for file in files:
        missing = wrong_in(options.tool, file)
        if missing is None:
            print(f"{file}: made by a cuaudit that was built from other CUDA headers, or of another version")
            continue
        seen += 1
        if missing:
            print(f"{file}: expected: {'; '.join(missing)}")
            return 1
    return 0 if seen else 77


if __name__ == "__main__":
    sys.exit(main())
