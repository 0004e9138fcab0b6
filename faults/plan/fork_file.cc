// SPDX-License-Identifier: MIT
#include "faults/plan/fork_file.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/driver/call_id.h"

namespace cuaudit::faults {
namespace {

template <typename T>
int Compare(T a, T b) noexcept {
  return a < b ? -1 : b < a ? 1 : 0;
}

// True when `count` elements of `each` bytes at `offset` lie inside `size`, without overflow. `offset` must be aligned, because the
// elements contain atomics.
bool Lies(std::uint64_t offset, std::uint64_t count, std::uint64_t each, std::uint64_t size) noexcept {
  return offset % alignof(std::max_align_t) == 0 && offset <= size && count <= (size - offset) / each;
}

bool MeansSomething(const ForkNode* nodes, std::uint32_t index, std::uint32_t count) noexcept {
  const ForkNode& node = nodes[index];
  // The field is read as an integer, because a byte other than 0 or 1 is not a valid bool.
  unsigned char control = 0;
  memcpy(&control, reinterpret_cast<const char*>(&node) + offsetof(ForkNode, control), sizeof(control));
  if (control > 1 || (index != 0 && control == 0 && !IsWellFormed(node.fault))) return false;
  // Children must come after their node in the file, so that no node is its own descendant.
  return node.children == 0 || (node.first_child > index && node.first_child <= count && node.children <= count - node.first_child);
}

}  // namespace

const char* CheckForkFile(const void* bytes, std::size_t size, std::size_t journal_header, std::size_t record) noexcept {
  static constexpr char kOther[] = "the fork file is not one made by this cuaudit";
  const ForkHeader* const header = static_cast<const ForkHeader*>(bytes);
  if (size < sizeof(ForkHeader) || memcmp(header->magic, kForkMagic, sizeof(kForkMagic)) != 0 ||
      header->table_digest != driver::TableDigest() || header->file_bytes != size) {
    return kOther;
  }
  const std::uint64_t slot = header->journal_bytes;
  const bool fits = header->nodes != 0 && header->nodes_offset >= sizeof(ForkHeader) && header->slots_offset >= sizeof(ForkHeader) &&
                    header->journals_offset >= sizeof(ForkHeader) && header->records_offset >= journal_header &&
                    Lies(header->nodes_offset, header->nodes, sizeof(ForkNode), size) &&
                    Lies(header->slots_offset, header->slots, sizeof(ForkSlot), size) && slot % alignof(std::max_align_t) == 0 &&
                    slot != 0 && Lies(header->journals_offset, header->slots, slot, size) &&
                    Lies(header->records_offset, header->record_capacity, record, slot);
  if (!fits) return kOther;
  const ForkNode* const nodes = reinterpret_cast<const ForkNode*>(static_cast<const char*>(bytes) + header->nodes_offset);
  for (std::uint32_t i = 0; i < header->nodes; ++i) {
    if (!MeansSomething(nodes, i, header->nodes)) return "the fork file has a fault that means nothing";
  }
  return nullptr;
}

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

const char* CyclePlans::Open(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "cannot open the cycle file";
  struct stat facts;
  void* memory = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(CycleHeader))) {
    memory = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return "cannot map the cycle file";
  const char* const wrong = Adopt(memory, static_cast<std::size_t>(facts.st_size));
  if (wrong != nullptr) munmap(memory, static_cast<std::size_t>(facts.st_size));
  return wrong;
}

const char* CyclePlans::Adopt(const void* bytes, std::size_t size) noexcept {
  const CycleHeader* const header = static_cast<const CycleHeader*>(bytes);
  if (size < sizeof(CycleHeader) || memcmp(header->magic, kCycleMagic, sizeof(kCycleMagic)) != 0 ||
      header->table_digest != driver::TableDigest() || header->file_bytes != size || (size - sizeof(CycleHeader)) % sizeof(CycleRow) != 0 ||
      header->rows != (size - sizeof(CycleHeader)) / sizeof(CycleRow)) {
    return "the cycle file is not one made by this cuaudit";
  }
  const CycleRow* const rows = reinterpret_cast<const CycleRow*>(header + 1);
  for (std::uint64_t i = 0; i < header->rows; ++i) {
    if (rows[i].faults > kCycleFaults) return "the cycle file has a row with too many faults";
    for (std::uint32_t n = 0; n < rows[i].faults; ++n) {
      if (!IsWellFormed(rows[i].fault[n])) return "the cycle file has a fault that means nothing";
    }
  }
  header_ = header;
  return nullptr;
}

Plan CyclePlans::Of(std::uint32_t cycle) const noexcept {
  Plan plan;
  const CycleRow* const rows = reinterpret_cast<const CycleRow*>(header_ + 1);
  for (std::uint64_t i = 0; i < header_->rows; ++i) {
    if (rows[i].cycle != cycle) continue;
    for (std::uint32_t n = 0; n < rows[i].faults; ++n) (void)plan.Add(rows[i].fault[n]);
  }
  return plan;
}

}  // namespace cuaudit::faults
