// SPDX-License-Identifier: MIT
// Of properties and attributes only what every H200 answers alike: nothing of the host, the slot or the settings.

#include "suites/cudart/question.h"

namespace cuaudit::cudart::property_questions {
namespace {

void Attributes(Asker& a, std::span<const cudaDeviceAttr> attributes) {
  for (const cudaDeviceAttr attribute : attributes) {
    int value = -1;
    if (a.Prepare(cudaDeviceGetAttribute(&value, attribute, 0))) a.Value(value);
  }
}

constexpr Question kQuestions[] = {
    {"property.bad",
     [](Asker& a) {
       cudaDeviceProp properties{};
       a(cudaGetDeviceProperties(nullptr, 0));
       a(cudaGetDeviceProperties(&properties, -1));
       a(cudaGetDeviceProperties(&properties, 4711));
       a(cudaGetLastError());
     }},
    {"property.name",
     [](Asker& a) {
       cudaDeviceProp properties{};
       a(cudaGetDeviceProperties(&properties, 0));
       a.Text(properties.name);
       a.Value(properties.major);
       a.Value(properties.minor);
       a.Value(properties.multiProcessorCount);
       a.Value(properties.warpSize);
     }},
    {"property.block",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       for (const auto value : {p.maxThreadsPerBlock, p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0],
                                p.maxGridSize[1], p.maxGridSize[2], p.regsPerBlock, p.regsPerMultiprocessor, p.maxThreadsPerMultiProcessor,
                                p.maxBlocksPerMultiProcessor, p.clusterLaunch, p.cooperativeLaunch}) {
         a.Value(value);
       }
     }},
    {"property.memory",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       for (const std::size_t value :
            {p.sharedMemPerBlock, p.sharedMemPerBlockOptin, p.sharedMemPerMultiprocessor, p.reservedSharedMemPerBlock, p.totalConstMem,
             p.memPitch, p.textureAlignment, p.texturePitchAlignment, p.surfaceAlignment}) {
         a.Value(static_cast<long long>(value));
       }
       a.Value(p.memoryBusWidth);
       a.Value(p.l2CacheSize);
       a.Value(p.persistingL2CacheMaxSize);
       a.Value(p.accessPolicyMaxWindowSize);
     }},
    {"property.textures",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       for (const int value : {p.maxTexture1D,
                               p.maxTexture1DMipmap,
                               p.maxTexture2D[0],
                               p.maxTexture2D[1],
                               p.maxTexture2DMipmap[0],
                               p.maxTexture2DMipmap[1],
                               p.maxTexture2DLinear[0],
                               p.maxTexture2DLinear[1],
                               p.maxTexture2DLinear[2],
                               p.maxTexture2DGather[0],
                               p.maxTexture2DGather[1],
                               p.maxTexture3D[0],
                               p.maxTexture3D[1],
                               p.maxTexture3D[2],
                               p.maxTexture3DAlt[0],
                               p.maxTexture3DAlt[1],
                               p.maxTexture3DAlt[2],
                               p.maxTextureCubemap,
                               p.maxTexture1DLayered[0],
                               p.maxTexture1DLayered[1],
                               p.maxTexture2DLayered[0],
                               p.maxTexture2DLayered[1],
                               p.maxTexture2DLayered[2],
                               p.maxTextureCubemapLayered[0],
                               p.maxTextureCubemapLayered[1]}) {
         a.Value(value);
       }
     }},
    {"property.surfaces",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       for (const int value :
            {p.maxSurface1D, p.maxSurface2D[0], p.maxSurface2D[1], p.maxSurface3D[0], p.maxSurface3D[1], p.maxSurface3D[2],
             p.maxSurface1DLayered[0], p.maxSurface1DLayered[1], p.maxSurface2DLayered[0], p.maxSurface2DLayered[1],
             p.maxSurface2DLayered[2], p.maxSurfaceCubemap, p.maxSurfaceCubemapLayered[0], p.maxSurfaceCubemapLayered[1]}) {
         a.Value(value);
       }
     }},
    {"property.abilities",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       for (const int value : {p.integrated,
                               p.canMapHostMemory,
                               p.concurrentKernels,
                               p.asyncEngineCount,
                               p.unifiedAddressing,
                               p.streamPrioritiesSupported,
                               p.globalL1CacheSupported,
                               p.localL1CacheSupported,
                               p.managedMemory,
                               p.concurrentManagedAccess,
                               p.computePreemptionSupported,
                               p.canUseHostPointerForRegisteredMem,
                               p.directManagedMemAccessFromHost,
                               p.hostRegisterSupported,
                               p.sparseCudaArraySupported,
                               p.timelineSemaphoreInteropSupported,
                               p.memoryPoolsSupported,
                               p.deferredMappingCudaArraySupported,
                               p.ipcEventSupported,
                               p.unifiedFunctionPointers,
                               p.tccDriver}) {
         a.Value(value);
       }
     }},
    {"property.equals_attributes",
     [](Asker& a) {
       cudaDeviceProp p{};
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       const struct {
         cudaDeviceAttr attribute;
         long long property;
       } pairs[] = {{cudaDevAttrPciBusId, p.pciBusID},
                    {cudaDevAttrPciDeviceId, p.pciDeviceID},
                    {cudaDevAttrPciDomainId, p.pciDomainID},
                    {cudaDevAttrEccEnabled, p.ECCEnabled},
                    {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess},
                    {cudaDevAttrHostNativeAtomicSupported, p.hostNativeAtomicSupported},
                    {cudaDevAttrHostRegisterReadOnlySupported, p.hostRegisterReadOnlySupported},
                    {cudaDevAttrGPUDirectRDMASupported, p.gpuDirectRDMASupported},
                    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, p.gpuDirectRDMAFlushWritesOptions},
                    {cudaDevAttrGPUDirectRDMAWritesOrdering, p.gpuDirectRDMAWritesOrdering},
                    {cudaDevAttrMemoryPoolSupportedHandleTypes, p.memoryPoolSupportedHandleTypes},
                    {cudaDevAttrNumaConfig, p.deviceNumaConfig},
                    {cudaDevAttrNumaId, p.deviceNumaId},
                    {cudaDevAttrMpsEnabled, p.mpsEnabled},
                    {cudaDevAttrHostNumaId, p.hostNumaId},
                    {cudaDevAttrIsMultiGpuBoard, p.isMultiGpuBoard}};
       for (const auto& pair : pairs) {
         int value = -1;
         a.Prepare(cudaDeviceGetAttribute(&value, pair.attribute, 0));
         a.Value(value == pair.property);
       }
     }},
    {"attribute.bad",
     [](Asker& a) {
       int value = 0;
       a(cudaDeviceGetAttribute(&value, Beyond<cudaDeviceAttr>(0), 0));
       a(cudaDeviceGetAttribute(&value, Beyond<cudaDeviceAttr>(9999), 0));
       a(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1));
       a(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 4711));
     }},
    {"attribute.some",
     [](Asker& a) {
       constexpr cudaDeviceAttr kSome[] = {cudaDevAttrMaxThreadsPerBlock,
                                           cudaDevAttrWarpSize,
                                           cudaDevAttrMultiProcessorCount,
                                           cudaDevAttrComputeCapabilityMajor,
                                           cudaDevAttrComputeMode,
                                           cudaDevAttrMemoryPoolsSupported,
                                           cudaDevAttrClusterLaunch,
                                           cudaDevAttrAsyncEngineCount,
                                           cudaDevAttrMaxPitch,
                                           cudaDevAttrUnifiedAddressing,
                                           cudaDevAttrMemSyncDomainCount,
                                           cudaDevAttrSingleToDoublePrecisionPerfRatio,
                                           cudaDevAttrIpcEventSupport,
                                           cudaDevAttrCanFlushRemoteWrites,
                                           cudaDevAttrGpuOverlap,
                                           cudaDevAttrKernelExecTimeout};
       Attributes(a, kSome);
     }},
    {"limit.get",
     [](Asker& a) {
       for (const cudaLimit limit :
            {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth,
             cudaLimitDevRuntimePendingLaunchCount, cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize}) {
         std::size_t value = 0;
         if (a(cudaDeviceGetLimit(&value, limit)) == cudaSuccess) a.Value(static_cast<long long>(value));
       }
     }},
    {"limit.set",
     [](Asker& a) {
       std::size_t value = 0;
       a(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
       a(cudaDeviceGetLimit(&value, cudaLimitStackSize));
       a.Value(static_cast<long long>(value));
       a(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
       a(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
       a.Value(static_cast<long long>(value));
     }},
    {"limit.bad",
     [](Asker& a) {
       std::size_t value = 0;
       a(cudaDeviceGetLimit(&value, Beyond<cudaLimit>(77)));
       a(cudaDeviceSetLimit(Beyond<cudaLimit>(77), 1));
       a(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
       a(cudaDeviceSetLimit(cudaLimitStackSize, std::size_t{1} << 40));
     }},
    {"cache.config",
     [](Asker& a) {
       cudaFuncCache config{};
       a(cudaDeviceGetCacheConfig(&config));
       a.Value(config);
       a(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
       a(cudaDeviceGetCacheConfig(&config));
       a.Value(config);
       a(cudaDeviceSetCacheConfig(Beyond<cudaFuncCache>(77)));
       a(cudaDeviceGetCacheConfig(nullptr));
     }},
    {"texture1d.width",
     [](Asker& a) {
       const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
       std::size_t width = 0;
       a(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, 0));
       a.Value(static_cast<long long>(width));
       a(cudaDeviceGetTexture1DLinearMaxWidth(nullptr, &format, 0));
     }},
    {"mem.info_total",
     [](Asker& a) {
       std::size_t free_bytes = 0;
       std::size_t total = 0;
       cudaDeviceProp p{};
       a(cudaMemGetInfo(&free_bytes, &total));
       a.Prepare(cudaGetDeviceProperties(&p, 0));
       a.Value(total == p.totalGlobalMem);
       a.Value(free_bytes <= total);
       a(cudaMemGetInfo(nullptr, nullptr));
     }},
    {"stream.priority_range",
     [](Asker& a) {
       int least = -99;
       int greatest = -99;
       a(cudaDeviceGetStreamPriorityRange(&least, &greatest));
       a.Value(least);
       a.Value(greatest);
       a(cudaDeviceGetStreamPriorityRange(nullptr, nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::property_questions

namespace cuaudit::cudart {
std::span<const Question> PropertyQuestions() { return property_questions::kQuestions; }
}  // namespace cuaudit::cudart
