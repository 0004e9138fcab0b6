// SPDX-License-Identifier: MIT
// Debian's own FFmpeg and hashcat, unmodified, on the simulated driver: each loses what one function of its holds when a call fails, and
// each sweep says so as one defect, the same in every run, with threads of the program's own or without. FFmpeg also pops where its push
// failed, one defect for each function that does. Skipped where they are not installed (scripts/install_packages --all).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::real_programs_test {
namespace {

[[maybe_unused]] bool IsInstalled(const std::string& program) {  // not asked where the drop-in is instrumented
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::vector<std::string> Ffmpeg(const std::string& filters, const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {"ffmpeg", "-v", "error", "-nostdin", "-y"};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& word :
       Words("-f lavfi -i testsrc=size=64x64:rate=2:duration=1 -init_hw_device cuda=cu -filter_hw_device cu -vf")) {
    command.push_back(word);
  }
  command.push_back("format=yuv420p," + filters + ",hwdownload,format=yuv420p");
  for (const char* word : {"-f", "null", "-"}) command.emplace_back(word);
  return command;
}

// The defects of a sweep of first faults, without the commands that reproduce them.
nlohmann::json Defects(const std::vector<std::string>& program, const std::vector<std::string>& options = {}) {
  How how = {.deadline_ms = 240000};
  how.environment = {"HOME=" + TemporaryDirectory()};  // hashcat keeps files there
  std::vector<std::string> arguments = {"sweep", "--depth", "1"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Audit audit = RunAudit(arguments, program, how);
  EXPECT_FALSE(audit.report.is_null()) << audit.outcome.err;
  if (audit.report.is_null()) return nlohmann::json::array();
  EXPECT_EQ(audit.report["outcome"], "findings") << audit.outcome.err;
  nlohmann::json defects = audit.report["defects"];
  for (nlohmann::json& defect : defects) defect.erase("reproduce");
  return defects;
}

void ExpectALostContext(const nlohmann::json& defects) {
  ASSERT_GE(defects.size(), 1U) << defects.dump(1);
  EXPECT_EQ(defects[0]["rule"], "leak");
  EXPECT_EQ(defects[0]["acquired"]["call"], "cuCtxCreate");
  EXPECT_EQ(defects[0]["released"]["call"], "cuCtxDestroy");
  EXPECT_EQ(defects[0]["members"][0]["kind"], "context");
}

class RealPrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { unsetenv("CUAUDIT_OPTIONS"); }
};

// The clean-up of frames (cuda_buffer_free in libavutil) and of the scaling filter do not look at the result of their cuCtxPushCurrent and
// pop. FFmpeg's own context is never current then, so the driver has nothing to pop; in a program that has a context of its own current
// when it frees a frame, FFmpeg takes that one away. Other functions of FFmpeg return when the push fails.
void ExpectPopsWithoutPush(const nlohmann::json& defects, const std::vector<std::string>& modules) {
  std::vector<std::string> blamed;
  for (std::size_t i = 1; i < defects.size(); ++i) {
    EXPECT_EQ(defects[i]["rule"], "deficit") << defects[i].dump(1);
    EXPECT_EQ(defects[i]["members"][0]["kind"], "context_stack_entry");
    EXPECT_EQ(defects[i]["blame"]["because"], "made_the_call");
    blamed.push_back(defects[i]["blame"]["function"]["module"]);
  }
  ASSERT_EQ(blamed.size(), modules.size()) << defects.dump(1);
  for (std::size_t i = 0; i < blamed.size(); ++i) EXPECT_THAT(blamed[i], ::testing::StartsWith(modules[i]));
}

void ExpectFfmpegLosesItsDevice(const nlohmann::json& defects) {
  ExpectALostContext(defects);
  if (defects.empty()) return;
  EXPECT_EQ(defects[0]["says"], "main returned without cuCtxDestroy") << "the exit after a failed filter skips the hardware device";
  EXPECT_EQ(defects[0]["blame"]["function"]["module"], "ffmpeg");
  EXPECT_GT(defects[0]["trials"], 5);
}

#ifdef CUAUDIT_INSTRUMENTED
#define CUAUDIT_SKIP_WITHOUT(program) GTEST_SKIP() << "the drop-in of this build needs an instrumented program"
#else
#define CUAUDIT_SKIP_WITHOUT(program) \
  if (!IsInstalled(program)) GTEST_SKIP() << program << " is not installed: scripts/install_packages --all"
#endif

// With FFmpeg's threads and without.
void ExpectTheSameOfFfmpegInThreeRuns(const std::string& filters, const std::vector<std::string>& options,
                                      const std::vector<std::string>& pop_without_push) {
  const nlohmann::json first = Defects(Ffmpeg(filters), options);
  ExpectFfmpegLosesItsDevice(first);
  ExpectPopsWithoutPush(first, pop_without_push);
  EXPECT_EQ(Defects(Ffmpeg(filters), options), first);
  EXPECT_EQ(Defects(Ffmpeg(filters, {"-threads", "1", "-filter_threads", "1"}), options), first) << "without threads of its own";
}

TEST_F(RealPrograms, FfmpegUploadsAFrame) {
  CUAUDIT_SKIP_WITHOUT("ffmpeg");
  ExpectTheSameOfFfmpegInThreeRuns("hwupload_cuda", {"--host"}, {"libavutil.so"});
}

TEST_F(RealPrograms, FfmpegScalesAFrame) {
  CUAUDIT_SKIP_WITHOUT("ffmpeg");
  ExpectTheSameOfFfmpegInThreeRuns("hwupload_cuda,scale_cuda=w=32:h=32", {"--host"}, {"libavfilter.so", "libavutil.so"});
}

TEST_F(RealPrograms, FfmpegPicksAThumbnail) {
  CUAUDIT_SKIP_WITHOUT("ffmpeg");
  ExpectTheSameOfFfmpegInThreeRuns("hwupload_cuda,thumbnail_cuda=n=2", {}, {"libavutil.so"});
}

TEST_F(RealPrograms, HashcatListsItsDevices) {
  CUAUDIT_SKIP_WITHOUT("hashcat");
  const std::vector<std::string> program = {"hashcat", "-I"};
  const nlohmann::json first = Defects(program);
  ExpectALostContext(first);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0]["trials"], 3) << "its context is lost when three calls fail";
  ASSERT_EQ(first[0]["members"].size(), 2U) << "and left pushed in one";
  EXPECT_EQ(first[0]["members"][1]["kind"], "context_stack_entry");
  for (int run = 2; run <= 3; ++run) EXPECT_EQ(Defects(program), first) << "run " << run;
}

}  // namespace
}  // namespace cuaudit::e2e::real_programs_test
