// SPDX-License-Identifier: MIT
#include "faults/journal/python_table.h"

#include <string.h>

#include "faults/journal/stack_key.h"

namespace cuaudit::faults {
namespace {

static_assert(sizeof(PythonRow::name) == sizeof(python::Function::name) && sizeof(PythonRow::file) == sizeof(python::Function::file));

std::uint64_t HashOf(const python::Function& function) noexcept {
  std::uint64_t hash = MixKey(kKeySeed, static_cast<std::uint64_t>(function.first_line));
  hash = MixKey(MixKey(hash, std::string_view(function.name)), std::string_view(function.file));
  return hash == 0 ? 1 : hash;
}

// Never 0, which an empty place of the cache would have.
std::uint64_t KeyOf(const python::Identity& identity) noexcept {
  std::uint64_t key = 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(identity.first_line);
  for (const std::uintptr_t part : {identity.code, identity.instruction, identity.filename, identity.qualname, identity.lines}) {
    key = (key ^ part) * 0xff51afd7ed558ccdU;
    key ^= key >> 32;
  }
  return key == 0 ? 1 : key;
}

}  // namespace

bool PythonTable::Recall(const python::Identity& identity, std::uint64_t* frame) const noexcept {
  const std::uint64_t key = KeyOf(identity);
  const Met& met = met_[key % kMet];
  *frame = met.frame.load(std::memory_order_relaxed);
  return (met.mixed.load(std::memory_order_relaxed) ^ *frame) == key;
}

void PythonTable::Remember(const python::Identity& identity, std::uint64_t frame) noexcept {
  const std::uint64_t key = KeyOf(identity);
  Met& met = met_[key % kMet];
  met.frame.store(frame, std::memory_order_relaxed);
  met.mixed.store(key ^ frame, std::memory_order_relaxed);
}

std::uint64_t PythonTable::Encode(const python::Function& function, int line) noexcept {
  const std::uint64_t hash = HashOf(function);
  const auto at_line = static_cast<std::uint64_t>(line);
  PythonRow* const rows = journal_->python();
  for (std::size_t probe = 0; probe < kMaxPythonFunctions; ++probe) {
    const std::size_t at = (hash + probe) % kMaxPythonFunctions;
    if (!pages_.Ensure(reinterpret_cast<char*>(rows), at * sizeof(PythonRow), sizeof(PythonRow))) {
      journal_->header().flags.fetch_or(kNoSpace, std::memory_order_relaxed);
      break;
    }
    PythonRow& row = rows[at];
    std::uint64_t held = row.hash.load(std::memory_order_acquire);
    if (held == 0 && row.hash.compare_exchange_strong(held, hash, std::memory_order_acq_rel)) {
      row.first_line = function.first_line;
      memcpy(row.name, function.name, strlen(function.name));
      memcpy(row.file, function.file, strlen(function.file));
      row.complete.store(1, std::memory_order_release);
      return PythonFrame(at, at_line);
    }
    if (held == hash) return PythonFrame(at, at_line);  // equal hashes are taken for equal functions, as in StackTable
  }
  journal_->header().flags.fetch_or(kModulesDropped, std::memory_order_relaxed);
  return PythonFrame(kMaxPythonFunctions, at_line);
}

}  // namespace cuaudit::faults
