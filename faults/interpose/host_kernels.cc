// SPDX-License-Identifier: MIT
#include "faults/interpose/host_kernels.h"

namespace cuaudit::faults {
namespace {

constinit std::atomic<cuaudit_kernel*> newest{nullptr};

bool IsListed(const cuaudit_kernel* first, const cuaudit_kernel* wanted) noexcept {
  for (const cuaudit_kernel* kernel = first; kernel != nullptr; kernel = kernel->next) {
    if (kernel == wanted) return true;
  }
  return false;
}

}  // namespace

const std::atomic<cuaudit_kernel*>& HostKernels() noexcept { return newest; }

}  // namespace cuaudit::faults

extern "C" __attribute__((visibility("default"))) int cuaudit_register_kernel(cuaudit_kernel* kernel) {
  using cuaudit::faults::newest;
  if (kernel == nullptr || kernel->struct_bytes != sizeof(*kernel) || kernel->name == nullptr || kernel->run == nullptr) return 0;
  cuaudit_kernel* first = newest.load(std::memory_order_acquire);
  do {
    if (cuaudit::faults::IsListed(first, kernel)) return 1;
    kernel->next = first;
  } while (!newest.compare_exchange_weak(first, kernel, std::memory_order_release, std::memory_order_acquire));
  return 1;
}
