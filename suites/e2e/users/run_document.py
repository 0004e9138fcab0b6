#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands of a document and compares what they print with what the document says.

    run_document.py --tool build/dev/bin/cuaudit --root . docs/GUIDE.md

Only ```console blocks are run; one bash runs all blocks of a document and begins in an empty directory.

    $ command            a command; a here-document (<<'EOF') and lines that end in a backslash belong to it
    what it prints       the whole output, stdout and stderr together; blank lines are not compared
    …                    alone in a line: any number of lines; within a line: any text
    [exit 1]             last: the exit status, where it is not 0

The directory of --tool comes first in PATH, and CUAUDIT_ROOT is --root. Exit status: 0 the document is true, 1 it is not, 2 usage.
"""
import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ANYTHING = "…"
MARK = "\x1e"  # before the exit status of each command in what bash writes


@dataclass
class Command:
    line: int  # in the document, counted from 1
    text: str
    expected: list = field(default_factory=list)  # (line, text), without blank lines
    status: int = 0
    status_line: int = 0


class Wrong(Exception):
    def __init__(self, line, what):
        super().__init__(what)
        self.line = line


def blocks(text):
    """The lines of each ```console block, as (number, text)."""
    found, fence, info, start = [], "", "", 0
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s{0,3}(`{3,}|~{3,})\s*(.*)$", line)
        if not fence and match:
            fence, info, start, lines = match[1], match[2].strip(), number, []
        elif fence and match and match[1].startswith(fence) and not match[2]:
            if info == "console":
                found.append(lines)
            fence = ""
        elif fence:
            lines.append((number, line))
    if fence:
        raise Wrong(start, f"the block that begins here has no end: expected {fence}")
    return found


def end_of_here_document(text):
    match = re.search(r"<<-?\s*(['\"]?)(\w+)\1", text)
    return match[2] if match else None


def commands_of(lines):
    """The commands of one block."""
    commands, at = [], 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        if line.startswith("$ "):
            text, end = line[2:], end_of_here_document(line)
            while end or text.endswith("\\"):
                if at == len(lines):
                    raise Wrong(number, f"the command does not end in its block: expected {end or 'a line behind the backslash'}")
                text += "\n" + lines[at][1]
                at += 1
                if end and lines[at - 1][1] == end:
                    break
            commands.append(Command(number, text))
        elif not line.strip():
            continue
        elif not commands:
            raise Wrong(number, "the block begins without a command: expected a line that begins with '$ '")
        elif commands[-1].status_line:
            raise Wrong(number, "expected nothing between [exit N] and the next command")
        elif status := re.fullmatch(r"\[exit (\d+)\]", line):
            commands[-1].status, commands[-1].status_line = int(status[1]), number
        else:
            commands[-1].expected.append((number, line.rstrip()))
    return commands


def read_document(path):
    commands = [command for lines in blocks(path.read_text()) for command in commands_of(lines)]
    if not commands:
        raise Wrong(1, "no ```console block with a command: nothing to run")
    return commands


def run(commands, environment, directory, seconds):
    """Per command that came to its end its exit status and the lines that it printed; and what bash printed last, when one did not."""
    script, log = directory / "script", directory / "log"
    with script.open("w") as file:
        for i, command in enumerate(commands):
            (directory / f"command{i}").write_text(command.text + "\n")
            # In this shell, so that cd and export last; from a file, so that no command reads the next one as its input.
            file.write(f". {shlex.quote(str(directory / f'command{i}'))} </dev/null\nprintf '{MARK}%d\\n' $?\n")
    (directory / "work").mkdir()
    with log.open("wb") as output:
        bash = subprocess.Popen(["bash", "--noprofile", "--norc", str(script)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                env=environment, cwd=directory / "work", start_new_session=True)
        try:
            bash.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            try:
                os.killpg(bash.pid, signal.SIGKILL)  # also what a command left running
            except ProcessLookupError:
                pass
            bash.wait()
    *ended, rest = re.split(MARK + r"(\d+)\n", log.read_text(errors="replace"))
    return [(int(status), lines_of(text)) for text, status in zip(ended[::2], ended[1::2])], lines_of(rest)


def lines_of(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def matches(expected, line):
    return re.fullmatch(".*".join(re.escape(part) for part in expected.split(ANYTHING)), line) is not None


def compare(expected, printed):
    """None, or the first expected line that is not there and what stands in its place: ((number, text), line)."""
    parts = [[]]  # of the expected lines, between those that stand for anything
    for number, text in expected:
        if text.strip() == ANYTHING:
            parts.append([])
        else:
            parts[-1].append((number, text))

    def agree(part, at):
        same = 0
        while same < len(part) and at + same < len(printed) and matches(part[same][1], printed[at + same]):
            same += 1
        return same

    at = 0
    for index, part in enumerate(parts):
        first, last = index == 0, index == len(parts) - 1
        if last and not first:
            places = [max(at, len(printed) - len(part))]
        else:
            places = [at] if first else range(at, max(at, len(printed) - len(part)) + 1)
        same, place = max(((agree(part, place), -place) for place in places), default=(0, -at))
        if same < len(part):
            beyond = -place + same
            return part[same], printed[beyond] if beyond < len(printed) else None
        at = -place + len(part)
    return (None, printed[at]) if len(parts) == 1 and at < len(printed) else None


def check(path, command, status, printed):
    """Raises Wrong where the command did something else than the document says."""
    shown = "".join(f"\n    {line}" for line in printed) or " nothing"
    behind = f"\n  command:  {command.text}\n  it printed:{shown}"
    difference = compare(command.expected, printed)
    if difference:
        expected, got = difference
        number, text = expected or (command.line, "no further line")
        got = "the end of the output" if got is None else got
        raise Wrong(number, f"another output\n  expected: {text}\n  got:      {got}{behind}")
    if status != command.status:
        raise Wrong(command.status_line or command.line, f"another exit status\n  expected: {command.status}\n  got:      {status}{behind}")


def main():
    parser = argparse.ArgumentParser(prog="run_document", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path)
    parser.add_argument("--tool", type=Path, required=True, help="the program cuaudit")
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    parser.add_argument("--seconds", type=float, default=120, help="that all commands may take together")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a further environment variable")
    options = parser.parse_args()
    # Nothing that the caller has set for cuaudit, and messages in English.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("CUAUDIT_", "GTEST_", "LC_"))}
    environment.update(variable.split("=", 1) for variable in options.set)
    environment.update(CUAUDIT_ROOT=str(options.root.resolve()), LC_ALL="C.UTF-8",
                       PATH=f"{options.tool.resolve().parent}:{environment.get('PATH', '/usr/bin:/bin')}")
    try:
        commands = read_document(options.document)
        with tempfile.TemporaryDirectory(prefix="cuaudit-document.") as directory:
            ended, rest = run(commands, environment, Path(directory), options.seconds)
        for command, (status, printed) in zip(commands, ended):
            check(options.document, command, status, printed)
        if len(ended) < len(commands):
            command = commands[len(ended)]
            shown = "".join(f"\n    {line}" for line in rest) or " nothing"
            raise Wrong(command.line, f"the command did not end within {options.seconds:g} s, or ended the shell\n"
                                      f"  command:  {command.text}\n  it printed:{shown}")
    except Wrong as wrong:
        print(f"{options.document}:{wrong.line}: {wrong}", file=sys.stderr)
        return 1
    print(f"{options.document}: {len(commands)} commands, all as it says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
