#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Issue kits of what NVIDIA's libraries lose on a GPU, made again from the recorded trials: without a GPU, the library or the program.

    library_trials_test.py --tool build/dev/bin/cuaudit --root . --cuda /usr/local/cuda
    library_trials_test.py ... --write       writes the kit of examples/issues anew
    library_trials_test.py ... --all         prints a row of each trial: calls of the program, calls of the kit, what they show, or why there is no kit

Exit status: 0 all is well, 1 it is not, 77 the trials are of other CUDA headers or another version.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TRIALS = "measurements/h100_580.159.04/library_trials.tar.xz"
EXAMPLE = "examples/issues/cublas_create"
OF_EXAMPLE = "cublas-v2-bfc04ca1e2115c10"
MOST_CALLS = 60
# cuBLAS makes a context current before it is retained; cuFFT keeps a context at one place with and without the failure, and loses memory when an
# exit handler's cuPointerGetAttributes fails.
SHOWN = {OF_EXAMPLE: "leak 1 device_memory", "cufft-v2-23ba648f1353b607": "leak 1 primary_context", "cufft-v2-cd1c3c507c1dfacc": "leak 1 device_memory"}


def reduce(arguments, trials, name, kit):
    """The line of the kit, or why there is none."""
    command = [arguments.tool, "reduce", name.split("-", 1)[1], trials / name, "--kit", kit, "--cuda", arguments.cuda]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stdout or done.stderr).strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tool", "root", "cuda"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("write", "all"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    sys.exit(main())
