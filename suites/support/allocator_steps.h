// SPDX-License-Identifier: MIT
// allocator_steps.h: the caching allocator's own lifecycle: init, mixed work on three streams, empty cache, teardown.
//
// Owns one reference to the primary context, three streams and the allocator. A step returns the first error. Close is tried twice;
// handles and references are released once (allocator/README.md, releases). Teardown also follows a failed Init.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <iterator>
#include <memory>

#include "allocator/allocator.h"

namespace cuaudit::alloc {

struct AllocatorSteps {
  AllocatorSteps(const Options& chosen, int round_count, int block_count) : options(chosen), rounds(round_count), blocks(block_count) {}

  Options options;
  int rounds;
  int blocks;                // 4 and more: other streams use some in each of the ways
  bool says_errors = false;  // on stderr

  CUcontext context = nullptr;
  CUstream stream[3] = {};
  std::unique_ptr<Allocator> allocator;

  CUresult Init(driver::DriverRef d) {
    const DeviceConfig config;
    CUresult result = Said("Init", d.Init(0));
    if (result == CUDA_SUCCESS) result = Said("DevicePrimaryCtxRetain", d.DevicePrimaryCtxRetain(&context, 0));
    if (result == CUDA_SUCCESS) result = Said("CtxSetCurrent", d.CtxSetCurrent(context));
    for (CUstream& one : stream) {
      if (result == CUDA_SUCCESS) result = Said("StreamCreate", d.StreamCreate(&one, CU_STREAM_NON_BLOCKING));
    }
    return result == CUDA_SUCCESS ? Said("Create", Allocator::Create(d, &config, 1, options, &allocator)) : result;
  }

  CUresult Work(driver::DriverRef d) {
    static constexpr std::size_t kMiB = std::size_t{1} << 20;
    static constexpr std::size_t kBytes[] = {1000, 600 * 1024, 3 * kMiB, 12 * kMiB, 12 * kMiB, 7 * kMiB};
    CUdeviceptr block[std::size(kBytes)] = {};
    CUresult result = CUDA_SUCCESS;
    for (int round = 0; round < rounds && result == CUDA_SUCCESS; ++round) {
      for (int i = 0; i < blocks && result == CUDA_SUCCESS; ++i) {
        CUstream owner = stream[i % 2];
        result = Said("Allocate", allocator->Allocate(0, kBytes[i], owner, &block[i]));
        if (result == CUDA_SUCCESS) result = Said("MemsetD8Async", d.MemsetD8Async(block[i], 1, 512, owner));
      }
      for (int i = 1; i < blocks && result == CUDA_SUCCESS; ++i) result = UseOnAnother(d, block[i], i % 2, i % 3);
      for (CUdeviceptr& one : block) {
        const CUresult freed = Said("Free", allocator->Free(one));
        if (result == CUDA_SUCCESS) result = freed;
        one = 0;
      }
    }
    if (result == CUDA_SUCCESS) result = Said("Trim", allocator->Trim(0, 24 * kMiB));
    if (result == CUDA_SUCCESS) result = Said("EmptyCache", allocator->EmptyCache());
    return result;
  }

  CUresult Teardown(driver::DriverRef d) {
    CUresult first = CUDA_SUCCESS;
    const auto keep = [&first](CUresult result) {
      if (first == CUDA_SUCCESS) first = result;
    };
    if (allocator != nullptr) keep(Twice("Close", [&] { return allocator->Close(); }));
    allocator.reset();
    for (CUstream& one : stream) {
      if (one != nullptr) keep(Said("StreamDestroy", d.StreamDestroy(one)));
      one = nullptr;
    }
    if (context != nullptr) {
      keep(Twice("CtxSetCurrent", [&] { return d.CtxSetCurrent(nullptr); }));
      keep(Said("DevicePrimaryCtxRelease", d.DevicePrimaryCtxRelease(0)));
      context = nullptr;
    }
    return first;
  }

 private:
  CUresult Said(const char* what, CUresult result) const {
    if (result != CUDA_SUCCESS && says_errors) std::fprintf(stderr, "allocator_lifecycle: %s: error %d\n", what, static_cast<int>(result));
    return result;
  }
  // What was refused and may be done twice is tried once more; that it was refused is told.
  template <typename Call>
  CUresult Twice(const char* what, Call call) const {
    const CUresult result = Said(what, call());
    if (result != CUDA_SUCCESS) (void)Said(what, call());
    return result;
  }
  CUresult Order(driver::DriverRef d, CUstream before, CUstream after) const {
    CUevent event = nullptr;
    CUresult result = Said("EventCreate", d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    if (result != CUDA_SUCCESS) return result;
    result = Said("EventRecord", d.EventRecord(event, before));
    if (result == CUDA_SUCCESS) result = Said("StreamWaitEvent", d.StreamWaitEvent(after, event, 0));
    const CUresult destroyed = Said("EventDestroy", d.EventDestroy(event));
    return result != CUDA_SUCCESS ? result : destroyed;
  }
  // The other stream uses a block, in each of the ways to tell of that.
  CUresult UseOnAnother(driver::DriverRef d, CUdeviceptr block, int owner, int way) const {
    CUstream user = stream[2];
    CUresult told = way == 1 ? Said("RecordStream", allocator->RecordStream(block, user)) : CUDA_SUCCESS;
    if (told == CUDA_SUCCESS) told = Order(d, stream[owner], user);
    if (told == CUDA_SUCCESS) told = Said("MemsetD8Async", d.MemsetD8Async(block, 2, 512, user));
    if (told != CUDA_SUCCESS) return told;
    if (way == 0) told = allocator->RecordUse(block, user);
    if (way == 2) {
      CUevent event = nullptr;
      told = d.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
      if (told == CUDA_SUCCESS) told = d.EventRecord(event, user);
      if (told == CUDA_SUCCESS) told = allocator->KeepAliveUntil(block, event);
      if (event != nullptr) {
        const CUresult destroyed = Said("EventDestroy", d.EventDestroy(event));
        if (told == CUDA_SUCCESS) return destroyed;
      }
    }
    if (told == CUDA_SUCCESS) return told;
    // Nothing tells of the use: then the host waits for it.
    (void)Said("telling of a use", told);
    (void)Twice("StreamSynchronize", [&] { return d.StreamSynchronize(user); });
    return told;
  }
};

}  // namespace cuaudit::alloc
