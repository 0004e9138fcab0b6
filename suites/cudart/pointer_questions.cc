// SPDX-License-Identifier: MIT
// cudaPointerGetAttributes of each kind of pointer.
#include <cstdlib>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::pointer_questions {
namespace {

void Describe(Asker& a, const void* pointer) {
  cudaPointerAttributes attributes{};
  attributes.device = 77;
  attributes.devicePointer = Invented();
  attributes.hostPointer = Invented();
  a(cudaPointerGetAttributes(&attributes, pointer));
  a.Value(attributes.type);
  a.Value(attributes.device);
  for (const void* const seen : {attributes.devicePointer, attributes.hostPointer}) {
    a.Text(seen == pointer ? "same" : seen == nullptr ? "null" : seen == Invented() ? "untouched" : "other");
  }
}

constexpr Question kQuestions[] = {
    {"pointer.device", [](Asker& a) { Describe(a, NewBlock(a)); }},
    {"pointer.inside_device", [](Asker& a) { Describe(a, NewBlock(a) + 100); }},
    {"pointer.host",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaMallocHost(&host, 4096));
       Describe(a, host);
       Describe(a, static_cast<char*>(host) + 100);
     }},
    {"pointer.host_mapped",
     [](Asker& a) {
       void* host = nullptr;
       a.Prepare(cudaHostAlloc(&host, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
       Describe(a, host);
     }},
    {"pointer.registered",
     [](Asker& a) {
       void* const host = std::aligned_alloc(4096, 8192);
       a.Prepare(cudaHostRegister(host, 4096, cudaHostRegisterDefault));
       Describe(a, host);
       a(cudaHostUnregister(host));
       Describe(a, host);
     }},
    {"pointer.managed",
     [](Asker& a) {
       void* block = nullptr;
       a.Prepare(cudaMallocManaged(&block, 4096, cudaMemAttachGlobal));
       Describe(a, block);
     }},
    {"pointer.async",
     [](Asker& a) {
       void* block = nullptr;
       a.Prepare(cudaMallocAsync(&block, 4096, nullptr));
       Describe(a, block);
     }},
    {"pointer.ordinary_heap", [](Asker& a) { Describe(a, std::aligned_alloc(64, 4096)); }},
    {"pointer.null", [](Asker& a) { Describe(a, nullptr); }},
    {"pointer.unmapped", [](Asker& a) { Describe(a, std::bit_cast<void*>(std::uintptr_t{0x10})); }},
    {"pointer.freed",
     [](Asker& a) {
       void* const block = NewBlock(a);
       a.Prepare(cudaFree(block));
       Describe(a, block);
     }},
    {"pointer.symbolless_query",
     [](Asker& a) {
       a(cudaPointerGetAttributes(nullptr, NewBlock(a)));
       a(cudaGetLastError());
     }},
    {"pointer.before_any_context",
     [](Asker& a) {
       int local = 0;
       Describe(a, &local);
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::pointer_questions

namespace cuaudit::cudart {
std::span<const Question> PointerQuestions() { return pointer_questions::kQuestions; }
}  // namespace cuaudit::cudart
