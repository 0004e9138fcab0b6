// SPDX-License-Identifier: MIT
// Pools of pictures and threads, and pinned buffers, when the host has no memory or no thread: B9, B10, B11.
//
// With CUAUDIT_SUBJECT this is the program of that name; without, what cuaudit must say of each.
#ifdef CUAUDIT_SUBJECT
#include <pthread.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace vmaf_b9_pool_fetch {

// vmaf_b9_pool_fetch: a pool of one picture; who fetches it while it is out waits.
//
// Story   B9: fetch takes a picture out of the pool and then needs three more things: a block of private data, what a callback puts into
//         it, and a reference count. Where one of them fails it returns the error. The picture is not put back and nobody is woken, so
//         the next fetch waits for ever; and the private data is freed while the picture still points to it, so closing the pool frees
//         it again.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960, A.2 and A.3; written anew from the facts.
// Usage   vmaf_b9_pool_fetch defective|defective_alone|repaired       alone: a fetch that failed is not tried again

struct Private {
  void* cookie;
  char name[56];
};
struct Picture {
  CUdeviceptr plane;
  Private* data;
  int* references;
};
struct Pool {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Picture picture;
  bool out;
};

bool repaired = false;

int Callback(Private* data) {
  data->cookie = malloc(24);
  return data->cookie == nullptr ? Failed("callback") : 0;
}

void PutBack(Pool* pool) {
  pthread_mutex_lock(&pool->lock);
  pool->out = false;
  pthread_cond_signal(&pool->changed);
  pthread_mutex_unlock(&pool->lock);
}

void FreePrivate(Picture* picture) {
  if (picture->data == nullptr) return;
  free(picture->data->cookie);
  free(picture->data);
  if (repaired) picture->data = nullptr;
}

int Fill(Picture* picture) {
  picture->data = static_cast<Private*>(calloc(1, sizeof(Private)));
  if (picture->data == nullptr) return Failed("private data");
  if (Callback(picture->data) != 0) {
    FreePrivate(picture);
    return 1;
  }
  picture->references = static_cast<int*>(malloc(sizeof(int)));
  if (picture->references != nullptr) return 0;
  FreePrivate(picture);
  return Failed("reference count");
}

int Fetch(Pool* pool) {
  pthread_mutex_lock(&pool->lock);
  while (pool->out) pthread_cond_wait(&pool->changed, &pool->lock);
  pool->out = true;
  pthread_mutex_unlock(&pool->lock);
  if (Fill(&pool->picture) == 0) return 0;
  if (repaired) PutBack(pool);
  return 1;
}

void Return(Pool* pool) {
  free(pool->picture.references);
  FreePrivate(&pool->picture);
  pool->picture.data = nullptr;
  pool->picture.references = nullptr;
  PutBack(pool);
}

int PoolOpen(Pool* pool) {
  memset(pool, 0, sizeof(*pool));
  if (cuMemAlloc(&pool->picture.plane, 4096) != CUDA_SUCCESS) return Failed("plane");
  pthread_mutex_init(&pool->lock, nullptr);
  pthread_cond_init(&pool->changed, nullptr);
  return 0;
}

int PoolClose(Pool* pool) {
  free(pool->picture.data);
  pthread_cond_destroy(&pool->changed);
  pthread_mutex_destroy(&pool->lock);
  return cuMemFree(pool->picture.plane) == CUDA_SUCCESS ? 0 : Failed("plane");
}

int Run(bool again) {
  Pool pool;
  if (PoolOpen(&pool) != 0) return 1;
  int status = Fetch(&pool);
  if (status != 0 && again) status = Fetch(&pool);
  if (status == 0) Return(&pool);
  return PoolClose(&pool) != 0 ? 1 : status;
}

int Main(int argc, char** argv) {
  const char* const form = argc > 1 ? argv[1] : "repaired";
  repaired = strcmp(form, "repaired") == 0;
  if (Enter() != 0) return 1;
  const int status = Run(strcmp(form, "defective_alone") != 0);
  return Leave() != 0 || status != 0 ? 1 : 0;
}

}  // namespace vmaf_b9_pool_fetch

namespace vmaf_b10_thread_pool {

// vmaf_b10_thread_pool: a pool that starts its workers in a loop.
//
// Story   B10: the k-th thread cannot be started. The error is returned; the threads so far run on and are never joined, and the lock
//         and the memory of the pool stay.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960 and its neighbours; written anew from the facts.
// Usage   vmaf_b10_thread_pool defective|repaired

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

int Main(int argc, char** argv) {
  if (Enter() != 0) return 1;
  const int status = Run(argc > 1 && strcmp(argv[1], "repaired") == 0);
  return Leave() != 0 || status != 0 ? 1 : 0;
}

}  // namespace vmaf_b10_thread_pool

namespace vmaf_b11_pinned_private {

// vmaf_b11_pinned_private: a pinned buffer with private data beside it.
//
// Story   B11: the private data is host memory, and there is none. One form returns the error and forgets the pinned buffer, the other
//         does not look and writes through null.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960 and its neighbours; written anew from the facts.
// Usage   vmaf_b11_pinned_private defective|defective_writes|repaired

enum class Form { Repaired, Forgets, Writes };

struct Private {
  void* pinned;
};

Private* PinnedAlloc(Form form) {
  void* pinned = nullptr;
  if (cuMemHostAlloc(&pinned, 4096, 0) != CUDA_SUCCESS) return nullptr;
  Private* const volatile data = static_cast<Private*>(malloc(sizeof(Private)));
  if (data == nullptr && form != Form::Writes) {
    if (form == Form::Repaired) (void)cuMemFreeHost(pinned);
    return nullptr;
  }
  data->pinned = pinned;
  return data;
}

int Run(Form form) {
  Private* const data = PinnedAlloc(form);
  if (data == nullptr) return Failed("pinned");
  const CUresult code = cuMemFreeHost(data->pinned);
  free(data);
  return code == CUDA_SUCCESS ? 0 : Failed("pinned free");
}

int Main(int argc, char** argv) {
  const char* const form = argc > 1 ? argv[1] : "repaired";
  if (Enter() != 0) return 1;
  const int status = Run(strcmp(form, "defective") == 0          ? Form::Forgets
                         : strcmp(form, "defective_writes") == 0 ? Form::Writes
                                                                 : Form::Repaired);
  return Leave() != 0 || status != 0 ? 1 : 0;
}

}  // namespace vmaf_b11_pinned_private
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::CUAUDIT_SUBJECT::Main(argc, argv); }
#else
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_pools {
namespace {

constexpr const char* kVmafB9 = "vmaf_b9_pool_fetch";

TEST(VmafB9, TheNextFetchWaitsForEver) { EXPECT_EQ(Replayed("malloc#1=host_oom", kVmafB9, "defective", "4000"), "hang"); }

TEST(VmafB9, ThePrivatePointerDangles) {
  EXPECT_EQ(Replayed("malloc#1=host_oom", kVmafB9, "defective_alone"), "") << "nothing dangles yet";
  EXPECT_EQ(Replayed("malloc#2=host_oom", kVmafB9, "defective_alone"), "abort, double_release host_heap") << "callback";
  EXPECT_EQ(Replayed("malloc#3=host_oom", kVmafB9, "defective_alone"), "abort, double_release host_heap") << "reference count";
}

TEST(VmafB9, RepairedIsSilent) { ExpectNothingLost(kVmafB9, "repaired", "host_oom", 3); }

constexpr const char* kVmafB10 = "vmaf_b10_thread_pool";

TEST(VmafB10, ThreadsAndLockStay) {
  EXPECT_EQ(Replayed("pthread_create#1=EAGAIN", kVmafB10, "defective"), "host_heap 1, mutex 1");
  EXPECT_EQ(Replayed("pthread_create#2=EAGAIN", kVmafB10, "defective"), "host_heap 1, mutex 1, thread 1");
  EXPECT_EQ(Replayed("pthread_create#3=EAGAIN", kVmafB10, "defective"), "host_heap 1, mutex 1, thread 2");
}

TEST(VmafB10, RepairedIsSilent) { ExpectNothingLost(kVmafB10, "repaired", "host_oom,host_thread", 4); }

constexpr const char* kVmafB11 = "vmaf_b11_pinned_private";

TEST(VmafB11, ThePinnedBufferStays) { EXPECT_EQ(Replayed("malloc#1=host_oom", kVmafB11, "defective"), "pinned_memory 1"); }

TEST(VmafB11, WritesThroughNull) { EXPECT_EQ(Replayed("malloc#1=host_oom", kVmafB11, "defective_writes"), "crash"); }

TEST(VmafB11, RepairedIsSilent) { ExpectNothingLost(kVmafB11, "repaired", "host_oom", 1); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_pools
#endif
