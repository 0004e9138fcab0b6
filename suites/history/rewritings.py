# SPDX-License-Identifier: MIT
"""Releases of a program, and the steps that rewrite one into the next: for history.py."""
import os
import re

# A program and the places where it forgets to unwind: each occurrence of the marker can be right (1) or wrong (0) by itself.
PROGRAMS = {
    "early_returns": {"marker": "kUnwinds", "sites": {
        "import_surface": 0, "open_plain": 0, "open_with_priority": 0, "kernel_open": 0, "pinned_alloc": 0}},
    "picture_pool": {"marker": "kUnwinds", "sites": {"drain_stream_ensure": 0, "picture_alloc": 0}},
}
OPTIMISED = [["-O1", "-fno-inline"], ["-O0"], ["-O2"], ["-O3"]]
FUNCTION = r"^static [A-Za-z_][\w \*]*?[ \*]{name}\([^;{{}}]*\) \{{$"


class Release:
    """One program as a release has it: sources, flags, and the present names of its functions."""

    def __init__(self, name, source):
        self.name = name
        self.file = name + ".c"
        self.source = source
        self.parts = {}
        self.compiler = "gcc"
        self.optimise = OPTIMISED[0]
        self.wrong = {}
        self.origin = {}  # present name of a function -> the one it had at first; a missing one has kept its name

    def copy(self):
        other = Release(self.name, self.source)
        other.origin = dict(self.origin)
        other.file, other.parts, other.compiler = self.file, dict(self.parts), self.compiler
        other.optimise, other.wrong = self.optimise, dict(self.wrong)
        return other

    def functions(self):
        """[(file, first line, last line, original name)] of all definitions."""
        found = []
        for file, text in [(self.file, self.source), *self.parts.items()]:
            for match in re.finditer(FUNCTION.format(name=r"(\w+)"), text, re.M):
                end = text.index("\n}\n", match.start()) + 2
                line = text.count("\n", 0, match.start()) + 1
                found.append((file, line, line + text.count("\n", match.start(), end), self.origin.get(match.group(1), match.group(1))))
        return found

    def text_of(self, file, line):
        """A line as it was before any rewriting."""
        text = self.source if file == self.file else self.parts.get(file, "")
        lines = text.splitlines()
        said = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return re.sub(r"\w+", lambda word: self.origin.get(word[0], word[0]), said)

    def place_of(self, defect):
        """(site, acquiring call, function and line that make it). Files and lines decide, for an inlined function may be named after its caller."""
        acquired = defect["acquired"]
        known, site, at = self.functions(), None, None
        for frame in acquired["stack"]:
            file = os.path.basename(frame["file"])
            function = next((name for where, first, last, name in known if where == file and first <= frame["line"] <= last), None)
            if function and at is None:
                at = (function, self.text_of(file, frame["line"]))
            if function in PROGRAMS[self.name]["sites"]:
                site = site or function
        return (site or "nowhere", re.sub(r"_v\d+$", "", acquired["call"]), *(at or ("unknown", "")))


def with_sites(name, source):
    """Each site gets a macro of its own in the place of the marker."""
    program = PROGRAMS[name]
    for site in program["sites"]:
        begin, end = body_of(source, site)
        body = source[begin:end]
        macro = "UNWINDS_" + site.upper()
        assert program["marker"] in body, (name, site)
        source = source[:begin] + body.replace(program["marker"], macro) + source[end:]
    return source.replace("enum { kUnwinds = 0 };", "enum { kUnwinds = 1 };")


def body_of(source, function):
    """Begin and end of a definition; a line '}' ends it."""
    match = re.search(FUNCTION.format(name=re.escape(function)), source, re.M)
    assert match, function
    end = source.index("\n}\n", match.start()) + 3
    return match.start(), end


def functions_of(source):
    return [name for name in re.findall(FUNCTION.format(name=r"(\w+)"), source, re.M) if name not in ("report", "leave", "enter")]


# Rewritings. Each takes a release, a function of it and the number of the step, and says what it did.
def rename_file(release, function, step):
    release.file = f"{release.name}_{step}.c"
    return f"file {release.file}"


def rename_function(release, function, step):
    stem = re.sub(r"_r\d+$", "", function)
    words = stem.split("_")
    new = f"{'_'.join(reversed(words)) if len(words) > 1 else 'do_' + stem}_r{step}"
    release.origin[new] = release.origin.pop(function, function)
    release.source = re.sub(rf"\b{function}\b", new, release.source)
    for part in release.parts:
        release.parts[part] = re.sub(rf"\b{function}\b", new, release.parts[part])
    return f"{function} is {new}"


def move_down(release, function, step):
    begin, end = body_of(release.source, function)
    body = release.source[begin:end]
    prototype = body[:body.index(" {\n")] + ";\n"
    release.source = release.source[:begin] + prototype + release.source[end:] + "\n" + body
    return f"{function} to the end"


def move_to_file(release, function, step):
    begin, end = body_of(release.source, function)
    part = f"part_{release.name}_{step}.h"
    release.parts[part] = release.source[begin:end]
    release.source = release.source[:begin] + f'#include "{part}"\n' + release.source[end:]
    return f"{function} to {part}"


def add_calls(release, function, step):
    begin, end = body_of(release.source, function)
    head = release.source.index("{\n", begin) + 2
    added = "  {\n    CUdevice before;\n    int version;\n    (void)cuCtxGetDevice(&before);\n    (void)cuDriverGetVersion(&version);\n  }\n"
    release.source = release.source[:head] + added + release.source[head:]
    return f"calls at the begin of {function}"


def split(release, function, step):
    """The body becomes a function of its own, which the old one calls."""
    begin, end = body_of(release.source, function)
    body = release.source[begin:end]
    signature = body[:body.index(" {\n")]
    inner = f"{re.sub(r'_s[0-9]+$', '', function)}_s{step}"
    release.origin[inner] = release.origin.get(function, function)
    arguments = signature[signature.index("(") + 1:-1]
    names = [] if arguments in ("void", "") else [re.search(r"(\w+)$", one.strip()).group(1) for one in arguments.split(",")]
    call = f"{inner}({', '.join(names)});\n"
    kept = "  " if signature.startswith("static void ") else "  return "
    outer = f"{signature} {{\n{kept}{call}}}\n"
    release.source = release.source[:begin] + re.sub(rf"\b{function}\(", f"{inner}(", body, count=1) + "\n" + outer + release.source[end:]
    return f"{inner} out of {function}"


def shift_lines(release, function, step):
    begin, _ = body_of(release.source, function)
    release.source = release.source[:begin] + "// More is said here.\n" * (1 + step % 7) + release.source[begin:]
    return f"lines before {function}"


REWRITINGS = [rename_file, rename_function, move_down, move_to_file, add_calls, split, shift_lines]


def next_release(options, release, step, chance, change_defect):
    """The release after this one, and what was done to it."""
    new = release.copy()
    said = []
    rewriting = REWRITINGS[(step + len(release.name)) % len(REWRITINGS)]
    candidates = functions_of(new.source)
    sites = [name for name in candidates if any(site.split("_")[0] in name for site in new.wrong)]
    said.append(rewriting(new, chance.choice(sites or candidates), step))
    if step % 5 == 2:
        new.compiler = "clang" if new.compiler == "gcc" and options.clang else "gcc"
        said.append(new.compiler)
    if step % 3 == 1:
        new.optimise = OPTIMISED[(step // 3 + 1) % len(OPTIMISED)]
        said.append(" ".join(new.optimise))
    if change_defect:
        site = chance.choice(sorted(new.wrong))
        new.wrong[site] = not new.wrong[site]
        said.append(("planted in " if new.wrong[site] else "repaired in ") + site)
    return new, ", ".join(said)
