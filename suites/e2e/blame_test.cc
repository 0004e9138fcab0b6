// SPDX-License-Identifier: MIT
// Whole programs that lose something in one place (programs/blame), each built without and with optimisation: each sweep is one defect,
// with its rule, the function that is to blame and the release that it did not make. Optimisation must not change who is blamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "suites/support/tool.h"

namespace cuaudit::e2e::blame_test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Row {
  const char* program;
  const char* name;
  const char* rule;
  const char* blamed;            // without namespace and parameters; "libnorth.so+" for a function of that module without a name
  const char* release;           // nullptr: nothing is lost
  const char* members = "";      // kinds of a loss of several objects
  const char* options = "";      // for the sweep
  const char* second = nullptr;  // blamed for the second defect of a row with two causes
};

constexpr const char* kLost = "orphaned";  // destroyed by the context that the program gives back after the row

constexpr Row kRows[] = {
    {"blame", "early_return", kLost, "pair_open", "cuStreamDestroy"},
    {"blame", "wrong_label", kLost, "labels_run", "cuEventDestroy"},
    {"blame", "nested_helper", kLost, "make_two", "cuStreamDestroy"},
    {"blame", "nested_caller", kLost, "session_run", "cuStreamDestroy"},
    {"blame", "half_close", kLost, "half_close_pair", "cuStreamDestroy"},
    {"blame", "loop_inside", kLost, "streams_open", "cuStreamDestroy"},
    {"blame", "loop_around", kLost, "slots_open", "cuStreamDestroy", "stream event"},
    {"blame", "lost_together", "leak", "session_open", "cuCtxDestroy", "context stream device_memory"},
    {"blame", "context_children", "leak", "owner_open", "cuCtxDestroy"},
    {"blame", "swallowed", kLost, "optional_begin", "cuStreamDestroy"},
    {"blame", "second_fault", kLost, "undo", "cuStreamDestroy"},
    {"blame", "again", kLost, "pairs_fill", "cuStreamDestroy", "", "--how=burst"},
    {"blame", "passed_over", kLost, "streams_drop", "cuStreamDestroy"},
    {"blame_ways", "callback", kLost, "visit", "cuStreamDestroy"},
    {"blame_ways", "callback_around", kLost, "walk", "cuStreamDestroy"},
    {"blame_ways", "table", kLost, "backend_run", "cuStreamDestroy"},
    {"blame_ways", "recursion", kLost, "level", "cuMemFree"},
    {"blame_ways", "retry", kLost, "retry_open", "cuStreamDestroy"},
    {"blame_ways", "tail_open", kLost, "tail_begin", "cuStreamDestroy"},
    {"blame_ways", "tail_close", kLost, "tail_end", "cuStreamDestroy"},
    {"blame_ways", "long_jump", kLost, "jump_run", "cuStreamDestroy"},
    {"blame_wrappers", "two_phase", kLost, "Encoder::Init", "cuStreamDestroy"},
    {"blame_wrappers", "constructor", kLost, "Decoder::Decoder", "cuStreamDestroy"},
    {"blame_wrappers", "destructor_skips", kLost, "Skipping::~Skipping", "cuStreamDestroy"},
    {"blame_wrappers", "destructor_throws", kLost, "Throwing::~Throwing", "cuStreamDestroy"},
    {"blame_wrappers", "exception", kLost, "RunUnguarded", "cuStreamDestroy"},
    {"blame_wrappers", "released_early", kLost, "Configured", "cuStreamDestroy"},
    {"blame_wrappers", "replaced", kLost, "Slot::Replace", "cuStreamDestroy"},
    {"blame_wrappers", "forgotten", kLost, "Pool::Grow", "cuEventDestroy"},
    {"blame_calls", "virtual", kLost, "Launcher::Launch", "cuStreamDestroy"},
    {"blame_calls", "lambda", kLost, "Lambda", "cuMemFree"},
    {"blame_calls", "handler", kLost, "HandleRequest", "cuEventDestroy"},
    {"blame_calls", "thread_main", kLost, "Worker::Stop", "cuStreamDestroy"},
    {"blame_calls", "thread_worker", kLost, "WorkAlone", "cuStreamDestroy"},
    {"blame_calls", "inlined", kLost, "InlinedOpen", "cuStreamDestroy"},
    {"blame_calls", "double_release", "double_release", "UsePrepared", nullptr},
    {"blame_counted", "wrappers", "leak", "Encoder::Open", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "wrappers_nested", "leak", "Handle::Init", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "first_loses", "leak", "plugin_start", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "shared_helper", "leak", "sink_open", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "no_names", "leak", "begin", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "physical", "leak", "export_open", "cuMemRelease"},
    {"blame_counted", "dlopen", "leak", "scaler_open", "dlclose", "", "--host"},
    {"blame_uses", "stripped", kLost, "libnorth.so+", "cuStreamDestroy"},
    // Of an inlined function nothing is left in a module without symbols but the function around it.
    {"blame_uses", "stripped_inlined", kLost, "north_lose_inlined", "cuMemFree"},
    {"blame_uses", "one_library", "not_recovered", "north_init", nullptr, "", "--depth=1"},
    {"blame_uses", "two_libraries", "not_recovered", "north_init", nullptr, "", "--depth=1", "south_init"},
    {"blame_uses", "two_functions", "not_recovered", "first_begin", nullptr, "", "--depth=1", "second_begin"},
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Audit SweepRow(const Row& row, int level, const char* as) {
  std::vector<std::string> arguments = Words(row.options);
  arguments.insert(arguments.begin(), "sweep");
  return RunAudit(arguments, {Program(row.program) + "_O" + std::to_string(level), row.name, as});
}

// "Encoder::Open" of "(anonymous namespace)::Encoder::Open()", and the function around a lambda.
std::string Plain(const nlohmann::json& frame, int level) {
  std::string function = frame["function"];
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = function.find(anonymous)) != std::string::npos;) function.erase(at, anonymous.size());
  function = function.substr(0, function.find('('));
  for (const char* const lambda : {"::<lambda", "::{lambda", "::$_"}) function = function.substr(0, function.find(lambda));
  if (!function.empty()) return function;
  std::string module = frame["module"];
  const std::string built = "_O" + std::to_string(level);
  if (const std::size_t at = module.find(built); at != std::string::npos) module.erase(at, built.size());
  return module + "+";
}

class Blame : public ::testing::TestWithParam<Row> {};

TEST_P(Blame, IsOneDefectAndWhoeverLostItIsNamed) {
  const Row& row = GetParam();
  for (const int level : {0, 3}) {
    const Audit audit = SweepRow(row, level, "wrong");
    SCOPED_TRACE("-O" + std::to_string(level) + ": " + audit.outcome.err);
    EXPECT_EQ(audit.outcome.exit, 1);
    ASSERT_FALSE(audit.report.is_null());
    const nlohmann::json& defects = audit.report["defects"];
    ASSERT_THAT(defects, SizeIs(row.second == nullptr ? 1 : 2)) << defects.dump(1);
    for (const nlohmann::json& defect : defects) {
      EXPECT_EQ(defect["rule"], row.rule);
      ASSERT_FALSE(defect["blame"].is_null());
    }
    EXPECT_EQ(Plain(defects[0]["blame"]["function"], level), row.blamed);
    if (row.second != nullptr) {
      EXPECT_EQ(Plain(defects[1]["blame"]["function"], level), row.second);
    }
    if (row.release != nullptr) {
      EXPECT_EQ(defects[0]["released"]["call"], row.release);
      EXPECT_THAT(defects[0]["says"].get<std::string>(), ::testing::HasSubstr(row.release));
    }
    if (row.members[0] == '\0') continue;
    std::string members;
    for (const nlohmann::json& member : defects[0]["members"]) {
      members += (members.empty() ? "" : " ") + member["kind"].get<std::string>();
    }
    EXPECT_EQ(members, row.members);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Blame, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.program) + "_" + test.param.name; });

// The repaired twins: silence.
class BlameTwins : public ::testing::TestWithParam<Row> {};

TEST_P(BlameTwins, AreSilent) {
  for (const int level : {0, 3}) {
    const Audit audit = SweepRow(GetParam(), level, "right");
    EXPECT_EQ(audit.outcome.exit, 0) << "-O" << level << ": " << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "") << "-O" << level;
    EXPECT_THAT(audit.report["defects"], IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Every, BlameTwins, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return std::string(test.param.program) + "_" + test.param.name; });

}  // namespace
}  // namespace cuaudit::e2e::blame_test
