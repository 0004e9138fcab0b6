#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks JSON reports against the schema, and that the schema refuses reports that break it.

usage: check_schema.py SCHEMA REPORTS [--without NAME...]
       REPORTS is an object of reports by name
exit   0 all as expected, 1 not, 77 the Debian package python3-jsonschema is missing
"""
import copy
import json
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)


def spoiled(report):
    """Yields (what was broken, broken report)."""
    for key in sorted(report):
        if key not in ("message", "meters", "interrupted", "faults"):
            broken = copy.deepcopy(report)
            del broken[key]
            yield f"without {key}", broken
    for path, value in ((("schema",), "cuaudit.report/2"), (("mode",), "walk"), (("outcome",), "fine"), (("extra",), 1),
                        (("driver", "kind"), "fake"), (("totals", "calls"), -1), (("per_cycle", "stream"), "1")):
        broken = copy.deepcopy(report)
        target = broken
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
        yield f"{'.'.join(path)} = {value!r}", broken
    for finding in range(len(report["findings"])):
        for key in sorted(set(report["findings"][finding]) - {"detail"}):
            broken = copy.deepcopy(report)
            del broken["findings"][finding][key]
            yield f"finding {finding} without {key}", broken


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = 0
    with open(sys.argv[2], encoding="utf-8") as file:
        reports = json.load(file)
    for name in sys.argv[4:]:
        del reports[name]
    for path, report in reports.items():
        for error in validator.iter_errors(report):
            failures += 1
            print(f"{path}: {'/'.join(map(str, error.path))}: {error.message}")
        for what, broken in spoiled(report):
            if validator.is_valid(broken):
                failures += 1
                print(f"{path}: the schema accepts a report {what}")
    print(f"{len(reports)} reports, {failures} failures")
    return 1 if failures or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
