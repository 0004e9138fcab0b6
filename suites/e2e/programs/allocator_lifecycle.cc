// SPDX-License-Identifier: MIT
// The caching allocator as a subject: init, mixed work on three streams, empty cache, teardown, over whatever libcuda.so.1 is loaded.
//
// Usage   allocator_lifecycle [poll|wait] [segments|expandable|moving] [cycles]     default poll segments 2; a cycle that fails is reported
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "allocator/allocator.h"
#include "faults/driver/genuine_driver.h"
#include "include/cuaudit/mark.h"

namespace {

using cuaudit::alloc::Allocator;
using cuaudit::driver::DriverRef;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kStreams = 3;

struct Subject {
  CUcontext context = nullptr;
  CUstream stream[kStreams] = {};
  std::unique_ptr<Allocator> allocator;
};

CUresult Report(const char* what, CUresult result) {
  if (result != CUDA_SUCCESS) std::fprintf(stderr, "allocator_lifecycle: %s: error %d\n", what, static_cast<int>(result));
  return result;
}

#define TRY(call)                                  \
  do {                                             \
    const CUresult result = Report(#call, (call)); \
    if (result != CUDA_SUCCESS) return result;     \
  } while (false)

// What was refused and may be done twice is tried once more; handles and references are released once.
template <typename Call>
CUresult Twice(const char* what, Call call) {
  CUresult result = call();
  if (result != CUDA_SUCCESS) {
    (void)Report(what, result);
    result = call();
  }
  return result;
}

CUresult Init(DriverRef d, const cuaudit::alloc::Options& options, Subject* subject) {
  CUcontext context = nullptr;
  TRY(d.DevicePrimaryCtxRetain(&context, 0));
  subject->context = context;
  TRY(d.CtxSetCurrent(subject->context));
  for (CUstream& stream : subject->stream) {
    CUstream made = nullptr;  // what a refused call writes is no stream
    TRY(d.StreamCreate(&made, CU_STREAM_NON_BLOCKING));
    stream = made;
  }
  const cuaudit::alloc::DeviceConfig config;
  TRY(Allocator::Create(d, &config, 1, options, &subject->allocator));
  return CUDA_SUCCESS;
}

CUresult Order(DriverRef d, CUstream before, CUstream after) {
  CUevent event = nullptr;
  TRY(d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUresult result = Report("EventRecord", d.EventRecord(event, before));
  if (result == CUDA_SUCCESS) result = Report("StreamWaitEvent", d.StreamWaitEvent(after, event, 0));
  const CUresult destroyed = Report("EventDestroy", d.EventDestroy(event));
  return result != CUDA_SUCCESS ? result : destroyed;
}

// One block of each kind: the other stream uses it, in each of the ways to tell of that.
CUresult UseOnAnother(DriverRef d, Subject* s, CUdeviceptr block, int owner, int way) {
  CUstream user = s->stream[2];
  if (way == 1) TRY(s->allocator->RecordStream(block, user));
  TRY(Order(d, s->stream[owner], user));
  TRY(d.MemsetD8Async(block, 2, 512, user));
  CUresult told = CUDA_SUCCESS;
  if (way == 0) told = s->allocator->RecordUse(block, user);
  if (way == 2) {
    CUevent event = nullptr;
    told = d.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (told != CUDA_SUCCESS) event = nullptr;
    if (told == CUDA_SUCCESS) told = d.EventRecord(event, user);
    if (told == CUDA_SUCCESS) told = s->allocator->KeepAliveUntil(block, event);
    if (event != nullptr) (void)Report("EventDestroy", d.EventDestroy(event));
  }
  if (told == CUDA_SUCCESS) return told;
  (void)Report("telling of a use", told);
  (void)Twice("StreamSynchronize", [&] { return d.StreamSynchronize(user); });
  return told;
}

// What was freed serves a stream that has nothing, once all work on it is over.
CUresult MovePages(DriverRef d, Subject* s) {
  for (CUstream const stream : s->stream) TRY(d.StreamSynchronize(stream));
  CUdeviceptr block = 0;
  CUresult result = CUDA_SUCCESS;
  for (int turn = 0; turn < 2 && result == CUDA_SUCCESS; ++turn) {  // the first one records
    result = Report("Allocate", s->allocator->Allocate(0, (16 + 8 * static_cast<std::size_t>(turn)) * kMiB, s->stream[2], &block));
    if (result == CUDA_SUCCESS) result = Report("MemsetD8Async", d.MemsetD8Async(block, 3, 512, s->stream[2]));
    if (result == CUDA_SUCCESS) result = Report("StreamSynchronize", d.StreamSynchronize(s->stream[turn]));
    const CUresult freed = Report("Free", s->allocator->Free(block));
    if (result == CUDA_SUCCESS) result = freed;
    block = 0;
  }
  return result;
}

CUresult Work(DriverRef d, Subject* s) {
  static constexpr std::size_t kBytes[] = {1000, 600 * 1024, 3 * kMiB, 12 * kMiB, 12 * kMiB, 7 * kMiB};
  constexpr int kBlocks = 6;
  CUdeviceptr block[kBlocks] = {};
  CUresult result = CUDA_SUCCESS;
  for (int round = 0; round < 2 && result == CUDA_SUCCESS; ++round) {
    for (int i = 0; i < kBlocks && result == CUDA_SUCCESS; ++i) {
      CUstream owner = s->stream[i % 2];
      result = Report("Allocate", s->allocator->Allocate(0, kBytes[i], owner, &block[i]));
      if (result == CUDA_SUCCESS) result = Report("MemsetD8Async", d.MemsetD8Async(block[i], 1, 512, owner));
    }
    for (int i = 1; i < kBlocks && result == CUDA_SUCCESS; ++i) result = UseOnAnother(d, s, block[i], i % 2, i % 3);
    for (CUdeviceptr& one : block) {
      const CUresult freed = Report("Free", s->allocator->Free(one));
      if (result == CUDA_SUCCESS) result = freed;
      one = 0;
    }
  }
  if (result == CUDA_SUCCESS && s->allocator->options().remap_budget > 0.0) result = MovePages(d, s);
  if (result == CUDA_SUCCESS) result = Report("Trim", s->allocator->Trim(0, 24 * kMiB));
  if (result == CUDA_SUCCESS) result = Report("EmptyCache", s->allocator->EmptyCache());
  return result;
}

CUresult Teardown(DriverRef d, Subject* s) {
  CUresult first = CUDA_SUCCESS;
  const auto keep = [&first](CUresult result) {
    if (first == CUDA_SUCCESS) first = result;
  };
  if (s->allocator != nullptr) keep(Twice("Close", [&] { return s->allocator->Close(); }));
  s->allocator.reset();
  for (CUstream stream : s->stream) {
    if (stream != nullptr) keep(Report("StreamDestroy", d.StreamDestroy(stream)));
  }
  if (s->context != nullptr) {
    keep(Twice("CtxSetCurrent", [&] { return d.CtxSetCurrent(nullptr); }));
    keep(Report("DevicePrimaryCtxRelease", d.DevicePrimaryCtxRelease(0)));
  }
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  cuaudit::alloc::Options options;
  int cycles = 2;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "wait") == 0) options.reuse = cuaudit::alloc::Reuse::Wait;
    if (std::strcmp(argv[i], "expandable") == 0) options.expandable_segments = true;
    if (std::strcmp(argv[i], "moving") == 0) {
      options.expandable_segments = options.trust_stream_handles = true;
      options.remap_budget = 1.0;
      options.page_size = 4 * kMiB;
    }
    if (std::atoi(argv[i]) > 0) cycles = std::atoi(argv[i]);
  }
  // As any program finds it; the table is made from the file that this led to.
  static cuaudit::driver::GenuineDriver driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  link_map* found = nullptr;
  const char* wrong = "not found";
  if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &found) == 0)
    wrong = cuaudit::driver::OpenGenuineDriver(found->l_name, &driver);
  if (wrong != nullptr) {
    std::fprintf(stderr, "allocator_lifecycle: libcuda.so.1: %s\n", wrong);
    return 3;
  }
  const DriverRef d = cuaudit::driver::Driver(&driver);
  int failed = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    cuaudit_cycle_begin();
    cuaudit_phase(CUAUDIT_INIT);
    Subject subject;
    CUresult result = Report("Init", d.Init(0));
    if (result == CUDA_SUCCESS) result = Init(d, options, &subject);
    cuaudit_phase(CUAUDIT_WORK);
    if (result == CUDA_SUCCESS) result = Work(d, &subject);
    cuaudit_phase(CUAUDIT_TEARDOWN);
    const CUresult ended = Teardown(d, &subject);
    if (result != CUDA_SUCCESS || ended != CUDA_SUCCESS) ++failed;
    cuaudit_cycle_end();
  }
  return failed == 0 ? 0 : 1;
}
