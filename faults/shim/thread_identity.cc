// SPDX-License-Identifier: MIT
#include "faults/shim/thread_identity.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace cuaudit::faults {
namespace {

// A process that continues its parent keeps its parent's names: `self` is known as `as`.
struct Alias {
  std::atomic<std::uint32_t> self{0};
  std::atomic<std::uint32_t> as{0};
};
constinit Alias alias;

}  // namespace

std::uint32_t NameOf(std::uint32_t id) noexcept {
  return id == alias.self.load(std::memory_order_relaxed) ? alias.as.load(std::memory_order_relaxed) : id;
}

std::uint32_t AskPid() noexcept { return thread_state.pid = NameOf(static_cast<std::uint32_t>(getpid())); }

std::uint32_t AskTid() noexcept { return thread_state.tid = NameOf(static_cast<std::uint32_t>(syscall(SYS_gettid))); }

void GoOnAsParent() noexcept {
  alias.as.store(Pid(), std::memory_order_relaxed);
  alias.self.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
}

void ForgetThread() noexcept { thread_state = {}; }

}  // namespace cuaudit::faults
