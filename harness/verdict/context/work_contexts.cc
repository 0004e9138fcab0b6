// SPDX-License-Identifier: MIT
#include "harness/verdict/context/work_contexts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"

namespace cuaudit::harness {

using driver::Effect;
using driver::Family;
using driver::Kind;
using faults::Record;

// A call that records which context is current tells it of all calls of its thread since the one before.
std::vector<std::uint64_t> CurrentContexts(const Evidence& run) {
  struct Thread {
    std::vector<std::size_t> untold;
    std::uint64_t context = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads;
  std::vector<std::uint64_t> current(run.facts().calls.size(), 0);
  for (std::size_t step = 0; step < current.size(); ++step) {
    const Record& record = run.call(step);
    const Effect effect = EffectOfCall(record);
    Thread& thread = threads[{record.pid, record.tid}];
    thread.untold.push_back(step);
    if (!driver::RecordsContext(effect)) continue;
    for (const std::size_t one : thread.untold) current[one] = record.context;
    thread.untold.clear();
    thread.context = record.context;
    const Answer answer = AnswerOf(record);
    if (!driver::MovesContext(effect) || (answer != Answer::Succeeded && answer != Answer::After)) continue;
    thread.context = driver::IsRelease(effect) ? 0 : record.argument[0];
  }
  for (const auto& [name, thread] : threads) {
    for (const std::size_t one : thread.untold) current[one] = thread.context;
  }
  return current;
}

bool WorkContexts::Differ(const Record& one, const Record& other) const {
  const std::uint64_t here = Of(one);
  const std::uint64_t there = Of(other);
  return here != 0 && there != 0 && here != there;
}

std::uint64_t WorkContexts::Of(const Record& call) const {
  const std::vector<Object>& objects = run_.ledger->objects;
  std::uint64_t context = current_[run_.first_call_from(call.begin)];
  for (std::size_t i = 0; i < driver::ShapeOf(CallOf(call)).count; ++i) {
    const Family family = ArgumentFamily(CallOf(call), i);
    if (family != Family::Stream && family != Family::Event) continue;
    const std::uint64_t handle = ArgumentAt(call, static_cast<int>(i));
    const auto named = std::find_if(objects.rbegin(), objects.rend(), [&](const Object& object) {
      return driver::FamilyOf(object.kind) == family && object.handle == handle && object.pid == call.pid &&
             object.acquired.begin < call.begin;
    });
    if (named != objects.rend()) context = named->context;
  }
  // The context that cuCtxFromGreenCtx answers ends with another one.
  const bool is_known = std::any_of(objects.begin(), objects.end(), [&](const Object& object) {
    return (object.kind == Kind::Context && object.handle == context) || (object.kind == Kind::PrimaryContext && object.context == context);
  });
  return is_known ? context : 0;
}

}  // namespace cuaudit::harness
