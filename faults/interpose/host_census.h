// SPDX-License-Identifier: MIT
// host_census.h: which descriptors are open as far as the wrapped functions said, compared with /proc/self/fd.
//
//   Owns      the sets of known and of inherited descriptors, the calls under way.
//   Threads   safe. Between a call and its record the two sides disagree, so a census waits for a moment without one.
//   Units     descriptors.
//   Errors    where that moment does not come, what differs is carried to the next census and told when it still does; a census that told
//             less than it saw raises kDescriptorsDisputed. Descriptors from 65,536 up are only in the number.
//   Faults    makes no driver calls; allocates nothing.
//   Source    proc(5): since Linux 6.2 the size of /proc/self/fd is the number of descriptors. On older ones each census reads it all.
#pragma once

#include "faults/interpose/host_state.h"

namespace cuaudit::faults {

// A wrapped call that comes back at once, from before it to after its record.
class UnderWay {
 public:
  UnderWay() noexcept;
  ~UnderWay();
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
};

// The same of one that may wait for ever, such as accept: no census waits for its end.
class MayWait {
 public:
  MayWait() noexcept;
  ~MayWait();
  MayWait(const MayWait&) = delete;
  MayWait& operator=(const MayWait&) = delete;
};

// Writes the record when the call made one, and answers it.
int Opened(int descriptor, HostCall call) noexcept;
// Another file has the number now. A number that the program inherited stays what it was: nothing was gained.
int Replaced(int descriptor, HostCall call) noexcept;
// Before the number goes back: afterwards another thread may have it. What we do not know is not ours to judge.
void Closing(int descriptor) noexcept;
void ClosingFrom(unsigned first, unsigned last) noexcept;

void RememberOpenDescriptors() noexcept;    // once, while the library is loaded: those are nobody's
void RememberReplaceable() noexcept;        // for an audit in this process, which takes no census: what is open is only not gained anew
void TakeCensus(bool at_the_end) noexcept;  // what was opened or closed unseen becomes a record
void ForgetCallsUnderWay() noexcept;        // in a forked child: they are other threads', which it does not have

}  // namespace cuaudit::faults
