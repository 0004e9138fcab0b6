// SPDX-License-Identifier: MIT
// host_blocks.c: programs and their heap; a definition chooses the program.
//
//   host_blocks lose FUNCTION · host_blocks resize fails|shrinks|cuts|moves · host_blocks mutexes N · host_blocks frees WAY
//     lose     loses one block of 100 bytes, from any allocating function, when the allocation of device memory fails
//     fails    realloc refuses; the mutex inside lives on · shrinks  the block stays, the mutex inside too
//     cuts     the block stays, the mutex lay behind its new end · moves  the block goes elsewhere, its mutex was never destroyed
//     mutexes  N alive at once, then all destroyed
//     frees    twice · inside  an address inside a block · foreign  what no allocator gave out · once
//   own_malloc [N] (OWN_MALLOC)      has its own malloc, as a program that is linked with an allocator; loses a block of it and of nothing else
//     N        marked cycles, each of which loses a block
//     With OTHER_MALLOC beside OWN_MALLOC: the same allocator in a shared library, which dies of any block that it did not hand out
#include <cuaudit/mark.h>
#include <cuda.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OWN_MALLOC)

enum { kArena = 16 << 20, kHeader = 16 };

static _Alignas(16) char arena[kArena];
static size_t used;

static void check(const char *block) {
#ifdef OTHER_MALLOC
  if (block != NULL && (block < arena || block >= arena + kArena)) abort();
#else
  (void)block;
#endif
}

static size_t length(const char *block) {
  size_t bytes = 0;
  if (block != NULL) memcpy(&bytes, block - kHeader, sizeof(bytes));
  return bytes;
}

void *malloc(size_t bytes) {
  const size_t whole = (bytes + kHeader + 15) & ~(size_t)15;
  const size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
  if (whole < bytes || at + whole > kArena) return NULL;
  memcpy(arena + at, &bytes, sizeof(bytes));
  return arena + at + kHeader;
}

void free(void *block) { check(block); }

void *calloc(size_t count, size_t bytes) {
  size_t all;
  return __builtin_mul_overflow(count, bytes, &all) ? NULL : malloc(all);  // the arena is zero, and nothing comes back
}

void *realloc(void *block, size_t bytes) {
  void *const moved = malloc(bytes);
  check(block);
  if (block == NULL || moved == NULL) return moved;
  return memcpy(moved, block, length(block) < bytes ? length(block) : bytes);
}

#ifdef OTHER_MALLOC
size_t malloc_usable_size(void *block) {
  check(block);
  return length(block);
}
#else
static void *volatile lost;

int main(int argc, char **argv) {
  CUcontext context;
  int i;
  const int cycles = argc > 1 ? atoi(argv[1]) : 1;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 9;
  for (i = 0; i < cycles; ++i) {
    if (argc > 1) cuaudit_cycle_begin();
    lost = malloc(100);
    if (argc > 1) cuaudit_cycle_end();
  }
  return cuCtxDestroy(context) == CUDA_SUCCESS ? 0 : 9;
}
#endif

#else

enum { kBlock = 4096, kEnd = kBlock - 64 };

static void *volatile lost;

static int lose(const char *function) {
  void *block = NULL;
  if (strcmp(function, "malloc") == 0) block = malloc(100);
  if (strcmp(function, "calloc") == 0) block = calloc(4, 25);
  if (strcmp(function, "realloc") == 0) block = realloc(NULL, 100);
  if (strcmp(function, "reallocarray") == 0) block = reallocarray(NULL, 4, 25);
  if (strcmp(function, "memalign") == 0) block = memalign(64, 100);
  if (strcmp(function, "aligned_alloc") == 0) block = aligned_alloc(64, 128);
  if (strcmp(function, "posix_memalign") == 0 && posix_memalign(&block, 64, 100) != 0) block = NULL;
  if (strcmp(function, "valloc") == 0) block = valloc(100);
  if (strcmp(function, "pvalloc") == 0) block = pvalloc(100);
  lost = block;
  return block == NULL;
}

// How the block came out: 's' stayed, 'm' moved, 'f' failed.
static int resize(const char *mode) {
  static volatile size_t impossible = PTRDIFF_MAX;
  char *volatile block = malloc(kBlock);  // volatile: a failed realloc leaves it, which compilers do not believe
  char *behind = malloc(64);              // so that it cannot grow in place
  const uintptr_t was = (uintptr_t)block;
  const size_t at = strcmp(mode, "cuts") == 0 ? kEnd : 0;
  char *after;
  char how;
  pthread_mutex_init((pthread_mutex_t *)(void *)(block + at), NULL);
  if (strcmp(mode, "fails") == 0) {
    after = realloc(block, impossible);
    how = after == NULL ? 'f' : '?';
    if (after == NULL) after = block;
  } else {
    after = realloc(block, strcmp(mode, "moves") == 0 ? 64 * kBlock : 256);
    how = (uintptr_t)after == was ? 's' : 'm';
  }
  printf("%c\n", how);
  if (how != 'm' && at == 0) pthread_mutex_destroy((pthread_mutex_t *)(void *)after);
  free(after);
  free(behind);
  return 0;
}

static int mutexes(size_t count) {
  pthread_mutex_t *all = malloc(count * sizeof(*all));
  size_t i;
  if (all == NULL) return 1;
  for (i = 0; i < count; ++i) pthread_mutex_init(&all[i], NULL);
  for (i = 0; i < count; ++i) pthread_mutex_destroy(&all[i]);
  free(all);
  return 0;
}

static int frees(const char *way) {
  static char foreign[256];
  char *volatile block = malloc(100);
  char *volatile wrong = NULL;
  if (block == NULL) return 1;
  if (strcmp(way, "inside") == 0) wrong = block + 16;
  if (strcmp(way, "foreign") == 0) wrong = foreign + 16;
  free(wrong);
  free(block);
  if (strcmp(way, "twice") == 0) free(block);
  return 0;
}

int main(int argc, char **argv) {
  CUcontext context;
  CUdeviceptr memory;
  int status = 0;
  if (argc < 3 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 9;
  if (cuMemAlloc(&memory, 64) == CUDA_SUCCESS) {
    cuMemFree(memory);
  } else {
    status = strcmp(argv[1], "lose") == 0 ? 1 + lose(argv[2]) : 1;
  }
  if (strcmp(argv[1], "resize") == 0) status = resize(argv[2]);
  if (strcmp(argv[1], "frees") == 0) status = frees(argv[2]);
  if (strcmp(argv[1], "mutexes") == 0) status = mutexes(strtoul(argv[2], NULL, 10));
  cuCtxDestroy(context);
  return status;
}

#endif
