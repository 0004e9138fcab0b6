#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a public header with all of our own headers that it includes written out in place.

    flatten_header.py --header FILE --search DIR... --cuda-version N --out FILE

Includes in <> stay, each once and on top. A header is written out where it is first included, generated .inc files every time.
"""
import argparse
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


class Flattener:
    def __init__(self, search):
        self.search = search
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
            if include and include.group(2):
                if include.group(2) not in self.system:
                    self.system.append(include.group(2))
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
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    flattener = Flattener(options.search)
    body = flattener.lines(options.header)
    text = ["// SPDX-License-Identifier: MIT", "#pragma once", ""]
    text += [f"#include <{name}>" for name in flattener.system]
    text += ["", f"#if CUDA_VERSION != {options.cuda_version}",
             f'#error "cuaudit was built with headers of CUDA_VERSION {options.cuda_version}: use the same, or build it with yours"', "#endif", ""]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(text + body) + "\n"))


if __name__ == "__main__":
    main()
