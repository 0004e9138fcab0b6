// SPDX-License-Identifier: MIT
// config_file.h: whether a file can be read as the argument of --config.
#pragma once

#include <string>

namespace cuaudit::harness {

// Empty, or why not in one line. A device or a pipe could block for ever, and an error about a binary file would quote much of it.
std::string WhyNoConfig(const std::string& path);

}  // namespace cuaudit::harness
