#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scripts of the house: the check of includes names each file that lacks one, and nothing else; mutants chosen by chance."""
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import random_mutants  # noqa: E402  (its folder is known only here)

spec = importlib.util.spec_from_file_location("check_includes", ROOT / "scripts/check_includes.py")
check_includes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_includes)
HEADER = """#pragma once
#include <string>
namespace cuaudit {
enum class Colour { Red, Green };
struct Shown { int value = 0; int Twice() const { return 2 * value; } };
struct Declared;
constexpr int kMost = 7;
std::string NameOf(Colour colour);
#define CUAUDIT_SHOW(x) (x)
}  // namespace cuaudit
"""


class Includes(unittest.TestCase):
    def problems(self, source, header=HEADER):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "scripts").mkdir()
            (root / "scripts/std_names.txt").write_text((ROOT / "scripts/std_names.txt").read_text())
            for path, text in {"reports/shown.h": header, "reports/outer.h": '#pragma once\n#include "reports/shown.h"\n', "harness/use.cc": source}.items():
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text)
            return check_includes.problems_of(root)[1]

    def named(self, source, *expected, **settings):
        lines = self.problems(source, **settings)
        self.assertEqual(len(lines), len(expected), lines)
        for line, text in zip(lines, expected):
            self.assertIn(text, line)

    def test_each_sort_of_name_of_the_tree(self):
        for use, name in {"Colour c = Colour::Red;": "Colour", "int i = kMost;": "kMost", "auto s = NameOf({});": "NameOf", "int t = Shown{}.Twice();": "Shown",
                          "int m = CUAUDIT_SHOW(1);": "CUAUDIT_SHOW", "auto q = cuaudit::Shown{};": "Shown"}.items():
            self.named(use + "\n", f"harness/use.cc:1: uses {name} and includes nothing that declares it: reports/shown.h")
            self.named('#include "reports/shown.h"\n' + use + "\n")
            self.named('#include "reports/outer.h"\n' + use + "\n")

    def test_standard_names(self):
        for use, header in {"std::vector<int> v;": "<vector>", "int m = std::max(1, 2);": "<algorithm>", "std::filesystem::path p;": "<filesystem>",
                            "int l = strlen(0);": "<string.h>", "int r = errno;": "<errno.h>", "uint64_t n = 0;": "<stdint.h>"}.items():
            self.named(use + "\n", header)
            self.named(f"#include {header}\n{use}\n")
        self.named('#include "reports/shown.h"\nstd::string s;\n')  # what an included file includes is seen
        self.named("std::no_such_name x;\n", "std::no_such_name has no row in scripts/std_names.txt")
        self.named("int x;\n", "reports/shown.h:7: uses std::string and nothing that it includes includes <string>", header=HEADER.replace("#include <string>\n", ""))

    def test_what_is_no_use(self):
        for text in ("// Colour, std::vector", '"Colour std::vector"', 'R"(Colour std::vector)"', "'\\''", "int x = a.NameOf(1) + b->NameOf(2) + Other::NameOf(3);", "testing::Shown s;",
                     "struct Shown {};\nShown s;", "int NameOf(int);\nint x = NameOf(1);", "class Declared;\nDeclared* d;", "enum class Mine { Shown };\nauto m = Shown;",
                     "struct S { int strlen(int); };"):
            self.named(text + "\n")

    def test_each_first_use_is_named_once(self):
        self.named("\nColour a;\nColour b;\nstd::set<int> c;\nstd::set<int> d;\n", "use.cc:2: uses Colour", "use.cc:4: uses std::set")


class RandomMutants(unittest.TestCase):
    """The same for a seed, never in words or declarations, and each a real change of one line."""

    def test_each_way_to_change_a_line(self):
        for line, expected in [
            ("  if (a < b && c) return true;", {"  if (a <= b && c) return true;", "  if (a < b || c) return true;", "  if (a < b && c) return false;", "  if (!a < b && c) return true;", ""}),
            ("  Say(\"a < b && c\");  // i + 1", {""}),
            ("  drop.Me(1);", {""}),
            ("// a < b", set()),
            ("  static_assert(a < b);", set()),
            ("  EXPECT_EQ(a, 0);", set()),
        ]:
            found = set(random_mutants.ways_of(line))
            assert found == expected, (line, found)

    def test_the_same_for_a_seed(self):
        rooms = ["harness/verdict", "reports"]
        first = random_mutants.choose(ROOT, rooms, 1)
        assert first == random_mutants.choose(ROOT, rooms, 1)
        assert first != random_mutants.choose(ROOT, rooms, 2)
        assert len(first) > 200 and len({(file, number) for file, number, _, _ in first}) == len(first)
        for file, number, old, new in first:
            assert (ROOT / file).read_text().split("\n")[number] == old != new, (file, number)


if __name__ == "__main__":
    unittest.main()
