// SPDX-License-Identifier: MIT
// machine.h: the handles and operations of a random program.
//
// A Machine has a few places for each family of handle. Dead handles stay there, so that a program also uses stale handles. An operation
// may overwrite a live handle, which is a leak. An operation is one driver call, or a few that belong together. Results are ignored,
// because the journal has them. Only host memory that the process may read and write is passed to the driver, because the driver
// accesses it. Owns host bytes for copies and registrations. Used from one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include "faults/driver/driver_ref.h"
#include "include/cuaudit/fuzz_input.h"

namespace cuaudit::fuzz {

inline constexpr std::size_t kHostBytes = std::size_t{1} << 16;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kGranule = std::size_t{2} << 20;

template <typename T, std::size_t kPlaces = 3>
struct Places {
  T place[kPlaces] = {};
  T& At(FuzzInput& input) { return place[input.Byte() % kPlaces]; }
};

struct Machine {
  Machine(driver::DriverRef driver, FuzzInput bytes) : d(driver), input(bytes) {}

  driver::DriverRef d;
  FuzzInput input;
  Places<CUcontext> contexts;
  Places<CUstream> streams;
  Places<CUevent> events;
  Places<CUdeviceptr, 6> memory;  // device, managed, stream-ordered, mapped
  Places<void*> pinned;
  Places<CUmemoryPool> pools;
  Places<CUdeviceptr> reservations;
  Places<CUmemGenericAllocationHandle> physical;
  Places<CUarray> arrays;
  Places<CUmipmappedArray> mipmapped;
  Places<CUtexObject> textures;
  Places<CUsurfObject> surfaces;
  Places<CUmodule> modules;
  Places<CUlibrary> libraries;
  Places<CUlinkState> links;
  Places<CUfunction> functions;
  Places<CUgraph> graphs;
  Places<CUgraphNode, 6> nodes;
  Places<CUgraphExec> executables;
  Places<CUuserObject> user_objects;
  Places<CUgreenCtx> greens;
  Places<CUlogsCallbackHandle> log_callbacks;
  Places<CUasyncCallbackHandle> notifications;
  Places<CUexternalMemory> external_memory;
  Places<CUexternalSemaphore> external_semaphores;
  Places<CUmemGenericAllocationHandle> multicast;
  Places<CUtexref> references;
  CUipcMemHandle ipc_memory{};
  CUipcEventHandle ipc_event{};
  CUmemPoolPtrExportData pool_pointer{};

  // A stream of the program, or one of the three that nobody makes.
  CUstream Stream() {
    const std::uint32_t which = input.Byte();
    if (which < 192) return streams.place[which % 3];
    return which < 224 ? nullptr : which < 240 ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
  }
  CUdeviceptr Address() {
    const std::uint32_t which = input.Byte();
    const CUdeviceptr base = memory.place[which % 6];
    return which < 192 ? base : base + which;
  }
  CUdeviceptr Reserved() {
    const CUdeviceptr base = reservations.At(input);
    return base + input.Below(2) * kGranule;
  }
  std::size_t Size() {
    static constexpr std::size_t kSizes[] = {0, 1, 16, 100, 256, 512, kPage, kHostBytes};
    return kSizes[input.Below(8)];
  }
  char* Host();  // kHostBytes of them

  // For calls that take more than one argument from the input: from left to right, as braces promise and parentheses do not.
  template <typename... Arguments>
  void Call(CUresult (driver::DriverRef::*entry)(Arguments...) const noexcept, std::type_identity_t<std::tuple<Arguments...>> arguments) {
    (void)std::apply([&](Arguments... each) { return (d.*entry)(each...); }, arguments);
  }
};

using Operation = void (*)(Machine&);

std::span<const Operation> MemoryOperations();
std::span<const Operation> WorkOperations();
std::span<const Operation> GraphOperations();
std::span<const Operation> ObjectOperations();
std::span<const Operation> ShareOperations();
std::span<const Operation> FurtherOperations();

// Carries out what the bytes say, to their end.
void RunProgram(Machine* machine);

}  // namespace cuaudit::fuzz
