// SPDX-License-Identifier: MIT
// Contexts, streams, events, host functions, kernels, waits for values; and what they work with: modules, libraries, link states, arrays,
// textures, surfaces, callbacks.
#include <cstring>

#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

void Nothing(void*) {}
void NothingEither(CUstream, CUresult, void*) {}

constexpr Operation kWork[] = {
    [](Machine& m) { (void)m.d.DevicePrimaryCtxRetain(&m.contexts.At(m.input), 0); },
    [](Machine& m) {
      m.Call(&DriverRef::DevicePrimaryCtxRetain, {&m.contexts.At(m.input), static_cast<CUdevice>(m.input.Below(3))});
    },
    [](Machine& m) { (void)m.d.DevicePrimaryCtxRelease(static_cast<CUdevice>(m.input.Below(3))); },
    [](Machine& m) {
      if (m.input.Below(4) == 0) (void)m.d.DevicePrimaryCtxReset(0);
    },
    [](Machine& m) {
      m.Call(&DriverRef::CtxCreate, {&m.contexts.At(m.input), nullptr, 0, static_cast<CUdevice>(m.input.Below(2))});
    },
    [](Machine& m) { (void)m.d.CtxDestroy(m.contexts.At(m.input)); },
    [](Machine& m) { (void)m.d.CtxSetCurrent(m.contexts.At(m.input)); },
    [](Machine& m) { (void)m.d.CtxPushCurrent(m.contexts.At(m.input)); },
    [](Machine& m) {
      CUcontext popped = nullptr;
      (void)m.d.CtxPopCurrent(&popped);
    },
    [](Machine& m) { (void)m.d.CtxGetCurrent(&m.contexts.At(m.input)); },
    [](Machine& m) { m.Call(&DriverRef::CtxSynchronize, {m.input.Below(2) == 0 ? nullptr : m.contexts.At(m.input)}); },
    [](Machine& m) {
      m.Call(&DriverRef::StreamCreate, {&m.streams.At(m.input), m.input.Below(2)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamCreateWithPriority, {&m.streams.At(m.input), m.input.Below(2), -static_cast<int>(m.input.Below(3))});
    },
    [](Machine& m) { (void)m.d.StreamDestroy(m.streams.At(m.input)); },
    [](Machine& m) { (void)m.d.StreamSynchronize(m.Stream()); },
    [](Machine& m) { (void)m.d.StreamQuery(m.Stream()); },
    [](Machine& m) {
      CUcontext context = nullptr;
      CUgreenCtx green = nullptr;
      (void)m.d.StreamGetCtx(m.Stream(), &context, &green);
    },
    [](Machine& m) {
      m.Call(&DriverRef::EventCreate, {&m.events.At(m.input), m.input.Below(4)});
    },
    [](Machine& m) { (void)m.d.EventDestroy(m.events.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::EventRecord, {m.events.At(m.input), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamWaitEvent, {m.Stream(), m.events.At(m.input), 0});
    },
    [](Machine& m) { (void)m.d.EventSynchronize(m.events.At(m.input)); },
    [](Machine& m) { (void)m.d.EventQuery(m.events.At(m.input)); },
    [](Machine& m) {
      float ms = 0;
      m.Call(&DriverRef::EventElapsedTime, {&ms, m.events.At(m.input), m.events.At(m.input)});
    },
    [](Machine& m) { (void)m.d.LaunchHostFunc(m.Stream(), &Nothing, nullptr); },
    [](Machine& m) { (void)m.d.StreamAddCallback(m.Stream(), &NothingEither, nullptr, 0); },
    [](Machine& m) {
      alignas(16) std::uint64_t values[8] = {m.Address(), m.Address(), 3, 4, 5, 6, 7, 8};
      void* parameters[8];
      for (int i = 0; i < 8; ++i) parameters[i] = &values[i];
      m.Call(&DriverRef::LaunchKernel, {m.functions.At(m.input), 1 + m.input.Below(2), 1, 1, 32, 1, 1, 0, m.Stream(), parameters, nullptr});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamWriteValue32, {m.Stream(), m.Address(), m.input.Byte(), 0});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamWaitValue32, {m.Stream(), m.Address(), m.input.Below(3), m.input.Below(4)});
    },
    [](Machine& m) {
      CUdevResource all{};
      CUdevResource part{};
      unsigned groups = 1;
      CUdevResourceDesc description = nullptr;
      (void)m.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
      (void)m.d.DevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16);
      if (m.d.DevResourceGenerateDesc(&description, &part, 1) != CUDA_SUCCESS) return;
      (void)m.d.GreenCtxCreate(&m.greens.At(m.input), description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    },
    [](Machine& m) { (void)m.d.GreenCtxDestroy(m.greens.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::GreenCtxStreamCreate, {&m.streams.At(m.input), m.greens.At(m.input), CU_STREAM_NON_BLOCKING, 0});
    },
    [](Machine& m) {
      m.Call(&DriverRef::CtxFromGreenCtx, {&m.contexts.At(m.input), m.greens.At(m.input)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GreenCtxRecordEvent, {m.greens.At(m.input), m.events.At(m.input)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GreenCtxWaitEvent, {m.greens.At(m.input), m.events.At(m.input)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::CtxRecordEvent, {m.contexts.At(m.input), m.events.At(m.input)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::CtxWaitEvent, {m.contexts.At(m.input), m.events.At(m.input)});
    },
};

constexpr const char* kTexts[] = {
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 b) { ret; }\n",
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 g[64];\n.global .texref t;\n.visible .entry k() { ret; }\n",
    "no image",
};

const char* Text(Machine& m) { return kTexts[m.input.Below(3)]; }

void OnLog(void*, CUlogLevel, char*, size_t) {}
void OnNotice(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}

CUDA_ARRAY3D_DESCRIPTOR Shape(Machine& m) {
  static constexpr CUarray_format kFormats[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_FLOAT};
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = m.input.Below(17);
  shape.Height = m.input.Below(9);
  shape.Depth = m.input.Below(3);
  shape.Format = kFormats[m.input.Below(2)];
  shape.NumChannels = 1 + m.input.Below(4);
  shape.Flags = m.input.Below(2) == 0 ? 0 : CUDA_ARRAY3D_SURFACE_LDST;
  return shape;
}

constexpr Operation kObjects[] = {
    [](Machine& m) {
      m.Call(&DriverRef::ModuleLoadData, {&m.modules.At(m.input), Text(m)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::ModuleLoadDataEx, {&m.modules.At(m.input), Text(m), 0, nullptr, nullptr});
    },
    [](Machine& m) { (void)m.d.ModuleUnload(m.modules.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::ModuleGetFunction, {&m.functions.At(m.input), m.modules.At(m.input), "k"});
    },
    [](Machine& m) {
      std::size_t bytes = 0;
      m.Call(&DriverRef::ModuleGetGlobal, {&m.memory.At(m.input), &bytes, m.modules.At(m.input), "g"});
    },
    [](Machine& m) {
      m.Call(&DriverRef::LibraryLoadData, {&m.libraries.At(m.input), Text(m), nullptr, nullptr, 0, nullptr, nullptr, 0});
    },
    [](Machine& m) { (void)m.d.LibraryUnload(m.libraries.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::LibraryGetModule, {&m.modules.At(m.input), m.libraries.At(m.input)});
    },
    [](Machine& m) {
      CUkernel kernel = nullptr;
      if (m.d.LibraryGetKernel(&kernel, m.libraries.At(m.input), "k") == CUDA_SUCCESS)
        (void)m.d.KernelGetFunction(&m.functions.At(m.input), kernel);
    },
    [](Machine& m) { (void)m.d.LinkCreate(0, nullptr, nullptr, &m.links.At(m.input)); },
    [](Machine& m) {
      const char* const text = Text(m);
      (void)m.d.LinkAddData(m.links.At(m.input), CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, "text", 0, nullptr,
                            nullptr);
    },
    [](Machine& m) {
      void* cubin = nullptr;
      std::size_t bytes = 0;
      if (m.d.LinkComplete(m.links.At(m.input), &cubin, &bytes) == CUDA_SUCCESS) (void)m.d.ModuleLoadData(&m.modules.At(m.input), cubin);
    },
    [](Machine& m) { (void)m.d.LinkDestroy(m.links.At(m.input)); },
    [](Machine& m) {
      const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(m);
      const CUDA_ARRAY_DESCRIPTOR flat{shape.Width, shape.Height, shape.Format, shape.NumChannels};
      (void)m.d.ArrayCreate(&m.arrays.At(m.input), &flat);
    },
    [](Machine& m) {
      const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(m);
      (void)m.d.Array3DCreate(&m.arrays.At(m.input), &shape);
    },
    [](Machine& m) { (void)m.d.ArrayDestroy(m.arrays.At(m.input)); },
    [](Machine& m) {
      const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(m);
      m.Call(&DriverRef::MipmappedArrayCreate, {&m.mipmapped.At(m.input), &shape, 1 + m.input.Below(4)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MipmappedArrayGetLevel, {&m.arrays.At(m.input), m.mipmapped.At(m.input), m.input.Below(4)});
    },
    [](Machine& m) { (void)m.d.MipmappedArrayDestroy(m.mipmapped.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyHtoA, {m.arrays.At(m.input), m.input.Byte(), m.Host(), m.Size()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MemcpyAtoH, {m.Host(), m.arrays.At(m.input), m.input.Byte(), m.Size()});
    },
    [](Machine& m) {
      CUDA_RESOURCE_DESC resource{};
      CUDA_TEXTURE_DESC texture{};
      resource.resType = CU_RESOURCE_TYPE_ARRAY;
      resource.res.array.hArray = m.arrays.At(m.input);
      (void)m.d.TexObjectCreate(&m.textures.At(m.input), &resource, &texture, nullptr);
    },
    [](Machine& m) {
      CUDA_RESOURCE_DESC resource{};
      CUDA_TEXTURE_DESC texture{};
      resource.resType = CU_RESOURCE_TYPE_LINEAR;
      resource.res.linear = {m.Address(), CU_AD_FORMAT_FLOAT, 1, m.Size()};
      (void)m.d.TexObjectCreate(&m.textures.At(m.input), &resource, &texture, nullptr);
    },
    [](Machine& m) { (void)m.d.TexObjectDestroy(m.textures.At(m.input)); },
    [](Machine& m) {
      CUDA_RESOURCE_DESC resource{};
      resource.resType = CU_RESOURCE_TYPE_ARRAY;
      resource.res.array.hArray = m.arrays.At(m.input);
      (void)m.d.SurfObjectCreate(&m.surfaces.At(m.input), &resource);
    },
    [](Machine& m) { (void)m.d.SurfObjectDestroy(m.surfaces.At(m.input)); },
    [](Machine& m) { (void)m.d.LogsRegisterCallback(&OnLog, nullptr, &m.log_callbacks.At(m.input)); },
    [](Machine& m) { (void)m.d.LogsUnregisterCallback(m.log_callbacks.At(m.input)); },
    [](Machine& m) { (void)m.d.DeviceRegisterAsyncNotification(0, &OnNotice, nullptr, &m.notifications.At(m.input)); },
    [](Machine& m) { (void)m.d.DeviceUnregisterAsyncNotification(0, m.notifications.At(m.input)); },
};

}  // namespace

std::span<const Operation> WorkOperations() { return kWork; }
std::span<const Operation> ObjectOperations() { return kObjects; }

}  // namespace cuaudit::fuzz
