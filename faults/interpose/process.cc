// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/interpose/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/driver/find_driver.h"
#include "faults/interpose/options.h"
#include "faults/interpose/resolving_driver.h"
#include "faults/sim/world.h"

namespace cuaudit::faults {
namespace {

// Static storage without constructors: the library may be called before its own constructor ran.
constinit InterposeOptions options;
constinit Journal journal;
constinit StackTable stacks;
constinit Gate gate;
constinit driver::GenuineDriver genuine;
constinit std::atomic<bool> ready{false};
constinit bool uses_genuine = false;
constinit std::atomic<bool> fault_seen{false};
constinit std::atomic<bool> exit_noted{false};
pthread_once_t load_once = PTHREAD_ONCE_INIT;
pthread_once_t open_once = PTHREAD_ONCE_INIT;

void Say(const char* text) noexcept {
  char line[2 * kMaxPath];
  const int length = snprintf(line, sizeof(line), "cuaudit: %s\n", text);
  if (length > 0) (void)!write(STDERR_FILENO, line, strlen(line));
}

void Load() noexcept {
  const char* text = getenv("CUAUDIT_OPTIONS");
  char message[2 * kMaxPath];
  if (const char* error = ParseOptions(text == nullptr ? "" : text, &options, message, sizeof(message))) {
    Say(error);
    _exit(2);
  }
  if (options.journal[0] != '\0') {
    if (const char* error = journal.Open(options.journal)) {
      snprintf(message, sizeof(message), "%s: %s", options.journal, error);
      Say(message);
      _exit(2);
    }
    stacks.Attach(&journal, true);
  }
}

bool HasDeviceNode() noexcept {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

// The path of this library, which must not be taken for the genuine driver.
const char* OwnPath() noexcept {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&OwnPath), &info) != 0 ? info.dli_fname : nullptr;
}

const char* OpenGenuine() noexcept {
  if (options.real_driver[0] == '\0' && !driver::FindGenuineDriver(OwnPath(), options.real_driver, sizeof(options.real_driver))) {
    return "no genuine libcuda.so.1 found in the loader's search directories or cache";
  }
  const char* error = driver::OpenGenuineDriver(options.real_driver, &genuine);
  if (error != nullptr) return error;
  // Before anything calls into it: two drop-ins that take each other for the driver would wait for each other for ever.
  if (dlsym(genuine.handle, "cuaudit_mark") != nullptr) return "is, or links to, a drop-in of cuaudit: not a genuine driver";
  return nullptr;
}

void Describe(DriverKind kind, const char* path) noexcept {
  if (!journal.is_open()) return;
  JournalHeader& header = journal.header();
  header.driver_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  int version = 0;
  if (gate.next().DriverGetVersion(&version) == CUDA_SUCCESS) header.driver_version.store(version, std::memory_order_relaxed);
  snprintf(header.driver_path, sizeof(header.driver_path), "%.255s", path);
}

void NoteExit() noexcept {
  if (!exit_noted.exchange(true, std::memory_order_relaxed)) gate.Note(ProcessEvent::Exit, 0);
}

void OpenDriver() noexcept {
  pthread_once(&load_once, &Load);
  driver::DriverRef next;
  DriverKind kind = DriverKind::Simulated;
  bool wants_genuine = options.driver == DriverChoice::Real;
  if (options.driver == DriverChoice::Auto && HasDeviceNode()) {
    wants_genuine =
        options.real_driver[0] != '\0' || driver::FindGenuineDriver(OwnPath(), options.real_driver, sizeof(options.real_driver));
  }
  if (wants_genuine) {
    if (const char* error = OpenGenuine()) {
      char message[2 * kMaxPath];
      snprintf(message, sizeof(message), "%s%s%s", options.real_driver, options.real_driver[0] == '\0' ? "" : ": ", error);
      Say(message);
      _exit(3);
    }
    next = driver::Driver(&genuine);
    kind = DriverKind::Genuine;
    uses_genuine = true;
  } else {
    sim::World* world = sim::CreateWorld(sim::WorldOptions());
    if (world == nullptr) {
      Say("the simulated driver got no address space (limit on virtual memory?)");
      _exit(3);
    }
    next = sim::Driver(world);
  }
  std::atomic<std::uint32_t>* unknown = journal.is_open() ? &journal.header().unknown_pointers : nullptr;
  gate.Arm(Resolving(next, uses_genuine ? &genuine : nullptr, unknown), journal.is_open() ? &journal : nullptr,
           journal.is_open() ? &stacks : nullptr, options.plan, options.scope);
  Describe(kind, uses_genuine ? options.real_driver : "");
  if (journal.is_open()) atexit(&NoteExit);
  ready.store(true, std::memory_order_release);
}

void AfterForkInChild() noexcept {
  exit_noted.store(false, std::memory_order_relaxed);
  gate.Note(ProcessEvent::Fork, static_cast<std::uint64_t>(getppid()));
}

// Process events are written by a gate that has a journal but no driver yet.
__attribute__((constructor)) void OnLoad() {
  pthread_once(&load_once, &Load);
  gate.Attach(journal.is_open() ? &journal : nullptr);
  gate.Note(ProcessEvent::Start, static_cast<std::uint64_t>(getppid()));
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
}

__attribute__((destructor)) void OnUnload() { NoteExit(); }

}  // namespace

Gate& ProcessGate() noexcept {
  if (!ready.load(std::memory_order_acquire)) [[unlikely]]
    pthread_once(&open_once, &OpenDriver);
  return gate;
}

void NoteFailure() noexcept {
  if (options.plan.size() == 0 || !journal.is_open() || fault_seen.load(std::memory_order_relaxed)) return;
  bool fired = false;
  for (std::size_t i = 0; i < options.plan.size(); ++i) fired |= journal.header().fired[i].load(std::memory_order_relaxed) != 0;
  if (!fired || fault_seen.exchange(true, std::memory_order_relaxed)) return;
  // Exit handlers run in reverse order: this one before all that the program has registered up to its fault.
  const int saved = errno;
  atexit(&NoteExit);
  errno = saved;
}

}  // namespace cuaudit::faults

extern "C" __attribute__((visibility("default"))) void cuaudit_mark(int what, int value) {
  using namespace cuaudit::faults;
  if (what < 0 || what > 2) return;
  gate.Mark(static_cast<MarkKind>(what), static_cast<std::uint32_t>(value));
}
