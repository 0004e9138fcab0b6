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

}  // namespace cuaudit::sim
