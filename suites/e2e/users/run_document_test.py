#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests run_document.py: a document that is true passes, and one that lies fails with the line at which it does."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(__file__).parent / "run_document.py"


class RunDocument(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = Path(scratch.name)
        (self.here / "bin").mkdir()
        tool = self.here / "bin" / "cuaudit"
        tool.write_text("#!/bin/sh\necho \"tool in $CUAUDIT_ROOT\"\n")
        tool.chmod(0o755)

    def run_text(self, text, *more):
        document = self.here / "document.md"
        document.write_text(text)
        done = subprocess.run([sys.executable, RUNNER, document, "--tool", self.here / "bin" / "cuaudit", "--root", self.here, *more],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout.replace(str(document), "document.md")

    def true(self, block):
        code, output = self.run_text(f"# Title\n\n```console\n{block}\n```\n")
        self.assertEqual((code, output.split(":")[0]), (0, "document.md"), output)

    def lie(self, block, line, *words):
        code, output = self.run_text(f"# Title\n\n```console\n{block}\n```\n", "--seconds", "2")
        self.assertEqual(code, 1, output)
        self.assertTrue(output.startswith(f"document.md:{line}: "), output)
        for word in words:
            self.assertIn(word, output)

    def test_what_is_true_passes(self):
        self.true("$ echo one; echo two\none\ntwo\n$ false\n[exit 1]\n$ true")

    def test_the_tool_is_first_in_path_and_the_checkout_is_named(self):
        self.true(f"$ cuaudit\ntool in {self.here}")

    def test_one_shell_and_an_empty_directory(self):
        self.true("$ ls\n$ mkdir sub && cd sub && export A=5\n$ echo $A ${PWD##*/}\n5 sub")

    def test_blocks_share_the_shell_and_others_are_left_alone(self):
        code, output = self.run_text("```console\n$ a=3\n```\ntext\n```sh\n$ exit 9\n```\n```console\n$ echo $a\n3\n```\n")
        self.assertEqual(code, 0, output)

    def test_here_documents_and_continued_lines(self):
        self.true("$ cat > f <<'EOF'\n$ no command\n[exit 4]\n\nlast\nEOF\n$ wc -l \\\n    < f\n4")

    def test_stderr_counts(self):
        self.true("$ echo bad >&2\nbad")

    def test_commands_get_no_input(self):
        self.true("$ cat\n$ echo after\nafter")

    def test_an_ellipsis_stands_for_any_text_and_any_lines(self):
        self.true("$ seq 9; echo end of 17 things\n1\n…\n4\n5\n…\nend of … things")
        self.true("$ seq 3\n…")
        self.true("$ seq 3\n…\n3\n…")
        self.true("$ true\n…")

    def test_output_without_a_line_feed(self):
        self.true("$ printf no-line-feed\nno-line-feed\n$ true")

    def test_other_text(self):
        self.lie("$ echo one\ntwo", 5, "expected: two", "got:      one", "command:  echo one")

    def test_a_missing_line(self):
        self.lie("$ echo one\none\ntwo", 6, "expected: two", "got:      the end of the output")

    def test_a_line_too_many(self):
        self.lie("$ seq 2\n1", 4, "expected: no further line", "got:      2")

    def test_silence_is_said_too(self):
        self.lie("$ echo one", 4, "got:      one")

    def test_the_order_counts(self):
        self.lie("$ seq 5\n…\n4\n…\n2\n…", 8, "expected: 2")

    def test_lines_behind_an_ellipsis_are_neighbours(self):
        self.lie("$ seq 5\n…\n2\n4\n…", 7, "expected: 4", "got:      3")

    def test_the_last_line_is_the_last(self):
        self.lie("$ seq 5\n…\n4", 6, "expected: 4", "got:      5")

    def test_an_ellipsis_is_no_regular_expression(self):
        self.lie("$ echo abc\na.c", 5, "expected: a.c")

    def test_another_exit_status(self):
        self.lie("$ false", 4, "another exit status", "expected: 0", "got:      1")
        self.lie("$ true\n[exit 3]", 5, "another exit status", "expected: 3")

    def test_a_later_command(self):
        self.lie("$ echo one\none\n$ echo two\nthree", 7, "expected: three", "got:      two")

    def test_a_command_that_hangs_or_ends_the_shell(self):
        self.lie("$ true\n$ echo begun; sleep 60", 5, "did not end", "begun")
        self.lie("$ exit 0\n$ true", 4, "ended the shell")

    def test_what_is_no_document(self):
        self.lie("one\n$ true", 4, "begins without a command")
        self.lie("$ cat <<EOF\none", 4, "does not end")
        self.lie("$ false\n[exit 1]\nmore", 6, "expected nothing")
        code, output = self.run_text("# Title\n")
        self.assertEqual(code, 1)
        self.assertIn("nothing to run", output)
        code, output = self.run_text("# Title\n```console\n$ true\n")
        self.assertEqual(code, 1)
        self.assertIn("document.md:2: the block that begins here has no end", output)


if __name__ == "__main__":
    unittest.main()
