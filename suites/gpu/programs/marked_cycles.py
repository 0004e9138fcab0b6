# SPDX-License-Identifier: MIT
"""What the programs grow_*.py share: one kind of object made, used and destroyed again and again, each cycle marked for cuaudit.

    grow_*.py LIBRARY --list           the version, then which kinds there are
    grow_*.py LIBRARY KIND [CYCLES]    default 12, after as many as it takes to fill what is filled once

The marks of cuaudit/mark.h by ctypes; without cuaudit in the process they do nothing. Exit 77 and one line: what is asked for is not here.
In the end one line of JSON, also to the file that SAID names: what was done, and how the driver was found: `linked` has the files here that were
linked with libcuda.so.1.
"""
import ctypes
import gc
import json
import os
import subprocess
import sys

BEGIN, END = 0, 1


def mark(what):
    function = getattr(ctypes.CDLL(None), "cuaudit_mark", None)
    if function is not None:
        function(what, 0)


def leave(reason):
    print(f"not here: {reason}", file=sys.stderr)
    sys.exit(77)


def linked():
    """Which of the files in this process name libcuda.so.1 as needed; the others found the driver by dlopen."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = sorted({line.split(None, 5)[5].strip() for line in maps if ".so" in line and "/" in line})
    files = [file for file in files if os.path.basename(file) not in ("libcuda.so.1", "libcuda.so") and "libcuda.so." not in file]
    try:
        said = subprocess.run(["readelf", "--file-header", "--dynamic", "--wide", *files], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}).stdout
    except FileNotFoundError:
        return None
    here, found = "", []
    for line in said.splitlines():
        if line.startswith("File: "):
            here = os.path.basename(line[6:])
        elif "(NEEDED)" in line and "[libcuda.so.1]" in line:
            found.append(here)
    return found


WARM_UP = 3


def main(version, kinds, synchronize, warm_up=None):
    """`kinds`: name -> a function that makes, uses and destroys one object; it raises NotImplementedError where there is no such thing.
    `warm_up`: name -> how many unmarked cycles come before the marked ones, where WARM_UP are not enough."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join([version, *kinds]))
        return
    kind, cycles = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12
    before = (warm_up or {}).get(kind, WARM_UP)
    for number in range(before + cycles):
        if number >= before:
            mark(BEGIN)
        try:
            kinds[kind]()
        except (NotImplementedError, AttributeError, ImportError) as missing:
            leave(f"{version}: {kind}: {type(missing).__name__}: {missing}")
        gc.collect()
        synchronize()
        if number >= before:
            mark(END)
    said = json.dumps({"version": version, "kind": kind, "warm_up": before, "cycles": cycles, "linked": linked()})
    print(said)
    if "SAID" in os.environ:
        with open(os.environ["SAID"], "w", encoding="utf-8") as file:
            file.write(said)
