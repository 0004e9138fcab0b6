#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scripts of the house: the checks of the picture of the rooms and of includes name each planted mistake, and nothing else; mutants chosen by
chance. The argument is the class to run."""
import contextlib
import importlib.util
import io
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import check_layering  # noqa: E402  (its folder is known only here)
import random_mutants  # noqa: E402

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


class Layering(unittest.TestCase):
    """scripts/check_layering.py on a copy of the tree."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        for top in ("faults", "allocator", "harness", "reports", "include", "suites"):
            shutil.copytree(ROOT / top, cls.root / top, ignore=cls.no_source)
        # A build of everything that is there: half of the tree by name, half through the list of a unity build.
        sources = [p for p in cls.root.rglob("*.c*") if p.suffix in (".c", ".cc")]
        unity = cls.root / "Unity/unity_0_cxx.cxx"
        unity.parent.mkdir()
        unity.write_text("".join(f'#include "{p}"\n' for p in sources if cls.root / "harness" in p.parents))
        built = [{"directory": str(cls.root), "file": str(p)} for p in [*sources, unity] if cls.root / "harness" not in p.parents]
        (cls.root / "compile_commands.json").write_text(json.dumps(built))
        cls.rows = (ROOT / "scripts/layers.txt").read_text()
        (cls.root / "scripts").mkdir()
        (cls.root / "scripts/layers.txt").write_text(cls.rows)
        (cls.root / "docs").mkdir()
        shutil.copy(ROOT / "docs/ALLOCATOR.md", cls.root / "docs")

    @staticmethod
    def no_source(directory, names):
        return [name for name in names if not Path(directory, name).is_dir() and Path(name).suffix not in (".h", ".cc", ".c", ".def")]

    def named(self, plants, *expected):
        """plants: for each file the text that it gets. Each expected text is in some line of the answer, and each line has one."""
        before = {path: (self.root / path).read_text() if (self.root / path).exists() else None for path in plants}
        for path, text in plants.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
            check_layering.main(["--root", str(self.root), "--compile-commands", str(self.root / "compile_commands.json")])
        for path, text in before.items():
            if text is None:
                (self.root / path).unlink()
            else:
                (self.root / path).write_text(text)
        with self.subTest(expected):
            self.assertEqual(ended.exception.code, 1 if expected else 0, said.getvalue())
            lines = said.getvalue().splitlines() if expected else ()
            for text in expected:
                self.assertTrue(any(text in line for line in lines), said.getvalue())
            for line in lines:
                self.assertTrue(any(text in line for text in expected), line)

    def with_row(self, folder, more):
        """The rows, with more entries in that of the folder."""
        changed = "\n".join(f"{line} {more}" if line.partition(":")[0] == folder else line for line in self.rows.splitlines())
        self.assertNotEqual(changed, self.rows.rstrip("\n"))
        return {"scripts/layers.txt": changed}

    def test_the_tree_as_it_is(self):
        self.named({})

    def test_an_include_without_an_entry(self):
        # A folder is not its rooms, and one file is not its folder.
        self.named({"faults/sim/base/planted.h": '#include "faults/shim/gate.h"\n'}, "includes faults/shim/gate.h, which faults/sim/base may not see")
        self.named({"faults/sim/order/planted.h": '#include "faults/sim/graph/graph.h"\n'}, "which faults/sim/order may not see", "circle: ")
        self.named({"faults/plan/planted.h": '#include "faults/journal/journal.h"\n'}, "includes faults/journal/journal.h, which faults/plan may not see")
        self.named({"reports/planted.h": "#include <cuaudit/kernel.h>\n"}, "includes include/cuaudit/kernel.h, which reports may not see")
        self.named({"faults/shim/planted.h": '#include "../sim/world.h"\n'}, "includes faults/sim/world.h, which faults/shim may not see")
        self.named({"faults/shim/planted.h": '#include "faults/shim/gone.h"\n'}, "includes faults/shim/gone.h, which is not there")
        self.named({"faults/shim/planted.h": "#include <fmt/format.h>\n"}, "includes <fmt/format.h>, which faults/shim may not see")
        self.named({"reports/planted.h": "#include <cuda.h>\n"}, "includes <cuda.h>, which reports may not see")

    def test_a_named_test_that_is_not_there(self):
        named = "So it is: `Told.OrItIsRefused`, `All/Told.*`, `Told.OrIt*`, `Faults.*/*Moving`, `StreamRecord::Want`, `{}`.\n"
        self.named({"docs/ALLOCATOR.md": named.format("Told.ByARoute")})
        self.named({"docs/ALLOCATOR.md": named.format("Told.ByARout")}, "docs/ALLOCATOR.md: names the test `Told.ByARout`, which is not there")
        self.named({"docs/ALLOCATOR.md": named.format("Untold.*")}, "docs/ALLOCATOR.md: names the test `Untold.*`, which is not there")

    def test_an_allowance_that_no_file_uses(self):
        options = (self.root / "harness/options").iterdir()
        without_cli11 = {p.relative_to(self.root).as_posix(): p.read_text().replace("<CLI/CLI.hpp>", "<vector>") for p in options if "<CLI/" in p.read_text()}
        self.named(self.with_row("faults/shim", "faults/probes"), "faults/shim: may see faults/probes, and no file does")
        self.named(self.with_row("harness/verdict", "reports/run.h"), "harness/verdict: may see reports/run.h, and no file does")
        self.named(self.with_row("faults/shim", "faults/plan/plan.h"), "faults/shim: allowed faults/plan/plan.h twice")
        self.named(without_cli11, "harness/options: may see <^CLI/>, and no file does")

    def test_circles_though_the_rows_allow_them(self):
        self.named({"harness/ledger/planted.h": '#include "harness/verdict/evidence/finding.h"\n'} | self.with_row("harness/ledger", "harness/verdict/evidence"),
                   "circle: harness/ledger -> harness/verdict/evidence -> harness/ledger", "harness/ledger: sees harness/verdict/evidence, whose row is not above")
        self.named({"faults/probes/planted.h": '#include "faults/plan/plan.h"\n'} | self.with_row("faults/probes", "faults/plan"),
                   "faults/probes: sees faults/plan, whose row is not above")

    def test_files_of_one_folder_in_a_circle(self):
        # A source file includes for its header, too.
        plants = {"faults/plan/one.h": '#include "faults/plan/two.h"\n', "faults/plan/two.h": ""}
        self.named(plants)
        self.named(plants | {"faults/plan/two.cc": '#include "faults/plan/two.h"\n#include "faults/plan/one.h"\n'},
                   "circle: faults/plan/one -> faults/plan/two -> faults/plan/one", "faults/plan/two.cc: in no target")

    def test_folders_and_rows_belong_together(self):
        self.named({"faults/planted/planted.h": ""}, "faults/planted: has no row")
        self.named({"scripts/layers.txt": f"{self.rows}\nfaults/planted:\n"}, "faults/planted: has a row and no source file")

    def test_a_source_file_that_no_target_builds(self):
        self.named({"faults/plan/stray.cc": ""}, "faults/plan/stray.cc: in no target")
        self.named({"harness/cli/stray.cc": ""}, "harness/cli/stray.cc: in no target")
        self.named({"suites/unit/plan/stray.c": ""}, "suites/unit/plan/stray.c: in no target")

    def test_a_long_file(self):
        self.named({"harness/ledger/planted.h": "\n" * 401}, "401 lines, at most 400")

    def test_a_readme_and_its_folder(self):
        def readme(*names):
            return {"faults/plan/README.md": "# plan\n\n| file | what it holds |\n| --- | --- |\n" + "".join(f"| `{name}` | one thing |\n" for name in names)}

        plans = sorted({p.name.partition(".")[0] for p in (self.root / "faults/plan").iterdir()})
        self.named(readme(*plans))
        self.named(readme(*plans[1:]), f"faults/plan/{plans[0]}.")
        self.named(readme(*plans, "gone.h"), "faults/plan/README.md: a row names `gone.h`, which is not there")
        self.named(readme(*plans, "plan.{h,gone.cc}"), "a row names `plan.gone.cc`, which is not there")
        # The README of the folder above names a folder, or has a section about it that names its files.
        folders = sorted(p.name for p in (self.root / "faults").iterdir())
        above = "# faults\n\n| folder |\n| --- |\n" + "".join(f"| `{name}` |\n" for name in folders) + "\n## plan: which calls fail\n\n| file |\n| --- |\n"
        self.named({"faults/README.md": above + "".join(f"| `plan/{name}` |\n" for name in plans)})
        self.named({"faults/README.md": above + "".join(f"| `plan/{name}` |\n" for name in plans[1:])}, f"faults/plan/{plans[0]}.")


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
