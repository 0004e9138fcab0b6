#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Issue kits of what libraries lose, without a GPU.

    library_kits_test.py stand-in --build build/dev --root . --cuda /usr/local/cuda --library build/dev/lib/stand_in/libstand_in_library.so
        the part library_kits of scripts/gpu_check on the simulated driver, with a library that stands for cuBLAS: each of its losses has a kit, and
        the kept trials give the same kits again where neither the library nor the program is
    library_kits_test.py trials --build build/dev --root . --cuda /usr/local/cuda
        the kits of what NVIDIA's libraries lost on a GPU, made again from the recorded trials, without the library or the program
    library_kits_test.py trials ... --write  writes the kit of examples/issues anew
    library_kits_test.py trials ... --all    prints a row of each trial: calls of the program, calls of the kit, what they show, or why there is no kit

Exit status: 0 all is well, 1 it is not, 77 the trials are of other CUDA headers or another version.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

LOST = {"primary_context", "device_memory", "event"}
TRIALS = "measurements/h100_580.159.04/library_trials.tar.xz"
EXAMPLE = "examples/issues/cublas_create"
OF_EXAMPLE = "cublas-v2-bfc04ca1e2115c10"
MOST_CALLS = 60
# cuBLAS makes a context current before it is retained; cuFFT keeps a context at one place with and without the failure, and loses memory when an
# exit handler's cuPointerGetAttributes fails.
SHOWN = {OF_EXAMPLE: "leak 1 device_memory", "cufft-v2-23ba648f1353b607": "leak 1 primary_context", "cufft-v2-cd1c3c507c1dfacc": "leak 1 device_memory"}


def tool_of(arguments):
    return arguments.build.resolve() / "bin/cuaudit"


def of_stand_in(arguments):
    tool = tool_of(arguments)
    failures = []

    def expect(what, condition, told=""):
        if not condition:
            failures.append(f"FAIL {what}: {told}")

    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        library = shutil.copy(arguments.library, directory)
        environment = dict(os.environ, CUDA_HOME=str(arguments.cuda))
        environment.pop("CUAUDIT_OPTIONS", None)
        done = subprocess.run([sys.executable, arguments.root / "scripts/gpu_check", "--build", arguments.build, "--out", out, "--driver", "sim", "--only", "library_kits",
                               "--libraries", "cublas", "--library-file", library, "--jobs", "2", "--commit", "test"], env=environment, capture_output=True, text=True, timeout=100)
        expect("gpu_check", done.returncode == 0, done.stdout + done.stderr)
        (result,) = json.loads((out / "summary.json").read_text())["results"]
        rows = result.get("rows", [])
        expect("the losses have kits", {row["what"].split()[-1] for row in rows} == LOST and result["kits"] == len(rows), json.dumps(result, indent=1))
        expect("each place is the library's", all(row["by"] and row["by"][0].startswith("libstand_in_library.so!") for row in rows), rows)
        Path(library).unlink()
        for row in rows:
            trial, again = out / "trials" / row["kit"], out / "again" / row["kit"]
            defect = row["kit"].split("-", 1)[1]
            made = subprocess.run([tool, "reduce", defect, trial, "--kit", again, "--cuda", arguments.cuda], env=environment, capture_output=True, text=True, timeout=60)
            expect(f"{row['kit']} again", made.returncode == 0 and "runs" not in made.stderr, made.stdout + made.stderr)
            calls = [[line.split("//")[0] for line in (place / row["kit"] / "reducer.c").read_text().splitlines() if line.startswith("  ")]
                     for place in (out / "kits", out / "again") if (place / row["kit"] / "reducer.c").is_file()]
            expect(f"{row['kit']} has the same calls", len(calls) == 2 and calls[0] == calls[1], calls)
    print("\n".join(failures))
    return 1 if failures else 0


def reduce(arguments, trials, name, kit):
    """The line of the kit, or why there is none."""
    command = [tool_of(arguments), "reduce", name.split("-", 1)[1], trials / name, "--kit", kit, "--cuda", arguments.cuda]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stdout or done.stderr).strip().splitlines()[-1]


def of_trials(arguments):
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        trials = Path(directory) / "trials"
        with tarfile.open(arguments.root / TRIALS) as archive:
            archive.extractall(trials)
        for name in sorted(path.name for path in trials.iterdir()) if arguments.all else SHOWN:
            kit = Path(directory) / name
            status, said = reduce(arguments, trials, name, kit)
            if re.search("another version of cuaudit|other CUDA headers", said):
                print(said)
                return 77
            sizes = re.search(r": (\d+) of (\d+) calls show (.*)", said)
            shown = sizes is not None and status == 0 and int(sizes[1]) <= MOST_CALLS
            if arguments.all:
                print("\t".join([*name.split("-", 1), *((sizes[2], sizes[1], sizes[3]) if shown else ("-", "-", said))]))
            if not shown or sizes[3] != SHOWN.get(name, sizes[3]):
                failures += 1
                print(f"FAIL {name}: {status} {said}")
                continue
            if name == OF_EXAMPLE and arguments.write:
                shutil.rmtree(arguments.root / EXAMPLE, ignore_errors=True)
                shutil.copytree(kit, arguments.root / EXAMPLE)
            for made in sorted(kit.iterdir()) if name == OF_EXAMPLE else ():
                if made.read_bytes() != (arguments.root / EXAMPLE / made.name).read_bytes():
                    failures += 1
                    print(f"FAIL {EXAMPLE}/{made.name} is not what comes out; --write writes it anew:\n{made.read_text()}")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("of", choices=("stand-in", "trials"))
    for name in ("build", "root", "cuda"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--library", type=Path)
    for name in ("write", "all"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
    return of_trials(arguments) if arguments.of == "trials" else of_stand_in(arguments)


if __name__ == "__main__":
    sys.exit(main())
