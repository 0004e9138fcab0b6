// SPDX-License-Identifier: MIT
#include "harness/ledger/process_fold.h"

#include <algorithm>

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::CallId;
using driver::Effect;
using driver::EffectRow;
using driver::Family;
using driver::Kind;

std::size_t Arguments(CallId call) { return std::min(driver::ShapeOf(call).count, faults::kRecordArguments); }

// cuGraphKernelNodeSetParams and the other calls that set the parameters of a node.
bool SetsNode(const faults::Record& record) {
  const std::string_view name = driver::Name(BaseOf(record));
  return name.starts_with("cuGraph") && name.ends_with("SetParams");
}

// Queries that write the length of the memory to argument 1.
bool AnswersLength(BaseId base) {
  return base == BaseId::ModuleGetGlobal || base == BaseId::LibraryGetGlobal || base == BaseId::LibraryGetManaged ||
         base == BaseId::GraphicsResourceGetMappedPointer || base == BaseId::MemGetAddressRange;
}

}  // namespace

void ProcessFold::CheckUses(const faults::Record& record, const EffectRow& row) {
  const CallId call = CallOf(record);
  const bool release = driver::IsRelease(row.effect);
  for (std::size_t i = 0; i < Arguments(call); ++i) {
    if (row.effect == Effect::Uses) {
      const Family family = ArgumentFamily(call, i);  // None: an address of the host, too
      const bool begins = family == Family::None || family == Family::Pointer || family == Family::HostPointer;
      account_.CheckRegistered(record.argument[i], begins ? ArgumentAt(record, row.bytes) : 0, record);
    }
    if (driver::ShapeOf(call).parameter[i].output) continue;
    const bool names = driver::FamilyOf(row.kind) != Family::PeerAccess;  // that call names a context, and does not release it
    if (release && names && static_cast<int>(i) == row.object) continue;  // a second release is another rule
    const Family family = ArgumentFamily(call, i);
    account_.CheckUse(family, record.argument[i], record);
    // An address that the driver accepts may have a new owner without a record.
    if (family == Family::Pointer && SaysNoSuchMemory(record)) account_.CheckVariable(record.argument[i], record);
  }
  const bool again = row.base == BaseId::MemHostRegister && record.result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (again && AnswerOf(record) == Answer::Failed) account_.CheckRegistered(record.argument[0], record.argument[1], record, true);
  if (row.base != BaseId::ArrayDestroy) return;
  // A level has no release of its own. A driver that is given a level after its array was destroyed follows a stale pointer.
  const std::int64_t gone = account_.GoneUnder(Family::Array, record.argument[0]);
  if (gone >= 0) account_.ViolateFoundation(record, record.argument[0], gone);
}

void ProcessFold::Release(const faults::Record& record, const EffectRow& row, Answer answer) {
  if (row.kind == Kind::PeerAccess && SettleDeclinedPeerAccess(record, answer)) return;
  const std::uint64_t handle = ObjectHandle(record, row);
  const std::int64_t capture = row.kind == Kind::StreamOrderedMemory ? graphs_.CaptureOf(record) : -1;
  const bool held = capture >= 0 && account_.Held(Family::Pointer, handle) >= 0;
  if (held && (answer == Answer::Refused || answer == Answer::Failed)) {
    // The memory is older than the capture, so a release that failed is no missing node. A capture is also open when the plan refused its
    // end; the driver then declines the release because of the plan.
    account_.Release(row.kind, handle, 1, record, answer);
    return;
  }
  // When the plan refused the release, the graph still loses its memory, because the program is not to blame.
  if (capture >= 0 && (Releases(answer) || answer == Answer::Refused)) graphs_.CaptureMemory(capture, handle, 0);
  if (capture >= 0) return;  // becomes a node
  const std::uint64_t count = row.effect == Effect::ReleasesCounted ? ArgumentAt(record, row.bytes) : 1;
  account_.Release(row.kind, handle, count, record, answer);
  if (!Releases(answer) || account_.Held(driver::FamilyOf(row.kind), handle) >= 0) return;
  if (row.kind == Kind::Graph) graphs_.DestroyGraph(handle, SiteOf(record));
  if (row.kind == Kind::ExecutableGraph) graphs_.DestroyExecutable(handle);
  if (row.kind == Kind::GraphNode) graphs_.DestroyNode(handle, SiteOf(record));
  if (row.kind == Kind::Stream) graphs_.ForgetStream(handle);
}

void ProcessFold::Enter(const faults::Record& record, const Graphs::Addresses& addresses) {
  calls_ = true;
  const EffectRow& row = driver::EffectOf(BaseOf(record));
  const Answer answer = AnswerOf(record);
  contexts_.See(record);
  const bool kept = answer == Answer::Refused && (driver::IsRelease(row.effect) || row.effect == Effect::EndsCapture);
  const bool made = answer == Answer::After && (driver::IsAcquire(row.effect) || row.effect == Effect::BeginsCapture);
  if (kept || made) account_.set_plan_left_something();
  if (answer == Answer::After && driver::MovesContext(row.effect)) account_.set_context_denied();
  CheckUses(record, row);
  CheckCode(record);
  FollowAddresses(record, row, addresses);
  switch (row.effect) {
    case Effect::Releases:
    case Effect::ReleasesCounted:
    case Effect::ReleasesPointee:
      Release(contexts_.BehindView(record), row, answer);
      break;
    case Effect::ReleasesRange:
      account_.ReleaseMappings(ArgumentAt(record, row.object), ArgumentAt(record, row.bytes), record, answer);
      break;
    case Effect::RetainsPrimary:
      if (answer == Answer::Succeeded) contexts_.RetainPrimary(record);
      break;
    case Effect::ReleasesPrimary:
      if (answer == Answer::Unfinished) contexts_.ReleasePrimary(record, answer);
      break;
    case Effect::ResetsPrimary:
      contexts_.ResetPrimary(record, answer);
      break;
    case Effect::DestroysContext:
      contexts_.Destroy(record, answer);
      break;
    case Effect::PopsContext:
      contexts_.Pop(record, answer);
      break;
    case Effect::LaunchesGraph:
      graphs_.Launch(record);
      break;
    default:  // takes effect at the end (Carry)
      break;
  }
}

// Addresses passed to kernels are recorded into the graph under capture, or are touched at once.
void ProcessFold::FollowAddresses(const faults::Record& record, const EffectRow& row, const Graphs::Addresses& addresses) {
  if (Releases(AnswerOf(record))) graphs_.FollowEvents(record);  // a failed call carries no capture to another stream
  if (row.effect != Effect::Uses || SetsNode(record)) return;
  const std::int64_t capture = graphs_.CaptureOf(record);
  if (capture < 0) {
    graphs_.Check(record, addresses);
    // Graphs may use blocks that were taken back: when the pool belongs to the graph, nobody else gets these blocks.
    for (const std::uint64_t address : addresses) {
      account_.CheckBlocks(address, record);
      account_.CheckRegistered(address, 0, record);
    }
    return;
  }
  if (!Releases(AnswerOf(record))) return;  // nor becomes a node
  Graphs::Addresses all = addresses;
  const CallId call = CallOf(record);
  for (std::size_t i = 0; i < Arguments(call); ++i) {
    const bool address = ArgumentFamily(call, i) == Family::Pointer && !driver::ShapeOf(call).parameter[i].output;
    if (address && (record.argument[i] & kNeededObject) == 0) all.push_back(record.argument[i]);
  }
  graphs_.Capture(capture, WithCode(record, all, {}));
}

void ProcessFold::BorrowAnswers(const faults::Record& record) {
  const CallId call = CallOf(record);
  for (std::size_t i = 0; i < Arguments(call); ++i) {
    if (!driver::ShapeOf(call).parameter[i].output) continue;
    // cuModuleGetGlobal and similar queries write the address to argument 0 and the length to argument 1.
    const bool sized = AnswersLength(BaseOf(record)) && i == 0;
    account_.Borrow(ArgumentFamily(call, i), record.argument[i], sized ? record.argument[1] : 0);
  }
}

// An acquisition under `after`: the object exists, and the program owes nothing because it was told that the call failed. A reference that
// it was told it did not get may be given back all the same, by the handle that the call has answered.
void ProcessFold::AcquireUnowned(const faults::Record& record, const EffectRow& row) {
  const std::uint64_t handle = ObjectHandle(record, row);
  const bool attaches = row.effect == Effect::Retains && row.kind == Kind::Context;
  if (attaches || row.effect == Effect::CreatesContext) contexts_.DenyContext(handle, attaches);
  if (row.effect == Effect::Retains && !attaches && handle != 0) ++account_.Entry(driver::FamilyOf(row.kind), handle).denied;
  if (handle == 0 || !driver::MakesObject(row.effect)) return;
  account_.AcquireUnowned(driver::FamilyOf(row.kind), handle, row.effect == Effect::AcquiresCounted ? 0 : BytesOf(record, row), record);
  if (row.kind == Kind::Graph) graphs_.Begin(handle);
  if (row.kind == Kind::ExecutableGraph) graphs_.DestroyExecutable(handle);
  if (row.kind == Kind::Stream) graphs_.ForgetStream(handle);
  if (row.kind == Kind::Event) graphs_.ForgetEvent(handle);
}

void ProcessFold::Acquire(const faults::Record& record, const EffectRow& row) {
  Object object = {.kind = row.kind, .handle = ObjectHandle(record, row)};
  if (object.handle == 0) return;
  if (row.effect == Effect::AcquiresCounted) {
    object.references = ArgumentAt(record, row.bytes);
  } else {
    object.bytes = BytesOf(record, row);
  }
  object.parent = ParentOf(record, row);
  if (row.base == driver::BaseId::GreenCtxStreamCreate) object.context = object.parent;  // the stream ends with the green context
  if (const std::int64_t external = record.context == 0 ? MappedExternal(record) : -1; external >= 0)
    object.context = account_.books().object(external).context;  // no context is current: the memory's own becomes so
  const std::int64_t capture = row.kind == Kind::StreamOrderedMemory ? graphs_.CaptureOf(record) : -1;
  if (capture >= 0) {
    // The memory belongs to the graph and comes to life at each launch.
    graphs_.CaptureMemory(capture, object.handle, object.bytes);
    account_.set_graph_memory();
    account_.space().Forget(object.handle, object.bytes);
    account_.Borrow(Family::Pointer, object.handle, object.bytes);
    return;
  }
  account_.Acquire(object, record);
  if (row.kind == Kind::Graph) graphs_.Begin(object.handle);
  if (row.kind == Kind::Stream) graphs_.ForgetStream(object.handle);
  if (row.kind == Kind::Event) graphs_.ForgetEvent(object.handle);
}

void ProcessFold::Return(const faults::Record& record, const Graphs::Addresses& addresses, Told told) {
  const bool needs = !told.empty() && (told.front()->flags & faults::kStandsOn) != 0;
  const faults::Record& carried = contexts_.BehindView(record);
  if (needs) {
    Carry(carried, WithCode(record, addresses, told));
  } else {
    Carry(carried, addresses);
  }
  FollowFoundations(record, told);
}

void ProcessFold::Carry(const faults::Record& record, const Graphs::Addresses& addresses) {
  const EffectRow& row = driver::EffectOf(BaseOf(record));
  const Answer answer = AnswerOf(record);
  if (row.effect == Effect::ReleasesPrimary) contexts_.ReleasePrimary(record, answer);
  if (row.base == driver::BaseId::GreenCtxDestroy) contexts_.DestroyGreen(record, answer);
  if (row.effect == Effect::EndsCapture && answer != Answer::Refused) {
    const bool into_given = graphs_.EndCapture(record);
    if (answer == Answer::After && !into_given) AcquireUnowned(record, row);
    if (answer != Answer::Succeeded || into_given || ArgumentAt(record, row.object) == 0) return;
    Object graph = {.kind = Kind::Graph, .handle = ArgumentAt(record, row.object)};
    account_.Acquire(graph, record);
    return;
  }
  const bool launched = row.effect == Effect::LaunchesGraph && (answer == Answer::Succeeded || answer == Answer::After);
  if (launched) graphs_.Launched(record);
  if (answer == Answer::After && row.effect == Effect::RetainsPrimary) contexts_.DenyPrimary(record);
  if (answer == Answer::After && row.effect == Effect::PushesContext) contexts_.DenyPush(record);
  if (answer == Answer::After && row.effect == Effect::SetsContext) contexts_.DenySet(record);
  if (answer == Answer::Refused && (row.effect == Effect::PushesContext || row.effect == Effect::SetsContext))
    contexts_.RefuseToSet(record);
  if (answer == Answer::After) AcquireUnowned(record, row);
  if (answer == Answer::After && row.effect == Effect::AddsNode) graphs_.DenyNode(record);
  if (answer == Answer::After && row.effect == Effect::BeginsCapture) graphs_.BeginCapture(record);  // under way, whatever was told
  // The program does not know whether anything is mapped there, and the driver accepts an unmapping in both cases.
  if (answer == Answer::Refused && row.kind == Kind::Mapping && driver::IsAcquire(row.effect))
    account_.Borrow(Family::Mapping, ArgumentAt(record, row.object));
  if (answer != Answer::Succeeded) return;
  if (row.base == driver::BaseId::GraphChildGraphNodeGetGraph) graphs_.NameChild(record.argument[0], record.argument[1]);
  switch (row.effect) {
    case Effect::Acquires:
    case Effect::AcquiresCounted:
    case Effect::AcquiresGiven:
      Acquire(record, row);
      if (row.kind == Kind::GreenContext) contexts_.CreateGreen(record);
      break;
    case Effect::Retains:
    case Effect::RetainsCounted: {
      Object object = {.kind = row.kind, .handle = ArgumentAt(record, row.object)};
      if (row.effect == Effect::RetainsCounted) {
        object.references = ArgumentAt(record, row.bytes);
        const HandleEntry& entry = account_.Entry(driver::FamilyOf(row.kind), object.handle);
        if (entry.top < 0 && entry.last >= 0 && entry.graph_references == 0) {
          account_.books().Violate(Rule::UseAfterRelease, row.kind, record, object.handle, entry.last);
          break;
        }
      }
      account_.Retain(object, record);
      break;
    }
    case Effect::CreatesContext:
      contexts_.Create(record);
      break;
    case Effect::PushesContext:
      contexts_.Push(record);
      break;
    case Effect::SetsContext:
      contexts_.Set(record);
      break;
    case Effect::AddsNode:
      graphs_.AddNode(record, addresses);
      break;
    case Effect::ClonesGraph:
      Acquire(record, row);
      graphs_.Clone(record.argument[0], record.argument[1]);
      break;
    case Effect::Instantiates:
      Acquire(record, row);
      graphs_.Instantiate(record.argument[0], record.argument[1]);
      break;
    case Effect::UpdatesGraph:
      graphs_.Update(record.argument[0], record.argument[1]);
      break;
    case Effect::BeginsCapture:
      graphs_.BeginCapture(record);
      break;
    case Effect::GraphRetains:
      graphs_.RetainUserObject(record);
      break;
    case Effect::GraphReleases:
      graphs_.ReleaseUserObject(record);
      break;
    case Effect::Queries:
      BorrowAnswers(record);
      Lend(record);
      if (row.base == driver::BaseId::CtxFromGreenCtx) contexts_.ViewGreen(record);
      break;
    case Effect::Uses:
      if (SetsNode(record)) graphs_.SetNode(record, addresses);
      break;
    case Effect::RetainsPrimary:
      Lend(record);
      break;
    case Effect::Describes:
    case Effect::Releases:
    case Effect::ReleasesCounted:
    case Effect::ReleasesRange:
    case Effect::ReleasesPointee:
    case Effect::ReleasesPrimary:
    case Effect::ResetsPrimary:
    case Effect::DestroysContext:
    case Effect::PopsContext:
    case Effect::EndsCapture:
    case Effect::LaunchesGraph:
    case Effect::MakesDescriptor:  // FollowFoundations
      break;
  }
}

void ProcessFold::Lend(const faults::Record& record) {
  if (const std::optional<Lent> lent = LentBy(record)) account_.Lend(lent->kind, lent->handle, SiteOf(record), lent->sure);
}

void ProcessFold::NodeContent(const faults::Record* content, const faults::Record& call) {
  graphs_.NodeContent(content);
  if (content == nullptr) return;
  const faults::Record& record = *content;
  // The memory comes to life at each launch and may be freed outside the graph. What lay at its address before does not matter.
  if ((record.flags & faults::kMemoryNode) != 0) {
    account_.set_graph_memory();
    if (record.argument[1] != 0) account_.Borrow(Family::Pointer, record.argument[0], record.argument[1]);
  }
  if ((record.flags & faults::kMovedGraph) != 0) {
    account_.AcquireUnowned(Family::Graph, record.argument[0], 0, call);  // the parent's from here on; the handle stays good
    if (AnswerOf(call) == Answer::Succeeded) account_.Lend(Kind::Graph, record.argument[0], SiteOf(call), true);
  }
  // Whoever had the handle before is gone.
  if ((record.flags & faults::kCapturedNode) != 0) account_.Borrow(Family::GraphNode, record.argument[0]);
}

void ProcessFold::Mark(const faults::Record& record) {
  if (record.call == static_cast<std::uint16_t>(faults::MarkKind::CycleBegin)) contexts_.BeginCycle(record);
  if (record.call == static_cast<std::uint16_t>(faults::MarkKind::CycleEnd)) contexts_.EndCycle(record);
  if (record.call == static_cast<std::uint16_t>(faults::MarkKind::BlockOut))
    account_.HandOut(record.argument[0], record.argument[1], record);
  if (record.call == static_cast<std::uint16_t>(faults::MarkKind::BlockBack)) account_.TakeBack(record.argument[0], record);
}

void ProcessFold::Misuse(const faults::Record& record, const Site& where, const Site& other) {
  const auto kind = static_cast<Kind>(record.argument[0]);
  Violation violation;
  violation.rule = RuleOf(static_cast<driver::MisuseRule>(record.call));
  violation.kind = kind;
  violation.pid = record.pid;
  violation.handle = record.argument[1];
  violation.where = where;
  violation.object = account_.ObjectAt(kind, record.argument[1]);
  if (violation.object >= 0 && account_.books().object(violation.object).told_alive) return;
  violation.other = other;
  violation.bytes = record.argument[2];
  violation.refused_wait = record.argument[5] != 0;
  account_.books().ledger.violations.push_back(violation);
}

}  // namespace cuaudit::harness
