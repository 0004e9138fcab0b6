// SPDX-License-Identifier: MIT
// vmaf_a3_ring_buffer.cc: a ring of preallocated pictures under a lock.
//
// Story   A3: close takes the lock and frees the ring with it: the mutex is never unlocked and never destroyed.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
// Usage   vmaf_a3_ring_buffer defective|repaired CYCLES
#ifdef CUAUDIT_SUBJECT
#include <pthread.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

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

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Cycles(argc, argv, cuaudit::reducers::Cycle); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_a3_ring_buffer {
namespace {

constexpr const char* kProgram = "vmaf_a3_ring_buffer";

TEST(VmafA3, TheMutexIsFreedWhileLocked) { EXPECT_EQ(PerCycle(kProgram, "defective"), "mutex 1, mutex_freed mutex, mutex_locked mutex"); }

TEST(VmafA3, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kProgram, "repaired"), "");
  ExpectNothingLost(kProgram, "repaired", "host_oom", 1);
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a3_ring_buffer
#endif
