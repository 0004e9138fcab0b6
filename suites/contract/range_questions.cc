// SPDX-License-Identifier: MIT
// Managed memory: what is advised, prefetched, discarded and remembered about its ranges.
#include "suites/contract/question.h"

namespace cuaudit::contract::range_questions {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};
constexpr CUmemLocation kNode{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};

// Managed memory of two large pages.
struct Managed {
  explicit Managed(Asker& a) : asker(a) { a.Prepare(a.d.MemAllocManaged(&p, 2 * kBytes, CU_MEM_ATTACH_GLOBAL)); }
  ~Managed() { (void)asker.d.MemFree(p); }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;
  void Tell(CUmem_range_attribute attribute, std::size_t bytes = 2 * kBytes) const {
    int value = 77;
    asker.Prepare(asker.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, bytes));
    asker.Value(value);
  }
  Asker& asker;
  CUdeviceptr p = 0;
};

constexpr Question kQuestions[] = {
    {"range.untouched", "0 -2 -2 0 -2 0 -2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
     }},
    {"range.bad_arguments", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       int value[4] = {};
       a(a.d.MemRangeGetAttribute(value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kBytes));
       a(a.d.MemRangeGetAttribute(value, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, kBytes));
       a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, 0));
       a(a.d.MemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kBytes));
       a(a.d.MemRangeGetAttribute(value, 4, Beyond<CUmem_range_attribute>(99), managed.p, kBytes));
       a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, kBytes));
     }},
    {"range.not_managed", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUdeviceptr p = 0;
       int value = 0;
       a.Prepare(a.d.MemAlloc(&p, kBytes));
       a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, kBytes));
       a(a.d.MemAdvise(p, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       a(a.d.MemPrefetchAsync(p, kBytes, kDevice, 0, nullptr));
       (void)a.d.MemFree(p);
     }},
    {"range.beyond_end", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       int value = 0;
       a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p + kBytes, std::size_t{1} << 40));
       a(a.d.MemAdvise(managed.p + kBytes, std::size_t{1} << 40, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       a(a.d.MemPrefetchAsync(managed.p + kBytes, std::size_t{1} << 40, kDevice, 0, nullptr));
     }},
    {"range.plural", "SUCCESS 0 -2 INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       int value[2] = {77, 77};
       void* out[2] = {&value[0], &value[1]};
       std::size_t sizes[2] = {4, 4};
       CUmem_range_attribute wanted[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
       a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kBytes));
       a.Value(value[0]);
       a.Value(value[1]);
       a(a.d.MemRangeGetAttributes(out, sizes, wanted, 0, managed.p, kBytes));
       sizes[1] = 3;
       a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kBytes));
     }},
    {"range.read_mostly", "SUCCESS 1 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
     }},
    {"range.half_advised", "SUCCESS 1 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kBytes);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
     }},
    {"range.preferred", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -2 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kHost));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
     }},
    {"range.preferred_node", "SUCCESS -2 0 -2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kNode));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
     }},
    {"range.half_preferred", "SUCCESS -2 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
     }},
    {"range.accessed_by", "SUCCESS SUCCESS 0 -2 -2 SUCCESS SUCCESS -2 -2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       int value[3] = {77, 77, 77};
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
       a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kBytes));
       for (const int one : value) a.Value(one);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kDevice));
       a(a.d.MemRangeGetAttribute(value, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kBytes));
       a.Value(value[0]);
       a.Value(value[1]);
     }},
    {"range.accessed_by_host", "SUCCESS SUCCESS 0 -1 -2 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       int value[3] = {77, 77, 77};
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kHost));
       a.Prepare(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
       a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kBytes));
       for (const int one : value) a.Value(one);
       a(a.d.MemAdvise(managed.p, 2 * kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kNode));
     }},
    {"range.bad_advice", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemAdvise(managed.p, kBytes, Beyond<CUmem_advise>(0), kDevice));
       a(a.d.MemAdvise(managed.p, kBytes, Beyond<CUmem_advise>(99), kDevice));
       a(a.d.MemAdvise(managed.p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       a(a.d.MemAdvise(0, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
       a(a.d.MemAdvise(managed.p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}));
       a(a.d.MemAdvise(managed.p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_INVALID, 0}));
       a(a.d.MemAdvise(managed.p, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 4095}));
     }},
    {"range.prefetch", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -1 3", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemPrefetchAsync(managed.p, 2 * kBytes, kDevice, 0, nullptr));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
       a(a.d.MemPrefetchAsync(managed.p, 2 * kBytes, kHost, 0, nullptr));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
       a(a.d.MemPrefetchAsync(managed.p, 2 * kBytes, kNode, 0, nullptr));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
       a.Prepare(a.d.CtxSynchronize(nullptr));
     }},
    {"range.bad_prefetch", "INVALID_DEVICE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       a(a.d.MemPrefetchAsync(managed.p, kBytes, {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, nullptr));
       a(a.d.MemPrefetchAsync(managed.p, 0, kDevice, 0, nullptr));
       a(a.d.MemPrefetchAsync(0, kBytes, kDevice, 0, nullptr));
       a(a.d.MemPrefetchAsync(managed.p, kBytes, kDevice, 1, nullptr));
       a(a.d.MemPrefetchAsync(managed.p, kBytes, {CU_MEM_LOCATION_TYPE_INVALID, 0}, 0, nullptr));
     }},
    {"range.prefetch_while_capturing", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUstream s = nullptr;
       CUgraph graph = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
       a(a.d.MemPrefetchAsync(managed.p, kBytes, kDevice, 0, s));
       a(a.d.StreamEndCapture(s, &graph));
       (void)a.d.StreamDestroy(s);
     }},
    {"range.prefetch_batch", "SUCCESS 0 INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr at[2] = {managed.p, managed.p + kBytes};
       std::size_t sizes[2] = {kBytes, kBytes};
       CUmemLocation where[1] = {kDevice};
       std::size_t first[1] = {0};
       a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
       a.Prepare(a.d.StreamSynchronize(s));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       a(a.d.MemPrefetchBatchAsync(at, sizes, 0, where, first, 1, 0, s));
       a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 0, 0, s));
       a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 1, s));
       first[0] = 1;
       a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"range.discard", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUstream s = nullptr;
       CUdeviceptr other = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAlloc(&other, kBytes));
       CUdeviceptr at[1] = {managed.p};
       std::size_t sizes[1] = {kBytes};
       a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
       a(a.d.MemDiscardBatchAsync(at, sizes, 0, 0, s));
       a(a.d.MemDiscardBatchAsync(at, sizes, 1, 1, s));
       a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, nullptr));
       at[0] = other;
       a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
       a.Prepare(a.d.StreamSynchronize(s));
       (void)a.d.MemFree(other);
       (void)a.d.StreamDestroy(s);
     }},
    {"range.discard_and_prefetch", "SUCCESS 0 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUdeviceptr at[2] = {managed.p, managed.p + kBytes};
       std::size_t sizes[2] = {kBytes, kBytes};
       CUmemLocation where[1] = {kDevice};
       std::size_t first[1] = {0};
       a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
       a.Prepare(a.d.StreamSynchronize(s));
       managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
       a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 3, 0, s));
       (void)a.d.StreamDestroy(s);
     }},
    {"range.attach", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Managed managed(a);
       CUstream s = nullptr;
       CUdeviceptr other = 0;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemAlloc(&other, 4096));
       a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_SINGLE));
       a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_GLOBAL));
       a(a.d.StreamAttachMemAsync(s, managed.p, 0, 8));
       a(a.d.StreamAttachMemAsync(s, other, 0, CU_MEM_ATTACH_SINGLE));
       a(a.d.StreamAttachMemAsync(s, managed.p, 64, CU_MEM_ATTACH_SINGLE));
       a.Prepare(a.d.StreamSynchronize(s));
       (void)a.d.MemFree(other);
       (void)a.d.StreamDestroy(s);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::range_questions

namespace cuaudit::contract {
std::span<const Question> RangeQuestions() { return range_questions::kQuestions; }
}  // namespace cuaudit::contract
