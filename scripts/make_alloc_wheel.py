#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the Python package of the allocator as a wheel: allocator/python and the library that PyTorch loads.

    make_alloc_wheel.py --source DIR --library FILE --version N --platform TAG --out DIR

Prints the wheel's path. The same input gives the same bytes. The platform tag says for which systems; a library that was linked against a newer C
library than a manylinux tag allows must not be given that tag.
"""
import argparse
import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

PACKAGE = "cuaudit_alloc"


def row(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--platform", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not re.fullmatch(r"\d+(\.\d+)*", options.version) or not re.fullmatch(r"[a-z0-9_]+", options.platform):
        sys.exit("make_alloc_wheel.py: --version: numbers and dots expected; --platform: letters, digits and _ expected")
    info = f"{PACKAGE}-{options.version}.dist-info"
    tag = f"py3-none-{options.platform}"
    metadata = (f"Metadata-Version: 2.1\nName: cuaudit-alloc\nVersion: {options.version}\n"
                "Summary: A caching CUDA allocator for PyTorch and CuPy that knows each stream's last use\nLicense: MIT\n"
                "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n")
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted((options.source / PACKAGE).glob("*.py"))}
    files[f"{PACKAGE}/libcuaudit_allocator.so"] = options.library.read_bytes()
    files[f"{info}/METADATA"] = metadata.encode() + (options.source / "README.md").read_bytes()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cuaudit\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(row(name, data) for name, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    options.out.mkdir(parents=True, exist_ok=True)
    wheel = options.out / f"{PACKAGE}-{options.version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, data)
    print(wheel)


main()
