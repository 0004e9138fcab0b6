// SPDX-License-Identifier: MIT
// stage.h: the driver, the streams and the peers that the loops run on.
//
// Owns the streams, a flag in pinned memory for which streams can be made to wait, and the loaded libraries, until the process ends.
// Call Enter on each thread that calls a peer, and everything else from one thread. An error is a text; it is empty when there is none.
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
