#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GPUS n of cuaudit_add_audit and cuaudit_add_sweep is what CTest reserves: the tool is told of n different GPUs, and no test gets more than
there are.

    resource_groups_test.py --cmake cmake --ctest ctest --generator Ninja --module cmake/CuauditTesting.cmake
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(resources NONE)
enable_testing()
add_executable(cuaudit::tool IMPORTED)
set_target_properties(cuaudit::tool PROPERTIES IMPORTED_LOCATION "${{CMAKE_CURRENT_SOURCE_DIR}}/tool")
include("{module}")
file(WRITE cuaudit.toml "")
cuaudit_add_audit(CONFIG cuaudit.toml GPUS 2)
cuaudit_add_audit(NAME two)
cuaudit_add_sweep(NAME one COMMAND ./program GPUS 1)
cuaudit_add_sweep(NAME none COMMAND ./program)
"""
TOOL = """#!/bin/sh
echo "$CTEST_RESOURCE_GROUP_0_GPUS $CTEST_RESOURCE_GROUP_1_GPUS" > "seen-$1-${CTEST_RESOURCE_GROUP_COUNT:-no}"
"""


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "ctest", "generator", "module"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory)
        build = source / "build"
        (source / "CMakeLists.txt").write_text(PROJECT.format(module=arguments.module))
        (source / "tool").write_text(TOOL)
        (source / "tool").chmod(0o755)
        specification = source / "gpus.json"
        specification.write_text(json.dumps({"version": {"major": 1, "minor": 0}, "local": [{"gpus": [{"id": "3"}, {"id": "5"}]}]}))
        subprocess.run([arguments.cmake, "-S", source, "-B", build, "-G", arguments.generator], check=True)
        subprocess.run([arguments.ctest, "--test-dir", build, "--output-on-failure", "--resource-spec-file", specification], check=True)
        listed = subprocess.run([arguments.ctest, "--test-dir", build, "-N"], check=True, capture_output=True, text=True).stdout
        assert ": cuaudit_audit\n" in listed and ": two\n" in listed, listed  # an audit without NAME, and one with
        seen = {path.name: path.read_text().split() for path in build.glob("seen-*")}
        print(seen)
        assert sorted(seen["seen-audit-2"]) == ["id:3,slots:1", "id:5,slots:1"], seen
        assert len(seen["seen-sweep-1"]) == 1 and seen["seen-sweep-1"][0] in ("id:3,slots:1", "id:5,slots:1"), seen
        assert seen["seen-sweep-0"] == [], seen
        wrong = source / "wrong"
        wrong.mkdir()
        (wrong / "CMakeLists.txt").write_text(PROJECT.format(module=arguments.module).replace("GPUS 2", "GPUS none"))
        refused = subprocess.run([arguments.cmake, "-S", wrong, "-B", wrong / "build", "-G", arguments.generator], capture_output=True, text=True)
        assert refused.returncode != 0 and "GPUS none: expected a number from 1" in " ".join(refused.stderr.split()), refused.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
