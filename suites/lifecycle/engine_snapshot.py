#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the audits of lifecycles and of programs say with what they said before (engine_snapshot/*.txt).

    engine_snapshot.py lifecycles|programs --expected FILE --run FILE [--drop-in FILE] [--update]

lifecycles: --run is a test program that writes its audits to CUAUDIT_SNAPSHOT. programs: --run is cuaudit, the folder of its subjects comes
from --programs. Left out are the calls of a sweep and the ways back, which suites/e2e/trials_test.cc holds. Masked is what another machine or compiler says otherwise: addresses, paths, line numbers, fingerprints, frames without source.
CUAUDIT_UPDATE_GOLDEN in the environment writes the file instead.
"""
import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Left out: what depends on how threads take turns, on deadlines, or dies on purpose.
TESTS = "-LifecycleOptions.*:DeathTest.*:Hang.*:*TwoThreads*:*Drift*:*drift*:*Genuine*:*Host*:*host*:*Cycles.*:*EveryHow*:*Chosen*"
PROGRAMS = [
    "sweep -- defective",
    "sweep -- steps 46 leaking",
    "sweep -- marked leaking 2",
    "sweep -- leak_kind stream 2",
    "sweep -- unordered race",
    "sweep -- reports swallow",
    "sweep --no-shrink --depth 1 --call cuMemsetD8Async --how burst:5 -- reports swallow",
    "sweep --prune=all -- reports honest 10",
    "sweep --strict-exit --depth 1 --call cuMemAlloc -- silent retry",
    "sweep --benign cuMemAllocManaged -- silent optional",
    "sweep --depth=1 --how refuse,host_oom -- host_oom repaired",
    "sweep --host --depth 1 -- host_path locked_mutex",
    "sweep --limit 3 --call cuMemAlloc --abandoned-is-leak -- unattended",
    "replay --fault cuMemAlloc#1=OUT_OF_MEMORY,refuse -- defective",
    "cycles -- marked leaking 4",
    "run -- misuse",
]


# Where a function is inlined, -g1 knows neither its scopes nor its parameters.
def without_scopes(match):
    name = match[2].removesuffix(" const")
    if name.endswith(")") and name != "operator()":
        depth = 0
        for at in range(len(name) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(name[at], 0)
            if depth == 0:
                name = name[:at]
                break
    return match[1] + name.rpartition("::")[2] + match[3]


def lifecycles(arguments):
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "audits.txt"
        environment = dict(os.environ, CUAUDIT_SNAPSHOT=str(written), CUAUDIT_OPTIONS="driver=sim")
        for name in ("GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"):
            environment.pop(name, None)
        ended = subprocess.run([arguments.run, "--gtest_brief=1", "--gtest_filter=" + TESTS], env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(ended.stdout + ended.stderr)
        lines = written.read_text().splitlines()
    # Call stacks, and what every one of them says.
    everywhere = ("       ", "     fingerprint ", "  driver   simulated", "  host     not metered: mutexes, references of libraries", "  coverage ")
    lines = [line for line in lines if line and not line.startswith(everywhere)]
    text = "\n".join(lines) + "\n"
    # Places: their number depends on how the program is compiled.
    text = re.sub(r"(?<!seen)( < | at (?!\d)).*$|(?<=calls) at \d+ sites?", "", text, flags=re.M)
    text = re.sub(r"^(     reproduce CUAUDIT_CASE=\S+(?: CUAUDIT_FAULT='.*?')?) .*$", r"\1", text, flags=re.M)
    text = re.sub(r"^(     )(\S.*?)( returned without| held it, saw| acquired it| made the call)", without_scopes, text, flags=re.M)
    return re.sub(r"0x[0-9a-f]+", "0x*", text)


def masked(value, key=""):
    if isinstance(value, dict) and key == "function":
        return value["function"]
    if isinstance(value, dict):
        left_out = ("header", "fingerprint", "device", "version", "runtime", "sequence")
        ways_back = [name for name, one in value.items() if name == "unwinding" and isinstance(one, dict)]
        return {name: masked(one, name) for name, one in value.items() if name not in left_out and name not in ways_back}
    if key in ("stack", "where_stack"):
        return " < ".join(frame["function"] for frame in value if frame.get("file"))
    if isinstance(value, list):
        return [masked(one) for one in value if not str(one).startswith("v1-")]
    return re.sub(r"0x[0-9a-f]+", "0x*", value) if isinstance(value, str) else value


def program(arguments, line):
    options, subject = line.split(" -- ")
    command, *options = options.split()
    name, *rest = subject.split()
    if command == "sweep":
        options.append("--jobs=1")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [arguments.run, command, "--driver=sim", "--format=json", "--output", str(report), *options, "--"]
        subprocess.run([*words, str(arguments.programs / name), *rest], capture_output=True, text=True, cwd=folder)
        text = report.read_text().replace(str(arguments.programs) + "/", "").replace(arguments.run, "cuaudit") if report.exists() else "{}"
    lines = ["== " + line]
    for key, value in masked(json.loads(text)).items():
        rows = value if isinstance(value, list) else [value]
        lines += [f"{key}: {json.dumps(row)}" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["lifecycles", "programs"])
    parser.add_argument("--expected", required=True, type=Path)
    parser.add_argument("--run", required=True)
    parser.add_argument("--programs", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "lifecycles":
        seen = lifecycles(arguments)
    else:
        seen = "".join(program(arguments, line) for line in PROGRAMS)
    if os.environ.get("CUAUDIT_UPDATE_GOLDEN"):
        arguments.expected.parent.mkdir(exist_ok=True)
        arguments.expected.write_text(seen)
        return
    expected = arguments.expected.read_text()
    differences = list(difflib.unified_diff(expected.splitlines(), seen.splitlines(), "expected", "seen", lineterm="", n=2))
    if differences:
        sys.exit("\n".join(differences[:200]) + "\nCUAUDIT_UPDATE_GOLDEN=1 ctest -R engine_snapshot renews " + arguments.expected.name)


main()
