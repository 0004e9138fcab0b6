// SPDX-License-Identifier: MIT
#include <cstring>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::copy_questions {
namespace {

struct Places {
  explicit Places(Asker& a) : device(NewBlock(a)), other(NewBlock(a)) {
    void* pinned = nullptr;
    a.Prepare(cudaMallocHost(&pinned, 4096));
    host = static_cast<char*>(pinned);
  }
  char* device;
  char* other;
  char* host = nullptr;
  char heap[64] = "abcdefgh";
};

constexpr Question kQuestions[] = {
    {"copy.round_trip",
     [](Asker& a) {
       Places p(a);
       char back[8] = {};
       a(cudaMemcpy(p.device, p.heap, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy(p.other, p.device, 8, cudaMemcpyDeviceToDevice));
       a(cudaMemcpy(back, p.other, 8, cudaMemcpyDeviceToHost));
       a.Value(std::memcmp(back, p.heap, 8));
     }},
    {"copy.default_kind",
     [](Asker& a) {
       Places p(a);
       char back[8] = {};
       a(cudaMemcpy(p.device, p.heap, 8, cudaMemcpyDefault));
       a(cudaMemcpy(p.other, p.device, 8, cudaMemcpyDefault));
       a(cudaMemcpy(back, p.other, 8, cudaMemcpyDefault));
       a(cudaMemcpy(p.host, back, 8, cudaMemcpyDefault));
       a.Value(std::memcmp(p.host, p.heap, 8));
     }},
    {"copy.host_to_host",
     [](Asker& a) {
       char from[8] = "1234567";
       char to[8] = {};
       a(cudaMemcpy(to, from, 8, cudaMemcpyHostToHost));
       a.Text(to);
     }},
    {"copy.kind_says_to_device_but_host",
     [](Asker& a) {
       Places p(a);
       char to[8] = {};
       a(cudaMemcpy(to, p.heap, 8, cudaMemcpyHostToDevice));
       a(cudaGetLastError());
     }},
    {"copy.kind_says_to_host_but_device",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.device, p.heap, 8, cudaMemcpyDeviceToHost));
       a(cudaGetLastError());
     }},
    {"copy.kind_reversed",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.heap, p.device, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy(p.device, p.heap, 8, cudaMemcpyDeviceToHost));
     }},
    {"copy.kind_device_to_device_with_pinned",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.host, p.device, 8, cudaMemcpyDeviceToDevice));
       a(cudaMemcpy(p.device, p.host, 8, cudaMemcpyDeviceToDevice));
     }},
    {"copy.kind_host_to_host_with_device",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.heap, p.device, 8, cudaMemcpyHostToHost));
     }},
    {"copy.kind_bad",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.device, p.heap, 8, Beyond<cudaMemcpyKind>(77)));
       a(cudaMemcpy(p.device, p.heap, 0, Beyond<cudaMemcpyKind>(77)));
       a(cudaMemcpyAsync(p.device, p.heap, 8, Beyond<cudaMemcpyKind>(5), nullptr));
     }},
    {"copy.nulls",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(nullptr, p.heap, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy(p.device, nullptr, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy(nullptr, p.device, 8, cudaMemcpyDefault));
       a(cudaMemcpy(nullptr, nullptr, 8, cudaMemcpyDefault));
     }},
    {"copy.zero",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpy(p.device, p.heap, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
     }},
    {"copy.beyond_the_block",
     [](Asker& a) {
       char* const block = NewBlock(a, 8 << 20);
       static char big[16 << 20];
       a(cudaMemcpy(block, big, sizeof(big), cudaMemcpyHostToDevice));
     }},
    {"copy.from_freed",
     [](Asker& a) {
       char* const block = NewBlock(a, 4 << 20);
       char to[8] = {};
       a.Prepare(cudaFree(block));
       a(cudaMemcpy(to, block, 8, cudaMemcpyDeviceToHost));
       a(cudaGetLastError());
       a(cudaDeviceSynchronize());
     }},
    {"copy.async",
     [](Asker& a) {
       Places p(a);
       const cudaStream_t stream = NewStream(a);
       std::memcpy(p.host, "xyz", 4);
       a(cudaMemcpyAsync(p.device, p.host, 4, cudaMemcpyHostToDevice, stream));
       a(cudaMemcpyAsync(p.host + 64, p.device, 4, cudaMemcpyDeviceToHost, stream));
       a(cudaStreamSynchronize(stream));
       a.Text(p.host + 64);
     }},
    {"copy.async_bad_stream",
     [](Asker& a) {
       Places p(a);
       const cudaStream_t stream = NewStream(a);
       a.Prepare(cudaStreamDestroy(stream));
       a(cudaMemcpyAsync(p.device, p.host, 4, cudaMemcpyHostToDevice, stream));
     }},
    {"copy.peer_to_itself",
     [](Asker& a) {
       Places p(a);
       a(cudaMemcpyPeer(p.device, 0, p.other, 0, 16));
       a(cudaMemcpyPeerAsync(p.device, 0, p.other, 0, 16, nullptr));
       a(cudaMemcpyPeer(p.device, 0, p.other, 4711, 16));
       a(cudaMemcpyPeer(nullptr, 0, p.other, 0, 16));
       a(cudaMemcpyPeer(p.device, 0, p.other, 0, 0));
     }},
    {"copy.memset",
     [](Asker& a) {
       Places p(a);
       char back[4] = {};
       a(cudaMemset(p.device, 0x141, 4));
       a(cudaMemcpy(back, p.device, 4, cudaMemcpyDefault));
       a.Value(back[3]);
       a(cudaMemset(nullptr, 0, 4));
       a(cudaMemset(nullptr, 0, 0));
       a(cudaMemset(p.device, 0, 0));
       a(cudaMemset(p.host, 7, 4));
       a.Value(p.host[0]);
     }},
    {"copy.memset_host_pointer",
     [](Asker& a) {
       char here[16] = {};
       a(cudaMemset(here, 1, 16));
       a(cudaGetLastError());
     }},
    {"copy.memset_async_bad_stream",
     [](Asker& a) {
       Places p(a);
       const cudaStream_t stream = NewStream(a);
       a.Prepare(cudaStreamDestroy(stream));
       a(cudaMemsetAsync(p.device, 1, 16, stream));
     }},
    {"copy.batch",
     [](Asker& a) {
       Places p(a);
       const cudaStream_t stream = NewStream(a);
       std::memcpy(p.host, "batch", 6);
       void* to[] = {p.device, p.other};
       const void* from[] = {p.host, p.host};
       const std::size_t sizes[] = {6, 6};
       cudaMemcpyAttributes attributes{};
       attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
       std::size_t index = 0;
       a(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
       a(cudaStreamSynchronize(stream));
       char back[8] = {};
       a(cudaMemcpy(back, p.other, 6, cudaMemcpyDefault));
       a.Text(back);
       a(cudaMemcpyBatchAsync(to, from, sizes, 0, &attributes, &index, 1, stream));
       a(cudaMemcpyBatchAsync(nullptr, from, sizes, 2, &attributes, &index, 1, stream));
       a(cudaMemcpyBatchAsync(to, from, sizes, 2, nullptr, nullptr, 0, stream));
       a(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::copy_questions

namespace cuaudit::cudart {
std::span<const Question> CopyQuestions() { return copy_questions::kQuestions; }
}  // namespace cuaudit::cudart
