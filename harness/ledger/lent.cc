// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <string_view>

#include "faults/driver/call_id.h"
#include "harness/ledger/arguments.h"
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;

struct Getter {
  std::string_view call;  // by name, because older headers do not declare all of them
  int argument;
  Kind kind;
  bool sure;
};

constexpr Getter kRows[] = {
    {"cuCtxFromGreenCtx", 0, Kind::Context, false},
    {"cuCtxGetCurrent", 0, Kind::Context, false},
    {"cuDeviceGetDefaultMemPool", 0, Kind::MemoryPool, true},
    {"cuDevicePrimaryCtxRetain", 0, Kind::Context, false},
    {"cuFuncGetModule", 0, Kind::Module, true},
    {"cuGraphChildGraphNodeGetGraph", 1, Kind::Graph, true},
    {"cuLibraryGetGlobal", 0, Kind::DeviceMemory, false},
    {"cuLibraryGetManaged", 0, Kind::DeviceMemory, false},
    {"cuLibraryGetModule", 0, Kind::Module, true},
    {"cuMemGetDefaultMemPool", 0, Kind::MemoryPool, true},
    {"cuMemHostGetDevicePointer", 0, Kind::DeviceMemory, false},
    {"cuModuleGetGlobal", 0, Kind::DeviceMemory, false},
    {"cuModuleGetTexRef", 0, Kind::TextureReference, true},
    {"cuStreamGetCaptureInfo", 3, Kind::Graph, true},
    {"cuStreamGetCtx", 1, Kind::Context, false},
};

// The number of the call's row; -1: it lends nothing.
struct RowOfCall {
  std::int8_t row[driver::kBaseCount] = {};
  RowOfCall() {
    for (std::size_t base = 0; base < driver::kBaseCount; ++base) {
      const auto named = [&](const Getter& one) { return one.call == driver::Name(static_cast<driver::BaseId>(base)); };
      const auto* const found = std::find_if(std::begin(kRows), std::end(kRows), named);
      row[base] = static_cast<std::int8_t>(found == std::end(kRows) ? -1 : found - std::begin(kRows));
    }
  }
};

}  // namespace

std::optional<Lent> LentBy(const faults::Record& record) {
  static const RowOfCall rows;
  const std::int8_t number = rows.row[driver::Index(BaseOf(record))];
  if (number < 0) return std::nullopt;
  const Getter& row = kRows[number];
  // Without a capture under way the call answers no graph, and what the variable held before is recorded.
  if (row.call == "cuStreamGetCaptureInfo" && record.argument[1] != CU_STREAM_CAPTURE_STATUS_ACTIVE) return std::nullopt;
  const std::uint64_t handle = ArgumentAt(record, row.argument);
  if (handle == 0) return std::nullopt;
  return Lent{row.kind, handle, row.sure};
}

}  // namespace cuaudit::harness
