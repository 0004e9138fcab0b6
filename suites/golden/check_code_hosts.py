#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks documents for code hosts, and comparisons, against the schemas of their formats, and that the schemas refuse documents that break them.

usage: check_code_hosts.py SCHEMA DOCUMENTS...
       each of DOCUMENTS is an object of documents by name
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


def required(document):
    """Yields (what was broken, broken document) for the keys without which a code host takes nothing."""
    paths = []
    if isinstance(document, list):
        paths = [(0, key) for key in ("description", "check_name", "fingerprint", "severity", "location")] if document else []
        paths += [(0, "location", "path"), (0, "location", "lines")] if document else []
    elif "runs" not in document:  # a comparison
        paths = [(key,) for key in document] + [("counts", key) for key in document["counts"]]
        paths += [("cases", 0, "counts", "new")] if document["cases"] else []
        paths += [("defects", 0, key) for key in document["defects"][0] if key not in ("was", "taken_for", "suppressed")] if document["defects"] else []
    else:
        paths = [("version",), ("runs",), ("runs", 0, "tool"), ("runs", 0, "tool", "driver", "name")]
        if document["runs"][0]["results"]:
            paths.append(("runs", 0, "results", 0, "message"))
    for path in paths:
        broken = copy.deepcopy(document)
        target = broken
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]
        yield f"without {'.'.join(map(str, path))}", broken
    for at, value in ((0, "severity"), ("runs", "level")):
        broken = copy.deepcopy(document)
        if at == 0 and isinstance(document, list) and document:
            broken[0][value] = "fatal"
            yield "with a severity that nobody knows", broken
        elif at == "runs" and isinstance(document, dict) and document.get("runs", [{"results": []}])[0]["results"]:
            broken["runs"][0]["results"][0][value] = "fatal"
            yield "with a level that nobody knows", broken


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema, format_checker=jsonschema.FormatChecker())
    count = failures = refused = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            documents = json.load(file)
        for name, document in documents.items():
            count += 1
            for error in validator.iter_errors(document):
                failures += 1
                print(f"{path}: {name}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
            for what, broken in required(document):
                refused += 1
                if validator.is_valid(broken):
                    failures += 1
                    print(f"{path}: {name}: the schema accepts a document {what}")
    print(f"{count} documents, {refused} broken ones, {failures} failures")
    return 1 if failures or not count or not refused else 0


if __name__ == "__main__":
    sys.exit(main())
