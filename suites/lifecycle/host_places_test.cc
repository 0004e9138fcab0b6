// SPDX-License-Identifier: MIT
// host_places_test.cc: the same host resources as in programs, for lifecycles in a process that the host drop-in is linked into: one loss
// each that must be found where it was made, and what looks like one and must stay silent.
#include <cuaudit/gtest.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::host_places_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLibrary[] = "libm.so.6";
pthread_mutex_t in_one_place;
// The C library's own, which no drop-in watches.
const auto unseen_dlopen = reinterpret_cast<void* (*)(const char*, int)>(dlsym(dlopen("libc.so.6", RTLD_NOW), "dlopen"));
const std::string kFault = " after cuEventCreate#1=OUT_OF_MEMORY,refuse";

// What a test loses stays reachable, so that a sanitizer's own look for leaks has nothing to say; and nothing but that is allocated.
class Lost {
 public:
  [[gnu::noinline]] void Block(std::size_t bytes) {
    auto* const block = static_cast<void**>(std::malloc(bytes));
    *block = newest_;
    newest_ = block;
  }
  // Its memory is there before the audit.
  [[gnu::noinline]] void Mutex() { pthread_mutex_init(&mutexes_.at(used_++), nullptr); }

 private:
  void* newest_ = nullptr;
  std::vector<pthread_mutex_t> mutexes_ = std::vector<pthread_mutex_t>(std::size_t{1} << 16);
  std::size_t used_ = 0;
};

pthread_mutex_t* NewMutex(bool locked) {
  auto* const mutex = static_cast<pthread_mutex_t*>(std::malloc(sizeof(pthread_mutex_t)));
  pthread_mutex_init(mutex, nullptr);
  if (locked) pthread_mutex_lock(mutex);
  return mutex;
}

struct Loss {
  const char* name;
  Do once;
  std::vector<std::string> per_trial;   // of a sweep, without the fault
  std::vector<std::string> ten_cycles;  // of RunCycles
  const char* frame;                    // of the place that is told
  const char* verdict = "misuse";       // of the trial that loses it
};

void PrintTo(const Loss& loss, std::ostream* out) { *out << loss.name; }

Lost& TheLost() {
  static auto* const lost = new Lost;
  return *lost;
}

std::vector<Loss> Losses() {
  return {
      {"sixteen_bytes", [] { TheLost().Block(16); }, {"leak host_heap 1"}, {"growth host_heap 10"}, "Block", "leak"},
      {"a_mutex", [] { TheLost().Mutex(); }, {"leak mutex 1"}, {"growth mutex 10"}, "Mutex", "leak"},
      {"a_freed_mutex",
       [] { std::free(NewMutex(false)); },
       {"mutex_freed mutex 1"},
       {"growth mutex 10", "mutex_freed mutex 11"},
       "host_places_test.cc"},
      {"a_locked_mutex",
       [] { std::free(NewMutex(true)); },
       {"mutex_freed mutex 1", "mutex_locked mutex 1"},
       {"growth mutex 10", "mutex_freed mutex 11", "mutex_locked mutex 11"},
       "host_places_test.cc"},
      {"destroyed_while_locked",
       [] {
         pthread_mutex_t* const mutex = NewMutex(true);
         pthread_mutex_destroy(mutex);
         std::free(mutex);
       },
       {"mutex_locked mutex 1"},
       {"mutex_locked mutex 11"},
       "host_places_test.cc"},
      {"never_destroyed_and_made_anew",
       [] { pthread_mutex_init(&in_one_place, nullptr); },
       {"leak mutex 1"},
       {"growth mutex 10"},
       "host_places_test.cc",
       "leak"},
      {"destroyed_twice",
       [] {
         pthread_mutex_init(&in_one_place, nullptr);
         for (int i = 0; i < 2; ++i) pthread_mutex_destroy(&in_one_place);
       },
       {"double_release mutex 1"},
       {"double_release mutex 11"},
       "host_places_test.cc"},
      {"a_library_closed_twice",
       [] {
         void* const library = dlopen("libstdc++.so.6", RTLD_NOW);  // stays loaded
         for (int i = 0; i < 2; ++i) dlclose(library);
       },
       {"double_release dlopen_reference 1"},
       {"double_release dlopen_reference 11"},
       "host_places_test.cc"},
      {"a_library",
       [] { dlopen(kLibrary, RTLD_NOW); },
       {"leak dlopen_reference 1"},
       {"growth dlopen_reference 10"},
       "host_places_test.cc",
       "leak"},
  };
}

class HostLosses : public ::testing::TestWithParam<Loss> {};

TEST_P(HostLosses, OnAFailingPathAreFoundByPlace) {
  const Audit audit = Sweep(WithAnEvent(GetParam().name, GetParam().once));
  std::vector<std::string> expected;
  for (const std::string& text : GetParam().per_trial) expected.push_back(text + kFault);
  ASSERT_THAT(Texts(audit), ::testing::UnorderedElementsAreArray(expected)) << audit.Text();
  for (const Finding& finding : audit.findings) {
    const std::vector<std::string>& stack = finding.acquired_stack.empty() ? finding.where_stack : finding.acquired_stack;
    EXPECT_THAT(stack, Contains(HasSubstr(GetParam().frame))) << audit.Text();
    EXPECT_THAT(finding.fault_stack, Contains(HasSubstr("findings.h"))) << audit.Text();
  }
  EXPECT_TRUE(audit.verdicts.contains(GetParam().verdict)) << audit.Text();
}

TEST_P(HostLosses, InEveryCycleAreFoundByPlace) {
  const Audit audit = RunCycles(WithAnEvent(GetParam().name, kNothing, GetParam().once));
  ASSERT_THAT(Texts(audit), ::testing::UnorderedElementsAreArray(GetParam().ten_cycles)) << audit.Text();
  for (const Finding& finding : audit.findings) {
    const std::vector<std::string>& stack = finding.acquired_stack.empty() ? finding.where_stack : finding.acquired_stack;
    EXPECT_THAT(stack, Contains(HasSubstr(GetParam().frame))) << audit.Text();
  }
}

INSTANTIATE_TEST_SUITE_P(Every, HostLosses, ::testing::ValuesIn(Losses()), [](const auto& test) { return std::string(test.param.name); });

TEST(HostPlaces, SixteenBytesAreCounted) {
  const Audit audit = RunCycles(WithAnEvent("little", kNothing, [] { TheLost().Block(16); }));
  ASSERT_THAT(Texts(audit), ElementsAre("growth host_heap 10")) << audit.Text();
  EXPECT_EQ(audit.findings.at(0).bytes, 160U);
  EXPECT_THAT(audit.findings.at(0).detail, HasSubstr("alive after each cycle: 1 2 3"));
}

// A place that loses is not hidden by one that gives back.
TEST(HostPlaces, GrowthAtOnePlaceIsNotHiddenByAnother) {
  std::vector<void*> store;
  store.reserve(100);
  for (int i = 0; i < 100; ++i) store.push_back(std::malloc(64));
  const Audit audit = RunCycles(WithAnEvent("hidden", kNothing, [&] {
    std::free(store.back());
    store.pop_back();
    TheLost().Block(64);
  }));
  EXPECT_THAT(Texts(audit), ElementsAre("growth host_heap 10")) << audit.Text();
  for (void* const block : store) std::free(block);
}

// The same block, a little larger each time.
TEST(HostPlaces, ABlockThatGrowsInItsPlace) {
  std::size_t bytes = 1000;
  void* block = nullptr;
  const Audit audit = RunCycles(WithAnEvent("resized", kNothing, [&] { block = std::realloc(block, bytes += 100); }));
  ASSERT_THAT(Texts(audit), ElementsAre("growth host_heap 1")) << audit.Text();
  EXPECT_EQ(audit.findings.at(0).bytes, 1000U);
  std::free(block);
}

// Given back by the next cycle: the faulted one kept it all the same, however little it is.
TEST(HostPlaces, WhatIsKeptUntilTheNextCycle) {
  void* kept = nullptr;
  const auto free_it = [&] { std::free(std::exchange(kept, nullptr)); };
  const Audit audit = Sweep(WithAnEvent(
      "keeps_for_a_while",
      [&] {
        free_it();
        kept = std::malloc(200);
      },
      free_it));
  free_it();
  ASSERT_THAT(Texts(audit), ElementsAre("leak host_heap 1" + kFault)) << audit.Text();
  EXPECT_EQ(audit.findings.at(0).bytes, 200U);
}

TEST(HostPlaces, AThreadThatNobodyJoins) {
  static std::vector<pthread_t> threads;
  threads.clear();
  threads.reserve(1000);
  const Audit audit = Sweep(WithAnEvent("forgets_a_thread", [] {
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr),
              0);
    threads.push_back(thread);
  }));
  EXPECT_THAT(Texts(audit), Contains("leak thread 1" + kFault)) << audit.Text();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

TEST(HostPlaces, ADescriptorHasItsStack) {
  static std::vector<int> files;
  files.clear();
  files.reserve(1000);
  const Audit audit = Sweep(WithAnEvent("keeps_a_file", [] { files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC)); }));
  ASSERT_THAT(Texts(audit), ElementsAre("leak file_descriptor 1" + kFault)) << audit.Text();
  EXPECT_EQ(audit.findings.at(0).acquired, "open");
  EXPECT_THAT(audit.findings.at(0).acquired_stack, Contains(HasSubstr("host_places_test.cc")));
  for (const int file : files) close(file);
}

struct Silence {
  const char* name;
  Do once;
};

void PrintTo(const Silence& silence, std::ostream* out) { *out << silence.name; }

struct LastError {
  explicit LastError(std::string what) : text(std::move(what)) { pthread_mutex_init(&mutex, nullptr); }
  ~LastError() { pthread_mutex_destroy(&mutex); }
  LastError(const LastError&) = delete;
  LastError& operator=(const LastError&) = delete;
  std::string text;
  pthread_mutex_t mutex;
};

std::vector<Silence> Silences() {
  return {{"cache",
           [] {
             static std::map<int, std::string> cache;
             cache[1] = "what a first use looks up and keeps for ever";
           }},
          {"call_once",
           [] {
             static std::once_flag once;
             static std::vector<char>* kept = nullptr;
             std::call_once(once, [] { kept = new std::vector<char>(100); });
             kept->at(0) = 1;
           }},
          {"static_mutex",
           [] {
             static pthread_mutex_t* const mutex = NewMutex(false);
             pthread_mutex_lock(mutex);
             pthread_mutex_unlock(mutex);
           }},
          {"static_initialiser",
           [] {
             static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
             pthread_mutex_lock(&mutex);
             pthread_mutex_unlock(&mutex);
           }},
          {"thread_cache",
           [] {
             std::thread([] {
               thread_local std::vector<char> cache;
               cache.resize(2000);
             }).join();
           }},
          {"own_thread_cache",
           [] {
             thread_local std::vector<char> cache;
             cache.resize(2000);
           }},
          // The newest replaces the one before, whose memory was taken in an earlier trial.
          {"last_error",
           [] {
             static std::unique_ptr<LastError> last;
             last = std::make_unique<LastError>("making an event failed, and this is a longer story about it");
           }},
          {"library",
           [] {
             void* const handle = dlopen(kLibrary, RTLD_NOW);
             dlclose(handle);
           }},
          {"initialised_and_opened_unseen",
           [] {
             pthread_mutex_init(&in_one_place, nullptr);
             pthread_mutex_destroy(&in_one_place);
             in_one_place = PTHREAD_MUTEX_INITIALIZER;
             pthread_mutex_destroy(&in_one_place);
             dlclose(dlopen(kLibrary, RTLD_NOW));
             dlclose(unseen_dlopen(kLibrary, RTLD_NOW));
           }},
          {"closed_by_a_system_call", [] { syscall(SYS_close, open("/dev/null", O_RDONLY | O_CLOEXEC)); }},
          {"printing",
           [] {
             std::FILE* const file = std::fopen("/dev/null", "w");
             std::fprintf(file, "%f %s\n", 0.1, "and a buffer is made");
             std::fclose(file);
             std::printf("%s", "");
             std::fflush(stdout);
           }},
          {"c_library",
           [] {
             const std::time_t now = 0;
             std::tm parts{};
             localtime_r(&now, &parts);
             std::setlocale(LC_ALL, "C.UTF-8");
             std::setlocale(LC_ALL, "C");
           }},
          {"exception",
           [] {
             try {
               throw std::runtime_error("of the program's own");
             } catch (const std::exception&) {
             }
           }},
          {"expectations",
           [] {
             EXPECT_EQ(std::string("a longer text than fits into the string itself"), "a longer text than fits into the string itself");
             SCOPED_TRACE("a trace");
             EXPECT_THAT(std::vector<int>({1, 2}), ElementsAre(1, 2));
           }},
          {"a_lot", [] {
             std::vector<std::unique_ptr<int>> many;
             many.reserve(5000);
             for (int i = 0; i < 5000; ++i) many.push_back(std::make_unique<int>(i));
           }}};
}

class HostSilence : public ::testing::TestWithParam<Silence> {};

TEST_P(HostSilence, OnAFailingPath) {
  const auto lifecycle = WithAnEvent(GetParam().name, GetParam().once);
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

TEST_P(HostSilence, InEveryCycle) {
  const auto lifecycle = WithAnEvent(GetParam().name, kNothing, GetParam().once);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
  EXPECT_UNWINDS_CLEANLY(lifecycle);
}

INSTANTIATE_TEST_SUITE_P(Every, HostSilence, ::testing::ValuesIn(Silences()),
                         [](const auto& test) { return std::string(test.param.name); });

// What GoogleTest keeps of a failure is the test's, which fails for it anyway.
TEST(HostPlaces, AnExpectationThatFailsLosesNothing) {
  ::testing::TestPartResultArray failures;
  Audit audit;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS,
                                                               &failures);
    audit = RunCycles(WithAnEvent("expects", kNothing, [] { EXPECT_EQ(1, 2) << "a message that is longer than a string holds"; }));
  }
  EXPECT_GT(failures.size(), 0);
  EXPECT_TRUE(audit.clean()) << audit.Text();
  EXPECT_THAT(audit.skipped, Contains(::testing::Key("blocks that GoogleTest keeps for expectations that failed")));
}

// Done wrong by without any fault.
TEST(HostPlaces, AMutexInAGoodCycle) {
  const auto lifecycle = WithAnEvent("frees_a_mutex", kNothing, [] { std::free(NewMutex(false)); });
  EXPECT_THAT(Texts(Sweep(lifecycle)), ElementsAre("mutex_freed mutex 1"));
}

TEST(HostPlaces, NothingIsUnmetered) {
  const auto lifecycle = WithAnEvent("event", kNothing);
  EXPECT_THAT(Sweep(lifecycle).unmetered, IsEmpty());
}

// One loss is told once: the wrapper of a driver object that stays goes with it.
TEST(HostPlaces, OneLossIsToldOnce) {
  const auto lifecycle = Lifecycle("loses_both").WithCurrentContext().Init([](DriverRef driver) {
    TheLost().Block(256);
    CUevent event = nullptr;
    return driver.EventCreate(&event, 0);
  });
  EXPECT_THAT(Texts(RunCycles(lifecycle)), ElementsAre("growth event 10"));
}

}  // namespace
}  // namespace cuaudit::testing::host_places_test
