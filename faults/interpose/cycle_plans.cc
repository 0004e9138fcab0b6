// SPDX-License-Identifier: MIT
#include "faults/interpose/cycle_plans.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/driver/call_id.h"

namespace cuaudit::faults {

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
