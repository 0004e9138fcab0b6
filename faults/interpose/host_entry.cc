// SPDX-License-Identifier: MIT
// host_entry.cc: how the host drop-in is entered: when it is loaded, forked and unloaded, at a mark, by the driver drop-in and by an audit
// in its process.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_census.h"
#include "faults/interpose/host_objects.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/host_watch.h"
#include "faults/interpose/next_function.h"
#include "faults/journal/record.h"
#include "faults/probes/host_reading.h"

namespace cuaudit::faults {
namespace {

[[maybe_unused]] void WriteReading() noexcept {
  static_assert(kHostMeterCount < kRecordArguments);
  const HostReading reading = ReadHost();
  Record* record = ReserveBare(HostCall::Reading, 0, 0);
  if (record == nullptr) return;
  for (size_t i = 0; i < kHostMeterCount; ++i) {
    if (!reading.read.Has(static_cast<HostMeter>(i))) continue;
    record->argument[0] |= uint64_t{1} << i;
    record->argument[1 + i] = reading.value[i];
  }
  Finish(record);
}

// Records the meters and takes a census at the end of a cycle or of the process.
void TakeStock(bool at_the_end) noexcept {
  if (!Watching() || InProcess() || InBorrowedMemory()) return;
  if (at_the_end) AwaitDetaching();
  TakeCensus(at_the_end);
  if constexpr (kWithHeap) WriteReading();
}

void AfterFork() noexcept {
  ClaimMemory();
  ForgetCallsUnderWay();
  ForgetThreads();
  if (InProcess()) {
    StopWatching();
    ForgetWatch();
  } else {
    HostStacks().AfterFork();
  }
}

// Called once, before the library watches.
void Prepare() noexcept {
  static bool prepared = false;
  if (prepared) return;
  prepared = true;
  FindCodeRanges();
  pthread_atfork(nullptr, nullptr, &AfterFork);
}

__attribute__((constructor)) void OnLoad() {
  Quiet quiet;
  RememberLibraryPath();
  FindUsableBytes();
  const char* const orders = getenv("CUAUDIT_OPTIONS");
  if (orders == nullptr || !OpenJournal(orders)) return;
  Prepare();
  RememberOpenDescriptors();
  std::uint32_t flags = kHostProbesActive;
  if constexpr (kWithHeap) {
    if (!HeapIsASanitizers() && !HeapIsTheCLibrarys()) flags |= kHeapNotSeen;
    if (!HeapIsSeen()) flags |= kHostProbesSkipped;
  } else {
    flags |= kHeapLeftOut;
  }
  HostJournal().header().flags.fetch_or(flags, std::memory_order_relaxed);
  StartWatching();
  Finish(ReserveBare(HostCall::Looking, 0, 0));
}

__attribute__((destructor)) void OnUnload() { TakeStock(true); }

}  // namespace
}  // namespace cuaudit::faults

// Called by the driver drop-in when a call has made a descriptor for the program, or the driver has taken one over from it.
extern "C" __attribute__((visibility("default"))) void cuaudit_host_descriptor(int descriptor, bool taken_over) noexcept {
  const int saved = errno;
  cuaudit::faults::ToldOfDescriptor(descriptor, taken_over);
  errno = saved;
}

// Called before the driver drop-in's function of the same name, so that records written here count for the cycle that ends.
extern "C" __attribute__((visibility("default"))) void cuaudit_mark(int what, int value) {
  using namespace cuaudit::faults;
  static void (*next)(int, int) = nullptr;
  constexpr int kCycleEnd = static_cast<int>(MarkKind::CycleEnd);
  if (what == kCycleEnd) TakeStock(false);
  if (auto* mark = Next(&next, "cuaudit_mark")) mark(what, value);
}

#ifdef CUAUDIT_HOST_HEAP
extern "C" __attribute__((visibility("default"))) const cuaudit::faults::HostWatchCalls* cuaudit_host_watch() {
  using namespace cuaudit::faults;
  Quiet quiet;
  Prepare();
  return &WatchCalls();
}
#endif
