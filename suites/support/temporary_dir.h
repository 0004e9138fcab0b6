// SPDX-License-Identifier: MIT
// temporary_dir.h: a directory of a test's own, removed when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace cuaudit::harness {

class TemporaryDir {
 public:
  TemporaryDir() {
    std::string pattern = testing::TempDir() + "/cuaudit-test-XXXXXX";
    path_ = std::filesystem::canonical(mkdtemp(pattern.data())).string();
  }
  TemporaryDir(const TemporaryDir&) = delete;
  TemporaryDir& operator=(const TemporaryDir&) = delete;
  ~TemporaryDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cuaudit::harness
