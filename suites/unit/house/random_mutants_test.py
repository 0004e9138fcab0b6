#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants chosen by chance: the same for a seed, never in words or declarations, and each a real change of one line."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import random_mutants

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

rooms = ["harness/verdict", "reports"]
first = random_mutants.choose(ROOT, rooms, 1)
assert first == random_mutants.choose(ROOT, rooms, 1)
assert first != random_mutants.choose(ROOT, rooms, 2)
assert len(first) > 200 and len({(file, number) for file, number, _, _ in first}) == len(first)
for file, number, old, new in first:
    assert (ROOT / file).read_text().split("\n")[number] == old != new, (file, number)
print("mutants by chance: as they should be")
