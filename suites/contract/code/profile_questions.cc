// SPDX-License-Identifier: MIT
// What the device says about itself, and what follows from it for kernels: attributes, limits of functions, occupancy.
#include "suites/contract/question.h"

namespace cuaudit::contract::profile_questions {
namespace {

// Attributes that depend on the machine and not on the device: buses, NUMA nodes, the compute mode, MPS, the board's maker.
constexpr int kOfTheMachine[] = {20, 33, 34, 50, 85, 131, 133, 134, 139, 140};

bool IsOfTheMachine(int attribute) {
  for (const int each : kOfTheMachine) {
    if (each == attribute) return true;
  }
  return false;
}

void AskAttributes(Asker& a, int first, int last) {
  const Ready ready(a);
  for (int i = first; i <= last; ++i) {
    if (IsOfTheMachine(i)) continue;
    int value = 0;
    a.Either(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(static_cast<unsigned>(i)), 0), value);
  }
}

// A module of kPtx and its kernels in the current context.
struct Kernels {
  explicit Kernels(Asker& a)
      : module(a.ModuleLoadData()), fill(a.ModuleGetFunction(module, "fill")), plain(a.ModuleGetFunction(module, "plain")) {}
  const CUmodule module;
  const CUfunction fill, plain;
};

void AskFunctionAttributes(Asker& a, CUfunction function) {
  for (int i = 0; i <= CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    a.Either(a.d.FuncGetAttribute(&value, Beyond<CUfunction_attribute>(static_cast<unsigned>(i)), function), value);
  }
}

void AskBlocks(Asker& a, CUfunction function, int block, std::size_t shared) {
  int blocks = -1;
  a.Either(a.d.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block, shared), blocks);
}

std::size_t CUDA_CB FourBytesAThread(int block) { return static_cast<std::size_t>(block) * 64; }

CUlaunchConfig Clusters(unsigned blocks, unsigned threads, unsigned shared, CUlaunchAttribute* cluster, unsigned size) {
  *cluster = {};
  cluster->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster->value.clusterDim.x = size;
  cluster->value.clusterDim.y = 1;
  cluster->value.clusterDim.z = 1;
  CUlaunchConfig config = {};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = shared;
  config.attrs = size == 0 ? nullptr : cluster;
  config.numAttrs = size == 0 ? 0 : 1;
  return config;
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("profile.attributes_1", "1024 1024 1024 64 2147483647 65535 65535 49152 65536 32 2147483647 65536 1980000 512 1 132 0 0 1",
            [](Asker& a) { AskAttributes(a, 1, 20); });
  ask.Plain("profile.attributes_22", "131072 131072 65536 16384 16384 16384 32768 32768 2048 512 1 1 0 3201000 6016 62914560 2048 3",
            [](Asker& a) { AskAttributes(a, 21, 40); });
  ask.Plain("profile.attributes_41", "1 32768 2048 1 32768 32768 8192 8192 32768 32 32768 32768 2046 32768 131072 65536 16384 16384 16384",
            [](Asker& a) { AskAttributes(a, 41, 60); });
  ask.Plain("profile.attributes_61",
            "32768 2048 32768 32768 2048 32768 32768 2046 268435456 131072 65000 2097120 32768 32768 9 0 32768 1 1 1",
            [](Asker& a) { AskAttributes(a, 61, 80); });
  ask.Plain("profile.attributes_81", "233472 65536 1 0 0 2 0 1 1 1 0 0 0 1 1 232448 0 1 0", [](Asker& a) { AskAttributes(a, 81, 100); });
  ask.Plain("profile.attributes_101", "0 1 1 0 0 32 1 39321600 134217728 1 1024 1 1 1 1 1 1 100 9 1",
            [](Asker& a) { AskAttributes(a, 101, 120); });
  ask.Plain("profile.attributes_121", "1 1 1 1 1 4 1 1 1 0 0 0 0 0 0 1 1 0 1 1 0 0 INVALID_VALUE INVALID_VALUE INVALID_VALUE",
            [](Asker& a) { AskAttributes(a, 121, 150); });
  ask.Plain("profile.attribute_range", "INVALID_VALUE x3", [](Ready& a) {
    int value = 0;
    a(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(0), 0));
    a(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(0xffffffffU), 0));
    a(a.d.DeviceGetAttribute(&value, Beyond<CUdevice_attribute>(1000), 0));
  });
  ask.Plain("profile.name", "NVIDIA_H200", [](Ready& a) {
    char name[64] = "";
    a.Prepare(a.d.DeviceGetName(name, sizeof(name), 0));
    for (char& c : name) c = c == ' ' ? '_' : c;
    a.Text(name);
  });
  ask.Plain("profile.properties",
            "SUCCESS 1024 1024 1024 64 2147483647 65535 65535 49152 65536 32 2147483647 65536 1980000 512 SUCCESS 9 0", [](Ready& a) {
              CUdevprop p = {};
              a(a.d.DeviceGetProperties(&p, 0));
              for (const int each : {p.maxThreadsPerBlock, p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0],
                                     p.maxGridSize[1], p.maxGridSize[2], p.sharedMemPerBlock, p.totalConstantMemory, p.SIMDWidth,
                                     p.memPitch, p.regsPerBlock, p.clockRate, p.textureAlign}) {
                a.Value(each);
              }
              int major = 0, minor = 0;
              a(a.d.DeviceComputeCapability(&major, &minor, 0), major, minor);
            });
  ask.Risky("profile.affinity_support", "SUCCESS 0 SUCCESS INVALID_VALUE INVALID_DEVICE", [](Ready& a) {
    int value = -1;
    a(a.d.DeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), value);
    a(a.d.DeviceGetExecAffinitySupport(&value, Beyond<CUexecAffinityType>(9), 0));
    a(a.d.DeviceGetExecAffinitySupport(nullptr, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    a(a.d.DeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 99));
  });
  ask.Plain("profile.linear_width", "SUCCESS 1073741824 SUCCESS 536870912 SUCCESS 268435456 INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    std::size_t width = 0;
    a(a.d.DeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), width);
    a(a.d.DeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 2, 0), width);
    a(a.d.DeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0), width);
    a(a.d.DeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0));
    a(a.d.DeviceGetTexture1DLinearMaxWidth(&width, Beyond<CUarray_format>(99), 1, 0));
  });
  ask.Risky("profile.luid_and_sync", "NOT_SUPPORTED NOT_SUPPORTED", [](Ready& a) {
    char luid[16] = "";
    a(a.d.DeviceGetLuid(luid, kIgnored, 0));
    a(a.d.DeviceGetNvSciSyncAttributes(luid, 0, CUDA_NVSCISYNC_ATTR_SIGNAL));
  });
  ask.Risky("profile.p2p_attribute_self", "INVALID_DEVICE x3 SUCCESS 0", [](Ready& a) {
    int value = 0;
    a(a.d.DeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    a(a.d.DeviceGetP2PAttribute(&value, Beyond<CUdevice_P2PAttribute>(77), 0, 0));
    a(a.d.DeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99));
    int can = -1;
    a(a.d.DeviceCanAccessPeer(&can, 0, 0), can);
  });
  ask.Plain("profile.function_attributes", "1024 0 0 0 4 90 90 0 49152 -1 0 0 0 0 0 0 INVALID_VALUE",
            [](Ready& a, const Kernels& k) { AskFunctionAttributes(a, k.plain); });
  ask.Plain("profile.function_attributes_parameters", "1024 0 0 0 4 90 90 0 49152 -1 0 0 0 0 0 0 INVALID_VALUE",
            [](Ready& a, const Kernels& k) { AskFunctionAttributes(a, k.fill); });
  ask.Plain("profile.function_set_attribute",
            "SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS 232448 SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE",
            [](Ready& a, const Kernels& k) {
              const auto set = [&](CUfunction_attribute attribute, int value) { a(a.d.FuncSetAttribute(k.plain, attribute, value)); };
              set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448);
              set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449);
              set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1);
              int value = 0;
              a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k.plain), value);
              set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
              set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101);
              set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
              set(CU_FUNC_ATTRIBUTE_NUM_REGS, 8);
              set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2);
              set(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 77);
            });
  ask.Plain("profile.occupancy_blocks", "32 32 32 16 8 4 2 2 0", [](Ready& a, const Kernels& k) {
    for (const int block : {1, 32, 64, 128, 256, 512, 1000, 1024, 1056}) AskBlocks(a, k.plain, block, 0);
  });
  ask.Plain("profile.occupancy_shared", "16 16 16 16 13 5 4 0 0 4 2 2 1 1 0", [](Ready& a, const Kernels& k) {
    for (const std::size_t shared : {0U, 1U, 1024U, 6000U, 16384U, 40000U, 49152U, 49153U, 100000U}) AskBlocks(a, k.plain, 128, shared);
    a.Prepare(a.d.FuncSetAttribute(k.plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    for (const std::size_t shared : {49153U, 100000U, 115712U, 116000U, 232448U, 232449U}) AskBlocks(a, k.plain, 128, shared);
  });
  ask.Risky("profile.occupancy_arguments", "INVALID_VALUE x3 INVALID_HANDLE INVALID_VALUE SUCCESS", [](Ready& a, const Kernels& k) {
    int blocks = 0;
    AskBlocks(a, k.plain, 0, 0);
    AskBlocks(a, k.plain, -1, 0);
    a(a.d.OccupancyMaxActiveBlocksPerMultiprocessor(nullptr, k.plain, 32, 0));
    AskBlocks(a, nullptr, 32, 0);
    a(a.d.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, k.plain, 32, 0, 8));
    a(a.d.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, k.plain, 32, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
  });
  ask.Risky("profile.potential_block",
            "SUCCESS 264 1024 SUCCESS 2112 128 SUCCESS 264 1024 SUCCESS 264 1024 SUCCESS 528 512 SUCCESS 4224 64 INVALID_VALUE x3",
            [](Ready& a, const Kernels& k) {
              int grid = 0, block = 0;
              const auto show = [&](CUoccupancyB2DSize size, std::size_t shared, int limit) {
                a(a.d.OccupancyMaxPotentialBlockSize(&grid, &block, k.plain, size, shared, limit), grid, block);
              };
              show(nullptr, 0, 0);
              show(nullptr, 0, 128);
              show(nullptr, 0, 4096);
              show(nullptr, 40000, 0);
              show(FourBytesAThread, 0, 0);
              show(nullptr, 0, 100);
              a(a.d.OccupancyMaxPotentialBlockSize(&grid, &block, k.plain, nullptr, 0, -1));
              a(a.d.OccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, k.plain, nullptr, 0, 0, 8));
              a(a.d.OccupancyMaxPotentialBlockSize(&grid, nullptr, k.plain, nullptr, 0, 0));
            });
  ask.Risky("profile.available_shared",
            "SUCCESS 49152 SUCCESS 49152 SUCCESS 49152 SUCCESS 14592 INVALID_VALUE INVALID_VALUE SUCCESS 49152 INVALID_VALUE SUCCESS "
            "232448 SUCCESS 116736",
            [](Ready& a, const Kernels& k) {
              std::size_t bytes = 0;
              const auto show = [&](int blocks, int threads) {
                if (a(a.d.OccupancyAvailableDynamicSMemPerBlock(&bytes, k.plain, blocks, threads)) == CUDA_SUCCESS)
                  a.Value(static_cast<long long>(bytes));
              };
              show(1, 128);
              show(2, 128);
              show(3, 128);
              show(16, 128);
              show(17, 128);
              show(0, 128);
              show(2, 1024);
              show(3, 1024);
              a.Prepare(a.d.FuncSetAttribute(k.plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
              show(1, 128);
              show(2, 128);
            });
  ask.Risky("profile.cluster_limits",
            "SUCCESS 8 SUCCESS 8 SUCCESS 0 SUCCESS 1056 SUCCESS 528 INVALID_CLUSTER_SIZE INVALID_CLUSTER_SIZE SUCCESS 16",
            [](Ready& a, const Kernels& k) {
              CUlaunchAttribute cluster;
              int value = -1;
              const auto show = [&](bool active, unsigned threads, unsigned shared, unsigned size) {
                const CUlaunchConfig config = Clusters(64, threads, shared, &cluster, size);
                const CUresult result = active ? a.d.OccupancyMaxActiveClusters(&value, k.plain, &config)
                                               : a.d.OccupancyMaxPotentialClusterSize(&value, k.plain, &config);
                if (a(result) == CUDA_SUCCESS) a.Value(value);
              };
              show(false, 128, 0, 0);
              show(false, 1024, 0, 0);
              show(true, 128, 0, 0);
              show(true, 128, 0, 1);
              show(true, 128, 0, 2);
              show(true, 128, 0, 16);
              show(true, 128, 0, 3);
              a.Prepare(a.d.FuncSetAttribute(k.plain, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
              show(false, 128, 0, 0);
            });
}

}  // namespace cuaudit::contract::profile_questions
