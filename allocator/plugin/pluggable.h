// SPDX-License-Identifier: MIT
// pluggable.h: the functions that PyTorch's CUDAPluggableAllocator loads by name from libcuaudit_allocator.so.
//
//     allocator = torch.cuda.memory.CUDAPluggableAllocator("libcuaudit_allocator.so", "cuaudit_malloc", "cuaudit_free")
//     functions = ctypes.CDLL("libcuaudit_allocator.so")
//     allocator.allocator().set_record_stream_fn(ctypes.cast(functions.cuaudit_record_stream, ctypes.c_void_p).value)
//     torch.cuda.memory.change_current_allocator(allocator)
//
//   Owns      one backend per device, made by the first allocation on it, in the device's primary context, and never destroyed: the
//             process's end is not a place to call the driver. Settings come from CUAUDIT_ALLOC_CONF (settings.def).
//   Threads   any.
//   Streams   as backend.h.
//   Units     bytes.
//   Errors    cuaudit_malloc throws std::runtime_error with the whole account when memory runs out or the settings are wrong: PyTorch would
//             hand out a null pointer as a tensor's memory. All others are noexcept; those that answer an int answer a CUresult, and
//             cuaudit_last_error says what this thread's latest failure was about.
//   Faults    as the backend's; cuInit, cuDeviceGet the first time.
//   Source    signatures: torch/csrc/cuda/CUDAPluggableAllocator.h. Its MempoolId_t is a pair of two unsigned long long.
#pragma once

#include <cuda.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <utility>

#define CUAUDIT_PLUGIN extern "C" __attribute__((visibility("default")))
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

using CuauditMempoolId = std::pair<unsigned long long, unsigned long long>;

CUAUDIT_PLUGIN void* cuaudit_malloc(ssize_t size, int device, CUstream stream);
CUAUDIT_PLUGIN void cuaudit_free(void* pointer, ssize_t size, int device, CUstream stream) noexcept;
CUAUDIT_PLUGIN void cuaudit_record_stream(void* pointer, CUstream stream) noexcept;
CUAUDIT_PLUGIN void cuaudit_init(int device_count);  // throws for wrong settings; makes no backend yet
CUAUDIT_PLUGIN void cuaudit_reset() noexcept;        // empty_cache
CUAUDIT_PLUGIN void cuaudit_memory_fraction(double fraction, int device) noexcept;
CUAUDIT_PLUGIN void* cuaudit_base_alloc(void* pointer, std::size_t* size) noexcept;
CUAUDIT_PLUGIN void cuaudit_begin_allocate_to_pool(int device, CuauditMempoolId pool, std::function<bool(CUstream)> filter) noexcept;
CUAUDIT_PLUGIN void cuaudit_end_allocate_to_pool(int device, CuauditMempoolId pool) noexcept;
CUAUDIT_PLUGIN void cuaudit_release_pool(int device, CuauditMempoolId pool) noexcept;

// Beyond PyTorch's interface, for ctypes and C.
// As cuaudit_malloc for callers that take no exception: `*out` null and the error.
CUAUDIT_PLUGIN int cuaudit_allocate(std::size_t size, int device, CUstream stream, void** out) noexcept;
// INVALID_VALUE when CUAUDIT_ALLOC_CONF is wrong. It is read again until it is right, and then no more.
CUAUDIT_PLUGIN int cuaudit_check_settings() noexcept;
CUAUDIT_PLUGIN int cuaudit_record_use(void* pointer, CUstream stream) noexcept;
// A counter by its name, such as "allocated_bytes.all.current"; INVALID_VALUE for a name that there is not, or a device without a backend.
CUAUDIT_PLUGIN int cuaudit_statistic(int device, const char* name, long long* value) noexcept;
CUAUDIT_PLUGIN int cuaudit_snapshot(const char* path) noexcept;  // of all devices; opens at pytorch.org/memory_viz
CUAUDIT_PLUGIN const char* cuaudit_last_error() noexcept;

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
