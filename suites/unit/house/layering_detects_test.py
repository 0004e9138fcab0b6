#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The layering check names each planted violation of the picture and nothing else, and is silent on the tree it was copied from."""
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
SOURCES = (".h", ".cc", ".c", ".def")


def no_source(directory, names):
    return [name for name in names if not Path(directory, name).is_dir() and Path(name).suffix not in SOURCES]


def write_commands(root):
    """A build of everything that is there now: half of the tree by name, half through the list of a unity build."""
    sources = [p for p in root.rglob("*.c*") if p.suffix in (".c", ".cc")]
    unity = root / "Unity/unity_0_cxx.cxx"
    unity.parent.mkdir()
    unity.write_text("".join(f'#include "{p}"\n' for p in sources if root / "harness" in p.parents))
    built = [{"directory": str(root), "file": str(p)} for p in [*sources, unity] if root / "harness" not in p.parents]
    (root / "compile_commands.json").write_text(json.dumps(built))


def check(root, plants, *expected):
    """plants: for each file the text that it gets. Each expected text is in some line of the answer, and each line has one."""
    before = {path: (root / path).read_text() if (root / path).exists() else None for path in plants}
    for path, text in plants.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    done = subprocess.run([sys.executable, options.root / "scripts/check_layering.py", "--root", root,
                           "--compile-commands", root / "compile_commands.json"], capture_output=True, text=True)
    for path, text in before.items():
        if text is None:
            (root / path).unlink()
        else:
            (root / path).write_text(text)
    lines = done.stdout.splitlines()
    if expected:
        good = done.returncode == 1 and all(any(text in line for line in lines) for text in expected)
        good = good and all(any(text in line for text in expected) for line in lines)
    else:
        good = done.returncode == 0
    print(f"{'ok' if good else 'FAILED'}: {' | '.join(expected) or 'the tree as it is'}" + ("" if good else f"\n{done.stdout}{done.stderr}"))
    return good


with tempfile.TemporaryDirectory() as directory:
    root = Path(directory)
    for top in ("faults", "allocator", "harness", "reports", "include", "suites"):
        shutil.copytree(options.root / top, root / top, ignore=no_source)
    write_commands(root)
    rows = (options.root / "scripts/layers.txt").read_text()
    (root / "scripts").mkdir()
    (root / "scripts/layers.txt").write_text(rows)

    def with_row(folder, more):
        """The rows, with more entries in that of the folder."""
        changed = "\n".join(f"{line} {more}" if line.partition(":")[0] == folder else line for line in rows.splitlines())
        assert changed != rows.rstrip("\n")
        return {"scripts/layers.txt": changed}

    cli = root / "harness/options"
    without_cli11 = {p.relative_to(root).as_posix(): p.read_text().replace("<CLI/CLI.hpp>", "<vector>") for p in cli.iterdir() if "<CLI/" in p.read_text()}
    def readme(*names):
        return {"faults/plan/README.md": "# plan\n\n| file | what it holds |\n| --- | --- |\n" + "".join(f"| `{name}` | one thing |\n" for name in names)}

    plans = sorted({p.name.partition(".")[0] for p in (root / "faults/plan").iterdir()})
    results = [
        check(root, {}),
        # An include that has no entry; a folder is not its rooms, and one file is not its folder.
        check(root, {"faults/sim/base/planted.h": '#include "faults/shim/gate.h"\n'}, "includes faults/shim/gate.h, which faults/sim/base may not see"),
        check(root, {"faults/sim/order/planted.h": '#include "faults/sim/graph/graph.h"\n'}, "which faults/sim/order may not see",
              "circle: "),
        check(root, {"faults/plan/planted.h": '#include "faults/journal/journal.h"\n'}, "includes faults/journal/journal.h, which faults/plan may not see"),
        check(root, {"reports/planted.h": "#include <cuaudit/kernel.h>\n"}, "includes include/cuaudit/kernel.h, which reports may not see"),
        check(root, {"faults/shim/planted.h": '#include "../sim/world.h"\n'}, "includes faults/sim/world.h, which faults/shim may not see"),
        check(root, {"faults/shim/planted.h": '#include "faults/shim/gone.h"\n'}, "includes faults/shim/gone.h, which is not there"),
        check(root, {"faults/shim/planted.h": "#include <fmt/format.h>\n"}, "includes <fmt/format.h>, which faults/shim may not see"),
        check(root, {"reports/planted.h": "#include <cuda.h>\n"}, "includes <cuda.h>, which reports may not see"),
        # An allowance that no file uses.
        check(root, with_row("faults/shim", "faults/probes"), "faults/shim: may see faults/probes, and no file does"),
        check(root, with_row("harness/verdict", "reports/run.h"), "harness/verdict: may see reports/run.h, and no file does"),
        check(root, with_row("faults/shim", "faults/plan/plan.h"), "faults/shim: allowed faults/plan/plan.h twice"),
        check(root, without_cli11, "harness/options: may see <^CLI/>, and no file does"),
        # Folders that include each other, though their rows say so; and rows that are not in order.
        check(root, {"harness/ledger/planted.h": '#include "harness/verdict/judge.h"\n'} | with_row("harness/ledger", "harness/verdict"),
              "circle: harness/ledger -> harness/verdict -> harness/ledger", "harness/ledger: sees harness/verdict, whose row is not above"),
        check(root, {"faults/probes/planted.h": '#include "faults/plan/plan.h"\n'} | with_row("faults/probes", "faults/plan"),
              "faults/probes: sees faults/plan, whose row is not above"),
        # Folders and rows belong together.
        check(root, {"faults/planted/planted.h": ""}, "faults/planted: has no row"),
        check(root, {"scripts/layers.txt": f"{rows}\nfaults/planted:\n"}, "faults/planted: has a row and no source file"),
        # A source file that no target builds.
        check(root, {"faults/plan/stray.cc": ""}, "faults/plan/stray.cc: in no target"),
        check(root, {"harness/cli/stray.cc": ""}, "harness/cli/stray.cc: in no target"),
        check(root, {"suites/unit/plan/stray.c": ""}, "suites/unit/plan/stray.c: in no target"),
        check(root, {"harness/ledger/planted.h": "\n" * 401}, "401 lines, at most 400"),
        # A README and its folder: all of it, a file that no row names, a row without a file.
        check(root, readme(*plans)),
        check(root, readme(*plans[1:]), f"faults/plan/{plans[0]}."),
        check(root, readme(*plans, "gone.h"), "faults/plan/README.md: a row names `gone.h`, which is not there"),
        check(root, readme(*plans, "plan.{h,gone.cc}"), "a row names `plan.gone.cc`, which is not there"),
    ]
sys.exit(0 if all(results) else 1)
