// SPDX-License-Identifier: MIT
// host_census.h: compares the descriptors that the wrapped functions reported as open with /proc/self/fd.
//
//   Owns      the sets of known and of inherited descriptors, and the number of wrapped calls in progress.
//   Threads   safe. Between a call and its record the two sides disagree, so a census waits for a moment without a call in progress.
//   Errors    when that moment does not come, a difference is carried to the next census and recorded if it is still there. A census
//             that recorded less than it saw raises kDescriptorsDisputed. Descriptors from 65,536 on are only counted.
//   Source    proc(5): since Linux 6.2 the size of /proc/self/fd is the number of descriptors. On older kernels each census reads the whole
//             directory.
//
// Nothing here allocates.
#pragma once

#include "faults/interpose/host_state.h"

namespace cuaudit::faults {

// Lives from before a wrapped call that returns at once until after its record.
class UnderWay {
 public:
  UnderWay() noexcept;
  ~UnderWay();
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
};

// The same for a call that may wait forever, such as accept. No census waits for the end of such a call.
class MayWait {
 public:
  MayWait() noexcept;
  ~MayWait();
  MayWait(const MayWait&) = delete;
  MayWait& operator=(const MayWait&) = delete;
};

// Writes the record when the call made a descriptor. Returns `descriptor`.
int Opened(int descriptor, HostCall call) noexcept;
// For a number that refers to another file now. An inherited number stays inherited: the program has gained nothing.
int Replaced(int descriptor, HostCall call) noexcept;
// Called before the descriptor is closed, because another thread may have the number at once afterwards. Ignores unknown descriptors.
// True when it wrote the record of this close.
bool Closing(int descriptor) noexcept;
// Called after a close without a record that the kernel declined because the descriptor was not open. Writes a record (kNotOpen, in a
// lifecycle kClosedAgain) when a wrapped function once opened the number. A loop over all numbers of a program gets one record for each gap
// of numbers that nobody opened.
void WasNotOpen(int descriptor) noexcept;
void ClosingFrom(unsigned first, unsigned last) noexcept;

// Called by the driver drop-in for a descriptor that the driver made for the program or took over from it. It writes no record: the record
// of the driver call has the descriptor.
void ToldOfDescriptor(int descriptor, bool taken_over) noexcept;

void RememberOpenDescriptors() noexcept;  // called once, while the library is loaded: open descriptors are inherited
void RememberReplaceable() noexcept;      // for an audit in this process, without census: replacing an open descriptor gains nothing
// For an audit in this process, at the end of a span: opens again what the span closed although it was open when the audit began. So the
// next cycle begins like this one, and the process loses nothing of its own.
void ReopenClosed() noexcept;
void TakeCensus(bool at_the_end) noexcept;  // writes a record for each descriptor that was opened or closed unseen
void ForgetCallsUnderWay() noexcept;        // called in a forked child, which does not have the threads that made those calls

}  // namespace cuaudit::faults
