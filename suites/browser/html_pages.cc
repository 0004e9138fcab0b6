// SPDX-License-Identifier: MIT
// Writes the pages that page_test.py opens: html_pages DIRECTORY.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/defect/defects.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites {
namespace {

using report::Audit;
using report::Change;
using report::Finding;
using report::Frame;
using report::Rule;
using report::Run;
using report::Verdict;

Audit AuditOf(Run run) {
  Audit audit = {.generated = run.generated, .tool_version = run.tool_version};
  audit.cases.emplace_back().runs.push_back(std::move(run));
  return audit;
}

// This file is there to be quoted: its line 38 and those around it.
Frame Quoted(std::string function) { return {"player", std::move(function), CUAUDIT_ROOT "/suites/browser/html_pages.cc", 38, 0x40}; }

Finding Lost(const std::string& kind, const std::string& maker, std::size_t number) {
  Finding finding;
  finding.rule = Rule::Leak;
  finding.title = "acquired and never released";
  finding.kind = kind;
  finding.count = 1;
  finding.acquired = {"cuMemAlloc", {{"player", maker, "src/picture.c", static_cast<int>(number % 900) + 1, number}}};
  const std::string text = "cuEventCreate#" + std::to_string(number + 1) + "=OUT_OF_MEMORY,refuse";
  finding.fault = report::Fault{"cuEventCreate",
                                static_cast<std::uint32_t>(number + 1),
                                "refuse",
                                "OUT_OF_MEMORY",
                                text,
                                {{"player", "make_events", "src/picture.c", 88, 0x1f30}, {"player", "main", "src/main.c", 12, 0x1000}}};
  finding.fingerprint = "leak-" + std::to_string(100000 + number);
  finding.reproduce = "cuaudit replay --driver=sim --fault '" + text + "' -- ./player --frames 30";
  return finding;
}

// `places` defects, each shown by `calls` failing calls.
Run Many(std::size_t places, std::size_t calls) {
  Run run = CleanSweep();
  run.outcome = report::Outcome::Findings;
  for (std::size_t place = 0; place < places; ++place) {
    report::Defect defect;
    report::Member member;
    for (std::size_t call = 0; call < calls; ++call) {
      member.findings.push_back(run.findings.size());
      run.findings.push_back(Lost("device_memory", "make_buffer_" + std::to_string(place), run.findings.size()));
    }
    member.count = 1;
    defect.members.push_back(std::move(member));
    defect.trials = calls;
    defect.fingerprint = "leak-" + std::to_string(place);
    run.defects.push_back(std::move(defect));
  }
  return run;
}

// Calls of a program that acquires three things and releases them, and what failing each one did.
report::Sequence SomeSequence() {
  report::Sequence sequence;
  const auto at = [](std::string function, int line) { return Frame{"player", std::move(function), "src/picture.c", line, 0}; };
  sequence.places = {{"cuCtxCreate", at("open_device", 31)}, {"cuStreamCreate", at("make_stream", 61)},
                     {"cuMemAlloc", at("make_buffer", 74)},  {"cuMemsetD8", at("clear", 80)},
                     {"cuMemFree", at("close", 92)},         {"cuStreamDestroy", at("close", 95)},
                     {"cuCtxDestroy", at("close", 97)},      {"cuGetErrorString", std::nullopt}};
  for (std::uint32_t place = 0; place < 7; ++place)
    sequence.calls.push_back({place, place < 3 ? "init" : place == 3 ? "work" : "teardown", 0});
  const auto tried = [&](std::uint32_t call, const char* fault, Verdict verdict, std::vector<std::uint32_t> defects) {
    sequence.trials.push_back({{fault}, call, {}, verdict, std::move(defects)});
  };
  tried(0, "cuCtxCreate#1=OUT_OF_MEMORY,refuse", Verdict::Pass, {});
  tried(1, "cuStreamCreate#1=OUT_OF_MEMORY,refuse", Verdict::Crash, {});
  tried(2, "cuMemAlloc#1=OUT_OF_MEMORY,refuse", Verdict::Leak, {0});
  tried(3, "cuMemsetD8#1=LAUNCH_FAILED,sticky", Verdict::Misreported, {});
  tried(4, "cuMemFree#1=INVALID_VALUE,refuse", Verdict::ReleaseRefused, {});
  tried(6, "cuCtxDestroy#1=INVALID_CONTEXT,refuse", Verdict::NotExercised, {});
  sequence.trials.push_back({{"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuCtxDestroy#1=INVALID_CONTEXT,refuse"}, 2, {6}, Verdict::Misuse, {1}});
  sequence.trials.push_back(
      {{"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemFree#1=INVALID_VALUE,after"}, 2, {std::nullopt}, Verdict::NotExercised, {}});
  return sequence;
}

// A release with all that a page can show.
Audit Story() {
  Run sweep = SweepWithFindings();
  sweep.sequence = SomeSequence();
  sweep.findings.front().acquired.stack.insert(sweep.findings.front().acquired.stack.begin(), Quoted("make_stream"));
  sweep.defects[0].change = Change::New;
  sweep.defects[0].released = {"cuStreamDestroy", {{"player", "close", "src/picture.c", 95, 1}}};
  sweep.defects[0].blame = report::Blame{{"player", "picture_alloc", "src/picture.c", 120, 1}, report::BlamedBecause::HeldIt};
  sweep.defects[0].unwinding =
      report::Unwinding{{"cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {{2, "OUT_OF_MEMORY"}, {7, ""}, {6, ""}}, 4, {5, 6}, {5}};
  sweep.defects[1].change = Change::Changed;
  sweep.defects[1].was = "1 device_memory in 1 trial";
  Audit audit = {.generated = "2026-01-02T03:04:05Z", .tool_version = "0.1.0"};
  audit.cases.push_back({"picture", {"nightly"}, {std::move(sweep), CyclesWithGrowth()}, ""});
  Run old = SecondFaults();
  for (report::Defect& defect : old.defects) defect.change = Change::Unchanged;
  if (!old.defects.empty()) {
    old.defects.front().suppressed = report::Suppressed{"the vendor's library keeps it", "ana", "2027-03-31", false, "suppressions.toml:4"};
  }
  audit.cases.push_back({"decode", {}, {std::move(old)}, ""});
  audit.cases.push_back({"clean", {}, {CleanSweep()}, ""});
  audit.cases.push_back({"gone", {}, {}, "left out by --tag"});
  audit.comparison = report::Comparison{
      "v1.2",
      {{Change::Fixed, "", "decode", report::Mode::Sweep, "leak-aaaa", Rule::Leak, "leak: 1 stream; open returned without cuStreamDestroy"},
       {Change::NotRun, "its case was left out", "gone", report::Mode::Sweep, "leak-bbbb", Rule::Leak, "1 context"}}};
  audit.unused_suppressions = {"suppressions.toml:12"};
  return audit;
}

// Names that try to leave the place where they are shown.
Audit Hostile() {
  const std::string evil = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>";
  const std::string controls = std::string("\x01\x1b[31m\xe2\x80\xa8\xe2\x80\xae\xff\xfe", 15) + "javascript:alert(1)";
  Run run = HostileStrings();
  for (std::size_t i = 0; i < 3; ++i) {
    Finding finding = Lost(evil, i == 0 ? evil : i == 1 ? controls : "std::vector<" + std::string(10240, 'T') + ">", i);
    finding.detail = controls + evil;
    finding.reproduce += " " + evil;
    finding.fingerprint = evil + "#\"'%";
    run.findings.push_back(std::move(finding));
  }
  run.sequence = SomeSequence();
  run.sequence->places[2] = {evil, Frame{evil, controls, evil, 3, 0}};
  run.sequence->trials[2].faults[0] = evil;
  harness::FindDefects(&run);
  Audit audit = AuditOf(std::move(run));
  audit.cases.front().name = evil;
  audit.cases.front().tags = {controls};
  audit.comparison = report::Comparison{evil, {{Change::NotRun, evil, controls, report::Mode::Sweep, evil, Rule::Leak, evil}}};
  audit.unused_suppressions = {evil};
  audit.generated = controls;
  return audit;
}

bool Write(const Audit& audit, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  if (report::WriteHtml(audit, report::SourceRoot("/"), out)) return true;
  std::cerr << "html_pages: " << file << ": cannot be written\n";
  return false;
}

}  // namespace
}  // namespace cuaudit::suites

int main(int argc, char** argv) {
  using namespace cuaudit::suites;
  if (argc != 2) {
    std::cerr << "html_pages: expected a directory\n";
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/";
  const bool written = Write(Story(), directory + "story.html") && Write(AuditOf(Many(10000, 1)), directory + "many.html") &&
                       Write(AuditOf(Many(20, 500)), directory + "calls.html") && Write(Hostile(), directory + "hostile.html") &&
                       Write(AuditOf(CleanSweep()), directory + "clean.html") &&
                       Write(AuditOf(NotExercised()), directory + "unproved.html") &&
                       Write(AuditOf(CyclesWithGrowth()), directory + "growth.html") && Write(Audit(), directory + "empty.html");
  return written ? 0 : 1;
}
