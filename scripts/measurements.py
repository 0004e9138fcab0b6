#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What GPUs were measured to do: one directory of measurements/ per device and driver version, with one gpu_check.json of the latest results.

    scripts/measurements.py add RESULTS       adds what scripts/gpu_check wrote into the directory RESULTS

gpu_check.json has `gpu`, `driver` and `runs`, oldest first, each with date, time and commit. A result stays until a later run has one of the same
name: the older one is taken out, and a run with nothing left goes. What a later run did not finish (`partial`) or judged wrongly (`rejudged`)
replaces nothing. Tables and traces are copied beside it. Answers of the contract questions are not: see suites/contract/README.md.
"""
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ["allocator_peers.tsv", "allocator_cost.tsv", "trace_peers.tsv", "map_cost.tsv", "record_use.tsv", "torch_trace.tsv", "torch_trace_generation.tsv", "torch_trace_diffusion.tsv", "torch_trace_finetuning.tsv", "torch_end_to_end.tsv", "driver_call_cost.json", "allocator_bench.txt"]
A_PLACE = re.compile(r"(?<![\w.])/(?:data|home|mnt|nfs|opt|root|scratch|srv|tmp|Users|usr|var|work|workspace)/[^\s\"',;)]*")


def fail(message):
    sys.exit(f"measurements: {message}")


def without_places(data):
    """The same with the last name of each path of this machine, "tree.cc:3" for "/home/me/tree.cc:3", instead of the path."""
    if isinstance(data, str):
        return A_PLACE.sub(lambda place: place[0].rstrip("/").rsplit("/", 1)[-1], data)
    if isinstance(data, dict):
        return {key: without_places(value) for key, value in data.items()}
    return [without_places(value) for value in data] if isinstance(data, list) else data


def load(path):
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{path}: expected a JSON file: {error.strerror}")
    except json.JSONDecodeError as error:
        fail(f"{path}:{error.lineno}: expected JSON: {error.msg}")
    if not isinstance(data, dict):
        fail(f"{path}:1: expected a JSON object")
    return data


def runs(root):
    """Every run of every device, oldest first, with `gpu` and `driver`."""
    found = []
    for path in sorted((root / "measurements").glob("*/gpu_check.json")):
        data = load(path)
        if data.get("gpu") == "simulated":
            fail(f"{path}: expected results of a GPU, these are of the simulated driver")
        found += [{"gpu": data.get("gpu", ""), "driver": data.get("driver", ""), **run} for run in data.get("runs", [])]
    return sorted(found, key=lambda run: (run.get("date", ""), run.get("time", "")))


def name_of(run):
    return f"{run.get('date', '')} {run.get('time', '')}".strip()


def without_superseded(old, new):
    """The runs `old` less what `new` has, too."""
    named = {entry["name"] for part in ("results", "skipped") for entry in new.get(part, []) if not entry.get("partial") and not entry.get("rejudged")}
    kept = []
    for run in old:
        left = {key: value for key, value in run.items() if key not in ("results", "skipped", "tests")}
        for part in ("results", "skipped"):
            left[part] = [entry for entry in run.get(part, []) if entry["name"] not in named]
        tests = {program: {test: said for test, said in tests.items() if test not in new.get("tests", {}).get(program, {})}
                 for program, tests in run.get("tests", {}).items()}
        left["tests"] = {program: tests for program, tests in tests.items() if tests}
        if left["results"] or left["skipped"] or left["tests"]:
            kept.append(left)
    return kept


def text_of(data):
    """JSON with a result in each line, so that a change shows as one."""
    def block(key, value, indent):
        line = f"{indent}{json.dumps(key)}: "
        if not value or not isinstance(value, (list, dict)):
            return line + json.dumps(value)
        inner = indent + " "
        if isinstance(value, list):
            return line + "[\n" + ",\n".join(inner + json.dumps(entry) for entry in value) + f"\n{indent}]"
        return line + "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + f"\n{indent}}}"

    whole = ["  {\n" + ",\n".join(block(key, value, "   ") for key, value in run.items()) + "\n  }" for run in data["runs"]]
    return f'{{\n "gpu": {json.dumps(data["gpu"])},\n "driver": {json.dumps(data["driver"])},\n "runs": [\n' + ",\n".join(whole) + "\n ]\n}\n"


def add(root, results):
    summary = load(results / "summary.json")
    said = re.fullmatch(r"(?:NVIDIA )?(.+), (\d+(?:\.\d+)+)", summary.get("gpu", ""))
    if not said:
        fail(f"{results / 'summary.json'}: gpu is {summary.get('gpu')!r}, expected a device and a driver version such as 'NVIDIA H200, 580.159.04'")
    device = re.sub(r" \d+GB.*", "", said[1]).lower()  # without its memory
    directory = root / "measurements" / f"{re.sub(r'[^a-z0-9]+', '_', device)}_{said[2]}"
    path = directory / "gpu_check.json"
    data = load(path) if path.exists() else {"gpu": summary["gpu"].rsplit(", ", 1)[0], "driver": said[2], "runs": []}
    run = {key: summary[key] for key in ("date", "time", "commit", "results", "skipped", "tests") if key in summary}
    later = [name_of(old) for old in data["runs"] if name_of(old) > name_of(run)]
    if later:
        fail(f"{path} has results of {later[-1]}, these are of {name_of(run)}: add older ones first")
    place = A_PLACE.search(re.sub(r"\\.", " ", json.dumps(run)))  # no letter of an escaped line feed stands before a path
    if place:
        fail(f"{results / 'summary.json'}: has the path {place[0]} of the machine that measured: leave its last name alone there, as gpu_check does, and add it again")
    data["runs"] = without_superseded(data["runs"], run) + [run]
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(data))
    copied = [name for name in COPIED if (results / name).is_file()]
    for name in copied:
        shutil.copyfile(results / name, directory / name)
    print(f"{path}: {len(run.get('results', []))} results of {name_of(run)}{', and ' + ', '.join(copied) if copied else ''}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "add":
        add(ROOT, Path(sys.argv[2]))
    elif len(sys.argv) == 2 and sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
    else:
        print("measurements: expected add RESULTS; --help says more", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
