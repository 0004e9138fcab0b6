// SPDX-License-Identifier: MIT
// snapshot_pickle.h: a snapshot and a history as the file that pytorch.org/memory_viz opens.
//
//   Owns      nothing; borrows what the document points to.
//   Threads   values; a history may go on recording meanwhile.
//   Errors    FormatSnapshot: false when the host has no memory, `out` is empty then. SaveSnapshot: what went wrong, as text; the file
//             is there whole or not at all.
//   Faults    makes no driver calls.
//   Source    fields and actions of PyTorch's torch.cuda.memory._snapshot. Ours beside them, which its viewer passes over: a block's
//             `pending_uses`, `in_thread_cache` and `last_stream`; the actions use_recorded, use_waited and use_elided; `backend`,
//             `record_use`, `trace_overflowed`. What an allocation had to wait for is its `user_metadata`, which newer viewers print.
//   Not here  lines of source files: frames have the module's name, line 0 and the function's name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allocator/backend.h"
#include "allocator/observe/history.h"

namespace cuaudit::alloc {

struct SnapshotDocument {
  const Snapshot* snapshot = nullptr;
  const History* history = nullptr;  // null: no trace, and frames are empty
  int device_count = 1;
  std::string backend = "native";
  UsePrecision precision = UsePrecision::AtTheCall;  // `record_use` in the file: "at_the_call" or "at_the_free"
  // PyTorch's allocator_settings; a value that reads as a number, True or False is written as one.
  std::vector<std::pair<std::string, std::string>> settings;
};

[[nodiscard]] bool FormatSnapshot(const SnapshotDocument& document, std::string* out) noexcept;
[[nodiscard]] std::string SaveSnapshot(const SnapshotDocument& document, const std::string& path);

}  // namespace cuaudit::alloc
