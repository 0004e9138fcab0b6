// SPDX-License-Identifier: MIT
#include <cuda.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/setting_changes.h"

namespace cuaudit::harness {

using driver::BaseId;

namespace {

struct NameRow {
  BaseId set;
  std::uint64_t key;
  std::string_view name;
};
#define CUAUDIT_KEY(set, key) \
  { BaseId::set, key, #key }
constexpr NameRow kNames[] = {
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_STACK_SIZE),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_MAX_L2_FETCH_GRANULARITY),
    CUAUDIT_KEY(CtxSetLimit, CU_LIMIT_PERSISTING_L2_CACHE_SIZE),
    CUAUDIT_KEY(MemPoolSetAttribute, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
    CUAUDIT_KEY(MemPoolSetAttribute, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
    CUAUDIT_KEY(MemPoolSetAttribute, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES),
    CUAUDIT_KEY(MemPoolSetAttribute, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
    CUAUDIT_KEY(FuncSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
    CUAUDIT_KEY(FuncSetAttribute, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
    CUAUDIT_KEY(KernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
    CUAUDIT_KEY(KernelSetAttribute, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
    CUAUDIT_KEY(StreamSetAttribute, CU_LAUNCH_ATTRIBUTE_PRIORITY),
    CUAUDIT_KEY(StreamSetAttribute, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW),
    CUAUDIT_KEY(StreamSetAttribute, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN),
    CUAUDIT_KEY(MemAdvise, CU_MEM_ADVISE_SET_READ_MOSTLY),
    CUAUDIT_KEY(MemAdvise, CU_MEM_ADVISE_SET_PREFERRED_LOCATION),
    {BaseId::FuncSetCacheConfig, 0, "cache configuration"},
    {BaseId::CtxSetCacheConfig, 0, "cache configuration"},
    {BaseId::CtxSetSharedMemConfig, 0, "shared memory configuration"},
    {BaseId::CtxSetFlags, 0, "flags"},
    {BaseId::DevicePrimaryCtxSetFlags, 0, "flags"},
    {BaseId::ThreadExchangeStreamCaptureMode, 0, "capture mode"},
    {BaseId::DeviceSetMemPool, 0, "memory pool"},
    {BaseId::GraphNodeSetEnabled, 0, "enabled node"},
};
#undef CUAUDIT_KEY

std::string NameOf(const Setting& setting) {
  const bool is_node = setting.row->set == BaseId::GraphNodeSetEnabled;  // the key is a handle, which differs from run to run
  const std::uint64_t key = is_node ? 0 : static_cast<std::uint32_t>(setting.key);
  const std::uint64_t device = is_node ? 0 : setting.key >> 32U;  // of a kernel's attribute
  const std::string where = device == 0 ? "" : " on device " + std::to_string(device);
  const auto row =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const NameRow& one) { return one.set == setting.row->set && one.key == key; });
  if (row != std::end(kNames)) return std::string(row->name) + where;
  const std::string number = setting.row->key == driver::kNo ? "" : " " + std::to_string(key);
  return std::string(driver::Name(setting.row->set)) + number + where;
}

// True for a value of 32 bits that may be negative.
bool IsSigned(const SettingChange& change) {
  const driver::Shape& shape = driver::ShapeOf(CallOf(*change.record));
  const auto at = static_cast<std::size_t>(change.setting.row->value);
  if (at < shape.count) return shape.parameter[at].size == sizeof(std::uint32_t);
  return change.setting.row->set == BaseId::StreamSetAttribute && change.setting.key == CU_LAUNCH_ATTRIBUTE_PRIORITY;
}

}  // namespace

Details WordsOf(const SettingChange& change, std::uint64_t left) {
  const std::string name = NameOf(change.setting);
  const driver::CallId call = CallOf(*change.record);
  const auto at = static_cast<std::size_t>(change.setting.row->value);
  const driver::Shape& shape = driver::ShapeOf(call);
  const bool is_location = change.setting.row->set == BaseId::MemAdvise && change.setting.key == CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
  if (is_location || (at < shape.count && ArgumentFamily(call, at) != driver::Family::None)) return {{Detail::SettingNamed, {name}}};
  const bool is_signed = IsSigned(change);
  const auto number = [is_signed](std::uint64_t value) {
    return is_signed ? std::to_string(static_cast<std::int32_t>(value)) : std::to_string(value);
  };
  return {{Detail::SettingLeft, {name, number(change.before), number(left)}}};
}

}  // namespace cuaudit::harness
