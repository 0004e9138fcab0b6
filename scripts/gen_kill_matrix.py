#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes suites/planted/KILL_MATRIX.md from what the planted and the positive suite say of themselves while they run.

    gen_kill_matrix.py --root DIR --planted PROGRAM --positive PROGRAM [--check]

Instead of a PROGRAM, which is run, the file that --gtest_output=json:FILE wrote in an earlier run of all of it.
Each case records its rule and, row by row, what the harness said (suites/support/cases/case.h). A planted row is found when its rule was said, of its
kind where the row names one, and no other finding but those that the case declares; a positive row is silent when no rule of level finding was said, nor its own. Fails when a planted row is not
found, a positive one is not silent, or a rule or kind is without either. --check also fails when the file is not what would be written.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

Row = collections.namedtuple("Row", "case rule label seen also family")
OLDEST_TOOLKIT = 13000  # older ones leave out cases: what they cannot say cannot be compared
# Rules that tell about kinds of resource one by one, and of which each kind needs both sorts of case.
BY_KIND = ["leak", "orphaned", "growth", "double_release", "use_after_release"]
NOTES_BY_KIND = ["release_refused", "retained_for_retry", "process_lifetime", "abandoned_at_exit"]
REPORTING = ["swallowed", "spurious_failure", "wrong_code", "output_on_failure", "not_recovered", "benign_not_absorbed", "benign_never_fired"]
# A row of faults/driver/misuse.def: a rule that the simulated driver proves.
MISUSE = re.compile(r'^CUAUDIT_MISUSE\(\w+, "(\w+)"', re.M)
# What has a rule of its own instead (its name), or what cannot be planted (None, with the reason).
OTHERWISE = {
    ("leak", "context_stack_entry"): "context_stack_unbalanced",
    ("growth", "context_stack_entry"): "context_stack_unbalanced",
    ("double_release", "primary_context"): "over_released_primary_context",
    ("double_release", "context_stack_entry"): "context_stack_unbalanced",
    ("double_release", "user_object"): "over_released_reference",
    # Their names come back by ways that leave no record (suites/planted/release_test.cc).
    ("double_release", "file_descriptor"): None,
    ("double_release", "thread"): None,
    ("double_release", "host_mapping"): None,
    # A device names it, and what is wrong then is said of what died with it.
    ("use_after_release", "primary_context"): "orphaned",
    ("use_after_release", "context_stack_entry"): "context_stack_unbalanced",
    # The host's own memory, which stays; addresses, of which only mappings are used.
    ("use_after_release", "host_registration"): None,
    ("use_after_release", "address_reservation"): None,
    # No call but their release takes them by a handle that is recorded: the others take a structure that holds it, or none is.
    ("use_after_release", "external_semaphore"): None,
    ("use_after_release", "egl_stream"): None,
    ("use_after_release", "callback"): None,
    ("use_after_release", "peer_access"): None,
}


def fail(messages):
    sys.exit("\n".join(f"gen_kill_matrix: {message}" for message in messages))


def said_by(program):
    """What GoogleTest wrote about a run of one suite, a JSON object."""
    if program.suffix == ".json":
        said = json.loads(program.read_text())
        if said["failures"]:
            fail([f"{program}: expected a run in which no test failed"])
        return said
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "out.json"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}
        done = subprocess.run([str(program), f"--gtest_output=json:{output}"], capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            fail([f"{program} fails:", done.stdout[-2000:]])
        return json.loads(output.read_text())


def cases_of(program):
    """The rows of one suite, and what it says there is."""
    suites = said_by(program)["testsuites"]
    rows, words = [], {}
    for suite in suites:
        for test in suite["testsuite"]:
            words |= {name: test[name] for name in ("rules", "kinds", "toolkit") if name in test}
            if "rule" not in test:
                continue
            for row in test["rows"].split(";"):
                label, seen = row.split("=", 1)
                words_of = lambda ones: {tuple(one.split(" ", 1)) for one in ones}
                said = [one for one in seen.split(",") if one]
                also = words_of(one[1:] for one in said if one.startswith("+"))
                rows.append(Row(f"{suite['name']}.{test['name']}", test["rule"], label, words_of(one for one in said if one[0] != "+"), also,
                                test.get("family", "")))
    # Tests run in the order in which a build links them; the matrix must not depend on that.
    return sorted(rows, key=lambda row: row.case), words


class Matrix:
    def __init__(self, planted, positive, words):
        self.planted, self.positive = planted, positive
        self.rules = {name: (level, title) for name, level, title in (one.split("=", 2) for one in words["rules"].split(";"))}
        self.kinds = {name: (dies, side) for name, dies, side in (one.split("=") for one in words["kinds"].split(";"))}

    def is_finding(self, rule):
        return self.rules[rule][0] == "finding"

    def is_own(self, row, rule, kind):
        return rule == row.rule and (row.label not in self.kinds or kind == row.label)

    def surplus(self, row):
        """What was found besides what the case is about and what it declares; and what it declares and nobody said."""
        return {one for one in row.seen if self.is_finding(one[0]) and not self.is_own(row, *one)} ^ row.also

    def found(self, row):
        return any(self.is_own(row, *one) for one in row.seen) and not self.surplus(row)

    def silent(self, row):
        return not any(self.is_finding(rule) or rule == row.rule for rule, _ in row.seen)

    def planted_of(self, rule, kind=None):
        return sum((rule, kind) in row.seen if kind else row.rule == rule for row in self.planted if self.found(row) or not kind)

    def positive_of(self, rule, kind):
        return sum(row.rule == rule and row.label == kind for row in self.positive if self.silent(row))

    def problems(self):
        problems = []
        for row in self.planted:
            if not any(self.is_own(row, *one) for one in row.seen):
                problems.append(f"planted {row.case} [{row.label}]: {row.rule} was not found, but {sorted(row.seen)}")
            for rule, kind in sorted(self.surplus(row)):
                unsaid = (rule, kind) in row.also
                problems.append(f"planted {row.case} [{row.label}]: {rule} of {kind} was " + ("declared by Also and not found" if unsaid else "found, too"))
        for row in self.positive:
            if not self.silent(row):
                problems.append(f"positive {row.case} [{row.label}]: not silent, but {sorted(row.seen)}")
        for rule in self.rules:
            for name, rows in (("planted", self.planted), ("positive", self.positive)):
                if not any(row.rule == rule for row in rows):
                    problems.append(f"rule {rule} has no {name} case")
        for kind, (dies, side) in self.kinds.items():
            for rule in BY_KIND:
                # Uses of the host's resources are no driver calls; a program's blocks are used by driver calls.
                unused = rule == "use_after_release" and side == "host" and kind != "block"
                if (rule, kind) in OTHERWISE or (rule == "orphaned" and dies != "context") or unused:
                    continue
                if not self.planted_of(rule, kind):
                    problems.append(f"kind {kind} has no planted case of {rule}")
                if not self.positive_of(rule, kind):
                    problems.append(f"kind {kind} has no positive case of {rule}")
            for rule in NOTES_BY_KIND[:2] if side == "driver" else []:
                if not self.planted_of(rule, kind):
                    problems.append(f"kind {kind} has no planted case of {rule}")
        return problems


def escaped(text):
    return text.replace("|", "\\|")


def figures(matrix):
    planted = len(matrix.planted)
    found = sum(map(matrix.found, matrix.planted))
    positive = len(matrix.positive)
    silent = sum(map(matrix.silent, matrix.positive))
    return [f"- planted: {planted} rows, {found} found with the exact rule and, where the row is of one kind, the exact kind, and nothing "
            f"found besides that the case does not declare: recall {100 * found / planted:.1f} %",
            f"- positive: {positive} rows, {silent} silent, {positive - silent} false alarms: {100 * (positive - silent) / positive:.1f} %"]


def rules_table(matrix, rules):
    out = ["| rule | planted | found | positive | silent |", "| --- | --- | --- | --- | --- |"]
    for rule in rules:
        planted = [row for row in matrix.planted if row.rule == rule]
        positive = [row for row in matrix.positive if row.rule == rule]
        out.append(f"| `{rule}` | {len(planted)} | {sum(map(matrix.found, planted))} | {len(positive)} | {sum(map(matrix.silent, positive))} |")
    return out


def kinds_table(matrix, side):
    rules = BY_KIND + NOTES_BY_KIND
    out = ["| kind | " + " | ".join(f"`{rule}`" for rule in rules) + " |", "| --- |" + " --- |" * len(rules)]
    for kind, (dies, of_side) in matrix.kinds.items():
        if of_side != side:
            continue
        cells = []
        for rule in rules:
            planted, positive = matrix.planted_of(rule, kind), matrix.positive_of(rule, kind)
            if (rule, kind) in OTHERWISE and not planted:
                other = OTHERWISE[rule, kind]
                cells.append((f"`{other}`" if other else "none") + (f" / {positive}" if positive else ""))
            elif not planted and not positive:
                cells.append("")
            else:
                cells.append(f"{planted} / {positive}" if rule in BY_KIND else str(planted))
        out.append(f"| `{kind}` | " + " | ".join(cells) + " |")
    return out


def families_table(matrix):
    out = ["| family | right: silent under | wrong: found |", "| --- | --- | --- |"]
    families = dict.fromkeys(row.family for row in matrix.positive + matrix.planted if row.family)
    for family in families:
        right = [row for row in matrix.positive if row.family == family]
        wrong = [row for row in matrix.planted if row.family == family]
        told = ", ".join(dict.fromkeys(f"`{rule}` {kind}".replace(" none", "") for row in wrong for rule, kind in sorted(row.seen)))
        out.append(f"| {family} | {', '.join(dict.fromkeys(row.case for row in right))} | {told} |")
    return out


def cases_list(rows, matrix):
    out = []
    for rule in matrix.rules:
        of_rule = [row for row in rows if row.rule == rule]
        if not of_rule:
            continue
        names = collections.Counter(row.case.split(".", 1)[1] for row in of_rule)
        out.append(f"- `{rule}`: " + ", ".join(name if count == 1 else f"{name} ({count} rows)" for name, count in names.items()))
    return out


def text_of(matrix, misuse):
    rest = [rule for rule in matrix.rules if rule not in misuse + REPORTING]
    out = ["# Kill matrix", "",
           "Written by `scripts/gen_kill_matrix.py` from what the planted and the positive suite say of themselves while they run; the ctest",
           "`kill_matrix` fails when it is stale, when a planted row is not found or a positive one is not silent, and when a rule, a kind, a",
           "misuse, a fault of reporting or a host resource is without either sort of case. A row is a test, or one kind in a test over kinds.", "",
           *figures(matrix), "",
           "## Rules about resources and blocks, and about how a program ended", "", *rules_table(matrix, rest), "",
           "## Rules about what a program says", "", *rules_table(matrix, REPORTING), "",
           "## Rules that the simulated driver proves", "", *rules_table(matrix, misuse), "",
           "## Kinds of the driver", "",
           "Planted rows in which the rule was said of the kind / positive rows of the kind that are silent; for notes the planted ones alone.",
           "Empty: the rule does not apply. A rule's name instead of the planted rows: the kind has that one; `none`: nothing of it can be",
           "planted, since its name comes back by ways that leave no record, or no call takes it by a handle that is recorded.", "", *kinds_table(matrix, "driver"), "",
           "## Host resources", "", *kinds_table(matrix, "host"), "",
           "## Families", "",
           "Programs of a common pattern, once right and once with one thing wrong.", "", *families_table(matrix), "",
           "## Planted cases", "", *cases_list(matrix.planted, matrix), "",
           "## Positive cases", "", *cases_list(matrix.positive, matrix)]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--planted", type=Path, required=True)
    parser.add_argument("--positive", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    planted, words = cases_of(options.planted)
    positive, _ = cases_of(options.positive)
    if int(words["toolkit"]) < OLDEST_TOOLKIT:
        print(f"gen_kill_matrix: skipped: toolkit {words['toolkit']} leaves out cases", file=sys.stderr)
        return 77
    matrix = Matrix(planted, positive, words)
    problems = matrix.problems()
    path = options.root / "suites/planted/KILL_MATRIX.md"
    text = text_of(matrix, MISUSE.findall((options.root / "faults/driver/misuse.def").read_text()))
    if not options.check:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        problems.append(f"{path} is stale: run scripts/gen_kill_matrix.py --root {options.root} --planted ... --positive ...")
    if problems:
        fail(problems)
    return 0


if __name__ == "__main__":
    sys.exit(main())
