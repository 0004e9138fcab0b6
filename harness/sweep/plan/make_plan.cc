// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/make_plan.h"

#include <unordered_map>
#include <unordered_set>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

// Any call accepts a code that loses the context, so this text is valid exactly when `how` is.
constexpr std::string_view kHowProbe = "cuInit#1=ILLEGAL_ADDRESS,";

std::optional<faults::Fault> ParseHow(const std::string& how) { return ParsedFault(std::string(kHowProbe) + how); }

constexpr HowWord kHowWords[] = {{"refuse", "not forwarded, the error is returned, outputs are untouched"},
                                 {"refuse+garbage", "not forwarded, the error is returned, outputs are overwritten with garbage"},
                                 {"after", "forwarded, then the error is returned; a release has happened all the same"},
                                 {"persist", "refused from that call on"},
                                 {"burst", "refused twice in a row"},
                                 {"burst:K", "refused K times in a row; in a fault text refuse,burst=K"},
                                 {"host_oom", "an allocation of the host by the program's own modules is refused: malloc#N=host_oom"},
                                 {"host_thread", "a thread that the program's own modules start is refused: pthread_create#N=EAGAIN"},
                                 {"sticky", "the context is lost: this and every later call fails with the same error"}};

std::string ExpectedOf(std::string_view how) {
  if (how.starts_with("burst")) return "burst, or burst:K with a count K from 1";
  std::string words;
  for (const HowWord& one : kHowWords) words.append(words.empty() ? "one of " : ", ").append(one.word);
  return words;
}

bool WritesOutput(driver::CallId call) {
  const driver::Shape& shape = driver::ShapeOf(call);
  return std::any_of(shape.parameter, shape.parameter + shape.count, [](const driver::Parameter& one) { return one.output; });
}

// True for a call after which the driver has a function of the program to call, with an argument. A program that is told that the call
// failed gives the argument back, and has no reason to wait for a function that it believes will never run.
bool HandsOverAFunction(driver::BaseId base) {
  switch (base) {
    case driver::BaseId::LaunchHostFunc:
    case driver::BaseId::StreamAddCallback:
    case driver::BaseId::GraphAddHostNode:
    case driver::BaseId::GraphHostNodeSetParams:
    case driver::BaseId::GraphExecHostNodeSetParams:
      return true;
    default:
      return driver::FamilyOf(driver::EffectOf(base).kind) == driver::Family::Callback && !driver::IsRelease(driver::EffectOf(base).effect);
  }
}

// The codes with which the call may fail in this way; none when it cannot.
std::vector<CUresult> CodesFor(driver::BaseId base, faults::How how, bool all) {
  std::vector<CUresult> codes;
  if (how == faults::How::After && HandsOverAFunction(base)) return codes;
  if (how == faults::How::Sticky) {
    for (const CUresult code : driver::LegalCodes(base)) {
      if (driver::IsSticky(code) && (all || codes.empty())) codes.push_back(code);
    }
    if (codes.empty()) codes.push_back(CUDA_ERROR_ILLEGAL_ADDRESS);
  } else if (all) {
    const auto legal = driver::LegalCodes(base);
    codes.assign(legal.begin(), legal.end());
  } else {
    codes.push_back(driver::DefaultCode(base));
  }
  return codes;
}

// The reason why no fault can hit a call; None when one can.
Reason WhyNever(driver::BaseId base) {
  if (driver::EffectOf(base).effect == driver::Effect::Describes) return Reason::Describes;
  return driver::DefaultCode(base) == CUDA_SUCCESS ? Reason::NoError : Reason::None;
}

}  // namespace

std::span<const HowWord> HowWords() noexcept { return kHowWords; }

Status CheckPlanOptions(const PlanOptions& options) {
  for (const std::string& how : options.hows) {
    if (faults::HostFaultAsked(how) == nullptr && !ParseHow(how))
      return {Exit::Usage, OptionFlag{"--how"}, "'" + how + "': expected " + ExpectedOf(how)};
  }
  for (const std::string& call : options.calls) {
    if (driver::FindBase(call) == driver::kBaseCount) {
      return {Exit::Usage, OptionFlag{"--call"},
              "'" + call + "': expected a driver entry point without version suffix, such as cuMemAlloc"};
    }
  }
  return {};
}

bool IsChosen(const PlanOptions& options, driver::BaseId base) {
  return options.calls.empty() || std::find(options.calls.begin(), options.calls.end(), driver::Name(base)) != options.calls.end();
}

std::string CallInText(const std::string& fault) { return std::string(faults::WordsOf(fault).call); }

namespace {

// Goes through all faults that are possible and not pruned, in order. `take` gets each with its call and why it is not tried; None: it is.
template <typename Take>
std::size_t GoThroughFaults(const CallStates& rehearsal, const PlanOptions& options, bool by_site, PlannedFaults* plan, const Take& take) {
  std::size_t tried = 0;
  std::unordered_set<std::uint64_t> known;
  std::unordered_set<std::uint64_t> carried_out;  // states and places in which `after` is tried
  std::vector<faults::Fault> hows;
  for (const std::string& how : options.hows) {
    const std::optional<faults::Fault> fault = ParseHow(how);
    if (fault && std::find(hows.begin(), hows.end(), *fault) == hows.end()) hows.push_back(*fault);  // burst is burst:2
  }
  for (const CallState& place : rehearsal.calls) {
    const faults::Record& record = *place.record;
    const auto call = CallOf(record);
    const driver::BaseId base = driver::BaseOf(call);
    if (const Reason why = WhyNever(base); why != Reason::None) {
      ++plan->skipped[why];
      continue;
    }
    const bool wanted = IsChosen(options, base);
    if (!wanted) ++plan->skipped[Reason::NotChosen];
    const bool comparable = options.prune == Pruning::All && place.state != 0 && !place.interpreted;
    const bool stood_for = options.prune != Pruning::None && place.again;
    const bool same_refused = stood_for || (comparable && !known.insert(place.state).second);
    // Only what the driver carries out stands for others under `after`.
    bool same_after = stood_for && carried_out.count(place.site) != 0;
    if (!place.declined) {
      same_after = same_after || (comparable && !carried_out.insert(place.state).second);
      if (!place.unsure) carried_out.insert(place.site);
    }
    for (faults::Fault fault : hows) {
      if (fault.how == faults::How::RefuseGarbage && !WritesOutput(call)) {
        if (wanted) ++plan->skipped[Reason::NoOutput];
        continue;
      }
      const bool is_after = fault.how == faults::How::After;
      // What the driver declines by itself cannot be carried out and denied: a stream that is not ready, a registration that is there.
      if (is_after && place.declined && !HandsOverAFunction(base)) {
        if (wanted) ++plan->skipped[Reason::Declined];
        continue;
      }
      const bool same = is_after ? same_after : same_refused;
      fault.base = base;
      fault.occurrence = record.occurrence;
      if (by_site) AddressBySite(place, &fault);
      for (const CUresult code : CodesFor(base, fault.how, options.all_codes)) {
        ++plan->possible;
        if (same) {
          if (wanted) ++plan->pruned[place.again ? Reason::LaterTurn : Reason::FirstSameState];
          continue;
        }
        fault.code = code;
        Reason why_not = Reason::None;
        if (!wanted) why_not = Reason::NotChosen;
        else if (place.unsure) why_not = Reason::Unsure;
        else if (options.limit != 0 && tried == options.limit) why_not = Reason::BeyondLimit;
        if (wanted && why_not != Reason::None) ++plan->skipped[why_not];
        take(fault, place, why_not);
        if (why_not == Reason::None) ++tried;
      }
    }
  }
  return tried;
}

}  // namespace

PlannedFaults MakePlan(const CallStates& rehearsal, const PlanOptions& options, bool by_site) {
  PlannedFaults plan;
  GoThroughFaults(rehearsal, options, by_site, &plan, [&](const faults::Fault& fault, const CallState& place, Reason why_not) {
    PlannedWay& way = plan.ways.emplace_back();
    way.way.fault = TextOf(fault);
    way.way.site = place.site;
    way.way.phase = place.record->phase;
    way.state = place.state;
    way.why_not = why_not;
    way.trial = plan.faults.size();
    if (why_not != Reason::None) return;
    plan.faults.push_back(way.way.fault);
    plan.sites.push_back(place.site);
  });
  return plan;
}

std::uint64_t ListFaults(const CallStates& rehearsal, const PlanOptions& options, bool by_site, const FaultSink& sink) {
  PlannedFaults counted;
  return GoThroughFaults(rehearsal, options, by_site, &counted, [&](const faults::Fault& fault, const CallState& place, Reason why_not) {
    char text[faults::kMaxFaultText];
    if (why_not == Reason::None) sink({text, faults::FormatFault(fault, text, sizeof(text))}, place.site);
  });
}

WaysBack WaysWhileUnwinding(const faults::Record& record) {
  WaysBack ways;
  const driver::BaseId base = BaseOf(record);
  if (WhyNever(base) != Reason::None) return ways;
  faults::Fault& fault = ways.way[ways.count++];
  fault.base = base;
  fault.occurrence = record.occurrence;
  fault.code = driver::DefaultCode(base);
  // A context pop under `after` would only show what the program then believes to be current, so it is left out.
  const driver::Effect effect = driver::EffectOf(base).effect;
  // `after` needs a call that the driver carries out, so calls that failed in this run are left out.
  if (driver::IsRelease(effect) && effect != driver::Effect::PopsContext && record.result == CUDA_SUCCESS) {
    ways.way[ways.count] = fault;
    ways.way[ways.count++].how = faults::How::After;
  }
  return ways;
}

void AddressBySite(const CallState& call, faults::Fault* fault) {
  if (call.site == 0) return;
  fault->site = call.site;
  fault->occurrence = call.turn;
}

void AddressAfter(std::uint64_t site, std::uint32_t calls_since, faults::Fault* fault) {
  if (site == 0) return;
  fault->site = site;
  fault->occurrence = calls_since;
  fault->follows = true;
}

std::string TextOf(const faults::Fault& fault) {
  char text[faults::kMaxFaultText];
  return {text, faults::FormatFault(fault, text, sizeof(text))};
}

std::uint64_t WayAt(const faults::Fault& fault, std::uint64_t where) {
  const auto how = static_cast<std::uint64_t>(fault.how) << 32U | fault.burst;
  return HashNumber(how, HashNumber(static_cast<std::uint64_t>(fault.code), HashNumber(where, kHashSeed)));
}

std::uint64_t WayAt(const std::string& fault, std::uint64_t where) {
  const std::optional<faults::Fault> parsed = ParsedFault(fault);
  return parsed ? WayAt(*parsed, where) : 0;
}

std::vector<bool> Spread(std::span<const StoodFor> rows, std::size_t budget) {
  std::vector<bool> tried(rows.size(), rows.size() <= budget);
  if (rows.size() <= budget) return tried;
  struct Member {  // the rows of one trial
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t left = 0;  // not yet taken
  };
  std::vector<Member> members;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (members.empty() || rows[members.back().begin].after != rows[i].after) members.push_back({i, i, 0});
    ++members.back().end;
    ++members.back().left;
  }
  std::unordered_map<std::uint64_t, std::size_t> positions;  // by shape: taken so far
  while (budget != 0) {
    std::vector<Member*> open;
    for (Member& member : members) {
      if (member.left != 0) open.push_back(&member);
    }
    const std::size_t taken = std::min(budget, open.size());
    for (std::size_t i = 0; i < open.size(); ++i) {
      // Of `open.size()` members `taken` at equal distances, the last one among them.
      if ((i + 1) * taken / open.size() == i * taken / open.size()) continue;
      Member& member = *open[i];
      const std::size_t count = member.end - member.begin;
      std::size_t at = positions[rows[member.begin].shape]++ % count;
      while (tried[member.begin + at]) at = (at + 1) % count;
      tried[member.begin + at] = true;
      --member.left;
    }
    budget -= taken;
  }
  return tried;
}

}  // namespace cuaudit::harness
