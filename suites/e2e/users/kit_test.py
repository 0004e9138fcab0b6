#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`cuaudit reduce` as a user runs it: the committed kit comes out again byte by byte, its script shows the defect, and bad input is refused.

    kit_test.py --tool build/dev/bin/cuaudit --root . --cuda /usr/local/cuda --lifecycles build/dev/bin/replay_subject
    kit_test.py ... --only committed         a part: committed, others, kept, lifecycle or refused
    kit_test.py ... --write                  writes examples/issues anew

Exit status: 0 all is well, 1 it is not, 77 the headers are not those of the committed kit.
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

EXAMPLE = "examples/issues/picture_pool"
NUMBER = 1  # of the defect in the report, from 0
FILES = ("ISSUE.md", "reducer.c", "run.sh")
NOT_CONFIRMED = "not_confirmed"
SECRET = 0x5EC2E75E

# Loses a stream and memory when it cannot wait for a value. As `child`, a process that makes fewer calls than its parent loses a stream.
OTHER = f"""
#include <cuaudit/mark.h>
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstring>
namespace {{
struct Opener {{
  int operator()(CUstream *stream, CUdeviceptr *memory) const {{
    if (cuStreamCreate(stream, 0)) return 1;
    if (cuMemAlloc(memory, 4096)) return cuStreamDestroy(*stream), 1;
    return 0;
  }}
}};
int Work() {{
  CUstream stream;
  CUdeviceptr memory;
  if (Opener()(&stream, &memory)) return 1;
  if (cuMemsetD32(memory, {SECRET}U, 16)) return cuMemFree(memory), cuStreamDestroy(stream), 1;
  if (cuStreamWaitValue32(stream, memory, {SECRET}U, CU_STREAM_WAIT_VALUE_AND)) return 1;
  cuMemFree(memory);
  cuStreamDestroy(stream);
  return 0;
}}
int Run(int cycles, bool loses) {{
  CUcontext context;
  CUstream lost;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  int failed = 0;
  for (; cycles > 0; --cycles) {{
    cuaudit_cycle_begin();
    failed |= Work();
    CUevent grown;
    if (cycles > 3 && cycles < 20 && cuEventCreate(&grown, 0)) failed = 1;
    cuaudit_cycle_end();
  }}
  if (loses && cuStreamCreate(&lost, 0)) failed = 1;
  cuDevicePrimaryCtxRelease(0);
  return failed;
}}
}}
int main(int argc, char **argv) {{
  const bool child = argc > 1 && std::strcmp(argv[1], "child") == 0;
  const pid_t other = child ? fork() : 1;
  if (other == 0) _exit(Run(0, true));
  const bool grows = argc > 1 && std::strcmp(argv[1], "grow") == 0;
  const int failed = Run(grows ? 20 : child ? 3 : 1, false);
  if (child) waitpid(other, nullptr, 0);
  return failed;
}}
"""


class Test:
    def __init__(self, arguments, directory):
        self.tool, self.root, self.cuda = arguments.tool, Path(arguments.root), arguments.cuda
        self.lifecycles = arguments.lifecycles
        self.directory = Path(directory)
        self.environment = dict(os.environ, CUDA_HOME=arguments.cuda, CUAUDIT=arguments.tool)
        for name in ("CUAUDIT_OPTIONS", "CC"):
            self.environment.pop(name, None)
        self.failures = 0

    def run(self, *command):
        done = subprocess.run([str(word) for word in command], env=self.environment, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def expect(self, what, condition, told=""):
        if condition:
            return
        self.failures += 1
        print(f"FAIL {what}: {told}")

    def prepare(self):
        libraries = Path(self.tool).resolve().parent.parent / "lib/cuaudit"
        program = self.root / "suites/reducers/picture_pool.c"
        status, _, err = self.run("cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-g", "-O0", program, "-o", "picture_pool", f"-I{self.cuda}/include",
                                  f"-L{libraries}", "-lcuda", "-pthread")
        self.expect("picture_pool.c compiles", status == 0, err)
        status, _, err = self.run(self.tool, "sweep", "--driver=sim", "--depth=1", "--format", "json=report.json", "--", "./picture_pool")
        self.expect("the sweep finds something", status == 1, err)
        return json.loads((self.directory / "report.json").read_text())

    def committed(self, report, write):
        fingerprint = report["defects"][NUMBER]["fingerprint"]
        status, out, err = self.run(self.tool, "reduce", fingerprint, "report.json", "--kit", "kit", "--cuda", self.cuda)
        self.expect("the kit is confirmed", status == 0 and re.fullmatch(r"kit: \d+ of \d+ calls show .+\n", out), f"{status} {out}{err}")
        if write:
            shutil.rmtree(self.root / EXAMPLE, ignore_errors=True)
            shutil.copytree(self.directory / "kit", self.root / EXAMPLE)
        self.expect("the kit has three files", sorted(os.listdir(self.directory / "kit")) == sorted(FILES), os.listdir(self.directory / "kit"))
        for name in FILES:
            made = (self.directory / "kit" / name).read_text()
            self.expect(f"{EXAMPLE}/{name} is what comes out", made == (self.root / EXAMPLE / name).read_text(), f"kit_test.py --write writes it anew\n{made}")
            self.expect(f"{name} names no directory of this machine", str(self.directory) not in made and str(self.root) not in made, made)
        status, out, err = self.run("sh", "kit/run.sh")
        self.expect("run.sh shows the defect", status == 1 and report["defects"][NUMBER]["rule"] in out, f"{status} {out}{err}")
        for where in (("--", "./picture_pool"), ("report.json", "--", "./picture_pool")):
            shutil.rmtree(self.directory / "other", ignore_errors=True)
            status, out, err = self.run(self.tool, "reduce", fingerprint, "--kit", "other", "--cuda", self.cuda, "--driver=sim", "--depth=1", *where)
            self.expect(f"the same of {where}", status == 0, f"{status} {out}{err}")
            if status == 0:
                same = (self.directory / "other/reducer.c").read_text() == (self.directory / "kit/reducer.c").read_text()
                self.expect(f"the same program of {where}", same)

    def of_another_program(self):
        libraries = Path(self.tool).resolve().parent.parent / "lib/cuaudit"
        (self.directory / "other.cc").write_text(OTHER)
        status, _, err = self.run("c++", "-std=c++17", "-g", "-O0", "other.cc", "-o", "other_program", f"-I{self.root.resolve()}/include",
                                  f"-I{self.cuda}/include", f"-L{libraries}", "-lcuda")
        self.expect("other.cc compiles", status == 0, err)
        for words, calls in ((("sweep", "--depth=1"), ("cuStreamWaitValue32",)), (("run",), ("cuStreamCreate",))):
            arguments = ("child",) if words == ("run",) else ()
            status, _, err = self.run(self.tool, *words, "--driver=sim", "--format", "json=other.json", "--", "./other_program", *arguments)
            self.expect(f"{words} finds something", status == 1, err)
            texts = ""
            for defect in json.loads((self.directory / "other.json").read_text())["defects"]:
                for place in ("made", "made_of"):
                    shutil.rmtree(self.directory / place, ignore_errors=True)
                status, out, err = self.run(self.tool, "reduce", defect["fingerprint"], "other.json", "--kit", "made", "--keep-trial", "made_of", "--cuda", self.cuda)
                self.expect(f"the kit of {words} {defect['fingerprint']} is confirmed", status == 0, f"{status} {out}{err}")
                if status == 0:
                    texts += "".join((self.directory / "made" / name).read_text() for name in FILES)
                kept = b"".join(path.read_bytes() for path in (self.directory / "made_of").iterdir())
                self.expect("a kept trial has no data of the program", kept and SECRET.to_bytes(4, "little") not in kept)
            for call in calls:
                self.expect(f"{call} is in a kit", f"{call}(" in texts, texts)
            for form in (f"{SECRET}", f"{SECRET:x}"):
                self.expect("no kit has data of the program", form not in texts.lower(), texts)
            place = "(anonymous namespace)::" + ("Run, other.cc:" if arguments else "Opener::operator(), other.cc:")
            self.expect("places have their functions", f"// {place}" in texts, texts)

    def of_a_recording(self):
        """From the file alone: the program is gone. `child` loses a stream in another process, `grow` an event in each marked cycle but the
        first one and the last ones."""
        ways = ("child", "grow")
        for way in ways:
            status, _, err = self.run(self.tool, "record", "--driver=sim", "--journal", f"{way}.journal", "--", "./other_program", way)
            self.expect(f"{way} is recorded", status == 0, err)
        (self.directory / "other_program").unlink()
        made = {}
        for way in ways:
            status, _, err = self.run(self.tool, "explain", f"{way}.journal", "--format", f"json={way}.json")
            self.expect(f"{way} is a defect", status == 1, err)
            (made[way],) = json.loads((self.directory / f"{way}.json").read_text())["defects"]
        for way, defect in made.items():
            status, out, err = self.run(self.tool, "reduce", defect["fingerprint"], f"{way}.journal", "--kit", way, "--cuda", self.cuda)
            self.expect(f"the kit of {way}.journal is confirmed", status == 0 and "runs" not in err, f"{status} {out}{err}")
            if status != 0:
                continue
            text = (self.directory / way / "reducer.c").read_text()
            self.expect(f"{way} has its call", ("cuStreamCreate(" if way == "child" else "cuEventCreate(") in text and "cuMemAlloc" not in text, text)
            status, out, err = self.run("sh", f"{way}/run.sh")
            self.expect(f"run.sh of {way} shows it", status == 1 and defect["rule"] in out.replace(" ", "_"), f"{status} {out}{err}")
        recording = (self.directory / "child.journal").read_bytes()
        fingerprint = made["child"]["fingerprint"]
        for name, data in (("cut", recording[:len(recording) // 2]), ("head", recording[:100]), ("bad", b"cuauditJ" + b"\xff" * 5000)):
            (self.directory / f"{name}.journal").write_bytes(data)
        for words, told in (((fingerprint, "cut.journal"), "cut.journal"), ((fingerprint, "head.journal"), "head.journal"),
                            ((fingerprint, "bad.journal"), "bad.journal"), (("v2-0", "child.journal"), "expected a defect with the fingerprint 'v2-0'"),
                            ((fingerprint, "child.journal", "--", "./picture_pool"), "expected no program")):
            status, out, err = self.run(self.tool, "reduce", *words, "--kit", "no_kit")
            self.expect(f"reduce {words}", status == 2 and told in err and err.count("\n") == 1 and out == "", f"{status} {out}{err}")
        self.expect("no kit was begun", not (self.directory / "no_kit").exists())

    def of_a_kept_trial(self, report):
        """From the recorded runs alone: the program is somewhere else."""
        fingerprint = report["defects"][NUMBER]["fingerprint"]
        status, out, err = self.run(self.tool, "reduce", fingerprint, "report.json", "--keep-trial", "trial", "--kit", "first", "--cuda", self.cuda)
        self.expect("the trial is kept", status == 0 and sorted(os.listdir(self.directory / "trial")) == ["replay.json", "result.json", "run-0.journal", "run-1.journal"],
                    f"{status} {out}{err}")
        (self.directory / "picture_pool").rename(self.directory / "elsewhere")
        status, out, err = self.run(self.tool, "reduce", fingerprint, "trial", "--kit", "second", "--cuda", self.cuda)
        self.expect("the kit of a kept trial", status == 0 and "runs" not in err, f"{status} {out}{err}")
        calls = [[line.split("//")[0] for line in (self.directory / kit / "reducer.c").read_text().splitlines() if line.startswith("  ")]
                 for kit in ("first", "second") if (self.directory / kit).exists()]
        self.expect("both have the same calls", len(calls) == 2 and calls[0] == calls[1] and calls[0], calls)
        (self.directory / "elsewhere").rename(self.directory / "picture_pool")
        whole = (self.directory / "trial/run-1.journal").read_bytes()
        broken = {"run-1.journal": (whole[:len(whole) // 2], b"", b"cuauditJ" + b"\xff" * 5000, whole[:200]),
                  "run-0.journal": (b"no journal \x1b[31m" * 1000,), "result.json": (b"{", b"\xff\xfe"), "replay.json": (b"{}", b"[" * 5000)}
        for name, wrongs in broken.items():
            for wrong in wrongs:
                shutil.rmtree(self.directory / "bad", ignore_errors=True)
                shutil.copytree(self.directory / "trial", self.directory / "bad")
                (self.directory / "bad" / name).write_bytes(wrong)
                status, out, err = self.run(self.tool, "reduce", fingerprint, "bad", "--kit", "no_kit", "--cuda", self.cuda)
                self.expect(f"{name} with {wrong[:20]}", status == 2 and f"bad/{name}" in err and err.count("\n") == 1 and out == "", f"{status} {out}{err}")
        (self.directory / "bad/run-1.journal").unlink()
        shutil.copy(self.directory / "trial/replay.json", self.directory / "bad/replay.json")
        for words, told in (((fingerprint, "bad"), "bad/run-1.journal"), ((fingerprint, "trial", "--", "./picture_pool"), "expected no program"),
                            (("v2-0", "trial"), "expected a defect with the fingerprint 'v2-0'"),
                            ((fingerprint, "trial", "--keep-trial", "new"), "expected a result whose trial is run"),
                            ((fingerprint, "report.json", "--keep-trial", "trial"), "expected a directory that is new or empty")):
            status, out, err = self.run(self.tool, "reduce", *words, "--kit", "no_kit", "--cuda", self.cuda)
            self.expect(f"reduce {words}", status == 2 and told in err and err.count("\n") == 1 and out == "", f"{status} {out}{err}")
        self.expect("no kit of a broken trial was begun", not (self.directory / "no_kit").exists() and not (self.directory / "new").exists())

    def of_a_lifecycle(self):
        """A test in GoogleTest sweeps it in its own process, and keeps the trial there when it is run by the line of the defect."""
        self.environment["CUAUDIT_SWEEP"] = "--format json=lifecycle.json"
        status, out, err = self.run(self.lifecycles, "--gtest_filter=Sizes/Pool.UnwindsCleanly/0")
        del self.environment["CUAUDIT_SWEEP"]
        self.expect("the lifecycle has a defect", status == 1 and (self.directory / "lifecycle.json").is_file(), f"{status} {out}{err}")
        (defect,) = json.loads((self.directory / "lifecycle.json").read_text())["defects"]
        for way, words in (("of_test", ()), ("kept", ("--keep-trial", "kept_lifecycle", "--", self.lifecycles))):
            status, out, err = self.run(self.tool, "reduce", defect["fingerprint"], "lifecycle.json", "--kit", way, "--cuda", self.cuda, *words)
            self.expect(f"the kit {way}", status == 0 and "runs CUAUDIT_CASE=" in err, f"{status} {out}{err}")
        status, out, err = self.run(self.tool, "reduce", defect["fingerprint"], "kept_lifecycle", "--kit", "of_kept", "--cuda", self.cuda)
        self.expect("the kit of the kept lifecycle", status == 0 and "runs" not in err, f"{status} {out}{err}")
        status, out, err = self.run(self.tool, "explain", "kept_lifecycle/run-1.journal")
        self.expect("explain says what the lifecycle did", status == 0 and all(text in out for text in (
            "driver    simulated\n", "cuEventCreate(-> 0x0, 0x0) = OUT_OF_MEMORY [injected by fault 1]", "Loses::Init")), f"{status} {out}{err}")
        for way in ("of_test", "kept", "of_kept"):
            text = (self.directory / way / "reducer.c").read_text() if (self.directory / way).exists() else ""
            self.expect(f"{way} has its calls and its place", "cuStreamCreate(" in text and "cuEventCreate(" in text and "Loses::Init" in text, text)
            status, out, err = self.run("sh", f"{way}/run.sh")
            self.expect(f"run.sh of {way} shows it", status == 1 and defect["rule"] in out, f"{status} {out}{err}")
        text = (self.directory / "lifecycle.json").read_text()
        of_program = json.loads(text)
        del of_program["lifecycle"]
        for name, change, expected, told in (("evil", lambda line: "CUAUDIT_OPTIONS=kernels=/x " + line, 2, "expected CUAUDIT_CASE or CUAUDIT_FAULT"),
                                             ("empty", lambda line: "CUAUDIT_CASE=x", 2, "expected a test behind the variables"),
                                             ("other", lambda line: "CUAUDIT_CASE=x /bin/true", 3, "the test kept no trial"),
                                             ("gone", lambda line: "CUAUDIT_CASE=x /nonexistent/test", 2, "/nonexistent/test"),
                                             ("of_program", lambda line: "./test --gtest_filter=x", 2, "expected cuaudit replay, run or cycles")):
            changed = json.loads(text if name != "of_program" else json.dumps(of_program))
            for finding in changed["findings"]:
                finding["reproduce"] = change(finding["reproduce"])
            (self.directory / f"{name}.json").write_text(json.dumps(changed))
            status, out, err = self.run(self.tool, "reduce", defect["fingerprint"], f"{name}.json", "--kit", "no_kit", "--cuda", self.cuda)
            self.expect(f"the line is {name}", status == expected and told in err and out == "" and not (self.directory / "no_kit").exists(), f"{status} {out}{err}")

    def refused(self, report):
        fingerprint = report["defects"][NUMBER]["fingerprint"]
        if not (self.directory / "kit").exists():
            self.run(self.tool, "reduce", fingerprint, "report.json", "--kit", "kit", "--cuda", self.cuda)
        text = (self.directory / "report.json").read_text()
        (self.directory / "cut.json").write_text(text[:len(text) // 2])
        evil = json.loads(text)
        for finding in evil["findings"]:
            finding["reproduce"] = "cuaudit replay --driver=sim --fault x -- ./picture_pool; touch owned"
        (self.directory / "evil.json").write_text(json.dumps(evil))
        other = json.loads(text)
        for finding in other["findings"]:
            finding["reproduce"] = "cuaudit doctor"
        (self.directory / "other.json").write_text(json.dumps(other))
        foreign = json.loads(text)
        for finding in foreign["findings"]:
            finding["reproduce"] = finding["reproduce"].replace(" -- ", " --real-driver=/nonexistent/x --kernels=/nonexistent/k --environment=LD_PRELOAD=x -- ")
        (self.directory / "foreign.json").write_text(json.dumps(foreign))
        status, out, err = self.run(self.tool, "reduce", fingerprint, "foreign.json", "--kit", "foreign", "--cuda", self.cuda, "--", "./picture_pool")
        first = err.splitlines()[0] if err else ""
        self.expect("with a program, a result does not say what is loaded into it", status == 0 and "nonexistent" not in first and "LD_PRELOAD" not in first,
                    f"{status} {out}{err}")
        self.expect("the line that is run is said", re.fullmatch(r"cuaudit: runs cuaudit replay --driver=sim .*--fault \S+ -- \./picture_pool", first), first)
        status, out, err = self.run(self.tool, "reduce", fingerprint, "foreign.json", "--kit", "foreign2")
        self.expect("the line of the result is said before it is run", "--environment=LD_PRELOAD=x" in (err.splitlines() or [""])[0], f"{status} {out}{err}")
        rows = (((), 2, "expected a fingerprint"), ((fingerprint,), 2, "expected a fingerprint, and a result"),
                (("v2-0", "report.json"), 2, "expected a defect with the fingerprint 'v2-0'"),
                (("../v2-0", "report.json"), 2, "expected a fingerprint"), ((fingerprint, "nothing.json"), 2, "nothing.json"),
                ((fingerprint, "cut.json"), 2, "cut.json"), ((fingerprint, "evil.json"), 2, "has no line that shows it again"),
                ((fingerprint, "other.json"), 2, "expected cuaudit replay, run or cycles"),
                ((fingerprint, "report.json", "--kit", "kit"), 2, "kit: expected a directory that is new or empty"),
                ((fingerprint, "nothing.json", "--kit", "kit"), 2, "kit: expected a directory that is new or empty"),
                ((fingerprint, "report.json", "--kit", "report.json"), 2, "report.json: expected a directory that is new or empty"),
                ((fingerprint, "report.json", "--kit", "wrong", "--", "/bin/true"), 3, ""))
        for words, expected, told in rows:
            status, out, err = self.run(self.tool, "reduce", *words)
            last = err.strip().splitlines()[-1] if err.strip() else ""
            self.expect(f"reduce {' '.join(words)}", status == expected and told in last and out == "", f"{status} {out}{err}")
        self.expect("nothing was half written", not (self.directory / "wrong").exists() and not (self.directory / "owned").exists())

    def not_confirmed(self, report):
        fingerprint = report["defects"][NUMBER]["fingerprint"]
        for name, words, told in (("no_header", ("--cuda", "/nonexistent"), "cuda.h is missing"), ("no_compiler", ("--cuda", self.cuda), "a C compiler is missing")):
            self.environment["CC"] = "/nonexistent/cc"
            status, out, err = self.run(self.tool, "reduce", fingerprint, "report.json", "--kit", name, *words)
            self.expect(f"{name} is said", status == 3 and told in err and out == "", f"{status} {out}{err}")
            self.expect(f"{name} is in the page", f"**Not confirmed.** {told}" in (self.directory / name / "ISSUE.md").read_text())
            self.expect(f"{name} names its defect", (self.directory / name / NOT_CONFIRMED).read_text() == fingerprint + "\n")
            (self.directory / name / "ISSUE.md").write_text("words of somebody else\n")
        self.environment.pop("CC")
        other = report["defects"][0]["fingerprint"]
        status, out, err = self.run(self.tool, "reduce", other, "report.json", "--kit", "no_header", "--cuda", self.cuda)
        self.expect("a kit of another defect stays", status == 2 and "not confirmed" in err, f"{status} {out}{err}")
        (self.directory / "no_compiler/notes").write_text("mine")
        for name, expected in (("no_header", 0), ("no_header", 2), ("no_compiler", 2)):
            status, out, err = self.run(self.tool, "reduce", fingerprint, "report.json", "--kit", name, "--cuda", self.cuda)
            self.expect(f"{name} again", status == expected, f"{status} {out}{err}")
        self.expect("a confirmed kit says nothing else", sorted(one.name for one in (self.directory / "no_header").iterdir()) == list(FILES))
        (self.directory / "no_compiler/notes").unlink()
        (self.directory / "no_compiler" / NOT_CONFIRMED).unlink()
        status, out, err = self.run(self.tool, "reduce", fingerprint, "report.json", "--kit", "no_compiler", "--cuda", self.cuda)
        self.expect("the page alone does not tell a kit that may be replaced", status == 2, f"{status} {out}{err}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tool", "root", "cuda", "lifecycles"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--only", action="append", choices=("committed", "others", "kept", "lifecycle", "refused"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        test = Test(arguments, directory)
        report = test.prepare()
        page = test.root / EXAMPLE / "ISSUE.md"
        if not arguments.write and f"CUDA {report['driver']['version']}." not in page.read_text():
            print("the committed kit was made with other headers")
            return 77
        parts = {"committed": lambda: test.committed(report, arguments.write), "others": lambda: (test.of_another_program(), test.of_a_recording()),
                 "kept": lambda: test.of_a_kept_trial(report), "lifecycle": test.of_a_lifecycle,
                 "refused": lambda: (test.refused(report), test.not_confirmed(report))}
        for name in arguments.only or parts:
            parts[name]()
        return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
