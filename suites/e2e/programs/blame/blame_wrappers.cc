// SPDX-License-Identifier: MIT
// blame_wrappers.cc: owners in C++ that lose what they own, each with a repaired twin. See blame.h.
#include <memory>
#include <stdexcept>
#include <vector>

#include "blame.h"

int wrong;

namespace {

struct Failed : std::runtime_error {
  explicit Failed(CUresult result) : std::runtime_error("driver"), code(result) {}
  CUresult code;
};

void Must(CUresult result) {
  if (result != CUDA_SUCCESS) throw Failed(result);
}

// Runs what throws; the row answers 1 after any exception.
template <typename F>
int Caught(F run) {
  try {
    run();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

// A right owner.
class Event {
 public:
  Event() { Must(cuEventCreate(&event_, 0)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { (void)cuEventDestroy(event_); }
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// two_phase: an Init that fails half way; the object says that it is not initialised, and its destructor believes it.
class Encoder {
 public:
  bool Init() {
    if (failed(cuStreamCreate(&stream_, 0))) return false;
    if (failed(cuEventCreate(&event_, 0))) {
      if (!wrong) (void)cuStreamDestroy(stream_);
      return false;
    }
    ready_ = true;
    return true;
  }
  ~Encoder() {
    if (!ready_) return;
    (void)cuEventDestroy(event_);
    (void)cuStreamDestroy(stream_);
  }

 private:
  bool ready_ = false;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};
int TwoPhase() {
  Encoder encoder;
  return encoder.Init() ? 0 : 1;
}

// constructor: throws; the destructor of what was never made does not run.
class Decoder {
 public:
  Decoder() {
    Must(cuStreamCreate(&stream_, 0));
    const CUresult code = cuEventCreate(&event_, 0);
    if (code != CUDA_SUCCESS && !wrong) (void)cuStreamDestroy(stream_);
    Must(code);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    (void)cuEventDestroy(event_);
    (void)cuStreamDestroy(stream_);
  }

 private:
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};
int Constructor() {
  return Caught([] { const Decoder decoder; });
}

// destructor_skips: a destructor that returns at its first error.
class Skipping {
 public:
  Skipping() {
    Must(cuStreamCreate(&stream_, 0));
    const CUresult code = cuEventCreate(&event_, 0);
    if (code != CUDA_SUCCESS) (void)cuStreamDestroy(stream_);
    Must(code);
  }
  Skipping(const Skipping&) = delete;
  Skipping& operator=(const Skipping&) = delete;
  ~Skipping() {
    if (failed(cuEventDestroy(event_)) && wrong) return;
    (void)cuStreamDestroy(stream_);
  }

 private:
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};
int DestructorSkips() {
  return Caught([] { const Skipping skipping; });
}

// destructor_throws: the same with an exception.
class Throwing {
 public:
  Throwing() {
    Must(cuStreamCreate(&stream_, 0));
    const CUresult code = cuEventCreate(&event_, 0);
    if (code != CUDA_SUCCESS) (void)cuStreamDestroy(stream_);
    Must(code);
  }
  Throwing(const Throwing&) = delete;
  Throwing& operator=(const Throwing&) = delete;
  ~Throwing() noexcept(false) {
    const CUresult code = cuEventDestroy(event_);
    if (wrong) Must(code);
    (void)cuStreamDestroy(stream_);
    Must(code);
  }

 private:
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};
int DestructorThrows() {
  return Caught([] { const Throwing throwing; });
}

// exception: a function without a handler is left by what it called.
void Compute(CUstream stream) {
  const Event event;
  Must(cuEventRecord(event.get(), stream));
  Must(cuStreamSynchronize(stream));
}
void RunUnguarded() {
  CUstream stream = nullptr;
  Must(cuStreamCreate(&stream, 0));
  if (wrong) {
    Compute(stream);
  } else {
    try {
      Compute(stream);
    } catch (...) {
      (void)cuStreamDestroy(stream);
      throw;
    }
  }
  (void)cuStreamDestroy(stream);
}
int Exception() {
  return Caught([] { RunUnguarded(); });
}

// released_early: a smart pointer gives its object away before the last call that can fail.
struct Destroy {
  void operator()(CUstream stream) const { (void)cuStreamDestroy(stream); }
};
using OwnedStream = std::unique_ptr<CUstream_st, Destroy>;
OwnedStream OpenStream() {
  CUstream stream = nullptr;
  Must(cuStreamCreate(&stream, 0));
  return OwnedStream(stream);
}
CUstream Configured() {
  OwnedStream owner = OpenStream();
  if (!wrong) {
    Must(cuStreamSynchronize(owner.get()));
    return owner.release();
  }
  const CUstream stream = owner.release();
  Must(cuStreamSynchronize(stream));
  return stream;
}
int ReleasedEarly() {
  return Caught([] { const OwnedStream stream(Configured()); });
}

// replaced: the new one is made, and lost when the old one cannot be waited for.
class Slot {
 public:
  bool Replace() {
    CUstream next = nullptr;
    if (failed(cuStreamCreate(&next, 0))) return false;
    if (stream_ != nullptr && failed(cuStreamSynchronize(stream_))) {
      if (!wrong) (void)cuStreamDestroy(next);
      return false;
    }
    if (stream_ != nullptr) (void)cuStreamDestroy(stream_);
    stream_ = next;
    return true;
  }
  ~Slot() {
    if (stream_ != nullptr) (void)cuStreamDestroy(stream_);
  }

 private:
  CUstream stream_ = nullptr;
};
int Replaced() {
  Slot slot;
  return slot.Replace() && slot.Replace() ? 0 : 1;
}

// forgotten: a container is cleared without its contents.
class Pool {
 public:
  bool Grow(int count) {
    for (int i = 0; i < count; ++i) {
      CUevent event = nullptr;
      if (failed(cuEventCreate(&event, 0))) {
        if (!wrong) Drop();
        events_.clear();
        return false;
      }
      events_.push_back(event);
    }
    return true;
  }
  ~Pool() { Drop(); }

 private:
  void Drop() {
    for (const CUevent event : events_) (void)cuEventDestroy(event);
    events_.clear();
  }
  std::vector<CUevent> events_;
};
int Forgotten() {
  Pool pool;
  return pool.Grow(2) ? 0 : 1;
}

constexpr Row kRows[] = {
    {"two_phase", &TwoPhase},
    {"constructor", &Constructor},
    {"destructor_skips", &DestructorSkips},
    {"destructor_throws", &DestructorThrows},
    {"exception", &Exception},
    {"released_early", &ReleasedEarly},
    {"replaced", &Replaced},
    {"forgotten", &Forgotten},
};

}  // namespace

int main(int argc, char** argv) { return run_row(kRows, static_cast<int>(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
