// SPDX-License-Identifier: MIT
#include "harness/sweep/site_text.h"

#include "faults/driver/call_id.h"

namespace cuaudit::harness {
namespace {

std::string HostName(faults::HostCall call) {
  switch (call) {
    case faults::HostCall::Allocate:
      return "malloc";
    case faults::HostCall::Deallocate:
    case faults::HostCall::MutexFreed:
      return "free";
    case faults::HostCall::Dlopen:
      return "dlopen";
    case faults::HostCall::Dlclose:
      return "dlclose";
    case faults::HostCall::MutexInit:
      return "pthread_mutex_init";
    case faults::HostCall::MutexDestroy:
    case faults::HostCall::MutexDestroyedLocked:
      return "pthread_mutex_destroy";
  }
  return {};
}

}  // namespace

Site RecordSite(const faults::Record& record) { return {record.kind, record.call, record.stack, record.begin}; }

std::string CallName(const Site& site) {
  switch (site.record_kind) {
    case faults::RecordKind::Call:
      if (site.call >= driver::kCallCount) return {};
      return std::string(driver::Name(driver::BaseOf(static_cast<driver::CallId>(site.call))));
    case faults::RecordKind::Host:
      return HostName(static_cast<faults::HostCall>(site.call));
    case faults::RecordKind::Empty:
    case faults::RecordKind::Argument:
    case faults::RecordKind::Mark:
    case faults::RecordKind::Process:
    case faults::RecordKind::Misuse:
      return {};
  }
  return {};
}

const report::Acquired& SiteTexts::Text(const faults::JournalView& journal, const Site& site, std::uint64_t key) {
  if (site.record_kind == faults::RecordKind::Empty) return nowhere_;
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, report::Acquired{CallName(site), symbolizer_.Resolve(journal, site.stack)}).first->second;
}

}  // namespace cuaudit::harness
