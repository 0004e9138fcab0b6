// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/interpose/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "faults/driver/foreign_runtime.h"
#include "faults/driver/genuine_driver.h"
#include "faults/interpose/forker.h"
#include "faults/interpose/options.h"
#include "faults/interpose/resolving_driver.h"
#include "faults/interpose/sim_host.h"
#include "faults/shim/stop_watch.h"
#include "faults/sim/world.h"

namespace cuaudit::faults {
namespace {

// Static storage without constructors, because the library may be called before its own constructor has run.
constinit InterposeOptions options;
constinit Journal journal;
constinit StackTable stacks;
constinit Gate gate;
constinit Forker forker;
constinit CyclePlans cycle_plans;
constinit driver::GenuineDriver genuine;
constinit std::atomic<bool> ready{false};
constinit bool uses_genuine = false;
constinit std::atomic<bool> fault_seen{false};
constinit std::atomic<bool> exit_noted{false};
constinit std::atomic<pid_t> own_pid{0};  // id of the process that owns this memory
constinit std::atomic<pid_t> forking{0};  // id of the process that forks; a child may outlive its parent before it can ask
constinit sim::World* simulated_world = nullptr;
constinit std::atomic<bool> closes{false};
pthread_once_t load_once = PTHREAD_ONCE_INIT;
pthread_once_t open_once = PTHREAD_ONCE_INIT;

void Say(const char* text) noexcept {
  char line[2 * kMaxPath];
  const int length = snprintf(line, sizeof(line), "cuaudit: %s\n", text);
  if (length > 0) (void)!write(STDERR_FILENO, line, strlen(line));
}

void SayOf(const char* path, const char* error, const char* more = "") noexcept {
  char message[2 * kMaxPath];
  snprintf(message, sizeof(message), "%s: %s%s", path, error, more);
  Say(message);
}

[[noreturn]] void Refuse(const char* path, const char* error) noexcept {
  SayOf(path, error);
  _exit(2);
}

void Load() noexcept {
  const char* text = getenv("CUAUDIT_OPTIONS");
  char message[2 * kMaxPath];
  if (const char* error = ParseOptions(text == nullptr ? "" : text, &options, message, sizeof(message))) {
    Say(error);
    _exit(2);
  }
  if (options.journal[0] != '\0') {
    const char* const error = journal.Open(options.journal);
    if (error == nullptr) stacks.Attach(&journal, true);
    else if (options.record) SayOf(options.journal, error, ": nothing is recorded");  // in production the program comes first
    else Refuse(options.journal, error);
  }
  const bool stacked = journal.is_open() && journal.header().stack_depth.load() != 0;
  for (std::size_t i = 0; i < options.plan.size(); ++i) {
    if (options.plan.fault(i).site != 0 && !stacked)
      Refuse("fault", "expected a journal with call stacks for a fault that is addressed by site");
  }
  if (options.cycles[0] != '\0') {
    const char* const error = journal.is_open() ? cycle_plans.Open(options.cycles) : "expected a journal with it";
    if (error != nullptr) Refuse(options.cycles, error);
  }
  if (options.forks[0] != '\0') {
    const char* const error = journal.is_open() ? forker.Open(options.forks, options.journal) : "expected a journal with it";
    if (error != nullptr) Refuse(options.forks, error);
  }
}

bool HasDeviceNode() noexcept {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

// Path of this library, which must not be taken for the genuine driver.
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
  // Checked before anything calls into the library: two drop-ins that take each other for the driver would wait for each other forever.
  if (dlsym(genuine.handle, "cuaudit_mark") != nullptr) return "is, or links to, a drop-in of cuaudit: not a genuine driver";
  return nullptr;
}

void Describe(DriverKind kind, const char* path) noexcept {
  if (!journal.is_open()) return;
  JournalHeader& header = journal.header();
  header.driver_kind.store(kind, std::memory_order_relaxed);
  int version = 0;
  if (gate.next().DriverGetVersion(&version) == CUDA_SUCCESS) header.driver_version.store(version, std::memory_order_relaxed);
  snprintf(header.driver_path, sizeof(header.driver_path), "%.255s", path);
}

bool Attend(void*) noexcept {
  if (forker.is_open()) return forker.Attend();
  return StartAttendant(simulated_world, journal.is_open() ? &journal.header().forced_progress : nullptr);
}

driver::DriverRef OpenSimulated() noexcept {
  sim::WorldOptions& wish = options.world.world;
  if (journal.is_open()) {
    wish.observer = &gate;
    wish.origin = &Gate::CallUnderWay;
    wish.on_misuse = &Gate::NoteMisuse;
  }
  const std::uint64_t asked = options.world.device_memory;
  wish.device_bytes = (asked != 0 ? asked : wish.device_bytes) * static_cast<std::uint64_t>(wish.device_count);
  wish.kernels = &HostKernels();
  wish.on_awaited = &Attend;
  static_assert(sizeof(JournalHeader::world) >= kMaxWorldText);
  static_assert(sim::kKernelCounts == kKernelFates &&
                static_cast<int>(sim::KernelCount::Mismatched) == static_cast<int>(KernelFate::Mismatched));
  if (journal.is_open()) wish.kernel_counts = journal.header().kernels;
  sim::World* world = sim::CreateWorld(wish);
  const std::uint64_t granted = world == nullptr ? 0 : sim::DeviceBytes(world);
  if (world == nullptr || (asked != 0 && granted != asked)) {
    Say(asked == 0 ? "the simulated driver got no address space (limit on virtual memory?)"
                   : "device_memory: the profile's device has less, or the system grants less (limit on virtual memory?)");
    _exit(3);
  }
  if (journal.is_open()) FormatWorld(options.world, granted, journal.header().world, sizeof(journal.header().world));
  simulated_world = world;
  return sim::Driver(world);
}

// Called after the driver is open, because a constructor of the library may call the driver, and another thread's dlopen may wait for
// it.
void LoadKernels() noexcept {
  const char* const file = options.world.kernels;
  if (file[0] == '\0') return;
  const int saved = errno;
  // Makes this library's symbols global: the kernel library looks for cuaudit_register_kernel there, but a program that opened the
  // driver by dlopen keeps its symbols local.
  if (const char* const own = OwnPath()) dlopen(own, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  const bool loaded = dlopen(file, RTLD_NOW | RTLD_LOCAL) != nullptr;
  const char* const error = loaded ? nullptr : dlerror();
  if (!loaded || HostKernels().load(std::memory_order_acquire) == nullptr) {
    char message[2 * kMaxPath];
    snprintf(message, sizeof(message), "kernels: %s", loaded ? file : error == nullptr ? "cannot be loaded" : error);
    if (loaded)
      strncat(message, ": registered no host kernel: expected a library that does so when it is loaded (cuaudit/kernel.h)",
              sizeof(message) - strlen(message) - 1);
    Say(message);
    _exit(2);
  }
  errno = saved;
}

// _exit may be called in a signal handler, so no code of the program runs on that way out.
template <bool hollow>
void NoteExit() noexcept {
  if (exit_noted.exchange(true, std::memory_order_relaxed)) return;
  if (journal.is_open()) EachRunningThread([](pid_t thread) { gate.Note(ProcessEvent::Running, static_cast<std::uint64_t>(thread)); });
  gate.Note(ProcessEvent::Exit, 0);
  // After the event: what destructors of user objects release from here on was not released by the program.
  if (hollow && simulated_world != nullptr && fault_seen.load(std::memory_order_relaxed)) sim::RunHollow(simulated_world);
  if (gate.gone_beyond() == 0 && gate.textures_beyond() == 0) return;
  char message[128];
  snprintf(message, sizeof(message), "%u gone objects, %u textures are too many to follow", gate.gone_beyond(), gate.textures_beyond());
  Say(message);
}

void OpenDriver() noexcept {
  pthread_once(&load_once, &Load);
  driver::DriverRef next;
  DriverKind kind = DriverKind::Simulated;
  bool wants_genuine = options.driver == DriverChoice::Genuine;
  if (options.driver == DriverChoice::Auto && HasDeviceNode()) {
    wants_genuine =
        options.real_driver[0] != '\0' || driver::FindGenuineDriver(OwnPath(), options.real_driver, sizeof(options.real_driver));
  }
  if (wants_genuine) {
    if (options.world.given != nullptr) {
      SayOf("CUAUDIT_OPTIONS", options.world.given, ": expected driver=sim with it: a genuine driver cannot be asked for it");
      _exit(2);
    }
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
    next = OpenSimulated();
  }
  std::atomic<std::uint32_t>* unknown = journal.is_open() ? &journal.header().unknown_pointers : nullptr;
  gate.Arm(Resolving(next, uses_genuine ? &genuine : nullptr, unknown), journal.is_open() ? &journal : nullptr,
           journal.is_open() ? &stacks : nullptr, options.plan, options.scope);
  if (uses_genuine || options.world.world.undefined == sim::OnUndefined::Crash) gate.AnswerForGoneObjects();
  if (!uses_genuine)
    gate.Tell({[](void*, driver::CallId id, const std::uint64_t* values) noexcept { sim::NoteRefusedCall(simulated_world, id, values); }});
  // The host probes may not see how the driver opens and closes descriptors, but the program's close they see.
  if (journal.is_open()) gate.WatchDescriptors(reinterpret_cast<OnDescriptor>(dlsym(RTLD_DEFAULT, "cuaudit_host_descriptor")));
  if (forker.is_open()) forker.Start(&gate, &journal, simulated_world, &options.plan);
  Describe(kind, uses_genuine ? options.real_driver : "");
  if (journal.is_open()) atexit(&NoteExit<true>);
  ready.store(true, std::memory_order_release);
  if (!uses_genuine) LoadKernels();
}

void BeforeFork() noexcept { forking.store(getpid(), std::memory_order_relaxed); }

void AfterForkInChild() noexcept {
  exit_noted.store(false, std::memory_order_relaxed);
  own_pid.store(getpid(), std::memory_order_relaxed);
  WatchStopsInChild();
  forker.Leave();
  gate.Note(ProcessEvent::Fork, static_cast<std::uint64_t>(forking.load(std::memory_order_relaxed)));
}

// At this time the gate has a journal but no driver; it can write process events.
__attribute__((constructor)) void OnLoad() {
  pthread_once(&load_once, &Load);
  gate.Attach(journal.is_open() ? &journal : nullptr);
  own_pid.store(getpid(), std::memory_order_relaxed);
  gate.Note(ProcessEvent::Start, static_cast<std::uint64_t>(getppid()));
  pthread_atfork(&BeforeFork, nullptr, &AfterForkInChild);
  if (!journal.is_open()) return;
  at_quick_exit(&NoteExit<false>);
  if (SignalCallsAreOurs()) WatchStops(&journal, &stacks);
}

__attribute__((destructor)) void OnUnload() { NoteExit<true>(); }

// The file of the innermost caller outside this library.
struct Asker {
  const void* own = nullptr;
  const char* file = "?";
};

_Unwind_Reason_Code Step(_Unwind_Context* context, void* state) {
  Asker& asker = *static_cast<Asker*>(state);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(address - 1), &info) == 0) return _URC_NO_REASON;  // NOLINT(performance-no-int-to-ptr)
  if (asker.own == nullptr) asker.own = info.dli_fbase;
  if (info.dli_fbase == asker.own) return _URC_NO_REASON;
  asker.file = info.dli_fname;
  return _URC_END_OF_STACK;
}

}  // namespace

void NoteExportTable(const void* table_id) noexcept {
  if (uses_genuine || !driver::IsRuntimeTable(table_id)) return;
  Asker asker;
  _Unwind_Backtrace(&Step, &asker);
  if (journal.is_open()) {
    snprintf(journal.header().refused_runtime, sizeof(journal.header().refused_runtime), "%s", asker.file);
  }
  if (!journal.is_open() || options.record) {  // nobody may wait for the program and read its recording
    char directory[kMaxPath];
    snprintf(directory, sizeof(directory), "%s", OwnPath() == nullptr ? "" : OwnPath());
    if (char* const slash = strrchr(directory, '/')) *slash = '\0';
    strncat(directory, "/cudart", sizeof(directory) - strlen(directory) - 1);
    if (access(directory, F_OK) != 0) directory[0] = '\0';
    char message[4 * kMaxPath];
    driver::ExplainForeignRuntime(asker.file, directory, message, sizeof(message));
    Say(message);
  }
  _exit(3);
}

Gate& ProcessGate() noexcept {
  if (!ready.load(std::memory_order_acquire)) [[unlikely]]
    pthread_once(&open_once, &OpenDriver);
  return gate;
}

void NoteInit() noexcept {
  if (simulated_world == nullptr || closes.exchange(true, std::memory_order_relaxed)) return;
  const int saved = errno;
  atexit([] { sim::Shutdown(simulated_world); });
  errno = saved;
}

void NoteFailure() noexcept {
  if (options.plan.size() == 0 || !journal.is_open() || fault_seen.load(std::memory_order_relaxed)) return;
  bool fired = false;
  for (std::size_t i = 0; i < options.plan.size(); ++i) fired |= journal.header().fired[i].load(std::memory_order_relaxed) != 0;
  if (!fired || fault_seen.exchange(true, std::memory_order_relaxed)) return;
  // Exit handlers run in reverse order, so this one runs before all that the program has registered up to the fault.
  const int saved = errno;
  atexit(&NoteExit<true>);
  at_quick_exit(&NoteExit<false>);
  errno = saved;
}

void NoteLeaving() noexcept {
  const auto self = static_cast<pid_t>(syscall(SYS_getpid));
  if (self == own_pid.load(std::memory_order_relaxed) || forker.IsFork(self)) NoteExit<false>();
}

}  // namespace cuaudit::faults

// Reads the device memory in use on the device of the current context, or of a primary context that is alive. The calls bypass the plan
// and the journal. Returns false when there is no such context or the driver reports no figure.
static bool ReadDevice(std::uint64_t* bytes) noexcept {
  using namespace cuaudit::faults;
  if (!ready.load(std::memory_order_acquire)) return false;
  const cuaudit::driver::DriverRef& driver = gate.next();
  CUcontext context = nullptr;
  if (driver.CtxGetCurrent(&context) != CUDA_SUCCESS) return false;
  bool retained = false;
  if (context == nullptr) {
    unsigned flags = 0;
    int active = 0;
    if (driver.DevicePrimaryCtxGetState(0, &flags, &active) != CUDA_SUCCESS || active == 0) return false;
    if (driver.DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return false;
    retained = driver.CtxPushCurrent(context) == CUDA_SUCCESS;
    if (!retained) {
      (void)driver.DevicePrimaryCtxRelease(0);
      return false;
    }
  }
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  const bool read = driver.MemGetInfo(&free_bytes, &total) == CUDA_SUCCESS && free_bytes <= total;
  if (retained) {
    (void)driver.CtxPopCurrent(&context);
    (void)driver.DevicePrimaryCtxRelease(0);
  }
  *bytes = total - free_bytes;
  return read;
}

extern "C" __attribute__((visibility("default"))) void cuaudit_mark(int what, int value) {
  using namespace cuaudit::faults;
  if (what < 0 || what > static_cast<int>(MarkKind::Output)) return;
  const auto kind = static_cast<MarkKind>(what);
  const int saved = errno;
  std::uint64_t bytes = 0;
  const bool read = kind == MarkKind::CycleEnd && journal.is_open() && ReadDevice(&bytes);
  errno = saved;
  if (cycle_plans.is_open() && (kind == MarkKind::CycleBegin || kind == MarkKind::CycleEnd)) {
    const std::uint32_t next = journal.header().cycle.load(std::memory_order_relaxed) + 1;
    options.plan = kind == MarkKind::CycleBegin ? cycle_plans.Of(next) : Plan();
    gate.Rearm(options.plan, Anew::Faults);
  }
  gate.Mark(kind, static_cast<std::uint32_t>(value), read ? &bytes : nullptr);
}

// what = 0: the program's own pool hands a block out; 1: it takes the block back.
extern "C" __attribute__((visibility("default"))) void cuaudit_block(int what, std::uint64_t address, std::uint64_t bytes) {
  using namespace cuaudit::faults;
  if (what < 0 || what > 1 || address == 0) return;
  gate.Block(what == 0 ? MarkKind::BlockOut : MarkKind::BlockBack, address, bytes);
}

// Returns the driver that the process's calls reach: 1 the simulated one, 0 a genuine one, -1 none yet.
extern "C" __attribute__((visibility("default"))) int cuaudit_simulates() {
  using namespace cuaudit::faults;
  if (!ready.load(std::memory_order_acquire)) return -1;
  return uses_genuine ? 0 : 1;
}

// Called by cuaudit's own CUDA runtime when it has found this library.
extern "C" __attribute__((visibility("default"))) void cuaudit_runtime(int version) {
  using namespace cuaudit::faults;
  pthread_once(&load_once, &Load);
  if (journal.is_open()) journal.header().runtime_version.store(version, std::memory_order_relaxed);
}

// Called by that runtime when the program has done everything that it does at exit.
extern "C" __attribute__((visibility("default"))) void cuaudit_runtime_exit() {
  cuaudit::faults::gate.Note(cuaudit::faults::ProcessEvent::RuntimeExit, 0);
}
