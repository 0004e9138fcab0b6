#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs scripts/test and scripts/audit in a tree where cmake and ctest are stand-ins that note how they were called.

    entry_scripts_test.py --root CHECKOUT --build BUILD [--compiler ID] [--cc FILE --cuda INCLUDE --runtime DIR]
                          [--cmake FILE --ctest FILE] [NAME...]

What scripts/audit audits is real: the cuaudit and the reducers that BUILD holds. Nothing is installed and nothing is built.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

options = None
REDUCERS = ("preallocation", "picture_pool", "graph_owner", "early_returns")
REDUCER_FLAGS = ("-g", "-O1", "-fno-inline", "-fno-omit-frame-pointer")  # of suites/reducers/CMakeLists.txt
# Loses a stream when its second cudaMalloc fails. Not every machine that runs the tests has nvcc. What `nvcc -cudart shared` makes of host code is made here by
# the host compiler: a program that needs the soname of the runtime and no other library of CUDA. suites/runtime has programs by nvcc.
RUNTIME_PROGRAM = """#include <cuda_runtime_api.h>
static int upload(void) {
  cudaStream_t stream;
  void* memory;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  cudaFree(memory);
  return cudaStreamDestroy(stream) == cudaSuccess ? 0 : 1;
}
int main(void) {
  void* kept;
  int failed;
  if (cudaMalloc(&kept, 4096) != cudaSuccess) return 1;
  failed = upload();
  return cudaFree(kept) == cudaSuccess ? failed : 1;
}
"""
# $FAIL names the command whose arguments fail: "--build", "--preset dev -j". It prints the file "says".
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$(basename "$0") $*" in *"$FAIL"*) cat "$(dirname "$CALLS")/says"; exit 8 ;; esac
exit 0
"""
COMPILER = "a.cc: In function 'f':\nerror: this is what a compiler says\nninja: build stopped\n"
CTEST = """7/9 Test  #7: pool_test ....***Failed  0.1 sec
[ RUN      ] Pool.GrowsByHalf
pool_test.cc:41: Failure
Value of: pool.size()
  Actual: 2
Expected: 3
[  FAILED  ] Pool.GrowsByHalf (1 ms)
the rest of it

The following tests FAILED:
\t  7 - pool_test (Failed)
\t  9 - trial_log_reader (Timeout)
Errors while running CTest
"""


class Script(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = Path(scratch.name)
        for folder in ("scripts", "bin", "build/release"):
            (self.tree / folder).mkdir(parents=True)
        for name in ("cmake", "ctest"):
            self.put(self.tree / "bin" / name, STAND_IN)
        self.put(self.tree / "scripts/install_packages", "#!/bin/sh\nexit 0\n")
        self.put(self.tree / "says", COMPILER)

    def put(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def run_script(self, name, *arguments, fail="nothing fails", seconds=240):
        shutil.copy(options.root / "scripts" / name, self.tree / "scripts" / name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CUAUDIT_")}
        environment.update(PATH=f"{self.tree / 'bin'}:{environment['PATH']}", CALLS=str(self.tree / "calls"), FAIL=fail)
        return subprocess.run([self.tree / "scripts" / name, *arguments], cwd=self.tree, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)

    def calls(self):
        return (self.tree / "calls").read_text().splitlines()


class TestScript(Script):
    def test_all_passed(self):
        # A build of 40 steps, of which a line is shown for each tenth.
        self.put(self.tree / "bin/cmake", STAND_IN.replace("exit 0\n", 'case "$*" in --build*) for i in $(seq 40); do echo "[$i/40] C a.cc"; done ;; esac\n'
                                                           "exit 0\n"))
        done = self.run_script("test")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout.splitlines()[0], r"^scripts/test: dev; \d+ to \d+ minutes on 2 cores, by their speed, from an empty build directory")
        self.assertEqual(re.findall(r"^   dev: build: (\d+) of 40 steps$", done.stdout, re.M), [str(i) for i in range(4, 41, 4)])
        self.assertEqual([line.split()[0] for line in self.calls()], ["cmake", "cmake", "ctest"])
        self.assertNotIn("FAILED", done.stdout)
        for phase in ("install", "dev: configure", "dev: build", "dev: tests", "all"):
            self.assertIn(phase, done.stdout.split("Where the time went:")[1])

    def test_what_each_run_builds_and_leaves_out(self):
        self.put(self.tree / "bin/run-clang-tidy", "#!/bin/sh\nexit 0\n")
        for arguments, preset, left_out, target in (
                ((), "dev", "stress", "tests_functional"), (("--all",), "optimised", "elsewhere", "tests_not_elsewhere"), (("dev",), "dev", "", ""),
                (("optimised",), "optimised", "", "")):
            with self.subTest(arguments):
                (self.tree / "calls").unlink(missing_ok=True)
                done = self.run_script("test", *arguments)
                self.assertEqual(done.returncode, 0, done.stdout)
                tests, = [line for line in self.calls() if line.startswith(f"ctest --preset {preset} ")]
                self.assertEqual(re.findall(r"-LE (\w+)", tests), left_out.split())
                built, = [line for line in self.calls() if line.startswith(f"cmake --build --preset {preset}")]
                self.assertEqual(re.findall(r"--target (\w+)", built), target.split())
                self.assertEqual("Not run: the tests with the label stress" in done.stdout, not arguments)
                # What --all leaves out of one tier, another tier runs: there all of the sanitizer's.
                if "--all" in arguments:
                    self.assertIn("cmake --build --preset asan", self.calls())
                    asan, = [line for line in self.calls() if line.startswith("ctest --preset asan ")]
                    self.assertNotIn("-LE", asan)

    def test_a_build_that_fails(self):
        done = self.run_script("test", fail="cmake --build")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertNotIn("ctest", "".join(self.calls()))
        times, end = done.stdout.split("Where the time went:")[1].split("dev: build failed; build/logs/dev--build.log has all of it:\n")
        self.assertIn("dev: configure", times)
        self.assertEqual(end, "  error: this is what a compiler says\n\nscripts/test: FAILED [dev: build]\n")
        self.assertEqual((self.tree / "build/logs/dev--build.log").read_text(), COMPILER)

    def test_a_configuration_that_fails(self):
        done = self.run_script("test", "asan", fail="cmake --preset asan")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(len(self.calls()), 1)
        self.assertTrue(done.stdout.endswith("scripts/test: FAILED [asan: configure]\n"), done.stdout)

    def test_a_build_of_one_target_that_fails(self):
        done = self.run_script("test", "tsan", "dev", fail="--target tests_threads")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual([line for line in self.calls() if "ctest" in line], [line for line in self.calls() if "ctest --preset dev" in line])
        self.assertTrue(done.stdout.endswith("scripts/test: FAILED [tsan: build]\n"), done.stdout)

    def test_a_test_that_fails(self):
        self.put(self.tree / "says", CTEST)
        done = self.run_script("test", "dev", "asan", fail="ctest --preset dev")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("ctest --preset asan", "".join(self.calls()), "the next tier runs")
        end = done.stdout.split("dev: tests failed; ")[1]
        for line in ("7 - pool_test (Failed)", "9 - trial_log_reader (Timeout)", "pool_test.cc:41: Failure", "Value of: pool.size()",
                     "[  FAILED  ] Pool.GrowsByHalf (1 ms)"):
            self.assertIn(line, end)
        self.assertNotIn("the rest of it", end)
        self.assertTrue(end.endswith("scripts/test: FAILED [dev: tests]\n"), done.stdout)

    def test_each_tier_runs_and_all_failures_are_named(self):
        self.put(self.tree / "says", "".join(f"a.cc:{line}: error: expected ';'\n" for line in range(400)) + CTEST.replace("\t  9", "\t  9 - x\n" * 90))
        self.put(self.tree / "bin/run-clang-tidy", "#!/bin/sh\nexit 1\n")
        done = self.run_script("test", "--all", fail="ctest")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertTrue(done.stdout.endswith("FAILED [optimised: tests] [tsan: tests] [asan: tests] [tidy]\n"), done.stdout[-300:])
        self.assertLess(len(done.stdout.split("Where the time went:")[1].splitlines()), 140, "what a CI service shows of a log")

    def test_shows_only_the_findings_of_clang_tidy(self):
        self.put(self.tree / "bin/run-clang-tidy", "#!/bin/sh\necho clang-tidy-14 --use-color -p=build/tidy -quiet a.cc\n"
                 "printf '\\033[1ma.cc:3:1: \\033[0merror: twice [readability-duplicate-include]\\n'\necho '5 warnings generated.' >&2\nexit 1\n")
        done = self.run_script("test", "tidy")
        self.assertEqual(done.returncode, 1, done.stdout)
        shown, end = done.stdout.split("== tidy\n")[1].split("\nWhere the time went:")
        self.assertEqual(shown, "a.cc:3:1: error: twice [readability-duplicate-include]\n")
        self.assertIn("  a.cc:3:1: error: twice [readability-duplicate-include]\n", end)

    def test_clang_tidy_reads_while_tests_run(self):
        self.put(self.tree / "bin/run-clang-tidy", "#!/bin/sh\nfor i in $(seq 3000); do grep -q '^ctest --preset optimised' calls && break; sleep 0.01; done\n"
                 "grep '^ctest --preset optimised' calls >/dev/null && echo 'a.cc:3:1: error: seen beside the tests'\nexit 1\n")
        done = self.run_script("test", "--all")
        self.assertEqual(done.returncode, 1, done.stdout)
        shown = done.stdout.split("== tidy\n")[1].split("\nWhere the time went:")[0]
        self.assertEqual(shown, "a.cc:3:1: error: seen beside the tests\n")
        self.assertTrue(done.stdout.endswith("FAILED [tidy]\n"), done.stdout[-300:])

    def test_a_word_that_it_does_not_know(self):
        done = self.run_script("test", "--al")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertFalse((self.tree / "calls").exists())


class TiersScript(Script):
    def shown(self, build, *arguments):
        """The tests that ctest runs with these arguments in a build, and whether it runs all of each."""
        tests = subprocess.run([options.ctest, "--test-dir", build, "--show-only=json-v1", *arguments], check=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout  # stderr names the programs that are not built
        found = {}
        for test in json.loads(tests)["tests"]:
            properties = {each["name"]: each["value"] for each in test.get("properties", ())}
            sampled = any(value.startswith("GTEST_TOTAL_SHARDS=") for value in properties.get("ENVIRONMENT", ()))
            found[test["name"]] = not sampled and not properties.get("DISABLED")
        return found

    def test_each_test_runs_whole_in_some_tier_of_all(self):
        if not shutil.which("clang++"):
            self.skipTest("no clang++, which the tier asan needs")
        self.put(self.tree / "bin/run-clang-tidy", "#!/bin/sh\nexit 0\n")
        done = self.run_script("test", "--all")
        self.assertEqual(done.returncode, 0, done.stdout)
        given = {call.split()[2]: call.split()[3:] for call in self.calls() if call.startswith("ctest --preset ")}
        asan = self.tree / "asan"
        subprocess.run([options.cmake, "--preset", "asan", "-B", asan, f"-DCUAUDIT_CUDA_INCLUDE={options.cuda}"], cwd=options.root, check=True,
                       stdout=subprocess.DEVNULL)
        elsewhere = {name for name, whole in self.shown(asan, *given["asan"]).items() if whole}
        every = set(self.shown(options.build))

        def nowhere(arguments):
            return every - elsewhere - set(self.shown(options.build, *arguments))
        self.assertEqual(nowhere(given["optimised"]), set(), "left out of the first tier, and asan does not run all of it")
        # One that asan has no more, one of which it runs a part, and two that asan has.
        planted = [argument.replace("elsewhere", "elsewhere|layering|e2e") for argument in given["optimised"]]
        self.assertEqual(nowhere(planted) & {"format", "e2e_kinds_test", "e2e_plan_test", "verdict_test"}, {"format", "e2e_kinds_test"})


class AuditScript(Script):
    def setUp(self):
        super().setUp()
        built = self.tree / "build/release"
        (built / "lib").symlink_to(options.build / "lib")
        (built / "bin/reducers").mkdir(parents=True)
        (built / "bin/cuaudit").symlink_to(options.build / "bin/cuaudit")
        for reducer in REDUCERS:
            for form in ("defective", "repaired"):
                (built / "bin/reducers" / f"{reducer}_{form}").symlink_to(options.build / "bin/reducers" / f"{reducer}_{form}")
        (self.tree / "suites").symlink_to(options.root / "suites")
        if options.compiler == "GNU":
            return
        # scripts/audit builds with GCC, and the README shows its numbers: how many places call the driver depends on what a compiler inlines.
        shown = built / "bin/reducers/preallocation_defective"
        shown.unlink()
        subprocess.run(["gcc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", *REDUCER_FLAGS, "-isystem", options.cuda, options.root / "suites/reducers/preallocation.c",
                        "-o", shown, "-pthread", "-ldl"], check=True)

    def test_audits_the_reducers(self):
        done = self.run_script("audit")
        self.assertEqual(done.returncode, 0, done.stdout)
        built = self.calls()[1].split()
        self.assertEqual(self.calls()[0], "cmake --preset release")
        self.assertIn("cuaudit_complete", built)
        for reducer in REDUCERS:
            for form in ("defective", "repaired"):
                self.assertIn(f"{reducer}_{form}", built)
                for mode in ("sweep", "cycles"):
                    self.assertIn(f"== cuaudit {mode} {reducer}_{form}\n", done.stdout)
                    for ending in ("txt", "json"):
                        self.assertGreater((self.tree / "audit-report" / f"{reducer}_{form}.{mode}.{ending}").stat().st_size, 0)
        self.assertIn("PASS", done.stdout)
        self.assertNotIn("FAIL", done.stdout)
        # What the README shows of it, where an ellipsis stands for anything.
        shown = re.search(r"## What it prints\n.*?```\n(.*?)```", (options.root / "README.md").read_text(), re.S).group(1).splitlines()
        self.assertGreater(len(shown), 10)
        for line in shown:
            expected = ".*".join(re.escape(part) for part in line.split("…"))
            self.assertRegex(done.stdout, "(?m)^" + expected + "$")

    def test_audits_a_program(self):
        done = self.run_script("audit", str(options.build / "bin/reducers/early_returns_defective"), "2")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cuaudit sweep", done.stdout)
        self.assertGreater((self.tree / "audit-report/early_returns_defective.sweep.json").stat().st_size, 0)

    def test_audits_a_program_of_the_shared_runtime(self):
        if not options.runtime:
            self.skipTest("these CUDA headers make no runtime of cuaudit's own")
        (self.tree / "program.c").write_text(RUNTIME_PROGRAM)
        for version in ("12", "13"):
            with self.subTest(version):
                program = self.tree / f"program_{version}"
                subprocess.run([options.cc, "-g", "program.c", "-o", program, f"-I{options.cuda}", f"-L{options.runtime}",
                                f"-l:libcudart.so.{version}"], cwd=self.tree, check=True)
                needed = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
                self.assertIn(f"(NEEDED)             Shared library: [libcudart.so.{version}]", needed)
                self.assertNotIn("RUNPATH", needed)
                self.assertNotIn("libcuda.so", needed)
                done = self.run_script("audit", str(program))  # no LD_LIBRARY_PATH, no LD_PRELOAD
                self.assertEqual(done.returncode, 1, done.stdout)
                report = json.loads((self.tree / f"audit-report/program_{version}.sweep.json").read_text())
                self.assertRegex(report["driver"]["runtime"], f"^cuaudit's own, {version}")
                self.assertRegex(done.stdout, "upload returned without cuStreamDestroy")

    def test_what_it_builds(self):
        if not (options.build / "build.ninja").exists():
            self.skipTest("another generator than Ninja")
        self.assertIn("cuaudit_complete", (options.root / "scripts/audit").read_text())
        built = subprocess.run(["ninja", "-C", options.build, "-t", "commands", "cuaudit_complete"], check=True, capture_output=True, text=True).stdout
        libraries = ["libcuda.so.1", "libcuaudit_host.so", "libcuaudit_host_basic.so"]
        if options.runtime:
            libraries += ["cudart/libcudart.so.12", "cudart/libcudart.so.13", "cudart/libcudart_static.a"]
        for name in ["bin/cuaudit", *(f"lib/cuaudit/{library}" for library in libraries)]:
            self.assertIn(f" {name} ", built)

    def test_a_build_that_fails(self):
        done = self.run_script("audit", fail="cmake --build")
        self.assertEqual(done.returncode, 8, done.stdout)
        self.assertIn("this is what a compiler says", done.stdout, "the second try shows it")
        self.assertFalse((self.tree / "audit-report").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--compiler", default="GNU", help="CMAKE_C_COMPILER_ID of the build")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cuda", default="/usr/local/cuda/include", help="include directory of the CUDA headers")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--ctest", default="ctest")
    parser.add_argument("--runtime", default="", help="directory of cuaudit's own CUDA runtime; empty: it is not built")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
