// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::module_questions {
namespace {

constexpr Question kQuestions[] = {
    {"module.load_unload", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a(a.d.ModuleLoadData(&m, kPtx));
       a(a.d.ModuleUnload(m));
     }},
    {"module.unload_twice", "SUCCESS INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a(a.d.ModuleUnload(m));
       a(a.d.ModuleUnload(m));
     }},
    {"module.null_image", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a(a.d.ModuleLoadData(&m, nullptr));
     }},
    {"module.garbage_image", "INVALID_IMAGE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       static const char image[64] = "this is no image";
       a(a.d.ModuleLoadData(&m, image));
     }},
    {"module.broken_ptx", "INVALID_PTX", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a(a.d.ModuleLoadData(&m, ".version 8.0\n.target sm_90\n.visible .entry k(\n"));
     }},
    {"module.missing_file", "FILE_NOT_FOUND", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a(a.d.ModuleLoad(&m, "/nonexistent/module.cubin"));
     }},
    {"module.function", "SUCCESS NOT_FOUND", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a(a.d.ModuleGetFunction(&f, m, "plain"));
       a(a.d.ModuleGetFunction(&f, m, "absent"));
       (void)a.d.ModuleUnload(m);
     }},
    {"module.global", "SUCCESS 64 NOT_FOUND", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUdeviceptr p = 0;
       std::size_t size = 0;
       a(a.d.ModuleGetGlobal(&p, &size, m, "table"));
       a.Value(static_cast<long long>(size));
       a(a.d.ModuleGetGlobal(&p, &size, m, "absent"));
       (void)a.d.ModuleUnload(m);
     }},
    {"module.function_count", "SUCCESS 2", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       unsigned count = 0;
       a(a.d.ModuleGetFunctionCount(&count, m));
       a.Value(count);
       (void)a.d.ModuleUnload(m);
     }},
    {"function.name", "SUCCESS plain", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       const char* name = nullptr;
       a(a.d.FuncGetName(&name, f));
       a.Text(name);
       (void)a.d.ModuleUnload(m);
     }},
    {"function.parameters", "SUCCESS 8 4 INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       std::size_t offset = 0;
       std::size_t size = 0;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "fill"));
       a(a.d.FuncGetParamInfo(f, 1, &offset, &size));
       a.Value(static_cast<long long>(offset));
       a.Value(static_cast<long long>(size));
       a(a.d.FuncGetParamInfo(f, 2, &offset, &size));
       (void)a.d.ModuleUnload(m);
     }},
    {"function.attribute", "SUCCESS 1024 INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       int value = 0;
       a(a.d.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
       a.Value(value);
       a(a.d.FuncGetAttribute(&value, Beyond<CUfunction_attribute>(99), f));
       (void)a.d.ModuleUnload(m);
     }},
    {"launch.good", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
       a(a.d.CtxSynchronize(nullptr));
       (void)a.d.ModuleUnload(m);
     }},
    {"launch.bad_dimensions", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       a(a.d.LaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
       a(a.d.LaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, nullptr, nullptr, nullptr));
       a(a.d.LaunchKernel(f, 1, 70000, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
       (void)a.d.ModuleUnload(m);
     }},
    {"launch.too_much_shared", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 300000, nullptr, nullptr, nullptr));
       (void)a.d.ModuleUnload(m);
     }},
    {"launch.null_function", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.LaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
     }},
    {"launch.missing_parameters", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleGetFunction(&f, m, "fill"));
       a(a.d.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
       (void)a.d.ModuleUnload(m);
     }},
    {"library.kernel", "SUCCESS SUCCESS NOT_FOUND SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary l = nullptr;
       CUkernel k = nullptr;
       a(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(a.d.LibraryGetKernel(&k, l, "plain"));
       a(a.d.LibraryGetKernel(&k, l, "absent"));
       a(a.d.LibraryUnload(l));
     }},
    {"library.launch", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary l = nullptr;
       CUkernel k = nullptr;
       a.Prepare(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
       a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(k), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
       a(a.d.CtxSynchronize(nullptr));
       (void)a.d.LibraryUnload(l);
     }},
    {"library.unload_twice", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlibrary l = nullptr;
       a.Prepare(a.d.LibraryLoadData(&l, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
       a(a.d.LibraryUnload(l));
       a(a.d.LibraryUnload(l));
     }},
    {"link.ptx", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
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
     }},
};

}  // namespace
}  // namespace cuaudit::contract::module_questions

namespace cuaudit::contract {
std::span<const Question> ModuleQuestions() { return module_questions::kQuestions; }
}  // namespace cuaudit::contract
