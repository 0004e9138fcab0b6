// SPDX-License-Identifier: MIT
// Many trials as one report, what that report says that a run did not look at, and how places are named.
#include "harness/sweep/findings/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "suites/support/journal_builder.h"
#include "suites/support/journal_image.h"

namespace cuaudit::harness::aggregate_test {
namespace {

using ::testing::SizeIs;
using ::testing::StartsWith;

const Reproduction kReproduction = {"cuaudit replay --driver=sim", "cuaudit run --driver=sim", "prog 'a b'"};

TrialResult Leak(const std::string& fault, std::uint64_t acquired_key, std::uint64_t fault_key) {
  TrialResult trial = {.faults = {fault}, .verdict = Verdict::Leak, .fired = true, .fault_key = fault_key};
  TrialFindingText finding;
  finding.rule = Rule::Leak;
  finding.kind = driver::Kind::Stream;
  finding.count = 1;
  finding.acquired_key = acquired_key;
  finding.acquired = {"cuStreamCreate", {}};
  trial.findings.push_back(finding);
  return trial;
}

std::vector<const TrialResult*> Pointers(const std::vector<TrialResult>& trials) {
  std::vector<const TrialResult*> pointers;
  for (const TrialResult& trial : trials) pointers.push_back(&trial);
  return pointers;
}

report::Run Aggregate(const std::vector<TrialResult>& trials) {
  report::Run run;
  Groups groups;
  AddTrials(Pointers(trials), kReproduction, {}, &groups, &run);
  return run;
}

TEST(FaultKinds, AreToldApartByAllButTheOccurrence) {
  FaultKinds kinds;
  const report::Fault* const second = kinds.Of("cuMemAlloc#2@init=OUT_OF_MEMORY,refuse");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->call, "cuMemAlloc");
  EXPECT_EQ(second->code, "OUT_OF_MEMORY");
  EXPECT_EQ(second->how, "refuse");
  EXPECT_EQ(kinds.Of("cuMemAlloc#31@init=OUT_OF_MEMORY,refuse"), second);
  EXPECT_EQ(kinds.Of("cuMemAlloc#+31@init=OUT_OF_MEMORY,refuse"), second);
  EXPECT_EQ(kinds.Of("cuMemAlloc#2@init=INVALID_VALUE,refuse")->code, "INVALID_VALUE");
  EXPECT_EQ(kinds.Of("cuMemAlloc#2@init=OUT_OF_MEMORY,persist")->how, "persist");
  EXPECT_EQ(kinds.Of("cuMemFree#2=INVALID_VALUE,refuse")->call, "cuMemFree");
  for (const std::string& text :
       {std::string(), std::string("#"), std::string("cuMemAlloc"), std::string("cuMemAlloc#\xff"), std::string(10000, '#')})
    EXPECT_EQ(kinds.Of(text), nullptr) << text;
}

TEST(Aggregate, CountsTrialsOfOneFindingAndKeepsTheFirst) {
  const report::Run run = Aggregate({Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9), Leak("cuMemAlloc#2=OUT_OF_MEMORY,refuse", 7, 9)});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].trials, 2U);
  EXPECT_EQ(run.findings[0].fault->occurrence, 1U);
  EXPECT_EQ(run.findings[0].reproduce, "cuaudit replay --driver=sim --fault 'cuMemAlloc#1=OUT_OF_MEMORY,refuse' -- prog 'a b'");
  EXPECT_THAT(run.findings[0].fingerprint, StartsWith("v1-"));
  EXPECT_THAT(run.findings[0].fingerprint, SizeIs(19));
  EXPECT_EQ(VerdictOf(run.findings[0].rule), Verdict::Leak);
  EXPECT_EQ(run.totals.trials, 2U);
  EXPECT_EQ(run.totals.fired, 2U);
  EXPECT_EQ(run.totals.verdicts.at(Verdict::Leak), 2U);
}

TEST(Aggregate, KeepsPlacesCodesAndWaysApart) {
  const report::Run run = Aggregate({Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9), Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 8, 9),
                                     Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 10), Leak("cuMemAlloc#1=INVALID_VALUE,refuse", 7, 9),
                                     Leak("cuMemAlloc#1=OUT_OF_MEMORY,after", 7, 9), Leak("cuMemFree#1=INVALID_VALUE,refuse", 7, 9)});
  EXPECT_THAT(run.findings, SizeIs(6));
}

TEST(Aggregate, KeepsTheLargestCountAndBytesWhateverTheOrder) {
  TrialResult small = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  TrialResult large = Leak("cuMemAlloc#2=OUT_OF_MEMORY,refuse", 7, 9);
  small.findings[0].bytes = 64;
  large.findings[0].count = 6;
  for (const std::vector<TrialResult>& trials : {std::vector<TrialResult>{small, large}, {large, small}}) {
    const report::Run run = Aggregate(trials);
    ASSERT_THAT(run.findings, SizeIs(1));
    EXPECT_EQ(run.findings[0].count, 6U);
    EXPECT_EQ(run.findings[0].bytes, 64U);
  }
}

TEST(Aggregate, ANoteCountsWhatItsReproduceLineReplays) {
  const auto refused = [](const char* fault, std::uint64_t count) {
    TrialResult trial = Leak(fault, 7, 9);
    trial.verdict = Verdict::ReleaseRefused;
    trial.findings[0].rule = Rule::ReleaseRefused;
    trial.findings[0].count = count;
    std::swap(trial.notes, trial.findings);
    return trial;
  };
  const TrialResult few = refused("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 2);
  const TrialResult many = refused("cuMemAlloc#2=OUT_OF_MEMORY,refuse", 6);
  for (const std::vector<TrialResult>& trials : {std::vector<TrialResult>{few, many}, {many, few}}) {
    const report::Run run = Aggregate(trials);
    ASSERT_THAT(run.notes, SizeIs(1));
    EXPECT_EQ(run.notes[0].count, trials[0].notes[0].count);
    EXPECT_THAT(run.notes[0].reproduce, ::testing::HasSubstr(trials[0].faults[0]));
    EXPECT_EQ(run.notes[0].trials, 2U);
  }
}

TEST(Aggregate, SaysOfEachFindingWhatItIsItself) {
  TrialResult trial = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  trial.verdict = Verdict::Misuse;
  trial.findings.push_back(trial.findings[0]);
  trial.findings[0].rule = Rule::Orphaned;
  trial.findings[1].rule = Rule::DoubleRelease;
  trial.findings.push_back(trial.findings[0]);
  trial.findings[2].rule = Rule::Hang;
  const report::Run run = Aggregate({trial});
  ASSERT_THAT(run.findings, SizeIs(3));
  EXPECT_EQ(VerdictOf(run.findings[0].rule), Verdict::Leak);
  EXPECT_EQ(VerdictOf(run.findings[1].rule), Verdict::Misuse);
  EXPECT_EQ(VerdictOf(run.findings[2].rule), Verdict::Hang);
}

TEST(Aggregate, KeepsTheFingerprintOfARebuiltProgram) {
  TrialResult before = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  before.findings[0].acquired = {"cuStreamCreate", {{"prog", "Open", "a.c", 12, 0x10}}};
  before.fault_site = {"", {{"prog", "Work", "a.c", 20, 0x30}}};
  TrialResult rebuilt = before;
  rebuilt.fault_key = 10;
  rebuilt.findings[0].acquired_key = 8;
  rebuilt.findings[0].acquired = {"cuStreamCreate", {{"prog", "Open", "a.c", 13, 0x14}}};
  rebuilt.fault_site = {"", {{"prog", "Work", "a.c", 21, 0x30}}};
  EXPECT_EQ(Aggregate({before}).findings[0].fingerprint, Aggregate({rebuilt}).findings[0].fingerprint);
  rebuilt.fault_site = {"", {{"prog", "Rest", "a.c", 21, 0x30}}};
  EXPECT_NE(Aggregate({before}).findings[0].fingerprint, Aggregate({rebuilt}).findings[0].fingerprint);
}

TEST(Aggregate, NumbersTwoPlacesOfOneFunction) {
  const report::Run run = Aggregate({Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9), Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 8, 9)});
  ASSERT_THAT(run.findings, SizeIs(2));
  EXPECT_EQ(run.findings[1].fingerprint, run.findings[0].fingerprint + "-2");
}

TEST(Aggregate, NotesAbsorbedFaultsBySite) {
  TrialResult absorbed = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  absorbed.findings.clear();
  absorbed.verdict = Verdict::Absorbed;
  TrialResult again = absorbed;
  again.faults = {"cuMemAlloc#2=OUT_OF_MEMORY,refuse"};
  TrialResult other = again;
  other.fault_key = 10;
  const report::Run run = Aggregate({absorbed, again, other});
  ASSERT_THAT(run.notes, SizeIs(2));
  EXPECT_EQ(run.notes[0].rule, Rule::Absorbed);
  EXPECT_EQ(run.notes[0].trials, 2U);
  EXPECT_EQ(run.notes[0].fault->text, "cuMemAlloc#1=OUT_OF_MEMORY,refuse");
  EXPECT_EQ(run.notes[0].reproduce, "cuaudit replay --driver=sim --fault 'cuMemAlloc#1=OUT_OF_MEMORY,refuse' -- prog 'a b'");
}

TEST(Aggregate, KeepsWhatAttemptsThatMissedFoundAndNamesThePlannedSite) {
  TrialResult stray = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  stray.stray = true;
  stray.fired = false;
  stray.missed = Missed::Elsewhere;
  TrialResult last = stray;
  last.stray = false;
  last.attempt = 2;
  last.verdict = Verdict::NotExercised;
  last.planned_site = {"", {{"prog", "Planned", "a.c", 12, 0x10}}};
  const report::Run run = Aggregate({stray, last});
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.totals.trials, 1U);
  EXPECT_EQ(run.totals.fired, 0U);
  EXPECT_EQ(run.totals.verdicts.at(Verdict::NotExercised), 1U);
  EXPECT_EQ(run.totals.skipped.at({Reason::HitElsewhere}), 1U);
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].rule, Rule::NotExercised);
  EXPECT_EQ(run.notes[0].fault->stack.at(0).function, "Planned");
}

TEST(Aggregate, SaysTheFaultInTheReportsWords) {
  const report::Run run = Aggregate({Leak("cuMemAlloc#12=OUT_OF_MEMORY,burst:3", 7, 9)});
  const report::Fault& fault = *run.findings.at(0).fault;
  EXPECT_EQ(fault.call, "cuMemAlloc");
  EXPECT_EQ(fault.occurrence, 12U);
  EXPECT_EQ(fault.how, "refuse,burst=3");
  EXPECT_EQ(fault.code, "OUT_OF_MEMORY");
  EXPECT_EQ(fault.text, "cuMemAlloc#12=OUT_OF_MEMORY,refuse,burst=3");
}

TEST(Aggregate, CountsWhatEveryRunLeavesOnceAndWithoutFault) {
  TrialResult first = Leak("cuMemAlloc#1=OUT_OF_MEMORY,refuse", 7, 9);
  first.findings[0].rule = Rule::ProcessLifetime;
  first.notes = std::move(first.findings);
  first.findings.clear();
  TrialResult second = first;
  second.faults = {"cuMemFree#1=INVALID_VALUE,refuse"};
  second.fault_key = 10;
  const report::Run run = Aggregate({first, second});
  EXPECT_THAT(run.findings, SizeIs(0));
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_FALSE(run.notes[0].fault.has_value());
  EXPECT_EQ(run.notes[0].trials, 2U);
}

TrialResult HostLeft(const std::vector<std::string>& faults, std::uint64_t acquired_key) {
  TrialResult trial = Leak(faults.front(), acquired_key, 9);
  trial.faults = faults;
  trial.verdict = Verdict::Pass;
  trial.findings[0].rule = Rule::HostLeft;
  trial.findings[0].kind = driver::Kind::FileDescriptor;
  trial.notes = std::move(trial.findings);
  trial.findings.clear();
  return trial;
}

TEST(Aggregate, NotesOnceWhatIsLeftOfTheHostAndCountsTheFaults) {
  const std::string first = "cuMemAlloc#1=OUT_OF_MEMORY,refuse";
  const std::string other = "cuStreamCreate#1=OUT_OF_MEMORY,refuse";
  const std::string then = "cuMemFree#1=INVALID_VALUE,refuse";
  TrialResult stray = HostLeft({first}, 7);
  stray.stray = true;
  const report::Run run = Aggregate({stray, HostLeft({first}, 7), HostLeft({other}, 7), HostLeft({first, then}, 7), HostLeft({first}, 8),
                                     HostLeft({"cuInit#1=INVALID_VALUE,refuse", then}, 7), HostLeft({first, then}, 10)});
  ASSERT_THAT(run.notes, SizeIs(3));
  EXPECT_EQ(run.notes[0].trials, 3U) << "two first faults, and a second one whose first alone leaves nothing";
  EXPECT_EQ(run.notes[0].fault->text, first);
  EXPECT_EQ(run.notes[0].reproduce, "cuaudit replay --driver=sim --fault '" + first + "' -- prog 'a b'");
  EXPECT_EQ(run.notes[1].trials, 1U) << "another place";
  EXPECT_EQ(run.notes[2].then.size(), 1U) << "what only the second fault shows";
  EXPECT_EQ(Aggregate({HostLeft({other}, 7)}).notes[0].fingerprint, run.notes[0].fingerprint) << "of the place, whatever the fault";
}

TEST(Aggregate, LeavesOutTheProbesOfATrialThatWereNotThereWholly) {
  JournalBuilder journal;
  journal.Host(faults::HostCall::Looking, 0);
  journal.Call(driver::CallId::Init);
  report::Run run;
  run.host.probes = {"thread"};
  DescribeRun(journal.Read(), &run);
  DescribeHostOfTrial(journal.Read(), &run);
  EXPECT_THAT(run.host.probes, SizeIs(1));
  journal.header().flags.fetch_or(faults::kHostStopped);
  DescribeHostOfTrial(journal.Read(), &run);
  EXPECT_THAT(run.host.probes, SizeIs(0));
  EXPECT_EQ(run.host.left_out.at("thread").reason, Reason::TooManyRecords);
  EXPECT_THAT(run.totals.skipped, SizeIs(1));
}

TEST(Aggregate, NotesATrialWhoseFaultDidNotFire) {
  TrialResult trial = Leak("cuMemAlloc#9=OUT_OF_MEMORY,refuse", 7, 9);
  trial.findings.clear();
  trial.fired = false;
  trial.verdict = Verdict::NotExercised;
  const report::Run run = Aggregate({trial});
  EXPECT_EQ(run.totals.fired, 0U);
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].rule, Rule::NotExercised);
}

TEST(Aggregate, DescribesTheRunFromItsJournal) {
  JournalBuilder journal;
  journal.Call(driver::CallId::Init);
  journal.Call(driver::CallId::MemAlloc_v2).argument[0] = 0x1000;
  journal.Call(driver::CallId::MemAlloc_v2).argument[0] = 0x2000;
  journal.header().flags.fetch_or(faults::kHostProbesSkipped);
  report::Run run;
  std::strcpy(journal.header().device_name, "a device");
  DescribeRun(journal.Read(), &run);
  EXPECT_EQ(run.driver.device, "a device");
  EXPECT_EQ(run.driver.kind, report::DriverKind::Simulated);
  EXPECT_EQ(run.driver.version, "13.0");
  EXPECT_EQ(run.totals.calls, 3U);
  EXPECT_EQ(run.totals.sites, 2U);
  EXPECT_THAT(run.totals.skipped, SizeIs(1));
}

TEST(Aggregate, MakesFindingsOfViolationsAndNotesOfWhatIsLeft) {
  JournalBuilder journal;
  journal.Call(driver::CallId::Init);
  journal.Call(driver::CallId::StreamCreate).argument[0] = 0x51;
  journal.Call(driver::CallId::StreamCreate).argument[0] = 0x52;
  journal.Call(driver::CallId::StreamDestroy_v2).argument[0] = 0x52;
  faults::Record& twice = journal.Call(driver::CallId::StreamDestroy_v2);
  twice.argument[0] = 0x52;
  twice.result = CUDA_ERROR_INVALID_HANDLE;
  SiteTexts sites;
  report::Run run;
  Groups groups;
  AddFaultFree(journal.Read(), kReproduction, &sites, &groups, &run);
  ASSERT_THAT(run.findings, SizeIs(1));
  EXPECT_EQ(run.findings[0].rule, Rule::DoubleRelease);
  EXPECT_EQ(run.findings[0].where, "cuStreamDestroy");
  EXPECT_FALSE(run.findings[0].fault.has_value());
  EXPECT_EQ(run.findings[0].reproduce, "cuaudit run --driver=sim -- prog 'a b'");
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].rule, Rule::ProcessLifetime);
  EXPECT_EQ(run.notes[0].kind, "stream");
}

report::Run Described(const Observation& seen) {
  report::Run run;
  DescribeRun(seen, &run);
  return run;
}

// What the simulated driver keeps for itself is known, so nothing is left out there.
TEST(DescribeRun, WhatAGenuineDriverKeepsForItselfIsCounted) {
  const TemporaryDir dir;
  for (const faults::DriverKind kind : {faults::DriverKind::Simulated, faults::DriverKind::Genuine}) {
    const bool genuine = kind == faults::DriverKind::Genuine;
    JournalBuilder journal(dir.File(genuine ? "genuine" : "simulated"));
    journal.header().driver_kind.store(kind);
    journal.Host(faults::HostCall::Allocate, 0x5000, 64);
    journal.Host(faults::HostCall::Allocate, 0x6000, 64);
    journal.Host(faults::HostCall::Deallocate, 0x6000);
    Observation seen = journal.Read();
    for (Object& object : seen.ledger.objects) object.driver_owned = true;
    const auto skipped = Described(seen).totals.skipped;
    EXPECT_EQ(skipped.count({Reason::DriverKeeps}), genuine ? 1U : 0U);
    if (!genuine) continue;
    EXPECT_EQ(skipped.at({Reason::DriverKeeps}), 1U) << "not what it has given back";
  }
}

TEST(DescribeRun, EntryPointsThatNobodyAuditsAreCounted) {
  JournalBuilder journal;
  EXPECT_EQ(Described(journal.Read()).totals.skipped.count({Reason::UnknownEntry}), 0U);
  journal.header().unknown_pointers.store(3);
  EXPECT_EQ(Described(journal.Read()).totals.skipped.at({Reason::UnknownEntry}), 3U);
}

// The places of a run in words.

std::vector<std::string> FunctionsOf(faults::RecordKind kind, std::vector<std::uint64_t> frames) {
  testing::Trace trace;
  trace.CreateStream(0x10).Stack(1);
  testing::JournalImage image(trace);
  image.Module("/opt/none/prog").Module("/opt/none/libc.so.6").Stack(1, frames);
  Site site = image.ledger().objects.at(0).acquired;
  site.record_kind = kind;
  SiteTexts texts;
  std::vector<std::string> functions;
  for (const report::Frame& frame : texts.Text(image.view(), site, 1)->stack) functions.push_back(frame.module + " " + frame.function);
  return functions;
}

constexpr std::uint64_t kProgram = 0;
constexpr std::uint64_t kCLibrary = 1;

// atexit and pthread_create may be given a function of the driver.
TEST(SiteTexts, ACallThatTheCLibraryMakesIsNotNamedByAFunctionOfIt) {
  const std::uint64_t inner = testing::JournalImage::Frame(kCLibrary, 0x10);
  const std::uint64_t outer = testing::JournalImage::Frame(kCLibrary, 0x20);
  using faults::RecordKind;
  EXPECT_EQ(FunctionsOf(RecordKind::Call, {inner, outer}), std::vector<std::string>{"libc.so.6 the C library"});
  EXPECT_EQ(FunctionsOf(RecordKind::Call, {inner, testing::JournalImage::Frame(kProgram, 0x30), outer}),
            (std::vector<std::string>{"libc.so.6 ", "prog "}));
  EXPECT_EQ(FunctionsOf(RecordKind::Stop, {inner}), std::vector<std::string>{"libc.so.6 "}) << "where a thread stopped may be there";
}

}  // namespace
}  // namespace cuaudit::harness::aggregate_test
