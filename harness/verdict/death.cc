// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/driver/result.h"
#include "harness/verdict/parts.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using words::DetailPart;

constexpr std::size_t kTold = 5;  // last driver calls in the detail

std::string NameOfCall(const Record& call) { return std::string(driver::Name(BaseOf(call))); }

// The last driver calls of the first process, the very last one first.
std::vector<const Record*> LastCalls(const Evidence& trial) {
  std::vector<const Record*> calls;
  for (const std::span<const std::uint32_t> made : {trial.own_calls(), std::span<const std::uint32_t>(trial.facts().calls)}) {
    calls.clear();
    for (auto call = made.rbegin(); call != made.rend() && calls.size() < kTold; ++call) {
      if (trial.facts().IsFirst(trial.record(*call).pid)) calls.push_back(&trial.record(*call));
    }
    if (calls.size() >= kTold) break;
  }
  return calls;
}

// "cuMemAlloc, cuMemFree"; of a lifecycle "cuMemAlloc=SUCCESS, cuMemFree=?"
std::string Listed(const Evidence& trial, const std::vector<const Record*>& last) {
  std::string text;
  for (auto call = last.rbegin(); call != last.rend(); ++call) {
    text.append(call == last.rbegin() ? "" : ", ").append(NameOfCall(**call));
    if (trial.ending.step.empty()) continue;
    text.append((*call)->end == 0 ? "=?" : "=");
    if ((*call)->end != 0) text += driver::ShortResultName(static_cast<CUresult>((*call)->result));
  }
  return text;
}

const Record* CallUnderWay(const Evidence& trial, const Record& stop) { return trial.call_at(stop.argument[3]); }

// Where the process died of its signal; null when the journal has no record of that.
const Record* FindDeath(const Evidence& trial) {
  const std::vector<std::uint32_t>& stops = trial.facts().stops;
  const auto found = std::find_if(stops.rbegin(), stops.rend(), [&](std::uint32_t index) {
    const Record& stop = trial.record(index);
    return stop.call != 0 && stop.call == trial.ending.signal && trial.facts().IsFirst(stop.pid);
  });
  return found == stops.rend() ? nullptr : &trial.record(*found);
}

// True when the handle of an object is the address of its memory.
bool IsMemory(driver::Family family) {
  constexpr std::array kMemory = {driver::Family::Pointer, driver::Family::HostPointer, driver::Family::HostMapping,
                                  driver::Family::HostHeap};
  return std::find(kMemory.begin(), kMemory.end(), family) != kMemory.end();
}

// What lies at an address; none when no object is known there.
std::optional<DetailPart> ObjectAt(const Evidence& trial, std::uint64_t address) {
  const std::vector<Object>& objects = trial.ledger->objects;
  const auto found = std::find_if(objects.rbegin(), objects.rend(), [&](const Object& object) {
    return object.bytes != 0 && address >= object.handle && address - object.handle < object.bytes &&
           IsMemory(driver::FamilyOf(object.kind));
  });
  if (found == objects.rend()) return std::nullopt;
  const bool gone = found->state == State::Released || found->state == State::Orphaned;
  return DetailPart{gone ? Detail::InReleased : Detail::InLive, {std::string(driver::Name(found->kind))}};
}

// Addresses below this are never mapped (vm.mmap_min_addr is at least a page), so a small one comes from a null pointer.
constexpr std::uint64_t kNullBytes = 4096;
constexpr std::uint64_t kNearStack = 1U << 16;

std::string Hex(std::uint64_t number) {
  char text[16];
  return "0x" + std::string(text, std::to_chars(std::begin(text), std::end(text), number, 16).ptr);
}

// The kind of address that the program used, without the address itself, which differs from run to run.
DetailPart AddressClass(const Evidence& trial, const Record& stop) {
  const std::uint64_t address = stop.argument[1];
  const std::uint64_t stack = stop.argument[2];
  const auto code = static_cast<int>(static_cast<std::int64_t>(stop.argument[0]));
  if (stop.call == SIGSEGV && code == SI_KERNEL) return {Detail::AtNoPointer};
  if (address < kNullBytes) return {Detail::AtNullPage, {Hex(address)}};
  if (stack != 0 && address + kNearStack > stack && address < stack + kNearStack) return {Detail::AtStackEnd};
  if (std::optional<DetailPart> object = ObjectAt(trial, address)) return *object;
  if (stop.call == SIGBUS) return {code == BUS_ADRALN ? Detail::Misaligned : Detail::NoMemoryBehind};
  return {code == SEGV_MAPERR ? Detail::NothingMapped : Detail::NotAllowed};
}

Details CauseOf(const Evidence& trial, const Record& stop) {
  const DetailPart name = {Detail::Signal, {words::SignalName(stop.call)}};
  if (static_cast<std::int64_t>(stop.argument[0]) <= 0) {
    if (stop.call == SIGABRT) return {name};
    return {name, {Detail::RaisedByCall}};
  }
  switch (stop.call) {
    case SIGSEGV:
    case SIGBUS:
      return {name, AddressClass(trial, stop)};
    case SIGFPE:
      if (static_cast<int>(stop.argument[0]) != FPE_INTDIV) return {name};
      return {name, {Detail::DividedByZero}};
    case SIGILL:
      return {name, {Detail::UnknownInstruction}};
    case SIGSYS:
      return {name, {Detail::ForbiddenCall}};
    default:
      return {name};
  }
}

bool IsDeadly(int signal) {
  constexpr std::array kDeadly = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  return std::find(kDeadly.begin(), kDeadly.end(), signal) != kDeadly.end();
}

// The place of a crash or abort, and its cause. Empty: unknown.
Details Crashed(const Evidence& trial, TrialFinding* finding) {
  if (const Record* const stop = FindDeath(trial)) {
    SetWhere(SiteOf(*stop), *trial.journal, finding);
    const Record* const inside = CallUnderWay(trial, *stop);
    Details cause = CauseOf(trial, *stop);
    if (inside != nullptr) cause.push_back({Detail::Inside, {NameOfCall(*inside)}});
    return cause;
  }
  if (!trial.ending.step.empty() || !IsDeadly(trial.ending.signal)) return {};
  // With a record nothing would be unknown: the signal's handler was the program's, or had no stack to run on.
  return {{Detail::Signal, {words::SignalName(trial.ending.signal)}}, {Detail::AtUnknownPlace}};
}

struct Stuck {
  const Record* stop = nullptr;
  const Record* call = nullptr;  // the driver call that the thread is inside of
};

// The threads of the first process at the deadline. First those inside a driver call, by the begin of that call, then the first thread.
std::vector<Stuck> StuckThreads(const Evidence& trial) {
  std::vector<Stuck> threads;
  for (const std::uint32_t index : trial.facts().stops) {
    const Record& stop = trial.record(index);
    if (stop.call == 0 && trial.facts().IsFirst(stop.pid)) threads.push_back({&stop, CallUnderWay(trial, stop)});
  }
  std::stable_sort(threads.begin(), threads.end(), [](const Stuck& a, const Stuck& b) {
    if ((a.call == nullptr) != (b.call == nullptr)) return a.call != nullptr;
    if (a.call != nullptr) return a.call->begin < b.call->begin;
    return (a.stop->tid == a.stop->pid) > (b.stop->tid == b.stop->pid);
  });
  return threads;
}

Details Hung(const Evidence& trial, const std::vector<const Record*>& last, TrialFinding* finding) {
  const std::vector<Stuck> threads = StuckThreads(trial);
  if (threads.empty()) {
    // The program did not answer. A call that has not returned tells as much.
    const auto stuck = std::find_if(last.begin(), last.end(), [](const Record* call) { return call->end == 0; });
    if (stuck == last.end()) return trial.ending.step.empty() ? Details{{Detail::StuckSomewhere}} : Details();
    SetWhere(SiteOf(**stuck), *trial.journal, finding);
    return {{Detail::StuckIn, {NameOfCall(**stuck)}}};
  }
  const Stuck& first = threads.front();
  SetWhere(SiteOf(first.call != nullptr ? *first.call : *first.stop), *trial.journal, finding);
  Details stuck = {{Detail::StuckOutside}};
  if (first.call != nullptr) stuck = {{Detail::StuckIn, {NameOfCall(*first.call)}}};
  std::string others;
  for (std::size_t i = 1; i < threads.size(); ++i) {
    if (threads[i].call != nullptr) others += (others.empty() ? "" : ", ") + NameOfCall(*threads[i].call);
  }
  if (!others.empty()) stuck.push_back({Detail::OthersIn, {others}});
  return stuck;
}

}  // namespace

Verdict DeathOf(const Ending& ending) {
  if (ending.timed_out) return Verdict::Hang;
  if (ending.signal == SIGABRT) return Verdict::Abort;
  return ending.signal != 0 ? Verdict::Crash : Verdict::Pass;
}

bool LacksDestructor(const Evidence& trial) {
  using driver::BaseId;
  using driver::Effect;
  const std::vector<Stuck> threads = StuckThreads(trial);
  if (threads.empty() || threads.front().call != nullptr) return false;
  std::map<std::uint64_t, bool> holders;  // graphs and executable graphs; true: of a retain that the program was told had failed
  const auto hold = [&](std::uint64_t graph, bool unknown) { holders[graph] = holders[graph] || unknown; };
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& call = trial.record(index);
    const driver::EffectRow& row = driver::EffectOf(BaseOf(call));
    const bool injected = (call.flags & faults::kInjected) != 0;
    if (injected ? (call.flags & faults::kForwarded) == 0 : call.result != CUDA_SUCCESS) continue;  // did nothing
    if (row.base == BaseId::GraphDestroy || row.base == BaseId::GraphExecDestroy) holders.erase(call.argument[0]);
    if (row.base == BaseId::GraphAddChildGraphNode) {
      const auto child = holders.find(call.argument[4]);
      if (child != holders.end()) hold(call.argument[1], child->second);
    }
    const bool again = row.effect == Effect::RetainsCounted && row.kind == driver::Kind::UserObject;
    const bool copies = row.effect == Effect::Instantiates || row.effect == Effect::ClonesGraph || row.effect == Effect::EndsCapture;
    const auto from = copies ? holders.find(call.argument[1]) : holders.end();
    if (injected && (again || from != holders.end())) return true;
    if (row.effect == Effect::GraphRetains) hold(call.argument[0], injected);
    if (from != holders.end() && row.effect != Effect::EndsCapture) hold(call.argument[0], from->second);
  }
  return std::any_of(holders.begin(), holders.end(), [](const auto& graph) { return graph.second; });
}

TrialFinding DeathFinding(Verdict verdict, const Evidence& trial) {
  TrialFinding finding = {.rule = verdict == Verdict::Hang    ? Rule::Hang
                                  : verdict == Verdict::Abort ? Rule::Abort
                                                              : Rule::Crash,
                          .count = 1};
  const std::vector<const Record*> last = LastCalls(trial);
  Details how = verdict == Verdict::Hang ? Hung(trial, last, &finding) : Crashed(trial, &finding);
  if (!trial.ending.step.empty()) how.insert(how.begin(), {Detail::DiedIn, {trial.ending.step}});
  finding.detail = std::move(how);
  if (last.empty()) return finding;
  if (finding.where.record_kind == faults::RecordKind::Empty) SetWhere(SiteOf(*last.front()), *trial.journal, &finding);
  finding.detail.push_back({Detail::LastCalls, {Listed(trial, last)}});
  return finding;
}

}  // namespace cuaudit::harness
