// SPDX-License-Identifier: MIT
#include "harness/process/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace cuaudit::harness::environment_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

LaunchOptions Sample() {
  LaunchOptions options;
  options.drop_in_dir = "/opt/cuaudit/lib";
  return options;
}

TEST(Environment, OrdersNameJournalDriverScopeStacksAndFaults) {
  LaunchOptions options = Sample();
  const std::vector<std::string> faults = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#2=OUT_OF_MEMORY,after"};
  EXPECT_EQ(OptionsText(options, "/tmp/j", faults),
            "journal=/tmp/j;driver=sim;scope=pinned;host=none;fault=cuInit#1=INVALID_VALUE,refuse;fault=cuMemAlloc#2=OUT_OF_MEMORY,after");
  options.world = "schedule=fifo;devices=2";
  EXPECT_EQ(OptionsText(options, "/tmp/j", {}), "journal=/tmp/j;driver=sim;scope=pinned;host=none;schedule=fifo;devices=2");
  options.world.clear();
  options.driver = DriverChoice::Genuine;
  options.real_driver = "/usr/lib/libcuda.so.1";
  options.pinned_scope = false;
  options.stack_depth = 0;
  EXPECT_EQ(OptionsText(options, "/tmp/j", {}), "journal=/tmp/j;driver=real;real_driver=/usr/lib/libcuda.so.1;scope=process;host=none");
}

TEST(Environment, PutsTheDropInBeforeTheUsersOwn) {
  const std::vector<std::string> base = {"HOME=/h", "LD_LIBRARY_PATH=/a:/b", "LD_PRELOAD=/x.so"};
  EXPECT_THAT(MakeEnvironment(Sample(), "", "journal=/j", base),
              ElementsAre("HOME=/h", "LD_LIBRARY_PATH=/opt/cuaudit/lib:/a:/b", "LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1:/x.so",
                          "CUAUDIT_OPTIONS=journal=/j"));
}

TEST(Environment, LeavesNoEmptyEntries) {
  EXPECT_THAT(MakeEnvironment(Sample(), "", "o", std::vector<std::string>{"LD_PRELOAD=", "CUAUDIT_OPTIONS="}),
              ElementsAre("LD_LIBRARY_PATH=/opt/cuaudit/lib", "LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1", "CUAUDIT_OPTIONS=o"));
}

TEST(Environment, OwnRuntimeServesTheSimulatedDriverOnly) {
  LaunchOptions options = Sample();
  options.cudart_dir = "/opt/cuaudit/lib/cudart";
  const std::vector<std::string> base = {"LD_LIBRARY_PATH=/a"};
  EXPECT_THAT(MakeEnvironment(options, "", "", base), Contains("LD_LIBRARY_PATH=/opt/cuaudit/lib:/opt/cuaudit/lib/cudart:/a"));
  options.driver = DriverChoice::Genuine;
  EXPECT_THAT(MakeEnvironment(options, "", "", base), Contains("LD_LIBRARY_PATH=/opt/cuaudit/lib:/a"));
}

TEST(Environment, PreloadsTheOwnRuntimeThatTheProgramNames) {
  LaunchOptions options = Sample();
  options.cudart = "/opt/cuaudit/lib/cudart/libcudart.so.13";
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1:/opt/cuaudit/lib/cudart/libcudart.so.13"));
  options.driver = DriverChoice::Genuine;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}), Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1"));
}

TEST(Environment, PreloadsTheHostProbesThatWereAskedFor) {
  LaunchOptions options = Sample();
  EXPECT_THAT(MakeEnvironment(options, "", "", {}), Not(Contains(HasSubstr("libcuaudit_host"))));
  options.host_probes = HostProbes::Heap;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuaudit_host.so:/opt/cuaudit/lib/libcuda.so.1"));
  EXPECT_THAT(OptionsText(options, "/j", {}), HasSubstr(";host=heap"));
  options.host_probes = HostProbes::Basic;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuaudit_host_basic.so:/opt/cuaudit/lib/libcuda.so.1"));
  EXPECT_THAT(OptionsText(options, "/j", {}), HasSubstr(";host=basic"));
}

TEST(Environment, PutsAddressSanitizerFirst) {
  EXPECT_THAT(MakeEnvironment(Sample(), "libasan.so.8", "", {}),
              Contains(StartsWith("LD_PRELOAD=libasan.so.8:/opt/cuaudit/lib/libcuda.so.1")));
}

TEST(Environment, RefusesAPathThatTheLoaderWouldSplit) {
  EXPECT_TRUE(CheckDropInPath("/opt/cuaudit/lib").ok());
  for (const char* const path : {"/opt/cu audit/lib", "/opt/cu:audit", "/opt/cu;audit"}) {
    const Status status = CheckDropInPath(path);
    EXPECT_EQ(status.exit(), Exit::Environment) << path;
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(Environment, RefusesOrdersOfTheUsersOwn) {
  ASSERT_EQ(setenv("CUAUDIT_OPTIONS", "", 1), 0);
  EXPECT_TRUE(CurrentEnvironment().ok());
  ASSERT_EQ(setenv("CUAUDIT_OPTIONS", "driver=sim", 1), 0);
  EXPECT_EQ(CurrentEnvironment().status().exit(), Exit::Usage);
  unsetenv("CUAUDIT_OPTIONS");
}

}  // namespace
}  // namespace cuaudit::harness::environment_test
