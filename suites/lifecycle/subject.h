// SPDX-License-Identifier: MIT
// subject.h: runs a test program as a shell would, and keeps its output.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace cuaudit::testing {

struct Ended {
  int status = -1;
  std::string output;
};

inline Ended RunLine(const std::string& line) {
  Ended ended;
  // Neither this test's own filter nor its shard is the subject's.
  const std::string whole =
      "unset GTEST_FILTER GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_SHARD_STATUS_FILE GTEST_OUTPUT XML_OUTPUT_FILE\n" + line;
  FILE* const pipe = popen(("exec 2>&1\n" + whole).c_str(), "r");
  if (pipe == nullptr) return ended;
  char block[4096];
  for (std::size_t got = 0; (got = fread(block, 1, sizeof(block), pipe)) != 0;) ended.output.append(block, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

inline Ended RunSubject(const std::string& subject, const std::string& arguments) {
  return RunLine("CUAUDIT_OPTIONS=driver=sim '" + subject + "' " + arguments);
}

}  // namespace cuaudit::testing
