#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes faults/driver/OUTPUTS.md: what every output parameter of the driver's headers yields, and who gives it back.

    gen_outputs.py --root DIR --include DIR [--compiler CXX] [--check]

An output is a parameter of a pointer type that is not const and that points to a handle, an address, another pointer, an untyped place, or a
structure that carries handles. Fails when one has no row in faults/driver/outputs.def and is not the object of an acquiring row of
faults/driver/effects.def, when a row names no such parameter, and when an acquired kind has no row that says how it is given back. --check also fails
when the page is not what would be written. Headers older than those that effects.def was written for lack calls: with them only the rows of what they
have are compared, and the page is not.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gen_driver_table as table  # noqa: E402

HEAD = """# What the driver hands out, and who gives it back

Each row is an output parameter of an entry point in CUDA {toolkit}'s headers that yields a handle, an address, a descriptor or a pointer. What is owed has
a row in `effects.def` and is counted by the ledger; of all else this page says why nothing is owed. `scripts/gen_outputs.py` writes it from
`effects.def` and `outputs.def`; the ctest `outputs_reviewed` fails when the headers have an output without a row.
"""
# Integer types that are handles or addresses, and structures that carry some.
NUMBERS = {"CUdeviceptr", "CUtexObject", "CUsurfObject", "CUmemGenericAllocationHandle", "CUgraphConditionalHandle", "CUlogIterator"}
CARRIERS = re.compile(r"^(CUipc\w+Handle|CUmemPoolPtrExportData|CUeglFrame|CUgraphNodeParams|CUgraphExecUpdateResultInfo|CUarrayMapInfo|CUdevResource"
                      r"|CUstreamBatchMemOpParams|CUDA_RESOURCE_DESC|CUDA_\w+_NODE_PARAMS|CUDA_GRAPH_INSTANTIATE_PARAMS|CUDA_MEMCPY3D\w*|CUDA_LAUNCH_PARAMS)$")
COUNTED = {"Acquires", "AcquiresCounted", "Retains", "CreatesContext", "AddsNode", "ClonesGraph", "EndsCapture", "Instantiates", "MakesDescriptor"}


def fail(messages):
    sys.exit("\n".join(f"gen_outputs: {message}" for message in messages))


def output_parameters(options):
    """{(call, parameter): (index, type)} of all symbols of each entry point, newest names last."""
    lines = [f"#include <{h}>" for h in table.HEADERS]
    declared = table.preprocess(options.compiler, options.include, options.root / "faults/driver/graphics_types", lines)
    opaque = set(re.findall(r"typedef\s+struct\s+\w+\s*\*\s*(CU\w+)\s*;", declared))
    found = {}
    for symbol, parameters in table.DECLARATION.findall(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declared)):
        declarations, _ = table.name_parameters(table.split_parameters(parameters))
        base = table.split_symbol(symbol)[0][2:]
        for index, (kind, name) in enumerate(declarations):
            kind = " ".join(kind.split()).replace(" *", "*")
            pointee = re.sub(r"_v\d+$", "", kind[:-1].strip().removeprefix("const ").strip())
            if not kind.endswith("*") or (kind.startswith("const ") and kind.count("*") < 2):
                continue
            if pointee in opaque or pointee in NUMBERS or pointee == "void" or pointee.endswith("*") or CARRIERS.match(pointee):
                found[base, name] = (index, pointee)
    return found


def rows_of(text, macro):
    """Arguments of each row, strings without their quotes."""
    rows = []
    for match in re.finditer(rf"^{macro}\((\w+), (?:(\w+),\s*)?((?:\s*\"(?:[^\"\\]|\\.)*\",?)+)\)$", text, re.M):
        words = [word.replace('\\"', '"') for word in re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(3))]
        rows.append((match.group(1), match.group(2), *words))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--include", type=Path, required=True, help="directory that holds cuda.h")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    driver = options.root / "faults/driver"
    effects_text, text = (driver / "effects.def").read_text(), (driver / "outputs.def").read_text()
    effects = {m[0]: m[1:] for m in re.findall(r"^CUAUDIT_EFFECT\((\w+), +(\w+), +(\w+), +(\w+), +\w+\)", effects_text, re.M)}
    version = int(re.search(r"#define CUDA_VERSION (\d+)", (options.include / "cuda.h").read_text(errors="replace")).group(1))
    complete = version >= int(re.search(r"toolkit (\d+)", effects_text).group(1))
    given_back = {row[0]: row[-1] for row in rows_of(text, "CUAUDIT_GIVEN_BACK")}
    outputs = {(row[0], row[1]): row[2:] for row in rows_of(text, "CUAUDIT_OUTPUT")}
    inputs = {(row[0], row[1]): row[2] for row in rows_of(text, "CUAUDIT_INPUT")}
    written = len(re.findall(r"^CUAUDIT_(?:GIVEN_BACK|OUTPUT|INPUT)\(", text, re.M))
    problems, counted, others, named = [], [], [], set()
    if written != len(given_back) + len(outputs) + len(inputs):
        problems.append(f"outputs.def: {written} rows, of which {len(given_back) + len(outputs) + len(inputs)} can be read: one is doubled or malformed")
    for (call, name), (index, pointee) in sorted(output_parameters(options).items()):
        effect, kind, place = effects.get(call, ("", "", ""))
        is_counted = effect in COUNTED and place == str(index)
        if is_counted:
            counted.append(f"| `cu{call}` | `{name}` | {kind} | {given_back.get(kind, '')} | {effect} |")
        if (call, name) in outputs:
            named.add((call, name))
            others.append(f"| `cu{call}` | `{name}` | " + " | ".join(outputs[call, name]) + " |")
        elif (call, name) in inputs or ("Any", name) in inputs:
            named |= {(call, name), ("Any", name)}
        elif effect == "AcquiresGiven" and place == str(index):
            pass  # the caller names what is acquired
        elif not is_counted:
            problems.append(f"cu{call}: {name} points to {pointee} and has no row in outputs.def, nor is it the object of an acquiring row of effects.def")
    if complete:
        problems += [f"outputs.def: cu{call} has no parameter {name} that could be an output" for call, name in sorted({*outputs, *inputs} - named)]
    acquired = {kind for effect, kind, _ in effects.values() if effect in COUNTED | {"AcquiresGiven", "RetainsPrimary", "PushesContext"}}
    problems += [f"outputs.def: no row says how a {kind} is given back" for kind in sorted(acquired - set(given_back))]
    problems += [f"outputs.def: no call acquires a {kind}" for kind in sorted(set(given_back) - acquired)]
    if problems:
        fail(problems)
    page = (HEAD.replace("{toolkit}", f"{version // 1000}.{version % 1000 // 10}") + f"\n## Owed, and counted ({len(counted)})\n\n| call | parameter | yields | given back by | row in effects.def |\n| --- | --- | --- | --- | --- |\n" +
            "\n".join(counted) + f"\n\n## Handed out, and not counted by itself ({len(others)})\n\n| call | parameter | yields | why |\n| --- | --- | --- | --- |\n" +
            "\n".join(others) + "\n\n## Pointers that hand nothing out\n\n| call | parameter | what it is |\n| --- | --- | --- |\n" +
            "\n".join(f"| {'any' if call == 'Any' else f'`cu{call}`'} | `{name}` | {what} |" for (call, name), what in sorted(inputs.items())) + "\n")
    target = driver / "OUTPUTS.md"
    if options.check and complete and (not target.is_file() or target.read_text() != page):
        fail([f"{target} is not what this program writes; run it without --check"])
    if not options.check and complete:
        target.write_text(page)


if __name__ == "__main__":
    main()
