// SPDX-License-Identifier: MIT
#include "suites/support/cases/kind_cases.h"

#include "faults/driver/effects.h"
#include "harness/ledger/host_deed.h"

namespace cuaudit::testing {
namespace {

using driver::CallId;
using driver::Kind;
using faults::HostCall;

constexpr std::uint64_t kHandle = kCaseHandle;

// Made by `make` in argument 0, given back by `give` in argument 0.
template <CallId make>
void Make(Trace& t) {
  t.Call(make).Out(0, kHandle);
}
template <CallId give>
void Give(Trace& t) {
  t.Call(give).In(0, kHandle);
}
// Memory: the size is argument 1.
template <CallId make>
void MakeSized(Trace& t) {
  t.Call(make).Out(0, kHandle).In(1, 0x2000);
}
template <CallId give>
void GiveSized(Trace& t) {
  t.Call(give).In(0, kHandle).In(1, 0x2000);
}
template <HostCall call>
void OnHost(Trace& t) {
  t.Host(call, kHandle, 64);
}

}  // namespace

const std::vector<KindCase>& KindCases() {
  static const std::vector<KindCase> kCases = {
      {Kind::Context, Make<CallId::CtxCreate_v2>, Give<CallId::CtxDestroy_v2>},
      {Kind::PrimaryContext, [](Trace& t) { t.Retain(); }, [](Trace& t) { t.ReleasePrimary(); }},
      {Kind::ContextStackEntry, [](Trace& t) { t.Push(kHandle); }, [](Trace& t) { t.Pop(kHandle); }},
      {Kind::Stream, Make<CallId::StreamCreateWithPriority>, Give<CallId::StreamDestroy_v2>},
      {Kind::Event, Make<CallId::EventCreate>, Give<CallId::EventDestroy_v2>},
      {Kind::DeviceMemory, MakeSized<CallId::MemAlloc_v2>, Give<CallId::MemFree_v2>},
      {Kind::ManagedMemory, MakeSized<CallId::MemAllocManaged>, Give<CallId::MemFree_v2>},
      {Kind::StreamOrderedMemory, MakeSized<CallId::MemAllocAsync>, Give<CallId::MemFreeAsync>},
      {Kind::PinnedMemory, MakeSized<CallId::MemHostAlloc>, Give<CallId::MemFreeHost>},
      {Kind::HostRegistration, MakeSized<CallId::MemHostRegister_v2>, Give<CallId::MemHostUnregister>},
      {Kind::MemoryPool, Make<CallId::MemPoolCreate>, Give<CallId::MemPoolDestroy>},
      {Kind::AddressReservation, MakeSized<CallId::MemAddressReserve>, GiveSized<CallId::MemAddressFree>},
      {Kind::PhysicalMemory, MakeSized<CallId::MemCreate>, Give<CallId::MemRelease>},
      {Kind::Mapping, MakeSized<CallId::MemMap>, GiveSized<CallId::MemUnmap>},
      {Kind::Array, Make<CallId::ArrayCreate_v2>, Give<CallId::ArrayDestroy>},
      {Kind::MipmappedArray, Make<CallId::MipmappedArrayCreate>, Give<CallId::MipmappedArrayDestroy>},
      {Kind::TextureObject, Make<CallId::TexObjectCreate>, Give<CallId::TexObjectDestroy>},
      {Kind::SurfaceObject, Make<CallId::SurfObjectCreate>, Give<CallId::SurfObjectDestroy>},
      {Kind::TextureReference, Make<CallId::TexRefCreate>, Give<CallId::TexRefDestroy>},
      {Kind::Module, Make<CallId::ModuleLoadData>, Give<CallId::ModuleUnload>},
      {Kind::Library, Make<CallId::LibraryLoadData>, Give<CallId::LibraryUnload>},
      {Kind::LinkState, [](Trace& t) { t.Call(CallId::LinkCreate_v2).Out(3, kHandle); }, Give<CallId::LinkDestroy>},
      {Kind::Graph, Make<CallId::GraphCreate>, Give<CallId::GraphDestroy>},
      {Kind::ExecutableGraph, [](Trace& t) { t.Call(CallId::GraphInstantiateWithFlags).Out(0, kHandle).In(1, 0x9); },
       Give<CallId::GraphExecDestroy>},
      {Kind::UserObject, [](Trace& t) { t.Call(CallId::UserObjectCreate).Out(0, kHandle).In(3, 2); },
       [](Trace& t) { t.Call(CallId::UserObjectRelease).In(0, kHandle).In(1, 2); }},
      {Kind::ExternalMemory, Make<CallId::ImportExternalMemory>, Give<CallId::DestroyExternalMemory>},
      {Kind::ExternalSemaphore, Make<CallId::ImportExternalSemaphore>, Give<CallId::DestroyExternalSemaphore>},
      {Kind::IpcMemory, Make<CallId::IpcOpenMemHandle_v2>, Give<CallId::IpcCloseMemHandle>},
      {Kind::GreenContext, Make<CallId::GreenCtxCreate>, Give<CallId::GreenCtxDestroy>},
      {Kind::MulticastObject, Make<CallId::MulticastCreate>, Give<CallId::MemRelease>},
      {Kind::GraphicsResource, Make<CallId::GraphicsGLRegisterBuffer>, Give<CallId::GraphicsUnregisterResource>},
      {Kind::EglStream, Make<CallId::EGLStreamConsumerConnect>, Give<CallId::EGLStreamConsumerDisconnect>},
      {Kind::Callback, [](Trace& t) { t.Call(CallId::DeviceRegisterAsyncNotification).Out(3, kHandle); },
       [](Trace& t) { t.Call(CallId::DeviceUnregisterAsyncNotification).In(1, kHandle); }},
      {Kind::HostHeap, OnHost<HostCall::Allocate>, OnHost<HostCall::Deallocate>},
      {Kind::DlopenReference, OnHost<HostCall::Dlopen>, OnHost<HostCall::Dlclose>},
      {Kind::Mutex, OnHost<HostCall::MutexInit>, OnHost<HostCall::MutexDestroy>},
      {Kind::FileDescriptor, OnHost<HostCall::DescriptorOpen>, OnHost<HostCall::DescriptorClose>},
      {Kind::Thread, OnHost<HostCall::ThreadCreate>, OnHost<HostCall::ThreadJoin>},
      {Kind::HostMapping, OnHost<HostCall::Map>, OnHost<HostCall::Unmap>},
      {Kind::Block, [](Trace& t) { t.Mark(faults::MarkKind::BlockOut).In(0, kHandle).In(1, 0x200); },
       [](Trace& t) { t.Mark(faults::MarkKind::BlockBack).In(0, kHandle); }},
      {Kind::PeerAccess, Make<CallId::CtxEnablePeerAccess>, Give<CallId::CtxDisablePeerAccess>},
  };
  return kCases;
}

void AcquireAnother(Trace& trace, const KindCase& one, std::uint64_t number) {
  one.acquire(trace);
  trace.RenameLast(kHandle, kHandle + number * 0x10'0000);
}

bool IsHostKind(Kind kind) {
  for (const KindCase& one : KindCases()) {
    if (one.kind != kind) continue;
    Trace trace;
    one.release(trace);
    return !trace.Last().is_driver_call();
  }
  return false;
}

std::vector<Kind> LeakableKinds() {
  bool acquired[driver::kKindCount] = {};
  for (std::size_t i = 0; i < driver::kBaseCount; ++i) {
    const driver::EffectRow& row = driver::EffectOf(static_cast<driver::BaseId>(i));
    if (driver::IsAcquire(row.effect)) acquired[static_cast<std::size_t>(row.kind)] = true;
  }
  acquired[static_cast<std::size_t>(Kind::Block)] = true;  // by the program's own word
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < driver::kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    if ((acquired[i] || harness::IsHost(kind)) && kind != Kind::None && driver::DiesWithOf(kind) != driver::DiesWith::Parent)
      kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace cuaudit::testing
