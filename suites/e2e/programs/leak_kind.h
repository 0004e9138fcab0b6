// SPDX-License-Identifier: MIT
// leak_kind.h: one function for each kind of driver object: acquires one, and gives it back when `clean`. Not zero: the driver refused.
#ifndef CUAUDIT_E2E_LEAK_KIND_H
#define CUAUDIT_E2E_LEAK_KIND_H

#include <cuda.h>

enum { kMostCycles = 80 };

// Leaves the function on the first error, with its code.
#define DO(call)                                      \
  do {                                                \
    const CUresult result_ = (call);                  \
    if (result_ != CUDA_SUCCESS) return (int)result_; \
  } while (0)

// What some cycles work on; made by leak_kind.c before the first one.
typedef struct Ground {
  CUcontext context;
  CUstream stream;
} Ground;

extern const char kPtx[];

// leak_memory.c
int device_memory(const Ground *ground, int cycle, int clean);
int managed_memory(const Ground *ground, int cycle, int clean);
int pinned_memory(const Ground *ground, int cycle, int clean);
int host_registration(const Ground *ground, int cycle, int clean);
int stream_ordered_memory(const Ground *ground, int cycle, int clean);
int memory_pool(const Ground *ground, int cycle, int clean);
int address_reservation(const Ground *ground, int cycle, int clean);
int physical_memory(const Ground *ground, int cycle, int clean);
int mapping(const Ground *ground, int cycle, int clean);
int block(const Ground *ground, int cycle, int clean);  // of a pool of its own
int array(const Ground *ground, int cycle, int clean);
int mipmapped_array(const Ground *ground, int cycle, int clean);
int texture_object(const Ground *ground, int cycle, int clean);
int surface_object(const Ground *ground, int cycle, int clean);
int module(const Ground *ground, int cycle, int clean);
int library(const Ground *ground, int cycle, int clean);
int link_state(const Ground *ground, int cycle, int clean);

// leak_work.c
int context(const Ground *ground, int cycle, int clean);
int primary_context(const Ground *ground, int cycle, int clean);
int context_stack_entry(const Ground *ground, int cycle, int clean);
int stream(const Ground *ground, int cycle, int clean);
int event(const Ground *ground, int cycle, int clean);
int graph(const Ground *ground, int cycle, int clean);
int executable_graph(const Ground *ground, int cycle, int clean);
int user_object(const Ground *ground, int cycle, int clean);
int texture_reference(const Ground *ground, int cycle, int clean);
int callback(const Ground *ground, int cycle, int clean);
int green_context(const Ground *ground, int cycle, int clean);
int external_memory(const Ground *ground, int cycle, int clean);
int ipc_memory(const Ground *ground, int cycle, int clean);
int before_ipc_memory(void);  // before the driver is initialised: another process shares memory
int after_ipc_memory(void);
int peer_access(const Ground *ground, int cycle, int clean);
int before_peer_access(void);  // contexts on device 1
int after_peer_access(void);

#endif
