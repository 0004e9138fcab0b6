// SPDX-License-Identifier: MIT
#include "faults/plan/fork_file.h"

namespace cuaudit::faults {
namespace {

template <typename T>
int Compare(T a, T b) noexcept {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

int CompareWhere(const Fault& a, const Fault& b) noexcept {
  if (const int base = Compare(a.base, b.base); base != 0) return base;
  if (const int phase = Compare(a.phase, b.phase); phase != 0) return phase;
  return Compare(a.occurrence, b.occurrence);
}

ForkRange FindForks(const ForkNode* nodes, const ForkNode& parent, driver::BaseId base, Phase phase, std::uint32_t occurrence) noexcept {
  Fault wanted;
  wanted.base = base;
  wanted.phase = phase;
  wanted.occurrence = occurrence;
  std::uint32_t low = parent.first_child;
  std::uint32_t high = parent.first_child + parent.children;
  const std::uint32_t end = high;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (CompareWhere(nodes[middle].fault, wanted) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  ForkRange range{low, 0};
  while (low + range.count < end && CompareWhere(nodes[low + range.count].fault, wanted) == 0) ++range.count;
  return range;
}

const char* Describe(ForkRefusal why) noexcept {
  switch (why) {
    case ForkRefusal::None:
      return "the call was not reached";
    case ForkRefusal::Threads:
      return "the program has other threads there";
    case ForkRefusal::Descriptor:
      return "the program has a file, pipe or socket open there";
    case ForkRefusal::SharedMemory:
      return "the program shares memory with others there";
    case ForkRefusal::Children:
      return "the program has processes of its own there";
    case ForkRefusal::Timer:
      return "the program has a timer there";
    case ForkRefusal::Indirect:
      return "the driver is called by another process than the one that was started";
    case ForkRefusal::Sanitizer:
      return "a sanitizer is in the program";
    case ForkRefusal::Driver:
      return "the driver is not the simulated one";
    case ForkRefusal::System:
      return "the system gave no process";
    case ForkRefusal::WipedMemory:
      return "the program has memory that a fork would wipe, too much of it to be kept";
  }
  return "";
}

}  // namespace cuaudit::faults
