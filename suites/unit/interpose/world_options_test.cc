// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/interpose/world_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cuaudit::faults::world_options_test {
namespace {

using sim::Schedule;
using ::testing::HasSubstr;

std::string Formatted(const WorldRequest& request, std::uint64_t memory) {
  char text[kMaxWorldText];
  return {text, FormatWorld(request, memory, text, sizeof(text))};
}

TEST(WorldOptions, TakesEveryKey) {
  WorldRequest request;
  EXPECT_EQ(request.given, nullptr);
  EXPECT_EQ(SetWorldOption("devices", "8", &request), nullptr);
  EXPECT_EQ(SetWorldOption("schedule", "adversarial", &request), nullptr);
  EXPECT_EQ(SetWorldOption("device_memory", "64MiB", &request), nullptr);
  EXPECT_EQ(SetWorldOption("seed", "18446744073709551615", &request), nullptr);
  EXPECT_EQ(request.world.device_count, 8);
  EXPECT_EQ(request.world.schedule, Schedule::Adversarial);
  EXPECT_EQ(request.device_memory, std::uint64_t{64} << 20);
  EXPECT_EQ(request.world.seed, ~std::uint64_t{0});
  EXPECT_STREQ(request.given, "devices");
}

TEST(WorldOptions, KnowsSizes) {
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"65536KiB", std::uint64_t{64} << 20}, {"2GiB", std::uint64_t{2} << 30}, {"67108865", (std::uint64_t{64} << 20) + 1}};
  for (const auto& [text, bytes] : sizes) {
    WorldRequest request;
    EXPECT_EQ(SetWorldOption("device_memory", text, &request), nullptr) << text;
    EXPECT_EQ(request.device_memory, bytes) << text;
  }
  for (const char* const wrong : {"", "MiB", "64mib", "64MB", "64 MiB", "64MiBMiB", "63MiB", "1025GiB", "-64MiB", "0x4000000",
                                  "18446744073709551616", "18014398509481984KiB", "64.5MiB"}) {
    WorldRequest request;
    EXPECT_NE(SetWorldOption("device_memory", wrong, &request), nullptr) << wrong;
    EXPECT_EQ(request.device_memory, 0U) << wrong;
    EXPECT_EQ(request.given, nullptr) << wrong;
  }
}

TEST(WorldOptions, RefusesWhatIsNoSchedule) {
  for (const char* const wrong :
       {"", "Lazy", "random", "random:", "random:x", "random:1 ", "random:-1", "random:18446744073709551616", "fifo:3", "quick"}) {
    WorldRequest request;
    const char* const expected = SetWorldOption("schedule", wrong, &request);
    ASSERT_NE(expected, nullptr) << wrong;
    EXPECT_THAT(expected, HasSubstr("random:SEED")) << wrong;
  }
}

TEST(WorldOptions, RefusesOtherNumbers) {
  for (const char* const wrong : {"", "0", "9", "-1", "1.5", "two"}) {
    WorldRequest request;
    EXPECT_NE(SetWorldOption("devices", wrong, &request), nullptr) << wrong;
  }
  WorldRequest request;
  EXPECT_NE(SetWorldOption("seed", "1x", &request), nullptr);
}

TEST(WorldOptions, KnowsProfilesByName) {
  WorldRequest request;
  EXPECT_EQ(SetWorldOption("profile", "small", &request), nullptr);
  EXPECT_STREQ(request.world.profile, "small");
  EXPECT_STREQ(SetWorldOption("profile", "a100", &request), "h200 or small");
  EXPECT_STREQ(request.world.profile, "small");
}

TEST(WorldOptions, WhatIsUndefinedIsAnErrorUnlessItIsToCrash) {
  WorldRequest request;
  EXPECT_EQ(request.world.undefined, sim::OnUndefined::Error);
  for (const char* const wrong : {"", "Crash", "abort", "crash "})
    EXPECT_STREQ(SetWorldOption("undefined", wrong, &request), "error or crash");
  EXPECT_EQ(request.given, nullptr);
  EXPECT_EQ(SetWorldOption("undefined", "crash", &request), nullptr);
  EXPECT_EQ(request.world.undefined, sim::OnUndefined::Crash);
  EXPECT_STREQ(request.given, "undefined");
  EXPECT_EQ(Formatted(request, std::uint64_t{8} << 30),
            "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1;undefined=crash");
  EXPECT_EQ(SetWorldOption("undefined", "error", &request), nullptr);
  EXPECT_EQ(Formatted(request, std::uint64_t{8} << 30), "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1");
}

TEST(WorldOptions, OneSeedInEitherOrder) {
  WorldRequest first;
  EXPECT_EQ(SetWorldOption("seed", "3", &first), nullptr);
  EXPECT_NE(SetWorldOption("schedule", "random:7", &first), nullptr);
  WorldRequest second;
  EXPECT_EQ(SetWorldOption("schedule", "random:7", &second), nullptr);
  EXPECT_NE(SetWorldOption("seed", "3", &second), nullptr);
  EXPECT_EQ(second.world.seed, 7U);
}

TEST(WorldOptions, KernelsAreAnAbsolutePath) {
  for (const std::string& wrong : {std::string(), std::string("kernels.so"), std::string("/a;b.so"), "/" + std::string(1023, 'k')}) {
    WorldRequest request;
    EXPECT_NE(SetWorldOption("kernels", wrong, &request), nullptr) << wrong;
    EXPECT_STREQ(request.kernels, "") << wrong;
  }
  const std::string longest = "/" + std::string(1022, 'k');
  WorldRequest request;
  EXPECT_EQ(SetWorldOption("kernels", longest, &request), nullptr);
  EXPECT_STREQ(request.given, "kernels");
  EXPECT_EQ(Formatted(request, std::uint64_t{8} << 30),
            "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1;kernels=" + longest);
}

TEST(WorldOptions, TextIsReadBack) {
  WorldRequest plain;
  EXPECT_EQ(Formatted(plain, std::uint64_t{8} << 30), "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1");
  WorldRequest random;
  ASSERT_EQ(SetWorldOption("schedule", "random:9", &random), nullptr);
  EXPECT_EQ(Formatted(random, 100000001), "schedule=random:9;devices=1;device_memory=100000001;profile=h200");
}

}  // namespace
}  // namespace cuaudit::faults::world_options_test
