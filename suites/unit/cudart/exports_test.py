#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The drop-in runtime exports exactly the names that NVIDIA's exports, under the same version node, and needs nothing but libc.

    exports_test.py --room faults/cudart --library libcudart.so.13 [--genuine libcudart.so.13] [--coverage FILE]
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
import gen_cudart_exports  # noqa: E402  (its folder is known only here)


def exports(library):
    """{name: version node} of the functions that a library defines."""
    text = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True, check=True).stdout
    return {m.group(1): m.group(2) for m in re.finditer(r"^\S+ T (\w+)(?:@@?(\S+))?$", text, re.M)}


parser = argparse.ArgumentParser()
parser.add_argument("--room", type=Path, required=True)
parser.add_argument("--library", type=Path, required=True)
parser.add_argument("--genuine", type=Path)
parser.add_argument("--coverage", type=Path)
options = parser.parse_args()

soname = options.library.name
problems = []
found = exports(options.library)
expected = {name: soname for name in gen_cudart_exports.exports_of(options.room, soname.rsplit(".", 1)[1])}
problems += [f"{name} is not exported" for name in sorted(expected.keys() - found.keys())]
problems += [f"{name} is exported and should not be" for name in sorted(found.keys() - expected.keys())]
problems += [f"{name} stands under {found[name]}" for name in sorted(expected.keys() & found.keys()) if found[name] != expected[name]]
if len(expected) < 400:
    problems.append(f"only {len(expected)} names are listed")
if options.genuine and options.genuine.is_file():
    genuine = exports(options.genuine)
    problems += [f"{options.genuine} exports {name}@{genuine.get(name)}, the list {name}@{expected.get(name)}"
                 for name in sorted(genuine.keys() | expected.keys()) if genuine.get(name) != expected.get(name)]
    print(f"compared with {options.genuine}")
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", options.library], capture_output=True, text=True, check=True).stdout)
problems += [f"needs {name}" for name in needed if not name.startswith(("libc.so", "ld-linux"))]
undefined = subprocess.run(["nm", "-D", "--undefined-only", options.library], capture_output=True, text=True, check=True).stdout
problems += [f"uses {name}" for name in re.findall(r"U (\S+?)(?:@|$)", undefined, re.M) if re.match(r"malloc|calloc|realloc|free$|_Zn|_Zd|__cxa_(throw|guard)|cu[A-Z]", name)]
if options.coverage and options.coverage.read_text() != (options.room / "coverage.md").read_text():
    problems.append(f"coverage.md is not what the generator writes: cp {options.coverage} {options.room}/coverage.md")
print("\n".join(problems) if problems else f"{len(found)} exports under {soname}")
sys.exit(1 if problems else 0)
