#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files as text into a C++ source: embed_files.py --out assets.cc NAME=FILE[,FILE...] ...

Several files of one name are joined; one called LICENSE becomes a comment. Each name becomes the Asset NAME of reports/html/page_parts.h. Parts are small, because compilers need not
take a string literal of any length.
"""
import argparse
import pathlib
import sys

PART = 12000  # characters


def literal(text: str) -> str:
    out = []
    for byte in text.encode("utf-8"):
        one = chr(byte)
        if one in '"\\?':
            out.append("\\" + one)
        elif one == "\n":
            out.append("\\n")
        elif 0x20 <= byte < 0x7F:
            out.append(one)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("assets", nargs="+", metavar="NAME=FILE[,FILE...]")
    arguments = parser.parse_args()
    lines = ["// Made by scripts/embed_files.py.", '#include "reports/html/page_parts.h"', "", "namespace cuaudit::report::html {", "namespace {", ""]
    names = []
    for asset in arguments.assets:
        name, equals, files = asset.partition("=")
        if not equals or not name.isidentifier():
            print(f"embed_files.py: {asset}: expected NAME=FILE[,FILE...]", file=sys.stderr)
            return 2
        text = ""
        for file in files.split(","):
            try:
                one = pathlib.Path(file).read_text(encoding="utf-8")
                text += f"/*!\n{one}*/\n" if pathlib.Path(file).name == "LICENSE" else one
            except (OSError, UnicodeDecodeError) as error:
                print(f"embed_files.py: {file}: {error}", file=sys.stderr)
                return 2
        parts = [text[i:i + PART] for i in range(0, len(text), PART)] or [""]
        lines.append(f"constexpr std::string_view {name}Parts[] = {{")
        lines += [f"    {literal(part)}," for part in parts]
        lines.append("};")
        names.append(name)
    lines += ["", "}  // namespace", ""]
    lines += [f"const Asset {name} = {name}Parts;" for name in names]
    lines += ["", "}  // namespace cuaudit::report::html", ""]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
