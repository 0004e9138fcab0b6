// SPDX-License-Identifier: MIT
// denied_releases.h: releases that were carried out although the program was told that they failed (`after`). The program may try such a
// release again, and what goes wrong then is not its fault.
#pragma once

#include <cstdint>
#include <utility>

#include "faults/journal/record.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// Those of one handle. When the program tries again, the handle may be another object's by then: that object is released too early, and
// its owner releases it once too often, or uses it too late.
//
// Where the retry has succeeded, it has taken a newer object, and what goes wrong afterwards is the owner's: a use, or the release at the
// place where the first one was tried. That uses one up when the handle is acquired next, because all that goes wrong until then is of one
// retry. A release that goes wrong elsewhere is the retry itself. It has failed, so the program is right to try again later. The owner of
// the first object that a retry took may try again, too: its release has failed as well. So one denied release excuses up to two objects.
class DeniedReleases {
 public:
  // `first`: where the program tried to release the object for the first time.
  void Add(const Site& first) {
    ++count_;
    stack_ = first.stack;
    taken_at_ = 0;
  }
  // Whether a use that came too late may come of one of them.
  bool ExcuseUse() { return used_ = count_ != 0; }
  // Whether a release once too often may. `before`: where the object was released. One that the driver has `accepted` uses one up at once.
  bool Excuse(const faults::Record& release, bool accepted, const Site& before) {
    if (count_ == 0) return false;
    if (accepted) --count_;
    const bool taken = before.stack != stack_ && (taken_at_ == 0 || taken_at_ == before.begin);
    if (taken) taken_at_ = before.begin;
    used_ = !accepted && !taken && (used_ || release.stack == stack_);
    return true;
  }
  void BeginAnew() {
    if (std::exchange(used_, false)) --count_;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t stack_ = 0;     // of the latest
  std::uint64_t taken_at_ = 0;  // when a retry took another object
  bool used_ = false;
};

// Where the program first tried what the release `record` does.
inline Site FirstTry(const Object& object, const faults::Record& record) {
  return object.state == State::ReleaseRefused ? object.released : SiteOf(record);
}

}  // namespace cuaudit::harness
