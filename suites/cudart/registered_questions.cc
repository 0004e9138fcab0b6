// SPDX-License-Identifier: MIT
// Kernels and variables registered as a compiled program does: launches and their errors, symbols, attributes, occupancy.
#include <vector_functions.h>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::registered_questions {
namespace {

const void* Function(void (*host)()) { return reinterpret_cast<const void*>(host); }

cudaError_t Launch(void (*host)(), dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
  return cudaLaunchKernel(Function(host), grid, block, nullptr, shared, stream);
}

constexpr Question kQuestions[] = {
    {"launch.plain",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditPlain, dim3(1), dim3(32)));
       a(cudaDeviceSynchronize());
       a(cudaGetLastError());
     }},
    {"launch.as_compiled",
     [](Asker& a) {
       RegisterKernels();
       char* block = NewBlock(a);
       unsigned value = 7;
       void* arguments[] = {&block, &value};
       a(cudaLaunchKernel(Function(CuauditFill), dim3(1), dim3(16), arguments, 0, nullptr));
       a(cudaDeviceSynchronize());
     }},
    {"launch.bad_configuration",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditPlain, dim3(0), dim3(32)));
       a(Launch(CuauditPlain, dim3(1), dim3(0)));
       a(Launch(CuauditPlain, dim3(1), dim3(2048)));
       a(Launch(CuauditPlain, dim3(1, 70000), dim3(32)));
       a(Launch(CuauditPlain, dim3(1), dim3(1, 1, 128)));
       a(Launch(CuauditBounded, dim3(1), dim3(256)));
       a(cudaPeekAtLastError());
       a(cudaDeviceSynchronize());
       a(cudaGetLastError());
     }},
    {"launch.too_much_shared",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditPlain, dim3(1), dim3(32), 48 << 10));
       a(Launch(CuauditPlain, dim3(1), dim3(32), (48 << 10) + 1));
       a(cudaFuncSetAttribute(Function(CuauditPlain), cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
       a(Launch(CuauditPlain, dim3(1), dim3(32), 64 << 10));
       a(cudaFuncSetAttribute(Function(CuauditPlain), cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
       a(cudaDeviceSynchronize());
     }},
    {"launch.not_registered",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditNever, dim3(1), dim3(32)));
       a(cudaGetLastError());
       a(Launch(nullptr, dim3(1), dim3(32)));
       a(cudaGetLastError());
     }},
    {"launch.not_registered_at_all",
     [](Asker& a) {
       a(Launch(CuauditNever, dim3(1), dim3(32)));
       a(cudaGetLastError());
     }},
    {"launch.missing_in_binary",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditMissing, dim3(1), dim3(32)));
       a(cudaGetLastError());
       a(Launch(CuauditPlain, dim3(1), dim3(32)));
     }},
    {"launch.bad_stream",
     [](Asker& a) {
       RegisterKernels();
       const cudaStream_t stream = NewStream(a);
       a.Prepare(cudaStreamDestroy(stream));
       a(Launch(CuauditPlain, dim3(1), dim3(32), 0, stream));
     }},
    {"launch.default_streams",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditPlain, dim3(1), dim3(32), 0, cudaStreamLegacy));
       a(Launch(CuauditPlain, dim3(1), dim3(32), 0, cudaStreamPerThread));
       a(cudaDeviceSynchronize());
     }},
    {"launch.extended",
     [](Asker& a) {
       RegisterKernels();
       cudaLaunchConfig_t config{};
       config.gridDim = dim3(2);
       config.blockDim = dim3(32);
       a(cudaLaunchKernelExC(&config, Function(CuauditPlain), nullptr));
       config.blockDim = dim3(4096);
       a(cudaLaunchKernelExC(&config, Function(CuauditPlain), nullptr));
       a(cudaDeviceSynchronize());
     }},
    {"launch.extended_cluster",
     [](Asker& a) {
       RegisterKernels();
       cudaLaunchAttribute attribute{};
       attribute.id = cudaLaunchAttributeClusterDimension;
       attribute.val.clusterDim.x = 2;
       attribute.val.clusterDim.y = 1;
       attribute.val.clusterDim.z = 1;
       cudaLaunchConfig_t config{};
       config.gridDim = dim3(2);
       config.blockDim = dim3(32);
       config.attrs = &attribute;
       config.numAttrs = 1;
       a(cudaLaunchKernelExC(&config, Function(CuauditPlain), nullptr));
       attribute.val.clusterDim.x = 3;
       a(cudaLaunchKernelExC(&config, Function(CuauditPlain), nullptr));
       a(cudaDeviceSynchronize());
     }},
    {"launch.extended_without_configuration",
     [](Asker& a) {
       RegisterKernels();
       a(cudaLaunchKernelExC(nullptr, Function(CuauditPlain), nullptr));
     }},
    {"launch.compiled_bad_configuration",
     [](Asker& a) {
       RegisterKernels();
       cudaKernel_t kernel = nullptr;
       a(__cudaGetKernel(&kernel, Function(CuauditPlain)));
       a(__cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr));
       a(__cudaLaunchKernel(kernel, dim3(0), dim3(32), nullptr, 0, nullptr));
       a(__cudaLaunchKernel(kernel, dim3(1), dim3(2048), nullptr, 0, nullptr));
       a(cudaGetLastError());
       a(__cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 1 << 20, nullptr));
       a(cudaGetLastError());
     }},
    {"launch.compiled_missing",
     [](Asker& a) {
       RegisterKernels();
       cudaKernel_t kernel = nullptr;
       a(__cudaGetKernel(&kernel, Function(CuauditMissing)));
       a(__cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr));
       a(__cudaGetKernel(&kernel, Function(CuauditNever)));
       a(cudaGetLastError());
     }},
    {"launch.compiled_handles",
     [](Asker& a) {
       RegisterKernels();
       cudaKernel_t kernel = nullptr;
       a(__cudaGetKernel(&kernel, Function(CuauditMissing)));
       a.Value(kernel != nullptr ? 1 : 0);
       kernel = nullptr;
       a(__cudaGetKernel(&kernel, Function(CuauditNever)));
       a.Value(kernel != nullptr ? 1 : 0);
       a(__cudaLaunchKernel(nullptr, dim3(1), dim3(32), nullptr, 0, nullptr));
     }},
    {"launch.configuration_stack",
     [](Asker& a) {
       a(static_cast<cudaError_t>(__cudaPushCallConfiguration(dim3(3), dim3(5), 7, nullptr)));
       dim3 grid;
       dim3 block;
       std::size_t shared = 0;
       cudaStream_t stream = nullptr;
       a(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
       a.Value(grid.x);
       a.Value(block.x);
       a.Value(static_cast<long long>(shared));
       a(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
       a(cudaGetLastError());
     }},
    {"launch.cooperative",
     [](Asker& a) {
       RegisterKernels();
       a(cudaLaunchCooperativeKernel(Function(CuauditPlain), dim3(2), dim3(32), nullptr, 0, nullptr));
       a(cudaLaunchCooperativeKernel(Function(CuauditPlain), dim3(1 << 20), dim3(32), nullptr, 0, nullptr));
       a(cudaDeviceSynchronize());
     }},
    {"launch.captured",
     [](Asker& a) {
       RegisterKernels();
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
       a(Launch(CuauditPlain, dim3(1), dim3(32), 0, stream));
       const cudaGraph_t graph = Captured(a, stream);
       cudaGraphNode_t node = nullptr;
       std::size_t count = 1;
       a(cudaGraphGetNodes(graph, &node, &count));
       cudaKernelNodeParams seen{};
       a(cudaGraphKernelNodeGetParams(node, &seen));
       a.Value(seen.func == Function(CuauditPlain));
       a.Value(seen.blockDim.x);
     }},
    {"launch.captured_bad",
     [](Asker& a) {
       RegisterKernels();
       const cudaStream_t stream = NewStream(a);
       a(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
       a(Launch(CuauditPlain, dim3(1), dim3(4096), 0, stream));
       const cudaGraph_t graph = Captured(a, stream);
       a.Value(graph != nullptr);
     }},
    {"launch.after_reset",
     [](Asker& a) {
       RegisterKernels();
       a(Launch(CuauditPlain, dim3(1), dim3(32)));
       a(cudaDeviceReset());
       a(Launch(CuauditPlain, dim3(1), dim3(32)));
       a(cudaDeviceSynchronize());
     }},
    {"function.attributes",
     [](Asker& a) {
       RegisterKernels();
       cudaFuncAttributes attributes{};
       a(cudaFuncGetAttributes(&attributes, Function(CuauditBounded)));
       a.Value(attributes.maxThreadsPerBlock);
       a(cudaFuncGetAttributes(&attributes, Function(CuauditNever)));
       a(cudaFuncGetAttributes(nullptr, Function(CuauditPlain)));
       a(cudaFuncGetAttributes(&attributes, nullptr));
     }},
    {"function.set_attribute",
     [](Asker& a) {
       RegisterKernels();
       a(cudaFuncSetAttribute(Function(CuauditPlain), cudaFuncAttributePreferredSharedMemoryCarveout, 50));
       a(cudaFuncSetAttribute(Function(CuauditPlain), cudaFuncAttributePreferredSharedMemoryCarveout, 500));
       a(cudaFuncSetAttribute(Function(CuauditPlain), Beyond<cudaFuncAttribute>(77), 1));
       a(cudaFuncSetAttribute(Function(CuauditNever), cudaFuncAttributePreferredSharedMemoryCarveout, 50));
       a(cudaFuncSetCacheConfig(Function(CuauditPlain), cudaFuncCachePreferL1));
       a(cudaFuncSetCacheConfig(Function(CuauditPlain), Beyond<cudaFuncCache>(77)));
       a(cudaFuncSetCacheConfig(Function(CuauditNever), cudaFuncCachePreferL1));
     }},
    {"function.handles",
     [](Asker& a) {
       RegisterKernels();
       cudaFunction_t function = nullptr;
       a(cudaGetFuncBySymbol(&function, Function(CuauditPlain)));
       a.Value(function != nullptr);
       cudaKernel_t kernel = nullptr;
       a(cudaGetKernel(&kernel, Function(CuauditPlain)));
       a.Value(kernel != nullptr);
       a(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr));
       const char* name = nullptr;
       a(cudaFuncGetName(&name, Function(CuauditPlain)));
       a.Text(name);
       a(cudaGetFuncBySymbol(&function, Function(CuauditNever)));
       a(cudaGetKernel(&kernel, Function(CuauditNever)));
       a(cudaGetFuncBySymbol(nullptr, Function(CuauditPlain)));
     }},
    {"function.occupancy",
     [](Asker& a) {
       RegisterKernels();
       int blocks = -1;
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Function(CuauditPlain), 128, 0));
       a.Value(blocks);
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Function(CuauditPlain), 1024, 0));
       a.Value(blocks);
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Function(CuauditBounded), 256, 0));
       a.Value(blocks);
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, Function(CuauditPlain), 64, 0,
                                                                cudaOccupancyDisableCachingOverride));
       a.Value(blocks);
       std::size_t bytes = 0;
       a(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, Function(CuauditPlain), 4, 128));
       a.Value(static_cast<long long>(bytes));
     }},
    {"function.occupancy_bad",
     [](Asker& a) {
       RegisterKernels();
       int blocks = -1;
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Function(CuauditPlain), 0, 0));
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, Function(CuauditPlain), 128, 0));
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Function(CuauditNever), 128, 0));
       a(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, Function(CuauditPlain), 64, 0, 77));
     }},
    {"function.occupancy_clusters",
     [](Asker& a) {
       RegisterKernels();
       cudaLaunchConfig_t config{};
       config.gridDim = dim3(64);
       config.blockDim = dim3(128);
       int size = -1;
       a(cudaOccupancyMaxPotentialClusterSize(&size, Function(CuauditPlain), &config));
       a.Value(size);
     }},
    {"symbol.address",
     [](Asker& a) {
       RegisterKernels();
       void* address = nullptr;
       std::size_t bytes = 0;
       a(cudaGetSymbolAddress(&address, cuaudit_table));
       a.Value(address != nullptr && address != cuaudit_table);
       a(cudaGetSymbolSize(&bytes, cuaudit_table));
       a.Value(static_cast<long long>(bytes));
       a(cudaGetSymbolSize(&bytes, cuaudit_constants));
       a.Value(static_cast<long long>(bytes));
     }},
    {"symbol.not_registered",
     [](Asker& a) {
       RegisterKernels();
       void* address = Invented();
       std::size_t bytes = 77;
       a(cudaGetSymbolAddress(&address, cuaudit_never));
       a(cudaGetLastError());
       a(cudaGetSymbolSize(&bytes, cuaudit_never));
       a.Value(address == Invented());
       a.Value(static_cast<long long>(bytes));
     }},
    {"symbol.size_into_nothing",
     [](Asker& a) {
       RegisterKernels();
       a(cudaGetSymbolSize(nullptr, cuaudit_table));
     }},
    {"symbol.address_into_nothing",
     [](Asker& a) {
       RegisterKernels();
       a(cudaGetSymbolAddress(nullptr, cuaudit_table));
     }},
    {"symbol.of_nothing",
     [](Asker& a) {
       RegisterKernels();
       void* address = nullptr;
       a(cudaGetSymbolAddress(&address, nullptr));
     }},
    {"symbol.copies",
     [](Asker& a) {
       RegisterKernels();
       char from[16] = "into the table";
       char to[16] = {};
       a(cudaMemcpyToSymbol(cuaudit_table, from, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpyFromSymbol(to, cuaudit_table, 16, 8, cudaMemcpyDeviceToHost));
       a.Text(to);
       a(cudaMemcpyToSymbolAsync(cuaudit_constants, from, 16, 0, cudaMemcpyHostToDevice, NewStream(a)));
       a(cudaMemcpyToSymbol(cuaudit_table, from, 16, 60, cudaMemcpyHostToDevice));
       a(cudaMemcpyToSymbol(cuaudit_table, from, 0, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpyToSymbol(cuaudit_never, from, 4, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpyToSymbol(cuaudit_table, from, 16, 0, cudaMemcpyDeviceToHost));
       a(cudaMemcpyFromSymbol(to, cuaudit_table, 16, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpyToSymbol(cuaudit_table, from, 16, 0, cudaMemcpyDefault));
       a(cudaMemcpyFromSymbol(to, cuaudit_table, 16, 0, cudaMemcpyHostToHost));
     }},
    {"symbol.nodes",
     [](Asker& a) {
       RegisterKernels();
       char from[16] = "by a node";
       char to[16] = {};
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t in = nullptr;
       cudaGraphNode_t out = nullptr;
       a(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, cuaudit_table, from, 10, 0, cudaMemcpyHostToDevice));
       a(cudaGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, to, cuaudit_table, 10, 0, cudaMemcpyDeviceToHost));
       const cudaGraphExec_t exec = Instantiated(a, graph);
       a(cudaGraphLaunch(exec, nullptr));
       a(cudaDeviceSynchronize());
       a.Text(to);
       a(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, out, to, cuaudit_table, 4, 0, cudaMemcpyDeviceToHost));
       a(cudaGraphMemcpyNodeSetParamsToSymbol(in, cuaudit_table, from, 4, 62, cudaMemcpyHostToDevice));
       a(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, cuaudit_never, from, 4, 0, cudaMemcpyHostToDevice));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::registered_questions

namespace cuaudit::cudart {
std::span<const Question> RegisteredQuestions() { return registered_questions::kQuestions; }
}  // namespace cuaudit::cudart
