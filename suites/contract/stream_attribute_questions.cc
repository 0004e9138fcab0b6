// SPDX-License-Identifier: MIT
// Attributes and priorities of streams.
#include "suites/contract/question.h"

namespace cuaudit::contract::stream_attribute_questions {
namespace {

struct Two {
  explicit Two(Asker& a) : asker(a) {
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.StreamCreateWithPriority(&t, 0, -2));
  }
  ~Two() {
    (void)asker.d.StreamDestroy(s);
    (void)asker.d.StreamDestroy(t);
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;
  Asker& asker;
  CUstream s = nullptr;
  CUstream t = nullptr;
};

CUstreamAttrValue Window(CUdeviceptr p, std::size_t bytes, float ratio, CUaccessProperty hit) {
  CUstreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(p);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = ratio;
  value.accessPolicyWindow.hitProp = hit;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  return value;
}

constexpr Question kQuestions[] = {
    {"stream_attribute.known",
     "INVALID_VALUE SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS SUCCESS "
     "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE",
     Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       for (unsigned i = 0; i < 20; ++i) {
         CUstreamAttrValue value = {};
         a(a.d.StreamGetAttribute(two.s, Beyond<CUstreamAttrID>(i), &value));
       }
     }},
    {"stream_attribute.defaults", "SUCCESS 4294967295 SUCCESS -2 SUCCESS 0 SUCCESS 0 1 SUCCESS 0 0 0 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       CUstreamAttrValue value = {};
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a.Value(value.syncPolicy);
       value = {};
       a(a.d.StreamGetAttribute(two.t, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
       a.Value(value.priority);
       value = {};
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
       a.Value(value.memSyncDomain);
       value = {};
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
       a.Value(value.memSyncDomainMap.default_);
       a.Value(value.memSyncDomainMap.remote);
       value = {};
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
       a.Value(static_cast<long long>(value.accessPolicyWindow.num_bytes));
       a.Value(value.accessPolicyWindow.hitProp);
       a.Value(value.accessPolicyWindow.missProp);
       a.Value(static_cast<long long>(value.accessPolicyWindow.hitRatio * 100));
     }},
    {"stream_attribute.policy", "INVALID_VALUE 4294967295 SUCCESS 1 SUCCESS 2 SUCCESS 3 SUCCESS 4 INVALID_VALUE 4", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       for (unsigned policy = 0; policy <= 5; ++policy) {
         CUstreamAttrValue value = {};
         value.syncPolicy = Beyond<CUsynchronizationPolicy>(policy);
         a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
         value = {};
         a.Prepare(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
         a.Value(value.syncPolicy);
       }
     }},
    {"stream_attribute.priority", "SUCCESS -3 SUCCESS 0 SUCCESS -5", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       for (const int priority : {-3, 5, -50}) {
         CUstreamAttrValue value = {};
         value.priority = priority;
         a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
         int now = 9;
         a.Prepare(a.d.StreamGetPriority(two.s, &now));
         a.Value(now);
       }
     }},
    {"stream_attribute.domains", "SUCCESS SUCCESS INVALID_VALUE SUCCESS 0 0 SUCCESS 0 1 SUCCESS 0 3 INVALID_VALUE 0 3", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       CUstreamAttrValue value = {};
       for (unsigned domain = 0; domain < 3; ++domain) {
         value = {};
         value.memSyncDomain = Beyond<CUlaunchMemSyncDomain>(domain);
         a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
       }
       for (const unsigned char remote : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{3}, std::uint8_t{4}}) {
         value = {};
         value.memSyncDomainMap.remote = remote;
         a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
         value = {};
         a.Prepare(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
         a.Value(value.memSyncDomainMap.default_);
         a.Value(value.memSyncDomainMap.remote);
       }
     }},
    {"stream_attribute.window", "SUCCESS SUCCESS 1 1048576 2 SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS",
     Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 1 << 20));
       const auto set = [&](CUstreamAttrValue value) {
         a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
       };
       set(Window(p, 1 << 20, 0.5F, CU_ACCESS_PROPERTY_PERSISTING));
       CUstreamAttrValue value = {};
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
       a.Value(value.accessPolicyWindow.base_ptr == reinterpret_cast<void*>(p));
       a.Value(static_cast<long long>(value.accessPolicyWindow.num_bytes));
       a.Value(value.accessPolicyWindow.hitProp);
       set(Window(p, 134213632, 1, CU_ACCESS_PROPERTY_STREAMING));
       set(Window(p, 134213633, 1, CU_ACCESS_PROPERTY_STREAMING));
       set(Window(p, 4096, 2, CU_ACCESS_PROPERTY_PERSISTING));
       set(Window(p, 4096, -1, CU_ACCESS_PROPERTY_PERSISTING));
       CUstreamAttrValue miss = Window(p, 4096, 1, CU_ACCESS_PROPERTY_NORMAL);
       miss.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
       set(miss);
       set(Window(0, 0, 0, CU_ACCESS_PROPERTY_NORMAL));
       (void)a.d.MemFree(p);
     }},
    {"stream_attribute.copy", "SUCCESS 3 -2 SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       CUstreamAttrValue value = {};
       value.syncPolicy = CU_SYNC_POLICY_YIELD;
       a.Prepare(a.d.StreamSetAttribute(two.t, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a(a.d.StreamCopyAttributes(two.s, two.t));
       value = {};
       a.Prepare(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a.Value(value.syncPolicy);
       int priority = 9;
       a.Prepare(a.d.StreamGetPriority(two.s, &priority));
       a.Value(priority);
       a(a.d.StreamCopyAttributes(nullptr, two.t));
       a(a.d.StreamCopyAttributes(two.s, nullptr));
       a(a.d.StreamCopyAttributes(two.s, two.s));
     }},
    {"stream_attribute.copy_across_contexts", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       CUstream t = nullptr;
       CUcontext c = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamCopyAttributes(s, t));
     }},
    {"stream_attribute.default_stream", "SUCCESS 4294967295 SUCCESS SUCCESS 2 SUCCESS 4294967295", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstreamAttrValue value = {};
       a(a.d.StreamGetAttribute(nullptr, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a.Value(value.syncPolicy);
       value.syncPolicy = CU_SYNC_POLICY_SPIN;
       a(a.d.StreamSetAttribute(nullptr, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a(a.d.StreamGetAttribute(CU_STREAM_LEGACY, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a.Value(value.syncPolicy);
       a(a.d.StreamGetAttribute(CU_STREAM_PER_THREAD, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a.Value(value.syncPolicy);
     }},
    {"stream_attribute.captured", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Two two(a);
       CUgraph g = nullptr;
       CUstreamAttrValue value = {};
       a.Prepare(a.d.StreamBeginCapture(two.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.StreamGetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       value.syncPolicy = CU_SYNC_POLICY_SPIN;
       a(a.d.StreamSetAttribute(two.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
       a(a.d.StreamCopyAttributes(two.s, two.t));
       a(a.d.StreamEndCapture(two.s, &g));
       (void)a.d.GraphDestroy(g);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::stream_attribute_questions

namespace cuaudit::contract {
std::span<const Question> StreamAttributeQuestions() { return stream_attribute_questions::kQuestions; }
}  // namespace cuaudit::contract
