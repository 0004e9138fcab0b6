#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/fuzz_inputs: what is committed is as it writes archives, the same files make the same bytes, and a wrong archive gets one line."""
import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
options, rest = parser.parse_known_args()


class FuzzInputs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = Path(scratch.name)
        (self.here / "scripts").mkdir()
        shutil.copy(options.root / "scripts/fuzz_inputs", self.here / "scripts")
        self.archive = self.here / "suites/fuzz/inputs/plan.tar.gz"

    def run_script(self, *arguments, root=None):
        return subprocess.run([sys.executable, (root or self.here) / "scripts/fuzz_inputs", *arguments], capture_output=True, text=True, timeout=60)

    def folder(self, name, files):
        for file, content in files.items():
            path = self.here / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.here / name

    def good(self, *arguments):
        done = self.run_script(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def bad(self, *arguments):
        done = self.run_script(*arguments)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("fuzz_inputs: "), done.stderr)
        return done.stderr

    def test_what_is_committed(self):
        self.assertEqual(self.run_script("check", root=options.root).stdout, "")
        listed = [line.split("\t") for line in self.run_script("list", root=options.root).stdout.splitlines()]
        declared = {line[len("cuaudit_add_fuzz_target("):].split()[0] for line in (options.root / "suites/fuzz/CMakeLists.txt").read_text().splitlines()
                    if line.startswith("cuaudit_add_fuzz_target(")}
        self.assertEqual({target for target, _, _ in listed}, declared)
        self.assertEqual({target for target, name, _ in listed if name.startswith("corpus/")}, declared)

    def test_the_same_files_make_the_same_archive(self):
        files = {"corpus/b": b"two", "corpus/a": b"", "regressions/once-wrong": bytes(range(256))}
        self.good("pack", "plan", self.folder("first", files))
        before = self.archive.read_bytes()
        for name in sorted(files):
            self.folder("second", {name: files[name]})
        self.good("pack", "plan", self.here / "second")
        self.assertEqual(self.archive.read_bytes(), before)
        self.good("unpack", "plan", self.folder("back", {"corpus/of-before": b"goes"}))
        self.assertEqual({str(p.relative_to(self.here / "back")): p.read_bytes() for p in (self.here / "back").rglob("*") if p.is_file()}, files)
        self.assertEqual(self.good("check"), "")

    def test_add_and_replay(self):
        self.good("add", "plan", "too-long", self.folder("find", {"crash-1": b"x"}) / "crash-1")
        self.good("add", "plan", "wrong-again", self.here / "find/crash-1")
        self.assertEqual(self.good("list", "plan"), "plan\tregressions/too-long\t1\nplan\tregressions/wrong-again\t1\n")
        program = self.folder("bin", {"program": b'#!/bin/sh\necho "$@"\nls "$2"\nexit 7\n'}) / "program"
        program.chmod(0o755)
        done = self.run_script("replay", "plan", self.here / "unpacked", program, "-runs=0")
        self.assertEqual((done.returncode, done.stdout), (7, f"-runs=0 {self.here}/unpacked/regressions\ntoo-long\nwrong-again\n"))

    def test_what_is_wrong_is_said_in_one_line(self):
        self.good("pack", "plan", self.folder("first", {"corpus/a": b"one" * 1000}))
        whole = self.archive.read_bytes()
        self.assertIn("expected list, unpack", self.bad())
        self.assertIn("expected one of plan", self.bad("unpack", "plans", self.here))
        self.assertIn("nothing to pack", self.bad("pack", "plan", self.here / "none"))
        self.assertIn("expected a name", self.bad("add", "plan", "../out", self.here / "first/corpus/a"))
        self.assertIn("expected a file", self.bad("add", "plan", "out", self.here / "first/nothing"))
        self.assertEqual(self.archive.read_bytes(), whole)
        for content in (whole[:-9], whole[:40], b"no archive", b""):
            self.archive.write_bytes(content)
            self.assertIn("plan.tar.gz: expected a .tar.gz archive", self.bad("unpack", "plan", self.here / "out"))
        link = tarfile.TarInfo("corpus/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        for member in (tarfile.TarInfo("corpus/../../evil"), tarfile.TarInfo("/tmp/evil"), tarfile.TarInfo("elsewhere/a"), link):
            with tarfile.open(self.archive, "w:gz") as archive:
                archive.addfile(member, io.BytesIO(b""))
            self.assertIn("expected a file corpus/NAME", self.bad("unpack", "plan", self.here / "out"))
        self.assertFalse((self.here / "out").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest])
