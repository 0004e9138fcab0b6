// SPDX-License-Identifier: MIT
// Faults as text, and what a plan of them decides.
#include "faults/plan/plan.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"

namespace cuaudit::faults::plan_test {
namespace {

std::string Format(const Fault& fault) {
  char text[kMaxFaultText];
  const std::size_t length = FormatFault(fault, text, sizeof(text));
  EXPECT_LT(length, sizeof(text));
  return text;
}

TEST(FaultText, ParsesTheDesignsExample) {
  Fault fault;
  const ParseError error = ParseFault("cuStreamCreateWithPriority#1@init=OUT_OF_MEMORY,refuse", &fault);
  ASSERT_EQ(error.expected, nullptr) << error.expected;
  EXPECT_EQ(fault.base, driver::BaseId::StreamCreateWithPriority);
  EXPECT_EQ(fault.occurrence, 1u);
  EXPECT_EQ(fault.phase, Phase::Init);
  EXPECT_EQ(fault.code, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(fault.how, How::Refuse);
}

TEST(FaultText, EveryCallCodePhaseAndHowRoundTrips) {
  std::size_t tried = 0;
  for (std::size_t i = 0; i < driver::kBaseCount; ++i) {
    const driver::BaseId base = static_cast<driver::BaseId>(i);
    for (const CUresult code : driver::LegalCodes(base)) {
      for (int phase = 0; phase <= 4; ++phase) {
        for (const How how : {How::Refuse, How::RefuseGarbage, How::After, How::Persist, How::Burst}) {
          const Fault fault{base, 17, static_cast<Phase>(phase), code, how, how == How::Burst ? 3u : 1u};
          Fault parsed;
          const std::string text = Format(fault);
          ASSERT_EQ(ParseFault(text, &parsed).expected, nullptr) << text;
          ASSERT_EQ(parsed, fault) << text;
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(tried, 10'000u);
}

TEST(FaultText, ASiteRoundTripsWithAndWithoutPhase) {
  for (const char* const text : {"cuMemAlloc@site=0123456789abcdef#2=OUT_OF_MEMORY,refuse",
                                 "cuMemAlloc@site=ffffffffffffffff#4294967295@unwind=OUT_OF_MEMORY,refuse,burst=4294967295",
                                 "cuMemFree@site=0123456789abcdef#+2=INVALID_CONTEXT,after"}) {
    Fault fault;
    ASSERT_EQ(ParseFault(text, &fault).expected, nullptr) << text;
    EXPECT_NE(fault.site, 0u);
    EXPECT_EQ(fault.follows, std::string_view(text).find('+') != std::string_view::npos);
    EXPECT_EQ(Format(fault), text);
  }
}

TEST(FaultText, IsTakenApartInWords) {
  const auto words = [](std::string_view text) {
    const FaultWords of = WordsOf(text);
    return std::vector<std::string_view>{of.call, of.where, of.code, of.how};
  };
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(words("cuMemAlloc#2=OUT_OF_MEMORY,refuse"), (Words{"cuMemAlloc", "#2", "OUT_OF_MEMORY", "refuse"}));
  EXPECT_EQ(words("cuMemAlloc@site=8c1f0be3a5d29e47#+1=OUT_OF_MEMORY,refuse,burst=3"),
            (Words{"cuMemAlloc", "@site=8c1f0be3a5d29e47#+1", "OUT_OF_MEMORY", "refuse,burst=3"}));
  EXPECT_EQ(words("cuMemAlloc#2@init=OUT_OF_MEMORY"), (Words{"cuMemAlloc", "#2@init", "OUT_OF_MEMORY", ""}));
  EXPECT_EQ(words("malloc#3=host_oom"), (Words{"malloc", "#3", "OUT_OF_MEMORY", "host_oom"})) << "as reports have it";
  EXPECT_EQ(words("cuMemAlloc#2"), (Words{"cuMemAlloc", "#2", "", ""}));
  EXPECT_EQ(words(""), (Words{"", "", "", ""}));
}

TEST(FaultText, ASiteIsSixteenLowerCaseDigitsAndNeverZero) {
  for (const char* const text : {"cuMemAlloc@site=#2=OUT_OF_MEMORY", "cuMemAlloc@site=123#2=OUT_OF_MEMORY",
                                 "cuMemAlloc@site=0000000000000000#2=OUT_OF_MEMORY", "cuMemAlloc@site=0123456789ABCDEF#2=OUT_OF_MEMORY",
                                 "cuMemAlloc@site=0123456789abcdef0#2=OUT_OF_MEMORY", "cuMemAlloc@init#2=OUT_OF_MEMORY"}) {
    Fault fault;
    const ParseError error = ParseFault(text, &fault);
    EXPECT_STREQ(error.expected, "#N, or @site=HEX#N with 16 digits") << text;
    EXPECT_EQ(error.column, 11u) << text;
  }
}

TEST(FaultText, ACountFromTheFaultBeforeItIsACountToo) {
  for (const char* const text :
       {"cuMemFree#+0=INVALID_CONTEXT", "cuMemFree#+=INVALID_CONTEXT", "cuMemFree#++1=INVALID_CONTEXT", "malloc#+1=host_oom"}) {
    Fault fault;
    EXPECT_STREQ(ParseFault(text, &fault).expected, "a count from 1") << text;
  }
}

TEST(FaultText, HowDefaultsToRefuse) {
  Fault fault;
  ASSERT_EQ(ParseFault("cuMemAlloc#2=OUT_OF_MEMORY", &fault).expected, nullptr);
  EXPECT_EQ(Format(fault), "cuMemAlloc#2=OUT_OF_MEMORY,refuse");
}

struct Malformed {
  const char* text;
  std::size_t column;
  const char* expected;
};

TEST(FaultText, SaysWhereItIsWrongAndWhatWasExpected) {
  const Malformed cases[] = {
      {"", 1, "entry point"},
      {"cuMemAllok#1=OUT_OF_MEMORY", 1, "entry point"},
      {"cuMemAlloc_v2#1=OUT_OF_MEMORY", 1, "entry point"},
      {"cuMemAlloc", 11, "#N"},
      {"cuMemAlloc=OUT_OF_MEMORY", 11, "#N"},
      {"cuMemAlloc#0=OUT_OF_MEMORY", 12, "count"},
      {"cuMemAlloc#-1=OUT_OF_MEMORY", 12, "count"},
      {"cuMemAlloc#01=OUT_OF_MEMORY", 12, "count"},
      {"cuMemAlloc#99999999999=OUT_OF_MEMORY", 12, "count"},
      {"cuMemAlloc#1", 13, "=CODE"},
      {"cuMemAlloc#1@lunch=OUT_OF_MEMORY", 14, "phase"},
      {"cuMemAlloc#1@=OUT_OF_MEMORY", 14, "phase"},
      {"cuMemAlloc#1@any=OUT_OF_MEMORY", 14, "phase"},
      {"cuMemAlloc#1=OUT_OF_LUCK", 14, "CUDA error"},
      {"cuMemAlloc#1=SUCCESS", 14, "CUDA error"},
      {"cuMemFree#1=OUT_OF_MEMORY", 13, "documented"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,", 28, "one of"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,burts", 28, "burst, refuse,burst=K"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,burst:0", 28, "burst=K"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,sticky", 14, "loses the context"},
  };
  for (const Malformed& wrong : cases) {
    Fault fault;
    const ParseError error = ParseFault(wrong.text, &fault);
    ASSERT_NE(error.expected, nullptr) << wrong.text;
    EXPECT_EQ(error.column, wrong.column) << wrong.text;
    EXPECT_NE(std::string(error.expected).find(wrong.expected), std::string::npos) << wrong.text << ": " << error.expected;
  }
}

TEST(FaultText, EveryPrefixIsRefusedOrValidAndNeverReadPastItsEnd) {
  const std::string text = "cuLaunchKernel#12@work=LAUNCH_FAILED,refuse,burst=42";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string cut(text.data(), size);
    Fault fault;
    const ParseError error = ParseFault(cut, &fault);
    EXPECT_TRUE(error.expected == nullptr || error.column <= size + 1) << cut;
  }
}

TEST(FaultText, ShortBufferIsCutNotOverrun) {
  char text[8];
  Fault fault;
  ASSERT_EQ(ParseFault("cuMemAlloc#2=OUT_OF_MEMORY", &fault).expected, nullptr);
  EXPECT_GT(FormatFault(fault, text, sizeof(text)), sizeof(text));
  EXPECT_STREQ(text, "cuMemAl");
}

TEST(HostFault, RoundTripsAndSaysWhatItExpects) {
  for (const char* const text : {"malloc#1=host_oom", "malloc#4294967295=host_oom", "malloc#7@unwind=host_oom"}) {
    Fault fault;
    ASSERT_EQ(ParseFault(text, &fault).expected, nullptr) << text;
    EXPECT_EQ(fault.base, kHostAllocation);
    EXPECT_EQ(fault.how, How::HostOom);
    char again[kMaxFaultText];
    EXPECT_EQ(std::string_view(again, FormatFault(fault, again, sizeof(again))), text);
  }
  for (const char* const text :
       {"malloc", "malloc#0=host_oom", "malloc#1", "malloc#1=OUT_OF_MEMORY", "malloc#1=host_oom,refuse",
        "malloc@site=8c1f0be3a5d29e47#1=host_oom", "calloc#1=host_oom", "cuMemAlloc#1=host_oom", "cuMemAlloc#1=OUT_OF_MEMORY,host_oom"}) {
    Fault fault;
    EXPECT_NE(ParseFault(text, &fault).expected, nullptr) << text;
  }
}

TEST(HostFault, OfAThreadRoundTripsAndSaysWhatItExpects) {
  for (const char* const text : {"pthread_create#1=EAGAIN", "pthread_create#12@work=EAGAIN"}) {
    Fault fault;
    ASSERT_EQ(ParseFault(text, &fault).expected, nullptr) << text;
    EXPECT_EQ(fault.base, kHostThread);
    EXPECT_EQ(fault.how, How::HostThread);
    char again[kMaxFaultText];
    EXPECT_EQ(std::string_view(again, FormatFault(fault, again, sizeof(again))), text);
    EXPECT_EQ(HostFaultOf(std::string_view(text)), HostFaultOf(kHostThread));
  }
  for (const char* const text : {"pthread_create", "pthread_create#1", "pthread_create#1=host_oom", "pthread_create#1=EAGAIN,refuse",
                                 "pthread_create#1=ENOMEM", "malloc#1=EAGAIN", "thrd_create#1=EAGAIN"}) {
    Fault fault;
    EXPECT_NE(ParseFault(text, &fault).expected, nullptr) << text;
  }
  EXPECT_EQ(HostFaultOf(std::string_view("cuMemAlloc#1=OUT_OF_MEMORY")), nullptr);
  EXPECT_EQ(HostFaultOf(std::string_view("")), nullptr);
}

TEST(HostFault, HitsOnceAndNoDriverCall) {
  Fault fault;
  for (const char* const text : {"malloc#3=host_oom", "pthread_create#3=EAGAIN"}) {
    ASSERT_EQ(ParseFault(text, &fault).expected, nullptr);
    for (std::uint32_t matching = 1; matching < 6; ++matching) {
      EXPECT_EQ(Plan::Decide(fault, matching).code != CUDA_SUCCESS, matching == 3) << matching;
    }
    Plan plan;
    ASSERT_TRUE(plan.Add(fault));
    for (std::size_t base = 0; base < driver::kBaseCount; ++base) EXPECT_FALSE(plan.Names(static_cast<driver::BaseId>(base)));
  }
}

Fault Parsed(const char* text) {
  Fault fault;
  EXPECT_EQ(ParseFault(text, &fault).expected, nullptr) << text;
  return fault;
}

TEST(Fault, BytesFromAFileAreAFaultWhenTheyHaveAText) {
  for (const char* const text : {"cuMemAlloc#1=OUT_OF_MEMORY", "cuMemAlloc@site=8c1f0be3a5d29e47#2@unwind=OUT_OF_MEMORY,refuse,burst=3",
                                 "cuMemAlloc@site=8c1f0be3a5d29e47#+4294967295=ILLEGAL_ADDRESS,sticky",
                                 "cuCtxSynchronize#1=ILLEGAL_ADDRESS,after", "malloc#3@work=host_oom", "pthread_create#2=EAGAIN"}) {
    EXPECT_TRUE(IsWellFormed(Parsed(text))) << text;
  }
}

TEST(Fault, BytesFromAFileAreNoFaultWhenOneOfThemHasNoText) {
  const auto differs = [](const char* text, auto change) {
    Fault fault = Parsed(text);
    change(&fault);
    return !IsWellFormed(fault);
  };
  const auto with = [&differs](std::size_t offset, unsigned char byte) {
    return differs("cuMemAlloc#1=OUT_OF_MEMORY", [&](Fault* fault) { std::memcpy(reinterpret_cast<char*>(fault) + offset, &byte, 1); });
  };
  EXPECT_TRUE(with(offsetof(Fault, follows), 255));
  EXPECT_TRUE(with(offsetof(Fault, how), static_cast<unsigned char>(How::Sticky) + 1)) << "a way of the host's";
  EXPECT_TRUE(with(offsetof(Fault, how), static_cast<unsigned char>(How::HostThread) + 1));
  EXPECT_TRUE(with(offsetof(Fault, phase), static_cast<unsigned char>(Phase::Unwind) + 1));
  EXPECT_TRUE(with(offsetof(Fault, base) + 1, 0x7f));
  EXPECT_TRUE(with(offsetof(Fault, code), CUDA_SUCCESS));
  EXPECT_TRUE(with(offsetof(Fault, code) + 2, 1)) << "a number beyond CUresult's";
  EXPECT_TRUE(with(offsetof(Fault, code) + 3, 0x80));
  EXPECT_TRUE(with(offsetof(Fault, occurrence), 0));
  EXPECT_TRUE(with(offsetof(Fault, burst), 0));
  EXPECT_TRUE(with(offsetof(Fault, burst), 2)) << "only a burst has a length";
  EXPECT_TRUE(differs("cuMemAlloc#1=OUT_OF_MEMORY,refuse,burst=2", [](Fault* fault) { fault->burst = 0; }));
  EXPECT_TRUE(differs("cuMemAlloc#1=OUT_OF_MEMORY", [](Fault* fault) { fault->code = CUDA_ERROR_NOT_PERMITTED; })) << "not its own";
  EXPECT_TRUE(differs("cuMemAlloc#1=OUT_OF_MEMORY", [](Fault* fault) { fault->how = How::Sticky; })) << "that loses no context";
  for (const char* const host : {"malloc#1=host_oom", "pthread_create#1=EAGAIN"}) {
    EXPECT_TRUE(differs(host, [](Fault* fault) { fault->how = How::Refuse; })) << host;
    EXPECT_TRUE(differs(host, [](Fault* fault) { fault->code = CUDA_ERROR_INVALID_VALUE; })) << host;
    EXPECT_TRUE(differs(host, [](Fault* fault) { fault->site = 1; })) << host;
    EXPECT_TRUE(differs(host, [](Fault* fault) { fault->follows = true; })) << host;
  }
}

std::vector<std::uint32_t> Hits(How how, std::uint32_t occurrence, std::uint32_t burst = 1) {
  const Fault fault{driver::BaseId::MemAlloc, occurrence, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, how, burst};
  std::vector<std::uint32_t> hits;
  for (std::uint32_t n = 1; n <= 6; ++n) {
    if (Plan::Decide(fault, n).code != CUDA_SUCCESS) hits.push_back(n);
  }
  return hits;
}

TEST(Plan, HowDecidesWhichCallsAreHit) {
  using Calls = std::vector<std::uint32_t>;
  EXPECT_EQ(Hits(How::Refuse, 3), (Calls{3}));
  EXPECT_EQ(Hits(How::RefuseGarbage, 3), (Calls{3}));
  EXPECT_EQ(Hits(How::After, 1), (Calls{1}));
  EXPECT_EQ(Hits(How::Persist, 4), (Calls{4, 5, 6}));
  EXPECT_EQ(Hits(How::Burst, 2, 3), (Calls{2, 3, 4}));
  EXPECT_EQ(Hits(How::Sticky, 5), (Calls{5}));
  EXPECT_EQ(Hits(How::Refuse, 7), (Calls{}));
}

TEST(Plan, BurstAtTheLargestCountDoesNotWrap) {
  const Fault fault{driver::BaseId::MemAlloc, 0xfffffffeU, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Burst, 0xffffffffU};
  EXPECT_EQ(Plan::Decide(fault, 1).code, CUDA_SUCCESS);
  EXPECT_NE(Plan::Decide(fault, 0xffffffffU).code, CUDA_SUCCESS);
}

TEST(Plan, KnowsWhichCallsNeedTheirSite) {
  Plan plan;
  Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  ASSERT_TRUE(plan.Add(fault));
  EXPECT_FALSE(plan.NamesSite(driver::BaseId::MemAlloc));
  fault.site = 7;
  ASSERT_TRUE(plan.Add(fault));
  EXPECT_TRUE(plan.NamesSite(driver::BaseId::MemAlloc));
  EXPECT_FALSE(plan.NamesSite(driver::BaseId::MemFree));
}

TEST(Plan, RefusesAFirstFaultThatCountsFromTheOneBeforeIt) {
  Plan plan;
  Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  fault.follows = true;
  EXPECT_FALSE(plan.Add(fault));
  fault.follows = false;
  ASSERT_TRUE(plan.Add(fault));
  fault.follows = true;
  EXPECT_TRUE(plan.Add(fault));
}

TEST(Plan, HoldsSixteenFaultsAndRefusesMore) {
  Plan plan;
  const Fault fault{driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1};
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(plan.Add(fault));
  EXPECT_FALSE(plan.Add(fault));
  EXPECT_EQ(plan.size(), 16u);
  EXPECT_TRUE(plan.Names(driver::BaseId::MemAlloc));
  EXPECT_FALSE(plan.Names(driver::BaseId::MemFree));
}

}  // namespace
}  // namespace cuaudit::faults::plan_test
