// SPDX-License-Identifier: MIT
// What calls about code, contexts, green contexts and textures answer when no context is current, and when another one than the object's
// is.
#include <cstring>

#include "suites/contract/context/away.h"

namespace cuaudit::contract::away_code_questions {
namespace {

constexpr const char* kManagedPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .b8 shared_table[64];\n"
    ".visible .entry plain()\n{\n ret;\n}\n";
constexpr const char* kTexturePtx =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".global .texref picture;\n.global .surfref canvas;\n"
    ".visible .entry plain()\n{\n ret;\n}\n";

void NotifiedOf(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}
void Heard(void*, CUlogLevel, char*, std::size_t) {}

// A further context, a green context, functions, kernels, textures and references to them beside the objects of Held.
struct Coded : Held {
  Coded(const Asker& asker, bool elsewhere) : Held(asker, elsewhere) {
    third = CtxCreate();
    CtxPopCurrent();
    Prepare(d.CtxPushCurrent(context));
    desc = Group(*this, 16);
    Prepare(d.GreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    managed_library = LibraryLoadData(kManagedPtx);
    textured = ModuleLoadData(kTexturePtx);
    Prepare(d.ModuleGetTexRef(&reference, textured, "picture"));
    Prepare(d.ModuleGetSurfRef(&surface_reference, textured, "canvas"));
    Prepare(d.TexRefCreate(&own));
    Prepare(d.TexRefSetFormat(own, CU_AD_FORMAT_FLOAT, 1));
    fill = ModuleGetFunction(m, "fill");
    Prepare(d.LibraryGetKernel(&fill_kernel, l, "fill"));
    Prepare(d.LinkCreate(0, nullptr, nullptr, &filled));
    Prepare(d.LinkAddData(filled, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), std::strlen(kPtx) + 1, "ptx", 0, nullptr, nullptr));
    Prepare(d.DeviceRegisterAsyncNotification(0, NotifiedOf, nullptr, &notification));
    Prepare(d.LogsRegisterCallback(Heard, nullptr, &log));
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.hStream = s;
    many.function = f;
    many.gridDimX = many.gridDimY = many.gridDimZ = many.blockDimX = many.blockDimY = many.blockDimZ = 1;
    many.hStream = s;
    CtxPopCurrent();
  }

  CUcontext third;
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  CUlibrary managed_library;
  CUmodule textured;
  CUtexref reference = nullptr, own = nullptr;
  CUsurfref surface_reference = nullptr;
  CUfunction fill;
  CUkernel fill_kernel = nullptr;
  CUlinkState filled = nullptr;
  CUasyncCallbackHandle notification = nullptr;
  CUlogsCallbackHandle log = nullptr;
  CUlaunchConfig launch{};
  CUDA_LAUNCH_PARAMS many{};
  CUdevResource resource{};
  CUDA_ARRAY_DESCRIPTOR plane_shape{16, 4, CU_AD_FORMAT_FLOAT, 1};
  CUfunction functions[2] = {};
  CUkernel kernels[2] = {};
  float border[4] = {};
};

constexpr AwayRow<Coded> kCode[] = {
    {"module_functions", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.ModuleEnumerateFunctions(a.functions, 2, a.m); }},
    {"module_function_count", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.ModuleGetFunctionCount(kIgnored, a.m); }},
    {"module_texture", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.ModuleGetTexRef(kIgnored, a.textured, "picture"); }},
    {"module_surface", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.ModuleGetSurfRef(kIgnored, a.textured, "canvas"); }},
    {"function_parameter", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.FuncGetParamInfo(a.fill, 0, kIgnored, nullptr); }},
    {"function_is_loaded", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.FuncIsLoaded(kIgnored, a.f); }},
    {"function_bank", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.FuncSetSharedMemConfig(a.f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE); }},
    {"function_block_shape", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.FuncSetBlockShape(a.f, 1, 1, 1); }},
    {"function_shared_size", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.FuncSetSharedSize(a.f, 64); }},
    {"parameter_size", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.ParamSetSize(a.fill, 12); }},
    {"parameter_integer", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.ParamSeti(a.fill, 8, 0); }},
    {"parameter_float", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.ParamSetf(a.fill, 8, 0.0F); }},
    {"parameter_bytes", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.ParamSetv(a.fill, 0, &a.p, 8); }},
    {"parameter_texture", "INVALID_CONTEXT", "INVALID_HANDLE",
     [](Coded& a) { return a.d.ParamSetTexRef(a.f, CU_PARAM_TR_DEFAULT, a.own); }},
    {"launch_old", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.Launch(a.f); }},
    {"launch_grid", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.LaunchGrid(a.f, 1, 1); }},
    {"launch_grid_async", "INVALID_CONTEXT", "INVALID_HANDLE", [](Coded& a) { return a.d.LaunchGridAsync(a.f, 1, 1, a.s); }},
    {"launch_configured", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LaunchKernelEx(&a.launch, a.f, nullptr, nullptr); }},
    {"launch_many", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LaunchCooperativeKernelMultiDevice(&a.many, 1, 0); }},
    {"launch_of_kernel", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.LaunchKernel(reinterpret_cast<CUfunction>(a.k), 1, 1, 1, 1, 1, 1, 0, a.s, nullptr, nullptr); }},
    {"kernel_library", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.KernelGetLibrary(kIgnored, a.k); }},
    {"kernel_name", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.KernelGetName(kIgnored, a.k); }},
    {"kernel_parameter", "INVALID_CONTEXT", "SUCCESS",
     [](Coded& a) { return a.d.KernelGetParamInfo(a.fill_kernel, 0, kIgnored, nullptr); }},
    {"kernel_set_attribute", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, a.k, a.device.id); }},
    {"kernel_cache", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.KernelSetCacheConfig(a.k, CU_FUNC_CACHE_PREFER_L1, a.device.id); }},
    {"library_kernels", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LibraryEnumerateKernels(a.kernels, 2, a.l); }},
    {"library_kernel_count", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LibraryGetKernelCount(kIgnored, a.l); }},
    {"library_managed", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.LibraryGetManaged(kIgnored, kIgnored, a.managed_library, "shared_table"); }},
    {"library_unified", "INVALID_VALUE", "INVALID_VALUE", [](Coded& a) { return a.d.LibraryGetUnifiedFunction(kIgnored, a.l, "nothing"); }},
    {"link_add_file", "FILE_NOT_FOUND", "FILE_NOT_FOUND",
     [](Coded& a) { return a.d.LinkAddFile(a.link, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr); }},
    {"link_complete", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LinkComplete(a.filled, kIgnored, kIgnored); }},
    {"occupancy_with_flags", "INVALID_CONTEXT", "SUCCESS",
     [](Coded& a) { return a.d.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(kIgnored, a.f, 64, 0, 0); }},
    {"occupancy_shared", "INVALID_CONTEXT", "SUCCESS",
     [](Coded& a) { return a.d.OccupancyAvailableDynamicSMemPerBlock(kIgnored, a.f, 1, 64); }},
    {"occupancy_block_size", "INVALID_CONTEXT", "SUCCESS",
     [](Coded& a) { return a.d.OccupancyMaxPotentialBlockSize(kIgnored, kIgnored, a.f, nullptr, 0, 0); }},
    {"occupancy_block_size_with_flags", "INVALID_CONTEXT", "SUCCESS",
     [](Coded& a) { return a.d.OccupancyMaxPotentialBlockSizeWithFlags(kIgnored, kIgnored, a.f, nullptr, 0, 0, 0); }},
    {"occupancy_clusters", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.OccupancyMaxActiveClusters(kIgnored, a.f, &a.launch); }},
    {"occupancy_cluster_size", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.OccupancyMaxPotentialClusterSize(kIgnored, a.f, &a.launch); }},
};

constexpr AwayRow<Coded> kContexts[] = {
    {"context_version", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxGetApiVersion(a.context, kIgnored); }},
    {"context_id", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxGetId(a.context, kIgnored); }},
    {"context_device", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxGetDevice(kIgnored, a.context); }},
    {"context_resource", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.CtxGetDevResource(a.context, &a.resource, CU_DEV_RESOURCE_TYPE_SM); }},
    {"context_record", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxRecordEvent(a.context, a.e); }},
    {"context_wait", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxWaitEvent(a.context, a.e); }},
    {"context_synchronize", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxSynchronize(a.context); }},
    {"context_enable_peer", "INVALID_CONTEXT", "PEER_ACCESS_UNSUPPORTED", [](Coded& a) { return a.d.CtxEnablePeerAccess(a.context, 0); }},
    {"context_disable_peer", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", [](Coded& a) { return a.d.CtxDisablePeerAccess(a.context); }},
    {"context_push", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxPushCurrent(a.context); }},
    {"context_set", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxSetCurrent(a.context); }},
    {"context_destroy", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxDestroy(a.third); }},
    {"context_detach", "INVALID_CONTEXT", "INVALID_CONTEXT", [](Coded& a) { return a.d.CtxDetach(a.third); }},
    {"green_create", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxCreate(kIgnored, a.desc, 0, CU_GREEN_CTX_DEFAULT_STREAM); }},
    {"green_context", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.CtxFromGreenCtx(kIgnored, a.green); }},
    {"green_resource", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.GreenCtxGetDevResource(a.green, &a.resource, CU_DEV_RESOURCE_TYPE_SM); }},
    {"green_id", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxGetId(a.green, kIgnored); }},
    {"green_record", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxRecordEvent(a.green, a.e); }},
    {"green_wait", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxWaitEvent(a.green, a.e); }},
    {"green_stream", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxStreamCreate(kIgnored, a.green, CU_STREAM_NON_BLOCKING, 0); }},
    {"green_destroy", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.GreenCtxDestroy(a.green); }},
    {"notification_end", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.DeviceUnregisterAsyncNotification(0, a.notification); }},
    {"log_end", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.LogsUnregisterCallback(a.log); }},
};

constexpr AwayRow<Coded> kTextures[] = {
    {"texture_description", "INVALID_CONTEXT", "INVALID_VALUE", [](Coded& a) { return a.d.TexObjectGetTextureDesc(kIgnored, a.texture); }},
    {"texture_view", "INVALID_CONTEXT", "INVALID_VALUE", [](Coded& a) { return a.d.TexObjectGetResourceViewDesc(kIgnored, a.texture); }},
    {"surface_resource", "INVALID_CONTEXT", "INVALID_VALUE", [](Coded& a) { return a.d.SurfObjectGetResourceDesc(kIgnored, a.surface); }},
    {"surface_reference_array", "INVALID_VALUE", "INVALID_VALUE",
     [](Coded& a) { return a.d.SurfRefGetArray(kIgnored, a.surface_reference); }},
    {"surface_reference_set_array", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.SurfRefSetArray(a.surface_reference, a.surfaced, 0); }},
    {"reference_destroy", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefDestroy(a.own); }},
    {"reference_address", "INVALID_VALUE", "INVALID_VALUE", [](Coded& a) { return a.d.TexRefGetAddress(kIgnored, a.own); }},
    {"reference_mode", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetAddressMode(kIgnored, a.own, 0); }},
    {"reference_array", "INVALID_VALUE", "INVALID_VALUE", [](Coded& a) { return a.d.TexRefGetArray(kIgnored, a.own); }},
    {"reference_border", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetBorderColor(a.border, a.own); }},
    {"reference_filter", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetFilterMode(kIgnored, a.own); }},
    {"reference_flags", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetFlags(kIgnored, a.own); }},
    {"reference_format", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetFormat(kIgnored, kIgnored, a.own); }},
    {"reference_anisotropy", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetMaxAnisotropy(kIgnored, a.own); }},
    {"reference_level_filter", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetMipmapFilterMode(kIgnored, a.own); }},
    {"reference_bias", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetMipmapLevelBias(kIgnored, a.own); }},
    {"reference_clamp", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefGetMipmapLevelClamp(kIgnored, kIgnored, a.own); }},
    {"reference_mipmap", "INVALID_VALUE", "INVALID_VALUE", [](Coded& a) { return a.d.TexRefGetMipmappedArray(kIgnored, a.own); }},
    {"reference_set_address", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetAddress(kIgnored, a.own, a.p, 1024); }},
    {"reference_set_plane", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetAddress2D(a.own, &a.plane_shape, a.p, 512); }},
    {"reference_set_mode", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetAddressMode(a.own, 0, CU_TR_ADDRESS_MODE_WRAP); }},
    {"reference_set_array", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetArray(a.own, a.array, CU_TRSA_OVERRIDE_FORMAT); }},
    {"reference_set_border", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetBorderColor(a.own, a.border); }},
    {"reference_set_filter", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetFilterMode(a.own, CU_TR_FILTER_MODE_LINEAR); }},
    {"reference_set_flags", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetFlags(a.own, CU_TRSF_NORMALIZED_COORDINATES); }},
    {"reference_set_format", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetFormat(a.own, CU_AD_FORMAT_FLOAT, 1); }},
    {"reference_set_anisotropy", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetMaxAnisotropy(a.own, 4); }},
    {"reference_set_level_filter", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.TexRefSetMipmapFilterMode(a.own, CU_TR_FILTER_MODE_LINEAR); }},
    {"reference_set_bias", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetMipmapLevelBias(a.own, 0.0F); }},
    {"reference_set_clamp", "SUCCESS", "SUCCESS", [](Coded& a) { return a.d.TexRefSetMipmapLevelClamp(a.own, 0.0F, 1.0F); }},
    {"reference_set_mipmap", "SUCCESS", "SUCCESS",
     [](Coded& a) { return a.d.TexRefSetMipmappedArray(a.own, a.mipmap, CU_TRSA_OVERRIDE_FORMAT); }},
};

}  // namespace

void List(Questions& ask) {
  AskAway(ask, kCode);
  AskAway(ask, kContexts);
  AskAway(ask, kTextures);
}

}  // namespace cuaudit::contract::away_code_questions
