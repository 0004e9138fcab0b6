#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The part library_kits of scripts/gpu_check on the simulated driver, with a library that stands for cuBLAS: each of its losses has a kit, and the
kept trials give the same kits again where neither the library nor the program is.

    library_kits_test.py --build build/dev --root . --cuda /usr/local/cuda --library build/dev/lib/stand_in/libstand_in_library.so
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LOST = {"primary_context", "device_memory", "event"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("build", "root", "cuda", "library"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    tool = arguments.build.resolve() / "bin/cuaudit"
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


if __name__ == "__main__":
    sys.exit(main())
