// SPDX-License-Identifier: MIT
// Copies and fills of two and three dimensions.
#include <cstring>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::shaped_copy_questions {
namespace {

cudaArray_t NewArray(Asker& a, std::size_t width = 16, std::size_t height = 8) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr;
  a.Prepare(cudaMallocArray(&array, &format, width, height, 0));
  return array;
}

cudaPitchedPtr Pitched(void* pointer, std::size_t pitch, std::size_t height) { return {pointer, pitch, pitch, height}; }

constexpr Question kQuestions[] = {
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
}  // namespace cuaudit::cudart::shaped_copy_questions

namespace cuaudit::cudart {
std::span<const Question> ShapedCopyQuestions() { return shaped_copy_questions::kQuestions; }
}  // namespace cuaudit::cudart
