// SPDX-License-Identifier: MIT
#include "faults/interpose/attendant.h"

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

}  // namespace cuaudit::faults
