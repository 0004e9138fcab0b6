# SPDX-License-Identifier: MIT
"""Parts of scripts/gpu_check about sweeps: second order, one process for many trials, and lifecycles in process.

Each takes the Check of scripts/gpu_check and notes its results there. What a time bound cut off is kept as far as it came, and is no pass.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SUITES = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SUITES / "support"))
from trial_log import trials_of  # noqa: E402

INTERRUPT_GRACE = 20  # seconds from the interrupt until a sweep that does not stop is killed


def findings_of(trial):
    return sorted((finding["rule"], finding.get("kind", ""), finding.get("count", 0)) for finding in trial["findings"])


class Sweep:
    """One `cuaudit sweep` in a work directory of its own, stopped when its time is over."""

    def __init__(self, check, name, program, arguments, options):
        self.check, self.name = check, name
        self.report = check.out / f"{name}.json"
        self.work = Path(tempfile.mkdtemp(prefix="gpu_check_", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        command = [check.tool, "sweep", f"--driver={check.driver}", "--format", "json", "--output", self.report, "--work-dir", self.work, *options,
                   "--", program, *arguments]
        self.started = time.monotonic()
        self.said = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.said, stderr=self.said)

    def wait(self, until):
        """Seconds it took, and whether it came to its end."""
        whole = True
        try:
            self.process.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            whole = False
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(INTERRUPT_GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.seconds = round(time.monotonic() - self.started, 1)
        self.trials = trials_of(self.work / "trials.jsonl")
        if self.trials:
            shutil.copy(self.work / "trials.jsonl", self.check.out / f"{self.name}.trials.jsonl")
        shutil.rmtree(self.work, ignore_errors=True)
        self.said.seek(0)
        self.text = self.said.read()[-600:]
        self.said.close()
        return whole and self.process.returncode in (0, 1) and self.report.is_file()

    def figures(self):
        orders = Counter(len(trial["faults"]) for trial in self.trials)
        return {"seconds": self.seconds, "trials_by_faults": dict(sorted(orders.items())), "with_findings": sum(bool(t["findings"]) for t in self.trials),
                "verdicts": dict(Counter(t["verdict"] for t in self.trials)), "isolation": dict(Counter(t["isolation"] for t in self.trials))}


def second_order(check, programs, bound, jobs):
    """Default sweeps (depth 2), each trial a process of its own, all programs at once; until `bound` seconds are over."""
    until = time.monotonic() + bound
    sweeps = []
    for program, form in programs:
        binary = check.build / "bin/reducers" / f"{program}_{form}"
        sweeps.append((program, form, Sweep(check, f"second_order_{program}_{form}", binary, ["2"],
                                            ["--isolation=spawn", "--scope=pinned", "--host", "--jobs", str(jobs)])))
    for program, form, sweep in sweeps:
        whole = sweep.wait(until)
        figures = sweep.figures()
        if not whole:
            ended = sweep.process.returncode
            check.note(f"second order {program} {form}", False, partial=True, exit=ended, **figures, output=sweep.text)
            continue
        checked = check.run([sys.executable, SUITES / "reducers/check_vectors.py", "--expected", SUITES / "reducers/expected.json", "--reducer", program,
                             "--form", form, "--host", sweep.report])
        check.note(f"second order {program} {form}", checked.returncode == 0, partial=False, **figures,
                   output="" if checked.returncode == 0 else checked.stdout[-2500:] + checked.stderr[-500:])


def cycle_isolation(check, programs, bound):
    """The same first faults in processes of their own and in cycles of one: the same verdicts and findings, and how long each took."""
    for name, program, arguments in programs:
        outcome, sweeps = {}, {}
        for isolation in ("cycle", "spawn"):
            sweep = Sweep(check, f"{isolation}_{name}", check.build / "bin" / program, arguments,
                          [f"--isolation={isolation}", "--depth", "1", "--prune=all", "--jobs", str(check.jobs)])
            whole = sweep.wait(time.monotonic() + bound)
            sweeps[isolation] = sweep
            outcome[isolation] = {**sweep.figures(), "whole": whole, **({} if whole else {"output": sweep.text})}
        said = {isolation: {";".join(t["faults"]): (t["verdict"], findings_of(t)) for t in sweep.trials} for isolation, sweep in sweeps.items()}
        different = {fault: {"cycle": said["cycle"][fault], "spawn": said["spawn"][fault]}
                     for fault in said["cycle"].keys() & said["spawn"].keys() if said["cycle"][fault] != said["spawn"][fault]}
        cycles = outcome["cycle"]
        passed = cycles["whole"] and cycles["isolation"].get("cycle", 0) > 0 and not different and len(said["cycle"].keys() & said["spawn"].keys()) > 0
        check.note(f"cycle isolation {name}", passed, compared=len(said["cycle"].keys() & said["spawn"].keys()), different=dict(list(different.items())[:10]),
                   **outcome)


def cycle_sweep(check, name, program, arguments, bound):
    """A default sweep, second order and all, in cycles of one process."""
    sweep = Sweep(check, f"cycle_whole_{name}", check.build / "bin" / program, arguments, ["--isolation=cycle", "--prune=all", "--jobs", str(check.jobs)])
    whole = sweep.wait(time.monotonic() + bound)
    check.note(f"cycle sweep {name}", whole, **sweep.figures(), output="" if whole else sweep.text)


def tests_of(check, program):
    listed = check.run([program, "--gtest_list_tests"]).stdout.splitlines()
    tests, suite = [], ""
    for line in listed:
        if line and not line.startswith(" ") and line.split("#")[0].strip().endswith("."):
            suite = line.split("#")[0].strip()
        elif line.startswith("  ") and suite:
            tests.append(suite + line.split("#")[0].strip())
    return tests


def run_tests(check, program, results, only, bound):
    """Runs GoogleTest, answers {test: "passed" | "failed" | "skipped"} and the texts of what failed or was skipped."""
    environment = dict(os.environ, CUAUDIT_OPTIONS=f"driver={check.driver}")
    if program.name == "by_name_test":  # linked with the drop-in, which LD_LIBRARY_PATH may hide behind the genuine one
        environment["LD_PRELOAD"] = str(check.build / "lib/cuaudit/libcuda.so.1")
    results.unlink(missing_ok=True)
    try:
        done = check.run([program, f"--gtest_output=json:{results}", *([f"--gtest_filter={only}"] if only else [])], env=environment, timeout=bound)
        tail = (done.stdout + done.stderr)[-1500:]
    except subprocess.TimeoutExpired:
        tail = f"not done after {bound} s"
    if not results.is_file():
        return {}, {only or "all": tail}
    said, texts = {}, {}
    for suite in json.loads(results.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            messages = [one["failure"] for one in test.get("failures", [])] + [one["message"] for one in test.get("skipped", [])]
            said[name] = "failed" if test.get("failures") else "skipped" if test["result"] == "SKIPPED" else "passed"
            if said[name] != "passed":
                texts[name] = "\n".join(messages)[:1200]
    return said, texts


def lifecycle(check, programs, bound):
    """Test programs of lifecycles in C++, on the chosen driver, in process. One that dies is run again test by test."""
    for name in programs:
        program = check.build / "bin" / name
        if not program.is_file():
            check.note(f"lifecycle {name}", False, error=f"{program} is not built")
            continue
        results = check.out / f"lifecycle_{name}.json"
        started = time.monotonic()
        said, texts = run_tests(check, program, results, "", bound)
        alone = not said
        if alone:
            def one(test):
                return run_tests(check, program, check.out / f"lifecycle_{name}.one.{test.replace('/', '_')}.json", test, 60)
            with ThreadPoolExecutor(8) as several:
                for test, (answer, words) in zip(tests_of(check, program), several.map(one, tests_of(check, program))):
                    said[test] = answer.get(test, "failed")
                    texts.update(words)
            for part in check.out.glob(f"lifecycle_{name}.one.*.json"):
                part.unlink()
            results.write_text(json.dumps({"testsuites": [], "test_by_test": said}, indent=1) + "\n")
        count = Counter(said.values())
        check.tests[name] = said
        check.note(f"lifecycle {name}", count["failed"] == 0 and count["passed"] > 0, seconds=round(time.monotonic() - started, 1), alone=alone,
                   tests={key: count[key] for key in ("passed", "failed", "skipped")}, texts=texts)
