// SPDX-License-Identifier: MIT
// Settings as text: what is read, what is refused and how, and that the written form is read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <random>

#include "allocator/settings.h"

namespace cuaudit::alloc::options_text_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

Settings Parsed(std::string_view text) {
  Settings settings;
  std::string error;
  EXPECT_TRUE(ParseSettings(text, &settings, &error)) << text << ": " << error;
  return settings;
}

TEST(SettingsText, EmptyIsTheDefaults) {
  EXPECT_EQ(FormatSettings(Parsed("")), FormatSettings(Settings()));
  EXPECT_EQ(FormatSettings(Parsed(" \t\n")), FormatSettings(Settings()));
}

TEST(SettingsText, EveryKeyArrives) {
  const Settings settings = Parsed(
      "backend:cudaMallocAsync,max_split_size_mb:128,max_non_split_rounding_mb:30,large_segment_size_mb:40,garbage_collection_threshold:0."
      "5,"
      "per_process_memory_fraction:0.25,expandable_segments:True,graph_capture_record_stream_reuse:False,policy:wait,cross_stream:wait,"
      "deterministic:true,max_stamps_per_stream:8,trust_stream_handles:True,capture_check_interval:3,handle_check_interval:7,thread_cache:"
      "FALSE,thread_cache_mb:0,"
      "record_history:alloc,record_history_entries:99,roundup_power2_divisions:4");
  const Options& options = settings.options;
  EXPECT_EQ(settings.backend, BackendKind::StreamOrdered);
  EXPECT_EQ(options.max_split_size, 128 * kMiB);
  EXPECT_EQ(options.max_non_split_rounding, 30 * kMiB);
  EXPECT_EQ(options.large_segment_size, 40 * kMiB);
  EXPECT_EQ(options.garbage_collection_threshold, 0.5);
  EXPECT_EQ(options.memory_fraction, 0.25);
  EXPECT_TRUE(options.expandable_segments);
  EXPECT_FALSE(options.capture_reuse_by_topology);
  EXPECT_EQ(options.reuse, Reuse::Wait);
  EXPECT_EQ(options.cross_stream, CrossStream::Wait);
  EXPECT_EQ(Parsed("completion:stream_writes,policy:poll").options.completion, Completion::StreamWrites);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.max_stamps_per_stream, 8U);
  EXPECT_TRUE(options.trust_stream_handles);
  EXPECT_EQ(options.capture_check_interval, 3U);
  EXPECT_EQ(options.handle_check_interval, 7U);
  EXPECT_FALSE(options.thread_cache);
  EXPECT_EQ(options.thread_cache_bytes, 0U);
  EXPECT_EQ(settings.record_history, RecordHistory::Alloc);
  EXPECT_EQ(settings.history_entries, 99U);
  EXPECT_THAT(options.roundup_power2_divisions, testing::Each(4U));
}

TEST(SettingsText, BlanksMeanNothing) { EXPECT_EQ(Parsed(" max_split_size_mb : 64 ,\tpolicy :wait ").options.max_split_size, 64 * kMiB); }

TEST(SettingsText, DivisionsAsPyTorchReadsThem) {
  EXPECT_THAT(Parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").options.roundup_power2_divisions,
              testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8))
      << "the first speaks for the smaller ones, > for the rest";
  EXPECT_THAT(Parsed("roundup_power2_divisions:[4:2,64:8]").options.roundup_power2_divisions,
              testing::ElementsAre(2, 2, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0))
      << "what stands between is not touched";
  EXPECT_THAT(Parsed("roundup_power2_divisions:[>:16]").options.roundup_power2_divisions, testing::Each(16U));
  EXPECT_THAT(Parsed("roundup_power2_divisions:[32768:2],policy:wait").options.roundup_power2_divisions, testing::Each(2U));
}

struct Bad {
  const char* text;
  const char* error;
};

TEST(SettingsText, OneClearErrorEach) {
  const Bad bads[] = {
      {"max_split_size_mb", "max_split_size_mb: the text ends at character 18, expected ':' and a value"},
      {"max_split_size_mb:", "max_split_size_mb: the text ends at character 19, expected a whole number of MiB from 0 to 1048576"},
      {"max_split_size_mb:12x", "max_split_size_mb: '12x' at character 19, expected a whole number of MiB from 0 to 1048576"},
      {"max_split_size_mb:-1", "max_split_size_mb: '-1' at character 19, expected a whole number of MiB"},
      {"max_split_size_mb:99999999999999999999", "expected a whole number of MiB"},
      {"max_split_size_mb:20", "max_split_size: more than large_segment_size, or 0 for no limit"},
      {"policy:wait,max_split_size_mb=64", "'max_split_size_mb=64' at character 13, expected one of backend, max_split_size_mb"},
      {"policy:wait,policy:wait", "'policy' at character 13, expected each key once"},
      {"policy:never", "policy: 'never' at character 8, expected poll or wait"},
      {"policy:wait:poll", "policy: ':' at character 12, expected ',' or the end"},
      {"policy:wait,", "policy: the text ends at character 13, expected a key after ','"},
      {",policy:wait", "',' at character 1, expected a key"},
      {"policy:wait,,deterministic:True", "',' at character 13, expected a key"},
      {"deterministic:yes", "deterministic: 'yes' at character 15, expected True or False"},
      {"deterministic:True", "deterministic: needs reuse=wait"},
      {"garbage_collection_threshold:1.0", "garbage_collection_threshold: 0 for off, or a fraction less than 1"},
      {"garbage_collection_threshold:nan",
       "garbage_collection_threshold: 'nan' at character 30, expected 0 for off, or a fraction less than 1"},
      {"per_process_memory_fraction:1.5", "per_process_memory_fraction: '1.5' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:0", "memory_fraction: more than 0"},
      {"per_process_memory_fraction:-0.5", "'-0.5' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:+0.5", "'+0.5' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:0x1p-1", "'0x1p-1' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:\v0.5", "at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:0.5e", "'0.5e' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:0.5.5", "'0.5.5' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:1e-999", "'1e-999' at character 29, expected a fraction more than 0, at most 1"},
      {"per_process_memory_fraction:inf", "'inf' at character 29, expected a fraction more than 0, at most 1"},
      {"max_stamps_per_stream:3", "max_stamps_per_stream: '3' at character 23, expected a whole number from 4 to 1024"},
      {"roundup_power2_divisions:3", "roundup_power2_divisions: '3' at character 26, expected 0, a power of two up to 64, or a list"},
      {"roundup_power2_divisions:[3:4]", "'3' at character 27, expected 0, a power of two up to 64, or a list"},
      {"roundup_power2_divisions:[]", "']' at character 27, expected"},
      {"roundup_power2_divisions:[4:4", "the text ends at character 30, expected ',' or ']'"},
      {"roundup_power2_divisions:[4:5]", "'5' at character 29, expected 0 or a power of two up to 64"},
      {"roundup_power2_divisions:[8:4,4:2]", "'4' at character 31, expected sizes in growing order, up to 32768"},
      {"roundup_power2_divisions:[65536:4]", "'65536' at character 27, expected sizes in growing order, up to 32768"},
      {"roundup_power2_divisions:[>:4,8:2]", "'8' at character 31, expected ']' after '>'"},
      {"release_lock_on_cudamalloc:True",
       "'release_lock_on_cudamalloc' at character 1, expected another key: no driver call is made with a lock held"},
      {"pinned_num_register_threads:8", "expected another key: pinned host memory is not allocated here"},
      {"expandable", "'expandable' at character 1, expected one of "},
  };
  for (const Bad& bad : bads) {
    Settings settings;
    settings.options.max_split_size = 77;
    std::string error;
    EXPECT_FALSE(ParseSettings(bad.text, &settings, &error)) << bad.text;
    EXPECT_THAT(error, testing::StartsWith("allocator settings: "));
    EXPECT_THAT(error, testing::HasSubstr(bad.error)) << bad.text;
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("\n")));
    EXPECT_EQ(settings.options.max_split_size, 77U) << bad.text << " changed what was there";
  }
}

// In a locale that writes 0,5. None is installed everywhere: it is made here from the C library's sources, where those are.
TEST(SettingsText, FractionsMeanTheSameInEveryLocale) {
  const std::string folder = testing::TempDir() + "cuaudit_locales";
  const std::string name = "de_DE.UTF-8";
  const std::string make = "mkdir -p " + folder + " && localedef -i de_DE -f UTF-8 " + folder + "/" + name + " >/dev/null 2>&1";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no localedef, or no sources of de_DE";
  ASSERT_EQ(setenv("LOCPATH", folder.c_str(), 1), 0);
  const char* const now = std::setlocale(LC_ALL, name.c_str());
  ASSERT_EQ(unsetenv("LOCPATH"), 0);
  ASSERT_NE(now, nullptr);
  EXPECT_EQ(std::strtod("0.5", nullptr), 0.0) << "it does write 0,5";
  EXPECT_EQ(Parsed("per_process_memory_fraction:0.5").options.memory_fraction, 0.5);
  EXPECT_EQ(FormatSettings(Parsed("per_process_memory_fraction:0.25")), FormatSettings(Parsed("per_process_memory_fraction:25e-2")));
  ASSERT_NE(std::setlocale(LC_ALL, "C"), nullptr);
}

TEST(SettingsText, EveryRowIsKnownAndExplained) {
  std::vector<std::string> keys;
  for (const SettingRow& row : SettingRows()) {
    keys.emplace_back(row.key);
    EXPECT_FALSE(row.expected.empty()) << row.key;
    EXPECT_FALSE(row.help.empty()) << row.key;
    Settings settings;
    std::string error;
    EXPECT_FALSE(ParseSettings(std::string(row.key) + ":?", &settings, &error)) << row.key;
    EXPECT_THAT(error, testing::HasSubstr("'?' at character " + std::to_string(row.key.size() + 2) + ", expected " + row.expected))
        << row.key;
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(SettingsText, WrittenFormIsReadBack) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  int allowed = 0;
  for (int round = 0; round < 1000; ++round) {
    Settings settings;
    Options& options = settings.options;
    settings.backend = static_cast<BackendKind>(pick(3));
    settings.record_history = static_cast<RecordHistory>(pick(4));
    settings.history_entries = 1 + pick(1000);
    options.large_segment_size = (10 + 2 * pick(20)) * kMiB;
    options.max_split_size = pick(2) == 0 ? 0 : (64 + pick(100)) * kMiB;
    options.max_non_split_rounding = (2 + pick(100)) * kMiB;
    options.memory_fraction = static_cast<double>(1 + pick(1000)) / 1000.0;
    options.garbage_collection_threshold = static_cast<double>(pick(1000)) / 1000.0;
    options.expandable_segments = pick(2) == 0;
    options.capture_reuse_by_topology = pick(2) == 0;
    options.reuse = static_cast<Reuse>(pick(2));
    options.deterministic = options.reuse == Reuse::Wait && pick(2) == 0;
    options.cross_stream = static_cast<CrossStream>(pick(options.reuse == Reuse::Wait ? 3 : 2));
    if (options.deterministic && options.cross_stream == CrossStream::Ready) options.cross_stream = CrossStream::Never;
    options.completion = static_cast<Completion>(pick(2));
    options.max_stamps_per_stream = static_cast<std::uint32_t>(4 + pick(1000));
    options.trust_stream_handles = pick(2) == 0;
    options.capture_check_interval = static_cast<std::uint32_t>(1 + pick(1000));
    options.handle_check_interval = static_cast<std::uint32_t>(1 + pick(1000));
    options.thread_cache = pick(2) == 0;
    options.thread_cache_bytes = pick(200) * kMiB;
    const bool is_same = pick(2) == 0;
    for (std::uint32_t& divisions : options.roundup_power2_divisions) divisions = is_same ? 8 : 1U << pick(7);
    if (Check(options) != nullptr) continue;
    ++allowed;
    const std::string text = FormatSettings(settings);
    const Settings read = Parsed(text);
    EXPECT_EQ(FormatSettings(read), text);
    EXPECT_EQ(read.options.roundup_power2_divisions, options.roundup_power2_divisions) << text;
    EXPECT_EQ(read.options.memory_fraction, options.memory_fraction) << text;
    EXPECT_EQ(read.options.thread_cache_bytes, options.thread_cache_bytes) << text;
  }
  EXPECT_GT(allowed, 200) << "or little was tested";
}

// Any bytes: an answer, never a crash, and an error that names a place inside the text or its end.
TEST(SettingsText, AnyBytesAreAnswered) {
  std::mt19937_64 random(11);
  const std::string letters = "policywaitmb_:,[]> 0123456789.TrueFalse-\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? FormatSettings(Settings()) : "";
    for (std::uint64_t edit = random() % 12; edit-- > 0;) {
      text.insert(text.empty() ? 0 : random() % text.size(), 1, letters[random() % letters.size()]);
    }
    Settings settings;
    std::string error;
    if (ParseSettings(text, &settings, &error)) {
      EXPECT_EQ(Check(settings.options), nullptr) << text;
    } else {
      EXPECT_THAT(error, testing::HasSubstr("allocator settings: ")) << text;
    }
  }
}

TEST(SettingsText, SnapshotShowsPyTorchsNames) {
  const auto shown = SettingsForSnapshot(Parsed("expandable_segments:True"));
  EXPECT_THAT(shown, testing::Contains(testing::Pair("PYTORCH_CUDA_ALLOC_CONF", testing::HasSubstr("expandable_segments:True"))));
  EXPECT_THAT(shown, testing::Contains(testing::Pair("max_split_size", "9223372036854775807")));
  EXPECT_THAT(shown, testing::Contains(testing::Pair("expandable_segments", "True")));
}

}  // namespace
}  // namespace cuaudit::alloc::options_text_test
