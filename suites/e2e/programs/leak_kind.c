// SPDX-License-Identifier: MIT
// leak_kind.c: loses exactly one object of one kind in each cycle, or none.
// Usage   leak_kind KIND CYCLES [clean] · leak_kind --list
#include "leak_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry nothing()\n{\n ret;\n}\n";

static const struct {
  const char *name;
  int (*run)(const Ground *ground, int cycle, int clean);
} kKinds[] = {
#define ROW(name) \
  { #name, &name }
    ROW(device_memory),
    ROW(managed_memory),
    ROW(pinned_memory),
    ROW(host_registration),
    ROW(stream_ordered_memory),
    ROW(memory_pool),
    ROW(address_reservation),
    ROW(physical_memory),
    ROW(mapping),
    ROW(array),
    ROW(mipmapped_array),
    ROW(texture_object),
    ROW(surface_object),
    ROW(module),
    ROW(library),
    ROW(link_state),
    ROW(context),
    ROW(primary_context),
    ROW(context_stack_entry),
    ROW(stream),
    ROW(event),
    ROW(graph),
    ROW(executable_graph),
    ROW(user_object),
    ROW(texture_reference),
    ROW(callback),
    ROW(green_context),
    ROW(external_memory),
    ROW(ipc_memory),
    ROW(block),
    ROW(peer_access),
#undef ROW
};
enum { kKindCount = sizeof(kKinds) / sizeof(kKinds[0]) };

static int run(int kind, int cycles, int clean) {
  Ground ground;
  int i;
  if (kKinds[kind].run == &ipc_memory && before_ipc_memory() != 0) return -1;
  if (kKinds[kind].run == &peer_access && before_peer_access() != 0) return -1;
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&ground.context, 0));
  DO(cuCtxPushCurrent(ground.context));
  DO(cuStreamCreate(&ground.stream, CU_STREAM_NON_BLOCKING));
  for (i = 0; i < cycles; ++i) DO(kKinds[kind].run(&ground, i, clean));
  DO(cuStreamDestroy(ground.stream));
  DO(cuCtxPopCurrent(NULL));
  DO(cuDevicePrimaryCtxRelease(0));
  if (kKinds[kind].run == &peer_access) return after_peer_access();
  return kKinds[kind].run == &ipc_memory ? after_ipc_memory() : 0;
}

int main(int argc, char **argv) {
  const int list = argc == 2 && strcmp(argv[1], "--list") == 0;
  int i;
  for (i = 0; i < kKindCount; ++i) {
    if (list) puts(kKinds[i].name);
    if (!list && argc > 2 && strcmp(argv[1], kKinds[i].name) == 0) {
      const int cycles = atoi(argv[2]);
      const int result = cycles <= kMostCycles ? run(i, cycles, argc > 3) : -1;
      if (result != 0) fprintf(stderr, "leak_kind: %s: driver error %d\n", argv[1], result);
      return result == 0 ? 0 : 1;
    }
  }
  return list ? 0 : 9;
}
