// SPDX-License-Identifier: MIT
// A fuzz target without a fuzzer, for compilers that bring none: a hundred inputs that are the same each time.
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main() {
  constexpr int kInputs = 100;
  std::mt19937 draw(1);
  for (int i = 0; i < kInputs; ++i) {
    std::vector<std::uint8_t> input(draw() % 24);
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(draw());
    (void)LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%d inputs\n", kInputs);
  return 0;
}
