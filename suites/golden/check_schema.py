#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks documents against the schemas of their formats, and that the schemas refuse documents that break them: reports, comparisons, and what
code hosts take.

usage: check_schema.py SCHEMA DOCUMENTS... [--without NAME...]
       each of DOCUMENTS is an object of documents by name
exit   0 all as expected, 1 not, 77 the Debian package python3-jsonschema is missing
"""
import argparse
import copy
import json
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

SPOILED_REPORT = ((("schema",), "cuaudit.report/2"), (("mode",), "walk"), (("outcome",), "fine"), (("extra",), 1), (("driver", "kind"), "fake"),
                  (("totals", "calls"), -1), (("per_cycle", "stream"), "1"))


def required(document):
    """The paths of the keys that the schema must miss, and of values that it must refuse: [path], [(path, value)]."""
    if isinstance(document, list):  # GitLab's issues
        if not document:
            return [], []
        keys = [(0, key) for key in ("description", "check_name", "fingerprint", "severity", "location")]
        return keys + [(0, "location", "path"), (0, "location", "lines")], [((0, "severity"), "fatal")]
    if "findings" in document:
        keys = [(key,) for key in sorted(document) if key not in ("message", "meters", "interrupted", "faults")]
        keys += [("findings", at, key) for at, finding in enumerate(document["findings"]) for key in sorted(set(finding) - {"detail"})]
        return keys, SPOILED_REPORT
    if "runs" not in document:  # a comparison
        keys = [(key,) for key in document] + [("counts", key) for key in document["counts"]]
        keys += [("cases", 0, "counts", "new")] if document["cases"] else []
        keys += [("defects", 0, key) for key in document["defects"][0] if key not in ("was", "taken_for", "suppressed")] if document["defects"] else []
        return keys, []
    keys = [("version",), ("runs",), ("runs", 0, "tool"), ("runs", 0, "tool", "driver", "name")]
    if not document["runs"][0]["results"]:
        return keys, []
    return keys + [("runs", 0, "results", 0, "message")], [(("runs", 0, "results", 0, "level"), "fatal")]


def spoiled(document):
    """Yields (what was broken, broken document)."""
    missing, wrong = required(document)
    for path, value in [(path, None) for path in missing] + list(wrong):
        broken = copy.deepcopy(document)
        target = broken
        for key in path[:-1]:
            target = target[key]
        if value is None:
            del target[path[-1]]
        else:
            target[path[-1]] = value
        yield f"{'without ' if value is None else ''}{'.'.join(map(str, path))}{'' if value is None else f' = {value!r}'}", broken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("schema")
    parser.add_argument("documents", nargs="+")
    parser.add_argument("--without", nargs="*", default=[], help="documents that are none of any command")
    options = parser.parse_args()
    with open(options.schema, encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema, format_checker=jsonschema.FormatChecker())
    count = failures = refused = 0
    for path in options.documents:
        with open(path, encoding="utf-8") as file:
            documents = json.load(file)
        for name in options.without:
            del documents[name]
        for name, document in documents.items():
            count += 1
            for error in validator.iter_errors(document):
                failures += 1
                print(f"{path}: {name}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
            for what, broken in spoiled(document):
                refused += 1
                if validator.is_valid(broken):
                    failures += 1
                    print(f"{path}: {name}: the schema accepts a document {what}")
    print(f"{count} documents, {refused} broken ones, {failures} failures")
    return 1 if failures or not count or not refused else 0


if __name__ == "__main__":
    sys.exit(main())
