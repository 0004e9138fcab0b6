#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What merging ten million trials of a thousand shards costs, and planning as many: seconds and peak memory of the two commands.

    merge_cost.py --tool build/release/bin/cuaudit --program build/release/bin/e2e/frames [--cases 1000] [--arguments "gives_up 30"]

One case is really planned and carried out. The others are copies of its shards under other names: a merge reads each of them as a case of its
own. The plan is of as many cases that are really rehearsed, with more ways to fail for each call. Nothing is kept.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = 1 << 20  # as harness/shards/shard_file.cc hashes


def fnv(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return ((value ^ 0xFF) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF


def measured(command, cwd):
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    exit_status = os.waitstatus_to_exitcode(status)
    print(f"{' '.join(command[:2])}: {seconds:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of processor, {usage.ru_maxrss / 1024:.0f} MiB at the peak, "
          f"exit {exit_status}", flush=True)
    return exit_status


def checked(*command, cwd):
    outcome = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if outcome.returncode != 0:
        sys.exit(f"merge_cost: {command}: {outcome.returncode}\n{outcome.stderr}")


def copy_plan(single, many, rounds, cases, shards):
    """The plan of `cases` cases like the one of `single`. Returns the number of trials."""
    before, trials = "0" * 16, 0
    for round_number in range(1, rounds + 1):
        plan = json.loads((single / f"round-{round_number}.json").read_text())
        (one,) = plan["cases"]
        trials += one["trials"] * cases
        plan |= {"project": True, "shards": shards, "before": before, "cases": [one | {"name": f"c{i:05}"} for i in range(cases)]}
        text = json.dumps(plan, indent=1, ensure_ascii=False) + "\n"
        (many / f"round-{round_number}.json").write_text(text)
        before = f"{fnv(text.encode()):016x}"
        copy_shards(single, many, round_number, before, cases, shards)
    (many / "cases").mkdir()
    for i in range(cases):
        (many / "cases" / f"c{i:05}").symlink_to(single / "cases" / "program")
    return trials


def copy_shards(single, many, round_number, digest, cases, shards):
    (many / "shards").mkdir(exist_ok=True)
    each = shards // cases
    for shard in range(each):
        data = (single / "shards" / f"{round_number}-{shard:04}.shard").read_bytes()
        at = data.rfind(b"\n", 0, len(data) - 1) + 1
        body, end = data[:at], json.loads(data[at:])["end"]
        state = 0xCBF29CE484222325
        for begin in range(0, len(body), BLOCK):
            state = fnv(body[begin:begin + BLOCK], state)
        for i in range(cases):
            number = i * each + shard
            mine = end | {"plan": digest, "number": number, "of": shards, "pieces": [piece | {"case": f"c{i:05}"} for piece in end["pieces"]]}
            del mine["digest"]
            text = json.dumps(mine, separators=(",", ":"), ensure_ascii=False)
            mine["digest"] = "{:016x}".format(fnv((text + "\n").encode(), state))
            line = json.dumps({"end": mine}, separators=(",", ":"), ensure_ascii=False) + "\n"
            (many / "shards" / f"{round_number}-{number:04}.shard").write_bytes(body + line.encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--arguments", default="gives_up 30")
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--plan-cases", type=int, default=100)
    parser.add_argument("--plan-frames", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.shards % arguments.cases:
        sys.exit("merge_cost: expected --shards as a multiple of --cases")
    tool = os.path.abspath(arguments.tool)
    program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        each = arguments.shards // arguments.cases
        checked(tool, "plan", "--driver=sim", "--no-prune", "--shards", str(each), "--to", "single", "--", program, *arguments.arguments.split(), cwd=here)
        rounds = 0
        while True:  # until no trial is left for the merge
            rounds += 1
            for shard in range(each):
                checked(tool, "run-shard", "single", str(shard), cwd=here)
            checked(tool, "plan", "single", cwd=here)
            if not (here / "single" / f"round-{rounds + 1}.json").exists():
                break
        many = here / "many"
        many.mkdir()
        trials = copy_plan(here / "single", many, rounds, arguments.cases, arguments.shards)
        print(f"{trials} trials of {arguments.cases} cases in {arguments.shards} shards of each round", flush=True)
        merged = measured([tool, "merge", "many", "--out", "results", "--progress=none"], here)
        if arguments.plan_cases:
            text = "[defaults]\ndriver = \"sim\"\nhow = \"refuse,refuse+garbage,after,persist,burst:2,burst:3\"\ncodes = \"all\"\n"
            for i in range(arguments.plan_cases):
                text += f"[case.p{i}]\ncommand = [\"{program}\", \"gives_up\", \"{arguments.plan_frames}\"]\n"
            (here / "cuaudit.toml").write_text(text)
            measured([tool, "plan", "--shards", str(arguments.shards), "--to", "planned"], here)
            if (here / "planned" / "round-1.json").exists():
                planned = json.loads((here / "planned" / "round-1.json").read_text())
                print(f"{sum(one['trials'] for one in planned['cases'])} first faults planned")
    return 0 if merged == 1 else 1  # the program has a defect


if __name__ == "__main__":
    sys.exit(main())
