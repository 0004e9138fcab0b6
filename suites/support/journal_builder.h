// SPDX-License-Identifier: MIT
// journal_builder.h: journals whose records a test writes itself.
#pragma once

#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "harness/sweep/run/observation.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {

class JournalBuilder {
 public:
  explicit JournalBuilder(std::string path, std::size_t capacity = 1024);
  // In a directory of its own.
  explicit JournalBuilder(std::size_t capacity = 1024) : JournalBuilder(std::make_unique<TemporaryDir>(), capacity) {}
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
  JournalBuilder(std::unique_ptr<TemporaryDir> own, std::size_t capacity) : JournalBuilder(own->File("journal"), capacity) {
    own_ = std::move(own);
  }
  faults::Record& Next(faults::RecordKind kind, std::uint16_t call);

  std::unique_ptr<TemporaryDir> own_;
  std::string path_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  faults::JournalHeader* header_ = nullptr;
};

inline JournalBuilder::JournalBuilder(std::string path, std::size_t capacity) : path_(std::move(path)) {
  faults::JournalOptions options = {.record_capacity = capacity};
  EXPECT_EQ(faults::CreateJournal(path_.c_str(), options), nullptr);
  const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts = {};
  EXPECT_EQ(fstat(file, &facts), 0);
  bytes_ = static_cast<std::size_t>(facts.st_size);
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  header_ = static_cast<faults::JournalHeader*>(memory_);
  header_->driver_kind.store(faults::DriverKind::Simulated);
  header_->driver_version.store(13000);
}

inline JournalBuilder::~JournalBuilder() { munmap(memory_, bytes_); }

inline faults::Record& JournalBuilder::Next(faults::RecordKind kind, std::uint16_t call) {
  auto* const records = reinterpret_cast<faults::Record*>(static_cast<char*>(memory_) + header_->records_offset);
  faults::Record& record = records[header_->next_record.fetch_add(1)];
  record.kind = kind;
  record.call = call;
  record.begin = header_->clock.fetch_add(1) + 1;
  record.end = header_->clock.fetch_add(1) + 1;
  record.pid = 1;
  record.tid = 1;
  return record;
}

inline faults::Record& JournalBuilder::Call(driver::CallId call) {
  faults::Record& record = Next(faults::RecordKind::Call, static_cast<std::uint16_t>(call));
  record.flags = faults::kForwarded;
  record.context = 0xc0;
  record.occurrence = header_->occurrences[driver::Index(driver::BaseOf(call))].fetch_add(1) + 1;
  return record;
}

inline faults::Record& JournalBuilder::Mark(faults::MarkKind mark, std::uint32_t cycle) {
  faults::Record& record = Next(faults::RecordKind::Mark, static_cast<std::uint16_t>(mark));
  record.cycle = cycle;
  return record;
}

inline faults::Record& JournalBuilder::Host(faults::HostCall call, std::uint64_t address, std::uint64_t value) {
  faults::Record& record = Next(faults::RecordKind::Host, static_cast<std::uint16_t>(call));
  record.argument[0] = address;
  record.argument[1] = value;
  return record;
}

inline void JournalBuilder::StackIn(std::uint32_t id, std::string_view path) {
  char* const bytes = static_cast<char*>(memory_);
  auto* const module = reinterpret_cast<faults::ModuleRow*>(bytes + header_->modules_offset);
  path.copy(module->path, sizeof(module->path) - 1);
  module->state.store(2);
  auto* const stack = reinterpret_cast<faults::StackRow*>(bytes + header_->stacks_offset) + (id - 1);
  stack->frame[0] = id;
  stack->hash.store(id);
  stack->depth.store(1);
}

inline Observation JournalBuilder::Read(const Ending& ending) const {
  Result<Observation> seen = ReadObservation(path_, ending);
  EXPECT_TRUE(seen.ok()) << seen.status().message();
  return std::move(*seen);
}

}  // namespace cuaudit::harness
