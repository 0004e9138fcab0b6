// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "suites/unit/allocator/stress/random_faults.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "faults/driver/call_shape.h"
#include "faults/driver/effects.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

struct OfThread {
  RandomFaults* faults = nullptr;
  std::uint64_t thread = 0;
  std::uint64_t calls = 0;  // that could fail, of all its time
  bool has_failed = false;
};
thread_local OfThread here;

std::uint64_t Mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

bool MayAnswer(driver::BaseId base, CUresult code) {
  if (driver::IsSticky(code) || code == CUDA_ERROR_DEINITIALIZED) return false;
  // What is no failure: "it is gone", "not yet".
  if (base == driver::BaseId::PointerGetAttribute) return code != CUDA_ERROR_INVALID_VALUE;
  return base != driver::BaseId::EventQuery || code != CUDA_ERROR_NOT_READY;
}

}  // namespace

struct RandomFaults::Wrap {
  template <driver::CallId id, typename Function>
  struct Of;
  template <driver::CallId id, typename... P>
  struct Of<id, CUresult(P...)> {
    static CUresult Entry(void* self, P... arguments) noexcept {
      auto* const me = static_cast<RandomFaults*>(self);
      using Next = CUresult (*)(void*, P...);
      const auto next = reinterpret_cast<Next>(me->next_.table->entry[driver::Index(id)]);
      const Decision decision = me->Decide(id);
      if (decision.code == CUDA_SUCCESS) return next(me->next_.self, arguments...);
      if (!decision.is_done) return decision.code;
      const CUresult result = next(me->next_.self, arguments...);
      return result != CUDA_SUCCESS ? result : decision.code;
    }
  };
  template <std::size_t... i>
  static void Fill(driver::DriverTable* table, std::index_sequence<i...>) {
    const driver::Entry wrapped[] = {reinterpret_cast<driver::Entry>(
        &Of<static_cast<driver::CallId>(i), typename driver::CallType<static_cast<driver::CallId>(i)>::Function>::Entry)...};
    std::copy(std::begin(wrapped), std::end(wrapped), table->entry);
  }
};

RandomFaults::RandomFaults(driver::DriverRef next, std::uint64_t seed, std::uint64_t one_in, Counted counted)
    : table_(*next.table), next_(next), seed_(seed), one_in_(one_in), counted_(counted) {
  Wrap::Fill(&table_, std::make_index_sequence<driver::kCallCount>());
}

RandomFaults::Decision RandomFaults::Decide(driver::CallId id) noexcept {
  const driver::BaseId base = driver::BaseOf(id);
  if (here.faults != this || mended_.load(std::memory_order_relaxed) || driver::LegalCodes(base).empty()) return {};
  const std::uint64_t count = counted_ == Counted::PerThread ? ++here.calls : calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t whose = counted_ == Counted::PerThread ? here.thread : 0;
  const std::uint64_t draw = Mixed(seed_ ^ Mixed(whose) ^ Mixed(count / 2));  // every second fault has another right behind it
  if (draw / 32 % 4 == 0) std::this_thread::yield();
  if (draw % (2 * one_in_) != 0 && (draw % one_in_ != 0 || count % 2 == 0)) return {};
  Decision decision;
  const auto codes = driver::LegalCodes(base);
  for (std::size_t i = 0; i < codes.size() && decision.code == CUDA_SUCCESS; ++i) {
    const CUresult code = codes[(draw / 1024 + i) % codes.size()];
    if (MayAnswer(base, code)) decision.code = code;
  }
  if (decision.code == CUDA_SUCCESS) return {};
  const driver::EffectRow& row = driver::EffectOf(base);
  // What was acquired and not told of nobody can give back; nor can anybody tell a range that was mapped.
  decision.is_done = draw / 64 % 3 == 0 && !driver::IsAcquire(row.effect) && base != driver::BaseId::MemMap;
  here.has_failed = true;
  fired_.fetch_add(1, std::memory_order_relaxed);
  fired_of_[driver::Index(base)].fetch_add(1, std::memory_order_relaxed);
  if (driver::IsRelease(row.effect) && !decision.is_done)
    refused_of_[static_cast<std::size_t>(row.kind)].fetch_add(1, std::memory_order_relaxed);
  return decision;
}

RandomFaults::Call::Call(RandomFaults* faults, std::uint64_t thread) {
  if (here.thread != thread) here.calls = 0;
  here.faults = faults;
  here.thread = thread;
  here.has_failed = false;
}
RandomFaults::Call::~Call() { here.faults = nullptr; }
bool RandomFaults::Call::failed() const { return here.has_failed; }

}  // namespace cuaudit::alloc
