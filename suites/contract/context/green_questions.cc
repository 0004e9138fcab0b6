// SPDX-License-Identifier: MIT
// Device resources and green contexts: what they hold alive, what dies with them, and which calls they may stand in for.
#include "suites/contract/context/away.h"

namespace cuaudit::contract::green_questions {
namespace {

void Resource(Asker& a, CUresult result, const CUdevResource& r) {
  if (a(result) != CUDA_SUCCESS) return;
  a.Value(r.type);
  a.Value(r.sm.smCount);
  a.Value(r.sm.minSmPartitionSize);
  a.Value(r.sm.smCoscheduledAlignment);
}

void Active(Asker& a) {
  unsigned flags = 0;
  int active = -1;
  a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("green.device_resource", "SUCCESS 1 132 8 8 INVALID_RESOURCE_TYPE INVALID_RESOURCE_TYPE INVALID_DEVICE INVALID_VALUE",
            [](Ready& a) {
              CUdevResource r = {};
              Resource(a, a.d.DeviceGetDevResource(0, &r, CU_DEV_RESOURCE_TYPE_SM), r);
              a(a.d.DeviceGetDevResource(0, &r, CU_DEV_RESOURCE_TYPE_INVALID));
              a(a.d.DeviceGetDevResource(0, &r, Beyond<CUdevResourceType>(77)));
              a(a.d.DeviceGetDevResource(99, &r, CU_DEV_RESOURCE_TYPE_SM));
              a(a.d.DeviceGetDevResource(0, nullptr, CU_DEV_RESOURCE_TYPE_SM));
            });
  ask.Risky("green.context_resource", "SUCCESS 1 132 8 8 INVALID_CONTEXT", [](Ready& a) {
    CUdevResource r = {};
    Resource(a, a.d.CtxGetDevResource(a.context, &r, CU_DEV_RESOURCE_TYPE_SM), r);
    Resource(a, a.d.CtxGetDevResource(nullptr, &r, CU_DEV_RESOURCE_TYPE_SM), r);
  });
  ask.Plain("green.split_counts",
            "SUCCESS 15 SUCCESS 15 SUCCESS 15 SUCCESS 8 SUCCESS 8 SUCCESS 4 SUCCESS 3 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 1 "
            "INVALID_RESOURCE_CONFIGURATION",
            [](Ready& a) {
              CUdevResource all = {};
              a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
              for (const unsigned count : {0U, 1U, 8U, 9U, 16U, 30U, 33U, 66U, 67U, 128U, 132U, 133U}) {
                unsigned groups = 0;
                if (a(a.d.DevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, count)) == CUDA_SUCCESS) a.Value(groups);
              }
            });
  ask.Plain("green.split_flags",
            "SUCCESS 64 2 4 1 SUCCESS 33 4 0 0 SUCCESS 8 16 4 1 SUCCESS 6 20 12 1 SUCCESS 15 8 12 1 SUCCESS 15 8 12 1 SUCCESS 8 16 4 1 "
            "SUCCESS 5 24 12 1 INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS 15 8 12 1 SUCCESS 15 8 12 1 SUCCESS 8 16 4 "
            "1 SUCCESS 5 24 12 "
            "1",
            [](Ready& a) {
              CUdevResource all = {};
              a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
              for (const unsigned flags : {1U, 2U, 3U, 4U}) {
                for (const unsigned count : {1U, 3U, 16U, 20U}) {
                  CUdevResource part[64] = {}, rest = {};
                  unsigned groups = 64;
                  if (a(a.d.DevSmResourceSplitByCount(part, &groups, &all, &rest, flags, count)) != CUDA_SUCCESS) continue;
                  a.Value(groups);
                  a.Value(part[0].sm.smCount);
                  a.Value(rest.sm.smCount);
                  a.Value(rest.type);
                }
              }
            });
  ask.Plain("green.split_results",
            "SUCCESS 15 8 1 12 SUCCESS 15 8 1 12 SUCCESS 3 16 1 84 SUCCESS 5 24 1 12 SUCCESS 2 64 1 4 SUCCESS 1 72 1 60 SUCCESS 1 128 1 4 "
            "SUCCESS 1 132 0 0",
            [](Ready& a) {
              CUdevResource all = {};
              a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
              for (const unsigned count : {0U, 1U, 16U, 20U, 64U, 66U, 128U, 132U}) {
                CUdevResource part[32] = {}, rest = {};
                unsigned groups = count == 16 ? 3 : 32;
                if (a(a.d.DevSmResourceSplitByCount(part, &groups, &all, &rest, 0, count)) != CUDA_SUCCESS) continue;
                a.Value(groups);
                a.Value(part[0].sm.smCount);
                a.Value(rest.type);
                a.Value(rest.sm.smCount);
              }
            });
  ask.Risky("green.split_again",
            "SUCCESS 1 32 0 0 SUCCESS 1 68 0 0 INVALID_RESOURCE_CONFIGURATION INVALID_RESOURCE_CONFIGURATION INVALID_RESOURCE_TYPE "
            "INVALID_VALUE INVALID_VALUE",
            [](Ready& a) {
              CUdevResource all = {}, part[2] = {}, rest = {}, inner[8] = {};
              unsigned groups = 2;
              a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
              a.Prepare(a.d.DevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 32));
              Resource(a, CUDA_SUCCESS, part[1]);
              Resource(a, CUDA_SUCCESS, rest);
              unsigned inside = 8;
              a(a.d.DevSmResourceSplitByCount(inner, &inside, &part[0], nullptr, 0, 8));
              inside = 8;
              a(a.d.DevSmResourceSplitByCount(inner, &inside, &rest, nullptr, 0, 8));
              all.type = CU_DEV_RESOURCE_TYPE_INVALID;
              inside = 8;
              a(a.d.DevSmResourceSplitByCount(inner, &inside, &all, nullptr, 0, 8));
              a(a.d.DevSmResourceSplitByCount(inner, nullptr, &part[0], nullptr, 0, 8));
              inside = 0;
              a(a.d.DevSmResourceSplitByCount(inner, &inside, &rest, nullptr, 0, 8));
            });
  ask.Risky("green.descriptor_kinds", "SUCCESS SUCCESS INVALID_RESOURCE_TYPE", [](Ready& a) {
    CUdevResource all = {}, part[2] = {};
    unsigned groups = 2;
    CUdevResourceDesc desc = nullptr;
    a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    a.Prepare(a.d.DevSmResourceSplitByCount(part, &groups, &all, nullptr, 0, 32));
    a(a.d.DevResourceGenerateDesc(&desc, &all, 1));
    a(a.d.DevResourceGenerateDesc(&desc, part, 2));
    CUdevResource invalid = {};
    a(a.d.DevResourceGenerateDesc(&desc, &invalid, 1));
  });
  ask.Risky("green.invented_resource", "INVALID_RESOURCE_CONFIGURATION", [](Ready& a) {
    CUdevResource invented = {};
    invented.type = CU_DEV_RESOURCE_TYPE_SM;
    invented.sm.smCount = 16;
    a(a.d.DevResourceGenerateDesc(kIgnored, &invented, 1));
  });
  ask.Risky("green.no_resources", "crash", [](Ready& a) {
    CUdevResource all = {};
    a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    a(a.d.DevResourceGenerateDesc(kIgnored, &all, 0));
  });
  ask.Risky("green.null_descriptor", "SUCCESS SUCCESS 1 132 8 8", [](Ready& a) {
    CUgreenCtx green = nullptr;
    CUdevResource r = {};
    a(a.d.GreenCtxCreate(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    Resource(a, a.d.GreenCtxGetDevResource(green, &r, CU_DEV_RESOURCE_TYPE_SM), r);
  });
  ask.Risky("green.streams_of_current", "SUCCESS 1 1 SUCCESS 1 INVALID_HANDLE", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext view = nullptr, c = nullptr;
    CUgreenCtx g = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&view, green));
    a.Prepare(a.d.CtxPushCurrent(view));
    a(a.d.StreamGetCtx(nullptr, &c, &g));
    a.Value(c == a.context);
    a.Value(g == green);
    a(a.d.StreamGetGreenCtx(CU_STREAM_LEGACY, &g));
    a.Value(g == green);
    a(a.d.StreamGetCtx(CU_STREAM_PER_THREAD, &c, &g));
  });
  ask.Risky("green.create_arguments", "INVALID_VALUE INVALID_VALUE INVALID_DEVICE INVALID_VALUE SUCCESS", [](Ready& a) {
    CUgreenCtx green = nullptr;
    const CUdevResourceDesc desc = Group(a, 16);
    a(a.d.GreenCtxCreate(&green, desc, 0, 0));
    a(a.d.GreenCtxCreate(&green, desc, 0, 3));
    a(a.d.GreenCtxCreate(&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM));
    a(a.d.GreenCtxCreate(nullptr, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    a(a.d.GreenCtxCreate(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  });
  ask.Fresh("green.retains_primary", "0 1 SUCCESS 0", [](Initialised& a) {
    Active(a);
    const CUgreenCtx green = Green(a);
    Active(a);
    a(a.d.GreenCtxDestroy(green));
    Active(a);
  });
  ask.Risky("green.converted", "SUCCESS 0 1 SUCCESS 0 SUCCESS 3020 SUCCESS 1 SUCCESS 1 16 8 8", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr, again = nullptr;
    a(a.d.CtxFromGreenCtx(&c, green));
    a.Value(c == a.context);
    a.Prepare(a.d.CtxFromGreenCtx(&again, green));
    a.Value(c == again);
    CUdevice device = 9;
    a(a.d.CtxGetDevice(&device, c), device);
    unsigned version = 0;
    a(a.d.CtxGetApiVersion(c, &version), version);
    unsigned long long id = 0, primary = 0;
    a(a.d.CtxGetId(c, &id));
    a.Prepare(a.d.CtxGetId(a.context, &primary));
    a.Value(id != primary);
    CUdevResource r = {};
    Resource(a, a.d.CtxGetDevResource(c, &r, CU_DEV_RESOURCE_TYPE_SM), r);
  });
  ask.Risky("green.identity", "SUCCESS 1 SUCCESS 1 16 8 8 INVALID_RESOURCE_TYPE", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    unsigned long long id = 0, context = 0;
    a(a.d.GreenCtxGetId(green, &id));
    a.Prepare(a.d.CtxGetId(c, &context));
    a.Value(id == context);
    CUdevResource r = {};
    Resource(a, a.d.GreenCtxGetDevResource(green, &r, CU_DEV_RESOURCE_TYPE_SM), r);
    a(a.d.GreenCtxGetDevResource(green, &r, CU_DEV_RESOURCE_TYPE_INVALID));
  });
  ask.Risky("green.null_and_converted_destroy", "INVALID_CONTEXT x3 SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr;
    a(a.d.GreenCtxDestroy(nullptr));
    a(a.d.CtxFromGreenCtx(&c, nullptr));
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    a(a.d.CtxDestroy(c));
    a(a.d.GreenCtxDestroy(green));
  });
  ask.Risky("green.destroy_twice", "SUCCESS CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    a(a.d.GreenCtxDestroy(green));
    a(a.d.GreenCtxDestroy(green));
  });
  ask.Risky("green.current", "SUCCESS 1 SUCCESS SUCCESS 1 SUCCESS SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr, current = nullptr;
    CUdeviceptr p = 0;
    CUstream s = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    a(a.d.CtxPushCurrent(c));
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(current == c);
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUgreenCtx of_green = nullptr;
    a.Prepare(a.d.StreamGetCtx(s, kIgnored, &of_green));
    a.Value(of_green == green);
    a(a.d.StreamDestroy(s));
    a(a.d.MemFree(p));
  });
  ask.Risky("green.destroyed_current", "SUCCESS SUCCESS 1 0 CONTEXT_IS_DESTROYED SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr, current = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    a.Prepare(a.d.CtxPushCurrent(c));
    a(a.d.GreenCtxDestroy(green));
    a(a.d.CtxGetCurrent(&current));
    a.Value(current == c);
    a.Value(current == a.context);
    a(a.d.MemAlloc(kIgnored, 4096));
    a(a.d.CtxPopCurrent(&current));
  });
  ask.Risky("green.memory_outlives", "SUCCESS x3", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext c = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&c, green));
    a.Prepare(a.d.CtxPushCurrent(c));
    const CUdeviceptr p = a.MemAlloc(4096);
    const CUevent e = a.EventCreate();
    a.CtxPopCurrent();
    a(a.d.GreenCtxDestroy(green));
    a(a.d.MemFree(p));
    a(a.d.EventDestroy(e));
  });
}

}  // namespace cuaudit::contract::green_questions
