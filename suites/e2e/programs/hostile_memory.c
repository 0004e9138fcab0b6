// SPDX-License-Identifier: MIT
// hostile_memory.c: programs that change memory which is not theirs, have none left, or fill it with driver objects.
// Usage   hostile_memory MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
//         hostile_memory objects_COUNT [loses]      COUNT events at once; loses: none is given back
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hostile_story.h"

enum { kMostAreas = 64 };

/* Each mapping of a file that others see changes of: among them the records of an audit. */
static void change_shared_memory(void (*change)(void *begin, size_t bytes)) {
  static uintptr_t begins[kMostAreas], ends[kMostAreas];
  char line[4096], allowed[8];
  int count = 0, i;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return;
  while (count < kMostAreas && fgets(line, sizeof(line), maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &begins[count], &ends[count], allowed) == 3 && strcmp(allowed, "rw-s") == 0) ++count;
  }
  fclose(maps);
  for (i = 0; i < count; ++i) change((void *)begins[i], ends[i] - begins[i]);
}

static void protect(void *begin, size_t bytes) { mprotect(begin, bytes, PROT_READ); }
static void unmap(void *begin, size_t bytes) { munmap(begin, bytes); }

/* The first pages have what leads to all others; writing all of a large sparse file would fill the disk. */
static void scribble(void *begin, size_t bytes) { memset(begin, 0xa5, bytes < 65536 ? bytes : 65536); }

static int take_address_space(void) {
  unsigned long pages = 0;
  struct rlimit value;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) return 9;
  fclose(file);
  value.rlim_cur = value.rlim_max = pages * 4096;
  return setrlimit(RLIMIT_AS, &value) == 0 ? 0 : 9;
}

static int many_objects(long count) {
  CUevent *events = malloc((size_t)count * sizeof(CUevent));
  long i;
  if (events == NULL || hold() != 0) return 1;
  for (i = 0; i < count; ++i) {
    if (cuEventCreate(&events[i], 0) != CUDA_SUCCESS) return 1;
  }
  for (i = 0; !loses && i < count; ++i) cuEventDestroy(events[i]);
  free(events);
  give_back();
  return 0;
}

int main(int argc, char **argv) {
  int status = 0;
  read_arguments(argc, argv);
  if (strncmp(mode, "objects_", 8) == 0) return many_objects(atol(mode + 8));
  if (hold() != 0) return 1;
  if (is("protects")) change_shared_memory(&protect);
  if (is("unmaps")) change_shared_memory(&unmap);
  if (is("scribbles")) change_shared_memory(&scribble);
  if (is("no_more")) status = take_address_space();
  if (status == 0) status = make_event();
  if (status != 0 && is("scribbles_later")) change_shared_memory(&scribble);
  give_back();
  return status;
}
