// SPDX-License-Identifier: MIT
// One object of each kind of the driver, and one of each resource of the host by every way of acquiring it: lost, and given back.
#include "faults/driver/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::kinds_test {
namespace {

// What a program takes from the host and not from the driver.
constexpr const char* kHostKinds[] = {"host_heap", "dlopen_reference", "mutex", "file_descriptor", "thread", "host_mapping"};

// Every kind of driver object that the simulated driver models: one lost per cycle is growth of exactly one, none lost is silence.

constexpr const char* kKinds[] = {"device_memory",
                                  "managed_memory",
                                  "pinned_memory",
                                  "host_registration",
                                  "stream_ordered_memory",
                                  "memory_pool",
                                  "address_reservation",
                                  "physical_memory",
                                  "mapping",
                                  "array",
                                  "mipmapped_array",
                                  "texture_object",
                                  "surface_object",
                                  "module",
                                  "library",
                                  "link_state",
                                  "context",
                                  "primary_context",
                                  "context_stack_entry",
                                  "stream",
                                  "event",
                                  "graph",
                                  "executable_graph",
                                  "user_object",
                                  "texture_reference",
                                  "callback",
                                  "green_context",
                                  "external_memory",
                                  "ipc_memory",
                                  "block",
                                  "peer_access"};

// Why no program can lose one on the simulated driver.
const std::map<std::string, std::string> kNowhere = {
    {"none", "is no kind"},
    {"graph_node", "dies with its graph"},
    {"external_semaphore", "no interface beside the driver makes one, and none of its own can be exported"},
    {"multicast_object", "is not modelled: CUDA_ERROR_NOT_SUPPORTED"},
    {"graphics_resource", "OpenGL, EGL and Direct3D have no simulated counterpart"},
    {"egl_stream", "OpenGL, EGL and Direct3D have no simulated counterpart"}};

// Peer access needs two devices.
std::vector<std::string> Cycles(const std::string& kind) {
  std::vector<std::string> command = {"cycles", "--n", "1,10"};
  if (kind == "peer_access") command.emplace_back("--devices=2");
  return command;
}

class Kinds : public ::testing::TestWithParam<const char*> {};

TEST_P(Kinds, OneLostPerCycleIsGrowthOfExactlyOne) {
  const std::string kind = GetParam();
  const Audit audit = RunAudit(Cycles(kind), {Program("leak_kind"), kind, "{n}"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["per_cycle"].dump(), "{\"" + kind + "\":1}") << audit.findings();
  std::size_t growths = 0;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["kind"], kind);
    if (finding["rule"] != "growth") continue;
    ++growths;
    ASSERT_FALSE(finding["acquired"]["stack"].empty());
    EXPECT_THAT(finding["acquired"]["stack"].dump(), ::testing::HasSubstr("\"" + kind + "\""))
        << "the site is in the function of that name";
  }
  EXPECT_EQ(growths, 1U) << audit.findings();
}

TEST_P(Kinds, NoneLostIsSilence) {
  const Audit audit = RunAudit(Cycles(GetParam()), {Program("leak_kind"), GetParam(), "{n}", "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["per_cycle"].dump(), "{}") << audit.findings();
  EXPECT_TRUE(audit.report["findings"].empty()) << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Kinds, ::testing::ValuesIn(kKinds), [](const auto& test) { return std::string(test.param); });

TEST(KindList, EveryKindIsLostSomewhereOrSaysWhyNot) {
  std::set<std::string> lost(std::begin(kKinds), std::end(kKinds));
  lost.insert(std::begin(kHostKinds), std::end(kHostKinds));
  for (std::size_t i = 0; i < driver::kKindCount; ++i) {
    const std::string name(driver::Name(static_cast<driver::Kind>(i)));
    EXPECT_NE(lost.count(name), kNowhere.count(name)) << name;
  }
}

TEST(KindList, TheProgramHasNoKindThatIsNotTestedHere) {
  const CommandResult run =
      RunCommand({Program("leak_kind"), "--list"}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=driver=sim"}});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(Words(run.out), ::testing::UnorderedElementsAreArray(kKinds));
}

// Host resources by every way of acquiring one: lost in each cycle it is growth of exactly one, given back it is silence; in programs as
// they are and beside the sanitizers of gcc and clang. And what the C library keeps for itself on a failing path is nobody's leak.

// A sanitizer's own look for leaks would change the exit status.
const How kQuietly = {.environment = {"ASAN_OPTIONS=detect_leaks=0", "LSAN_OPTIONS=detect_leaks=0"}};

struct Way {
  const char* name;
  const char* per_cycle;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

constexpr Way kWays[] = {{"host_heap", R"({"host_heap":1})"},
                         {"resized", R"({"host_heap":1})"},
                         {"unreachable", R"({"host_heap":1})"},
                         {"library", R"({"dlopen_reference":1})"},
                         {"mutex", R"({"mutex":1})"},
                         {"opened", R"({"file_descriptor":1})"},
                         {"made", R"({"file_descriptor":1})"},
                         {"socketed", R"({"file_descriptor":1})"},
                         {"duplicated", R"({"file_descriptor":1})"},
                         {"duplicated_to", R"({"file_descriptor":1})"},
                         {"event", R"({"file_descriptor":1})"},
                         {"poller", R"({"file_descriptor":1})"},
                         {"timer", R"({"file_descriptor":1})"},
                         {"memory", R"({"file_descriptor":1})"},
                         {"watch", R"({"file_descriptor":1})"},
                         {"signals", R"({"file_descriptor":1})"},
                         {"half_a_pipe", R"({"file_descriptor":1})"},
                         {"system_call", R"({"file_descriptor":1})"},
                         {"controlled", R"({"file_descriptor":1})"},
                         {"shared", R"({"file_descriptor":1})"},
                         {"terminal", R"({"file_descriptor":1})"},
                         {"suffixed", R"({"file_descriptor":1})"},
                         {"received", R"({"file_descriptor":1})"},
                         {"ranged", R"({"file_descriptor":1})"},
                         {"redirected", R"({"file_descriptor":1})"},
                         {"beside_accept", R"({"file_descriptor":1})"},
                         {"beside_fifo", R"({"file_descriptor":1})"},
                         {"stream", R"({"file_descriptor":1,"host_heap":1})"},
                         {"directory", R"({"file_descriptor":1,"host_heap":1})"},
                         {"thread", R"({"thread":1})"},
                         {"thread_of_c", R"({"thread":1})"},
                         {"own_space", R"({"dlopen_reference":1})"},
                         {"mapped", R"({"host_mapping":1})"},
                         {"moved", R"({"host_mapping":1})"},
                         {"partly_mapped", R"({"host_mapping":1})"}};

class Ways : public ::testing::TestWithParam<Way> {};

TEST_P(Ways, OneLostPerCycleIsGrowthOfExactlyOne) {
  const Audit audit = RunAudit({"cycles", "--n", "1,10"}, {Program("host_kind"), GetParam().name, "{n}"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["per_cycle"].dump(), GetParam().per_cycle) << audit.findings();
  for (const nlohmann::json& finding : audit.report["findings"]) {
    const std::string_view way = GetParam().name;
    if (way == "system_call" || way.starts_with("beside_")) {
      EXPECT_EQ(finding["acquired"]["call"], "(no wrapped function, nobody knows where)");
      EXPECT_TRUE(finding["acquired"].value("stack", nlohmann::json::array()).empty()) << "where it was found is not where it was opened";
      continue;
    }
    EXPECT_THAT(finding["acquired"]["stack"].dump(), ::testing::HasSubstr("\"" + std::string(way) + "\""));
  }
}

TEST_P(Ways, NoneLostIsSilence) {
  const Audit audit = RunAudit({"cycles", "--n", "1,10"}, {Program("host_kind"), GetParam().name, "{n}", "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "");
}

INSTANTIATE_TEST_SUITE_P(Every, Ways, ::testing::ValuesIn(kWays), [](const auto& test) { return std::string(test.param.name); });

// The program's own marks instead of two processes.
TEST(MarkedCycles, OneLostPerCycleIsGrowthOfExactlyOne) {
  for (const Way& way : kWays) {
    const std::string_view name = way.name;
    if (name != "host_heap" && name != "system_call" && name != "beside_accept" && name != "stream" && name != "thread" &&
        name != "partly_mapped")
      continue;
    const Audit audit = RunAudit({"cycles"}, {Program("host_kind"), way.name, "10"});
    ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
    EXPECT_EQ(audit.report["per_cycle"].dump(), way.per_cycle) << audit.findings();
  }
}

TEST(WayList, TheProgramHasNoWayThatIsNotTestedHere) {
  const CommandResult run =
      RunCommand({Program("host_kind"), "--list"}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=driver=sim"}});
  EXPECT_EQ(run.exit, 0) << run.err;
  std::vector<std::string> names;
  for (const Way& way : kWays) names.emplace_back(way.name);
  names.emplace_back("data_segment");  // no kind of object: growth_test.cc
  EXPECT_THAT(Words(run.out), ::testing::UnorderedElementsAreArray(names));
}

TEST(WayList, EveryKindOfTheHostIsLostInSomeWay) {
  for (const std::string kind : kHostKinds) {
    const std::string loss = "{\"" + kind + "\":1}";
    EXPECT_TRUE(std::any_of(std::begin(kWays), std::end(kWays), [&](const Way& way) { return way.per_cycle == loss; })) << kind;
  }
}

struct Beside {
  const char* sanitizer;
  Way way;
};

void PrintTo(const Beside& beside, std::ostream* out) { *out << beside.sanitizer << ' ' << beside.way.name; }

// LeakSanitizer stands in for the heap and for threads only.
std::vector<Beside> EverySanitizer() {
  constexpr std::string_view kHeap[] = {"host_heap", "thread"};
  constexpr std::string_view kMore[] = {"library", "opened", "stream", "mapped"};
  std::vector<Beside> all;
  for (const char* const sanitizer : {"address_gcc", "address_clang", "leak_gcc", "leak_clang"}) {
    const bool address = std::string_view(sanitizer).starts_with("address");
    for (const Way& way : kWays) {
      const bool heap = std::find(std::begin(kHeap), std::end(kHeap), way.name) != std::end(kHeap);
      const bool more = std::find(std::begin(kMore), std::end(kMore), way.name) != std::end(kMore);
      if (heap || (address && more)) all.push_back({sanitizer, way});
    }
  }
  return all;
}

class SanitizedHost : public ::testing::TestWithParam<Beside> {
 protected:
  void SetUp() override {
#ifdef CUAUDIT_INSTRUMENTED
    GTEST_SKIP() << "the whole build is instrumented";
#endif
    program_ = Program(std::string("host_kind_") + GetParam().sanitizer);
    if (!std::filesystem::exists(program_)) GTEST_SKIP() << program_ << " could not be built";
  }
  std::string program_;
};

TEST_P(SanitizedHost, LosesAreFoundAndNothingElse) {
  const Audit leaking = RunAudit({"cycles", "--n", "1,10"}, {program_, GetParam().way.name, "{n}"}, kQuietly);
  ASSERT_FALSE(leaking.report.is_null()) << leaking.outcome.err;
  if (std::string_view(GetParam().way.name) == "thread") {
    // A thread that nobody joins may still be starting when the process ends, and the sanitizer then holds a block for it.
    EXPECT_EQ(leaking.report["per_cycle"]["thread"], 1) << leaking.findings();
  } else {
    EXPECT_EQ(leaking.report["per_cycle"].dump(), GetParam().way.per_cycle) << leaking.findings();
  }
  const Audit clean = RunAudit({"cycles", "--n", "1,10"}, {program_, GetParam().way.name, "{n}", "clean"}, kQuietly);
  EXPECT_EQ(clean.outcome.exit, 0) << clean.outcome.err;
  EXPECT_EQ(clean.findings(), "");
}

INSTANTIATE_TEST_SUITE_P(Every, SanitizedHost, ::testing::ValuesIn(EverySanitizer()),
                         [](const auto& test) { return std::string(test.param.sanitizer) + "_" + test.param.way.name; });

// LeakSanitizer looks once, at the end, and a block that is still reachable is no leak to it.
TEST(LeakSanitizer, IsSilentWhereReachableBlocksGrow) {
#ifdef CUAUDIT_INSTRUMENTED
  GTEST_SKIP() << "the whole build is instrumented";
#endif
  const std::string program = Program("host_kind_address_gcc");
  if (!std::filesystem::exists(program)) GTEST_SKIP() << program << " could not be built";
  const Audit audit = RunAudit({"cycles", "--n", "1,10"}, {program, "host_heap", "{n}"});  // its own look for leaks is on
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "growth host_heap 1");
}

struct Path {
  const char* way;
  const char* findings;
};

void PrintTo(const Path& path, std::ostream* out) { *out << path.way; }

constexpr Path kPaths[] = {{"zone", ""},
                           {"optional", ""},
                           {"itself", ""},
                           {"redirects", ""},
                           {"users", ""},
                           {"self_detached", ""},
                           {"local_time", ""},
                           {"locale", ""},
                           {"message", ""},
                           {"convert", ""},
                           {"user", ""},
                           {"log_line", ""},
                           {"print", ""},
                           {"errors", ""},
                           {"trace", ""},
                           {"addresses", ""},
                           {"buffers", ""},
                           {"joined", ""},
                           {"helper", ""},
                           {"duplicate", "leak host_heap 1"},
                           {"format", "leak host_heap 1"},
                           {"line", "leak host_heap 1"},
                           {"resolve", "leak host_heap 1"},
                           {"own_locale", "leak host_heap 1"},
                           {"stream", "leak file_descriptor 1, leak host_heap 1"},
                           {"directory", "leak file_descriptor 1, leak host_heap 1"},
                           {"descriptor", "leak file_descriptor 1"},
                           {"unseen_descriptor", "leak file_descriptor 1"},
                           {"thread", "leak thread 1"},
                           {"mapping", "leak host_mapping 1"},
                           {"library", "leak dlopen_reference 1"},
                           {"mutex", "leak mutex 1"}};

class FailingPath : public ::testing::TestWithParam<Path> {};

std::string FindingsOf(const std::string& program, const Path& path) {
  const Audit audit = RunAudit({"replay", "--host", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {program, path.way}, kQuietly);
  EXPECT_FALSE(audit.report.is_null()) << audit.outcome.err;
  return audit.findings();
}

TEST_P(FailingPath, LosesWhatItWasHandedAndNotWhatTheCLibraryKeeps) {
  EXPECT_EQ(FindingsOf(Program("host_path"), GetParam()), GetParam().findings);
}

INSTANTIATE_TEST_SUITE_P(Every, FailingPath, ::testing::ValuesIn(kPaths), [](const auto& test) { return std::string(test.param.way); });

// What a sweep looks at by itself: all but heap blocks. It shows what it saw, and judges the driver's objects only.
class PlainSweep : public ::testing::TestWithParam<Path> {};

// As Audit::findings says it, of the notes of one rule; each once, whatever faults it followed.
std::string Notes(const Audit& audit, const std::string& rule) {
  std::set<std::string> notes;
  for (const nlohmann::json& note : audit.report["notes"]) {
    if (note["rule"] == rule) notes.insert(note["kind"].get<std::string>() + " " + note["count"].dump());
  }
  std::string line;
  for (const std::string& note : notes) line += (line.empty() ? "leak " : ", leak ") + note;
  return line;
}

TEST_P(PlainSweep, ShowsWhatEachTrialLosesButBlocksAndFindsItWhenAsked) {
  std::string expected = GetParam().findings;
  for (const std::string_view block : {", leak host_heap 1", "leak host_heap 1"}) {
    if (const std::size_t at = expected.find(block); at != std::string::npos) expected.erase(at, block.size());
  }
  const Audit shows = RunAudit({"sweep"}, {Program("host_path"), GetParam().way}, kQuietly);
  EXPECT_EQ(shows.findings(), "") << shows.outcome.err;
  EXPECT_EQ(Notes(shows, "host_left"), expected);
  EXPECT_EQ(shows.outcome.exit, 0) << shows.outcome.err;
  const Audit mended = RunAudit({"sweep"}, {Program("host_path"), GetParam().way, "back"}, kQuietly);
  EXPECT_EQ(Notes(mended, "host_left"), "");
  EXPECT_EQ(mended.outcome.exit, 0) << mended.outcome.err;
  const Audit blind = RunAudit({"sweep", "--no-host"}, {Program("host_path"), GetParam().way}, kQuietly);
  EXPECT_EQ(blind.verdicts(), shows.verdicts());
  // A thread that nobody waits for may be there still at the next fault, and then there is no fork.
  if (std::string_view(GetParam().way) != "thread" && std::string_view(GetParam().way) != "self_detached") {
    EXPECT_EQ(blind.report["totals"]["isolation"], shows.report["totals"]["isolation"]);
  }
  const Audit asked = RunAudit({"sweep", "--depth", "1", "--host"}, {Program("host_path"), GetParam().way}, kQuietly);
  EXPECT_EQ(asked.findings(), GetParam().findings) << asked.outcome.err;
  EXPECT_EQ(asked.outcome.exit, std::string_view(GetParam().findings).empty() ? 0 : 1) << asked.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Every, PlainSweep, ::testing::ValuesIn(kPaths), [](const auto& test) { return std::string(test.param.way); });

// A cache behind a function that the sanitizer stands in for, one behind another, and blocks that are handed out by both.
TEST(FailingPathBesideASanitizer, LosesTheSame) {
#ifdef CUAUDIT_INSTRUMENTED
  GTEST_SKIP() << "the whole build is instrumented";
#endif
  for (const char* const name : {"host_path_address_gcc", "host_path_address_clang"}) {
    if (!std::filesystem::exists(Program(name))) GTEST_SKIP() << name << " could not be built";
    for (const Path& path : kPaths) {
      const std::string_view way = path.way;
      if (way != "local_time" && way != "zone" && way != "user" && way != "duplicate" && way != "format" && way != "stream") continue;
      EXPECT_EQ(FindingsOf(Program(name), path), path.findings) << name << ' ' << way;
    }
  }
}

}  // namespace
}  // namespace cuaudit::e2e::kinds_test
