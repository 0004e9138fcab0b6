// SPDX-License-Identifier: MIT
#include "harness/sweep/make_plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "harness/sweep/site_text.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

// Any call accepts a code that loses the context, so this text is right exactly when `how` is.
constexpr std::string_view kHowProbe = "cuInit#1=ILLEGAL_ADDRESS,";

faults::ParseError ParseHow(const std::string& how, faults::Fault* fault) {
  return faults::ParseFault(std::string(kHowProbe) + how, fault);
}

bool WritesOutput(driver::CallId call) {
  const driver::Shape& shape = driver::ShapeOf(call);
  return std::any_of(shape.parameter, shape.parameter + shape.count, [](const driver::Parameter& one) { return one.output; });
}

std::vector<CUresult> CodesFor(driver::BaseId base, faults::How how, bool all) {
  std::vector<CUresult> codes;
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

std::vector<const faults::Record*> CallsInPlanOrder(const faults::JournalView& rehearsal) {
  std::vector<const faults::Record*> calls;
  std::set<std::pair<std::uint32_t, std::uint32_t>> threads;
  for (const faults::Record& record : rehearsal.records()) {
    if (record.kind != faults::RecordKind::Call || (record.flags & faults::kNested) != 0) continue;
    if (record.call >= driver::kCallCount || record.occurrence == 0) continue;
    calls.push_back(&record);
    threads.emplace(record.pid, record.tid);
  }
  const bool threaded = threads.size() > 1;
  std::sort(calls.begin(), calls.end(), [threaded](const faults::Record* a, const faults::Record* b) {
    if (!threaded) return a->begin < b->begin;
    const auto order = [](const faults::Record* one) {
      return std::make_tuple(driver::Index(driver::BaseOf(static_cast<driver::CallId>(one->call))), one->occurrence, one->begin);
    };
    return order(a) < order(b);
  });
  return calls;
}

}  // namespace

std::uint64_t KeptSite(const faults::JournalView& journal, const faults::Record& record) {
  if (record.stack == 0 && (journal.header().flags.load() & faults::kStacksDropped) != 0) return 0;
  return SiteKey(journal, RecordSite(record));
}

Status CheckPlanOptions(const PlanOptions& options) {
  for (const std::string& how : options.hows) {
    if (how == faults::kHostOom) continue;
    faults::Fault ignored;
    const faults::ParseError error = ParseHow(how, &ignored);
    if (error.expected != nullptr) return {Exit::Usage, "--how: '" + how + "': expected " + error.expected};
  }
  for (const std::string& call : options.calls) {
    if (driver::FindBase(call) == driver::kBaseCount) {
      return {Exit::Usage, "--call: '" + call + "': expected a driver entry point without version suffix, such as cuMemAlloc"};
    }
  }
  return {};
}

PlannedFaults MakePlan(const faults::JournalView& rehearsal, const PlanOptions& options) {
  PlannedFaults plan;
  const std::set<std::string, std::less<>> chosen(options.calls.begin(), options.calls.end());
  for (const faults::Record* const record : CallsInPlanOrder(rehearsal)) {
    const auto call = static_cast<driver::CallId>(record->call);
    const driver::BaseId base = driver::BaseOf(call);
    if (driver::EffectOf(base).effect == driver::Effect::Describes) {
      ++plan.skipped["describes the API"];
      continue;
    }
    if (driver::DefaultCode(base) == CUDA_SUCCESS) {
      ++plan.skipped["no documented error"];
      continue;
    }
    const bool wanted = chosen.empty() || chosen.find(driver::Name(base)) != chosen.end();
    if (!wanted) ++plan.skipped["not chosen by --call"];
    const std::uint64_t site = KeptSite(rehearsal, *record);
    for (const std::string& how : options.hows) {
      faults::Fault fault;
      if (ParseHow(how, &fault).expected != nullptr) continue;
      if (fault.how == faults::How::RefuseGarbage && !WritesOutput(call)) {
        if (wanted) ++plan.skipped["refuse+garbage: the call writes no output"];
        continue;
      }
      fault.base = base;
      fault.occurrence = record->occurrence;
      for (const CUresult code : CodesFor(base, fault.how, options.all_codes)) {
        ++plan.possible;
        if (!wanted) continue;
        if (options.limit != 0 && plan.faults.size() == options.limit) {
          ++plan.skipped["trials beyond --limit"];
          continue;
        }
        fault.code = code;
        char text[faults::kMaxFaultText];
        const std::size_t length = faults::FormatFault(fault, text, sizeof(text));
        plan.faults.emplace_back(text, length);
        plan.sites.push_back(site);
      }
    }
  }
  return plan;
}

}  // namespace cuaudit::harness
