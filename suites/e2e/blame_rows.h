// SPDX-License-Identifier: MIT
// blame_rows.h: programs that lose something in one place (programs/blame*), and who is to blame. Each is built without and with
// optimisation.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::blame {

struct Row {
  const char* program;
  const char* name;
  const char* rule;
  const char* blamed;            // without namespace and parameters; "libnorth.so+" for a function of that module without a name
  const char* release;           // nullptr: nothing is lost
  const char* members = "";      // kinds of a loss of several objects
  const char* options = "";      // for the sweep
  const char* second = nullptr;  // blamed for the second defect of a row with two causes
};

inline constexpr const char* kLost = "orphaned";  // destroyed by the context that the program gives back after the row

inline constexpr Row kRows[] = {
    {"blame", "early_return", kLost, "pair_open", "cuStreamDestroy"},
    {"blame", "wrong_label", kLost, "labels_run", "cuEventDestroy"},
    {"blame", "nested_helper", kLost, "make_two", "cuStreamDestroy"},
    {"blame", "nested_caller", kLost, "session_run", "cuStreamDestroy"},
    {"blame", "half_close", kLost, "half_close_pair", "cuStreamDestroy"},
    {"blame", "loop_inside", kLost, "streams_open", "cuStreamDestroy"},
    {"blame", "loop_around", kLost, "slots_open", "cuStreamDestroy", "stream event"},
    {"blame", "lost_together", "leak", "session_open", "cuCtxDestroy", "context stream device_memory"},
    {"blame", "context_children", "leak", "owner_open", "cuCtxDestroy"},
    {"blame", "swallowed", kLost, "optional_begin", "cuStreamDestroy"},
    {"blame", "second_fault", kLost, "undo", "cuStreamDestroy"},
    {"blame_ways", "callback", kLost, "visit", "cuStreamDestroy"},
    {"blame_ways", "callback_around", kLost, "walk", "cuStreamDestroy"},
    {"blame_ways", "table", kLost, "backend_run", "cuStreamDestroy"},
    {"blame_ways", "recursion", kLost, "level", "cuMemFree"},
    {"blame_ways", "retry", kLost, "retry_open", "cuStreamDestroy"},
    {"blame_ways", "tail_open", kLost, "tail_begin", "cuStreamDestroy"},
    {"blame_ways", "tail_close", kLost, "tail_end", "cuStreamDestroy"},
    {"blame_ways", "long_jump", kLost, "jump_run", "cuStreamDestroy"},
    {"blame_wrappers", "two_phase", kLost, "Encoder::Init", "cuStreamDestroy"},
    {"blame_wrappers", "constructor", kLost, "Decoder::Decoder", "cuStreamDestroy"},
    {"blame_wrappers", "destructor_skips", kLost, "Skipping::~Skipping", "cuStreamDestroy"},
    {"blame_wrappers", "destructor_throws", kLost, "Throwing::~Throwing", "cuStreamDestroy"},
    {"blame_wrappers", "exception", kLost, "RunUnguarded", "cuStreamDestroy"},
    {"blame_wrappers", "released_early", kLost, "Configured", "cuStreamDestroy"},
    {"blame_wrappers", "replaced", kLost, "Slot::Replace", "cuStreamDestroy"},
    {"blame_wrappers", "forgotten", kLost, "Pool::Grow", "cuEventDestroy"},
    {"blame_calls", "virtual", kLost, "Launcher::Launch", "cuStreamDestroy"},
    {"blame_calls", "lambda", kLost, "Lambda", "cuMemFree"},
    {"blame_calls", "handler", kLost, "HandleRequest", "cuEventDestroy"},
    {"blame_calls", "thread_main", kLost, "Worker::Stop", "cuStreamDestroy"},
    {"blame_calls", "thread_worker", kLost, "WorkAlone", "cuStreamDestroy"},
    {"blame_calls", "inlined", kLost, "InlinedOpen", "cuStreamDestroy"},
    {"blame_calls", "double_release", "double_release", "UsePrepared", nullptr},
    {"blame_counted", "wrappers", "leak", "Encoder::Open", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "wrappers_nested", "leak", "Handle::Init", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "first_loses", "leak", "plugin_start", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "shared_helper", "leak", "sink_open", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "no_names", "leak", "begin", "cuDevicePrimaryCtxRelease"},
    {"blame_counted", "physical", "leak", "export_open", "cuMemRelease"},
    {"blame_counted", "dlopen", "leak", "scaler_open", "dlclose", "", "--host"},
    {"blame_uses", "stripped", kLost, "libnorth.so+", "cuStreamDestroy"},
    // Of an inlined function nothing is left in a module without symbols but the function around it.
    {"blame_uses", "stripped_inlined", kLost, "north_lose_inlined", "cuMemFree"},
    {"blame_uses", "one_library", "not_recovered", "north_init", nullptr, "", "--depth=1"},
    {"blame_uses", "two_libraries", "not_recovered", "north_init", nullptr, "", "--depth=1", "south_init"},
    {"blame_uses", "two_functions", "not_recovered", "first_begin", nullptr, "", "--depth=1", "second_begin"},
};

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

inline Audit SweepRow(const Row& row, int level, const char* as) {
  std::vector<std::string> arguments = Words(row.options);
  arguments.insert(arguments.begin(), "sweep");
  return RunAudit(arguments, {Program(row.program) + "_O" + std::to_string(level), row.name, as});
}

}  // namespace cuaudit::e2e::blame
