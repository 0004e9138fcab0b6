# SPDX-License-Identifier: MIT
"""Chooses one-line mutants by chance, for `scripts/mutants --random N --seed S`: equal seeds and equal trees give equal mutants.

A mutant changes one line of code in one way: a comparison, a logical or arithmetic operator, a constant, a negation, or a statement that
is dropped. Comments, declarations, includes, messages and assertions are left alone.
"""
import random
import re

# What stands for what, tried in this order at a place chosen by chance.
SWAPS = [
    (r"(?<![<>=!-])<=(?!=|>)", "<"), (r"(?<![<>=!-])>=(?!=)", ">"), (r" < (?!<)", " <= "), (r" > (?!>)", " >= "),
    (r"(?<![=!<>])==(?!=)", "!="), (r"!=(?!=)", "=="), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+ ", " - "), (r"\+\+", "--"),
    (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"), (r"\breturn \{\};", None),
    (r"\bif \((?!!)(?=[\w])", "if (!"), (r"!(?=[\w(])(?!=)", ""), (r"\b0\b", "1"), (r"\bbreak;", "continue;"),
]
DROPPABLE = re.compile(r"^\s+(?!return\b|using\b|const\b|auto\b|static\b|else\b|case\b|delete\b|friend\b|struct\b|class\b|throw\b|namespace\b)"
                       r"[\w\[\]().>*+-]+[^{}]*\)?;\s*$")
SKIPPED = re.compile(r"^\s*(//|#|/\*|\*|\}|static_assert|template|using |namespace |case |EXPECT|ASSERT|public:|private:|protected:)|CUAUDIT_|constexpr|= default|= delete"
                     r"|noexcept(?:;|\))|operator|^\w[^;{]*\{?$")


def code_of(line):
    """The line with its strings and its comment blanked, so that nothing in them is changed."""
    blank = re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + " " * (len(m.group(0)) - 2) + '"', line)
    blank = re.sub(r"'(?:[^'\\]|\\.)'", lambda m: "' '".ljust(len(m.group(0))), blank)
    at = blank.find("//")
    return blank if at < 0 else blank[:at] + " " * (len(blank) - at)


def ways_of(line):
    """Each way in which the line can be made wrong."""
    if SKIPPED.search(line) or not line.strip():
        return []
    code = code_of(line)
    ways = []
    for pattern, new in SWAPS:
        for found in re.finditer(pattern, code):
            if new is not None and not (new == "1" and "[" in code[max(0, found.start() - 1):found.start()]):
                ways.append(line[:found.start()] + new + line[found.end():])
    if DROPPABLE.match(code) and "(" in code and not re.match(r"^\s+[\w:<>,*& ]+ \w+(\(|\{|;| =)", code):
        ways.append("")
    return ways


def choose(root, rooms, seed):
    """Mutants as (file, line number from 0, old line, new line), spread over the rooms by their size; one for each line at most."""
    places = []
    for room in sorted(rooms):
        for path in sorted((root / room).glob("*.cc")):
            for number, line in enumerate(path.read_text().split("\n")):
                places += [(path.relative_to(root).as_posix(), number, line, new) for new in ways_of(line)]
    chance = random.Random(seed)
    chance.shuffle(places)
    chosen, lines = [], set()
    for place in places:
        if place[:2] in lines:
            continue
        lines.add(place[:2])
        chosen.append(place)
    return chosen
