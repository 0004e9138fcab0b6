# SPDX-License-Identifier: MIT
"""PyTorch's workloads (programs/torch_workloads.py) for gpu_check: what they ask of an allocator, and what they take on several."""
import json
import os
import shutil
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOT = PROGRAMS.parents[2]
TRACED = {"transformer": "torch_trace.tsv", "generation": "torch_trace_generation.tsv", "diffusion": "torch_trace_diffusion.tsv", "finetuning": "torch_trace_finetuning.tsv"}
WORKLOADS = ("resnet", "transformer", "server", "generation", "diffusion", "finetuning")
ALLOCATORS = ("pytorch", "pytorch,expandable", "cudaMallocAsync", "cuaudit", "cuaudit:expandable_segments:True",
              "cuaudit:expandable_segments:True,policy:wait,trust_stream_handles:True,page_size_mb:16,remap_budget:1.0")
COLUMNS = ("workload", "allocator", "seconds", "reserved_peak", "asked_peak", "computed")


def record_traces(check, python):
    """For allocator_peers, which replays them on each allocator."""
    for workload, name in TRACED.items():
        done = check.run([python, PROGRAMS / "torch_trace.py", workload, check.out / name], timeout=120)
        if "No module named 'torch'" in done.stderr:
            return check.skip("torch trace", "no PyTorch here")
        check.note(f"torch trace of {workload}", done.returncode == 0, said=done.stdout.strip()[-300:], stderr="" if done.returncode == 0 else done.stderr[-600:])


def replay_traces(check):
    """Time and memory of the recorded workloads on the allocators in one process, without PyTorch's own work between."""
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{check.runtime_library() or ''}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    for workload, name in list(TRACED.items())[1:]:  # the first one is a row of the whole comparison
        if not (check.out / name).is_file():
            continue
        table = check.out / f"allocator_peers_{workload}.tsv"
        done = check.run([check.build / "bin/allocator_peers", "--peers", check.build / "lib/peers", "--loops", "recorded_trace", "--rounds", "4", "--budget-seconds", "40",
                          "--recorded-trace", check.out / name, "--output", table], env=environment, timeout=90)
        compared = check.run([sys.executable, ROOT / "scripts/compare_allocator_peers.py", table])
        check.note(f"trace of {workload}", done.returncode == 0 and table.is_file(), said=compared.stdout.splitlines()[-2:], stderr=done.stderr[-300:])


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
