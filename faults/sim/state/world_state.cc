// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

std::atomic<std::uint64_t> next_serial{1};
thread_local std::uint64_t thread_serial = 0;

}  // namespace

std::uint64_t ThreadSerial() noexcept {
  if (thread_serial == 0) thread_serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  return thread_serial;
}

Thread* World::AddThread(std::uint64_t serial) noexcept {
  Thread* const thread = arena.New<Thread>();
  if (thread == nullptr) return nullptr;
  thread->serial = serial;
  thread->next = threads[serial % kThreadBuckets];
  threads[serial % kThreadBuckets] = thread;
  return thread;
}

}  // namespace cuaudit::sim
