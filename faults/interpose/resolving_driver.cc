// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/interpose/resolving_driver.h"

#include <cstdint>
#include <type_traits>

#include "faults/driver/call_id.h"
#include "faults/driver/call_shape.h"
#include "faults/driver/proc_address.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;
using driver::ProcStatus;

constinit driver::DriverTable table{};
constinit driver::DriverRef below{};
constinit const driver::GenuineDriver* genuine_driver = nullptr;
constinit std::atomic<std::uint32_t>* unknown_pointers = nullptr;

template <CallId id, typename... P>
CUresult Below(P... arguments) noexcept {
  return reinterpret_cast<CUresult (*)(void*, P...)>(below.table->entry[driver::Index(id)])(below.self, arguments...);
}

void Replace(void** pfn) noexcept {
  if (pfn == nullptr || *pfn == nullptr) return;
  const std::size_t id = driver::FindSymbol(*genuine_driver, *pfn);
  if (id != driver::kCallCount) {
    *pfn = ExportOf(static_cast<CallId>(id));
  } else if (unknown_pointers != nullptr) {
    unknown_pointers->fetch_add(1, std::memory_order_relaxed);
  }
}

CUresult GetProcAddress(void*, const char* name, void** pfn, int version, cuuint64_t flags) {
  if (genuine_driver != nullptr) {
    const CUresult result = Below<CallId::GetProcAddress>(name, pfn, version, flags);
    if (result == CUDA_SUCCESS) Replace(pfn);
    return result;
  }
  if (name == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const driver::ProcAddress found = driver::ResolveProcAddress(name, version, flags);
  switch (found.status) {
    case ProcStatus::Found:
      *pfn = ExportOf(found.id);
      return CUDA_SUCCESS;
    case ProcStatus::BadFlags:
      return CUDA_ERROR_INVALID_VALUE;
    case ProcStatus::NotFound:
    case ProcStatus::VersionNotSufficient:
      return CUDA_ERROR_NOT_FOUND;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult GetProcAddress_v2(void*, const char* name, void** pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (genuine_driver != nullptr) {
    const CUresult result = Below<CallId::GetProcAddress_v2>(name, pfn, version, flags, status);
    if (result == CUDA_SUCCESS) Replace(pfn);
    return result;
  }
  if (name == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const driver::ProcAddress found = driver::ResolveProcAddress(name, version, flags);
  CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
  switch (found.status) {
    case ProcStatus::Found:
      *pfn = ExportOf(found.id);
      break;
    case ProcStatus::BadFlags:
      return CUDA_ERROR_INVALID_VALUE;
    case ProcStatus::NotFound:
      *pfn = nullptr;
      answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      break;
    case ProcStatus::VersionNotSufficient:
      *pfn = nullptr;
      answer = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      break;
  }
  if (status != nullptr) *status = answer;
  return CUDA_SUCCESS;
}

template <CallId id, typename Function>
void Bind(Function* function) noexcept {
  static_assert(std::is_same_v<Function, typename driver::CallType<id>::Entry>);
  table.entry[driver::Index(id)] = reinterpret_cast<driver::Entry>(function);
  table.modelled[driver::Index(id)] = true;
}

}  // namespace

driver::DriverRef Resolving(driver::DriverRef next, const driver::GenuineDriver* genuine, std::atomic<std::uint32_t>* unknown) noexcept {
  below = next;
  unknown_pointers = unknown;
  genuine_driver = genuine;
  table = *next.table;
  Bind<CallId::GetProcAddress>(&GetProcAddress);
  Bind<CallId::GetProcAddress_v2>(&GetProcAddress_v2);
  return {&table, next.self};
}

constinit std::atomic<const driver::DriverRef*> diversion{nullptr};

namespace {

// Two slots, used in turn, so that a reader of the previous diversion never sees a half-written one.
constinit driver::DriverRef room[2];
constinit unsigned used = 0;

}  // namespace
}  // namespace cuaudit::faults

// A null table ends the diversion. Returns 1; or 0, and changes nothing, when the caller was built from other headers.
extern "C" __attribute__((visibility("default"))) int cuaudit_divert(const void* table, void* self, std::uint64_t digest) {
  using namespace cuaudit::faults;
  if (digest != cuaudit::driver::TableDigest()) return 0;
  if (table == nullptr) {
    diversion.store(nullptr, std::memory_order_release);
    return 1;
  }
  cuaudit::driver::DriverRef& next = room[++used % 2];
  next = {static_cast<const cuaudit::driver::DriverTable*>(table), self};
  diversion.store(&next, std::memory_order_release);
  return 1;
}
