// SPDX-License-Identifier: MIT
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::launch_questions {
namespace {

constexpr const char* kKernels =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry plain()\n{\n ret;\n}\n"
    ".visible .entry fill(.param .u64 target, .param .u32 count)\n{\n ret;\n}\n"
    ".visible .entry mixed(.param .u8 a, .param .u64 b, .param .u16 c, .param .align 16 .b8 d[32], .param .u32 e)\n{\n ret;\n}\n"
    ".visible .entry small() .maxntid 64, 1, 1\n{\n ret;\n}\n"
    ".visible .entry exact() .reqntid 32, 1, 1\n{\n ret;\n}\n";

struct Image {
  explicit Image(Asker& asker) : a(asker), m(a.ModuleLoadData(kKernels)) {}
  CUfunction operator[](const char* name) const { return a.ModuleGetFunction(m, name); }
  Asker& a;
  const CUmodule m;
};

CUresult Launch(Asker& a, CUfunction f, unsigned block, void** parameters = nullptr, void** extra = nullptr, unsigned shared = 0) {
  return a.d.LaunchKernel(f, 1, 1, 1, block, 1, 1, shared, nullptr, parameters, extra);
}

CUresult LaunchBuffer(Asker& a, CUfunction f, std::size_t size) {
  static char buffer[256];
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  return Launch(a, f, 1, nullptr, extra);
}

CUresult LaunchWith(Asker& a, CUfunction f, unsigned grid, const CUlaunchAttribute& attribute) {
  CUlaunchAttribute copy = attribute;
  CUlaunchConfig config{};
  config.gridDimX = grid;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &copy;
  config.numAttrs = 1;
  return a.d.LaunchKernelEx(&config, f, nullptr, nullptr);
}

CUlaunchAttribute Cluster(unsigned x) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = x;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  return attribute;
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("launch.extra", "SUCCESS LAUNCH_OUT_OF_RESOURCES SUCCESS LAUNCH_OUT_OF_RESOURCES SUCCESS", [](Ready& a, const Image& image) {
    const CUfunction f = image["fill"];
    a(LaunchBuffer(a, f, 12));
    a(LaunchBuffer(a, f, 16));
    a(LaunchBuffer(a, f, 8));
    a(LaunchBuffer(a, f, 24));
    a(LaunchBuffer(a, image["plain"], 0));
  });
  ask.Risky("launch.extra_broken", "INVALID_VALUE x3", [](Ready& a, const Image& image) {
    static char buffer[16];
    std::size_t size = 12;
    void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
    void* no_buffer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void* empty[] = {CU_LAUNCH_PARAM_END};
    a(Launch(a, image["fill"], 1, nullptr, no_size));
    a(Launch(a, image["fill"], 1, nullptr, no_buffer));
    a(Launch(a, image["fill"], 1, nullptr, empty));
  });
  ask.Plain("launch.both_forms", "INVALID_VALUE", [](Ready& a, const Image& image) {
    static char buffer[16];
    std::size_t size = 12;
    CUdeviceptr p = 0;
    unsigned count = 0;
    void* parameters[] = {&p, &count};
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    a(Launch(a, image["fill"], 1, parameters, extra));
  });
  ask.Risky("launch.null_parameter", "INVALID_VALUE", [](Ready& a, const Image& image) {
    CUdeviceptr p = 0;
    void* parameters[] = {&p, nullptr};
    a(Launch(a, image["fill"], 1, parameters));
  });
  ask.Plain("launch.needless_parameters", "SUCCESS SUCCESS", [](Ready& a, const Image& image) {
    CUdeviceptr p = 0;
    void* parameters[] = {&p};
    a(Launch(a, image["plain"], 1, parameters));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Plain("launch.layout", "SUCCESS 0 1 SUCCESS 8 8 SUCCESS 16 2 SUCCESS 32 32 SUCCESS 64 4 INVALID_VALUE",
            [](Ready& a, const Image& image) {
              const CUfunction f = image["mixed"];
              std::size_t offset = 0, size = 0;
              for (std::size_t i = 0; i < 5; ++i) {
                a(a.d.FuncGetParamInfo(f, i, &offset, &size), offset, size);
              }
              a(a.d.FuncGetParamInfo(f, 5, &offset, &size));
            });
  ask.Plain("launch.zero_dimensions", "INVALID_VALUE x5", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    a(a.d.LaunchKernel(f, 1, 0, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 0, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 1, 1, 64, 32, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.LaunchKernel(f, 1, 1, 65536, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Plain("launch.declared_block", "SUCCESS INVALID_VALUE SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a, const Image& image) {
    a(Launch(a, image["small"], 64));
    a(Launch(a, image["small"], 65));
    a(Launch(a, image["exact"], 32));
    a(Launch(a, image["exact"], 16));
    a(Launch(a, image["exact"], 64));
  });
  ask.Fresh("launch.shared_limits", "SUCCESS INVALID_VALUE SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS",
            [](Ready& a, const Image& image) {
              const CUfunction f = image["plain"];
              a(Launch(a, f, 1, nullptr, nullptr, 49152));
              a(Launch(a, f, 1, nullptr, nullptr, 49153));
              a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
              a(Launch(a, f, 1, nullptr, nullptr, 100000));
              a(Launch(a, f, 1, nullptr, nullptr, 100001));
              a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
              a(a.d.FuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
              a(Launch(a, f, 1, nullptr, nullptr, 232448));
            });
  ask.Risky("launch.function_of_another_context", "INVALID_HANDLE SUCCESS", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    const CUstream stream = a.StreamCreate(0);
    a.CtxCreate();
    a(Launch(a, f, 1));
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  });
  ask.Risky("launch.stream_of_another_context", "INVALID_HANDLE", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    CUcontext other = a.CtxCreate();
    const CUstream stream = a.StreamCreate(0);
    a.Prepare(a.d.CtxPopCurrent(&other));
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  });
  ask.Risky("launch.kernel_in_another_context", "SUCCESS SUCCESS", [](Ready& a) {
    CUlibrary l = nullptr;
    CUkernel k = nullptr;
    a.Prepare(a.d.LibraryLoadData(&l, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
    a.CtxCreate();
    a(Launch(a, reinterpret_cast<CUfunction>(k), 1));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("launch.unloaded_module", "SUCCESS INVALID_HANDLE", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    a(a.d.ModuleUnload(image.m));
    a(Launch(a, f, 1));
  });
  ask.Plain("launch.cooperative", "SUCCESS COOPERATIVE_LAUNCH_TOO_LARGE INVALID_VALUE", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    a(a.d.LaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
    a(a.d.LaunchCooperativeKernel(f, 100000, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
    a(a.d.LaunchCooperativeKernel(f, 0, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  });
  ask.Plain("launch.cooperative_attribute", "SUCCESS COOPERATIVE_LAUNCH_TOO_LARGE", [](Ready& a, const Image& image) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    a(LaunchWith(a, image["plain"], 1, attribute));
    a(LaunchWith(a, image["plain"], 100000, attribute));
  });
  ask.Plain("launch.cluster", "SUCCESS INVALID_CLUSTER_SIZE x3", [](Ready& a, const Image& image) {
    a(LaunchWith(a, image["plain"], 4, Cluster(2)));
    a(LaunchWith(a, image["plain"], 3, Cluster(2)));
    a(LaunchWith(a, image["plain"], 16, Cluster(16)));
    a(LaunchWith(a, image["plain"], 4, Cluster(0)));
  });
  ask.Risky("launch.attributes_refused", "INVALID_VALUE x3", [](Ready& a, const Image& image) {
    CUlaunchAttribute attribute{};
    attribute.id = Beyond<CUlaunchAttributeID>(60);
    a(LaunchWith(a, image["plain"], 1, attribute));
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.numAttrs = 1;
    a(a.d.LaunchKernelEx(&config, image["plain"], nullptr, nullptr));
    a(a.d.LaunchKernelEx(nullptr, image["plain"], nullptr, nullptr));
  });
  ask.Plain("launch.old_calls", "SUCCESS x7", [](Ready& a, const Image& image) {
    const CUfunction f = image["fill"];
    CUdeviceptr p = 0;
    a(a.d.FuncSetBlockShape(f, 32, 1, 1));
    a(a.d.ParamSetv(f, 0, &p, sizeof(p)));
    a(a.d.ParamSeti(f, 8, 3));
    a(a.d.ParamSetSize(f, 12));
    a(a.d.Launch(f));
    a(a.d.LaunchGrid(f, 2, 2));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("launch.old_shape_refused", "INVALID_VALUE INVALID_VALUE", [](Ready& a, const Image& image) {
    const CUfunction f = image["fill"];
    a(a.d.FuncSetBlockShape(f, 0, 1, 1));
    a(a.d.FuncSetBlockShape(f, 2048, 1, 1));
  });
  ask.Risky("launch.old_grid_refused", "INVALID_VALUE", [](Ready& a, const Image& image) {
    const CUfunction f = image["plain"];
    a.Prepare(a.d.FuncSetBlockShape(f, 32, 1, 1));
    a(a.d.LaunchGrid(f, 0, 1));
  });
  ask.Risky("launch.old_size_refused", "INVALID_VALUE", [](Ready& a, const Image& image) { a(a.d.ParamSetSize(image["fill"], 1 << 20)); });
  ask.Risky("launch.old_parameter_behind", "SUCCESS INVALID_VALUE", [](Ready& a, const Image& image) {
    a(a.d.ParamSeti(image["fill"], 16, 3));
    a(a.d.ParamSeti(image["fill"], 1 << 16, 3));
  });
  ask.Risky("launch.old_without_shape", "SUCCESS", [](Ready& a, const Image& image) { a(a.d.Launch(image["plain"])); });
  ask.Risky("launch.old_wrong_size", "SUCCESS SUCCESS", [](Ready& a, const Image& image) {
    const CUfunction f = image["fill"];
    a.Prepare(a.d.FuncSetBlockShape(f, 32, 1, 1));
    a(a.d.ParamSetSize(f, 8));
    a(a.d.Launch(f));
  });
}

}  // namespace cuaudit::contract::launch_questions
