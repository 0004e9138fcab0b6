// SPDX-License-Identifier: MIT
// Driver calls from Python: call stacks name Python functions, in every CPython of this machine that is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "suites/support/pythons.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::python_test {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Lines = std::vector<std::string>;

// Program file of a CPython 3.MINOR that has ctypes; empty: there is none.
std::string FindPython(int minor) {
  for (const std::string& candidate : testing::PythonCandidates(minor)) {
    const CommandResult outcome = RunCommand({candidate, "-c", "import ctypes, sys; print(sys.implementation.name, sys.executable)"});
    if (outcome.exit == 0 && outcome.out.starts_with("cpython ")) return outcome.out.substr(8, outcome.out.size() - 9);
  }
  return {};
}

// Line of named.py that has the comment "#: MARK".
int LineOf(const std::string& mark) {
  std::ifstream file(CUAUDIT_NAMED_PY);
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    if (text.ends_with("  #: " + mark)) return line;
  }
  ADD_FAILURE() << "no line is marked " << mark;
  return 0;
}

std::string At(const std::string& function, const std::string& mark) { return function + ":" + std::to_string(LineOf(mark)); }

// "function:line" of Python frames, "function (module)" of others, innermost first.
Lines Stack(const nlohmann::json& place) {
  Lines lines;
  for (const nlohmann::json& frame : place["stack"]) {
    const std::string function = frame["function"];
    if (frame["module"] == "python") {
      EXPECT_EQ(frame["file"], CUAUDIT_NAMED_PY);
      lines.push_back(function + ":" + std::to_string(frame["line"].get<int>()));
    } else {
      lines.push_back(function + " (" + frame["module"].get<std::string>() + ")");
    }
  }
  return lines;
}

Lines WithMain(Lines lines) {
  lines.push_back(At("main", "main"));
  lines.push_back(At("<module>", "module"));
  return lines;
}

bool SaysUnread(const Audit& audit) {
  const nlohmann::json& skipped = audit.report["totals"]["skipped"];
  return std::any_of(skipped.items().begin(), skipped.items().end(),
                     [](const auto& item) { return item.key().find("Python functions: ") != std::string::npos; });
}

class Python : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
#ifdef CUAUDIT_INSTRUMENTED
    GTEST_SKIP() << "an instrumented drop-in cannot enter a plain interpreter";
#endif
    static std::map<int, std::string> known;
    const auto [at, fresh] = known.try_emplace(GetParam());
    if (fresh) at->second = FindPython(GetParam());
    python_ = at->second;
    if (python_.empty()) GTEST_SKIP() << "no CPython 3." << GetParam() << " with ctypes on this machine";
  }

  Audit Sweep(const std::string& mode, const std::string& argument = {}, const Lines& options = {"--depth", "1"}) const {
    Lines arguments = {"sweep"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Lines program = {python_, CUAUDIT_NAMED_PY, mode};
    if (!argument.empty()) program.push_back(argument);
    return RunAudit(arguments, program);
  }

  // The one finding of a sweep of the mode.
  nlohmann::json Only(const std::string& mode, const std::string& argument = {}, const Lines& options = {"--depth", "1"}) const {
    const Audit audit = Sweep(mode, argument, options);
    EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "orphaned stream 1");
    EXPECT_FALSE(SaysUnread(audit));
    const bool one = !audit.report.is_null() && audit.report["findings"].size() == 1;
    return one ? audit.report["findings"][0] : nlohmann::json();
  }

  // That of one sweep for all tests of an interpreter.
  const nlohmann::json& Leak() const {
    static std::map<int, nlohmann::json> known;
    const auto [at, fresh] = known.try_emplace(GetParam());
    if (fresh) at->second = Only("leak");
    return at->second;
  }

  std::string python_;
};

TEST_P(Python, ALeakOnAFailingPathIsNamed) {
  const nlohmann::json& finding = Leak();
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(Stack(finding["acquired"]), WithMain({At("Encoder.__init__", "stream"), At("leak", "encoder")}));
  EXPECT_EQ(Stack(finding["fault"]), WithMain({At("Encoder.step", "event"), At("leak", "step")}));
}

TEST_P(Python, ACarefulProgramIsClean) {
  const Audit audit = Sweep("careful", {}, {});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_FALSE(SaysUnread(audit));
  // Which blocks of its objects the interpreter frees at exit differs from run to run.
  const Audit host = Sweep("careful", {}, {"--depth", "1", "--host"});
  EXPECT_EQ(host.outcome.exit, 0) << host.outcome.err << host.findings().substr(0, 1000);
}

TEST_P(Python, FramesOfTheCLibraryStayBetweenPythonFrames) {
  const nlohmann::json finding = Only("callback");
  ASSERT_FALSE(finding.is_null());
  const Lines stack = Stack(finding["fault"]);
  ASSERT_GE(stack.size(), 6U);
  EXPECT_EQ(stack[0], At("Encoder.step", "event"));
  EXPECT_EQ(stack[1], At("callback.<locals>.compare", "compare"));
  for (std::size_t i = 2; i + 3 < stack.size(); ++i) EXPECT_THAT(stack[i], HasSubstr("(libc.so.6)"));
  EXPECT_EQ(stack[stack.size() - 3], At("callback", "qsort"));
}

TEST_P(Python, FramesOfAnExtensionStayBetweenPythonFrames) {
  if (std::string(CUAUDIT_NAMED_EXTENSION).empty()) GTEST_SKIP() << "no Python.h: the extension is not built";
  const std::string directory = std::string(CUAUDIT_NAMED_EXTENSION).substr(0, std::string(CUAUDIT_NAMED_EXTENSION).rfind('/'));
  const nlohmann::json finding = Only("extension", directory);
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(Stack(finding["acquired"]), WithMain({"make_stream (named_extension.so)", At("extension", "make_stream")}));
  EXPECT_EQ(Stack(finding["fault"]), WithMain({At("Encoder.step", "event"), "call (named_extension.so)", At("extension", "call")}));
}

TEST_P(Python, ThreadsHaveStacksOfTheirOwn) {
  const Audit audit = Sweep("threads");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  std::set<std::string> lost;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    if (finding["kind"] != "stream") continue;
    Lines stack;
    for (const nlohmann::json& frame : finding["acquired"]["stack"]) stack.push_back(frame["function"]);
    for (const std::string thread : {"threads.<locals>.first", "threads.<locals>.second"}) {
      if (std::find(stack.begin(), stack.end(), thread) != stack.end()) lost.insert(thread);
    }
    EXPECT_EQ(std::count(stack.begin(), stack.end(), "main"), 0) << "frames of the thread that waits";
    EXPECT_EQ(stack.back(), "Thread._bootstrap");
  }
  EXPECT_THAT(lost, ElementsAre("threads.<locals>.first", "threads.<locals>.second"));
}

TEST_P(Python, GeneratorsAreNamed) {
  const nlohmann::json finding = Only("generator");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(Stack(finding["acquired"]), WithMain({At("streams", "in generator"), At("generator", "for")}));
  EXPECT_EQ(Stack(finding["fault"]), WithMain({At("generator", "in loop")}));
}

TEST_P(Python, CoroutinesAreNamed) {
  const Audit audit = Sweep("asynchronous");
  ASSERT_FALSE(audit.report["findings"].empty()) << audit.outcome.err;
  Lines functions;
  for (const nlohmann::json& frame : audit.report["findings"][0]["fault"]["stack"]) functions.push_back(frame["function"]);
  ASSERT_GE(functions.size(), 3U);
  EXPECT_EQ(functions[0], "wait_for.<locals>.<lambda>");
  EXPECT_EQ(functions[1], "wait_for");
  EXPECT_EQ(functions[2], "coroutine");
}

TEST_P(Python, ADefectInAnExceptionHandlerIsNamed) {
  const nlohmann::json finding = Only("handler", {}, {});
  ASSERT_FALSE(finding.is_null());
  ASSERT_EQ(finding["then"].size(), 1U);
  EXPECT_EQ(finding["then"][0]["call"], "cuStreamSynchronize");
  EXPECT_EQ(Stack(finding["then"][0]), WithMain({At("handler", "except")}));
}

TEST_P(Python, DeathsAndHangsAreNamed) {
  const auto stack_of = [&](const std::string& mode, const std::string& rule) {
    const Audit audit =
        RunAudit({"replay", "--deadline-ms", "3000", "--fault", "cuEventCreate#1=OUT_OF_MEMORY,refuse"}, {python_, CUAUDIT_NAMED_PY, mode});
    if (audit.report.is_null() || audit.report["findings"].empty()) return Lines{audit.outcome.err};
    EXPECT_EQ(audit.report["findings"][0]["rule"], rule);
    return Stack({{"stack", audit.report["findings"][0]["where_stack"]}});
  };
  EXPECT_EQ(stack_of("dies", "crash"), WithMain({At("dies", "dies")}));
  Lines hangs = stack_of("hangs", "hang");
  ASSERT_EQ(hangs.size(), 4U);
  EXPECT_THAT(hangs.front(), HasSubstr("python3")) << "the interpreter's own function, which waits";
  hangs.erase(hangs.begin());
  EXPECT_EQ(hangs, WithMain({At("hangs", "hangs")}));
}

// The helper of the loop acquired what is lost, and is innocent.
TEST_P(Python, ALoopAroundAHelperIsToBlame) {
  const Audit audit = Sweep("pooled");
  ASSERT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.findings();
  const nlohmann::json& blame = audit.report["defects"][0]["blame"];
  EXPECT_THAT(blame["function"]["function"].get<std::string>(), AnyOf("pooled", "pooled.<locals>.<listcomp>")) << blame.dump();
  EXPECT_EQ(blame["because"], "held_it");
}

TEST_P(Python, AStackEndsWhereItIsFull) {
  const nlohmann::json finding = Only("deep", {}, {"--depth", "1", "--stacks", "20"});
  ASSERT_FALSE(finding.is_null());
  const Lines stack = Stack(finding["fault"]);
  EXPECT_EQ(stack.front(), At("Encoder.step", "event"));
  EXPECT_EQ(stack.back(), At("deep.<locals>.down", "down"));
  EXPECT_EQ(stack.size(), 20U);
}

TEST_P(Python, NamesOfAllLettersAreKept) {
  const nlohmann::json finding = Only("ünïcode");
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(Stack(finding["acquired"])[2], At("ünïcode", "unicode"));
}

TEST_P(Python, TwoRunsHaveTheSameFingerprints) {
  const nlohmann::json& first = Leak();
  const nlohmann::json second = Only("leak");
  ASSERT_FALSE(first.is_null());
  ASSERT_FALSE(second.is_null());
  EXPECT_EQ(first["fingerprint"], second["fingerprint"]);
}

TEST_P(Python, AFaultThatIsAddressedByStackHitsTheSameCallAgain) {
  const std::string counter = TemporaryDirectory() + "/counter";
  const Audit audit = Sweep("drift", counter, {"--depth", "1", "--jobs", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_THAT(audit.findings(), HasSubstr("orphaned stream 1"));
  std::string fault;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    if (finding["kind"] == "stream") fault = finding["fault"]["text"];
  }
  ASSERT_THAT(fault, HasSubstr("cuEventCreate@site="));
  for (int run = 0; run < 2; ++run) {  // with the additional event, and without
    const Audit again = RunAudit({"replay", "--fault", fault}, {python_, CUAUDIT_NAMED_PY, "drift", counter});
    EXPECT_EQ(again.outcome.exit, 1) << again.outcome.err;
    EXPECT_EQ(again.findings(), "orphaned stream 1");
    EXPECT_EQ(Stack(again.report["findings"][0]["fault"])[0], At("Encoder.step", "event"));
  }
}

INSTANTIATE_TEST_SUITE_P(CPython3, Python, ::testing::Values(11, 12, 13, 14), [](const auto& test) { return std::to_string(test.param); });

TEST(OtherPython, OfAnUnknownVersionHasNativeFramesAndTheReportSaysSo) {
  const Audit audit = RunAudit({"replay", "--fault", "cuEventCreate#1=OUT_OF_MEMORY,refuse"}, {Program("newer_python")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_TRUE(SaysUnread(audit));
  EXPECT_THAT(audit.report["totals"]["skipped"].dump(), HasSubstr("CPython 3.99.0 is in the process"));
}

// Released versions, one older and one newer than those that are read.
class UnreadPython : public ::testing::TestWithParam<int> {};

TEST_P(UnreadPython, HasNativeFramesAndTheReportSaysSo) {
#ifdef CUAUDIT_INSTRUMENTED
  GTEST_SKIP() << "an instrumented drop-in cannot enter a plain interpreter";
#endif
  const std::string python = FindPython(GetParam());
  if (python.empty()) GTEST_SKIP() << "no CPython 3." << GetParam() << " with ctypes on this machine";
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {python, CUAUDIT_NAMED_PY, "leak"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_TRUE(SaysUnread(audit));
  EXPECT_THAT(audit.report["findings"][0]["acquired"].dump(), Not(HasSubstr("Encoder.__init__")));
  EXPECT_THAT(audit.report["findings"][0]["acquired"].dump(), AnyOf(HasSubstr("_PyEval_EvalFrameDefault"), HasSubstr("libffi")));
}

INSTANTIATE_TEST_SUITE_P(CPython3, UnreadPython, ::testing::Values(10, 15), [](const auto& test) { return std::to_string(test.param); });

TEST(OtherPython, NoPythonIsNotMentioned) {
  const Audit audit = RunAudit({"run"}, {Program("client_linked")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_FALSE(SaysUnread(audit));
}

}  // namespace
}  // namespace cuaudit::e2e::python_test
