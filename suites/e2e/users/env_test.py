#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `cuaudit env` prints does in real shells what it says.

    env_test.py --tool build/dev/bin/cuaudit [--also SHELL,...]
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = None
# A program of the driver, which it opens as many do. Says the devices, one a line.
CLIENT = """\
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, name = ctypes.c_int(), ctypes.create_string_buffer(64)
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
for device in range(count.value):
    assert driver.cuDeviceGetName(name, 64, device) == 0
    print(name.value.decode())
"""
DEVICE = "cuaudit simulated H200\n"
VARIABLES = ["LD_LIBRARY_PATH", "LIBRARY_PATH", "LD_PRELOAD", "CUAUDIT_OPTIONS"]
# Prints the variables as Python sees them, byte for byte.
SHOW = f"import os, sys; sys.stdout.write(repr({{name: os.environb.get(name.encode()) for name in {VARIABLES}}}))"
POSIX_SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh", "ksh", "mksh", "busybox") if shutil.which(shell)]
FISH = shutil.which("fish")


def environment(**changes):
    """The caller's environment without what these tests are about."""
    kept = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    return {**kept, **changes}


def run(command, env=None, **options):
    return subprocess.run(command, env=environment() if env is None else env, capture_output=True, timeout=60, **options)


def in_shell(shell, script, *words, env=None):
    """The script with its words as $1... (fish: $argv)."""
    start = {"busybox": ["busybox", "sh", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}.get(shell, [shell, "-c"])
    return run(start + [script] + ([] if shell == "fish" else ["-"]) + list(words), env)


def variables_after(shell, tool, *options, env=None, then="", times=1):
    if shell == "fish":
        lines = '$argv[3] env $argv[4..] --shell=fish | source\n' * times + then + '\n$argv[1] -c $argv[2]'
        seen = in_shell(shell, lines, sys.executable, SHOW, tool, *options, env=env)
    else:
        lines = 'python=$1 show=$2 tool=$3; shift 3\n' + 'eval "$("$tool" env "$@")"\n' * times + then + '\n"$python" -c "$show"'
        seen = in_shell(shell, lines, sys.executable, SHOW, tool, *options, env=env)
    assert seen.returncode == 0, seen
    return eval(seen.stdout)  # of SHOW


class Shells(unittest.TestCase):
    def each_shell(self):
        for shell in POSIX_SHELLS + (["fish"] if FISH else []):
            with self.subTest(shell=shell):
                yield shell

    def test_a_program_meets_the_simulated_driver(self):
        for shell in self.each_shell():
            start = '$argv[1] env --driver=sim --shell=fish | source; $argv[2] -c $argv[3]' if shell == "fish" else \
                'eval "$("$1" env --driver=sim)" && "$2" -c "$3"'
            seen = in_shell(shell, start, TOOL, sys.executable, CLIENT)
            self.assertEqual((seen.returncode, seen.stdout.decode(), seen.stderr), (0, DEVICE, b""))

    def test_the_world_is_as_asked(self):
        for shell in self.each_shell():
            got = variables_after(shell, TOOL, "--driver=sim", "--devices=3", "--schedule=random:7")
            self.assertEqual(got["CUAUDIT_OPTIONS"], b"driver=sim;schedule=random:7;devices=3")
        seen = run([TOOL, "env", "--driver=sim", "--devices=3", "--profile=small", "--", sys.executable, "-c", CLIENT])
        self.assertEqual(seen.stdout.decode(), "cuaudit simulated GTX 1650\n" * 3)

    def test_what_was_set_stays_behind_ours_byte_for_byte(self):
        hostile = b"/it's/$HOME/`id`/\"q\"/\\/\xff\n/two words:;/last:"
        ours = os.fsencode(Path(TOOL).resolve().parent.parent / "lib" / "cuaudit")
        for shell in self.each_shell():
            for times in 1, 2:
                got = variables_after(shell, TOOL, "--driver=sim", env={**environment(), "LD_LIBRARY_PATH": os.fsdecode(hostile)}, times=times)
                first, behind = got["LD_LIBRARY_PATH"][:len(ours)], got["LD_LIBRARY_PATH"][-len(hostile) - 1:]
                self.assertEqual((first, behind), (ours, b":" + hostile))
                self.assertEqual(got["LD_LIBRARY_PATH"].count(ours + b":"), 1)
                self.assertIsNone(got["LD_PRELOAD"])

    def test_off_takes_back_what_was_set_and_nothing_else(self):
        before = {**environment(), "LD_LIBRARY_PATH": "/a b:/c;", "LD_PRELOAD": "libm.so.6 libdl.so.2"}
        for shell in self.each_shell():
            off = '$argv[3] env --off --shell=fish | source' if shell == "fish" else 'eval "$("$tool" env --off)"'
            got = variables_after(shell, TOOL, "--driver=sim", "--preload", "--devices=2", env=before, then=off)
            self.assertEqual(got, {"LD_LIBRARY_PATH": b"/a b:/c;", "LIBRARY_PATH": None, "LD_PRELOAD": b"libm.so.6 libdl.so.2", "CUAUDIT_OPTIONS": None})

    def test_a_place_with_a_hostile_name(self):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory) / "it's \"$HOME\" `id` \\ $(id)\n*\u00fc'"
            (place / "bin").mkdir(parents=True)
            shutil.copy(TOOL, place / "bin/cuaudit")
            (place / "lib").mkdir()
            (place / "lib/cuaudit").symlink_to(Path(TOOL).resolve().parent.parent / "lib/cuaudit")
            for shell in self.each_shell():
                start = '$argv[1] env --driver=sim --shell=fish | source; $argv[2] -c $argv[3]' if shell == "fish" else \
                    'eval "$("$1" env --driver=sim)" && "$2" -c "$3"'
                seen = in_shell(shell, start, str(place / "bin/cuaudit"), sys.executable, CLIENT)
                self.assertEqual((seen.returncode, seen.stdout.decode(), seen.stderr), (0, DEVICE, b""))
            # LD_PRELOAD has no way to write a space.
            seen = run([place / "bin/cuaudit", "env", "--driver=sim", "--preload"])
            self.assertEqual((seen.returncode, seen.stdout), (3, b""))
            self.assertIn(b"the loader takes no library from a directory with a space", seen.stderr)
            colon = Path(directory) / "a:b"
            place.rename(colon)
            seen = run([colon / "bin/cuaudit", "env", "--driver=sim"])
            self.assertEqual((seen.returncode, seen.stdout, seen.stderr.count(b"\n")), (3, b"", 1))


class Command(unittest.TestCase):
    def start(self, *words, options=(), **more):
        return run([TOOL, "env", "--driver=sim", *options, "--", *words], **more)

    def test_runs_the_command_with_its_words(self):
        seen = self.start("sh", "-c", 'printf "%s|" "$@"', "-", "a b", "", "--driver=real", "--", "it's\n")
        self.assertEqual((seen.stdout, seen.stderr), (b"a b||--driver=real|--|it's\n|", b""))
        self.assertEqual(self.start(sys.executable, "-c", CLIENT).stdout.decode(), DEVICE)

    def test_ends_as_the_command_ends(self):
        self.assertEqual(self.start("sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(self.start("sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
        # Python starts with SIGPIPE ignored; a command of cuaudit has the default handler.
        self.assertEqual(self.start("sh", "-c", "kill -PIPE $$").returncode, -signal.SIGPIPE)

    def test_a_command_that_cannot_run_is_one_line(self):
        with tempfile.TemporaryDirectory() as directory:
            for word, why in ("cuaudit-no-such-program", b"not found"), (directory, b"is a directory"), ("/etc/passwd", b"not executable"):
                seen = self.start(word)
                self.assertEqual((seen.returncode, seen.stdout, seen.stderr.count(b"\n")), (2, b"", 1))
                self.assertIn(why, seen.stderr)

    def test_children_inherit_it(self):
        seen = self.start("sh", "-c", f'"$0" -c "$1"; exit 0', sys.executable, CLIENT)
        self.assertEqual(seen.stdout.decode(), DEVICE)

    def test_preload_is_for_the_driver_and_both_runtimes(self):
        loaded = "import sys; sys.stdout.write(open('/proc/self/maps').read())"
        self.assertNotIn(b"libcuda.so", self.start(sys.executable, "-c", loaded).stdout)
        maps = self.start(sys.executable, "-c", loaded, options=["--preload"]).stdout
        for library in b"/libcuda.so.1", b"/libcudart.so.12", b"/libcudart.so.13":
            self.assertIn(library, maps)

    def test_preload_comes_before_dt_rpath(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "driver.c").write_text("int cuInit(unsigned flags) { return 42 + (int)flags; }\n")
            (Path(directory) / "p.c").write_text("int cuInit(unsigned);\nint main(void) { return cuInit(0); }\n")
            library, program = f"{directory}/libcuda.so.1", f"{directory}/p"
            for command in (["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", f"{directory}/driver.c", "-o", library],
                            ["cc", f"{directory}/p.c", "-o", program, library, f"-Wl,--disable-new-dtags,-rpath,{directory}"]):
                built = run(command)
                self.assertEqual(built.returncode, 0, built.stderr)
            self.assertEqual(self.start(program).returncode, 42)  # the other driver: its path is searched first
            self.assertEqual(self.start(program, options=["--preload"]).returncode, 0)

    def test_compilers_find_the_libraries(self):
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "p.c"
            source.write_text("int cuInit(unsigned);\nint cudaFree(void*);\nint main(void) { return cuInit(0) + cudaFree(0); }\n")
            program = str(Path(directory) / "p")
            built = self.start("cc", str(source), "-o", program, "-lcuda", "-lcudart")
            self.assertEqual((built.returncode, built.stderr), (0, b""))
            self.assertEqual(self.start(program).returncode, 0)


class Refused(unittest.TestCase):
    def refused(self, status, what, *options, **changes):
        seen = run([TOOL, "env", *options], environment(**changes))
        self.assertEqual((seen.returncode, seen.stdout, seen.stderr.count(b"\n")), (status, b"", 1), seen)  # `eval` of nothing
        self.assertIn(what, seen.stderr)

    def test_wrong_options_are_one_line(self):
        self.refused(2, b"--devices: '9': expected a number of devices from 1 to 8", "--driver=sim", "--devices=9")
        self.refused(2, b"--kernels: /none: not found", "--driver=sim", "--kernels=/none")
        self.refused(2, b"--shell", "--driver=sim", "--shell=csh")
        self.refused(2, b"expected --driver=sim, and no --off", "--off", "--devices=2")
        self.refused(2, b"stand behind --", "--driver=sim", "true")

    def test_a_program_under_audit_keeps_its_orders(self):
        self.refused(2, b"an audit is under way here", "--driver=sim", CUAUDIT_OPTIONS="journal=/j;driver=sim")
        self.refused(2, b"an audit is under way here", "--off", CUAUDIT_OPTIONS="driver=sim;journal=/j")
        seen = run([TOOL, "run", "--driver=sim", "--", TOOL, "env", "--driver=sim"])
        self.assertIn(b"an audit is under way here", seen.stderr)

    def test_without_a_gpu_auto_says_which_driver_it_takes(self):
        if any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")):
            self.skipTest("there is a GPU")
        seen = run([TOOL, "env"])
        self.assertEqual((seen.returncode, seen.stderr.count(b"\n")), (0, 1))
        self.assertIn(b"driver: simulated: ", seen.stderr)
        self.assertEqual(seen.stdout, run([TOOL, "env", "--driver=sim"]).stdout)
        self.refused(3, b"--driver=real: no", "--driver=real")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = str(Path(options.tool).resolve())
    print(f"shells: {', '.join(POSIX_SHELLS + (['fish'] if FISH else []))}", file=sys.stderr)
    unittest.main(argv=[sys.argv[0], *rest])
