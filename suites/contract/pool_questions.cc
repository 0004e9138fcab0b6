// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::pool_questions {
namespace {

constexpr Question kQuestions[] = {
    {"pool.async_round_trip", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.StreamSynchronize(s));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.async_zero", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr p = 0;
       a(a.d.MemAllocAsync(&p, 0, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.async_free_twice", "SUCCESS INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFreeAsync(p, s));
       a(a.d.MemFreeAsync(p, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.sync_free_of_async", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocAsync(&p, 1024, s));
       a(a.d.MemFree(p));
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.create_destroy", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       a(a.d.MemPoolCreate(&pool, &properties));
       a(a.d.MemPoolDestroy(pool));
     }},
    {"pool.create_bad", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       CUmemoryPool pool = nullptr;
       a(a.d.MemPoolCreate(&pool, &properties));
     }},
    {"pool.destroy_default", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
       a(a.d.MemPoolDestroy(pool));
     }},
    {"pool.current_is_default", "1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUmemoryPool pool = nullptr;
       CUmemoryPool current = nullptr;
       a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
       a.Prepare(a.d.DeviceGetMemPool(&current, 0));
       a.Value(pool == current);
     }},
    {"pool.destroy_resets_current", "1", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       CUmemoryPool current = nullptr;
       CUmemoryPool standard = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.DeviceSetMemPool(0, pool));
       a.Prepare(a.d.MemPoolDestroy(pool));
       a.Prepare(a.d.DeviceGetMemPool(&current, 0));
       a.Prepare(a.d.DeviceGetDefaultMemPool(&standard, 0));
       a.Value(current == standard);
     }},
    {"pool.threshold", "0 SUCCESS 4096", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       cuuint64_t value = 9;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
       a.Value(static_cast<long long>(value));
       value = 4096;
       a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
       value = 0;
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
       a.Value(static_cast<long long>(value));
       (void)a.d.MemPoolDestroy(pool);
     }},
    {"pool.reserved_cannot_be_set", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       cuuint64_t value = 1;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
       (void)a.d.MemPoolDestroy(pool);
     }},
    {"pool.used_and_reserved", "1024 33554432 0 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       CUdeviceptr p = 0;
       cuuint64_t value = 9;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       a.Prepare(a.d.MemAllocFromPoolAsync(&p, 1024, pool, s));
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
       a.Value(static_cast<long long>(value));
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
       a.Value(static_cast<long long>(value));
       a.Prepare(a.d.MemFreeAsync(p, s));
       a.Prepare(a.d.StreamSynchronize(s));
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
       a.Value(static_cast<long long>(value));
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
       a.Value(static_cast<long long>(value));
       (void)a.d.MemPoolDestroy(pool);
       (void)a.d.StreamDestroy(s);
     }},
    {"pool.access", "SUCCESS 3", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmemoryPool pool = nullptr;
       CUmemAccess_flags flags{};
       CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
       a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
       a(a.d.MemPoolGetAccess(&flags, pool, &location));
       a.Value(flags);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::pool_questions

namespace cuaudit::contract {
std::span<const Question> PoolQuestions() { return pool_questions::kQuestions; }
}  // namespace cuaudit::contract
