// SPDX-License-Identifier: MIT
#include "harness/defect/blame.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "reports/frames.h"

namespace cuaudit::harness {

// An inlined function has the line of the call that was inlined, and the address of the instruction: only the line is comparable.
bool SamePlace(const report::Frame& a, const report::Frame& b) {
  if (!SameFunction(a, b)) return false;
  return a.line != 0 && b.line != 0 ? a.line == b.line && a.file == b.file : a.offset == b.offset;
}

bool SameFunction(const report::Frame& a, const report::Frame& b) {
  if (a.module != b.module || a.function != b.function) return false;
  if (!a.function.empty()) return true;
  return a.start != 0 && b.start != 0 ? a.start == b.start : a.offset == b.offset;
}

std::optional<Common> CommonActivation(const Stack& a, const Stack& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (!SameFunction(a[i], b[j])) continue;
      const std::size_t outer = std::min(a.size() - i, b.size() - j) - 1;
      const auto from = a.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      if (std::equal(from, from + static_cast<std::ptrdiff_t>(outer), b.begin() + static_cast<std::ptrdiff_t>(j) + 1, SamePlace))
        return Common{i, j};
    }
  }
  return std::nullopt;
}

std::size_t RunningSince(const Stack& earlier, const Stack& later) {
  const std::optional<Common> common = CommonActivation(earlier, later);
  if (!common) return later.size();
  std::size_t at = common->in_b;
  for (std::size_t in_a = common->in_a; in_a < earlier.size() && at < later.size(); ++in_a, ++at) {
    const report::Frame& before = earlier[in_a];
    const report::Frame& now = later[at];
    // Of a Python function the line is known and no offset. Two calls in one line are one call made again where they lead to the same
    // place.
    const bool same_call = in_a != common->in_a || (in_a == 0 && at == 0);
    const bool back = now.offset != 0 ? before.offset == now.offset || (now.line != 0 && now.line < before.line)
                                      : now.line != 0 && now.line == before.line && same_call;
    if (!before.once || !back) break;
  }
  return at;
}

namespace {

using report::Blame;
using report::BlamedBecause;
using report::Frame;

// Index of the innermost frame of the program from `from` outwards; the size when there is none.
std::size_t Program(const Stack& stack, std::size_t from) {
  const auto found = std::find_if(stack.begin() + static_cast<std::ptrdiff_t>(std::min(from, stack.size())), stack.end(), IsProgram);
  return static_cast<std::size_t>(found - stack.begin());
}

// Index in `failed` of the innermost function that ran from the acquisition to the failure; the size when there is none.
std::size_t Holder(const LossEvidence& evidence) {
  const std::optional<Common> both = CommonActivation(evidence.acquired, evidence.failed);
  if (!both) return evidence.failed.size();
  // A function that was left in between cannot have held anything, even if it was entered again.
  return Program(evidence.failed, std::max(both->in_b, evidence.still_running));
}

// Index in `failed` of a function, further in than `holder`, that stopped at its own release that failed: in the fault-free run one call of
// it makes that release and the release of the object. The size when there is none.
std::size_t StoppedAtItsRelease(const LossEvidence& evidence, std::size_t holder) {
  const Stack& failed = evidence.failed;
  std::size_t stopped = failed.size();
  for (const Stack* const call : evidence.rehearsed) {
    const std::optional<Common> both = CommonActivation(*call, evidence.released);
    if (!both || both->in_a >= std::min(holder, stopped) || !IsProgram(failed[both->in_a])) continue;
    if (SamePlace((*call)[both->in_a], evidence.released[both->in_b])) continue;  // the release itself
    const auto inner = static_cast<std::ptrdiff_t>(both->in_a) + 1;
    if (std::equal(call->begin(), call->begin() + inner, failed.begin(), SamePlace)) stopped = both->in_a;
  }
  return stopped;
}

// Index in `released` of the innermost function that was entered after the failure; the size when there is none.
std::size_t LastEntered(const LossEvidence& evidence) {
  std::size_t entered = evidence.released.size();
  for (const Stack* const call : evidence.afterwards) {
    if (const std::optional<Common> there = CommonActivation(*call, evidence.released)) entered = std::min(entered, there->in_b);
  }
  return Program(evidence.released, entered);
}

// True when the calls after the failure came to the release, on the way of the fault-free run: there it released other objects.
bool CameToTheRelease(const LossEvidence& evidence) {
  return std::any_of(evidence.afterwards.begin(), evidence.afterwards.end(), [&](const Stack* call) {
    const std::optional<Common> both = CommonActivation(*call, evidence.released);
    return both && both->in_a == 0 && both->in_b == 0 && SamePlace(call->front(), evidence.released.front());
  });
}

}  // namespace

std::optional<Blame> BlameForLoss(const LossEvidence& evidence) {
  const Stack& failed = evidence.failed;
  const Stack& released = evidence.released;
  const std::size_t holder = Holder(evidence);
  const std::size_t entered = LastEntered(evidence);
  const bool held = holder < failed.size();
  const bool began = entered < released.size() && !(held && !evidence.passed_over && CameToTheRelease(evidence));
  const std::size_t stopped = StoppedAtItsRelease(evidence, holder);
  if (stopped < failed.size()) return Blame{failed[stopped], BlamedBecause::BeganRelease};
  // The way to the failing call and the way to the release part in this function: depths count from there.
  const std::optional<Common> parting = CommonActivation(failed, released);
  const auto depth = [](std::size_t from, std::size_t to) { return static_cast<std::ptrdiff_t>(from) - static_cast<std::ptrdiff_t>(to); };
  const bool deeper = !parting || depth(parting->in_b, entered) > (held ? depth(parting->in_a, holder) : 0);
  if (began && deeper && (parting || !held)) return Blame{released[entered], BlamedBecause::BeganRelease};
  if (held) return Blame{failed[holder], BlamedBecause::HeldIt};
  const std::size_t releaser = Program(released, 0);
  // It was running when the call failed, and another thread acquired the object.
  if (parting && parting->in_b == releaser) return Blame{failed[parting->in_a], BlamedBecause::HeldIt};
  if (releaser < released.size()) return Blame{released[releaser], BlamedBecause::NeverReached};
  return BlameForCall(evidence.acquired);
}

std::optional<Blame> BlameForCall(const Stack& stack) {
  const std::size_t at = Program(stack, 0);
  return at < stack.size() ? std::optional<Blame>({stack[at], BlamedBecause::MadeTheCall}) : std::nullopt;
}

std::optional<Blame> BlameForNoRecovery(const Stack& failed) {
  const auto outermost = std::find_if(failed.rbegin(), failed.rend(), IsProgram);
  std::size_t entry = Program(failed, 0);
  if (entry == failed.size()) return std::nullopt;
  for (std::size_t i = entry; i < failed.size() && failed[i].module != outermost->module; ++i) {
    if (IsProgram(failed[i])) entry = i;
  }
  return Blame{failed[entry], BlamedBecause::MadeTheCall};
}

bool IsProgram(const Frame& frame) {
  // Of an interpreter only its own native frames are left out: what it interprets has the module "python".
  static constexpr std::array<std::string_view, 4> kModules = {"libcuda.so", "libcuaudit", "libpython3", "python3."};
  static constexpr std::array<std::string_view, 9> kFunctions = {
      "cuaudit::harness::", "cuaudit::detail::", "cuaudit::faults::", "cuaudit::driver::", "cuaudit::cudart::", "std::",
      "__gnu_cxx::",        "void std::",        "operator new"};
  static constexpr std::array<std::string_view, 6> kFiles = {
      "generated/driver_methods.inc", "cuaudit/lifecycle.h", "harness/lifecycle/", "faults/shim/", "faults/interpose/", "/bits/"};
  if (frame.module.empty() || report::IsRuntimeModule(frame.module)) return false;
  const auto begins = [](std::string_view text) { return [text](std::string_view name) { return text.starts_with(name); }; };
  if (std::any_of(kModules.begin(), kModules.end(), begins(frame.module))) return false;
  if (std::any_of(kFunctions.begin(), kFunctions.end(), begins(frame.function))) return false;
  return std::none_of(kFiles.begin(), kFiles.end(), [&](std::string_view path) { return frame.file.find(path) != std::string::npos; });
}

}  // namespace cuaudit::harness
