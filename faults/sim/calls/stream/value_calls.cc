// SPDX-License-Identifier: MIT
// Events, waits for and writes of values, external semaphores.
#define __CUDA_API_VERSION_INTERNAL
#include <sys/stat.h>
#include <unistd.h>

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"
#include "include/cuaudit/semaphore.h"

namespace cuaudit::sim {

namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
constexpr float kNanosecondsPerMillisecond = 1e6F;

// Asking about an event whose last record was captured is forbidden, and invalid once the capture has ended.
CUresult RefuseCaptured(Event* event) {
  if (event->capture == nullptr) return event->was_captured ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  Invalidate(event->capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

// The event, if the host may wait for it.
Event* FindToWaitFor(Call& call, CUevent handle, CUresult* result) {
  Event* const event = call.Follow<Event>(handle);
  *result = event == nullptr ? call.Gone(handle) : Borrow(call, event->owner);
  if (*result == CUDA_SUCCESS) *result = RefuseCaptured(event);
  return *result == CUDA_SUCCESS ? event : nullptr;
}

}  // namespace

CUresult api::EventCreate(Call& call, CUevent* out, unsigned int flags) {
  if (out == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Event* const event = call.world.Make<Event>(call.context);
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = flags;
  *out = ToHandle<CUevent>(event);
  return CUDA_SUCCESS;
}

CUresult api::EventDestroy(Call& call, CUevent handle) {
  Event* const event = call.Follow<Event>(handle);
  if (event == nullptr) return call.Gone(handle);
  const CUresult result = Borrow(call, event->owner);
  if (result != CUDA_SUCCESS) return result;
  ForgetEvent(call.world, event);
  DropMarker(call.world, event->marker);
  EndShare(call.world, event->share);
  call.world.Destroy(event);
  return CUDA_SUCCESS;
}

CUresult api::EventRecord(Call& call, CUevent handle, CUstream stream_handle) {
  Event* const event = call.Follow<Event>(handle);
  if (event == nullptr && call.world.handles.NoteOf(reinterpret_cast<std::uintptr_t>(handle)) == HandleTable::kResetNote)
    return CUDA_ERROR_INVALID_HANDLE;  // reset.event_record_after, of the runtime's questions
  if (event == nullptr) return call.Gone(handle);
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (event->owner != stream->owner) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return CaptureRecord(call.world, stream, event);
  result = RecordOn(call, stream, event);
  // A waiter in another process cannot run this process's work.
  const bool waits = (event->share != 0 || event->foreign) && call.thread->inside == Inside::Nothing;
  if (result == CUDA_SUCCESS && waits) Drain(call, stream);
  return result;
}

CUresult api::EventRecordWithFlags(Call& call, CUevent handle, CUstream stream_handle, unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags == 0) return EventRecord(call, handle, stream_handle);
  const Event* const event = call.Follow<Event>(handle);
  if (event == nullptr) return call.Gone(handle);
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (event->owner != stream->owner) return CUDA_ERROR_INVALID_HANDLE;
  return CaptureExternal(call.world, stream, WorkType::Record, handle);
}

CUresult api::EventQuery(Call& call, CUevent handle) {
  CUresult result = CUDA_SUCCESS;
  Event* const event = FindToWaitFor(call, handle, &result);
  if (event == nullptr) return result;
  const std::uint64_t context = event->owner->handle;
  if (const Marker* const marker = event->marker; marker != nullptr && !marker->done) {
    Nudge(call.world, call.thread, Goal{marker->stream, marker->ticket + 1});
    return CUDA_ERROR_NOT_READY;
  }
  DrainMarker(call, event->marker);
  return StateAfterWait(call.world, context);
}

CUresult api::EventSynchronize(Call& call, CUevent handle) {
  CUresult result = CUDA_SUCCESS;
  Event* const event = FindToWaitFor(call, handle, &result);
  if (event == nullptr) return result;
  const std::uint64_t context = event->owner->handle;
  DrainMarker(call, event->marker);
  TrimPools(call.world);
  return StateAfterWait(call.world, context);
}

CUresult api::EventElapsedTime(Call& call, float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const Event* const start = call.Follow<Event>(start_handle);
  // The second is looked at when the first was recorded.
  const bool recorded = start == nullptr || start->marker != nullptr || start->was_captured;
  const Event* const end = recorded ? call.Follow<Event>(end_handle) : call.world.Find<Event>(end_handle);
  if (milliseconds == nullptr || start == nullptr || end == nullptr || start->owner != end->owner) return CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  const auto leads_nowhere = [](const Event* event) { return event->was_captured && event->capture == nullptr; };
  if (leads_nowhere(start) || leads_nowhere(end)) return CUDA_ERROR_INVALID_VALUE;
  if (start->marker == nullptr || end->marker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->marker->done || !end->marker->done) return CUDA_ERROR_NOT_READY;
  const std::int64_t nanoseconds = static_cast<std::int64_t>(end->marker->time - start->marker->time);
  *milliseconds = static_cast<float>(nanoseconds) / kNanosecondsPerMillisecond;
  return CUDA_SUCCESS;
}

// Values that streams write and wait for; external semaphores, as calls and as graph nodes.

namespace {

constexpr unsigned kMostOperations = 255;  // 256 are refused by an H200

CUresult CaptureBatch(Call& call, Stream* stream, unsigned count, const CUstreamBatchMemOpParams* operations) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{};
  parameters.ctx = ToHandle<CUcontext>(stream->owner);
  parameters.count = count;
  parameters.paramArray = const_cast<CUstreamBatchMemOpParams*>(operations);
  Work work;
  CUresult result = BatchWork(call, &parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  DropArguments(call.world, work);
  return result;
}

// All of them or none.
CUresult Queue(Call& call, CUstream handle, unsigned count, const CUstreamBatchMemOpParams* operations) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Work work;
    result = ReadValueOperation(call.world, operations[i], &work);
  }
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) return CaptureBatch(call, stream, count, operations);
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Work work;
    (void)ReadValueOperation(call.world, operations[i], &work);
    if (work.type != WorkType::Nothing) result = Submit(call, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  }
  return result;
}

CUresult Wait(Call& call, CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags, CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return Queue(call, stream, 1, &operation);
}

CUresult Write(Call& call, CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags, CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = type;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  operation.writeValue.flags = flags;
  return Queue(call, stream, 1, &operation);
}

}  // namespace

CUresult api::StreamWaitValue32(Call& call, CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait(call, stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_32);
}

CUresult api::StreamWaitValue64(Call& call, CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait(call, stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_64);
}

CUresult api::StreamWriteValue32(Call& call, CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write(call, stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_32);
}

CUresult api::StreamWriteValue64(Call& call, CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write(call, stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_64);
}

CUresult api::StreamBatchMemOp(Call& call, CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  if (flags != 0 || count > kMostOperations || (count != 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Queue(call, stream, count, operations);
}

namespace {

constexpr CUgraphNodeType kSignal = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
constexpr CUgraphNodeType kWait = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;

// The page of a file that semaphore.h made; null: it is none.
SemaphorePage* MapPage(int file) {
  struct stat about;
  cuaudit_semaphore_file head{};
  if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return nullptr;
  if (pread(file, &head, sizeof(head), 0) != static_cast<ssize_t>(sizeof(head)) || head.magic != CUAUDIT_SEMAPHORE_MAGIC) return nullptr;
  return reinterpret_cast<SemaphorePage*>(MapShareFile(file, sizeof(head), 0));
}

CUresult Queue(Call& call, CUstream handle, CUgraphNodeType type, CUresult made, const Work& work) {
  if (made != CUDA_SUCCESS) return made;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) result = Submit(call, stream, type, work);
  DropArguments(call.world, work);
  return result;
}

CUresult Add(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* earlier, std::size_t count, CUgraphNodeType type,
             CUresult made, const Work& work) {
  if (made != CUDA_SUCCESS) return made;
  Dependencies dependencies(call.world);
  CUresult result = out == nullptr ? CUDA_ERROR_INVALID_VALUE : dependencies.Resolve(graph, earlier, count);
  if (result == CUDA_SUCCESS) {
    const Node* const node = AddNode(call.world, dependencies.graph(), dependencies.nodes().data(), count, type, work);
    if (node != nullptr) *out = ToHandle<CUgraphNode>(node);
    if (node == nullptr) result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  DropArguments(call.world, work);
  return result;
}

CUresult Set(Call& call, CUgraphNode handle, CUgraphNodeType type, CUresult made, const Work& work) {
  if (made != CUDA_SUCCESS) return made;
  Node* const node = FindNode(call, handle, type);
  if (node != nullptr) {
    DropArguments(call.world, node->work);
    node->work = work;
    return CUDA_SUCCESS;
  }
  DropArguments(call.world, work);
  return CUDA_ERROR_INVALID_VALUE;
}

// Both kinds of parameters have the same members.
template <typename Parameters>
CUresult Get(Call& call, CUgraphNode handle, CUgraphNodeType type, Parameters* out) {
  const Node* const node = FindNode(call, handle, type);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ValueWork& list = node->work.value;
  out->extSemArray = const_cast<CUexternalSemaphore*>(list.semaphores);
  out->paramsArray = static_cast<decltype(out->paramsArray)>(list.parameters);
  out->numExtSems = list.count;
  return CUDA_SUCCESS;
}

CUresult WorkOfSignal(const Call& call, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* from, Work* work) {
  return from == nullptr ? CUDA_ERROR_INVALID_VALUE : SignalWork(call, from->extSemArray, from->paramsArray, from->numExtSems, work);
}

CUresult WorkOfWait(const Call& call, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* from, Work* work) {
  return from == nullptr ? CUDA_ERROR_INVALID_VALUE : AwaitWork(call, from->extSemArray, from->paramsArray, from->numExtSems, work);
}

}  // namespace

CUresult api::ImportExternalSemaphore(Call& call, CUexternalSemaphore* out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* from) {
  if (out == nullptr || from == nullptr || from->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(from->type)) {
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD:
      break;
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  SemaphorePage* const page = MapPage(from->handle.fd);
  if (page == nullptr) return CUDA_ERROR_UNKNOWN;
  ExternalSemaphore* const semaphore = call.world.Make<ExternalSemaphore>(call.context);
  if (semaphore == nullptr || !call.world.semaphores.Push(call.world.arena, semaphore)) {
    MapRelease(page, sizeof(cuaudit_semaphore_file));
    if (semaphore != nullptr) call.world.Destroy(semaphore);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  semaphore->timeline = from->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  semaphore->page = page;
  close(from->handle.fd);  // an imported descriptor is the driver's
  *out = ToHandle<CUexternalSemaphore>(semaphore);
  return CUDA_SUCCESS;
}

CUresult api::DestroyExternalSemaphore(Call& call, CUexternalSemaphore handle) {
  ExternalSemaphore* const semaphore = call.world.Find<ExternalSemaphore>(handle);
  if (semaphore == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : call.Gone(handle);
  const CUresult result = Borrow(call, semaphore->owner);
  if (result != CUDA_SUCCESS) return result;
  FreeSemaphore(call.world, semaphore);
  return CUDA_SUCCESS;
}

CUresult api::SignalExternalSemaphoresAsync(Call& call, const CUexternalSemaphore* semaphores,
                                            const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters, unsigned int count, CUstream stream) {
  Work work;
  return Queue(call, stream, kSignal, SignalWork(call, semaphores, parameters, count, &work), work);
}

CUresult api::WaitExternalSemaphoresAsync(Call& call, const CUexternalSemaphore* semaphores,
                                          const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters, unsigned int count, CUstream stream) {
  Work work;
  return Queue(call, stream, kWait, AwaitWork(call, semaphores, parameters, count, &work), work);
}

CUresult api::GraphAddExternalSemaphoresSignalNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                                   std::size_t count, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* parameters) {
  Work work;
  return Add(call, out, graph, dependencies, count, kSignal, WorkOfSignal(call, parameters, &work), work);
}

CUresult api::GraphAddExternalSemaphoresWaitNode(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                                 std::size_t count, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* parameters) {
  Work work;
  return Add(call, out, graph, dependencies, count, kWait, WorkOfWait(call, parameters, &work), work);
}

CUresult api::GraphExternalSemaphoresSignalNodeGetParams(Call& call, CUgraphNode node, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* out) {
  return Get(call, node, kSignal, out);
}

CUresult api::GraphExternalSemaphoresWaitNodeGetParams(Call& call, CUgraphNode node, CUDA_EXT_SEM_WAIT_NODE_PARAMS* out) {
  return Get(call, node, kWait, out);
}

CUresult api::GraphExternalSemaphoresSignalNodeSetParams(Call& call, CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* parameters) {
  Work work;
  return Set(call, node, kSignal, WorkOfSignal(call, parameters, &work), work);
}

CUresult api::GraphExternalSemaphoresWaitNodeSetParams(Call& call, CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* parameters) {
  Work work;
  return Set(call, node, kWait, WorkOfWait(call, parameters, &work), work);
}

CUresult api::GraphExecExternalSemaphoresSignalNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node,
                                                             const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* parameters) {
  Work work;
  return SetStep(call, handle, node, kSignal, WorkOfSignal(call, parameters, &work), work);
}

CUresult api::GraphExecExternalSemaphoresWaitNodeSetParams(Call& call, CUgraphExec handle, CUgraphNode node,
                                                           const CUDA_EXT_SEM_WAIT_NODE_PARAMS* parameters) {
  Work work;
  return SetStep(call, handle, node, kWait, WorkOfWait(call, parameters, &work), work);
}

}  // namespace cuaudit::sim
