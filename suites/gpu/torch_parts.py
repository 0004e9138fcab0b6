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
MOVING = "expandable_segments:True,policy:wait,trust_stream_handles:True,page_size_mb:16,remap_budget:1.0"
ALLOCATORS = ("pytorch", "pytorch,expandable", "cudaMallocAsync", "cuaudit", "cuaudit:expandable_segments:True", f"cuaudit:{MOVING}")
COLUMNS = ("workload", "allocator", "seconds", "reserved_peak", "asked_peak", "computed")


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
