// SPDX-License-Identifier: MIT
// other_malloc.c: an allocator in a shared library, which dies of any block that it did not hand out.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { kArena = 16 << 20, kHeader = 16 };

static _Alignas(16) char arena[kArena];
static size_t used;

static void check(const char *block) {
  if (block != NULL && (block < arena || block >= arena + kArena)) abort();
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
  return __builtin_mul_overflow(count, bytes, &all) ? NULL : malloc(all);
}

void *realloc(void *block, size_t bytes) {
  void *const moved = malloc(bytes);
  check(block);
  if (block == NULL || moved == NULL) return moved;
  return memcpy(moved, block, length(block) < bytes ? length(block) : bytes);
}

size_t malloc_usable_size(void *block) {
  check(block);
  return length(block);
}
