// SPDX-License-Identifier: MIT
#include "faults/sim/device/profile.h"

#include <cstring>

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr Profile kProfiles[] = {
    {.name = "h200",
     .device_name = "cuaudit simulated H200",
     .memory = 143771 * kMiB,
     .shared_unit = 128,
     .register_unit = 256,
     .warp_unit = 4,
     .least_group = 8,
     .group_unit = 8,
     .most_groups = 15,
     .attribute =
         {
             0,
#define CUAUDIT_ATTRIBUTE(number, name, value) value,
#include "faults/sim/device/profile_h200.def"
#undef CUAUDIT_ATTRIBUTE
         }},
    {.name = "small",
     .device_name = "cuaudit simulated GTX 1650",
     .memory = 4096 * kMiB,
     .shared_unit = 256,
     .register_unit = 256,
     .warp_unit = 4,
     .least_group = 2,
     .group_unit = 2,
     .most_groups = 7,
     .attribute =
         {
             0,
#define CUAUDIT_ATTRIBUTE(number, name, value) value,
#include "faults/sim/device/profile_small.def"
#undef CUAUDIT_ATTRIBUTE
         }},
};

// The rows are in order and none is missing: a row's place is its number.
#define CUAUDIT_ATTRIBUTE(number, name, value) number,
constexpr int kH200Numbers[] = {
    0,
#include "faults/sim/device/profile_h200.def"
};
constexpr int kSmallNumbers[] = {
    0,
#include "faults/sim/device/profile_small.def"
};
#undef CUAUDIT_ATTRIBUTE

constexpr bool InOrder(const int (&numbers)[kAttributeEnd]) {
  for (int i = 0; i < kAttributeEnd; ++i) {
    if (numbers[i] != i) return false;
  }
  return true;
}
static_assert(InOrder(kH200Numbers) && InOrder(kSmallNumbers));

}  // namespace

const Profile* FindProfile(const char* name) noexcept {
  for (const Profile& profile : kProfiles) {
    if (std::strcmp(profile.name, name) == 0) return &profile;
  }
  return nullptr;
}

const Profile* DefaultProfile() noexcept { return &kProfiles[0]; }

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
