#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/audit builds is the tool and every library that it brings into a program; nothing is built here.

    audit_script_test.py --script FILE --ninja PROGRAM --build DIR LIBRARY...
"""
import argparse
import subprocess
import sys

TARGET = "cuaudit_complete"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", required=True)
    parser.add_argument("--ninja", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("library", nargs="+")
    options = parser.parse_args()
    with open(options.script, encoding="utf-8") as file:
        problems = [] if TARGET in file.read() else [f"{options.script}: does not build {TARGET}"]
    commands = subprocess.run([options.ninja, "-C", options.build, "-t", "commands", TARGET], capture_output=True, text=True, check=True).stdout
    problems += [f"{TARGET}: does not build {library}" for library in options.library if f" {library} " not in commands]
    print("\n".join(problems) if problems else "all there")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
