// SPDX-License-Identifier: MIT
#include "suites/support/journal_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "harness/ledger/rules.h"
#include "suites/support/trace.h"

namespace cuaudit::testing {

namespace {

constexpr std::uint64_t kModulesAt = (sizeof(faults::JournalHeader) + 4095) / 4096 * 4096;
constexpr std::uint64_t kStacksAt = kModulesAt + faults::kMaxModules * sizeof(faults::ModuleRow);
constexpr std::uint64_t kPythonAt = (kStacksAt + faults::kMaxStacks * sizeof(faults::StackRow) + 4095) / 4096 * 4096;
constexpr std::uint64_t kRecordsAt = (kPythonAt + faults::kMaxPythonFunctions * sizeof(faults::PythonRow) + 4095) / 4096 * 4096;

}  // namespace

void JournalImage::Free::operator()(void* bytes) const noexcept { std::free(bytes); }

JournalImage::JournalImage(const Trace& trace) : ledger_(trace.Fold()) {
  const std::vector<faults::Record> records = trace.Records();
  const std::size_t size = kRecordsAt + records.size() * sizeof(faults::Record);
  bytes_.reset(static_cast<char*>(std::calloc(size, 1)));
  auto* header = At<faults::JournalHeader>(0);
  std::memcpy(header->magic, faults::kJournalMagic, sizeof(header->magic));
  header->version = faults::kJournalVersion;
  header->header_bytes = sizeof(faults::JournalHeader);
  header->table_digest = driver::TableDigest();
  header->byte_order = faults::kByteOrder;
  header->pointer_bytes = sizeof(void*);
  header->module_rows = faults::kMaxModules;
  header->stack_rows = faults::kMaxStacks;
  header->python_rows = faults::kMaxPythonFunctions;
  header->file_bytes = size;
  header->record_capacity = records.size();
  header->modules_offset = kModulesAt;
  header->stacks_offset = kStacksAt;
  header->python_offset = kPythonAt;
  header->records_offset = kRecordsAt;
  header->next_record = records.size();
  if (!records.empty()) std::memcpy(At<char>(kRecordsAt), records.data(), records.size() * sizeof(faults::Record));
  const char* error = view_.Open(bytes_.get(), size);
  EXPECT_EQ(error, nullptr) << error;
}

JournalImage& JournalImage::Module(std::string_view path, std::vector<std::uint8_t> build_id) {
  auto* row = At<faults::ModuleRow>(kModulesAt) + modules_++;
  std::memcpy(row->path, path.data(), path.size());
  std::copy(build_id.begin(), build_id.end(), row->build_id);
  row->build_id_bytes = static_cast<std::uint32_t>(build_id.size());
  row->state = 2;
  return *this;
}

JournalImage& JournalImage::Stack(std::uint32_t id, const std::vector<std::uint64_t>& frames) {
  auto* row = At<faults::StackRow>(kStacksAt) + (id - 1);
  std::copy(frames.begin(), frames.end(), row->frame);
  row->hash = id;
  row->depth = static_cast<std::uint32_t>(frames.size());
  return *this;
}

JournalImage& JournalImage::PythonFunction(std::string_view name, std::string_view file) {
  auto* row = At<faults::PythonRow>(kPythonAt) + python_++;
  std::memcpy(row->name, name.data(), name.size());
  std::memcpy(row->file, file.data(), file.size());
  row->complete = 1;
  return *this;
}

JournalImage& JournalImage::Flags(std::uint32_t flags) {
  At<faults::JournalHeader>(0)->flags.store(flags);
  return *this;
}

JournalImage& JournalImage::DriverPath(std::string_view path) {
  std::memcpy(At<faults::JournalHeader>(0)->driver_path, path.data(), path.size());
  return *this;
}

JournalImage& JournalImage::Driver(faults::DriverKind kind) {
  At<faults::JournalHeader>(0)->driver_kind.store(kind);
  return *this;
}

NotedEvidence JournalImage::Evidence(int exit_status, int signal, bool timed_out) const {
  return {{&ledger_, &view_, {exit_status, signal, timed_out}}};
}

harness::Judgement Judge(const NotedEvidence& rehearsal, const NotedEvidence& trial, bool faulted, const harness::JudgeOptions& options) {
  harness::Judgement judgement = harness::Judge(rehearsal, trial, faulted, options);
  for (const auto* list : {&judgement.findings, &judgement.notes}) {
    for (const harness::TrialFinding& one : *list) Saw(harness::Name(one.rule), driver::Name(one.kind));
  }
  SawDefects(CountDefects(judgement.findings));
  return judgement;
}

harness::Judgement Judge(const Trace& rehearsal, const Trace& trial, int exit_status, const harness::JudgeOptions& options) {
  return Judge(JournalImage(rehearsal).Evidence(), JournalImage(trial).Evidence(exit_status), true, options);
}

harness::Judgement Judge(const Trace& alone, const harness::JudgeOptions& options) {
  return Judge({}, JournalImage(alone).Evidence(), false, options);
}

}  // namespace cuaudit::testing
