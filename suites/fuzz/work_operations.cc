// SPDX-License-Identifier: MIT
// Contexts, streams, events, host functions, kernels, waits for values.
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

void Nothing(void*) {}
void NothingEither(CUstream, CUresult, void*) {}

constexpr Operation kOperations[] = {
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

}  // namespace

std::span<const Operation> WorkOperations() { return kOperations; }

}  // namespace cuaudit::fuzz
