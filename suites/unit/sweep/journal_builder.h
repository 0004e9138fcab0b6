// SPDX-License-Identifier: MIT
// journal_builder.h: journals whose records a test writes itself.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_view.h"
#include "harness/sweep/run/observation.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {

class JournalBuilder {
 public:
  explicit JournalBuilder(std::string path, std::size_t capacity = 1024);
  JournalBuilder(const JournalBuilder&) = delete;
  JournalBuilder& operator=(const JournalBuilder&) = delete;
  ~JournalBuilder();

  // The next record, with ticket, process, thread and occurrence filled in; a successful call that reached the driver.
  faults::Record& Call(driver::CallId call);
  faults::Record& Mark(faults::MarkKind mark, std::uint32_t cycle);
  faults::Record& Host(faults::HostCall call, std::uint64_t address, std::uint64_t value = 0);
  faults::JournalHeader& header() { return *header_; }
  // Stack `id`, as Record::stack names it, then has one frame, which lies in module 0 of this path.
  void StackIn(std::uint32_t id, std::string_view path);

  Observation Read(const Ending& ending = Ending()) const;

 private:
  faults::Record& Next(faults::RecordKind kind, std::uint16_t call);

  std::string path_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  faults::JournalHeader* header_ = nullptr;
};

}  // namespace cuaudit::harness
