// SPDX-License-Identifier: MIT
#include "suites/contract/furniture.h"

namespace cuaudit::contract::failure_questions {
namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;
constexpr std::size_t kPeta = std::size_t{1} << 50;

void BeSlow(void* done) {
  volatile int turns = 0;
  while (turns < 400000000) turns = turns + 1;
  *static_cast<volatile int*>(done) = 1;
}
int done;  // set by BeSlow

CUmemLocation Here() { return {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}; }

constexpr Question kQuestions[] = {
    {"reset.memory_is_gone", "SUCCESS CONTEXT_IS_DESTROYED CONTEXT_IS_DESTROYED INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       void* h = nullptr;
       CUcontext popped = nullptr;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.MemAllocHost(&h, 4096));
       a(a.d.DevicePrimaryCtxReset(0));
       a(a.d.MemFree(p));
       a(a.d.CtxSynchronize(nullptr));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a(a.d.MemFree(p));
       a(a.d.MemFreeHost(h));
     }},
    {"reset.module_is_gone", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUcontext popped = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a(a.d.ModuleUnload(m));
     }},
    {"reset.event_is_gone", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       CUcontext popped = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a(a.d.EventDestroy(e));
     }},
    {"reset.retain_again", "SUCCESS 1 SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext again = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a(a.d.DevicePrimaryCtxRetain(&again, 0));
       a.Value(again == ready.context);
       a(a.d.MemAlloc(&p, 4096));
       a(a.d.MemFree(p));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"reset.counts", "SUCCESS 1 SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       unsigned flags = 0;
       int active = -1;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"reset.flags", "4 SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       unsigned flags = 0;
       int active = 0;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(flags);
       a(a.d.DevicePrimaryCtxReset(0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(flags);
     }},
    {"reset.spares_other_contexts", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       CUstream s = nullptr;
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.StreamCreate(&s, 0));
       a(a.d.DevicePrimaryCtxReset(0));
       a(a.d.StreamSynchronize(s));
       a(a.d.MemFree(p));
       a(a.d.StreamDestroy(s));
       a(a.d.CtxDestroy(c));
     }},
    {"reset.spares_graphs", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUgraph g = nullptr;
       std::size_t count = 0;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a(a.d.GraphGetNodes(g, nullptr, &count));
       a(a.d.GraphDestroy(g));
     }},
    {"reset.pool_is_gone", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps wish{};
       wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       wish.location = Here();
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &wish));
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a(a.d.MemPoolDestroy(pool));
     }},
    {"reset.while_busy", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       done = 0;
       a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, &done));
       a(a.d.DevicePrimaryCtxReset(0));
       a.Value(done);
     }},
    {"reset.while_capturing", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       a.Prepare(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.DevicePrimaryCtxReset(0));
     }},
    {"context.destroy_while_busy", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       const Furniture f(a);
       done = 0;
       a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, &done));
       a(a.d.CtxDestroy(c));
       a.Value(done);
     }},
    {"context.release_while_busy", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       const Furniture f(a);
       done = 0;
       a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, &done));
       a(a.d.DevicePrimaryCtxRelease(0));
       a.Value(done);
     }},
    {"context.destroy_while_capturing", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       const Furniture f(a);
       a.Prepare(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.CtxDestroy(c));
     }},
    {"context.reset_persisting_l2", "INVALID_CONTEXT SUCCESS", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.CtxResetPersistingL2Cache());
       const Ready ready(a);
       a(a.d.CtxResetPersistingL2Cache());
     }},
    {"refusal.leaves_no_trace", "INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       char byte = 0;
       a.Prepare(a.d.MemFree(f.p));
       a(a.d.MemcpyHtoDAsync(f.p, &byte, 1, f.s));
       a(a.d.MemsetD8Async(f.p, 0, 16, f.s));
       a(a.d.StreamQuery(f.s));
       a(a.d.StreamSynchronize(f.s));
       a(a.d.CtxSynchronize(nullptr));
     }},
    {"limit.huge", "OUT_OF_MEMORY OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       a(a.d.MemAlloc(&p, kPeta));
       a(a.d.MemAlloc(&p, ~std::size_t{0}));
       a(a.d.MemAlloc(&p, ~std::size_t{0} / 2));
       a(a.d.MemAlloc(&p, 4096));
       a(a.d.MemFree(p));
     }},
    {"limit.huge_pinned", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       void* h = nullptr;
       a(a.d.MemAllocHost(&h, kPeta));
       a(a.d.MemHostAlloc(&h, ~std::size_t{0}, 0));
       a(a.d.MemAllocHost(&h, 4096));
       a(a.d.MemFreeHost(h));
     }},
    {"limit.huge_pitch", "OUT_OF_MEMORY INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUdeviceptr p = 0;
       std::size_t pitch = 0;
       a(a.d.MemAllocPitch(&p, &pitch, std::size_t{1} << 30, std::size_t{1} << 20, 4));
       a(a.d.MemAllocPitch(&p, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 4));
     }},
    {"limit.huge_async", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, kPeta, f.s));
       a(a.d.MemAllocAsync(&p, ~std::size_t{0}, f.s));
       a(a.d.StreamSynchronize(f.s));
       a(a.d.MemAllocAsync(&p, 4096, f.s));
     }},
    {"limit.pool_maximum", "SUCCESS SUCCESS OUT_OF_MEMORY SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const Furniture f(a);
       CUmemPoolProps wish{};
       wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       wish.location = Here();
       wish.maxSize = 32 * kMega;
       CUmemoryPool pool = nullptr;
       CUdeviceptr p = 0;
       CUdeviceptr q = 0;
       a(a.d.MemPoolCreate(&pool, &wish));
       a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, f.s));
       a(a.d.MemAllocFromPoolAsync(&q, 64 * kMega, pool, f.s));
       a(a.d.MemFreeAsync(p, f.s));
       a(a.d.MemPoolDestroy(pool));
     }},
    {"limit.huge_virtual", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp shape{};
       shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       shape.location = Here();
       CUdeviceptr p = 0;
       CUmemGenericAllocationHandle h = 0;
       a(a.d.MemAddressReserve(&p, kPeta, 0, 0, 0));
       a(a.d.MemCreate(&h, kPeta, &shape, 0));
       a(a.d.MemAddressReserve(&p, 2 * kMega, 0, 0, 0));
       a(a.d.MemAddressFree(p, 2 * kMega));
     }},
    {"limit.huge_array", "INVALID_VALUE INVALID_VALUE SUCCESS", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUarray array = nullptr;
       CUDA_ARRAY_DESCRIPTOR shape{std::size_t{1} << 24, 1 << 20, CU_AD_FORMAT_UNSIGNED_INT8, 1};
       a(a.d.ArrayCreate(&array, &shape));
       shape = {16, std::size_t{1} << 24, CU_AD_FORMAT_UNSIGNED_INT8, 1};
       a(a.d.ArrayCreate(&array, &shape));
       a(a.d.CtxSynchronize(nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::failure_questions

namespace cuaudit::contract {
std::span<const Question> FailureQuestions() { return failure_questions::kQuestions; }
}  // namespace cuaudit::contract
