// SPDX-License-Identifier: MIT
// The caching allocator's own snapshots: random work on the simulated driver, told to a history from the first call on, and read by the
// independent reader, which replays the trace backwards from the segments as the viewer does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/observe/snapshot_pickle.h"
#include "allocator/settings.h"
#include "suites/support/sim_world.h"

namespace cuaudit::alloc::snapshot_test {
namespace {

struct Case {
  const char* name;
  const char* settings;
};

class Snapshots : public testing::TestWithParam<Case> {
 protected:
  Snapshots() : sim_({.device_bytes = std::uint64_t{1} << 30, .schedule = sim::Schedule::Random}) {
    std::string error;
    EXPECT_TRUE(ParseSettings(GetParam().settings, &settings_, &error)) << error;
    const DeviceConfig device = {.device = 0};
    EXPECT_OK(Allocator::Create(sim_.d, &device, 1, settings_.options, &allocator_));
    EXPECT_OK(history_.Start({.max_entries = 1U << 14, .max_stacks = 64, .stacks = StackLevel::Alloc}));
    allocator_->SetTracer(history_.tracer());
    for (CUstream& stream : stream_) EXPECT_OK(sim_.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Snapshots() override {
    for (const CUdeviceptr block : live_) EXPECT_OK(allocator_->Free(block));
    allocator_->SetTracer({});
    EXPECT_OK(allocator_->Close());
  }

  void Work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t choice = random_() % 100;
      if (choice < 45 || live_.empty()) {
        const std::size_t top = std::size_t{1} << (9 + random_() % 15);
        CUdeviceptr block = 0;
        EXPECT_OK(allocator_->Allocate(0, top + random_() % top, stream_[random_() % 3], &block));
        live_.push_back(block);
      } else if (choice < 85) {
        const std::size_t at = random_() % live_.size();
        if (choice < 60) {
          const CUstream user = stream_[random_() % 3];
          EXPECT_OK(sim_.d.MemsetD8Async(live_[at], 1, 64, user));
          EXPECT_OK(allocator_->RecordUse(live_[at], user));
        } else if (choice < 65) {
          EXPECT_OK(allocator_->RecordStream(live_[at], stream_[random_() % 3]));
        }
        EXPECT_OK(allocator_->Free(live_[at]));
        live_[at] = live_.back();
        live_.pop_back();
      } else if (choice < 97) {
        EXPECT_OK(sim_.d.StreamSynchronize(stream_[random_() % 3]));
      } else {
        EXPECT_OK(allocator_->EmptyCache());
      }
    }
  }

  // For the reader, which is started once for all of them: a process each would take most of the time.
  void Save(int round) {
    Snapshot snapshot;
    EXPECT_OK(allocator_->TakeSnapshot(&snapshot));
    EXPECT_FALSE(snapshot.segments.empty());
    const std::string path = directory_ + "/" + GetParam().name + std::to_string(round);
    const SnapshotDocument document = {
        .snapshot = &snapshot, .history = &history_, .device_count = 1, .settings = SettingsForSnapshot(settings_)};
    EXPECT_EQ(SaveSnapshot(document, path), "");
    ++saved_;
  }

  static void SetUpTestSuite() {
    directory_ = testing::TempDir() + "cuaudit_snapshot_test_XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  static void TearDownTestSuite() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory_)) ++count;
    EXPECT_EQ(count, saved_);
    std::string said;
    // Appended: GCC 12 warns of std::string's own copying where a chain of `+` begins with a literal, and warnings are errors.
    std::string command = CUAUDIT_PYTHON " " CUAUDIT_READ_SNAPSHOT " ";
    command.append(directory_).append("/* 2>&1");
    std::FILE* const reader = ::popen(command.c_str(), "r");
    ASSERT_NE(reader, nullptr);
    char line[512];
    while (std::fgets(line, sizeof(line), reader) != nullptr) said += line;
    EXPECT_EQ(::pclose(reader), 0);
    EXPECT_EQ(said, "") << "the reader's words";
    std::filesystem::remove_all(directory_);
  }
  static std::string directory_;
  static std::size_t saved_;

  sim::Simulated sim_;
  Settings settings_;
  History history_;
  std::unique_ptr<Allocator> allocator_;
  CUstream stream_[3] = {};
  std::vector<CUdeviceptr> live_;
  std::mt19937_64 random_{5};
};

std::string Snapshots::directory_;
std::size_t Snapshots::saved_ = 0;

TEST_P(Snapshots, OpenWhateverWasDone) {
  for (int round = 0; round < 3; ++round) {
    Work(160);
    Save(round);
  }
  EXPECT_EQ(history_.overflowed(), 0U);
  std::vector<int> seen(kTraceActions);
  for (const HistoryEntry& entry : history_.Copy()) ++seen[static_cast<std::size_t>(entry.event.action)];
  for (const TraceAction action : {TraceAction::Alloc, TraceAction::FreeRequested, TraceAction::FreeCompleted, TraceAction::UseRecorded}) {
    EXPECT_GT(seen[static_cast<std::size_t>(action)], 10) << static_cast<int>(action);
  }
  if (settings_.options.deterministic) {  // else uses are over by the time somebody looks
    EXPECT_GT(seen[static_cast<std::size_t>(TraceAction::UseWaited)], 0);
  }
}

TEST_P(Snapshots, SumsAreThoseOfTheStatistics) {
  CUdeviceptr block = 0;
  EXPECT_OK(allocator_->Allocate(0, 4 << 20, stream_[0], &block));
  EXPECT_OK(sim_.d.StreamSynchronize(stream_[0]));
  EXPECT_OK(sim_.d.MemsetD8Async(block, 1, 4 << 20, stream_[1]));
  EXPECT_OK(allocator_->RecordUse(block, stream_[1]));
  Snapshot snapshot;
  EXPECT_OK(allocator_->TakeSnapshot(&snapshot));
  std::size_t active = 0;
  std::size_t total = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    active += segment.active_size;
    total += segment.total_size;
  }
  Statistics statistics;
  allocator_->GetStatistics(0, &statistics);
  EXPECT_EQ(static_cast<std::int64_t>(active), statistics.active_bytes[0].current);
  EXPECT_EQ(static_cast<std::int64_t>(total), statistics.reserved_bytes[0].current);
  EXPECT_OK(allocator_->Free(block));
}

INSTANTIATE_TEST_SUITE_P(All, Snapshots,
                         testing::Values(Case{"Poll", "policy:poll"}, Case{"Wait", "policy:wait"},
                                         Case{"Bare", "policy:poll,thread_cache:False"},
                                         Case{"Deterministic", "policy:wait,deterministic:True,cross_stream:wait"},
                                         Case{"Expandable", "expandable_segments:True"}, Case{"Writes", "completion:stream_writes"}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace cuaudit::alloc::snapshot_test
