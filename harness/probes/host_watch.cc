// SPDX-License-Identifier: MIT
#include "harness/probes/host_watch.h"

#include <dlfcn.h>

namespace cuaudit::harness {

const HostWatchCalls* FindHostWatch(std::uint64_t digest) noexcept {
  using Ask = const HostWatchCalls* (*)();
  const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, faults::kHostWatchName));
  const HostWatchCalls* const calls = ask == nullptr ? nullptr : ask();
  return calls != nullptr && calls->digest == digest ? calls : nullptr;
}

}  // namespace cuaudit::harness
