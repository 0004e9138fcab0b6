// SPDX-License-Identifier: MIT
// told_objects.h: writes Argument records of other objects that a call names in a structure or through an untyped pointer.
//
//   kDescriptor   descriptors that the driver made for the program, and descriptors that it took over with an import
//   kStandsOn     the memory under a texture or surface object, the function in a kernel node
//   kLends        the graphs in a conditional node
//   kNames        the memory and arrays of a copy of two or three dimensions that the driver declined
//
//   Threads   safe: each record is reserved and filled by one thread.
//   Errors    when the journal is full, nothing is written.
//   Faults    RecordAddresses alone makes driver calls: FuncGetParamInfo and KernelGetParamInfo, past the plan.
//   Source    cuda.h of CUDA 13.0: "Ownership of the file descriptor is transferred to the CUDA driver when the handle is imported
//             successfully" is said of OPAQUE_FD and TIMELINE_SEMAPHORE_FD, and not of DMABUF_FD.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "told_objects.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/driver/kinds.h"
#include "faults/journal/journal.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

// True for a call that the functions below handle, or ReadSetting.
constexpr bool TellsOfObjects(driver::BaseId base) noexcept {
  using driver::BaseId;
  switch (base) {
    case BaseId::MemExportToShareableHandle:
    case BaseId::MemPoolExportToShareableHandle:
    case BaseId::MemGetHandleForAddressRange:
    case BaseId::ImportExternalMemory:
    case BaseId::ImportExternalSemaphore:
    case BaseId::TexObjectCreate:
    case BaseId::TexObjectDestroy:
    case BaseId::SurfObjectCreate:
    case BaseId::SurfObjectDestroy:
    case BaseId::ArrayDestroy:
    case BaseId::MipmappedArrayDestroy:
    case BaseId::MemFree:
    case BaseId::MemFreeAsync:
    case BaseId::MemUnmap:
    case BaseId::IpcCloseMemHandle:
    case BaseId::CtxDestroy:
    case BaseId::CtxDetach:
    case BaseId::DevicePrimaryCtxRetain:
    case BaseId::DevicePrimaryCtxReset:
    case BaseId::GraphAddKernelNode:
    case BaseId::GraphKernelNodeSetParams:
    case BaseId::GraphExecKernelNodeSetParams:
    case BaseId::GraphAddNode:
    case BaseId::GraphNodeSetParams:
    case BaseId::GraphExecNodeSetParams:
    case BaseId::MemPoolGetAttribute:
    case BaseId::MemPoolSetAttribute:
    case BaseId::StreamGetAttribute:
    case BaseId::StreamSetAttribute:
    case BaseId::ThreadExchangeStreamCaptureMode:
      return true;
    default:
      return false;
  }
}

// Descriptors of one call; -1 for none.
struct ToldDescriptors {
  int made = -1;
  int taken = -1;
};

// What a call that succeeded did to descriptors.
ToldDescriptors DescriptorsOf(const Passage& passage) noexcept;

// What a new texture or surface object, or a kernel node, stands on. Kind::None: its arguments do not say.
struct Footing {
  driver::Kind kind = driver::Kind::None;
  std::uint64_t handle = 0;
};
Footing FootingOf(const Passage& passage) noexcept;

// Writes what a call that succeeded tells.
void RecordToldObjects(Journal* journal, const Passage& passage, const ToldDescriptors& descriptors) noexcept;

// Of a copy that the driver declined: what it was to copy from and to. All others write nothing.
void RecordDeclinedCopy(Journal* journal, const Passage& passage, CUresult result) noexcept;

// Which device addresses a graph node is given, written as Argument records behind the call that adds it: by name, or by
// being made on a stream under capture.
// The driver says which arguments of a kernel can be addresses.

// Call it after a call that succeeded and has a record. `launches`: record also the arguments of a kernel launch (kLaunchWords).
void RecordAddresses(driver::DriverRef next, Journal* journal, const Passage& passage, bool launches) noexcept;

// True for a call that may be given something where the driver writes its answer.
constexpr bool WritesOver(driver::BaseId base) noexcept {
  using driver::BaseId;
  return base == BaseId::GraphAddNode || base == BaseId::GraphNodeSetParams || base == BaseId::GraphExecNodeSetParams ||
         base == BaseId::ThreadExchangeStreamCaptureMode;
}

// Of such a call: the graph that it is to make a node of, or the capture mode that it exchanges; 0: nothing.
std::uint64_t GivenTo(const Passage& passage) noexcept;

}  // namespace cuaudit::faults
