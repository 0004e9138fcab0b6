#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the picture of the house: which folder includes which, that no files include each other in a circle, that every source is built, how long
files are, that the table of files in a README has the files that are there, and that the tests are there that docs/ALLOCATOR.md names.

    check_layering.py --root DIR [--compile-commands FILE]
    check_layering.py --root DIR --rows                      print the rows that the tree would need, without judgement

scripts/layers.txt has a row for each folder with the folders and files that it includes. Each entry must be used by some file, every
include of another folder must have its entry, a row sees only rows above it, and no folders include each other in a circle. Neither do files, where
a header and the source file of the same name are one.
"""
import argparse
import fnmatch
import functools
import json
import os
import posixpath
import re
import sys
from pathlib import Path

TOPS = ("faults", "allocator", "harness", "reports", "include", "suites")
SUFFIXES = (".h", ".cc", ".c", ".def")
# Headers of other projects: the pattern, and the folders (with what lies below them) or files that may include them. Each must.
THIRD_PARTY = {
    r"^CLI/": ["harness/options", "suites"],
    r"^fmt/": ["harness/cli", "harness/kit", "harness/project", "reports"],
    r"^archive(_entry)?\.h$": ["harness/compare"],
    r"^nlohmann/": ["harness/cli", "harness/compare", "harness/project", "harness/shards", "harness/sweep", "reports", "suites"],
    r"^pugixml": ["reports", "suites"],
    r"^toml\+\+/": ["harness/process"],
    r"^(elfutils/|dwarf\.h|libelf)": ["harness/symbols", "suites/unit/symbols"],
    r"^(gtest/|gmock/)": ["include/cuaudit/gtest.h", "include/cuaudit/neutrality_listener.h", "suites"],
    r"^benchmark/": ["suites/bench"],
    r"^cu(da|daGL|daEGL|daProfiler)?.*\.h$": ["allocator", "faults/cudart", "faults/driver", "faults/interpose", "faults/plan", "faults/sim/device", "faults/sim/image",
                                              "faults/sim/state", "harness/cli", "harness/cycle", "harness/lifecycle", "harness/verdict", "suites"],
}
GENERATED = re.compile(r"^(driver|cudart)_\w+\.inc$")
LIMIT = 400
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)
TEST = re.compile(r"\bTEST(?:_[FP])?\((\w+),\s*(\w+)\)")


# Answers are kept: a test checks many trees that are the same but for a few files.
@functools.cache
def found(pattern, text):
    return pattern.findall(text)


@functools.cache
def resolved(path):
    return os.path.realpath(path)


def read_rows(path):
    rows = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        folder, colon, seen = line.partition("#")[0].partition(":")
        if not colon and not folder.strip():
            continue
        if not colon or folder.strip() in rows:
            sys.exit(f"{path}:{number}: expected a folder of its own, a colon, and what it includes")
        rows[folder.strip()] = seen.split()
    return rows


def inside(name, place):
    return name == place or name.startswith(place + "/")


def compiled(commands):
    """The files that a build compiles, those included: a unity build compiles lists of them."""
    files = set()
    for row in json.loads(commands.read_text()):
        path = resolved(os.path.join(row["directory"], row["file"]))
        files.add(path)
        if os.path.basename(os.path.dirname(path)) == "Unity" and os.path.isfile(path):
            files.update(resolved(own) for own, _ in found(INCLUDE, Path(path).read_text()))
    return files


def target_of(files, folder, own, foreign):
    """The file of the tree that an include names; None: no file of the tree."""
    name = own or foreign
    places = [name, f"include/{name}"] + ([posixpath.normpath(f"{folder}/{name}")] if own else [])
    return next((place for place in places if place in files), None)


def folder_of(name):
    return name.rpartition("/")[0]


def stem_of(name):
    return name.rpartition(".")[0]


class Tree:
    """The tests of the tree, and what its files include: edges[folder] is a set of (file, included file of another folder), pairs[stem] the stems of
    all that a header and its source file include."""

    def __init__(self, root):
        files = {os.path.relpath(os.path.join(folder, name), root) for top in TOPS for folder, _, names in os.walk(root / top) for name in names}
        self.sources = sorted(name for name in files if name.endswith(SUFFIXES))
        self.edges = {}
        self.pairs = {}
        self.foreign = []
        self.tests = set()
        self.problems = []
        for name in self.sources:
            folder = folder_of(name)
            edges = self.edges.setdefault(folder, set())
            text = (root / name).read_text(errors="replace")
            for own, foreign in found(INCLUDE, text):
                target = target_of(files, folder, own, foreign)
                if target is None and own and "/" in own:
                    self.problems.append(f"{name}: includes {own}, which is not there")
                elif target is None:
                    self.foreign.append((name, own or foreign))
                else:
                    self.pairs.setdefault(stem_of(name), set()).add(stem_of(target))
                    if folder_of(target) != folder:
                        edges.add((name, target))
            if name.startswith("suites/"):
                self.tests.update(".".join(names) for names in found(TEST, text))
            lines = text.count("\n")
            if lines > LIMIT and not name.endswith(".def"):
                self.problems.append(f"{name}: {lines} lines, at most {LIMIT}")

    def seen_by(self, folder):
        return {folder_of(target) for _, target in self.edges.get(folder, ())}

    def included_by(self, stem):
        return self.pairs.get(stem, set()) - {stem}


def check_rows(tree, rows):
    problems = [f"{folder}: has no row" for folder in tree.edges if folder not in rows]
    problems += [f"{folder}: has a row and no source file" for folder in rows if folder not in tree.edges]
    above = set()
    for folder, entries in rows.items():
        problems += [f"{folder}: sees {entry}, whose row is not above" for entry in entries
                     if entry not in above and folder_of(entry) not in above]
        above.add(folder)
    for folder, edges in tree.edges.items():
        entries = rows.get(folder, [])
        used = set()
        for name, target in sorted(edges):
            covering = [entry for entry in entries if entry in (target, folder_of(target))]
            used.update(covering)
            if folder in rows and not covering:
                problems.append(f"{name}: includes {target}, which {folder} may not see")
            if len(covering) > 1:
                problems.append(f"{folder}: allowed {target} twice, by {' and by '.join(covering)}")
        problems += [f"{folder}: may see {entry}, and no file does" for entry in entries if entry not in used]
    return problems


def circles(starts, seen_by):
    """Each start that reaches itself, with the shortest way round, once for each circle."""
    problems = []
    told = set()
    seen = functools.cache(lambda place: sorted(seen_by(place)))
    for start in sorted(starts):
        ways = [[start]]
        reached = set()
        for way in ways:
            for after in seen(way[-1]):
                if after == start and start not in told:
                    told.update(way)
                    problems.append(f"circle: {' -> '.join([*way, start])}")
                if after not in reached:
                    reached.add(after)
                    ways.append([*way, after])
    return problems


@functools.cache
def third_party(header):
    return [] if GENERATED.match(header) else [(pattern, places) for pattern, places in THIRD_PARTY.items() if re.match(pattern, header)]


def check_foreign(tree):
    problems = []
    used = set()
    for name, header in tree.foreign:
        for pattern, places in third_party(header):
            covering = [place for place in places if inside(name, place)]
            used.update((pattern, place) for place in covering)
            if not covering:
                problems.append(f"{name}: includes <{header}>, which {folder_of(name)} may not see")
    return problems + [f"{place}: may see <{pattern}>, and no file does"
                       for pattern, places in THIRD_PARTY.items() for place in places if (pattern, place) not in used]


def named(text):
    """The names in backquotes, `a.{h,cc}` as two."""
    for name in re.findall(r"`([^`\n]+)`", text):
        stem, brace, ends = name.partition("{")
        yield from ([stem + end for end in ends.rstrip("}").split(",")] if brace else [name])


def check_readmes(root):
    """Every README with a table of files: each row names files of the tree, and the README names each source below the folder.

    It names a file in full, without its ending, or with a `*`; a header stands for its source file and a script for its test. The name of a
    folder stands for its files, unless the README has a section about that folder.
    """
    problems = []
    for readme in sorted(path for top in TOPS for path in (root / top).rglob("README.md")):
        text = readme.read_text()
        if not re.search(r"^\| file", text, re.M):
            continue
        rows = [line for line in text.splitlines() if line.startswith("|")]
        place = readme.relative_to(root)
        for name in (name for row in rows for name in named(row.split("|")[1]) if name.endswith((*SUFFIXES, ".py"))):
            if not any(True for place_of in (readme.parent, root) for _ in place_of.glob(name)) and not any(readme.parent.rglob(posixpath.basename(name))):
                problems.append(f"{place}: a row names `{name}`, which is not there")
        stems = {posixpath.basename(name.rstrip("/")).partition(".")[0] for name in named(text) if name.strip("*/.")}
        patterns = [stem for stem in stems if re.search(r"[*?[]", stem)]
        folder_stems = stems - set(re.findall(r"^## (\w+)", text, re.M))
        for path in sorted(readme.parent.rglob("*")):
            nearest = next(folder for folder in path.parents if (folder / "README.md").is_file())
            folders = path.relative_to(readme.parent).parts[:-1]
            stem = path.name.partition(".")[0]
            if nearest == readme.parent and path.suffix in (*SUFFIXES, ".py") and stems.isdisjoint((stem, stem.removesuffix("_test"))) and (
                    folder_stems.isdisjoint(folders)) and not any(
                    fnmatch.fnmatch(one, pattern) for pattern in patterns for one in (stem, stem.removesuffix("_test"), *folders)):
                problems.append(f"{path.relative_to(root)}: {place} does not name it")
    return problems


def check_named_tests(root, tests):
    """docs/ALLOCATOR.md proves its arguments by tests: each that it names, `Suite.Name` with `*` for what is left open, is there."""
    page = root / "docs/ALLOCATOR.md"
    named_tests = re.findall(r"`(?:All/)?([A-Z]\w*\.(?:[A-Z]\w*\*?|\*))(?:/[\w*]+)?`", page.read_text())
    return [f"{page.relative_to(root)}: names the test `{name}`, which is not there"
            for name in sorted(set(named_tests)) if name not in tests and ("*" not in name or not fnmatch.filter(tests, name))]


def check(root, commands):
    tree = Tree(root)
    problems = (tree.problems + check_rows(tree, read_rows(root / "scripts/layers.txt")) + circles(tree.edges, tree.seen_by)
                + circles(tree.pairs, tree.included_by) + check_foreign(tree) + check_readmes(root) + check_named_tests(root, tree.tests))
    if commands:
        built = compiled(commands)
        problems += [f"{name}: in no target, so never compiled"
                     for name in tree.sources if name.endswith((".cc", ".c")) and resolved(os.path.join(root, name)) not in built]
    return problems


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--compile-commands", type=Path)
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args(arguments)
    if options.rows:
        tree = Tree(options.root)
        print("\n".join(f"{folder}: {' '.join(sorted(tree.seen_by(folder)))}".rstrip() for folder in sorted(tree.edges)))
        return
    problems = check(options.root, options.compile_commands)
    print("\n".join(problems) if problems else "layering holds")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
