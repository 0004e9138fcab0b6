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

cudaArray_t NewArray(Asker& a, std::size_t width = 16, std::size_t height = 8) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr;
  a.Prepare(cudaMallocArray(&array, &format, width, height, 0));
  return array;
}

cudaPitchedPtr Pitched(void* pointer, std::size_t pitch, std::size_t height) { return {pointer, pitch, pitch, height}; }

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

    // Copies and fills of two and three dimensions.
    {"copy2d.round_trip",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[16] = "abcdefghijklmno";
       char to[16] = {};
       a(cudaMemcpy2D(block, 64, from, 8, 4, 2, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(to, 8, block, 64, 4, 2, cudaMemcpyDeviceToHost));
       a.Value(std::memcmp(to, from, 4) == 0 && std::memcmp(to + 8, from + 8, 4) == 0 && to[4] == 0);
     }},
    {"copy2d.bad_pitch",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[64] = {};
       a(cudaMemcpy2D(block, 4, from, 16, 8, 2, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(block, 16, from, 4, 8, 2, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(block, std::size_t{1} << 40, from, 16, 8, 2, cudaMemcpyHostToDevice));
     }},
    {"copy2d.zero",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[64] = {};
       a(cudaMemcpy2D(block, 16, from, 16, 0, 2, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(block, 16, from, 16, 8, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(nullptr, 16, nullptr, 16, 8, 0, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(block, 4, from, 16, 8, 0, cudaMemcpyHostToDevice));
     }},
    {"copy2d.kinds",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[64] = {};
       a(cudaMemcpy2D(block, 16, from, 16, 8, 2, cudaMemcpyDefault));
       a(cudaMemcpy2D(block, 16, from, 16, 8, 2, Beyond<cudaMemcpyKind>(9)));
       a(cudaMemcpy2D(nullptr, 16, from, 16, 8, 2, cudaMemcpyHostToDevice));
       a(cudaMemcpy2D(block, 16, from, 16, 8, 2, cudaMemcpyDeviceToHost));
     }},
    {"copy2d.array",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       char from[128];
       char to[128] = {};
       for (int i = 0; i < 128; ++i) from[i] = static_cast<char>(i);
       a(cudaMemcpy2DToArray(array, 0, 0, from, 16, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DFromArray(to, 16, array, 0, 0, 16, 8, cudaMemcpyDeviceToHost));
       a.Value(std::memcmp(from, to, 128));
       a(cudaMemcpy2DFromArray(to, 4, array, 12, 6, 4, 2, cudaMemcpyDeviceToHost));
       a.Value(to[0]);
     }},
    {"copy2d.array_bad",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       char from[256] = {};
       a(cudaMemcpy2DToArray(array, 8, 0, from, 16, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DToArray(array, 0, 4, from, 16, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DToArray(array, 0, 0, from, 8, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DToArray(nullptr, 0, 0, from, 16, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DToArray(array, 0, 0, from, 16, 16, 8, cudaMemcpyDeviceToHost));
       a(cudaMemcpy2DToArray(array, 0, 0, from, 16, 0, 8, cudaMemcpyHostToDevice));
     }},
    {"copy2d.array_to_array",
     [](Asker& a) {
       const cudaArray_t one = NewArray(a);
       const cudaArray_t two = NewArray(a);
       char from[128];
       char to[8] = {};
       for (int i = 0; i < 128; ++i) from[i] = static_cast<char>(i);
       a.Prepare(cudaMemcpy2DToArray(one, 0, 0, from, 16, 16, 8, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DArrayToArray(two, 0, 0, one, 8, 4, 8, 4, cudaMemcpyDeviceToDevice));
       a(cudaMemcpy2DFromArray(to, 8, two, 0, 0, 8, 1, cudaMemcpyDeviceToHost));
       a.Value(to[0]);
       a(cudaMemcpy2DArrayToArray(two, 0, 0, one, 8, 4, 8, 4, cudaMemcpyHostToDevice));
       a(cudaMemcpy2DArrayToArray(two, 0, 0, one, 8, 4, 8, 4, cudaMemcpyDefault));
     }},
    {"copy1d.array",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       char from[40] = "0123456789abcdefghijklmnopqrstuvwxyz";
       char to[40] = {};
       a(cudaMemcpyToArray(array, 4, 1, from, 24, cudaMemcpyHostToDevice));
       a(cudaMemcpyFromArray(to, array, 4, 1, 24, cudaMemcpyDeviceToHost));
       a.Text(to);
       a(cudaMemcpyToArray(array, 0, 0, from, 4096, cudaMemcpyHostToDevice));
       a(cudaMemcpyToArrayAsync(array, 0, 0, from, 16, cudaMemcpyHostToDevice, nullptr));
       a(cudaMemcpyArrayToArray(array, 0, 4, array, 0, 0, 16, cudaMemcpyDeviceToDevice));
     }},
    {"copy3d.round_trip",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[64];
       char to[64] = {};
       for (int i = 0; i < 64; ++i) from[i] = static_cast<char>(i);
       cudaMemcpy3DParms parameters{};
       parameters.srcPtr = Pitched(from, 8, 4);
       parameters.dstPtr = Pitched(block, 32, 4);
       parameters.extent = {8, 4, 2};
       parameters.kind = cudaMemcpyHostToDevice;
       a(cudaMemcpy3D(&parameters));
       parameters.srcPtr = Pitched(block, 32, 4);
       parameters.dstPtr = Pitched(to, 8, 4);
       parameters.kind = cudaMemcpyDeviceToHost;
       a(cudaMemcpy3DAsync(&parameters, nullptr));
       a(cudaDeviceSynchronize());
       a.Value(std::memcmp(from, to, 64));
     }},
    {"copy3d.bad",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char from[64] = {};
       a(cudaMemcpy3D(nullptr));
       cudaMemcpy3DParms parameters{};
       a(cudaMemcpy3D(&parameters));
       parameters.srcPtr = Pitched(from, 8, 4);
       parameters.dstPtr = Pitched(block, 32, 4);
       parameters.kind = cudaMemcpyHostToDevice;
       a(cudaMemcpy3D(&parameters));
       parameters.extent = {16, 4, 1};
       a(cudaMemcpy3D(&parameters));
       parameters.extent = {8, 4, 1};
       parameters.kind = Beyond<cudaMemcpyKind>(9);
       a(cudaMemcpy3D(&parameters));
       parameters.kind = cudaMemcpyHostToDevice;
       parameters.dstArray = NewArray(a);
       a(cudaMemcpy3D(&parameters));
     }},
    {"copy3d.array_counts_elements",
     [](Asker& a) {
       const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
       cudaArray_t array = nullptr;
       a.Prepare(cudaMalloc3DArray(&array, &format, cudaExtent{4, 4, 4}, 0));
       char from[512];
       char to[512] = {};
       for (int i = 0; i < 512; ++i) from[i] = static_cast<char>(i);
       cudaMemcpy3DParms parameters{};
       parameters.srcPtr = {from, 32, 4, 4};
       parameters.dstArray = array;
       parameters.extent = {4, 4, 4};
       parameters.kind = cudaMemcpyHostToDevice;
       a(cudaMemcpy3D(&parameters));
       cudaMemcpy3DParms back{};
       back.srcArray = array;
       back.srcPos = {1, 0, 1};
       back.dstPtr = {to, 32, 4, 4};
       back.extent = {2, 4, 2};
       back.kind = cudaMemcpyDeviceToHost;
       a(cudaMemcpy3D(&back));
       a.Value(std::memcmp(to, from + 128 + 8, 16));
       back.extent = {32, 4, 4};
       a(cudaMemcpy3D(&back));
     }},
    {"copy3d.peer",
     [](Asker& a) {
       char* const block = NewBlock(a);
       cudaMemcpy3DPeerParms parameters{};
       parameters.srcPtr = Pitched(block, 16, 4);
       parameters.dstPtr = Pitched(block + 1024, 16, 4);
       parameters.extent = {16, 4, 1};
       a(cudaMemcpy3DPeer(&parameters));
       a(cudaMemcpy3DPeerAsync(&parameters, nullptr));
       a(cudaMemcpy3DPeer(nullptr));
       parameters.srcDevice = 4711;
       a(cudaMemcpy3DPeer(&parameters));
     }},
    {"memset2d",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char to[64] = {};
       a(cudaMemset(block, 0, 64));
       a(cudaMemset2D(block, 16, 7, 4, 3));
       a(cudaMemcpy(to, block, 64, cudaMemcpyDefault));
       a.Value(to[3]);
       a.Value(to[4]);
       a.Value(to[35]);
       a.Value(to[48]);
       a(cudaMemset2D(block, 2, 7, 4, 3));
       a(cudaMemset2D(block, 16, 7, 0, 3));
       a(cudaMemset2D(nullptr, 16, 7, 4, 3));
       a(cudaMemset2DAsync(block, 16, 7, 4, 3, nullptr));
     }},
    {"memset3d",
     [](Asker& a) {
       char* const block = NewBlock(a);
       char to[128] = {};
       a(cudaMemset(block, 0, 128));
       a(cudaMemset3D(Pitched(block, 16, 4), 7, cudaExtent{4, 2, 2}));
       a(cudaMemcpy(to, block, 128, cudaMemcpyDefault));
       a.Value(to[0]);
       a.Value(to[19]);
       a.Value(to[32]);
       a.Value(to[64]);
       a(cudaMemset3D(Pitched(block, 16, 4), 7, cudaExtent{0, 2, 2}));
       a(cudaMemset3D(Pitched(block, 2, 4), 7, cudaExtent{4, 2, 2}));
       a(cudaMemset3DAsync(Pitched(block, 16, 4), 7, cudaExtent{4, 2, 2}, nullptr));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::copy_questions

namespace cuaudit::cudart {
std::span<const Question> CopyQuestions() { return copy_questions::kQuestions; }
}  // namespace cuaudit::cudart
