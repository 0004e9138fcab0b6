// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/refusals.h"

#include "faults/driver/result.h"
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {

std::size_t WriteRefusal(const RefusedCall& refusal, char* line) noexcept {
  std::size_t length = 0;
  const auto put = [&](std::string_view text) {
    for (const char c : text) {
      if (length + 1 < kLongestLine) line[length++] = c;
    }
  };
  put(driver::Name(static_cast<CallId>(refusal.call)));
  put(" answers ");
  put(driver::ResultName(static_cast<CUresult>(refusal.result)));
  line[length] = '\0';
  return length;
}

namespace {

// The gate asks these for each parameter of a launched kernel until it is told that there is no further one. That is no call of the
// program's, and must not be in its log.
bool AsksForParameters(driver::BaseId base) noexcept {
  return base == driver::BaseId::FuncGetParamInfo || base == driver::BaseId::KernelGetParamInfo;
}

}  // namespace

void LogRefusal(Call& call, CallId id, CUresult result) noexcept {
  if (AsksForParameters(driver::BaseOf(id))) return;
  World& world = call.world;
  const RefusedCall refusal{static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(result)};
  world.refusals[world.refused++ % kRefusals] = refusal;
#ifdef CUAUDIT_HAS_LogsRegisterCallback
  const Inside before = call.thread->inside;
  if (world.listeners.empty() || before != Inside::Nothing) return;
  char line[kLongestLine];
  const std::size_t length = WriteRefusal(refusal, line);
  call.thread->inside = Inside::Destructor;
  for (std::size_t i = 0; i < world.listeners.size(); ++i) {
    const CallbackEntry& entry = *world.listeners[i];
    const auto heard = reinterpret_cast<CUlogsCallback>(entry.function);
    void* const data = entry.data;
    pthread_mutex_unlock(&world.lock);
    heard(data, CU_LOG_LEVEL_ERROR, line, length);
    pthread_mutex_lock(&world.lock);
  }
  call.thread->inside = before;
#endif
}

}  // namespace cuaudit::sim
