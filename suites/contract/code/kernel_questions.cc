// SPDX-License-Identifier: MIT
// Modules, libraries and their kernels.
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::kernel_questions {
namespace {

struct Loaded {
  explicit Loaded(Asker& a) : library(a.LibraryLoadData()) { a.Prepare(a.d.LibraryGetKernel(&kernel, library, "plain")); }
  const CUlibrary library;
  CUkernel kernel = nullptr;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("module.load_unload", "SUCCESS SUCCESS", [](Ready& a) {
    CUmodule m = nullptr;
    a(a.d.ModuleLoadData(&m, kPtx));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("module.unload_twice", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    a(a.d.ModuleUnload(m));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("module.null_image", "INVALID_VALUE", [](Ready& a) { a(a.d.ModuleLoadData(kIgnored, nullptr)); });
  ask.Plain("module.garbage_image", "INVALID_IMAGE", [](Ready& a) {
    static const char image[64] = "this is no image";
    a(a.d.ModuleLoadData(kIgnored, image));
  });
  ask.Plain("module.broken_ptx", "INVALID_PTX",
            [](Ready& a) { a(a.d.ModuleLoadData(kIgnored, ".version 8.0\n.target sm_90\n.visible .entry k(\n")); });
  ask.Plain("module.missing_file", "FILE_NOT_FOUND", [](Ready& a) { a(a.d.ModuleLoad(kIgnored, "/nonexistent/module.cubin")); });
  ask.Plain("module.function", "SUCCESS NOT_FOUND", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    CUfunction f = nullptr;
    a(a.d.ModuleGetFunction(&f, m, "plain"));
    a(a.d.ModuleGetFunction(&f, m, "absent"));
  });
  ask.Plain("module.global", "SUCCESS 64 NOT_FOUND", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    CUdeviceptr p = 0;
    std::size_t size = 0;
    a(a.d.ModuleGetGlobal(&p, &size, m, "table"), size);
    a(a.d.ModuleGetGlobal(&p, &size, m, "absent"));
  });
  ask.Plain("module.function_count", "SUCCESS 2", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    unsigned count = 0;
    a(a.d.ModuleGetFunctionCount(&count, m), count);
  });
  ask.Plain("function.name", "SUCCESS plain", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    const char* name = nullptr;
    a(a.d.FuncGetName(&name, f), name);
  });
  ask.Plain("function.parameters", "SUCCESS 8 4 INVALID_VALUE", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("fill");
    std::size_t offset = 0, size = 0;
    a(a.d.FuncGetParamInfo(f, 1, &offset, &size), offset, size);
    a(a.d.FuncGetParamInfo(f, 2, &offset, &size));
  });
  ask.Plain("function.attribute", "SUCCESS 1024 INVALID_VALUE", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    int value = 0;
    a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f), value);
    a(a.d.FuncGetAttribute(&value, Beyond<CUfunction_attribute>(99), f));
  });
  ask.Plain("launch.good", "SUCCESS SUCCESS", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Plain("launch.bad_dimensions", "INVALID_VALUE x3", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.LaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 70000, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Plain("launch.too_much_shared", "INVALID_VALUE", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 300000, nullptr, nullptr, nullptr));
  });
  ask.Risky("launch.null_function", "INVALID_HANDLE",
            [](Ready& a) { a(a.d.LaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr)); });
  ask.Risky("launch.missing_parameters", "INVALID_VALUE", [](Ready& a) {
    const CUfunction f = a.ModuleGetFunction("fill");
    a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Plain("library.kernel", "SUCCESS SUCCESS NOT_FOUND SUCCESS", [](Ready& a) {
    CUlibrary l = nullptr;
    CUkernel k = nullptr;
    a(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    a(a.d.LibraryGetKernel(&k, l, "plain"));
    a(a.d.LibraryGetKernel(&k, l, "absent"));
    a(a.d.LibraryUnload(l));
  });
  ask.Plain("library.launch", "SUCCESS SUCCESS", [](Ready& a) {
    CUkernel k = nullptr;
    const CUlibrary l = a.LibraryLoadData();
    a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
    a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(k), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("library.unload_twice", "SUCCESS crash", [](Ready& a) {
    const CUlibrary l = a.LibraryLoadData();
    a(a.d.LibraryUnload(l));
    a(a.d.LibraryUnload(l));
  });
  ask.Plain("link.ptx", "SUCCESS x5", [](Ready& a) {
    CUlinkState l = nullptr;
    void* cubin = nullptr;
    std::size_t size = 0;
    CUmodule m = nullptr;
    a(a.d.LinkCreate(0, nullptr, nullptr, &l));
    std::string text = kPtx;
    a(a.d.LinkAddData(l, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "text", 0, nullptr, nullptr));
    a(a.d.LinkComplete(l, &cubin, &size));
    a(a.d.ModuleLoadData(&m, cubin));
    (void)a.d.ModuleUnload(m);
    a(a.d.LinkDestroy(l));
  });
  ask.Risky("kernel.attributes", "1024 0 0 0 4 90 90 0 49152 -1 0 0 0 0 0 0 INVALID_VALUE INVALID_DEVICE", [](Ready& a, const Loaded& l) {
    for (unsigned i = 0; i <= CU_FUNC_ATTRIBUTE_MAX; ++i) {
      int value = 0;
      a.Either(a.d.KernelGetAttribute(&value, Beyond<CUfunction_attribute>(i), l.kernel, 0), value);
    }
    int value = 0;
    a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, l.kernel, 99));
  });
  ask.Risky("kernel.set_attribute",
            "SUCCESS SUCCESS 100000 SUCCESS 100000 SUCCESS SUCCESS 100000 SUCCESS 60000 INVALID_VALUE INVALID_VALUE INVALID_DEVICE",
            [](Ready& a, const Loaded& l) {
              CUfunction f = nullptr;
              int value = 0;
              a.Prepare(a.d.KernelGetFunction(&f, l.kernel));
              a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, l.kernel, 0));
              a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.kernel, 0), value);
              a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f), value);
              a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
              a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.kernel, 0), value);
              a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f), value);
              a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449, l.kernel, 0));
              a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, l.kernel, 0));
              a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100, l.kernel, 99));
            });
  ask.Risky("kernel.cache_config", "SUCCESS INVALID_VALUE INVALID_DEVICE", [](Ready& a, const Loaded& l) {
    a(a.d.KernelSetCacheConfig(l.kernel, CU_FUNC_CACHE_PREFER_L1, 0));
    a(a.d.KernelSetCacheConfig(l.kernel, Beyond<CUfunc_cache>(9), 0));
    a(a.d.KernelSetCacheConfig(l.kernel, CU_FUNC_CACHE_PREFER_L1, 99));
  });
  ask.Risky("kernel.names", "SUCCESS plain SUCCESS plain SUCCESS 1", [](Ready& a, const Loaded& l) {
    const char* name = nullptr;
    a(a.d.KernelGetName(&name, l.kernel), name);
    CUfunction f = nullptr;
    a.Prepare(a.d.KernelGetFunction(&f, l.kernel));
    a(a.d.FuncGetName(&name, f), name);
    CUlibrary of = nullptr;
    a(a.d.KernelGetLibrary(&of, l.kernel));
    a.Value(of == l.library);
  });
  ask.Risky("kernel.names_null", "INVALID_VALUE x3 INVALID_HANDLE", [](Ready& a, const Loaded& l) {
    const char* name = nullptr;
    a(a.d.KernelGetName(nullptr, l.kernel));
    a(a.d.KernelGetLibrary(nullptr, l.kernel));
    a(a.d.KernelGetName(&name, nullptr));
    a(a.d.KernelGetLibrary(kIgnored, nullptr));
  });
  ask.Risky("kernel.library_enumeration", "SUCCESS 2 SUCCESS 1 0 SUCCESS 1 SUCCESS INVALID_VALUE", [](Ready& a, const Loaded& l) {
    unsigned count = 0;
    CUkernel kernels[4] = {};
    a(a.d.LibraryGetKernelCount(&count, l.library), count);
    a(a.d.LibraryEnumerateKernels(kernels, 4, l.library));
    a.Value(kernels[1] != nullptr);
    a.Value(kernels[2] != nullptr);
    kernels[1] = nullptr;
    a(a.d.LibraryEnumerateKernels(kernels, 1, l.library));
    a.Value(kernels[1] == nullptr);
    a(a.d.LibraryEnumerateKernels(kernels, 0, l.library));
    a(a.d.LibraryEnumerateKernels(nullptr, 2, l.library));
  });
  ask.Risky("kernel.module_enumeration", "SUCCESS 2 SUCCESS 1 0 SUCCESS INVALID_VALUE SUCCESS 1 INVALID_VALUE", [](Ready& a) {
    CUmodule of = nullptr;
    CUfunction functions[4] = {};
    unsigned count = 0;
    const CUmodule m = a.ModuleLoadData();
    a(a.d.ModuleGetFunctionCount(&count, m), count);
    a(a.d.ModuleEnumerateFunctions(functions, 4, m));
    a.Value(functions[1] != nullptr);
    a.Value(functions[2] != nullptr);
    a(a.d.ModuleEnumerateFunctions(functions, 0, m));
    a(a.d.ModuleEnumerateFunctions(nullptr, 2, m));
    a(a.d.FuncGetModule(&of, functions[0]));
    a.Value(of == m);
    a(a.d.FuncGetModule(nullptr, functions[0]));
  });
  ask.Risky("kernel.lazy_loading", "SUCCESS 0 SUCCESS SUCCESS 1 INVALID_HANDLE INVALID_HANDLE SUCCESS 1", [](Ready& a) {
    CUfunction functions[2] = {};
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.ModuleEnumerateFunctions(functions, 2, m));
    a(a.d.FuncIsLoaded(&state, functions[0]), state);
    a(a.d.FuncLoad(functions[0]));
    a(a.d.FuncIsLoaded(&state, functions[0]), state);
    a(a.d.FuncIsLoaded(&state, nullptr));
    a(a.d.FuncLoad(nullptr));
    const CUfunction f = a.ModuleGetFunction(m, "fill");
    a(a.d.FuncIsLoaded(&state, f), state);
  });
  ask.Risky("kernel.function_settings",
            "SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE INVALID_HANDLE SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE",
            [](Ready& a) {
              const CUfunction f = a.ModuleGetFunction("plain");
              a(a.d.FuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED));
              a(a.d.FuncSetCacheConfig(f, Beyond<CUfunc_cache>(9)));
              a(a.d.FuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
              a(a.d.FuncSetSharedMemConfig(f, Beyond<CUsharedconfig>(9)));
              a(a.d.FuncSetSharedMemConfig(nullptr, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
              a(a.d.FuncSetBlockShape(f, 32, 1, 1));
              a(a.d.FuncSetBlockShape(f, 0, 1, 1));
              a(a.d.FuncSetBlockShape(f, 2048, 1, 1));
              a(a.d.FuncSetSharedSize(f, 1024));
              a(a.d.FuncSetSharedSize(f, 49153));
            });
  ask.Risky("kernel.as_a_function", "INVALID_HANDLE x4", [](Ready& a, const Loaded& l) {
    const auto f = reinterpret_cast<CUfunction>(l.kernel);
    int value = 0;
    a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    a(a.d.FuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
    a(a.d.FuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
  });
  ask.Risky("kernel.as_a_function_of_old_launches", "INVALID_HANDLE x3", [](Ready& a, const Loaded& l) {
    const auto f = reinterpret_cast<CUfunction>(l.kernel);
    a(a.d.FuncSetBlockShape(f, 1, 1, 1));
    a(a.d.FuncSetSharedSize(f, 0));
    a(a.d.Launch(f));
  });
  ask.Risky("kernel.as_a_function_named", "INVALID_HANDLE x4", [](Ready& a, const Loaded& l) {
    const auto f = reinterpret_cast<CUfunction>(l.kernel);
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    a(a.d.FuncGetName(kIgnored, f));
    a(a.d.FuncGetModule(kIgnored, f));
    a(a.d.FuncIsLoaded(&state, f));
    a(a.d.FuncLoad(f));
  });
  ask.Risky("kernel.as_a_function_occupies", "SUCCESS x3", [](Ready& a, const Loaded& l) {
    const auto f = reinterpret_cast<CUfunction>(l.kernel);
    int blocks = 0;
    a(a.d.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
    a(a.d.OccupancyMaxPotentialBlockSize(&blocks, kIgnored, f, nullptr, 0, 0));
    a(a.d.OccupancyAvailableDynamicSMemPerBlock(kIgnored, f, 1, 32));
  });
  ask.Risky("kernel.as_a_function_captured", "SUCCESS SUCCESS 1 1 1 SUCCESS SUCCESS", [](Ready& a, const Loaded& l, Capturing& c) {
    CUgraphNode n = nullptr;
    std::size_t count = 1;
    CUDA_KERNEL_NODE_PARAMS node{};
    a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(l.kernel), 1, 1, 1, 1, 1, 1, 0, c.s, nullptr, nullptr));
    a.Prepare(a.d.StreamEndCapture(c.s, &c.g));
    a.Prepare(a.d.GraphGetNodes(c.g, &n, &count));
    a(a.d.GraphKernelNodeGetParams(n, &node));
    a.Value(node.func != nullptr);
    a.Value(node.func != reinterpret_cast<CUfunction>(l.kernel));
    a.Value(node.kern != nullptr);
    const CUgraphExec x = a.GraphInstantiate(c.g);
    a(a.d.GraphKernelNodeSetParams(n, &node));
    a(a.d.GraphExecKernelNodeSetParams(x, n, &node));
  });
  ask.Risky("kernel.as_a_function_in_a_node", "INVALID_HANDLE 0 0", [](Ready& a, const Loaded& l) {
    CUgraphNode n = nullptr;
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = reinterpret_cast<CUfunction>(l.kernel);
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    const CUgraph g = a.GraphCreate();
    a(a.d.GraphAddKernelNode(&n, g, nullptr, 0, &node));
    node = {};
    (void)a.d.GraphKernelNodeGetParams(n, &node);
    a.Value(node.func != nullptr);
    a.Value(node.kern != nullptr);
  });
  ask.Risky("kernel.parameters_of_a_kernel_as_a_function", "SUCCESS 8 INVALID_HANDLE 0 INVALID_HANDLE", [](Ready& a, const Loaded& l) {
    CUkernel k = nullptr;
    std::size_t offset = 0, size = 0;
    a.Prepare(a.d.LibraryGetKernel(&k, l.library, "fill"));
    a(a.d.KernelGetParamInfo(k, 0, &offset, &size), size);
    size = 0;
    a(a.d.FuncGetParamInfo(reinterpret_cast<CUfunction>(k), 0, &offset, &size), size);
    a(a.d.FuncGetParamInfo(reinterpret_cast<CUfunction>(k), 9, &offset, &size));
  });
}

}  // namespace cuaudit::contract::kernel_questions
