// SPDX-License-Identifier: MIT
// own_malloc.c: a program with its own malloc, as one that is linked with an allocator; it loses a block of it and of nothing else.
// Usage   own_malloc [N]   N: marked cycles, each of which loses a block
// With OTHER_MALLOC: the same allocator in a shared library, which dies of any block that it did not hand out.
#include <cuaudit/mark.h>
#include <cuda.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
