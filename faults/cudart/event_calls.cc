// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"

namespace cuaudit::cudart {

cudaError_t EventCreate(DriverRef driver, cudaEvent_t* event) noexcept { return From(driver.EventCreate(event, CU_EVENT_DEFAULT)); }

cudaError_t EventCreateWithFlags(DriverRef driver, cudaEvent_t* event, unsigned int flags) noexcept {
  return From(driver.EventCreate(event, flags));
}

cudaError_t EventDestroy(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventDestroy(event)); }

cudaError_t EventElapsedTime(DriverRef driver, float* ms, cudaEvent_t start, cudaEvent_t end) noexcept {
  return ms == nullptr ? cudaErrorInvalidValue : From(driver.EventElapsedTime(ms, start, end));
}

cudaError_t EventQuery(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventQuery(event)); }

cudaError_t EventRecord(DriverRef driver, cudaEvent_t event, cudaStream_t stream) noexcept {
  return From(driver.EventRecord(event, stream));
}

cudaError_t EventRecordWithFlags(DriverRef driver, cudaEvent_t event, cudaStream_t stream, unsigned int flags) noexcept {
  return From(driver.EventRecordWithFlags(event, stream, flags));
}

cudaError_t EventSynchronize(DriverRef driver, cudaEvent_t event) noexcept { return From(driver.EventSynchronize(event)); }

}  // namespace cuaudit::cudart
