#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a public header with all of our own headers that it includes written out in place.

    flatten_header.py --header FILE --search DIR... --cuda-version N [--installed NAME=HEADER]... --out FILE

Includes in <> stay, each once and on top. A header is written out where it is first included, generated .inc files every time. With
`--installed` an include of NAME becomes one of <HEADER>, which has it written out; of the header that is being written it does not.
"""
import argparse
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


class Flattener:
    def __init__(self, search, installed):
        self.search = search
        self.installed = installed
        self.system = []
        self.done = set()

    def find(self, name):
        for directory in self.search:
            if (directory / name).is_file():
                return directory / name
        sys.exit(f"flatten_header.py: {name}: in none of {', '.join(map(str, self.search))}")

    def lines(self, path):
        out = []
        for line in path.read_text().splitlines():
            include = INCLUDE.match(line)
            system = include and (include.group(2) or self.installed.get(include.group(1)))
            if system:
                if system not in self.system:
                    self.system.append(system)
            elif include:
                found = self.find(include.group(1))
                if found in self.done:
                    continue
                if found.suffix == ".h":
                    self.done.add(found)
                out += self.lines(found)
            elif line.strip() != "#pragma once" and not line.startswith("// SPDX"):
                out.append(line)
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--header", type=Path, required=True)
    parser.add_argument("--search", type=Path, action="append", required=True)
    parser.add_argument("--cuda-version", type=int, required=True)
    parser.add_argument("--installed", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    installed = dict(pair.split("=", 1) for pair in options.installed)
    flattener = Flattener(options.search, {name: header for name, header in installed.items() if not str(options.out).endswith(f"/{header}")})
    body = flattener.lines(options.header)
    text = ["// SPDX-License-Identifier: MIT", "#pragma once", ""]
    text += [f"#include <{name}>" for name in flattener.system]
    text += ["", f"#if CUDA_VERSION != {options.cuda_version}",
             f'#error "cuaudit was built with headers of CUDA_VERSION {options.cuda_version}: use the same, or build it with yours"', "#endif", ""]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(text + body) + "\n"))


if __name__ == "__main__":
    main()
