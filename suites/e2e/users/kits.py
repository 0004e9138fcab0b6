#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes an issue kit of each defect of many programs, compiles and audits it, and prints a table.

    kits.py --tool build/dev/bin/cuaudit --programs build/dev/bin/e2e --reducers build/dev/bin/reducers --cuda /usr/local/cuda planted
    kits.py ... real                         FFmpeg and hashcat, where they are installed

A row is one defect that a sweep (or cycles) of a program reports. It has a kit when `cuaudit reduce` says so and run.sh, started by itself,
exits with 1, shows the rules, kinds and counts that the page names, and the program has at most 60 calls. Defects that driver calls cannot
show (of the host, of what a program says, of how it ends) are listed and count as rows without a kit, unless they are only of the host.

Exit status: 0 at least nine in ten rows have a kit, 1 fewer, 77 nothing is installed.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_CALLS = 60
ENOUGH = 0.9
MOST_SECONDS = 180  # that a reduction may take

BLAMED = {
    "blame": "early_return wrong_label nested_helper nested_caller half_close loop_inside loop_around lost_together context_children swallowed "
             "second_fault",
    "blame_ways": "callback callback_around table recursion retry tail_open tail_close long_jump",
    "blame_wrappers": "two_phase constructor destructor_skips destructor_throws exception released_early replaced forgotten",
    "blame_calls": "virtual lambda handler thread_main thread_worker inlined double_release",
    "blame_counted": "wrappers wrappers_nested first_loses shared_helper no_names physical",
    "blame_uses": "stripped stripped_inlined",
}
DEFICITS = "pop pop_twice release release_twice null"
KINDS = ("device_memory managed_memory pinned_memory host_registration stream_ordered_memory memory_pool address_reservation physical_memory mapping "
         "array mipmapped_array texture_object surface_object module library link_state context primary_context stream event graph "
         "executable_graph user_object texture_reference callback green_context external_memory ipc_memory")
REDUCERS = "picture_pool early_returns graph_owner"
SETTINGS = "limit threshold mode context"


def ffmpeg(filters):
    return (["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "testsrc=size=64x64:rate=4:duration=1", "-init_hw_device", "cuda=cu",
             "-filter_hw_device", "cu", "-vf", f"format=yuv420p,{filters},hwdownload,format=yuv420p", "-f", "null", "-"])


def planted(arguments):
    """Rows as (name, options of the audit, command)."""
    for program, rows in BLAMED.items():
        for row in rows.split():
            yield f"{program} {row}", ["sweep"], [f"{arguments.programs}/{program}_O0", row, "wrong"]
    for row in DEFICITS.split():
        yield f"deficit {row}", ["sweep", "--depth", "1"], [f"{arguments.programs}/deficit", row, "wrong"]
    for story in SETTINGS.split():
        yield f"settings {story}", ["sweep"], [f"{arguments.programs}/settings", f"{story}_left"]
    for kind in KINDS.split():
        yield f"leak_kind {kind}", ["cycles", "--n", "1,10"], [f"{arguments.programs}/leak_kind", kind, "{n}"]
    for program in REDUCERS.split():
        yield program, ["sweep", "--depth", "1"], [f"{arguments.reducers}/{program}_defective"]


def real(_):
    rows = [("ffmpeg upload", ffmpeg("hwupload_cuda")), ("ffmpeg scale", ffmpeg("hwupload_cuda,scale_cuda=w=32:h=32")),
            ("ffmpeg thumbnail", ffmpeg("hwupload_cuda,thumbnail_cuda=n=2")), ("hashcat", ["hashcat", "-I"])]
    for name, command in rows:
        if shutil.which(command[0]):
            yield name, ["sweep", "--depth", "1"], command


class Rows:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, Path(directory)
        self.environment = dict(os.environ, HOME=str(directory), CUDA_HOME=arguments.cuda, CUAUDIT=arguments.tool)
        self.environment.pop("CUAUDIT_OPTIONS", None)
        self.rows = []  # name, rule, calls before, calls, seconds, why not

    def run(self, command, **how):
        return subprocess.run(command, env=self.environment, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False, **how)

    def add(self, name, options, command):
        report = self.directory / "report.json"
        report.unlink(missing_ok=True)
        audit = self.run([self.arguments.tool, options[0], "--driver=sim", *options[1:], "--format", f"json={report}", "--", *command])
        if audit.returncode != 1:
            self.rows.append((name, "-", 0, 0, f"the audit ends with {audit.returncode}: {audit.stderr.strip().splitlines()[-1:]}"))
            return
        found = json.loads(report.read_text())["defects"]
        for number, defect in enumerate(found):
            title = name if len(found) == 1 else f"{name} ({number + 1})"
            self.rows.append((title, defect["rule"], *self.reduce(report, defect["fingerprint"])))

    def reduce(self, report, fingerprint, kit=None, more=()):
        """Calls before and after, and why there is no kit; empty: there is one, in the directory `kit`."""
        kit = kit or self.directory / "kit"
        shutil.rmtree(kit, ignore_errors=True)
        try:
            made = self.run([self.arguments.tool, "reduce", fingerprint, str(report), "--kit", str(kit), "--cuda", self.arguments.cuda, *more], timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return 0, 0, f"no end after {MOST_SECONDS} s"
        sizes = re.search(r"(\d+) of (\d+) calls", made.stdout + made.stderr)
        calls, before = (int(sizes[1]), int(sizes[2])) if sizes else (0, 0)
        if made.returncode != 0:
            return before, calls, (made.stderr.strip().splitlines() or [f"reduce ends with {made.returncode}"])[-1]
        shown = self.run(["sh", str(kit / "run.sh")])
        page = (kit / "ISSUE.md").read_text()
        if shown.returncode != 1:
            return before, calls, f"run.sh ends with {shown.returncode}"
        if "**Not confirmed.**" in page or re.search(r"(?<![\w+])0x[0-9a-f]{6,}", (kit / "reducer.c").read_text() + page):
            return before, calls, "the page is not confirmed, or names an address"
        missing = [line for line in re.findall(r"- <code>(\w+)</code>: \d+(?: <code>(\w+)</code>)?", page)
                   if not (re.search(line[0].replace("_", "[_ ]"), shown.stdout) and line[1] in shown.stdout)]
        if missing:
            return before, calls, f"run.sh does not show {missing}"
        return before, calls, "" if calls <= MOST_CALLS else f"more than {MOST_CALLS} calls"

    def table(self):
        width = max(len(row[0]) for row in self.rows)
        lines = [f"{name:<{width}}  {rule:<20} {before:>6} -> {calls:>3}  {why or 'kit'}" for name, rule, before, calls, why in self.rows]
        good = sum(not row[4] for row in self.rows)
        sizes = sorted(row[3] for row in self.rows if not row[4])
        middle = sizes[len(sizes) // 2] if sizes else 0
        lines.append(f"{good} of {len(self.rows)} rows have a kit; calls of a kit: {middle} in the middle, {sizes[-1] if sizes else 0} at most")
        return "\n".join(lines), good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tool", "programs", "reducers", "cuda"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("which", choices=("planted", "real"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = Rows(arguments, directory)
        for name, options, command in (planted if arguments.which == "planted" else real)(arguments):
            if arguments.only in name:
                rows.add(name, options, command)
        if not rows.rows:
            print("nothing to audit is installed")
            return 77
        text, good = rows.table()
        print(text)
        return 0 if good >= ENOUGH * len(rows.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
