// SPDX-License-Identifier: MIT
// vmaf_b9_pool_fetch.cc: a pool of one picture; who fetches it while it is out waits.
//
// Story   B9: fetch takes a picture out of the pool and then needs three more things: a block of private data, what a callback puts into
//         it, and a reference count. Where one of them fails it returns the error. The picture is not put back and nobody is woken, so
//         the next fetch waits for ever; and the private data is freed while the picture still points to it, so closing the pool frees
//         it again.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960, A.2 and A.3; written anew from the facts.
// Usage   vmaf_b9_pool_fetch defective|defective_alone|repaired       alone: a fetch that failed is not tried again
#ifdef CUAUDIT_SUBJECT
#include <pthread.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

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

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) {
  using namespace cuaudit::reducers;
  const char* const form = argc > 1 ? argv[1] : "repaired";
  repaired = strcmp(form, "repaired") == 0;
  if (Enter() != 0) return 1;
  const int status = Run(strcmp(form, "defective_alone") != 0);
  return Leave() != 0 || status != 0 ? 1 : 0;
}
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_b9_pool_fetch {
namespace {

constexpr const char* kProgram = "vmaf_b9_pool_fetch";

TEST(VmafB9, TheNextFetchWaitsForEver) { EXPECT_EQ(Replayed("malloc#1=host_oom", kProgram, "defective", "4000"), "hang"); }

TEST(VmafB9, ThePrivatePointerDangles) {
  EXPECT_EQ(Replayed("malloc#1=host_oom", kProgram, "defective_alone"), "") << "nothing dangles yet";
  EXPECT_EQ(Replayed("malloc#2=host_oom", kProgram, "defective_alone"), "abort, double_release host_heap") << "callback";
  EXPECT_EQ(Replayed("malloc#3=host_oom", kProgram, "defective_alone"), "abort, double_release host_heap") << "reference count";
}

TEST(VmafB9, RepairedIsSilent) { ExpectNothingLost(kProgram, "repaired", "host_oom", 3); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b9_pool_fetch
#endif
