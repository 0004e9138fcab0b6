// SPDX-License-Identifier: MIT
// What kernels, functions, modules and libraries tell about each other.
#include "suites/contract/question.h"

namespace cuaudit::contract::kernel_questions {
namespace {

struct Loaded {
  explicit Loaded(Asker& a) : asker(a) {
    a.Prepare(a.d.LibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    a.Prepare(a.d.LibraryGetKernel(&kernel, library, "plain"));
  }
  ~Loaded() { (void)asker.d.LibraryUnload(library); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  Asker& asker;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
};

constexpr Question kQuestions[] = {
    {"kernel.attributes", "1024 0 0 0 4 90 90 0 49152 -1 0 0 0 0 0 0 INVALID_VALUE INVALID_DEVICE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       for (unsigned i = 0; i <= CU_FUNC_ATTRIBUTE_MAX; ++i) {
         int value = 0;
         const CUresult result = a.d.KernelGetAttribute(&value, Beyond<CUfunction_attribute>(i), l.kernel, 0);
         if (result == CUDA_SUCCESS) {
           a.Value(value);
         } else {
           a(result);
         }
       }
       int value = 0;
       a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, l.kernel, 99));
     }},
    {"kernel.set_attribute",
     "SUCCESS SUCCESS 100000 SUCCESS 100000 SUCCESS SUCCESS 100000 SUCCESS 60000 INVALID_VALUE INVALID_VALUE INVALID_DEVICE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       CUfunction f = nullptr;
       int value = 0;
       a.Prepare(a.d.KernelGetFunction(&f, l.kernel));
       a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, l.kernel, 0));
       a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.kernel, 0));
       a.Value(value);
       a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
       a.Value(value);
       a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
       a(a.d.KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.kernel, 0));
       a.Value(value);
       a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
       a.Value(value);
       a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449, l.kernel, 0));
       a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, l.kernel, 0));
       a(a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100, l.kernel, 99));
     }},
    {"kernel.cache_config", "SUCCESS INVALID_VALUE INVALID_DEVICE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       a(a.d.KernelSetCacheConfig(l.kernel, CU_FUNC_CACHE_PREFER_L1, 0));
       a(a.d.KernelSetCacheConfig(l.kernel, Beyond<CUfunc_cache>(9), 0));
       a(a.d.KernelSetCacheConfig(l.kernel, CU_FUNC_CACHE_PREFER_L1, 99));
     }},
    {"kernel.names", "SUCCESS plain SUCCESS plain SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const char* name = nullptr;
       a(a.d.KernelGetName(&name, l.kernel));
       a.Text(name);
       CUfunction f = nullptr;
       a.Prepare(a.d.KernelGetFunction(&f, l.kernel));
       a(a.d.FuncGetName(&name, f));
       a.Text(name);
       CUlibrary of = nullptr;
       a(a.d.KernelGetLibrary(&of, l.kernel));
       a.Value(of == l.library);
     }},
    {"kernel.names_null", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const char* name = nullptr;
       CUlibrary of = nullptr;
       a(a.d.KernelGetName(nullptr, l.kernel));
       a(a.d.KernelGetLibrary(nullptr, l.kernel));
       a(a.d.KernelGetName(&name, nullptr));
       a(a.d.KernelGetLibrary(&of, nullptr));
     }},
    {"kernel.library_enumeration", "SUCCESS 2 SUCCESS 1 0 SUCCESS 1 SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       unsigned count = 0;
       CUkernel kernels[4] = {};
       a(a.d.LibraryGetKernelCount(&count, l.library));
       a.Value(count);
       a(a.d.LibraryEnumerateKernels(kernels, 4, l.library));
       a.Value(kernels[1] != nullptr);
       a.Value(kernels[2] != nullptr);
       kernels[1] = nullptr;
       a(a.d.LibraryEnumerateKernels(kernels, 1, l.library));
       a.Value(kernels[1] == nullptr);
       a(a.d.LibraryEnumerateKernels(kernels, 0, l.library));
       a(a.d.LibraryEnumerateKernels(nullptr, 2, l.library));
     }},
    {"kernel.module_enumeration", "SUCCESS 2 SUCCESS 1 0 SUCCESS INVALID_VALUE SUCCESS 1 INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUmodule of = nullptr;
       CUfunction functions[4] = {};
       unsigned count = 0;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a(a.d.ModuleGetFunctionCount(&count, m));
       a.Value(count);
       a(a.d.ModuleEnumerateFunctions(functions, 4, m));
       a.Value(functions[1] != nullptr);
       a.Value(functions[2] != nullptr);
       a(a.d.ModuleEnumerateFunctions(functions, 0, m));
       a(a.d.ModuleEnumerateFunctions(nullptr, 2, m));
       a(a.d.FuncGetModule(&of, functions[0]));
       a.Value(of == m);
       a(a.d.FuncGetModule(nullptr, functions[0]));
       (void)a.d.ModuleUnload(m);
     }},
    {"kernel.lazy_loading", "SUCCESS 0 SUCCESS SUCCESS 1 INVALID_HANDLE INVALID_HANDLE SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUfunction functions[2] = {};
       CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleEnumerateFunctions(functions, 2, m));
       a(a.d.FuncIsLoaded(&state, functions[0]));
       a.Value(state);
       a(a.d.FuncLoad(functions[0]));
       a(a.d.FuncIsLoaded(&state, functions[0]));
       a.Value(state);
       a(a.d.FuncIsLoaded(&state, nullptr));
       a(a.d.FuncLoad(nullptr));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "fill"));
       a(a.d.FuncIsLoaded(&state, f));
       a.Value(state);
       (void)a.d.ModuleUnload(m);
     }},
    {"kernel.function_settings",
     "SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE INVALID_HANDLE SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
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
       (void)a.d.ModuleUnload(m);
     }},
    {"kernel.as_a_function", "INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const auto f = reinterpret_cast<CUfunction>(l.kernel);
       int value = 0;
       a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
       a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
       a(a.d.FuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
       a(a.d.FuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
     }},
    {"kernel.as_a_function_of_old_launches", "INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const auto f = reinterpret_cast<CUfunction>(l.kernel);
       a(a.d.FuncSetBlockShape(f, 1, 1, 1));
       a(a.d.FuncSetSharedSize(f, 0));
       a(a.d.Launch(f));
     }},
    {"kernel.as_a_function_named", "INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const auto f = reinterpret_cast<CUfunction>(l.kernel);
       const char* name = nullptr;
       CUmodule m = nullptr;
       CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
       a(a.d.FuncGetName(&name, f));
       a(a.d.FuncGetModule(&m, f));
       a(a.d.FuncIsLoaded(&state, f));
       a(a.d.FuncLoad(f));
     }},
    {"kernel.as_a_function_occupies", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       const auto f = reinterpret_cast<CUfunction>(l.kernel);
       int blocks = 0;
       int threads = 0;
       std::size_t bytes = 0;
       a(a.d.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
       a(a.d.OccupancyMaxPotentialBlockSize(&blocks, &threads, f, nullptr, 0, 0));
       a(a.d.OccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 32));
     }},
    {"kernel.as_a_function_captured", "SUCCESS SUCCESS 1 1 1 SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       CUstream s = nullptr;
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       CUgraphExec x = nullptr;
       std::size_t count = 1;
       CUDA_KERNEL_NODE_PARAMS node{};
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
       a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(l.kernel), 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
       a.Prepare(a.d.StreamEndCapture(s, &g));
       a.Prepare(a.d.GraphGetNodes(g, &n, &count));
       a(a.d.GraphKernelNodeGetParams(n, &node));
       a.Value(node.func != nullptr);
       a.Value(node.func != reinterpret_cast<CUfunction>(l.kernel));
       a.Value(node.kern != nullptr);
       a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, 0));
       a(a.d.GraphKernelNodeSetParams(n, &node));
       a(a.d.GraphExecKernelNodeSetParams(x, n, &node));
     }},
    {"kernel.as_a_function_in_a_node", "INVALID_HANDLE 0 0", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       CUgraph g = nullptr;
       CUgraphNode n = nullptr;
       CUDA_KERNEL_NODE_PARAMS node{};
       node.func = reinterpret_cast<CUfunction>(l.kernel);
       node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
       a.Prepare(a.d.GraphCreate(&g, 0));
       a(a.d.GraphAddKernelNode(&n, g, nullptr, 0, &node));
       node = {};
       (void)a.d.GraphKernelNodeGetParams(n, &node);
       a.Value(node.func != nullptr);
       a.Value(node.kern != nullptr);
     }},
    {"kernel.parameters_of_a_kernel_as_a_function", "SUCCESS 8 INVALID_HANDLE 0 INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Loaded l(a);
       CUkernel k = nullptr;
       std::size_t offset = 0;
       std::size_t size = 0;
       a.Prepare(a.d.LibraryGetKernel(&k, l.library, "fill"));
       a(a.d.KernelGetParamInfo(k, 0, &offset, &size));
       a.Value(static_cast<long long>(size));
       size = 0;
       a(a.d.FuncGetParamInfo(reinterpret_cast<CUfunction>(k), 0, &offset, &size));
       a.Value(static_cast<long long>(size));
       a(a.d.FuncGetParamInfo(reinterpret_cast<CUfunction>(k), 9, &offset, &size));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::kernel_questions

namespace cuaudit::contract {
std::span<const Question> KernelQuestions() { return kernel_questions::kQuestions; }
}  // namespace cuaudit::contract
