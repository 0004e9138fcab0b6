// SPDX-License-Identifier: MIT
#include "allocator/blocks/capture.h"

#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

#include "allocator/blocks/block.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kMostNodes = 65536;

CUresult CaptureInfo(driver::DriverRef driver, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, const CUgraphNode** last,
                     std::size_t* count) noexcept {
#if CUDA_VERSION >= 13000
  return driver.StreamGetCaptureInfo(stream, status, id, nullptr, last, nullptr, count);
#else
  return driver.StreamGetCaptureInfo(stream, status, id, nullptr, last, count);
#endif
}

CUresult DependenciesOf(driver::DriverRef driver, CUgraphNode node, CUgraphNode* out, std::size_t* count) {
#if CUDA_VERSION >= 13000
  // Edges that carry data (programmatic launches) are asked for, since leaving them out is an error when there are any.
  if (out == nullptr) return driver.GraphNodeGetDependencies(node, nullptr, nullptr, count);
  std::vector<CUgraphEdgeData> edges(*count);
  return driver.GraphNodeGetDependencies(node, out, edges.data(), count);
#else
  return driver.GraphNodeGetDependencies(node, out, count);
#endif
}

CUresult Walk(driver::DriverRef driver, const std::vector<CUgraphNode>& nodes, const std::vector<CUgraphNode>& last, bool* ordered) {
  std::unordered_set<CUgraphNode> missing(nodes.begin(), nodes.end());
  std::unordered_set<CUgraphNode> seen(last.begin(), last.end());
  std::vector<CUgraphNode> open(last);
  std::vector<CUgraphNode> before;
  for (const CUgraphNode node : last) missing.erase(node);
  while (!open.empty() && !missing.empty() && seen.size() <= kMostNodes) {
    const CUgraphNode node = open.back();
    open.pop_back();
    std::size_t count = 0;
    CUresult result = DependenciesOf(driver, node, nullptr, &count);
    if (result != CUDA_SUCCESS) return result;
    if (count == 0) continue;
    before.resize(count);
    if ((result = DependenciesOf(driver, node, before.data(), &count)) != CUDA_SUCCESS) return result;
    before.resize(std::min(before.size(), count));
    for (const CUgraphNode earlier : before) {
      missing.erase(earlier);
      if (seen.insert(earlier).second) open.push_back(earlier);
    }
  }
  *ordered = missing.empty();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CaptureOf(driver::DriverRef driver, CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) noexcept {
  cuuint64_t capture = 0;
  const CUresult result = CaptureInfo(driver, stream, status, &capture, nullptr, nullptr);
  *id = capture;
  return result;
}

void DropCaptured(Block* block) noexcept {
  while (block->captured != nullptr) {
    CapturedUse* const use = block->captured;
    block->captured = use->next;
    delete use;
  }
}

void DropEnded(Block* block) noexcept {
  CapturedUse** link = &block->captured;
  while (*link != nullptr) {
    CapturedUse* const use = *link;
    if (use->capture->ended.load(std::memory_order_acquire)) {
      *link = use->next;
      delete use;
    } else {
      link = &use->next;
    }
  }
}

bool IsInCapture(const Block* block) noexcept {
  for (const CapturedUse* use = block->captured; use != nullptr; use = use->next) {
    if (!use->capture->ended.load(std::memory_order_acquire)) return true;
  }
  return false;
}

Captures::~Captures() {
  for (Capture* first : open_) {
    while (first != nullptr) std::exchange(first, first->next)->Drop();
  }
}

Capture* Captures::FindOrMake(std::uint64_t id) noexcept {
  const Held held(lock_);
  Capture*& first = open_[id % kBuckets];
  Capture* capture = first;
  while (capture != nullptr && capture->id != id) capture = capture->next;
  if (capture == nullptr) {
    capture = new (std::nothrow) Capture;
    if (capture == nullptr) return nullptr;
    capture->id = id;
    capture->next = first;
    first = capture;
  }
  capture->Keep();
  return capture;
}

void Captures::End(std::uint64_t id) noexcept {
  const Held held(lock_);
  for (Capture** link = &open_[id % kBuckets]; *link != nullptr; link = &(*link)->next) {
    Capture* const capture = *link;
    if (capture->id != id) continue;
    *link = capture->next;
    capture->ended.store(true, std::memory_order_release);
    capture->Drop();
    return;
  }
}

CUresult Captures::LookAt(driver::DriverRef driver, StreamRecord* stream, CUstream live, CaptureView* out) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream->capture.load(std::memory_order_acquire) == 0) {
    // The cheaper question; and mostly its answer is no.
    const CUresult result = driver.StreamIsCapturing(live, &status);
    if (result != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE) return result;
  }
  cuuint64_t id = 0;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const CUresult result = CaptureInfo(driver, live, &status, &id, &last, &count);
  if (result != CUDA_SUCCESS) return result;
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  out->id = status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
  const std::uint64_t before = stream->capture.exchange(out->id, std::memory_order_acq_rel);
  if (before != 0 && before != out->id) End(before);
  if (out->id == 0) return CUDA_SUCCESS;
  try {
    out->last.assign(last, last + count);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult IsOrderedBefore(driver::DriverRef driver, const std::vector<CUgraphNode>& nodes, const std::vector<CUgraphNode>& last,
                         bool* ordered) noexcept {
  *ordered = false;
  try {
    return Walk(driver, nodes, last, ordered);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace cuaudit::alloc
