// SPDX-License-Identifier: MIT
// blame_calls.cc: ways of losing something in C++ behind calls of all sorts, each with a repaired twin. See blame.h.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "blame.h"

int wrong;

namespace {

// virtual: the launcher deletes a backend that it opened and did not close.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual bool Open() = 0;
  virtual bool Start() = 0;
  virtual void Close() = 0;
};
class DeviceBackend : public Backend {
 public:
  bool Open() override { return !failed(cuStreamCreate(&stream_, 0)); }
  bool Start() override { return !failed(cuStreamSynchronize(stream_)); }
  void Close() override { (void)cuStreamDestroy(stream_); }

 private:
  CUstream stream_ = nullptr;
};
class Launcher {
 public:
  explicit Launcher(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  bool Launch() {
    if (!backend_->Open()) return false;
    if (!backend_->Start()) {
      if (!wrong) backend_->Close();
      return false;
    }
    backend_->Close();
    return true;
  }

 private:
  std::unique_ptr<Backend> backend_;
};
int Virtual() {
  Launcher launcher(std::make_unique<DeviceBackend>());
  return launcher.Launch() ? 0 : 1;
}

// lambda: called by the standard library.
int Lambda() {
  std::array<int, 2> work = {1, 2};
  const bool bad = std::any_of(work.begin(), work.end(), [](int) {
    CUdeviceptr memory = 0;
    if (failed(cuMemAlloc(&memory, 256))) return true;
    if (failed(cuMemsetD8(memory, 0, 256))) {
      if (!wrong) (void)cuMemFree(memory);
      return true;
    }
    return failed(cuMemFree(memory)) != 0;
  });
  return bad ? 1 : 0;
}

// handler: a std::function that a dispatcher calls.
bool HandleRequest() {
  CUevent event = nullptr;
  if (failed(cuEventCreate(&event, 0))) return false;
  if (failed(cuEventRecord(event, nullptr))) {
    if (!wrong) (void)cuEventDestroy(event);
    return false;
  }
  return !failed(cuEventDestroy(event));
}
int Handler() {
  const std::vector<std::function<bool()>> handlers = {HandleRequest, HandleRequest};
  for (const auto& handler : handlers) {
    if (!handler()) return 1;
  }
  return 0;
}

// thread_main: the worker acquires, and the function that should give it back leaves without.
class Worker {
 public:
  bool Run(CUcontext context) {
    std::thread thread([this, context] {
      good_ = !failed(cuCtxSetCurrent(context)) && !failed(cuStreamCreate(&stream_, 0));
      if (!good_) stream_ = nullptr;
      if (failed(cuCtxSetCurrent(nullptr))) good_ = false;
    });
    thread.join();
    return good_;
  }
  OUT_OF_LINE void Stop() {
    if (stream_ != nullptr) (void)cuStreamDestroy(stream_);
    stream_ = nullptr;
  }

 private:
  CUstream stream_ = nullptr;
  bool good_ = false;
};
int ThreadMain() {
  Worker worker;
  CUcontext context = nullptr;
  if (failed(cuCtxGetCurrent(&context))) return 1;
  if (!worker.Run(context)) {
    worker.Stop();
    return 1;
  }
  CUdeviceptr memory = 0;
  if (failed(cuMemAlloc(&memory, 256))) {
    if (!wrong) worker.Stop();
    return 1;
  }
  (void)cuMemFree(memory);
  worker.Stop();
  return 0;
}

// thread_worker: the worker loses its own.
bool WorkAlone() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  if (failed(cuStreamCreate(&stream, 0))) return false;
  if (failed(cuEventCreate(&event, 0))) {
    if (!wrong) (void)cuStreamDestroy(stream);
    return false;
  }
  (void)cuEventDestroy(event);
  (void)cuStreamDestroy(stream);
  return true;
}
int ThreadWorker() {
  CUcontext context = nullptr;
  if (failed(cuCtxGetCurrent(&context))) return 1;
  bool good = false;
  std::thread thread([&] {
    if (failed(cuCtxSetCurrent(context))) return;
    good = WorkAlone();
    good = !failed(cuCtxSetCurrent(nullptr)) && good;
  });
  thread.join();
  return good ? 0 : 1;
}

// inlined: the function that loses exists only inside of its callers.
__attribute__((always_inline)) inline bool InlinedOpen(CUstream* stream, CUevent* event) {
  if (failed(cuStreamCreate(stream, 0))) return false;
  if (failed(cuEventCreate(event, 0))) {
    if (!wrong) (void)cuStreamDestroy(*stream);
    return false;
  }
  return true;
}
int Inlined() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  if (!InlinedOpen(&stream, &event)) return 1;
  (void)cuEventDestroy(event);
  (void)cuStreamDestroy(stream);
  return 0;
}

// double_release: the handler of an error releases what its callee has released.
bool PrepareEvent(CUevent* event) {
  if (failed(cuEventCreate(event, 0))) return false;
  if (failed(cuEventRecord(*event, nullptr))) {
    (void)cuEventDestroy(*event);
    return false;
  }
  return true;
}
bool UsePrepared() {
  CUevent event = nullptr;
  if (!PrepareEvent(&event)) {
    if (wrong && event != nullptr) (void)cuEventDestroy(event);
    return false;
  }
  return !failed(cuEventDestroy(event));
}
int DoubleRelease() { return UsePrepared() ? 0 : 1; }

constexpr Row kRows[] = {
    {"virtual", &Virtual},
    {"lambda", &Lambda},
    {"handler", &Handler},
    {"thread_main", &ThreadMain},
    {"thread_worker", &ThreadWorker},
    {"inlined", &Inlined},
    {"double_release", &DoubleRelease},
};

}  // namespace

int main(int argc, char** argv) { return run_row(kRows, static_cast<int>(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
