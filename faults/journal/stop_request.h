// SPDX-License-Identifier: MIT
// stop_request.h: how the harness asks a process that missed its deadline for the places of its threads: by this signal, sent by sigqueue
// with this number. The process writes RecordKind::Stop for each thread and kills itself. It may be asked only while its journal has the
// flag kTellsStops, because otherwise the signal means nothing to it, or something else.
#pragma once

#include <csignal>

namespace cuaudit::faults {

inline constexpr int kStopRequest = 0x63756174;
inline int StopRequestSignal() noexcept { return SIGRTMAX - 3; }

}  // namespace cuaudit::faults
