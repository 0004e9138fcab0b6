// SPDX-License-Identifier: MIT
// Settings of pools, devices, functions, kernels, streams, graph nodes and managed memory that outlive the call: what is read back after a
// change, after one that is refused and after one that is undone; what a fresh object has, and what becomes of a setting when its owner
// ends.
#include "suites/contract/graph/graph_furniture.h"
#include "suites/contract/question.h"

namespace cuaudit::contract::object_setting_questions {
namespace {

constexpr cuuint64_t kAll = ~cuuint64_t{0};
constexpr auto kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
constexpr auto kCarveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
constexpr CUmemLocation kDevice = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

void Threshold(Asker& a, CUmemoryPool pool) {
  cuuint64_t value = 7;
  const CUresult result = a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
  const bool is_all = value == kAll;
  if (is_all) a.Either(result, is_all);
  else a.Either(result, value);
}
void SetThreshold(Asker& a, CUmemoryPool pool, cuuint64_t value) {
  a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
}

CUmemoryPool DefaultPool(Asker& a) {
  CUmemoryPool pool = nullptr;
  a.Prepare(a.d.DeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

// Whether the device takes its memory from that pool.
void IsCurrent(Asker& a, CUmemoryPool pool) {
  CUmemoryPool current = nullptr;
  const CUresult result = a.d.DeviceGetMemPool(&current, 0);
  const bool is_current = current == pool;
  a.Either(result, is_current);
}

void OfFunction(Asker& a, CUfunction f, CUfunction_attribute attribute) {
  int value = -7;
  a.Either(a.d.FuncGetAttribute(&value, attribute, f), value);
}

void OfKernel(Asker& a, CUkernel k, CUfunction_attribute attribute) {
  int value = -7;
  a.Either(a.d.KernelGetAttribute(&value, attribute, k, 0), value);
}

CUkernel Kernel(Asker& a, CUlibrary library) {
  CUkernel kernel = nullptr;
  a.Prepare(a.d.LibraryGetKernel(&kernel, library, "plain"));
  return kernel;
}

CUstreamAttrValue Window(CUdeviceptr p, std::size_t bytes) {
  CUstreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(p);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  return value;
}
void SetWindow(Asker& a, CUstream s, const CUstreamAttrValue& value) {
  a(a.d.StreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
}
void WindowOf(Asker& a, CUstream s) {
  CUstreamAttrValue value = {};
  const CUresult result = a.d.StreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
  a.Either(result, value.accessPolicyWindow.num_bytes, value.accessPolicyWindow.hitProp, value.accessPolicyWindow.missProp);
}

void ListOfPools(Questions& ask) {
  ask.Fresh("setting.threshold_put_back", "0 SUCCESS 1 SUCCESS 0", [](Ready& a) {
    const CUmemoryPool pool = DefaultPool(a);
    Threshold(a, pool);
    SetThreshold(a, pool, kAll);
    Threshold(a, pool);
    SetThreshold(a, pool, 0);
    Threshold(a, pool);
  });
  ask.Fresh("setting.threshold_refused", "SUCCESS crash", [](Ready& a) {
    const CUmemoryPool pool = DefaultPool(a);
    SetThreshold(a, pool, 4096);
    a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
    cuuint64_t value = 1;
    a(a.d.MemPoolSetAttribute(pool, Beyond<CUmemPool_attribute>(99), &value));
    Threshold(a, pool);
  });
  ask.Fresh("setting.threshold_after_release", "SUCCESS 4096 4096", [](Initialised& a) {
    (void)a.DevicePrimaryCtxRetain();
    SetThreshold(a, DefaultPool(a), 4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    Threshold(a, DefaultPool(a));
    (void)a.DevicePrimaryCtxRetain();
    Threshold(a, DefaultPool(a));
  });
  ask.Fresh("setting.threshold_after_reset", "SUCCESS 4096 4096", [](Initialised& a) {
    (void)a.DevicePrimaryCtxRetain();
    SetThreshold(a, DefaultPool(a), 4096);
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    Threshold(a, DefaultPool(a));
    (void)a.DevicePrimaryCtxRetain();
    Threshold(a, DefaultPool(a));
  });
  ask.Fresh("setting.threshold_without_context", "0 SUCCESS 4096", [](Initialised& a) {
    const CUmemoryPool pool = DefaultPool(a);
    Threshold(a, pool);
    SetThreshold(a, pool, 4096);
    Threshold(a, pool);
  });
  ask.Risky("setting.threshold_of_a_destroyed_pool", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    a.Prepare(a.d.MemPoolDestroy(pool));
    SetThreshold(a, pool, 4096);
    Threshold(a, pool);
  });
  ask.Fresh("setting.reuse_put_back", "SUCCESS 0 SUCCESS 1", [](Ready& a) {
    const CUmemoryPool pool = DefaultPool(a);
    for (int wanted : {0, 1}) {
      a(a.d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &wanted));
      int now = 7;
      a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &now), now);
    }
  });
  ask.Fresh("setting.pool_put_back", "1 SUCCESS 1 SUCCESS 1", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate(), before = DefaultPool(a);
    IsCurrent(a, before);
    a(a.d.DeviceSetMemPool(0, pool));
    IsCurrent(a, pool);
    a(a.d.DeviceSetMemPool(0, before));
    IsCurrent(a, before);
  });
  ask.Risky("setting.pool_refused", "SUCCESS INVALID_VALUE x3 1", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.DeviceSetMemPool(0, pool));
    a(a.d.DeviceSetMemPool(0, nullptr));
    a(a.d.DeviceSetMemPool(99, pool));
    a(a.d.DeviceSetMemPool(-1, pool));
    IsCurrent(a, pool);
  });
  ask.Risky("setting.pool_of_the_host_refused", "INVALID_VALUE 1", [](Ready& a) {
    CUmemPoolProps properties = PoolOfDevice();
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    a(a.d.DeviceSetMemPool(0, a.MemPoolCreate(properties)));
    IsCurrent(a, DefaultPool(a));
  });
  ask.Risky("setting.pool_destroyed", "SUCCESS 1 SUCCESS 0", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.DeviceSetMemPool(0, pool));
    a.Prepare(a.d.MemPoolDestroy(pool));
    IsCurrent(a, DefaultPool(a));
    a(a.d.DeviceSetMemPool(0, pool));
    IsCurrent(a, DefaultPool(a));
  });
  ask.Fresh("setting.pool_after_reset", "SUCCESS 1", [](Initialised& a) {
    (void)a.DevicePrimaryCtxRetain();
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.DeviceSetMemPool(0, pool));
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    IsCurrent(a, pool);
  });
  ask.Fresh("setting.pool_without_context", "1 SUCCESS 1", [](Initialised& a) {
    IsCurrent(a, DefaultPool(a));
    const CUmemoryPool pool = a.MemPoolCreate();
    a(a.d.DeviceSetMemPool(0, pool));
    IsCurrent(a, pool);
  });
  ask.Risky("setting.access_refused", "3 INVALID_DEVICE 3", [](Ready& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    CUmemLocation here = kDevice;
    CUmemAccess_flags flags{};
    a.Either(a.d.MemPoolGetAccess(&flags, pool, &here), flags);
    const CUmemAccessDesc none = {kDevice, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    a(a.d.MemPoolSetAccess(pool, &none, 1));
    a.Either(a.d.MemPoolGetAccess(&flags, pool, &here), flags);
  });
}

void ListOfCode(Questions& ask) {
  ask.Plain("setting.function_put_back", "49152 SUCCESS 100000 SUCCESS 49152", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    OfFunction(a, f, kDynamic);
    for (const int bytes : {100000, 49152}) {
      a(a.d.FuncSetAttribute(f, kDynamic, bytes));
      OfFunction(a, f, kDynamic);
    }
  });
  ask.Plain("setting.carveout_put_back", "-1 SUCCESS 100 SUCCESS 0 SUCCESS -1", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    OfFunction(a, f, kCarveout);
    for (const int share : {100, 0, -1}) {
      a(a.d.FuncSetAttribute(f, kCarveout, share));
      OfFunction(a, f, kCarveout);
    }
  });
  ask.Plain("setting.function_refused", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_VALUE 60000", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.FuncSetAttribute(f, kDynamic, 60000));
    a(a.d.FuncSetAttribute(f, kDynamic, 0x7fffffff));
    a(a.d.FuncSetAttribute(f, kDynamic, -1));
    a(a.d.FuncSetAttribute(f, Beyond<CUfunction_attribute>(99), 1));
    OfFunction(a, f, kDynamic);
  });
  ask.Plain("setting.function_zero", "SUCCESS 0 SUCCESS", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.FuncSetAttribute(f, kDynamic, 0));
    OfFunction(a, f, kDynamic);
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Plain("setting.function_of_a_module_loaded_anew", "SUCCESS 49152 60000", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.FuncSetAttribute(f, kDynamic, 60000));
    OfFunction(a, a.ModuleGetFunction("plain"), kDynamic);
    OfFunction(a, f, kDynamic);
  });
  ask.Risky("setting.function_of_an_unloaded_module", "INVALID_HANDLE INVALID_HANDLE", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    const CUfunction f = a.ModuleGetFunction(m, "plain");
    a.Prepare(a.d.ModuleUnload(m));
    a(a.d.FuncSetAttribute(f, kDynamic, 60000));
    OfFunction(a, f, kDynamic);
  });
  ask.Plain("setting.function_configurations", "SUCCESS x4 INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.FuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
    a(a.d.FuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_NONE));
    a(a.d.FuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    a(a.d.FuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    a(a.d.FuncSetCacheConfig(f, Beyond<CUfunc_cache>(~0U)));
    a(a.d.FuncSetSharedMemConfig(f, Beyond<CUsharedconfig>(~0U)));
  });
  ask.Risky("setting.kernel_put_back", "-1 SUCCESS 100 SUCCESS -1", [](Ready& a) {
    const CUkernel k = Kernel(a, a.LibraryLoadData());
    OfKernel(a, k, kCarveout);
    for (const int share : {100, -1}) {
      a(a.d.KernelSetAttribute(kCarveout, share, k, 0));
      OfKernel(a, k, kCarveout);
    }
  });
  ask.Risky("setting.kernel_refused", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_DEVICE 50", [](Ready& a) {
    const CUkernel k = Kernel(a, a.LibraryLoadData());
    a(a.d.KernelSetAttribute(kCarveout, 50, k, 0));
    a(a.d.KernelSetAttribute(kCarveout, 101, k, 0));
    a(a.d.KernelSetAttribute(kCarveout, -2, k, 0));
    a(a.d.KernelSetAttribute(kCarveout, 60, k, -1));
    OfKernel(a, k, kCarveout);
  });
  ask.Risky("setting.kernel_without_context", "SUCCESS 50", [](Initialised& a) {
    const CUkernel k = Kernel(a, a.LibraryLoadData());
    a(a.d.KernelSetAttribute(kCarveout, 50, k, 0));
    OfKernel(a, k, kCarveout);
  });
  ask.Risky("setting.kernel_after_reset", "SUCCESS 50", [](Initialised& a) {
    (void)a.DevicePrimaryCtxRetain();
    const CUkernel k = Kernel(a, a.LibraryLoadData());
    a(a.d.KernelSetAttribute(kCarveout, 50, k, 0));
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    OfKernel(a, k, kCarveout);
  });
}

}  // namespace

void List(Questions& ask) {
  ListOfPools(ask);
  ListOfCode(ask);
  ask.Risky("setting.window_put_back", "0 0 0 SUCCESS 4096 2 1 SUCCESS 0 0 0", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUstreamAttrValue before = {};
    a.Prepare(a.d.StreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &before));
    WindowOf(a, s);
    SetWindow(a, s, Window(a.MemAlloc(4096), 4096));
    WindowOf(a, s);
    SetWindow(a, s, before);
    WindowOf(a, s);
  });
  // As the programming guide ends a window: it keeps the address and has no bytes.
  ask.Risky("setting.window_of_no_bytes", "SUCCESS SUCCESS 0 2 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    SetWindow(a, s, Window(p, 4096));
    SetWindow(a, s, Window(p, 0));
    WindowOf(a, s);
  });
  ask.Risky("setting.window_refused", "SUCCESS INVALID_VALUE 4096 2 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    SetWindow(a, s, Window(p, 4096));
    SetWindow(a, s, Window(p, std::size_t{1} << 40));
    WindowOf(a, s);
  });
  ask.Risky("setting.window_of_the_default_stream", "SUCCESS 4096 2 1 0 0 0", [](Ready& a) {
    SetWindow(a, nullptr, Window(a.MemAlloc(4096), 4096));
    WindowOf(a, nullptr);
    WindowOf(a, a.StreamCreate());
  });
  ask.Risky("setting.window_of_the_default_stream_after_reset", "SUCCESS 0 0 0", [](Initialised& a) {
    a.Prepare(a.d.CtxSetCurrent(a.DevicePrimaryCtxRetain()));
    SetWindow(a, nullptr, Window(a.MemAlloc(4096), 4096));
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a.Prepare(a.d.CtxSetCurrent(a.DevicePrimaryCtxRetain()));
    WindowOf(a, nullptr);
  });
  ask.Risky("setting.window_of_a_destroyed_stream", "crash", [](Ready& a) {
    CUstream s = nullptr;
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.StreamDestroy(s));
    SetWindow(a, s, {});
  });
  ask.Risky("setting.priority_put_back", "SUCCESS -3 SUCCESS 0", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    for (const int priority : {-3, 0}) {
      CUstreamAttrValue value = {};
      value.priority = priority;
      a(a.d.StreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
      value.priority = 9;
      a.Either(a.d.StreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), value.priority);
    }
  });
  ask.Risky("setting.policy_put_back", "SUCCESS 1 INVALID_VALUE 1 SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUstreamAttrValue before = {}, value = {};
    a.Prepare(a.d.StreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &before));
    const auto tell = [&] {
      CUstreamAttrValue now = {};
      a.Either(a.d.StreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &now), now.syncPolicy);
    };
    value.syncPolicy = CU_SYNC_POLICY_AUTO;
    a(a.d.StreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    tell();
    a(a.d.StreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &before));
    tell();
    a(a.d.StreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    tell();
  });
  ask.Risky("setting.node_put_back", "SUCCESS -2 SUCCESS 0", [](Ready& a, Sketch& sketch) {
    const CUgraphNode n = sketch.Kernel(a.ModuleGetFunction("plain"));
    for (const int priority : {-2, 0}) {
      CUkernelNodeAttrValue value = {};
      value.priority = priority;
      a(a.d.GraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
      value.priority = 9;
      a.Either(a.d.GraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), value.priority);
    }
  });
  ask.Risky("setting.advice_refused", "SUCCESS INVALID_VALUE INVALID_VALUE 1", [](Ready& a) {
    const CUdeviceptr p = a.MemAllocManaged(kGranule);
    a(a.d.MemAdvise(p, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemAdvise(p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}));
    a(a.d.MemAdvise(p, kGranule, Beyond<CUmem_advise>(99), kDevice));
    int value = -7;
    a.Either(a.d.MemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, kGranule), value);
  });
}

}  // namespace cuaudit::contract::object_setting_questions
