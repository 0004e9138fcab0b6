// SPDX-License-Identifier: MIT
// Stream captures: which calls are recorded into which graph.
#include <algorithm>

#include "faults/driver/result.h"
#include "harness/ledger/graphs.h"

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::CallId;
using driver::Family;

// The per-thread standard stream.
bool IsOwnStream(const faults::Record& record, std::uint64_t stream) {
  return stream == kPerThreadStream || (stream == 0 && driver::Row(CallOf(record)).per_thread);
}

bool Ends(const faults::Record& record) {
  const auto result = static_cast<CUresult>(record.result);
  return Releases(AnswerOf(record)) || driver::IsCaptureOver(result) || result == CUDA_ERROR_ILLEGAL_STATE;
}

// True for a node that records or awaits an external event at each launch. Such an event takes no part in the capture itself.
bool IsExternal(const faults::Record& record) {
  const std::uint64_t external =
      BaseOf(record) == BaseId::StreamWaitEvent ? std::uint64_t{CU_EVENT_WAIT_EXTERNAL} : std::uint64_t{CU_EVENT_RECORD_EXTERNAL};
  return BaseOf(record) != BaseId::EventRecord && (record.argument[2] & external) != 0;
}

}  // namespace

// Each thread has a standard stream of its own in each context. All threads share another one, which null and CU_STREAM_LEGACY both name;
// the one of a green context can be captured. The keys cannot collide with handles, which are larger numbers, and no thread id is 0.
std::uint64_t Graphs::StreamKey(const faults::Record& record, std::uint64_t stream) {
  if (!IsStandardStream(stream)) return stream;
  const std::uint32_t tid = IsOwnStream(record, stream) ? record.tid : 0;
  const auto [found, added] = standard_streams_.try_emplace({tid, contexts_->CurrentOf(record.tid)}, standard_streams_.size() + 1);
  return (found->second << 8) | kPerThreadStream;
}

void Graphs::BeginCapture(const faults::Record& record) {
  CaptureState state;
  state.stream = StreamKey(record, record.argument[0]);
  state.tid = record.tid;
  if (IsStandardStream(record.argument[0])) state.context = contexts_->CurrentOf(record.tid);
  state.deaths = account_->DeathsOf(state.context);
  if (BaseOf(record) == BaseId::StreamBeginCaptureToGraph) state.graph = record.argument[1];
  capture_of_stream_[state.stream] = static_cast<std::int64_t>(captures_.size());
  captures_.push_back(std::move(state));
  ++active_captures_;
}

void Graphs::Deactivate(std::int64_t capture) {
  CaptureState& state = captures_[static_cast<std::size_t>(capture)];
  if (state.active) --active_captures_;
  state.active = false;
  std::erase_if(capture_of_stream_, [=](const auto& one) { return one.second == capture; });
}

void Graphs::ForgetStream(std::uint64_t stream) {
  const auto found = capture_of_stream_.find(stream);
  if (found == capture_of_stream_.end()) return;
  const std::int64_t capture = found->second;
  capture_of_stream_.erase(found);
  if (captures_[static_cast<std::size_t>(capture)].stream == stream) Deactivate(capture);
}

bool Graphs::EndCapture(const faults::Record& record) {
  const auto found = capture_of_stream_.find(StreamKey(record, record.argument[0]));
  if (found == capture_of_stream_.end() || !Ends(record)) return false;
  const std::int64_t index = found->second;
  CaptureState& state = captures_[static_cast<std::size_t>(index)];
  Deactivate(index);
  const std::uint64_t handle = record.argument[1];
  const bool failed = record.result != 0 || handle == 0;
  if (failed && state.shown != 0) DestroyGraph(state.shown, SiteOf(record));
  if (!failed && state.graph != handle && state.shown != handle) Begin(handle);
  if (!failed && !state.addresses.empty()) {
    Addresses& all = Change(graphs_[handle]).nodes[0];
    all.insert(all.end(), state.addresses.begin(), state.addresses.end());
  }
  if (!failed && !state.memory.empty()) {
    std::vector<Memory>& all = Change(graphs_[handle]).memory[0];
    all.insert(all.end(), state.memory.begin(), state.memory.end());
  }
  state.addresses.clear();
  state.memory.clear();
  return state.graph != 0 && state.graph == handle;
}

void Graphs::FollowEvents(const faults::Record& record) {
  if (active_captures_ == 0 && capture_of_event_.empty()) return;
  switch (BaseOf(record)) {
    case BaseId::EventRecord:
    case BaseId::EventRecordWithFlags:
      if (IsExternal(record)) return;
      ForgetEvent(record.argument[0]);
      if (const std::int64_t capture = CaptureOf(record); capture >= 0) capture_of_event_[record.argument[0]] = capture;
      return;
    case BaseId::GreenCtxRecordEvent:  // fails for streams under capture
      return ForgetEvent(record.argument[1]);
    case BaseId::StreamWaitEvent: {
      const auto event = capture_of_event_.find(record.argument[1]);
      if (event == capture_of_event_.end() || !captures_[static_cast<std::size_t>(event->second)].active || IsExternal(record)) return;
      capture_of_stream_.try_emplace(StreamKey(record, record.argument[0]), event->second);
      return;
    }
    default:
      return;
  }
}

// True when the stream on which the capture began has ended, on its own or with its context.
bool Graphs::IsOver(std::int64_t capture) const {
  const CaptureState& state = captures_[static_cast<std::size_t>(capture)];
  if (state.context != 0) return account_->DeathsOf(state.context) != state.deaths;
  const HandleEntry* const entry = account_->Find(Family::Stream, state.stream);
  return entry != nullptr && entry->top < 0 && entry->last >= 0 && !entry->borrowed;
}

std::int64_t Graphs::CaptureOn(std::uint64_t stream) const {
  const auto found = capture_of_stream_.find(stream);
  return found == capture_of_stream_.end() || IsOver(found->second) ? -1 : found->second;
}

std::int64_t Graphs::CaptureOf(const faults::Record& record) {
  if (active_captures_ == 0) return -1;
  const CallId call = CallOf(record);
  const std::size_t count = std::min(driver::ShapeOf(call).count, faults::kRecordArguments);
  for (std::size_t i = 0; i < count; ++i) {
    if (driver::ShapeOf(call).parameter[i].output || ArgumentFamily(call, i) != Family::Stream) continue;
    return CaptureOn(StreamKey(record, record.argument[i]));
  }
  const faults::Record* const node = Given(faults::kCapturedNode);  // the stream is a member of a structure argument
  return node == nullptr ? -1 : CaptureOn(StreamKey(record, node->argument[1]));
}

void Graphs::CaptureMemory(std::int64_t capture, std::uint64_t address, std::uint64_t bytes) {
  captures_[static_cast<std::size_t>(capture)].memory.push_back({address, bytes});
}

void Graphs::Capture(std::int64_t capture, const Addresses& addresses) {
  CaptureState& state = captures_[static_cast<std::size_t>(capture)];
  const faults::Record* const captured = Given(faults::kCapturedNode);
  if (captured == nullptr || captured->argument[2] == 0) {
    state.addresses.insert(state.addresses.end(), addresses.begin(), addresses.end());
    return;
  }
  const std::uint64_t node = captured->argument[0];
  const std::uint64_t graph = captured->argument[2];
  if (state.graph == 0 && state.shown == 0) {
    Begin(graph);
    state.shown = graph;
  }
  graph_of_node_[node] = graph;
  Addresses& all = Change(graphs_[graph]).nodes[node];
  all.insert(all.end(), addresses.begin(), addresses.end());
}

}  // namespace cuaudit::harness
