// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "allocator/plugin/process_driver.h"
#include "faults/driver/result.h"
#include "suites/bench/peers/loops.h"

namespace cuaudit::bench {
namespace {

std::string Failed(const char* call, CUresult result) { return std::string(call) + ": " + std::string(driver::ShortResultName(result)); }

}  // namespace

std::string Stage::Open(int device) {
  device_number_ = device;
  if (const char* const wrong = alloc::OpenProcessDriver(&driver_); wrong != nullptr) return wrong;
  const driver::DriverRef d = driver();
  if (const CUresult result = d.Init(0); result != CUDA_SUCCESS) return Failed("cuInit", result);
  if (const CUresult result = d.DeviceGet(&device_, device); result != CUDA_SUCCESS) return Failed("cuDeviceGet", result);
  if (const CUresult result = d.DevicePrimaryCtxRetain(&context_, device_); result != CUDA_SUCCESS)
    return Failed("cuDevicePrimaryCtxRetain", result);
  Enter();
  for (int i = 0; i < kMaxStreams; ++i) {
    CUstream stream = nullptr;
    if (const CUresult result = d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); result != CUDA_SUCCESS)
      return Failed("cuStreamCreate", result);
    streams_.push_back(stream);
  }
  void* flag = nullptr;
  if (const CUresult result = d.MemHostAlloc(&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP); result != CUDA_SUCCESS)
    return Failed("cuMemHostAlloc", result);
  flag_ = static_cast<std::uint32_t*>(flag);
  *flag_ = 0;
  const CUresult result = d.MemHostGetDevicePointer(&flag_address_, flag, 0);
  return result == CUDA_SUCCESS ? "" : Failed("cuMemHostGetDevicePointer", result);
}

void Stage::Enter() const { (void)driver::Driver(const_cast<driver::GenuineDriver*>(&driver_)).CtxSetCurrent(context_); }

std::string Stage::device_text() {
  char name[128] = "?";
  int version = 0;
  (void)driver().DeviceGetName(name, sizeof(name), device_);
  (void)driver().DriverGetVersion(&version);
  return std::string(name) + ", driver API " + std::to_string(version);
}

void Stage::Load(Entrant* entrant) {
  if (!std::filesystem::exists(entrant->library)) {
    std::string why = "not built";
    if (std::FILE* const reason = std::fopen((entrant->library + ".why").c_str(), "re"); reason != nullptr) {
      char line[200] = "";
      if (std::fgets(line, sizeof(line), reason) != nullptr) why += ": " + std::string(line).substr(0, std::string(line).find('\n'));
      (void)std::fclose(reason);
    }
    entrant->failure = why;
    return;
  }
  // One copy of the library for each of its entrants: a peer has one allocator. RTLD_LOCAL keeps their symbols apart.
  std::string file = entrant->library;
  if (!entrant->settings.empty()) {
    std::error_code error;
    file = std::filesystem::temp_directory_path(error) /
           ("cuaudit_peer_" + std::to_string(::getpid()) + "_" + std::to_string(++copies_) + ".so");
    std::filesystem::copy_file(entrant->library, file, std::filesystem::copy_options::overwrite_existing, error);
    if (error) {
      entrant->failure = "could not be copied: " + error.message();
      return;
    }
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string load_error = library == nullptr ? dlerror() : "";
  if (file != entrant->library) std::filesystem::remove(file);
  if (library == nullptr) {
    entrant->failure = "did not load: " + load_error;
    return;
  }
  const auto entry = reinterpret_cast<const Peer* (*)()>(dlsym(library, "cuaudit_peer"));
  if (entry == nullptr) {
    entrant->failure = "exports no cuaudit_peer";
    return;
  }
  const Peer* const peer = entry();
  if (const char* const wrong = peer->open(device_number_, entrant->settings.c_str()); wrong != nullptr) {
    entrant->failure = wrong;
    return;
  }
  Enter();
  for (int i = 0; i < kMaxStreams; ++i) {
    if (const char* const wrong = peer->token(stream(i), &entrant->token[i]); wrong != nullptr) {
      entrant->failure = wrong;
      return;
    }
  }
  entrant->peer = peer;
}

bool Stage::Hold(int first, int last) {
  ++turn_;
  for (int i = first; i <= last; ++i) {
    if (driver().StreamWaitValue32(stream(i), flag_address_, turn_, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
      (void)Release(first, i - 1);
      return false;
    }
  }
  return true;
}

bool Stage::Release(int first, int last) {
  std::atomic_ref<std::uint32_t>(*flag_).store(turn_, std::memory_order_release);
  bool is_well = true;
  for (int i = first; i <= last; ++i) is_well = driver().StreamSynchronize(stream(i)) == CUDA_SUCCESS && is_well;
  return is_well;
}

}  // namespace cuaudit::bench
