// SPDX-License-Identifier: MIT
// vmaf_b10_thread_pool.cc: a pool that starts its workers in a loop.
//
// Story   B10: the k-th thread cannot be started. The error is returned; the threads so far run on and are never joined, and the lock
//         and the memory of the pool stay.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960 and its neighbours; written anew from the facts.
// Usage   vmaf_b10_thread_pool defective|repaired
#ifdef CUAUDIT_SUBJECT
#include <pthread.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

enum { kWorkers = 3 };

struct Pool {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t worker[kWorkers];
  int started;
  bool stop;
};

void* Work(void* argument) {
  Pool* const pool = static_cast<Pool*>(argument);
  pthread_mutex_lock(&pool->lock);
  while (!pool->stop) pthread_cond_wait(&pool->changed, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
  return nullptr;
}

void PoolClose(Pool* pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stop = true;
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->lock);
  while (pool->started > 0) pthread_join(pool->worker[--pool->started], nullptr);
  pthread_cond_destroy(&pool->changed);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}

Pool* PoolOpen(bool unwinds) {
  Pool* const pool = static_cast<Pool*>(calloc(1, sizeof(Pool)));
  if (pool == nullptr) return nullptr;
  pthread_mutex_init(&pool->lock, nullptr);
  pthread_cond_init(&pool->changed, nullptr);
  for (pthread_t& worker : pool->worker) {
    if (pthread_create(&worker, nullptr, Work, pool) != 0) {
      if (unwinds) PoolClose(pool);
      return nullptr;
    }
    ++pool->started;
  }
  return pool;
}

int Run(bool unwinds) {
  CUstream stream = nullptr;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return Failed("stream");
  Pool* const pool = PoolOpen(unwinds);
  if (pool != nullptr) PoolClose(pool);
  const bool destroyed = cuStreamDestroy(stream) == CUDA_SUCCESS;
  return pool != nullptr && destroyed ? 0 : Failed("pool");
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) {
  using namespace cuaudit::reducers;
  if (Enter() != 0) return 1;
  const int status = Run(argc > 1 && strcmp(argv[1], "repaired") == 0);
  return Leave() != 0 || status != 0 ? 1 : 0;
}
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_b10_thread_pool {
namespace {

constexpr const char* kProgram = "vmaf_b10_thread_pool";

TEST(VmafB10, ThreadsAndLockStay) {
  EXPECT_EQ(Replayed("pthread_create#1=EAGAIN", kProgram, "defective"), "host_heap 1, mutex 1");
  EXPECT_EQ(Replayed("pthread_create#2=EAGAIN", kProgram, "defective"), "host_heap 1, mutex 1, thread 1");
  EXPECT_EQ(Replayed("pthread_create#3=EAGAIN", kProgram, "defective"), "host_heap 1, mutex 1, thread 2");
}

TEST(VmafB10, RepairedIsSilent) { ExpectNothingLost(kProgram, "repaired", "host_oom,host_thread", 4); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b10_thread_pool
#endif
