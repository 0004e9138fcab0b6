// SPDX-License-Identifier: MIT
#include "allocator/backends/make_backend.h"

#include <utility>

namespace cuaudit::alloc {

CUresult MakeBackend(const Settings& settings, driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                     std::unique_ptr<Backend>* out, Allocator** native) noexcept {
  if (native != nullptr) *native = nullptr;
  switch (settings.backend) {
    case BackendKind::StreamOrdered:
      return DriverBackend::CreateStreamOrdered(driver, devices, count, warning, out);
    case BackendKind::Uncached:
      return DriverBackend::CreateUncached(driver, devices, count, warning, out);
    case BackendKind::Native:
      break;
  }
  out->reset();
  std::unique_ptr<Allocator> allocator;
  const CUresult result = Allocator::Create(driver, devices, count, settings.options, &allocator);
  if (result != CUDA_SUCCESS) return result;
  allocator->SetWarning(warning);
  if (native != nullptr) *native = allocator.get();
  *out = std::move(allocator);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
