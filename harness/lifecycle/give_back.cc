// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/trial_world.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;

constexpr int kDeepest = 1024;  // entries of a context stack

template <typename Handle>
Handle As(std::uint64_t handle) {
  return reinterpret_cast<Handle>(handle);
}

// Peer access ends in the context that has it.
CUresult EndPeerAccess(driver::DriverRef driver, const Object& access) {
  const CUresult pushed = driver.CtxPushCurrent(As<CUcontext>(access.context));
  if (pushed != CUDA_SUCCESS) return pushed;
  const CUresult ended = driver.CtxDisablePeerAccess(As<CUcontext>(access.parent));
  CUcontext left = nullptr;
  const CUresult popped = driver.CtxPopCurrent(&left);
  return ended != CUDA_SUCCESS ? ended : popped;
}

CUresult Release(driver::DriverRef driver, const Object& object) {
  const std::uint64_t handle = object.handle;
  switch (object.kind) {
    case Kind::Context:
      return driver.CtxDestroy(As<CUcontext>(handle));
    case Kind::PrimaryContext:
      return driver.DevicePrimaryCtxRelease(static_cast<CUdevice>(handle));
    case Kind::Stream:
      return driver.StreamDestroy(As<CUstream>(handle));
    case Kind::Event:
      return driver.EventDestroy(As<CUevent>(handle));
    case Kind::DeviceMemory:
    case Kind::ManagedMemory:
    case Kind::StreamOrderedMemory:
      return driver.MemFree(handle);
    case Kind::PinnedMemory:
      return driver.MemFreeHost(As<void*>(handle));
    case Kind::HostRegistration:
      return driver.MemHostUnregister(As<void*>(handle));
    case Kind::MemoryPool:
      return driver.MemPoolDestroy(As<CUmemoryPool>(handle));
    case Kind::AddressReservation:
      return driver.MemAddressFree(handle, object.bytes);
    case Kind::PhysicalMemory:
    case Kind::MulticastObject:
      return driver.MemRelease(handle);
    case Kind::Mapping:
      return driver.MemUnmap(handle, object.bytes);
    case Kind::Array:
      return driver.ArrayDestroy(As<CUarray>(handle));
    case Kind::MipmappedArray:
      return driver.MipmappedArrayDestroy(As<CUmipmappedArray>(handle));
    case Kind::TextureObject:
      return driver.TexObjectDestroy(handle);
    case Kind::SurfaceObject:
      return driver.SurfObjectDestroy(handle);
    case Kind::Module:
      return driver.ModuleUnload(As<CUmodule>(handle));
    case Kind::Library:
      return driver.LibraryUnload(As<CUlibrary>(handle));
    case Kind::LinkState:
      return driver.LinkDestroy(As<CUlinkState>(handle));
    case Kind::Graph:
      return driver.GraphDestroy(As<CUgraph>(handle));
    case Kind::ExecutableGraph:
      return driver.GraphExecDestroy(As<CUgraphExec>(handle));
    case Kind::UserObject:
      return driver.UserObjectRelease(As<CUuserObject>(handle), static_cast<unsigned>(object.references));
    case Kind::ExternalMemory:
      return driver.DestroyExternalMemory(As<CUexternalMemory>(handle));
    case Kind::ExternalSemaphore:
      return driver.DestroyExternalSemaphore(As<CUexternalSemaphore>(handle));
    case Kind::IpcMemory:
      return driver.IpcCloseMemHandle(handle);
    case Kind::GreenContext:
      return driver.GreenCtxDestroy(As<CUgreenCtx>(handle));
    case Kind::PeerAccess:
      return EndPeerAccess(driver, object);
    case Kind::None:
    case Kind::ContextStackEntry:  // see EmptyContextStack
    case Kind::GraphNode:          // ends with its graph
    case Kind::Block:              // part of memory that is released itself
      return CUDA_SUCCESS;
    case Kind::TextureReference:
    case Kind::GraphicsResource:
    case Kind::EglStream:
    case Kind::Callback:
    case Kind::HostHeap:
    case Kind::DlopenReference:
    case Kind::Mutex:
    case Kind::FileDescriptor:
    case Kind::Thread:
    case Kind::HostMapping:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

void EmptyContextStack(driver::DriverRef driver) {
  for (int i = 0; i < kDeepest; ++i) {
    CUcontext top = nullptr;
    if (driver.CtxGetCurrent(&top) != CUDA_SUCCESS || top == nullptr) return;
    if (driver.CtxPopCurrent(&top) != CUDA_SUCCESS) return;
  }
}

void PutBackCaptureMode(driver::DriverRef driver) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  (void)driver.ThreadExchangeStreamCaptureMode(&mode);
}

std::uint32_t GiveBack(driver::DriverRef driver, CUcontext context, const Ledger& ledger) {
  EmptyContextStack(driver);
  if (driver.CtxPushCurrent(context) != CUDA_SUCCESS) return static_cast<std::uint32_t>(ledger.objects.size());
  (void)driver.CtxSynchronize(context);  // for work that still uses the objects
  std::uint32_t kept = 0;
  for (std::size_t i = ledger.objects.size(); i-- > 0;) {
    const Object& object = ledger.objects[i];
    if (object.driver_owned || (object.state != State::Live && object.state != State::ReleaseRefused)) continue;
    if (object.died_with_context) continue;  // using its handle would crash a genuine driver
    if (Release(driver, object) != CUDA_SUCCESS) ++kept;
  }
  EmptyContextStack(driver);
  return kept;
}

}  // namespace cuaudit::harness
