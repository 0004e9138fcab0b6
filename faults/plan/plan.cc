// SPDX-License-Identifier: MIT
#include "faults/plan/plan.h"

namespace cuaudit::faults {

bool Plan::Add(const Fault& fault) noexcept {
  if (size_ == kCapacity) return false;
  if (fault.follows && size_ == 0) return false;
  faults_[size_++] = fault;
  return true;
}

bool Plan::Names(driver::BaseId base) const noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    if (faults_[i].base == base) return true;
  }
  return false;
}

bool Plan::NamesSite(driver::BaseId base) const noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    if (faults_[i].base == base && faults_[i].site != 0) return true;
  }
  return false;
}

Decision Plan::Decide(const Fault& fault, std::uint32_t matching) noexcept {
  bool hits = false;
  switch (fault.how) {
    case How::Refuse:
    case How::RefuseGarbage:
    case How::After:
    case How::Sticky:
    case How::HostOom:
    case How::HostThread:
      hits = matching == fault.occurrence;
      break;
    case How::Persist:
      hits = matching >= fault.occurrence;
      break;
    case How::Burst:
      hits = matching >= fault.occurrence && matching - fault.occurrence < fault.burst;
      break;
  }
  if (!hits) return {};
  return {fault.code, fault.how, 0};
}

}  // namespace cuaudit::faults
