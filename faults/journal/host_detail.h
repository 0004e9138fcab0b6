// SPDX-License-Identifier: MIT
// host_detail.h: what the second argument of a host record says, where the number alone does not.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

// Of DescriptorClose: the kernel declined the close, because the number was not open.
inline constexpr std::uint64_t kNotOpen = ~std::uint64_t{0};

}  // namespace cuaudit::faults
