// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

bool IsPolicy(CUsynchronizationPolicy policy) { return policy >= CU_SYNC_POLICY_AUTO && policy <= CU_SYNC_POLICY_BLOCKING_SYNC; }

bool IsWindow(const Profile& profile, const CUaccessPolicyWindow& window) {
  if (window.num_bytes > static_cast<std::size_t>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE))) return false;
  if (!(window.hitRatio >= 0.0F && window.hitRatio <= 1.0F)) return false;
  if (window.hitProp < CU_ACCESS_PROPERTY_NORMAL || window.hitProp > CU_ACCESS_PROPERTY_PERSISTING) return false;
  return window.missProp == CU_ACCESS_PROPERTY_NORMAL || window.missProp == CU_ACCESS_PROPERTY_STREAMING;
}

bool IsDomainMap(const Profile& profile, const CUlaunchMemSyncDomainMap& map) {
  const int domains = profile.Attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
  return map.default_ < domains && map.remote < domains;
}

}  // namespace

CUresult api::StreamGetAttribute(Call& call, CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const StreamAttributes& kept = stream->attributes;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = kept.window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memcpy(&value->syncPolicy, &kept.policy, sizeof(kept.policy));
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = stream->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = kept.domains;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = kept.domain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult api::StreamSetAttribute(Call& call, CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamAttributes& kept = stream->attributes;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      if (!IsWindow(*call.world.profile, value->accessPolicyWindow)) return CUDA_ERROR_INVALID_VALUE;
      kept.window = value->accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      if (!IsPolicy(value->syncPolicy)) return CUDA_ERROR_INVALID_VALUE;
      kept.policy = static_cast<std::uint32_t>(value->syncPolicy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      stream->priority = ClampPriority(value->priority);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      if (!IsDomainMap(*call.world.profile, value->memSyncDomainMap)) return CUDA_ERROR_INVALID_VALUE;
      kept.domains = value->memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      if (value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT && value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
        return CUDA_ERROR_INVALID_VALUE;
      kept.domain = value->memSyncDomain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult api::StreamCopyAttributes(Call& call, CUstream to_handle, CUstream from_handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const to = FindStream(call, to_handle, &result);
  if (to == nullptr) return result;
  const Stream* const from = FindStream(call, from_handle, &result);
  if (from == nullptr) return result;
  if (to->owner != from->owner) return CUDA_ERROR_INVALID_VALUE;
  to->attributes = from->attributes;
  to->priority = from->priority;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
