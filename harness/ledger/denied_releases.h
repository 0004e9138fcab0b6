// SPDX-License-Identifier: MIT
// denied_releases.h: what a release that was carried out, and said to have failed, excuses.
#pragma once

#include <cstdint>
#include <utility>

#include "faults/journal/record.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// Releases of one handle that were carried out and said to have failed. The program may try each again, whosever the handle is by then. One
// of the two releases is then once too often, and a use may come too late.
//
// Where the retry has succeeded, it has taken a newer object, and what goes wrong afterwards is the owner's: a use, or the release at the
// place where the first one was tried. That uses one up when the handle is acquired next, because all that goes wrong until then is of one
// retry. A release that goes wrong elsewhere is the retry itself. It has failed, so the program is right to try again later.
class DeniedReleases {
 public:
  // `first`: where the program tried to release the object for the first time.
  void Add(const Site& first) {
    ++count_;
    stack_ = first.stack;
  }
  // Whether a use that came too late may come of one of them.
  bool ExcuseUse() { return used_ = count_ != 0; }
  // Whether a release once too often may. One that the driver has `accepted` uses one up at once.
  bool Excuse(const faults::Record& release, bool accepted) {
    if (count_ == 0) return false;
    if (accepted) --count_;
    used_ = !accepted && (used_ || release.stack == stack_);
    return true;
  }
  void BeginAnew() {
    if (std::exchange(used_, false)) --count_;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t stack_ = 0;  // of the latest
  bool used_ = false;
};

// Where the program first tried what the release `record` does.
inline Site FirstTry(const Object& object, const faults::Record& record) {
  return object.state == State::ReleaseRefused ? object.released : SiteOf(record);
}

}  // namespace cuaudit::harness
