// SPDX-License-Identifier: MIT
// driver_call_cost.cc: nanoseconds of the driver calls that an allocator makes for each use of a block, alone and on 16 threads, beside
// what the host's own locked instructions cost; and what the driver answers where an allocator would rather not ask. Prints one JSON
// object. Usage: driver_call_cost [threads]. Exit 77: no device.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

void* library = nullptr;

template <typename Call>
Call Find(const char* name) {
  return reinterpret_cast<Call>(dlsym(library, name));
}

using CaptureInfo2 = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**, std::size_t*);
using CaptureInfo3 = CUresult (*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**, const CUgraphEdgeData**,
                                  std::size_t*);
using OneStream = CUresult (*)(CUstream);

// The calls as the loader knows them, so that no table of ours is in the figures.
struct Calls {
#define CALL(member, name, ...) decltype(Find<__VA_ARGS__>(name)) member = Find<__VA_ARGS__>(name)
  CALL(init, "cuInit", CUresult (*)(unsigned));
  CALL(version, "cuDriverGetVersion", CUresult (*)(int*));
  CALL(retain, "cuDevicePrimaryCtxRetain", CUresult (*)(CUcontext*, CUdevice));
  CALL(name, "cuDeviceGetName", CUresult (*)(char*, int, CUdevice));
  CALL(set_current, "cuCtxSetCurrent", CUresult (*)(CUcontext));
  CALL(get_current, "cuCtxGetCurrent", CUresult (*)(CUcontext*));
  CALL(push, "cuCtxPushCurrent_v2", CUresult (*)(CUcontext));
  CALL(pop, "cuCtxPopCurrent_v2", CUresult (*)(CUcontext*));
  CALL(context_id, "cuCtxGetId", CUresult (*)(CUcontext, unsigned long long*));
  CALL(create_context, "cuCtxCreate_v2", CUresult (*)(CUcontext*, unsigned, CUdevice));
  CALL(stream_create, "cuStreamCreate", CUresult (*)(CUstream*, unsigned));
  CALL(stream_id, "cuStreamGetId", CUresult (*)(CUstream, unsigned long long*));
  CALL(stream_context, "cuStreamGetCtx", CUresult (*)(CUstream, CUcontext*));
  CALL(stream_query, "cuStreamQuery", OneStream);
  CALL(synchronize, "cuStreamSynchronize", OneStream);
  CALL(wait_event, "cuStreamWaitEvent", CUresult (*)(CUstream, CUevent, unsigned));
  CALL(is_capturing, "cuStreamIsCapturing", CUresult (*)(CUstream, CUstreamCaptureStatus*));
  CALL(info2, "cuStreamGetCaptureInfo_v2", CaptureInfo2);
  CALL(info3, "cuStreamGetCaptureInfo_v3", CaptureInfo3);
  CALL(begin_capture, "cuStreamBeginCapture_v2", CUresult (*)(CUstream, CUstreamCaptureMode));
  CALL(end_capture, "cuStreamEndCapture", CUresult (*)(CUstream, CUgraph*));
  CALL(exchange_mode, "cuThreadExchangeStreamCaptureMode", CUresult (*)(CUstreamCaptureMode*));
  CALL(destroy_graph, "cuGraphDestroy", CUresult (*)(CUgraph));
  CALL(event_create, "cuEventCreate", CUresult (*)(CUevent*, unsigned));
  CALL(record, "cuEventRecord", CUresult (*)(CUevent, CUstream));
  CALL(query, "cuEventQuery", CUresult (*)(CUevent));
  CALL(write64, "cuStreamWriteValue64_v2", CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned));
  CALL(wait32, "cuStreamWaitValue32_v2", CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned));
  CALL(host_alloc, "cuMemHostAlloc", CUresult (*)(void**, std::size_t, unsigned));
  CALL(device_pointer, "cuMemHostGetDevicePointer_v2", CUresult (*)(CUdeviceptr*, void*, unsigned));
#undef CALL
};

double Now() {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

struct Figure {
  double median = 0;
  double lowest = 0;
};

constexpr int kBatch = 256;

// The median over batches, of a call that is made `kBatch` times in a row; `between` is not timed.
template <typename Step, typename Between>
Figure Cost(Step step, Between between, double seconds) {
  std::vector<double> batches;
  for (int i = 0; i < kBatch; ++i) step();
  between();
  const double until = Now() + seconds * 1e9;
  do {
    const double begin = Now();
    for (int i = 0; i < kBatch; ++i) step();
    batches.push_back((Now() - begin) / kBatch);
    between();
  } while (Now() < until);
  std::sort(batches.begin(), batches.end());
  return {batches[batches.size() / 2], batches.front()};
}

bool is_first_field = true;
void Field(const std::string& name, const std::string& value) {
  std::printf("%s\n  \"%s\": %s", is_first_field ? "{" : ",", name.c_str(), value.c_str());
  is_first_field = false;
}
void Show(const std::string& name, const Figure& figure) {
  char text[80];
  (void)std::snprintf(text, sizeof(text), "{\"median_ns\": %.1f, \"lowest_ns\": %.1f}", figure.median, figure.lowest);
  Field(name, text);
}

class Answers {
 public:
  explicit Answers(std::string name) : name_(std::move(name)) {}
  ~Answers() {
    text_.insert(text_.begin(), '[');
    text_.push_back(']');
    Field(name_, text_);
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  void operator()(const char* what, CUresult result) {
    char text[80];
    (void)std::snprintf(text, sizeof(text), "%s\"%s %d\"", text_.empty() ? "" : ", ", what, static_cast<int>(result));
    text_.append(text);
  }

 private:
  std::string name_;
  std::string text_;
};

struct Place {
  CUstream stream = nullptr;
  CUstream other = nullptr;
  CUevent event = nullptr;
  CUevent events[64] = {};
  void* word = nullptr;
  CUdeviceptr word_address = 0;
};

bool Make(const Calls& c, Place* place) {
  bool good = c.stream_create(&place->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              c.stream_create(&place->other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              c.event_create(&place->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
              c.host_alloc(&place->word, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS &&
              c.device_pointer(&place->word_address, place->word, 0) == CUDA_SUCCESS;
  for (CUevent& event : place->events) good = good && c.event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  return good;
}

constexpr double kSeconds = 0.15;
// `show` gets a name and a figure. The same on one thread and on many.
template <typename Shown>
void CallCosts(const Calls& c, Place& p, double seconds, bool is_alone, Shown show) {
  CUcontext context = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  unsigned long long id = 0;
  unsigned at = 0;
  const auto nothing = [] {};
  const auto drain = [&] { (void)c.synchronize(p.stream); };
  show("cuCtxGetCurrent", Cost([&] { (void)c.get_current(&context); }, nothing, seconds));
  show("cuStreamIsCapturing", Cost([&] { (void)c.is_capturing(p.stream, &status); }, nothing, seconds));
  show("cuStreamGetCaptureInfo_v2", Cost([&] { (void)c.info2(p.stream, &status, &capture, nullptr, &nodes, &count); }, nothing, seconds));
  if (c.info3 != nullptr)
    show("cuStreamGetCaptureInfo_v3",
         Cost([&] { (void)c.info3(p.stream, &status, &capture, nullptr, &nodes, nullptr, &count); }, nothing, seconds));
  show("cuThreadExchangeStreamCaptureMode twice", Cost(
                                                      [&] {
                                                        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
                                                        (void)c.exchange_mode(&mode);
                                                        (void)c.exchange_mode(&mode);
                                                      },
                                                      nothing, seconds));
  show("cuEventRecord one event", Cost([&] { (void)c.record(p.event, p.stream); }, drain, seconds));
  show("cuEventRecord 64 events in turn", Cost([&] { (void)c.record(p.events[at++ % 64], p.stream); }, drain, seconds));
  show("cuStreamIsCapturing, cuEventRecord 64 events in turn", Cost(
                                                                   [&] {
                                                                     (void)c.is_capturing(p.stream, &status);
                                                                     (void)c.record(p.events[at++ % 64], p.stream);
                                                                   },
                                                                   drain, seconds));
  show("cuEventRecord, cuEventQuery of the one 32 before", Cost(
                                                               [&] {
                                                                 (void)c.record(p.events[at % 64], p.stream);
                                                                 (void)c.query(p.events[(at++ + 32) % 64]);
                                                               },
                                                               drain, seconds));
  show("cuEventQuery over", Cost([&] { (void)c.query(p.event); }, nothing, seconds));
  if (!is_alone) return;
  show("cuCtxPushCurrent, cuCtxPopCurrent", Cost(
                                                [&] {
                                                  (void)c.push(context);
                                                  (void)c.pop(&context);
                                                },
                                                nothing, seconds));
  if (c.context_id != nullptr) show("cuCtxGetId", Cost([&] { (void)c.context_id(context, &id); }, nothing, seconds));
  if (c.stream_id != nullptr) show("cuStreamGetId", Cost([&] { (void)c.stream_id(p.stream, &id); }, nothing, seconds));
  show("cuStreamGetCtx", Cost([&] { (void)c.stream_context(p.stream, &context); }, nothing, seconds));
  show("cuStreamQuery", Cost([&] { (void)c.stream_query(p.stream); }, nothing, seconds));
  show("cuStreamWaitEvent over", Cost([&] { (void)c.wait_event(p.other, p.event, 0); }, [&] { (void)c.synchronize(p.other); }, seconds));
  show("cuStreamWriteValue64", Cost([&] { (void)c.write64(p.stream, p.word_address + 64, 1, 0); }, drain, seconds));
  // With the stream standing still behind a word in host memory.
  auto* const flag = static_cast<volatile std::uint32_t*>(p.word);
  *flag = 0;
  if (c.wait32 == nullptr || c.wait32(p.stream, p.word_address, 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) return;
  (void)c.record(p.event, p.stream);
  show("cuEventQuery not over", Cost([&] { (void)c.query(p.event); }, nothing, seconds));
  const double begin = Now();
  for (int i = 0; i < 64; ++i) (void)c.record(p.events[i], p.stream);
  const double recorded = (Now() - begin) / 64;
  show("cuEventRecord on a busy stream, 64 times", Figure{recorded, recorded});
  const double waited_from = Now();
  for (int i = 0; i < 64; ++i) (void)c.wait_event(p.other, p.events[i], 0);
  const double waited = (Now() - waited_from) / 64;
  show("cuStreamWaitEvent not over, 64 times", Figure{waited, waited});
  *flag = 1;
  (void)c.synchronize(p.stream);
  (void)c.synchronize(p.other);
}

void HostCosts(double seconds) {
  static std::atomic<std::uint64_t> word{0};
  static std::mutex mutex;
  const auto nothing = [] {};
  Show("host exchange", Cost([] { word.exchange(1, std::memory_order_acq_rel); }, nothing, seconds));
  Show("host compare and exchange", Cost(
                                        [] {
                                          std::uint64_t expected = word.load(std::memory_order_relaxed);
                                          word.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel);
                                        },
                                        nothing, seconds));
  Show("host compare and exchange, exchange, 8 stores",
       Cost(
           [] {
             static std::atomic<std::uint64_t> words[16];
             std::uint64_t expected = word.load(std::memory_order_relaxed);
             word.compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel);
             for (int i = 0; i < 4; ++i) words[i].store(words[i].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
             words[15].exchange(1, std::memory_order_acquire);
             for (int i = 4; i < 8; ++i) words[i].store(words[i].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
           },
           nothing, seconds));
  Show("host mutex", Cost([] { const std::lock_guard<std::mutex> held(mutex); }, nothing, seconds));
}

// Calls about a stream of `p` while no context, or another, is current on the thread.
void FromElsewhere(const Calls& c, const Place& p, const char* name, bool is_captured) {
  Answers a(name);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  a("is_capturing", c.is_capturing(p.stream, &status));
  a("status", static_cast<CUresult>(status));
  a("capture_info_v2", c.info2(p.stream, &status, &capture, nullptr, &nodes, &count));
  if (c.info3 != nullptr) a("capture_info_v3", c.info3(p.stream, &status, &capture, nullptr, &nodes, nullptr, &count));
  a("record", c.record(p.event, p.stream));
  if (!is_captured) a("wait", c.wait_event(p.other, p.event, 0));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  a("exchange", c.exchange_mode(&mode));
  a("exchange", c.exchange_mode(&mode));
  if (is_captured) return;
  a("query", c.query(p.event));
  a("write64", c.write64(p.stream, p.word_address + 64, 1, 0));
  a("synchronize", c.synchronize(p.stream));
}

void Semantics(const Calls& c, CUcontext context, CUcontext second) {
  Place p;
  CUgraph graph = nullptr;
  const auto end = [&] {
    graph = nullptr;
    const CUresult result = c.end_capture(p.stream, &graph);
    if (graph != nullptr) (void)c.destroy_graph(graph);
    return result;
  };
  (void)c.set_current(context);
  if (!Make(c, &p)) return;
  (void)c.set_current(nullptr);
  FromElsewhere(c, p, "no context current", false);
  if (second != nullptr) {
    (void)c.set_current(second);
    FromElsewhere(c, p, "another context current", false);
  }
  for (const CUcontext current : {static_cast<CUcontext>(nullptr), second}) {
    const std::string name = current == nullptr ? "captured stream, no context current" : "captured stream, another context current";
    (void)c.set_current(context);
    Answers a(name + ": the capture");
    a("begin", c.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    (void)c.set_current(current);
    FromElsewhere(c, p, name.c_str(), true);
    (void)c.set_current(context);
    a("end", end());
    if (second == nullptr) break;
  }
  if (!Make(c, &p)) return;  // what became part of a capture is left alone
  {
    Answers a("event recorded in a capture");
    a("begin", c.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a("record", c.record(p.event, p.stream));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)c.exchange_mode(&mode);
    a("query relaxed", c.query(p.event));
    (void)c.exchange_mode(&mode);
    a("end", end());
    a("query after", c.query(p.event));
    a("record after", c.record(p.event, p.stream));
    a("synchronize", c.synchronize(p.stream));
    a("query after that", c.query(p.event));
  }
  {
    Answers a("event of a live capture recorded on a stream outside");
    a("begin", c.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    a("record", c.record(p.event, p.stream));
    a("record outside", c.record(p.event, p.other));
    a("query", c.query(p.event));
    a("end", end());
  }
  {
    Answers a("stream of an invalidated capture");
    a("begin", c.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    unsigned long long id = 0;
    a("get id", c.stream_id(p.stream, &id));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    a("is_capturing", c.is_capturing(p.stream, &status));
    a("status", static_cast<CUresult>(status));
    a("record", c.record(p.events[0], p.stream));
    a("end", end());
    a("query", c.query(p.events[0]));
  }
  {
    Answers a("query of an event outside while this thread captures, relaxed for it");
    a("record", c.record(p.events[2], p.other));
    a("begin", c.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)c.exchange_mode(&mode);
    a("query", c.query(p.events[2]));
    (void)c.exchange_mode(&mode);
    a("record", c.record(p.events[2], p.other));
    a("end", end());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 16;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 77;
  const Calls c;
  CUcontext context = nullptr;
  CUcontext second = nullptr;
  char device[100] = "";
  int version = 0;
  if (c.init(0) != CUDA_SUCCESS || c.retain(&context, 0) != CUDA_SUCCESS || c.set_current(context) != CUDA_SUCCESS) return 77;
  (void)c.name(device, sizeof(device), 0);
  (void)c.version(&version);
  char text[160];
  (void)std::snprintf(text, sizeof(text), "\"%s, driver API %d\"", device, version);
  Field("device", text);
  std::thread([] { HostCosts(kSeconds); }).join();  // a library may lock more cheaply in a process that has had one thread only
  Place place;
  if (!Make(c, &place)) return 1;
  CallCosts(c, place, kSeconds, true, [](const std::string& name, const Figure& figure) { Show(name, figure); });
  {
    // Another stream of the process is being captured all the while.
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    (void)c.begin_capture(place.other, CU_STREAM_CAPTURE_MODE_RELAXED);
    Show("cuStreamIsCapturing beside a capture", Cost([&] { (void)c.is_capturing(place.stream, &status); }, [] {}, kSeconds));
    (void)c.end_capture(place.other, &graph);
    if (graph != nullptr) (void)c.destroy_graph(graph);
  }
  std::vector<Place> places(static_cast<std::size_t>(threads));
  for (Place& each : places) {
    if (!Make(c, &each)) return 1;
  }
  std::vector<std::vector<std::pair<std::string, Figure>>> rows(places.size());
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < places.size(); ++i) {
    running.emplace_back([&, i] {
      (void)c.set_current(context);
      CallCosts(c, places[i], 2 * kSeconds, false,
                [&](const std::string& name, const Figure& figure) { rows[i].emplace_back(name, figure); });
    });
  }
  for (std::thread& thread : running) thread.join();
  for (std::size_t row = 0; row < rows[0].size(); ++row) {
    std::vector<double> medians(rows.size());
    std::transform(rows.begin(), rows.end(), medians.begin(), [row](const auto& each) { return each[row].second.median; });
    std::sort(medians.begin(), medians.end());
    Show(std::to_string(threads) + " threads, " + rows[0][row].first, Figure{medians[medians.size() / 2], medians.front()});
  }
  std::fflush(stdout);
  if (c.create_context(&second, 0, 0) != CUDA_SUCCESS || c.pop(&second) != CUDA_SUCCESS) second = nullptr;
  Semantics(c, context, second);
  std::printf("\n}\n");
  return 0;
}
