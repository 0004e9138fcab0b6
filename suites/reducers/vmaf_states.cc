// SPDX-License-Identifier: MIT
// A state, its table of functions and its ring of pictures, made by a caller and closed by a framework: A1, A2, A3, A5, A6.
//
// With CUAUDIT_SUBJECT this is the program of that name; without, what cuaudit must say of each.
#ifdef CUAUDIT_SUBJECT
#include <dlfcn.h>
#include <pthread.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace vmaf_a1_state_by_value {

// vmaf_a1_state_by_value: a state that the caller makes and a framework imports.
//
// Story   A1: import copies the struct and closes its own copy. The block that init made for the caller stays: there is no function that
//         frees it. 40 bytes a cycle. Repaired: there is one.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Usage   vmaf_a1_state_by_value defective|repaired CYCLES

struct State {
  CUstream stream;
  char rest[32];
};

int StateInit(State** out) {
  State* const state = static_cast<State*>(calloc(1, sizeof(State)));
  if (state == nullptr) return Failed("state");
  if (cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    free(state);
    return Failed("state");
  }
  *out = state;
  return 0;
}

// The framework owns the stream from here on.
State Import(const State* state) { return *state; }

int Close(const State* imported) { return cuStreamDestroy(imported->stream) == CUDA_SUCCESS ? 0 : Failed("close"); }

int Cycle(bool repaired) {
  State* state = nullptr;
  if (Enter() != 0) return 1;
  int status = StateInit(&state);
  if (status == 0) {
    const State imported = Import(state);
    status = Close(&imported);
    if (repaired) free(state);
  }
  return Leave() != 0 ? 1 : status;
}

int Main(int argc, char** argv) { return Cycles(argc, argv, Cycle); }

}  // namespace vmaf_a1_state_by_value

namespace vmaf_a2_function_table {

// vmaf_a2_function_table: the driver, loaded by name into a table of functions.
//
// Story   A2: release forgets the table: its block of 752 bytes and the reference of the library, a cycle.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Usage   vmaf_a2_function_table defective|repaired CYCLES

struct Table {
  void* library;
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*stream_destroy)(CUstream);
  void* rest[91];
};
static_assert(sizeof(Table) == 752);

Table* Load() {
  Table* const table = static_cast<Table*>(calloc(1, sizeof(Table)));
  if (table == nullptr) return nullptr;
  table->library = dlopen("libcuda.so.1", RTLD_NOW);
  if (table->library != nullptr) {
    table->stream_create = reinterpret_cast<CUresult (*)(CUstream*, unsigned)>(dlsym(table->library, "cuStreamCreate"));
    table->stream_destroy = reinterpret_cast<CUresult (*)(CUstream)>(dlsym(table->library, "cuStreamDestroy_v2"));
    if (table->stream_create != nullptr && table->stream_destroy != nullptr) return table;
    dlclose(table->library);
  }
  free(table);
  return nullptr;
}

void Unload(Table* table) {
  dlclose(table->library);
  free(table);
}

int Cycle(bool repaired) {
  if (Enter() != 0) return 1;
  CUstream stream = nullptr;
  Table* const table = Load();
  int status = table == nullptr ? Failed("table") : 0;
  if (table != nullptr) {
    if (table->stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      status = Failed("stream");
    } else if (table->stream_destroy(stream) != CUDA_SUCCESS) {
      status = Failed("stream");
    }
    if (repaired) Unload(table);
  }
  return Leave() != 0 ? 1 : status;
}

int Main(int argc, char** argv) { return Cycles(argc, argv, Cycle); }

}  // namespace vmaf_a2_function_table

namespace vmaf_a3_ring_buffer {

// vmaf_a3_ring_buffer: a ring of preallocated pictures under a lock.
//
// Story   A3: close takes the lock and frees the ring with it: the mutex is never unlocked and never destroyed.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Usage   vmaf_a3_ring_buffer defective|repaired CYCLES

struct Ring {
  pthread_mutex_t lock;
  CUdeviceptr picture;
};

Ring* Open() {
  Ring* const ring = static_cast<Ring*>(calloc(1, sizeof(Ring)));
  if (ring == nullptr) return nullptr;
  if (cuMemAlloc(&ring->picture, 4096) != CUDA_SUCCESS) {
    free(ring);
    return nullptr;
  }
  pthread_mutex_init(&ring->lock, nullptr);
  return ring;
}

int Close(Ring* ring, bool repaired) {
  pthread_mutex_lock(&ring->lock);
  const CUresult code = cuMemFree(ring->picture);
  if (repaired) {
    pthread_mutex_unlock(&ring->lock);
    pthread_mutex_destroy(&ring->lock);
  }
  free(ring);
  return code == CUDA_SUCCESS ? 0 : Failed("close");
}

int Cycle(bool repaired) {
  if (Enter() != 0) return 1;
  Ring* const ring = Open();
  const int status = ring == nullptr ? Failed("ring") : Close(ring, repaired);
  return Leave() != 0 ? 1 : status;
}

int Main(int argc, char** argv) { return Cycles(argc, argv, Cycle); }

}  // namespace vmaf_a3_ring_buffer

namespace vmaf_a5_free_then_close {

// vmaf_a5_free_then_close: A5 of vmaf_contexts.cc as a program, which dies of it on a genuine driver.
//
// Story   A5: the caller frees the state, and with it the stream, before the context of the framework that borrowed it is closed. A driver
//         that is handed a stream which is gone reads memory of its own that it has freed.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Usage   vmaf_a5_free_then_close defective|repaired

struct State {
  CUstream stream;
};

// Works on a stream of the state's.
struct Framework {
  CUstream borrowed;
  CUdeviceptr picture;
};

int Open(Framework* framework, const State& state) {
  framework->borrowed = state.stream;
  if (cuMemAlloc(&framework->picture, 4096) != CUDA_SUCCESS) return Failed("open");
  if (cuMemsetD8Async(framework->picture, 0, 4096, state.stream) == CUDA_SUCCESS) return 0;
  (void)cuMemFree(framework->picture);
  return Failed("fetch");
}

int Close(const Framework& framework) {
  const CUresult waited = cuStreamSynchronize(framework.borrowed);
  const CUresult freed = cuMemFree(framework.picture);
  return waited == CUDA_SUCCESS && freed == CUDA_SUCCESS ? 0 : Failed("close");
}

int Run(bool free_first) {
  State state;
  Framework framework;
  if (cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return Failed("state");
  int status = Open(&framework, state);
  const bool opened = status == 0;
  if (opened && !free_first) status = Close(framework);
  if (cuStreamDestroy(state.stream) != CUDA_SUCCESS) status = Failed("state free");
  if (opened && free_first) status |= Close(framework);
  return status;
}

int Main(int argc, char** argv) { return Once(argc, argv, Run); }

}  // namespace vmaf_a5_free_then_close

namespace vmaf_a6_double_free {

// vmaf_a6_double_free: a program that has been freeing the state itself.
//
// Story   A6: before the repair of A1 nobody freed the caller's state, so careful callers did, with plain free. The repair adds a
//         function that does; a caller who takes it up and keeps its own free frees twice. No call fails.
// Source  https://github.com/Netflix/vmaf/issues/1300 and https://github.com/lusoris/vmaf, docs/adr/0157; written anew from the facts.
// Usage   vmaf_a6_double_free defective|repaired

struct State {
  CUstream stream;
  char rest[32];
};

State* StateInit() {
  State* const state = static_cast<State*>(calloc(1, sizeof(State)));
  if (state == nullptr) return nullptr;
  if (cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) return state;
  free(state);
  return nullptr;
}

int StateFree(State* state) {
  const CUresult code = cuStreamDestroy(state->stream);
  free(state);
  return code == CUDA_SUCCESS ? 0 : Failed("state free");
}

int Run(bool frees_too) {
  State* const volatile state = StateInit();
  if (state == nullptr) return Failed("state init");
  const int status = StateFree(state);
  if (frees_too) free(state);
  return status;
}

int Main(int argc, char** argv) { return Once(argc, argv, Run); }

}  // namespace vmaf_a6_double_free
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::CUAUDIT_SUBJECT::Main(argc, argv); }
#else
#include "cuaudit/lifecycle.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_states {
namespace {

constexpr const char* kVmafA1 = "vmaf_a1_state_by_value";

TEST(VmafA1, TheCallersStateStays) { EXPECT_EQ(PerCycle(kVmafA1, "defective"), "host_heap 1 (40 bytes)"); }

TEST(VmafA1, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kVmafA1, "repaired"), "");
  ExpectNothingLost(kVmafA1, "repaired", "host_oom", 1);
}

constexpr const char* kVmafA2 = "vmaf_a2_function_table";

TEST(VmafA2, TheTableStays) { EXPECT_EQ(PerCycle(kVmafA2, "defective"), "dlopen_reference 1, host_heap 1 (752 bytes)"); }

TEST(VmafA2, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kVmafA2, "repaired"), "");
  ExpectNothingLost(kVmafA2, "repaired", "host_oom", 1);
}

constexpr const char* kVmafA3 = "vmaf_a3_ring_buffer";

TEST(VmafA3, TheMutexIsFreedWhileLocked) { EXPECT_EQ(PerCycle(kVmafA3, "defective"), "mutex 1, mutex_freed mutex, mutex_locked mutex"); }

TEST(VmafA3, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kVmafA3, "repaired"), "");
  ExpectNothingLost(kVmafA3, "repaired", "host_oom", 1);
}

constexpr const char* kVmafA5 = "vmaf_a5_free_then_close";

// A genuine driver dies of the stream, which is a verdict beside that on what it was handed.
TEST(VmafA5Program, CloseUsesTheFreedState) {
  const std::string died = GenuineDriverIsChosen() ? "crash, " : "";
  EXPECT_EQ(InOneRun(kVmafA5, "defective"), died + "use_after_release stream");
}

TEST(VmafA5Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kVmafA5, "repaired"), "");
  ExpectUnwindsCleanly(kVmafA5, "repaired");
}

constexpr const char* kVmafA6 = "vmaf_a6_double_free";

// The C library's allocator notices it too, and ends the program.
TEST(VmafA6, TheCallerFreesWhatTheRepairHasFreed) { EXPECT_EQ(InOneRun(kVmafA6, "defective"), "abort, double_release host_heap"); }

TEST(VmafA6, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kVmafA6, "repaired"), "");
  ExpectNothingLost(kVmafA6, "repaired", "host_oom", 1);
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_states
#endif
