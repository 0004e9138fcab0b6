// SPDX-License-Identifier: MIT
#include "faults/interpose/sim_host.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace cuaudit::faults {
namespace {

constinit sim::World* attended = nullptr;
constinit std::atomic<std::uint32_t>* counter = nullptr;

void* Attend(void*) {
  sim::Attendance attendance;
  attendance.forced = counter;
  for (;;) {
    timespec pause{0, kAttendantMs * 1000000};
    while (nanosleep(&pause, &pause) != 0) {
    }
    sim::RunUnattended(attended, &attendance);
  }
}

}  // namespace

bool StartAttendant(sim::World* world, std::atomic<std::uint32_t>* forced) noexcept {
  attended = world;
  counter = forced;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, &Attend, nullptr) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

namespace {

constinit std::atomic<cuaudit_kernel*> newest{nullptr};

bool IsListed(const cuaudit_kernel* first, const cuaudit_kernel* wanted) noexcept {
  for (const cuaudit_kernel* kernel = first; kernel != nullptr; kernel = kernel->next) {
    if (kernel == wanted) return true;
  }
  return false;
}

}  // namespace

const std::atomic<cuaudit_kernel*>& HostKernels() noexcept { return newest; }

}  // namespace cuaudit::faults

extern "C" __attribute__((visibility("default"))) int cuaudit_register_kernel(cuaudit_kernel* kernel) {
  using cuaudit::faults::newest;
  if (kernel == nullptr || kernel->struct_bytes != sizeof(*kernel) || kernel->name == nullptr || kernel->run == nullptr) return 0;
  cuaudit_kernel* first = newest.load(std::memory_order_acquire);
  do {
    if (cuaudit::faults::IsListed(first, kernel)) return 1;
    kernel->next = first;
  } while (!newest.compare_exchange_weak(first, kernel, std::memory_order_release, std::memory_order_acquire));
  return 1;
}
