#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real shells complete command lines of cuaudit: each is typed into an interactive shell with a TAB behind it.

    completions_test.py --tool build/dev/bin/cuaudit --completions build/dev/package/completions bash|zsh|fish

Exit status: 0 as expected, 1 not, 77 the shell is missing.
"""
import argparse
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SHELL = TOOL = COMPLETIONS = None
SECONDS = 60  # until a shell that says nothing has failed
# The function stands for the program and says what was typed for it.
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             "PS1='READY>'; bind 'set enable-bracketed-paste off'; source {0}/cuaudit; cuaudit() {{ printf 'GOT[%s]\\n' \"$*\"; }}"),
    "zsh": (["zsh", "-f", "-i"],
            "PS1='READY>'; unsetopt zle_bracketed_paste beep; fpath=({0} $fpath); autoload -Uz compinit; compinit -u -D; "
            "cuaudit() {{ print -r -- \"GOT[$*]\" }}"),
    "fish": (["fish", "--no-config", "-i"],
             "function fish_prompt; echo -n 'READY>'; end; set -g fish_autosuggestion_enabled 0; source {0}/cuaudit.fish; "
             "function cuaudit; echo \"GOT[$argv]\"; end"),
}


class Typed:
    """An interactive shell in a terminal of its own."""

    def __init__(self, directory):
        command, setup = START[SHELL]
        environment = {**os.environ, "TERM": "dumb" if SHELL != "fish" else "xterm", "HOME": directory, "XDG_CONFIG_HOME": directory,
                       "XDG_DATA_HOME": directory, "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(command[0], command, environment)
        self.said = ""
        self.type("echo BE''GUN\n", "BEGUN")
        self.type(setup.format(COMPLETIONS) + "; echo SET''UP\n", "SETUP")

    def type(self, keys, until):
        """What the shell says from here up to a match of `until`."""
        begin = len(self.said)
        os.write(self.terminal, keys.encode())
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(until, self.said[begin:])):
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{SHELL} did not answer {keys!r} within {SECONDS} s: {self.said[begin:]!r}")
            try:
                self.said += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"{SHELL} ended: {self.said[begin:]!r}") from None
        return found

    def complete(self, line):
        """The words behind `cuaudit` after a TAB at the end of the line."""
        return self.type(f"cuaudit {line}\t\n", r"GOT\[(.*)\]")[1].rstrip()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Completion(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        (Path(self.directory.name) / "report of mine.json").touch()
        (Path(self.directory.name) / "only-directory").mkdir()
        self.shell = Typed(self.directory.name)
        self.addCleanup(self.shell.close)

    def test_what_a_tab_makes_of_a_line(self):
        for line, completed in (
                ("swe", "sweep"), ("sweep --driver=s", "sweep --driver=sim"), ("env --shell=f", "env --shell=fish"),
                ("sweep --abandon", "sweep --abandoned-is-leak"), ("list verd", "list verdicts"),
                ("explain --rule=double_rel", "explain --rule=double_release"), ("sweep --call=cuDevicePrimaryCtxRet", "sweep --call=cuDevicePrimaryCtxRetain"),
                ("sweep --how=refuse,host_o", "sweep --how=refuse,host_oom"), ("sweep --output=report", "sweep --output=report of mine.json"),
                ("sweep --work-dir=only", "sweep --work-dir=only-directory/"), ("run -- ./only", "run -- ./only-directory/"),
                ("run --host -- mktem", "run --host -- mktemp"), ("run -- ls only", "run -- ls only-directory/"),
                ("explain only", "explain only-directory/"), ("cycles --call", "cycles --call"),  # no option of cycles
        ):
            with self.subTest(line=line):
                # zsh takes the slash of a directory back when the line ends there.
                self.assertEqual(self.shell.complete(line), completed.rstrip("/") if SHELL == "zsh" else completed)


class Tables(unittest.TestCase):
    """Every option of every command is offered there, and nowhere else."""

    def offered(self, line):
        if SHELL == "fish":
            script = f"source {COMPLETIONS}/cuaudit.fish; complete -C 'cuaudit {line}'"
            text = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True).stdout
            return {row.split("\t")[0] for row in text.splitlines()}
        words = ["cuaudit", *line.split(" ")]
        script = (f"source {COMPLETIONS}/cuaudit; COMP_WORDS=(\"$@\"); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _cuaudit; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return set(subprocess.run(["bash", "-c", script, "-", *words], capture_output=True, text=True, check=True).stdout.split())

    def listed(self, table):
        return json.loads(subprocess.run([TOOL, "list", table, "--format=json"], capture_output=True, text=True, check=True).stdout)

    def test_all_that_is_listed_is_offered(self):
        if SHELL == "zsh":
            self.skipTest("zsh cannot be asked without a terminal")
        commands = {row["command"] for row in self.listed("commands")}
        self.assertGreaterEqual(self.offered(""), commands)
        for command in commands:
            expected = {row["option"] for row in self.listed("options") if command in row["commands"].split()}
            got = {word.rstrip("=") for word in self.offered(f"{command} --")}
            self.assertEqual(got, expected | {"--help", "--version", "--config"}, command)
        for row in self.listed("options"):
            if row["form"] == "choice":
                command = row["commands"].split()[0]
                got = self.offered(f"{command} {row['option']} ")
                self.assertEqual(got, set(row["operand"].split(",")), row["option"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--completions", required=True)
    parser.add_argument("shell", choices=START)
    options, rest = parser.parse_known_args()
    SHELL, TOOL, COMPLETIONS = options.shell, options.tool, Path(options.completions).resolve()
    if not shutil.which(SHELL):
        print(f"skipped: {SHELL}: not found; scripts/install_packages --all installs it")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
