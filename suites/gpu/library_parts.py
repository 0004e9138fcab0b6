# SPDX-License-Identifier: MIT
"""Parts of scripts/gpu_check about code that no one here wrote: what grows when PyTorch, CuPy, JAX, Numba, cuda.core or NVIDIA's own libraries
make, use and destroy an object ten times, how many defects a sweep of NVIDIA's libraries finds and which have an issue kit, and whether PyTorch's
own viewer reads our allocator's snapshot."""
import argparse
import glob
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e/users"))
import kits  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
FRAMEWORKS = ("torch", "cupy", "jax", "numba")
LOADER = ("libffi", "_ctypes", "libpython", "ld-linux", "libc.so")


def where(frames):
    """The innermost frames that say whose code it is."""
    named = [f"{frame['module']}!{frame['function'] or hex(frame['offset'])}" for frame in frames if not frame["module"].startswith(LOADER)]
    return named[:6]


def program_of(name):
    """The program about a library, with its first argument."""
    return [PROGRAMS / ("grow_frameworks.py" if name in FRAMEWORKS else "grow_cuda.py"), name]


def one_kind(check, python, name, kind, bound):
    report, said = check.out / f"grow_{name}_{kind}.json", check.out / f"grow_{name}_{kind}.said"
    started = time.monotonic()
    try:
        done = check.run([check.tool, "cycles", f"--driver={check.driver}", "--no-host", "--warm-up", "2", "--format", "json", "--output", report, "--",
                          python, *program_of(name), kind, "12"], timeout=bound, env=dict(os.environ, SAID=str(said)))
    except Exception as error:
        return {"kind": kind, "outcome": "no report", "why": f"{type(error).__name__}: {error}"[:300]}
    seconds = round(time.monotonic() - started, 1)
    missing = re.search(r"not here: (.*)", done.stdout + done.stderr)
    if missing or not report.is_file():
        return {"kind": kind, "outcome": "skipped" if missing else "no report", "seconds": seconds,
                "why": missing.group(1)[:300] if missing else (done.stdout + done.stderr)[-500:]}
    data = json.loads(report.read_text())
    grown = [{"kind": f["kind"], "per_cycle": f["count"], "acquired": f["acquired"]["call"], "by": where(f["acquired"]["stack"])}
             for f in data["findings"] if f["rule"] == "growth" and f.get("acquired")]
    meters = {row["name"]: row["bytes_per_cycle"] for row in (data.get("meters") or {}).get("rows", []) if row["grows"]}
    counts = (data.get("cycles") or {}).get("counts", [])
    came_to_its_end = said.is_file()
    row = {"kind": kind, "seconds": seconds, "calls": data["totals"]["calls"], "cycles": counts, "linked": json.loads(said.read_text())["linked"] if came_to_its_end else None}
    said.unlink(missing_ok=True)
    # What called nothing, or did not come to ten cycles, has been shown nothing.
    undecided = sorted({note["kind"] for note in data["notes"] if note["rule"] == "undecided"})  # grew, and may be a cache that fills
    if (data["outcome"] not in ("clean", "findings") and not undecided) or not counts or counts[-1] < 10 or data["totals"]["calls"] == 0 or not came_to_its_end:
        return {**row, "outcome": "not exercised", "why": (done.stderr or done.stdout).strip()[-400:]}
    outcome = "grows" if grown or meters else "undecided" if undecided else "nothing grows"
    return {**row, "outcome": outcome, "undecided": undecided, "per_cycle": data["per_cycle"], "grown": grown, "meters": meters,
            "others": sorted({f["rule"] for f in data["findings"] if f["rule"] != "growth"})}


def libraries(check, python, programs, bound):
    """Ten cycles of each kind of object of each library that is here; those that are not are skipped with the reason. One after the other:
    how much device memory is in use, the driver says of the whole device."""
    for name in programs:
        listed = check.run([python, *program_of(name), "--list"], timeout=120)
        if listed.returncode != 0:
            reason = (listed.stderr or listed.stdout).strip().splitlines()[-1:] or [f"exit {listed.returncode}"]
            check.skip(f"libraries {name}", reason[0][:300])
            continue
        version, *kinds = listed.stdout.splitlines()
        rows = [one_kind(check, python, name, kind, bound) for kind in kinds]
        planted = [row for row in rows if row["kind"].startswith("lost_")]
        found = all(row["outcome"] == "grows" for row in planted)
        done = [row for row in rows if row["outcome"] in ("grows", "undecided", "nothing grows")]
        for row in rows:
            if row["outcome"] == "skipped":
                check.skip(f"libraries {name} {row['kind']}", row["why"])
        check.note(f"libraries {name}", found and bool(done) and all(row["outcome"] in ("grows", "undecided", "nothing grows", "skipped") for row in rows),
                   version=version, rows=rows)


# What PyTorch's viewer is asked, and what its answer must hold.
VIEWS = {"segment_plot": ".html", "trace_plot": ".html", "segments": ".svg", "memory": ".svg"}


def memory_viz(check, python, snapshot):
    """`python -m torch.cuda._memory_viz` on a snapshot that our allocator wrote; one is made when `snapshot` is not there."""
    here = check.run([python, "-c", "import torch; print(torch.__version__)"], timeout=120)
    if here.returncode != 0:
        check.skip("memory_viz", (here.stderr.strip().splitlines() or ["python3 has no torch"])[-1])
        return
    if not snapshot.is_file():
        library = check.build / "lib/cuaudit/libcuaudit_allocator.so"
        made = check.run([python, PROGRAMS / "torch_allocator_program.py", library, snapshot], timeout=120,
                         env=dict(os.environ, CUAUDIT_ALLOC_CONF="record_history:all"))
        if not snapshot.is_file():
            check.note("memory_viz", False, error="no snapshot", exit=made.returncode, stderr=made.stderr[-800:])
            return
    for view, suffix in VIEWS.items():
        output = check.out / f"memory_viz_{view}{suffix}"
        # flamegraph.pl, which the svg views ask for, is looked up on the network: without one, that is no fault of the snapshot.
        done = check.run([python, "-m", "torch.cuda._memory_viz", view, snapshot, "-o", output], timeout=120)
        size = output.stat().st_size if output.is_file() else 0
        network = suffix == ".svg" and ("urlopen" in done.stderr or "URLError" in done.stderr or "flamegraph" in done.stderr)
        if done.returncode != 0 and network:
            check.skip(f"memory_viz {view}", "PyTorch downloads flamegraph.pl for this view, and there is no network")
            continue
        check.note(f"memory_viz {view}", done.returncode == 0 and size > 1000, torch=here.stdout.strip(), bytes=size, stderr=done.stderr[-500:])
        if size > 200000:
            output.unlink()
    for view, word in (("stats", "total_reserved"), ("trace", "alloc")):
        done = check.run([python, "-m", "torch.cuda._memory_viz", view, snapshot], timeout=120)
        check.note(f"memory_viz {view}", done.returncode == 0 and word in done.stdout.replace(" ", "_"), characters=len(done.stdout),
                   begins=done.stdout[:200], stderr=done.stderr[-500:])


# What is swept, and the file name of its library behind "lib".
SUBJECTS = {"cublas": "cublas", "cufft": "cufft", "cudnn": "cudnn", "cublasLt": "cublasLt", "cusolver": "cusolver", "cusparse": "cusparse",
            "nvjpeg": "nvjpeg"}


def wheels():
    """Where Python's packages of NVIDIA's libraries are."""
    return [f"{place}/nvidia/*" for place in dict.fromkeys([*sys.path, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]) if place]


def library_file(name):
    places = [f"{place}/lib" for place in wheels()] + ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"]
    files = [file for place in places for file in sorted(glob.glob(f"{place}/lib{name}.so.*"), reverse=True)]
    return files[0] if files else None


def toolkit():
    """A directory with include/cuda.h."""
    compiler = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", str(Path(compiler).resolve().parent.parent) if compiler else "", *wheels()]
    found = [str(Path(header).parent.parent) for place in places if place for header in sorted(glob.glob(f"{place}/include/cuda.h"))]
    return found[0] if found else None


def in_short(defect):
    """One defect without its stacks: the rule, who is to blame, the first object lost, in how many trials."""
    first = defect["members"][0]
    acquired = defect.get("acquired") or {"call": "", "stack": []}
    return {"rule": defect["rule"], "says": defect["says"], "what": f"{first.get('count', 1)} {first.get('kind', '')}", "members": len(defect["members"]),
            "trials": defect["trials"], "acquired": acquired["call"], "by": where(acquired["stack"])[:3]}


def sweep(check, name, jobs, bound, file=None):
    """Every driver call of making and destroying one object of the library fails in turn. The library, the path of the report, how long it took
    and how it ended; None where the library or the report is missing, which is noted."""
    file = file or library_file(SUBJECTS[name])
    if file is None:
        check.skip(f"sweep of {name}", f"lib{SUBJECTS[name]} is not here")
        return None
    report = check.out / f"sweep_{name}.json"
    started = time.monotonic()
    done = check.run(["timeout", "--signal=TERM", str(bound), check.tool, "sweep", f"--driver={check.driver}", "--depth=1", "--isolation=spawn", f"--jobs={jobs}",
                      "--format", "json", "--output", report, "--", check.build / "bin/library_subject", file, name, "2"], timeout=bound + 60,
                     env=dict(os.environ, LD_LIBRARY_PATH=f"{Path(file).parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"))
    seconds = round(time.monotonic() - started, 1)
    if report.is_file():
        return file, report, seconds, done
    check.note(f"sweep of {name}", False, exit=done.returncode, seconds=seconds, stderr=done.stderr[-400:])
    return None


def finding_in_short(finding):
    """One finding by what was lost and by whose frames, without files and commands: those name the machine."""
    acquired = finding.get("acquired") or {"call": "", "stack": []}
    return {"rule": finding["rule"], "kind": finding.get("kind", ""), "count": finding.get("count", 0), "bytes": finding.get("bytes", 0),
            "acquired": acquired["call"], "by": where(acquired["stack"])}


def library_sweeps(check, names, jobs, bound):
    """How many defects a sweep of each of NVIDIA's libraries finds."""
    for name in names:
        swept = sweep(check, name, jobs, bound)
        if swept is None:
            continue
        file, report, seconds, done = swept
        data = json.loads(report.read_text())
        report.unlink()
        check.note(f"sweep of {name}", data["totals"]["fired"] > 0, file=os.path.basename(file), seconds=seconds, outcome=data["outcome"], calls=data["totals"]["calls"],
                   trials=data["totals"]["trials"], findings=len(data["findings"]), defects=len(data["defects"]), what=[in_short(one) for one in data["defects"]], why="" if data["totals"]["fired"] else done.stderr.strip()[-300:])


def library_kits(check, names, jobs, bound, file, until):
    """An issue kit of each defect of NVIDIA's libraries that driver calls show, compiled and audited on the simulated driver, in kits/ of the
    results. Beside it, in trials/, the recorded runs: `cuaudit reduce FINGERPRINT trials/NAME` makes the kit again on a machine without a GPU."""
    cuda = toolkit()
    if cuda is None:
        return check.skip("library kits", "cuda.h is not here")
    made = kits.Rows(argparse.Namespace(tool=str(check.tool), cuda=cuda), check.out)
    for name in names:
        if time.monotonic() > until:
            check.skip(f"kits of {name}", "the time is over")
            continue
        swept = sweep(check, name, jobs, bound, file)
        if swept is None:
            continue
        library, report, seconds, _ = swept
        made.environment["LD_LIBRARY_PATH"] = f"{Path(library).parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        data = json.loads(report.read_text())
        rows, others = [], {}
        for defect in data["defects"]:
            place = f"{name}-{defect['fingerprint']}"
            started = time.monotonic()
            before, calls, why = made.reduce(report, defect["fingerprint"], check.out / "kits" / place, ("--keep-trial", str(check.out / "trials" / place)))
            if ": no kit: " in why:
                others[defect["rule"]] = others.get(defect["rule"], 0) + 1
                continue
            rows.append({**in_short(defect), "kit": place, "before": before, "calls": calls, "why": why, "seconds": round(time.monotonic() - started, 1)})
        report.unlink()
        check.note(f"kits of {name}", all(not row["why"] for row in rows), file=os.path.basename(library), seconds=seconds, trials=data["totals"]["trials"],
                   calls=data["totals"]["calls"], defects=len(data["defects"]), kits=sum(not row["why"] for row in rows), rows=rows, not_shown_by_calls=others)
