#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the picture of the house: who includes whom, that every source is built, and how long files are.

    check_layering.py --root DIR [--compile-commands FILE]

A room may include itself, the rooms listed for it, the C++ library, and the third-party headers listed for it.
"""
import argparse
import json
import re
import sys
from pathlib import Path

ROOMS = {
    "faults/driver": [],
    "faults/journal": ["faults/driver"],
    "faults/probes": [],
    "faults/plan": ["faults/driver", "faults/journal/record.h"],
    "faults/sim": ["faults/driver", "include"],
    "faults/shim": ["faults/driver", "faults/journal", "faults/plan"],
    "faults/cudart": ["faults/driver"],
    "faults/interpose": ["faults/driver", "faults/journal", "faults/plan", "faults/probes", "faults/shim", "faults/sim/world.h", "include"],
    "allocator": ["faults/driver"],
    "include": ["cuaudit", "faults/driver/driver_ref.h"],
    "reports/words": ["faults/driver/misuse.def"],
    "reports": [],
    "harness/ledger": ["faults/driver", "faults/journal", "reports/words"],
    "harness/probes": ["faults/probes"],
    "harness/symbols": ["faults/journal", "reports"],
    "harness/verdict": ["harness/ledger", "faults/driver", "faults/journal", "faults/plan", "reports/words"],
    "harness/sweep": ["harness/ledger", "harness/verdict", "harness/symbols", "faults/driver", "faults/journal", "faults/plan", "reports/run.h",
                      "reports/escape.h"],
    "harness/cycle": ["faults/probes", "include", "harness/sweep", "harness/ledger", "harness/verdict", "harness/symbols", "faults/driver", "faults/journal", "faults/plan",
                      "reports/run.h"],
    "harness/lifecycle": ["harness/sweep", "harness/cycle", "harness/probes", "harness/ledger", "harness/verdict", "harness/symbols", "faults/driver", "faults/journal", "faults/plan",
                          "faults/shim", "faults/sim/world.h", "include", "reports/run.h"],
    "harness/cli": ["harness", "faults/driver", "faults/journal", "faults/plan", "faults/interpose/world_options.h", "faults/interpose/world_options.def",
                    "reports"],
    "suites": ["faults", "allocator", "harness", "reports", "include", "cuaudit"],
}
THIRD_PARTY = {
    r"^(CLI/|fmt/|nlohmann/)": ["harness/cli", "harness/sweep", "harness/cycle", "reports", "suites"],
    r"^pugixml": ["reports", "suites"],
    r"^(elfutils/|dwarf\.h|libelf)": ["harness/symbols", "suites"],
    r"^(gtest/|gmock/|benchmark/)": ["suites", "include/cuaudit/gtest.h", "include/cuaudit/neutrality_listener.h"],
    r"^cu(da|daGL|daEGL|daProfiler)?.*\.h$": ["faults", "allocator", "harness/ledger", "harness/lifecycle", "harness/sweep", "harness/cycle", "harness/cli", "harness/verdict", "suites"],
}
LIMIT = 400
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)


def room_of(path):
    return max((room for room in ROOMS if path == room or path.startswith(room + "/")), key=len, default=None)


def inside(name, places):
    return any(name == place or name.startswith(place + "/") for place in places)


def compiled(commands):
    """The files that a build compiles, those included: a unity build compiles lists of them."""
    files = set()
    for row in json.loads(commands.read_text()):
        path = Path(row["directory"], row["file"]).resolve()
        files.add(path)
        if path.parent.name == "Unity" and path.is_file():
            files.update(Path(own).resolve() for own, _ in INCLUDE.findall(path.read_text()))
    return files


def check(root, commands):
    problems = []
    sources = sorted(p for pattern in ("*.h", "*.cc", "*.c", "*.def") for top in ("faults", "allocator", "harness", "reports", "suites", "include")
                     for p in (root / top).rglob(pattern))
    built = compiled(commands) if commands else None
    for path in sources:
        name = path.relative_to(root).as_posix()
        room = room_of(name)
        if room is None:
            problems.append(f"{name}: stands in no room")
            continue
        text = path.read_text(errors="replace")
        for own, foreign in INCLUDE.findall(text):
            if own and "/" in own and not inside(own, [room, *ROOMS[room]]) and not own.startswith(("driver_", "cudart_")):
                problems.append(f"{name}: includes {own}, which {room} may not see")
            for pattern, rooms in THIRD_PARTY.items():
                if foreign and re.match(pattern, foreign) and not inside(room, rooms) and name not in rooms:
                    problems.append(f"{name}: includes <{foreign}>, which {room} may not see")
        lines = text.count("\n")
        if lines > LIMIT and path.suffix != ".def":
            problems.append(f"{name}: {lines} lines, at most {LIMIT}")
        if built is not None and path.suffix in (".cc", ".c") and path.resolve() not in built:
            problems.append(f"{name}: in no target, so never compiled")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--compile-commands", type=Path)
    options = parser.parse_args()
    problems = check(options.root, options.compile_commands)
    print("\n".join(problems) if problems else "layering holds")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
