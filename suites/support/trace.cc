// SPDX-License-Identifier: MIT
#include "suites/support/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "faults/driver/effects.h"
#include "harness/defect/defects.h"
#include "harness/ledger/folding.h"
#include "harness/ledger/rules.h"

namespace cuaudit::testing {

using driver::CallId;
using faults::Record;
using faults::RecordKind;

namespace {

// Where the gate asks for the current context.
bool HasContext(const Record& record) {
  if (record.kind != RecordKind::Call || record.call >= driver::kCallCount) return false;
  const driver::Effect effect = driver::EffectOf(driver::BaseOf(static_cast<CallId>(record.call))).effect;
  return driver::IsAcquire(effect) || driver::IsRelease(effect) || effect == driver::Effect::SetsContext;
}

}  // namespace

Step& Step::In(int index, std::uint64_t value) {
  record_->argument[index] = value;
  return *this;
}

Step& Step::Fails(CUresult code) {
  record_->result = code;
  return *this;
}

Step& Step::Refused(CUresult code) {
  record_->result = code;
  record_->flags = faults::kInjected;
  record_->fault = 1;
  return *this;
}

Step& Step::After(CUresult code) {
  record_->result = code;
  record_->flags = faults::kInjected | faults::kForwarded;
  record_->fault = 1;
  return *this;
}

Step& Step::Unfinished() {
  record_->end = 0;
  return *this;
}

Step& Step::Thread(std::uint32_t tid) {
  record_->tid = tid;
  return *this;
}

Step& Step::Process(std::uint32_t pid) {
  record_->pid = pid;
  return *this;
}

Step& Step::Context(std::uint64_t context) {
  if (!HasContext(*record_)) ADD_FAILURE() << "no journal has a context in this record";
  record_->context = context;
  return *this;
}

Step& Step::Cycle(std::uint32_t cycle) {
  record_->cycle = cycle;
  return *this;
}

Step& Step::In(faults::Phase phase) {
  record_->phase = phase;
  return *this;
}

Step& Step::Stack(std::uint32_t stack) {
  record_->stack = stack;
  return *this;
}

Step& Step::Flags(std::uint16_t flags) {
  record_->flags = flags;
  return *this;
}

Step& Step::At(std::uint64_t begin, std::uint64_t end) {
  record_->begin = begin;
  record_->end = end;
  return *this;
}

Record& Trace::Next(RecordKind kind, std::uint16_t call) {
  Record& record = records_.emplace_back();
  record.begin = ++clock_;
  record.end = ++clock_;
  record.kind = kind;
  record.call = call;
  record.pid = kProcess;
  record.tid = kThread;
  if (HasContext(record)) record.context = kContext;
  record.flags = faults::kForwarded;
  return record;
}

Step Trace::Call(CallId call) { return Step(&Next(RecordKind::Call, static_cast<std::uint16_t>(call))); }

Step Trace::Host(faults::HostCall call, std::uint64_t handle, std::uint64_t second) {
  return Step(&Next(RecordKind::Host, static_cast<std::uint16_t>(call))).In(0, handle).In(1, second);
}

Step Trace::Say(faults::MarkKind mark, std::int32_t value) {
  Record& record = Next(RecordKind::Mark, static_cast<std::uint16_t>(mark));
  record.argument[0] = static_cast<std::uint32_t>(value);
  return Step(&record);
}

Step Trace::Mark(faults::MarkKind mark) { return Step(&Next(RecordKind::Mark, static_cast<std::uint16_t>(mark))); }

Step Trace::Stop(int signal, std::int64_t code, std::uint64_t address, std::uint64_t call) {
  faults::Record& record = Next(RecordKind::Stop, static_cast<std::uint16_t>(signal));
  record.argument[0] = static_cast<std::uint64_t>(code);
  record.argument[1] = address;
  record.argument[3] = call;
  return Step(&record);
}

Step Trace::Event(faults::ProcessEvent event, std::uint32_t pid, std::uint32_t parent) {
  return Step(&Next(RecordKind::Process, static_cast<std::uint16_t>(event))).Process(pid).In(0, parent);
}

Step Trace::Arguments(const Step& call, const std::vector<std::uint64_t>& addresses) {
  Record& record = Next(RecordKind::Argument, 0);
  record.context = call.begin();
  Step step(&record);
  for (std::size_t i = 0; i < addresses.size(); ++i) step.In(static_cast<int>(i), addresses[i]);
  return step;
}

Step Trace::NodeContent(const Step& call, std::uint16_t flag, std::uint64_t first, std::uint64_t second) {
  Record& record = Next(RecordKind::Argument, 0);
  record.context = call.begin();
  record.flags = flag;
  return Step(&record).In(0, first).In(1, second);
}

Step Trace::Misuse(driver::MisuseRule rule, driver::Kind kind, std::uint64_t object, std::uint64_t bytes, std::uint64_t origin,
                   std::uint64_t other) {
  Step step(&Next(RecordKind::Misuse, static_cast<std::uint16_t>(rule)));
  return step.In(0, static_cast<std::uint64_t>(kind)).In(1, object).In(2, bytes).In(3, origin).In(4, other);
}

Step Trace::Retain(std::uint64_t context, std::uint64_t device) {
  return Call(CallId::DevicePrimaryCtxRetain).Out(0, context).In(1, device).Context(0);
}

Step Trace::ReleasePrimary(std::uint64_t device) { return Call(CallId::DevicePrimaryCtxRelease_v2).In(0, device); }
Step Trace::CreateStream(std::uint64_t stream) { return Call(CallId::StreamCreate).Out(0, stream); }
Step Trace::DestroyStream(std::uint64_t stream) { return Call(CallId::StreamDestroy_v2).In(0, stream); }
Step Trace::Alloc(std::uint64_t address, std::uint64_t bytes) { return Call(CallId::MemAlloc_v2).Out(0, address).In(1, bytes); }
Step Trace::Free(std::uint64_t address) { return Call(CallId::MemFree_v2).In(0, address); }
Step Trace::Push(std::uint64_t context) { return Call(CallId::CtxPushCurrent_v2).In(0, context); }
Step Trace::Pop(std::uint64_t context) { return Call(CallId::CtxPopCurrent_v2).Out(0, context); }

Step Trace::Last() { return Step(&records_.back()); }

void Trace::RenameLast(std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t& argument : records_.back().argument) {
    if (argument == from) argument = to;
  }
}

// Every trace of every test is folded in two parts too, wherever it can be cut: the ledger must be the same.
harness::Ledger Trace::Fold() const {
  constexpr std::size_t kFewEnough = 200;
  const std::vector<faults::Record> records = Records();
  const harness::Ledger whole = harness::Fold(records);
  if (records.size() > kFewEnough) return whole;
  harness::Folding begun;
  std::size_t before = 0;
  for (std::size_t cut = 0; cut < records.size(); ++cut) {
    if (records[cut].kind == RecordKind::Argument) continue;  // written before its call returns
    if (!begun.Add(std::span(records).subspan(before, cut - before))) break;
    before = cut;
    harness::Folding copy(begun);
    const std::optional<harness::Ledger> in_parts = copy.Finish(std::span(records).subspan(cut));
    EXPECT_TRUE(!in_parts.has_value() || *in_parts == whole) << "cut before record " << cut;
  }
  return whole;
}

std::vector<std::string> Left(const harness::Ledger& ledger) {
  std::map<std::tuple<driver::Kind, harness::State, bool>, int> counts;
  for (const harness::Object& object : ledger.objects) {
    if (object.state == harness::State::Released || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent) continue;
    const bool relied = object.state == harness::State::Orphaned && (object.own_context || object.ended_with_peer);
    ++counts[{object.kind, object.state, relied}];
    // An entry left on a context stack is a violation, and no leak beside.
    if (object.kind == driver::Kind::ContextStackEntry && object.state == harness::State::Live) continue;
    const harness::Rule rule = relied                                           ? harness::Rule::ReliedOnContext
                               : object.state == harness::State::Orphaned       ? harness::Rule::Orphaned
                               : object.state == harness::State::ReleaseRefused ? harness::Rule::ReleaseRefused
                                                                                : harness::Rule::Leak;
    Saw(harness::Name(rule), driver::Name(object.kind));
  }
  std::vector<std::string> lines;
  for (const auto& [key, count] : counts) {
    const auto [kind, state, relied] = key;
    std::string line = std::string(driver::Name(kind)) + " " + std::to_string(count);
    if (state == harness::State::Orphaned) line += relied ? " relied_on_context" : " orphaned";
    if (state == harness::State::ReleaseRefused) line += " release_refused";
    lines.push_back(line);
  }
  SawDefects(CountLosses(ledger));
  return lines;
}

std::vector<std::string> Wrong(const harness::Ledger& ledger) {
  std::vector<std::string> lines;
  for (const harness::Violation& violation : ledger.violations) {
    lines.push_back(std::string(harness::Name(violation.rule)) + " " + std::string(driver::Name(violation.kind)));
    Saw(harness::Name(violation.rule), driver::Name(violation.kind));
  }
  SawDefects(CountViolations(ledger));
  return lines;
}

namespace {

using harness::IsLoss;
using harness::Rule;

std::uint64_t PlaceOf(const harness::Site& site) {
  return std::uint64_t{site.stack} << 24 ^ std::uint64_t{site.call} << 4 ^ static_cast<std::uint64_t>(site.record_kind);
}

}  // namespace

std::size_t CountDefects(const std::vector<WrongThing>& things) {
  harness::DefectFinder finder;
  report::Run run;
  for (const WrongThing& thing : things) {
    report::Finding finding = {.rule = thing.rule, .kind = std::string(driver::Name(thing.kind))};
    run.findings.push_back(finding);
    harness::Shown shown{0, run.findings.size() - 1, thing.kind, thing.place ^ thing.other, {}, nullptr};
    // Without symbols the call stands for the function that made it.
    if (!IsLoss(thing.rule) && thing.place != 0) {
      shown.blame.emplace();
      shown.blame->function.module = "prog";
      shown.blame->function.function = std::to_string(thing.place);
    }
    finder.Add(shown, thing.rule);
  }
  finder.Find(&run);
  return run.defects.size();
}

std::size_t CountDefects(const std::vector<harness::TrialFinding>& findings) {
  std::vector<WrongThing> things;
  for (const harness::TrialFinding& finding : findings) {
    const bool lost = IsLoss(finding.rule) || finding.where_key == 0;
    things.push_back({finding.rule, finding.kind, lost ? finding.acquired_key : finding.where_key, lost ? 0 : finding.other_key});
  }
  return CountDefects(things);
}

std::size_t CountLosses(const harness::Ledger& ledger) {
  std::vector<WrongThing> things;
  for (const harness::Object& object : ledger.objects) {
    const bool relied = object.own_context || object.ended_with_peer;
    const bool lost = object.state == harness::State::Live || (object.state == harness::State::Orphaned && !relied);
    if (!lost || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent || object.kind == driver::Kind::ContextStackEntry) continue;
    things.push_back({Rule::Leak, object.kind, PlaceOf(object.acquired)});
  }
  return CountDefects(things);
}

std::size_t CountViolations(const harness::Ledger& ledger) {
  std::vector<WrongThing> things;
  for (const harness::Violation& violation : ledger.violations) {
    things.push_back({violation.rule, violation.kind, PlaceOf(violation.where), PlaceOf(violation.other)});
  }
  return CountDefects(things);
}

}  // namespace cuaudit::testing
