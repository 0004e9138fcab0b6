#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tests of a project in examples/without_a_gpu run on the simulated driver, by `cuaudit env` alone.

    without_a_gpu_test.py --tool build/dev/bin/cuaudit --examples examples/without_a_gpu --cuda INCLUDE rust|go|pytest|catch2

Exit status: 0 they do, 1 they do not, 77 the language's tools are missing.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# project: programs that it needs, how its tests are built, how they are started, and what shows that the one test was run
PROJECTS = {
    "rust": (["cargo"], "cargo test --offline --quiet --no-run", "cargo test --offline", r"test bytes_come_back_from_the_simulated_device \.\.\. ok"),
    "go": (["go", "gcc"], "", "go test -count=1 -v .", r"--- PASS: TestBytesComeBackFromTheSimulatedDevice"),
    "pytest": ([], "", "$PYTHON -m pytest -q -p no:cacheprovider", r"\b1 passed"),
    "catch2": (["cmake", "ctest", "ninja"], "cmake -G Ninja -B build -DCUDA_INCLUDE=$CUDA && cmake --build build", "ctest --test-dir build",
               r"100% tests passed.* out of 1\b"),
}


def python():
    """One that has pytest: the one that runs this, or Debian's."""
    for program in sys.executable, "/usr/bin/python3":
        if subprocess.run([program, "-c", "import pytest"], capture_output=True).returncode == 0:
            return program
    return None


def missing(project):
    """What is not there, in words; None when all is."""
    for program in PROJECTS[project][0]:
        if not shutil.which(program):
            return f"{program}: not found"
    if project == "pytest" and python() is None:
        return "pytest: no module of that name"
    if project == "catch2" and not any(Path(place).exists() for place in ("/usr/include/catch2", "/usr/local/include/catch2")):
        return "catch2: no headers"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--cuda", required=True, help="include directory of the CUDA toolkit")
    parser.add_argument("project", choices=PROJECTS)
    options = parser.parse_args()
    why = missing(options.project)
    if why:
        print(f"skipped: {why}; scripts/install_packages --all installs it")
        return 77
    _, build, test, passed = PROJECTS[options.project]
    with tempfile.TemporaryDirectory(prefix="cuaudit-without-a-gpu.") as directory:
        home = Path(directory)
        project = home / "project"
        shutil.copytree(options.examples / options.project, project, ignore=shutil.ignore_patterns("target", "Cargo.lock", "build", "__pycache__"))
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "LD_PRELOAD", "CUAUDIT_OPTIONS") and not key.startswith("GOFLAGS")}
        environment.update(CUDA=options.cuda, PYTHON=python() or "", CUAUDIT=str(options.tool.resolve()), GOCACHE=str(home / "go"), GOPROXY="off", GOTOOLCHAIN="local",
                           CARGO_BUILD_JOBS="1", GOMAXPROCS="1", PYTHONDONTWRITEBYTECODE="1")

        def run(script):
            print(f"$ {script}", flush=True)
            done = subprocess.run(["bash", "-c", script], cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=500)
            print(done.stdout, flush=True)
            return done

        def expect(what, holds):
            if not holds:
                print(f"without_a_gpu_test: {options.project}: {what}")
            return holds

        # As people write it; then with the command; and without either the tests cannot even start, unless the machine has a driver.
        said = run(f'eval "$("$CUAUDIT" env --driver=sim)"; {build + " && " if build else ""}{test}')
        good = expect("the tests do not pass under `eval`", said.returncode == 0 and re.search(passed, said.stdout))
        said = run(f'"$CUAUDIT" env --driver=sim -- {test}')
        good = expect("the tests do not pass under `cuaudit env -- COMMAND`", said.returncode == 0 and re.search(passed, said.stdout)) and good
        if "libcuda.so.1" not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout:
            said = run(test)
            good = expect("the tests pass without a driver: they prove nothing", said.returncode != 0 and not re.search(passed, said.stdout)) and good
        return 0 if good else 1


sys.exit(main())
