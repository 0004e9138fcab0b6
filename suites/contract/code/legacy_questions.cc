// SPDX-License-Identifier: MIT
// Entry points that only old programs call: texture references, first versions, old contexts; and details of contexts.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/driver/call_shape.h"
#include "suites/contract/context/away.h"
#include "suites/contract/question.h"

namespace cuaudit::contract::legacy_questions {
namespace {

// Calls exactly this version of an entry point.
template <driver::CallId id, typename... A>
CUresult Exactly(const Asker& a, A... arguments) {
  using Entry = typename driver::CallType<id>::Entry;
  return reinterpret_cast<Entry*>(a.d.table->entry[driver::Index(id)])(a.d.self, arguments...);
}

using driver::CallId;

constexpr const char* kTexturePtx =
    ".version 6.0\n.target sm_60, texmode_independent\n.address_size 64\n"
    ".visible .entry plain()\n{\n ret;\n}\n";
constexpr const char* kUnifiedPtx =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".global .texref picture;\n.global .surfref canvas;\n"
    ".visible .entry plain()\n{\n ret;\n}\n";

void AskErrorStrings(Asker& a, unsigned first, unsigned end) {
  for (unsigned i = first; i < end; ++i) {
    const char* text = nullptr;
    if (a.d.GetErrorString(Beyond<CUresult>(i), &text) != CUDA_SUCCESS) continue;
    a.Value(i);
    a.Text(text);
  }
}

using driver::CallId;

void Flags(Asker& a) {
  unsigned flags = 99;
  if (a(a.d.CtxGetFlags(&flags)) == CUDA_SUCCESS) a.Value(flags);
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("legacy.error_names", "101 101 926390668", [](Asker& a) {
    unsigned names = 0, strings = 0;
    unsigned long long sum = 0;
    for (unsigned i = 0; i < 1100; ++i) {
      const char* text = nullptr;
      if (a.d.GetErrorName(Beyond<CUresult>(i), &text) == CUDA_SUCCESS) {
        ++names;
        for (const char* c = text; *c != '\0'; ++c) sum = sum * 31 + static_cast<unsigned char>(*c);
      }
      text = nullptr;
      if (a.d.GetErrorString(Beyond<CUresult>(i), &text) == CUDA_SUCCESS) ++strings;
    }
    a.Value(names);
    a.Value(strings);
    a.Value(static_cast<long long>(sum % 1000000007));
  });
  ask.Plain(
      "legacy.error_strings_0",
      "0 no error 1 invalid argument 2 out of memory 3 initialization error 4 driver shutting down 5 profiler disabled while using "
      "external profiling tool 6 profiler not initialized: call cudaProfilerInitialize() 7 profiler already started 8 profiler already "
      "stopped 34 "
      "CUDA driver is a stub library 36 API call is not supported in the installed CUDA driver 46 CUDA-capable device(s) is/are busy or "
      "unavailable 100 no CUDA-capable device is detected 101 invalid device ordinal 102 device doesn't have valid Grid license",
      [](Asker& a) { AskErrorStrings(a, 0, 200); });
  ask.Plain(
      "legacy.error_strings_200",
      "200 device kernel image is invalid 201 invalid device context 202 context already current 205 mapping of buffer object failed 206 "
      "unmapping of buffer object failed 207 array is mapped 208 resource already mapped 209 no kernel image is available for execution on "
      "the device 210 resource already acquired 211 resource not mapped 212 resource not mapped as array 213 resource not mapped as "
      "pointer "
      "214 uncorrectable ECC error encountered 215 limit is not supported on this architecture 216 exclusive-thread device already in use "
      "by a different thread 217 peer access is not supported between these two devices 218 a PTX JIT compilation failed 219 invalid "
      "OpenGL "
      "or DirectX context 220 uncorrectable NVLink error detected during the execution 221 PTX JIT compiler library not found 222 the "
      "provided PTX was compiled with an unsupported toolchain. 223 PTX JIT compilation was disabled 224 the provided execution affinity "
      "is "
      "not supported 225 the provided PTX contains unsupported call to cudaDeviceSynchronize 226 Invalid access of peer GPU memory over "
      "nvlink or a hardware error",
      [](Asker& a) { AskErrorStrings(a, 200, 300); });
  ask.Plain(
      "legacy.error_strings_300",
      "300 device kernel image is invalid 301 file not found 302 shared object symbol not found 303 shared object initialization failed "
      "304 OS call failed or operation not supported on this OS 400 invalid resource handle 401 the operation cannot be performed in the "
      "present state 402 attempted introspection would be semantically lossy 500 named symbol not found 600 device not ready",
      [](Asker& a) { AskErrorStrings(a, 300, 700); });
  ask.Plain(
      "legacy.error_strings_700",
      "700 an illegal memory access was encountered 701 too many resources requested for launch 702 the launch timed out and was "
      "terminated 703 launch uses incompatible texturing mode 704 peer access is already enabled 705 peer access has not been enabled 708 "
      "cannot set "
      "while device is active in this process 709 context is destroyed 710 device-side assert triggered 711 peer mapping resources "
      "exhausted 712 part or all of the requested memory range is already mapped 713 pointer does not correspond to a registered memory "
      "region 714 hardware stack error 715 an illegal instruction was encountered 716 misaligned address 717 operation not supported on "
      "global/shared address space 718 invalid program counter 719 unspecified launch failure 720 too many blocks in cooperative launch "
      "721 "
      "tensor memory not completely freed",
      [](Asker& a) { AskErrorStrings(a, 700, 800); });
  ask.Plain(
      "legacy.error_strings_800",
      "800 operation not permitted 801 operation not supported 802 system not yet initialized 803 system has unsupported display driver / "
      "cuda driver combination 804 forward compatibility was attempted on non supported HW 805 MPS client failed to connect to the MPS "
      "control daemon or the MPS server 806 the remote procedural call between the MPS server and the MPS client failed 807 MPS server is "
      "not ready to accept new MPS client requests 808 the hardware resources required to create MPS client have been exhausted 809 the "
      "hardware resources required to support device connections have been exhausted 810 the MPS client has been terminated by the server "
      "811 is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it 812 unsupported interaction "
      "between different versions of CUDA Dynamic Parallelism 900 operation not permitted when stream is capturing 901 operation failed "
      "due "
      "to a previous error during capture 902 operation would result in a merge of separate capture sequences 903 capture was not ended in "
      "the same stream as it began 904 capturing stream has unjoined work 905 dependency created on uncaptured work in another stream 906 "
      "operation would make the legacy stream depend on a capturing blocking stream 907 operation not permitted on an event last recorded "
      "in a capturing stream 908 attempt to terminate a thread-local capture sequence from another thread 909 wait operation timed out 910 "
      "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update 911 "
      "an async error has occured in external entity outside of CUDA 912 a kernel launch error has occurred due to cluster "
      "misconfiguration "
      "913 the function handle is not loaded when calling an API that requires a loaded function 914 one or more resources passed in are "
      "not valid resource types for the operation 915 one or more resources are insufficient or non-applicable for the operation 916 an "
      "error happened during the key rotation sequence 999 unknown error",
      [](Asker& a) { AskErrorStrings(a, 800, 1000); });
  ask.Risky("legacy.error_unknown", "INVALID_VALUE null", [](Asker& a) {
    const char* text = "untouched";
    a(a.d.GetErrorString(Beyond<CUresult>(12345), &text), text);
  });
  ask.Fresh("legacy.version", "13000", [](Asker& a) {
    int version = 0;
    a.Values(a.d.DriverGetVersion(&version), version);
  });
  ask.Risky("legacy.texref_life", "SUCCESS SUCCESS INVALID_VALUE INVALID_HANDLE", [](Ready& a) {
    CUtexref t = nullptr;
    a(a.d.TexRefCreate(&t));
    a(a.d.TexRefDestroy(t));
    a(a.d.TexRefCreate(nullptr));
    a(a.d.TexRefDestroy(nullptr));
  });
  ask.Risky("legacy.texref_defaults",
            "SUCCESS 1 INVALID_VALUE SUCCESS 0 SUCCESS 0 SUCCESS 0 SUCCESS 32 1 INVALID_VALUE x3 SUCCESS 0 SUCCESS 0", [](Ready& a) {
              CUtexref t = nullptr;
              a.Prepare(a.d.TexRefCreate(&t));
              CUaddress_mode mode = CU_TR_ADDRESS_MODE_MIRROR;
              a(a.d.TexRefGetAddressMode(&mode, t, 0), mode);
              a(a.d.TexRefGetAddressMode(&mode, t, 3));
              CUfilter_mode filter = CU_TR_FILTER_MODE_LINEAR;
              a(a.d.TexRefGetFilterMode(&filter, t), filter);
              unsigned flags = 77;
              a(a.d.TexRefGetFlags(&flags, t), flags);
              int anisotropy = 77;
              a(a.d.TexRefGetMaxAnisotropy(&anisotropy, t), anisotropy);
              CUarray_format format = CU_AD_FORMAT_FLOAT;
              int channels = 77;
              a(a.d.TexRefGetFormat(&format, &channels, t), format, channels);
              CUdeviceptr p = 77;
              a(a.d.TexRefGetAddress(&p, t));
              a(a.d.TexRefGetArray(kIgnored, t));
              a(a.d.TexRefGetMipmappedArray(kIgnored, t));
              float bias = 1;
              a(a.d.TexRefGetMipmapLevelBias(&bias, t));
              a.Value(static_cast<long long>(bias * 100));
              float border[4] = {1, 1, 1, 1};
              a(a.d.TexRefGetBorderColor(border, t), border[0]);
            });
  ask.Risky("legacy.texref_settings",
            "SUCCESS INVALID_VALUE SUCCESS SUCCESS 0 SUCCESS 1 SUCCESS 256 INVALID_VALUE SUCCESS INVALID_VALUE SUCCESS SUCCESS "
            "INVALID_VALUE SUCCESS x4",
            [](Ready& a) {
              CUtexref t = nullptr;
              CUdeviceptr q = 0;
              std::size_t offset = 77;
              a.Prepare(a.d.TexRefCreate(&t));
              const CUdeviceptr p = a.MemAlloc(4096);
              a(a.d.TexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
              a(a.d.TexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 3));
              a(a.d.TexRefSetFormat(t, Beyond<CUarray_format>(99), 1));
              a(a.d.TexRefSetAddress(&offset, t, p, 1024), offset);
              a(a.d.TexRefGetAddress(&q, t));
              a.Value(q == p);
              a(a.d.TexRefSetAddress(&offset, t, p + 256, 1024), offset);
              a(a.d.TexRefSetAddress(nullptr, t, p + 256, 1024));
              a(a.d.TexRefSetAddressMode(t, 0, CU_TR_ADDRESS_MODE_WRAP));
              a(a.d.TexRefSetAddressMode(t, 3, CU_TR_ADDRESS_MODE_WRAP));
              a(a.d.TexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
              a(a.d.TexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES));
              a(a.d.TexRefSetFlags(t, 0x80));
              a(a.d.TexRefSetMaxAnisotropy(t, 4));
              a(a.d.TexRefSetMipmapFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
              a(a.d.MemFree(p));
              a(a.d.TexRefGetAddress(&q, t));
            });
  ask.Risky("legacy.texref_array", "SUCCESS SUCCESS 1 SUCCESS INVALID_HANDLE SUCCESS SUCCESS", [](Ready& a) {
    CUtexref t = nullptr;
    CUarray back = nullptr;
    CUDA_ARRAY_DESCRIPTOR desc = {};
    desc.Width = desc.Height = 16;
    desc.Format = CU_AD_FORMAT_FLOAT;
    desc.NumChannels = 1;
    a.Prepare(a.d.TexRefCreate(&t));
    const CUarray array = a.ArrayCreate(desc);
    a(a.d.TexRefSetArray(t, array, CU_TRSA_OVERRIDE_FORMAT));
    a(a.d.TexRefGetArray(&back, t));
    a.Value(back == array);
    a(a.d.TexRefSetArray(t, array, 0));
    a(a.d.TexRefSetArray(t, nullptr, CU_TRSA_OVERRIDE_FORMAT));
    a(a.d.ArrayDestroy(array));
    a(a.d.TexRefDestroy(t));
  });
  ask.Risky("legacy.texref_of_module", "SUCCESS SUCCESS NOT_FOUND NOT_FOUND SUCCESS NOT_FOUND INVALID_VALUE SUCCESS SUCCESS", [](Ready& a) {
    CUmodule m = nullptr;
    CUtexref t = nullptr;
    CUsurfref s = nullptr;
    if (a(a.d.ModuleLoadData(&m, kUnifiedPtx)) != CUDA_SUCCESS) return;
    a(a.d.ModuleGetTexRef(&t, m, "picture"));
    a(a.d.ModuleGetTexRef(&t, m, "canvas"));
    a(a.d.ModuleGetTexRef(&t, m, "nothing"));
    a(a.d.ModuleGetSurfRef(&s, m, "canvas"));
    a(a.d.ModuleGetSurfRef(&s, m, "nothing"));
    a(a.d.SurfRefGetArray(kIgnored, s));
    a(a.d.TexRefDestroy(t));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("legacy.texref_of_plain_module", "SUCCESS NOT_FOUND NOT_FOUND INVALID_VALUE", [](Ready& a) {
    CUmodule m = nullptr;
    CUtexref t = nullptr;
    a(a.d.ModuleLoadData(&m, kTexturePtx));
    a(a.d.ModuleGetTexRef(&t, m, "plain"));
    a(a.d.ModuleGetSurfRef(kIgnored, m, "plain"));
    a(a.d.ModuleGetTexRef(&t, m, nullptr));
  });
  ask.Risky("legacy.mem_alloc_v1", "INVALID_CONTEXT", [](Ready& a) {
    CUdeviceptr_v1 p = 0;
    if (a(Exactly<CallId::MemAlloc>(a, &p, 4096U)) == CUDA_SUCCESS) a(Exactly<CallId::MemFree>(a, p));
  });
  ask.Risky("legacy.mem_calls_v1", "INVALID_CONTEXT x5", [](Ready& a) {
    CUdeviceptr_v1 p = 0;
    unsigned pitch = 0, x = 0, y = 0;
    void* host = nullptr;
    a(Exactly<CallId::MemGetInfo>(a, &x, &y));
    a(Exactly<CallId::MemAllocPitch>(a, &p, &pitch, 64U, 4U, 4U));
    a(Exactly<CallId::MemGetAddressRange>(a, &p, &x, 4096U));
    if (a(Exactly<CallId::MemAllocHost>(a, &host, 4096U)) == CUDA_SUCCESS) a(a.d.MemFreeHost(host));
    a(Exactly<CallId::MemFree>(a, 4096U));
  });
  ask.Risky("legacy.copies_v1", "INVALID_CONTEXT x3", [](Ready& a) {
    int word = 0;
    a(Exactly<CallId::MemcpyHtoD>(a, 4096U, static_cast<const void*>(&word), 4U));
    a(Exactly<CallId::MemcpyDtoH>(a, static_cast<void*>(&word), 4096U, 4U));
    a(Exactly<CallId::MemsetD8>(a, 4096U, static_cast<unsigned char>(0), 4U));
  });
  ask.Risky("legacy.device_total_old", "SUCCESS 1", [](Ready& a) {
    unsigned bytes = 0;
    if (a(Exactly<CallId::DeviceTotalMem>(a, &bytes, 0)) == CUDA_SUCCESS) a.Value(bytes > 0);
  });
  ask.Risky("legacy.context_v1", "SUCCESS SUCCESS 3010 SUCCESS 1 SUCCESS SUCCESS", [](Initialised& a) {
    CUcontext c = nullptr, popped = nullptr;
    unsigned version = 0;
    a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
    if (c == nullptr) return;
    a(a.d.CtxGetApiVersion(c, &version), version);
    a(Exactly<CallId::CtxPopCurrent>(a, &popped));
    a.Value(popped == c);
    a(Exactly<CallId::CtxPushCurrent>(a, c));
    a(Exactly<CallId::CtxDestroy>(a, c));
  });
  ask.Risky("legacy.context_push_twice_v1", "INVALID_CONTEXT SUCCESS INVALID_CONTEXT", [](Initialised& a) {
    CUcontext c = nullptr, popped = nullptr;
    a.Prepare(Exactly<CallId::CtxCreate_v2>(a, &c, 0U, 0));
    a(Exactly<CallId::CtxPushCurrent>(a, c));
    a(Exactly<CallId::CtxPopCurrent>(a, &popped));
    a(Exactly<CallId::CtxPopCurrent>(a, &popped));
  });
  ask.Risky("legacy.stream_values_v1", "NOT_SUPPORTED x5", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    const CUstream s = nullptr;
    a(Exactly<CallId::StreamWriteValue32>(a, s, p, 1U, 0U));
    a(Exactly<CallId::StreamWaitValue32>(a, s, p, 1U, 0U));
    a(Exactly<CallId::StreamWriteValue64>(a, s, p, cuuint64_t{1}, 0U));
    a(Exactly<CallId::StreamWaitValue64>(a, s, p, cuuint64_t{1}, 0U));
    a(Exactly<CallId::StreamBatchMemOp>(a, s, 0U, static_cast<CUstreamBatchMemOpParams*>(nullptr), 0U));
  });
  ask.Fresh("context_detail.primary_flags", "SUCCESS 8", [](Ready& a) { Flags(a); });
  ask.Risky("context_detail.flags_of_destroyed", "SUCCESS SUCCESS 0", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.Prepare(a.d.CtxPushCurrent(c));
    CUcontext other = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxPopCurrent(&other));
    Flags(a);
  });
  ask.Risky("context_detail.attach_primary", "SUCCESS x3 1 SUCCESS", [](Ready& a) {
    CUcontext c = nullptr;
    int active = -1;
    a(a.d.CtxAttach(&c, 0));
    a(a.d.CtxDetach(c));
    a(a.d.DevicePrimaryCtxGetState(0, kIgnored, &active), active);
    a(a.d.CtxDetach(c));
  });
  ask.Risky("context_detail.detach_elsewhere", "INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.CtxCreate();
    a(a.d.CtxDetach(c));
  });
  ask.Risky("context_detail.old_memory_in_old_context", "SUCCESS SUCCESS", [](Initialised& a) {
    CUcontext c = nullptr;
    CUdeviceptr_v1 p = 0;
    a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
    a(Exactly<CallId::MemAlloc>(a, &p, 4096U));
  });
  ask.Risky("context_detail.new_memory_in_old_context", "SUCCESS INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    CUcontext c = nullptr;
    CUdeviceptr p = 0;
    a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p));
  });
  ask.Risky("context_detail.loaded_by_launch", "SUCCESS 0 SUCCESS SUCCESS 1", [](Ready& a) {
    CUfunction functions[2] = {};
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
    const char* name = nullptr;
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.ModuleEnumerateFunctions(functions, 2, m));
    a.Prepare(a.d.FuncGetName(&name, functions[0]));
    const CUfunction plain = name[0] == 'p' ? functions[0] : functions[1];
    a(a.d.FuncIsLoaded(&state, plain), state);
    a(a.d.LaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.FuncIsLoaded(&state, plain), state);
  });
  ask.Risky("context_detail.green_synchronize", "SUCCESS 1", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    CUcontext view = nullptr;
    int n = 0;
    a.Prepare(a.d.CtxFromGreenCtx(&view, green));
    a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.CtxSynchronize(view));
    a.Value(n);
  });
  ask.Risky("context_detail.green_events", "SUCCESS x3", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green), plain = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.EventRecord(e, s));
    a(a.d.StreamWaitEvent(plain, e, 0));
    a(a.d.StreamSynchronize(plain));
  });
  ask.Risky("context_detail.green_kernel", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = StreamOf(a, Green(a));
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    a(a.d.StreamSynchronize(s));
  });
  ask.Risky("context_detail.green_after_reset", "NOT_PERMITTED SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    a(a.d.DevicePrimaryCtxReset(0));
    a(a.d.GreenCtxDestroy(green));
  });
  ask.Risky("context_detail.texture_of_destroyed_array", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    CUtexref t = nullptr;
    CUDA_ARRAY_DESCRIPTOR desc = {};
    desc.Width = desc.Height = 16;
    desc.Format = CU_AD_FORMAT_FLOAT;
    desc.NumChannels = 1;
    a.Prepare(a.d.TexRefCreate(&t));
    const CUarray array = a.ArrayCreate(desc);
    a(a.d.TexRefSetArray(t, array, CU_TRSA_OVERRIDE_FORMAT));
    a(a.d.ArrayDestroy(array));
    a(a.d.TexRefGetArray(kIgnored, t));
  });
  ask.Risky("context_detail.notification", "SUCCESS SUCCESS", [](Ready& a) {
    CUasyncCallbackHandle handle = nullptr;
    a(a.d.DeviceRegisterAsyncNotification(
        0, [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}, nullptr, &handle));
    a(a.d.DeviceUnregisterAsyncNotification(0, handle));
  });
}

}  // namespace cuaudit::contract::legacy_questions
