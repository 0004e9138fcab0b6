// SPDX-License-Identifier: MIT
// host_beside_test.cc: what lifecycles in process lose of the host is found the same where the program is built without sanitizers, with
// AddressSanitizer of gcc and of clang, where the host drop-in is preloaded instead of linked; and what cannot be seen is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "suites/lifecycle/subject.h"

namespace cuaudit::testing::host_beside_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Loss {
  const char* what;
  const char* sweep;
  const char* cycles;
};

constexpr Loss kLosses[] = {
    {"nothing", "", ""},
    {"block", " leak/host_heap/1", " growth/host_heap/10"},
    {"new", " leak/host_heap/1", " growth/host_heap/10"},
    {"library", " leak/dlopen_reference/1", " growth/dlopen_reference/10"},
    {"descriptor", " leak/file_descriptor/1", " growth/file_descriptor/10"},
    {"closed", " deficit/file_descriptor/1", ""},
    {"mutex", " leak/host_heap/1 leak/mutex/1", " growth/host_heap/10 growth/mutex/10"},
    {"freed", " mutex_freed/mutex/1", " growth/mutex/10 mutex_freed/mutex/11"},
    {"locked", " mutex_freed/mutex/1 mutex_locked/mutex/1", " growth/mutex/10 mutex_freed/mutex/11 mutex_locked/mutex/11"},
    {"thread", " leak/thread/1", " growth/thread/10"}};

std::string Sorted(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = line.find(' '); at != std::string::npos;) {
    const std::size_t end = line.find(' ', at + 1);
    words.push_back(line.substr(at, end == std::string::npos ? end : end - at));
    at = end;
  }
  std::sort(words.begin(), words.end());
  std::string sorted;
  for (const std::string& word : words) sorted += word;
  return sorted;
}

std::string LineOf(const std::string& output, const std::string& title) {
  const std::size_t at = output.find(title + ":");
  if (at == std::string::npos) return "no line '" + title + "' in: " + output;
  return output.substr(at + title.size() + 1, output.find('\n', at) - at - title.size() - 1);
}

class Beside : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef CUAUDIT_INSTRUMENTED
    GTEST_SKIP() << "the whole build is instrumented";
#endif
    program_ = std::string(CUAUDIT_SUBJECTS) + "/host_subject_" + GetParam();
    if (!std::filesystem::exists(program_)) GTEST_SKIP() << program_ << " could not be built";
  }
  Ended Run(const std::string& what, const std::string& environment = {}) const {
    return RunLine("ASAN_OPTIONS=detect_leaks=0 CUAUDIT_OPTIONS=driver=sim " + environment + " '" + program_ + "' " + what);
  }
  std::string program_;
};

TEST_P(Beside, LosesAreFoundAndNothingElse) {
  for (const Loss& loss : kLosses) {
    const Ended ended = Run(loss.what);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_EQ(Sorted(LineOf(ended.output, "sweep")), Sorted(loss.sweep)) << loss.what << '\n' << ended.output;
    EXPECT_EQ(Sorted(LineOf(ended.output, "cycles")), Sorted(loss.cycles)) << loss.what << '\n' << ended.output;
    EXPECT_THAT(ended.output, Not(HasSubstr("not metered"))) << loss.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Beside, ::testing::Values("plain", "address_gcc", "address_clang"),
                         [](const auto& test) { return std::string(test.param); });

class Unlinked : public Beside {};

TEST_P(Unlinked, SaysWhatItDoesNotSee) {
  const Ended closed = Run("closed");
  EXPECT_EQ(LineOf(closed.output, "sweep"), "") << closed.output;
  EXPECT_THAT(closed.output, HasSubstr("descriptors closed too often"));
  const Ended alone = Run("mutex");
  EXPECT_EQ(alone.status, 0) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("not metered: mutexes, references of libraries"));
  const Ended preloaded = Run("mutex", std::string("LD_PRELOAD=") + CUAUDIT_HOST_DROP_IN);
  EXPECT_EQ(Sorted(LineOf(preloaded.output, "sweep")), " leak/host_heap/1 leak/mutex/1") << preloaded.output;
  EXPECT_THAT(preloaded.output, Not(HasSubstr("not metered")));
}

INSTANTIATE_TEST_SUITE_P(Every, Unlinked, ::testing::Values("unlinked"), [](const auto& test) { return std::string(test.param); });

class OwnMalloc : public Beside {};

TEST_P(OwnMalloc, IsSaid) {
  const Ended ended = Run("mutex");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(LineOf(ended.output, "sweep"), " leak/mutex/1") << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("not metered: heap blocks by call stack: the program has an allocator of its own"));
}

INSTANTIATE_TEST_SUITE_P(Every, OwnMalloc, ::testing::Values("own_malloc"), [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cuaudit::testing::host_beside_test
