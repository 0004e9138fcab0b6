#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names what a file uses and nothing that it includes declares: such a file compiles only because a unity build puts another one before it.

    check_includes.py --root DIR

No compiler is asked, so all files of the tree take seconds. A file sees what it declares itself and what the files of the tree that it
includes, directly or through each other, declare or include.
- Names of the tree: types, functions, constants and macros that a header declares outside of classes.
- Names of namespace std, and functions and types of C: scripts/std_names.txt has a row for each header. A std:: name without a row is
  an error; a C name without a row is not looked at.
"""
import argparse
import functools
import os
import posixpath
import re
import sys
from pathlib import Path

TOPS = ("faults", "allocator", "harness", "reports", "include")
HEADERS = (".h", ".def", ".inc")
SUFFIXES = (*HEADERS, ".cc")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[ \t]*(?:include|error|pragma)[^\n]*', re.S | re.M)
# A name of the tree's style: CamelCase, kConstant, or a macro. Members, variables and namespaces are written otherwise.
OWN = r"(?:[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*|k[A-Z][A-Za-z0-9]*|CUAUDIT_\w+|cuaudit_\w+)"
USED = re.compile(rf"(?<![\w.])(?<!->)(?P<scope>(?:(?!{OWN}\b)\w+::)*)(?P<name>{OWN})\b(?:::\w+)*")
TYPE = re.compile(rf"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*|CUAUDIT_\w+(?:\([^)]*\))?\s+)*({OWN})\b\s*(?P<next>[;:{{]|final\b)?")
ALIAS = re.compile(rf"\busing\s+({OWN})\s*=|\btypedef\b[^;{{}}]*?\b({OWN})\s*;|\}}\s*({OWN})\s*;|^[ \t]*#[ \t]*define[ \t]+({OWN})\b|\b(?:typename|class|concept)(?:\.\.\.)?\s+({OWN})\s*[,=>]|::({OWN})\s*;", re.M)
ENUMERATORS = re.compile(r"\benum\b[^;{}()]*\{([^}]*)\}")
# What stands after a type is a function, a constant or a variable. A word before it that is no type makes it a use.
NAMED = re.compile(rf"(?P<before>[\w\]]|>)(?P<star>[*&]*)\s+(?:\w+::)*(?P<name>{OWN})\s*(?P<next>[(=;{{\[,):])")
BEFORE = re.compile(r"(?:^|\W)(return|else|throw|new|case|delete|co_return|goto|not|and|or|do|in)$")
STD = re.compile(r"(?<![\w:])std::((?:filesystem|chrono|this_thread|ios)::)?(\w+)")
PLAIN = re.compile(r"(?P<before>\b\w+ |[\w>][*&]* )?(?<![\w.])(?<!->)(?<!\w::)(?:(?P<call>[a-z]\w*)\(|(?P<other>\w+_t|errno|[A-Z]+_(?:MAX|BIT))\b)")


def clean(text):
    return NOISE.sub(lambda match: "\n" * match[0].count("\n") + (" " if match[0][0] in "/#" else '""'), text)


def outside_classes(text):
    """The text without what stands in braces other than those of a namespace or of an extern "C"."""
    kept, start, open_braces, depth = [], 0, [], 0  # depth: of braces whose text is left out
    for match in re.finditer(r"[{}]", text):
        if depth == 0:
            kept.append(text[start:match.end()])
        if match[0] == "{":
            open_braces.append(bool(re.search(r'(?:\bnamespace(?:\s+[\w:]+)?|\bextern\s+"")\s*$', text[max(0, match.start() - 120):match.start()])))
            depth += not open_braces[-1]
        elif open_braces:
            depth -= not open_braces.pop()
        start = match.end()
    return "".join([*kept, text[start:]])


def named(text):
    names = set()
    for match in NAMED.finditer(text):
        line = text[max(0, match.start() - 30):match.start() + 1]
        if not (match["before"].isalpha() and not match["star"] and BEFORE.search(line)):
            names.add(match["name"])
    return names


def declared(text, definitions_only=False):
    names = {match[1] for match in TYPE.finditer(text) if not definitions_only or (match["next"] and match["next"] != ";")}
    names |= {name for groups in ALIAS.findall(text) for name in groups if name}
    names |= {name for body in ENUMERATORS.findall(text) for name in re.findall(OWN, body)} if not definitions_only else set()
    return names | named(text)


def read_rows(path):
    rows = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        header, colon, names = line.partition("#")[0].partition(":")
        if not colon and header.strip():
            sys.exit(f"{path}:{number}: expected a header, a colon, and the names that it declares")
        for name in names.split():
            rows.setdefault(name, set()).add(header.strip())
    return rows


class Tree:
    def __init__(self, root):
        paths = {os.path.relpath(os.path.join(folder, name), root) for top in TOPS for folder, _, names in os.walk(root / top) for name in names}
        self.text, self.own, self.system = {}, {}, {}
        for path in sorted(name for name in paths if name.endswith(SUFFIXES)):
            text = (root / path).read_text(errors="replace")
            self.text[path] = clean(text)
            self.own[path], self.system[path] = set(), set()
            for own, foreign in INCLUDE.findall(text):
                name = own or foreign
                places = [name, f"include/{name}", posixpath.normpath(posixpath.join(posixpath.dirname(path), name))]
                target = next((place for place in places if place in paths), None)
                (self.own if target else self.system)[path].add(target or name)
        self.declared = {path: declared(text) for path, text in self.text.items()}
        self.namespaces = {name for text in self.text.values() for names in re.findall(r"\bnamespace\s+([\w:]+)\s*\{", text) for name in names.split("::")}
        self.homes = {}
        for path, text in self.text.items():
            if path.endswith(HEADERS):
                for name in declared(outside_classes(text), definitions_only=True):
                    self.homes.setdefault(name, set()).add(path)

    @functools.cache
    def reached(self, path):
        seen, todo = {path}, [path]
        while todo:
            new = self.own.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return frozenset(seen)


def first_uses(pattern, text, name):
    first = {}
    for match in pattern.finditer(text):
        first.setdefault(name(match), match)
    first.pop(None, None)
    return first


def plain_name(match):
    if match["call"] and match["before"] and not BEFORE.search(match["before"].rstrip()):
        return None  # what a type stands before is declared here
    return match["call"] or match["other"]


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def check_file(tree, rows, path):
    text, reached = tree.text[path], tree.reached(path)
    for match in first_uses(USED, text, lambda match: match["name"]).values():
        name = match["name"]
        if match["scope"] and match["scope"].split("::")[-2] not in tree.namespaces:
            continue  # of another project
        if name in tree.homes and not tree.homes[name] & reached and not any(name in tree.declared.get(one, ()) for one in reached):
            yield f"{path}:{line_of(text, match)}: uses {name} and includes nothing that declares it: {' or '.join(sorted(tree.homes[name]))}"
    system = set().union(*(tree.system.get(one, set()) for one in reached))
    for name, match in first_uses(STD, text, lambda match: f"std::{match[1] or match[2]}").items():
        if name not in rows:
            yield f"{path}:{line_of(text, match)}: {name} has no row in scripts/std_names.txt"
        elif not rows[name] & system:
            yield f"{path}:{line_of(text, match)}: uses {match[0]} and nothing that it includes includes {' or '.join(f'<{one}>' for one in sorted(rows[name]))}"
    for name, match in first_uses(PLAIN, text, plain_name).items():
        if name in rows and not rows[name] & system:
            yield f"{path}:{line_of(text, match)}: uses {name} and nothing that it includes includes {' or '.join(f'<{one}>' for one in sorted(rows[name]))}"


def problems_of(root):
    tree, rows = Tree(root), read_rows(root / "scripts/std_names.txt")
    # A .def or .inc file is read in the middle of another file, which includes what its rows use.
    return tree, [problem for path in tree.text if not path.endswith((".def", ".inc")) for problem in check_file(tree, rows, path)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    tree, problems = problems_of(parser.parse_args().root)
    print("\n".join(problems) if problems else f"{len(tree.text)} files include what they use")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
