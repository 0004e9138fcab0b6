// SPDX-License-Identifier: MIT
// Managed memory: what is advised, prefetched, discarded and remembered about its ranges.
#include "suites/contract/question.h"

namespace cuaudit::contract::range_questions {
namespace {

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};
constexpr CUmemLocation kNode{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};

// Managed memory of two large pages.
struct Managed {
  explicit Managed(Asker& a) : asker(a), p(a.MemAllocManaged(2 * kGranule)) {}
  void Tell(CUmem_range_attribute attribute, std::size_t bytes = 2 * kGranule) const {
    int value = 77;
    asker.Values(asker.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, bytes), value);
  }
  Asker& asker;
  const CUdeviceptr p;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("range.untouched", "0 -2 -2 0 -2 0 -2", [](Ready&, const Managed& managed) {
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
  });
  ask.Risky("range.bad_arguments", "INVALID_VALUE x6", [](Ready& a, const Managed& managed) {
    int value[4] = {};
    a(a.d.MemRangeGetAttribute(value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, 0));
    a(a.d.MemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, Beyond<CUmem_range_attribute>(99), managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, kGranule));
  });
  ask.Risky("range.not_managed", "INVALID_VALUE x3", [](Ready& a, const Managed&) {
    int value = 0;
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, kGranule));
    a(a.d.MemAdvise(p, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemPrefetchAsync(p, kGranule, kDevice, 0, nullptr));
  });
  ask.Risky("range.beyond_end", "INVALID_VALUE x3", [](Ready& a, const Managed& managed) {
    int value = 0;
    a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p + kGranule, std::size_t{1} << 40));
    a(a.d.MemAdvise(managed.p + kGranule, std::size_t{1} << 40, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemPrefetchAsync(managed.p + kGranule, std::size_t{1} << 40, kDevice, 0, nullptr));
  });
  ask.Risky("range.plural", "SUCCESS 0 -2 INVALID_VALUE INVALID_VALUE", [](Ready& a, const Managed& managed) {
    int value[2] = {77, 77};
    void* out[2] = {&value[0], &value[1]};
    std::size_t sizes[2] = {4, 4};
    CUmem_range_attribute wanted[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kGranule));
    a.Value(value[0]);
    a.Value(value[1]);
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 0, managed.p, kGranule));
    sizes[1] = 3;
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kGranule));
  });
  ask.Plain("range.read_mostly", "SUCCESS 1 SUCCESS 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
  });
  ask.Plain("range.half_advised", "SUCCESS 1 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kGranule);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
  });
  ask.Plain("range.preferred", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -2 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kHost));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
  });
  ask.Plain("range.preferred_node", "SUCCESS -2 0 -2", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kNode));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
  });
  ask.Plain("range.half_preferred", "SUCCESS -2 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
  });
  ask.Plain("range.accessed_by", "SUCCESS SUCCESS 0 -2 -2 SUCCESS SUCCESS -2 -2", [](Ready& a, const Managed& managed) {
    int value[3] = {77, 77, 77};
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule));
    for (const int one : value) a.Value(one);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule), value[0], value[1]);
  });
  ask.Risky("range.accessed_by_host", "SUCCESS SUCCESS 0 -1 -2 INVALID_VALUE", [](Ready& a, const Managed& managed) {
    int value[3] = {77, 77, 77};
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kHost));
    a.Prepare(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule));
    for (const int one : value) a.Value(one);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kNode));
  });
  ask.Risky("range.bad_advice", "INVALID_VALUE x7", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, Beyond<CUmem_advise>(0), kDevice));
    a(a.d.MemAdvise(managed.p, kGranule, Beyond<CUmem_advise>(99), kDevice));
    a(a.d.MemAdvise(managed.p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemAdvise(0, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_INVALID, 0}));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 4095}));
  });
  ask.Plain("range.prefetch", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -1 3", [](Ready& a, const Managed& managed) {
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kDevice, 0, nullptr));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kHost, 0, nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kNode, 0, nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    a.Prepare(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("range.bad_prefetch", "INVALID_DEVICE INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    a(a.d.MemPrefetchAsync(managed.p, kGranule, {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, 0, kDevice, 0, nullptr));
    a(a.d.MemPrefetchAsync(0, kGranule, kDevice, 0, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, kGranule, kDevice, 1, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, kGranule, {CU_MEM_LOCATION_TYPE_INVALID, 0}, 0, nullptr));
  });
  ask.Fresh("range.prefetch_while_capturing", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
            [](Ready& a, const Managed& managed) {
              const CUstream s = a.StreamCreate();
              a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
              a(a.d.MemPrefetchAsync(managed.p, kGranule, kDevice, 0, s));
              a(a.d.StreamEndCapture(s, kIgnored));
            });
  ask.Risky("range.prefetch_batch", "SUCCESS 0 INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr at[2] = {managed.p, managed.p + kGranule};
    std::size_t sizes[2] = {kGranule, kGranule};
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
  });
  ask.Risky("range.discard", "SUCCESS INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr other = a.MemAlloc(kGranule);
    CUdeviceptr at[1] = {managed.p};
    std::size_t sizes[1] = {kGranule};
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 0, 0, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 1, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, nullptr));
    at[0] = other;
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
    a.Prepare(a.d.StreamSynchronize(s));
  });
  ask.Risky("range.discard_and_prefetch", "SUCCESS 0 INVALID_VALUE", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr at[2] = {managed.p, managed.p + kGranule};
    std::size_t sizes[2] = {kGranule, kGranule};
    CUmemLocation where[1] = {kDevice};
    std::size_t first[1] = {0};
    a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
    a.Prepare(a.d.StreamSynchronize(s));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 3, 0, s));
  });
  ask.Risky("range.attach", "SUCCESS SUCCESS INVALID_VALUE x3", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr other = a.MemAlloc(4096);
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_SINGLE));
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_GLOBAL));
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, 8));
    a(a.d.StreamAttachMemAsync(s, other, 0, CU_MEM_ATTACH_SINGLE));
    a(a.d.StreamAttachMemAsync(s, managed.p, 64, CU_MEM_ATTACH_SINGLE));
    a.Prepare(a.d.StreamSynchronize(s));
  });
}

}  // namespace cuaudit::contract::range_questions
