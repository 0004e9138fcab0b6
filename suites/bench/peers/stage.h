// SPDX-License-Identifier: MIT
// stage.h: the driver, the streams and the peers that the loops run on.
//
//   Owns      streams, a flag in pinned memory that streams can be made to wait for, the loaded libraries, until the process ends.
//   Threads   Enter on each thread that calls a peer; the rest from one.
//   Errors    a text; empty when all is well.
//   Faults    Init, DeviceGet, DevicePrimaryCtxRetain, CtxSetCurrent, StreamCreate, MemHostAlloc, MemHostGetDevicePointer,
//   StreamWaitValue32,
//             StreamSynchronize.
//   Source    ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "faults/driver/genuine_driver.h"
#include "suites/bench/peers/peer.h"

namespace cuaudit::bench {

inline constexpr int kMaxStreams = 16;

// A peer with its settings, ready to be measured, or the reason why not.
struct Entrant {
  std::string label;  // "cuaudit", "cuaudit policy:wait", "pytorch"
  std::string library;
  std::string settings;
  const Peer* peer = nullptr;
  void* token[kMaxStreams] = {};
  std::string failure;
};

class Stage {
 public:
  std::string Open(int device);
  void Load(Entrant* entrant);
  void Enter() const;  // makes the context current on this thread

  [[nodiscard]] driver::DriverRef driver() { return driver::Driver(&driver_); }
  [[nodiscard]] CUstream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] std::string device_text();

  // The streams `first` to `last` stand still until Release; then all of them are run dry.
  bool Hold(int first, int last);
  bool Release(int first, int last);

 private:
  int device_number_ = 0;
  driver::GenuineDriver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::vector<CUstream> streams_;
  std::uint32_t* flag_ = nullptr;
  CUdeviceptr flag_address_ = 0;
  std::uint32_t turn_ = 0;
  int copies_ = 0;
};

}  // namespace cuaudit::bench
