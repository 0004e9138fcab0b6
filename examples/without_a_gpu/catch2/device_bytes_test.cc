// SPDX-License-Identifier: MIT
// Bytes on a device, by the CUDA runtime. Knows nothing of cuaudit.
#include <cuda_runtime_api.h>

#include <string>
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace {

// Sends the text to the device and fetches it again.
std::string ThereAndBack(const std::string& sent) {
  void* memory = nullptr;
  std::string got(sent.size(), '?');
  if (cudaMalloc(&memory, sent.size()) != cudaSuccess) return "no memory";
  const bool copied = cudaMemcpy(memory, sent.data(), sent.size(), cudaMemcpyHostToDevice) == cudaSuccess &&
                      cudaMemcpy(got.data(), memory, got.size(), cudaMemcpyDeviceToHost) == cudaSuccess;
  return cudaFree(memory) == cudaSuccess && copied ? got : "not copied";
}

TEST_CASE("bytes come back from the simulated device") {
  cudaDeviceProp device = {};
  REQUIRE(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
  REQUIRE(std::string(device.name).find("cuaudit simulated") == 0);
  REQUIRE(ThereAndBack("there and back") == "there and back");
}

}  // namespace
