// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "suites/fuzz/gated_run.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "faults/driver/result.h"
#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"
#include "suites/fuzz/machine.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {

struct Run::Parts {
  faults::MemoryJournal journal;
  std::optional<faults::Gate> gate;
};

namespace {

// Queued frees count when they have run. The contexts are those that calls of the journal were made in.
bool Settle(driver::DriverRef below, std::span<const faults::Record> records) {
  static std::vector<std::uint64_t> contexts;
  contexts.clear();
  for (const faults::Record& record : records) {
    if (std::find(contexts.begin(), contexts.end(), record.context) == contexts.end()) contexts.push_back(record.context);
  }
  std::sort(contexts.begin(), contexts.end());
  bool settled = true;
  for (const std::uint64_t context : contexts) {
    if (context == 0) continue;
    const CUresult result = below.CtxSynchronize(reinterpret_cast<CUcontext>(context));
    settled = settled && (result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  return settled;
}

}  // namespace

Run::Run() : parts_(std::make_unique<Parts>()) {
  faults::JournalOptions options;
  options.record_capacity = std::size_t{1} << 14;
  options.stack_depth = 0;
  const char* const wrong = parts_->journal.Open(options, false);
  Require(wrong == nullptr, "there is a journal", wrong == nullptr ? "" : wrong);
}

Run::~Run() { Close(); }

void Run::Close() { sim::DestroyWorld(std::exchange(world_, nullptr)); }

void Run::Execute(const RunOptions& options, FuzzInput program) {
  parts_->journal.Clear();
  Close();
  faults::Gate& gate = parts_->gate.emplace();
  sim::WorldOptions wanted;
  wanted.device_bytes = std::uint64_t{64} << 20;
  wanted.device_count = options.devices;
  wanted.schedule = options.schedule;
  wanted.seed = options.seed;
  wanted.patience_ms = 0;
  wanted.observer = &gate;
  wanted.origin = &faults::Gate::CallUnderWay;
  wanted.on_misuse = &faults::Gate::NoteMisuse;
  world_ = sim::CreateWorld(wanted);
  Require(world_ != nullptr, "there is a world");
  pinned = options.pinned;
  gate.Arm(sim::Driver(world_), parts_->journal.journal(), nullptr, options.plan,
           options.pinned ? faults::Scope::Pinned : faults::Scope::Process);
  Machine machine(faults::Driver(&gate), program);
  (void)machine.d.Init(0);
  if (machine.d.DevicePrimaryCtxRetain(&machine.contexts.place[0], 0) == CUDA_SUCCESS)
    (void)machine.d.CtxSetCurrent(machine.contexts.place[0]);
  RunProgram(&machine);
  settled = Settle(sim::Driver(world_), records());
  TakeStock();
}

void Run::TakeStock() {
  std::size_t count = sim::ListLive(world_, room_.data(), room_.size());
  if (count > room_.size()) {
    room_.resize(2 * count);
    count = sim::ListLive(world_, room_.data(), room_.size());
  }
  live = {room_.data(), count};
  sim::LiveCounts counts = sim::CountAll(world_);
  for (const sim::LiveObject& object : live) --counts.count[static_cast<std::size_t>(object.kind)];
  stack_entries = std::exchange(counts.count[static_cast<std::size_t>(driver::Kind::ContextStackEntry)], 0);
  bool all = true;
  for (const std::uint64_t unlisted : counts.count) all = all && unlisted == 0;
  if (!all) Require(false, "the simulator lists what it counts", Text());
}

std::span<const faults::Record> Run::records() const { return parts_->journal.View().records(); }

std::string Run::Text() const {
  std::string text;
  for (const faults::Record& record : records()) {
    char line[512];
    int length = 0;
    if (record.kind == faults::RecordKind::Call) {
      const std::string_view name = driver::Name(static_cast<driver::CallId>(record.call));
      const std::string_view code = driver::ShortResultName(static_cast<CUresult>(record.result));
      length =
          std::snprintf(line, sizeof(line), "  %llu %.*s = %.*s%s%s in %llx:", static_cast<unsigned long long>(record.begin),
                        static_cast<int>(name.size()), name.data(), static_cast<int>(code.size()), code.data(),
                        (record.flags & faults::kInjected) != 0 ? " injected" : "",
                        (record.flags & faults::kForwarded) != 0 ? "" : " not forwarded", static_cast<unsigned long long>(record.context));
    } else {
      length = std::snprintf(line, sizeof(line), "  %llu kind %d value %d:", static_cast<unsigned long long>(record.begin),
                             static_cast<int>(record.kind), static_cast<int>(record.call));
    }
    text.append(line, static_cast<std::size_t>(length));
    for (const std::uint64_t argument : record.argument) {
      length = std::snprintf(line, sizeof(line), " %llx", static_cast<unsigned long long>(argument));
      text.append(line, static_cast<std::size_t>(length));
    }
    text += "\n";
  }
  return text;
}

}  // namespace cuaudit::fuzz
