// SPDX-License-Identifier: MIT
// Libraries loaded at run time, their kernels and globals; and the kernels of the questions, registered as a compiled program does.
#include <vector_types.h>

#include <cstdint>
#include <cstring>

#include "suites/cudart/question.h"

extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int thread_limit, uint3* tid, uint3* bid,
                            dim3* block, dim3* grid, int* warp_size);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external, std::size_t bytes, int constant,
                       int global);

// Distinct on purpose: identical functions may be folded into one address.
namespace {
int called = 0;
}
void CuauditPlain() { called = 1; }
void CuauditBounded() { called = 2; }
void CuauditFill() { called = 3; }
void CuauditMissing() { called = 4; }
void CuauditNever() { called = 5; }
char cuaudit_table[64];
char cuaudit_constants[16];
char cuaudit_never[4];
}

namespace cuaudit::cudart::kernel_questions {
namespace {

cudaLibrary_t Load(Asker& a) {
  cudaLibrary_t library = nullptr;
  a.Prepare(cudaLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

cudaKernel_t Kernel(Asker& a, const char* name) {
  cudaKernel_t kernel = nullptr;
  a.Prepare(cudaLibraryGetKernel(&kernel, Load(a), name));
  return kernel;
}

constexpr Question kQuestions[] = {
    {"library.load",
     [](Asker& a) {
       cudaLibrary_t library = nullptr;
       a(cudaLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
       unsigned count = 0;
       a(cudaLibraryGetKernelCount(&count, library));
       a.Value(count);
       cudaKernel_t kernels[4] = {};
       a(cudaLibraryEnumerateKernels(kernels, 4, library));
       a.Value(kernels[2] != nullptr);
       a(cudaLibraryUnload(library));
     }},
    {"library.load_bad",
     [](Asker& a) {
       cudaLibrary_t library = nullptr;
       a(cudaLibraryLoadData(nullptr, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(cudaLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(cudaLibraryLoadData(&library, "this is no program", nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(cudaLibraryLoadFromFile(&library, "/nowhere/at/all", nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(cudaLibraryLoadFromFile(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
     }},
    {"library.unload",
     [](Asker& a) {
       const cudaLibrary_t library = Load(a);
       a(cudaLibraryUnload(library));
       a(cudaLibraryUnload(nullptr));
     }},
    {"library.unload_twice",
     [](Asker& a) {
       const cudaLibrary_t library = Load(a);
       a(cudaLibraryUnload(library));
       a(cudaLibraryUnload(library));
     }},
    {"library.find",
     [](Asker& a) {
       const cudaLibrary_t library = Load(a);
       cudaKernel_t kernel = nullptr;
       a(cudaLibraryGetKernel(&kernel, library, "plain"));
       a(cudaLibraryGetKernel(&kernel, library, "absent"));
       a(cudaLibraryGetKernel(nullptr, library, "plain"));
       a(cudaLibraryGetKernel(&kernel, library, nullptr));
       a(cudaLibraryGetKernel(&kernel, nullptr, "plain"));
       a(cudaGetLastError());
     }},
    {"library.global",
     [](Asker& a) {
       const cudaLibrary_t library = Load(a);
       void* table = nullptr;
       std::size_t bytes = 0;
       a(cudaLibraryGetGlobal(&table, &bytes, library, "table"));
       a.Value(static_cast<long long>(bytes));
       a(cudaMemset(table, 1, bytes));
       a(cudaLibraryGetGlobal(&table, &bytes, library, "absent"));
       a(cudaLibraryGetGlobal(nullptr, &bytes, library, "table"));
       a(cudaLibraryGetGlobal(nullptr, nullptr, library, "table"));
       a(cudaLibraryGetManaged(&table, &bytes, library, "table"));
       a(cudaLibraryGetUnifiedFunction(&table, library, "plain"));
     }},
    {"library.launch",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "plain");
       a(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr));
       a(cudaDeviceSynchronize());
     }},
    {"library.launch_with_arguments",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "fill");
       char* block = NewBlock(a);
       unsigned value = 7;
       void* arguments[] = {&block, &value};
       a(cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, NewStream(a)));
       a(cudaDeviceSynchronize());
     }},
    {"library.launch_after_unload",
     [](Asker& a) {
       const cudaLibrary_t library = Load(a);
       cudaKernel_t kernel = nullptr;
       a.Prepare(cudaLibraryGetKernel(&kernel, library, "plain"));
       a(cudaLibraryUnload(library));
       a(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr));
     }},
    {"library.parameter_info",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "fill");
       std::size_t offset = 77;
       std::size_t bytes = 77;
       for (const std::size_t index : {0U, 1U, 2U}) {
         if (a(cudaFuncGetParamInfo(kernel, index, &offset, &bytes)) != cudaSuccess) continue;
         a.Value(static_cast<long long>(offset));
         a.Value(static_cast<long long>(bytes));
       }
       const char* name = nullptr;
       a(cudaFuncGetName(&name, kernel));
       a.Text(name);
       a(cudaFuncGetName(nullptr, kernel));
     }},
    {"library.attributes",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "bounded");
       cudaFuncAttributes attributes{};
       a(cudaFuncGetAttributes(&attributes, kernel));
       a.Value(attributes.maxThreadsPerBlock);
       a.Value(static_cast<long long>(attributes.sharedSizeBytes));
       a.Value(static_cast<long long>(attributes.localSizeBytes));
       a.Value(attributes.ptxVersion);
       a.Value(attributes.binaryVersion);
       a.Value(attributes.maxDynamicSharedSizeBytes);
       a.Value(attributes.preferredShmemCarveout);
       a.Value(attributes.clusterDimMustBeSet);
     }},
    {"library.set_attribute",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "plain");
       a(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536, 0));
       cudaFuncAttributes attributes{};
       a(cudaFuncGetAttributes(&attributes, kernel));
       a.Value(attributes.maxDynamicSharedSizeBytes);
       a(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536, 4711));
       a(cudaKernelSetAttributeForDevice(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536, 0));
       a(cudaKernelSetAttributeForDevice(kernel, Beyond<cudaFuncAttribute>(77), 65536, 0));
     }},
    {"library.kernel_node",
     [](Asker& a) {
       const cudaKernel_t kernel = Kernel(a, "fill");
       char* block = NewBlock(a);
       unsigned value = 7;
       void* arguments[] = {&block, &value};
       cudaKernelNodeParams wanted{};
       wanted.func = kernel;
       wanted.gridDim = dim3(2);
       wanted.blockDim = dim3(32);
       wanted.kernelParams = arguments;
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &wanted));
       cudaKernelNodeParams seen{};
       a(cudaGraphKernelNodeGetParams(node, &seen));
       a.Value(seen.func == kernel);
       a.Value(seen.gridDim.x);
       a.Value(seen.blockDim.x);
       a.Value(seen.kernelParams != nullptr && *static_cast<unsigned*>(seen.kernelParams[1]) == 7);
       const cudaGraphExec_t exec = Instantiated(a, graph);
       wanted.blockDim = dim3(16);
       a(cudaGraphExecKernelNodeSetParams(exec, node, &wanted));
       a(cudaGraphLaunch(exec, nullptr));
       a(cudaDeviceSynchronize());
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::kernel_questions

namespace cuaudit::cudart {
namespace {

// The container that fatbinary writes around one uncompressed PTX text.
struct Binary {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1;
  std::uint16_t head = 16;
  std::uint64_t payload = 80 + kTextBytes;
  std::uint16_t kind = 1;
  std::uint16_t entry_version = 0x101;
  std::uint32_t entry_head = 80;
  std::uint64_t entry_payload = kTextBytes;
  std::uint32_t reserved = 0;
  std::uint32_t options_at = 64;
  std::uint16_t minor = 0;
  std::uint16_t major = 8;
  std::uint32_t architecture = 90;
  std::uint64_t reserved2 = 0;
  std::uint64_t flags = 0x11;
  std::uint64_t reserved3[2] = {};
  std::uint64_t options_text_at = 72;
  std::uint64_t options_text = 0;
  static constexpr std::size_t kTextBytes = (sizeof(kKernels) + 7) / 8 * 8;
  char text[kTextBytes] = {};
};
static_assert(sizeof(Binary) == 16 + 80 + Binary::kTextBytes);

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  void* filename;
};

Binary binary;
Wrapper wrapper{0x466243b1, 1, &binary, nullptr};

void RegisterKernel(void** handle, void (*host)(), const char* name) {
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(host), const_cast<char*>(name), name, -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}

}  // namespace

void RegisterKernels() {
  std::memcpy(binary.text, kKernels, sizeof(kKernels));
  void** const handle = __cudaRegisterFatBinary(&wrapper);
  RegisterKernel(handle, CuauditPlain, "plain");
  RegisterKernel(handle, CuauditBounded, "bounded");
  RegisterKernel(handle, CuauditFill, "fill");
  RegisterKernel(handle, CuauditMissing, "missing");
  __cudaRegisterVar(handle, cuaudit_table, const_cast<char*>("table"), "table", 0, sizeof(cuaudit_table), 0, 0);
  __cudaRegisterVar(handle, cuaudit_constants, const_cast<char*>("constants"), "constants", 0, sizeof(cuaudit_constants), 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
}

std::span<const Question> KernelQuestions() { return kernel_questions::kQuestions; }
}  // namespace cuaudit::cudart
