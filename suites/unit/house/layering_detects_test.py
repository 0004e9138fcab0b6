#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The layering check names each planted violation of the picture and is silent on the tree it was copied from."""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
options = parser.parse_args()


def check(plant, expected):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for top in ("faults", "harness", "reports", "include"):
            shutil.copytree(options.root / top, root / top)
        (root / "suites").mkdir()
        plant(root)
        sources = [p for p in root.rglob("*.c*") if p.suffix in (".c", ".cc") and p.name != "stray.cc"]
        unity = root / "Unity/unity_0_cxx.cxx"  # half of the tree is compiled by name, half through such a list
        unity.parent.mkdir()
        unity.write_text("".join(f'#include "{p}"\n' for p in sources if root / "harness" in p.parents))
        built = [{"directory": str(root), "file": str(p)} for p in [*sources, unity] if root / "harness" not in p.parents]
        commands = root / "compile_commands.json"
        commands.write_text(json.dumps(built))
        done = subprocess.run([sys.executable, options.root / "scripts/check_layering.py", "--root", root, "--compile-commands", commands],
                              capture_output=True, text=True)
        good = done.returncode == 0 if expected is None else done.returncode == 1 and expected in done.stdout
        print(f"{'ok' if good else 'FAILED'}: {expected or 'the tree as it is'}" + ("" if good else f"\n{done.stdout}{done.stderr}"))
        return good


def include(path, line):
    return lambda root: (root / path).write_text(f"{line}\n")


results = [
    check(lambda root: None, None),
    check(include("faults/sim/planted.h", '#include "faults/shim/gate.h"'), "includes faults/shim/gate.h, which faults/sim may not see"),
    check(include("reports/planted.h", '#include "harness/ledger/ledger.h"'), "which reports may not see"),
    check(include("faults/shim/planted.h", "#include <fmt/format.h>"), "includes <fmt/format.h>"),
    check(include("reports/planted.h", "#include <cuda.h>"), "includes <cuda.h>"),
    check(include("faults/plan/stray.cc", ""), "in no target"),
    check(include("harness/cli/stray.cc", ""), "in no target"),
    check(lambda root: (root / "harness/ledger/planted.h").write_text("\n" * 401), "401 lines, at most 400"),
]
sys.exit(0 if all(results) else 1)
