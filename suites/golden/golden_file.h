// SPDX-License-Identifier: MIT
// golden_file.h: holds what a writer wrote to a file that a person has read.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace cuaudit::suites {

// With CUAUDIT_UPDATE_GOLDEN the file becomes what was written.
inline void CompareWithGolden(const std::string& name, const std::string& written) {
  const std::string path = std::string(CUAUDIT_GOLDEN_DIR) + "/reports/" + name;
  if (std::getenv("CUAUDIT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(path, std::ios::binary);
    file << written;
    ASSERT_TRUE(file.flush().good()) << path;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path << ": golden file missing";
  const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(written, golden) << path << " differs; suites/golden/README.md tells how to renew it";
}

}  // namespace cuaudit::suites
