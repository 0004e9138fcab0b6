// SPDX-License-Identifier: MIT
// host_detail.h: values with a special meaning in the second argument of a host record.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

// In a DescriptorClose record: the kernel declined the close, because the number was not open.
inline constexpr std::uint64_t kNotOpen = ~std::uint64_t{0};

}  // namespace cuaudit::faults
