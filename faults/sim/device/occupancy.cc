// SPDX-License-Identifier: MIT
#include "faults/sim/device/occupancy.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t Up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }
constexpr std::size_t Down(std::size_t value, std::size_t unit) { return value / unit * unit; }
constexpr std::size_t Least(std::size_t a, std::size_t b) { return a < b ? a : b; }

std::size_t Figure(const Profile& profile, CUdevice_attribute attribute) {
  return static_cast<std::size_t>(profile.Attribute(static_cast<int>(attribute)));
}

}  // namespace

int BlocksPerMultiprocessor(const Profile& profile, const KernelNeeds& kernel, unsigned threads, std::size_t dynamic_shared) noexcept {
  const std::size_t warp = Figure(profile, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  if (threads == 0 || threads > Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return 0;
  const std::size_t warps = Up(threads, warp) / warp;
  std::size_t blocks = Least(Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                             Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / warp / warps);
  if (kernel.registers != 0) {
    const std::size_t of_warp = Up(kernel.registers * warp, profile.register_unit);
    if (Up(warps, profile.warp_unit) * of_warp > Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)) return 0;
    const std::size_t resident = Down(Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / of_warp, profile.warp_unit);
    blocks = Least(blocks, resident / warps);
  }
  const std::size_t reserved = Figure(profile, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const std::size_t asked = kernel.shared + dynamic_shared;
  if (asked > Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) return 0;
  const std::size_t of_block = Up(asked + reserved, profile.shared_unit);
  if (of_block != 0) blocks = Least(blocks, Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / of_block);
  return static_cast<int>(blocks);
}

std::size_t SharedForBlocks(const Profile& profile, const KernelNeeds& kernel, unsigned blocks) noexcept {
  const std::size_t all = Figure(profile, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const std::size_t each = Down(all / blocks, profile.shared_unit);  // the driver's own share is not taken off, as an H200 answers
  return each > kernel.shared ? each - kernel.shared : 0;
}

}  // namespace cuaudit::sim
