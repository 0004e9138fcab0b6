// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/marker.h"
#include "faults/sim/stream/executor.h"
#include "faults/sim/stream/perform.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kMostTurns = 1000000;

struct StepPlace {
  World& world;
  Thread* thread;
  Stream* stream;
  Plan* plan;
};

CUresult RunSteps(const StepPlace& at, std::size_t first, std::size_t last) noexcept;

// The recording that an event step waits for was reached before the launch began (ObstacleOf).
CUresult RunStep(const StepPlace& at, std::size_t place) {
  const Step& step = at.plan->steps[place];
  if (step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) return CUDA_SUCCESS;
  if (step.type == CU_GRAPH_NODE_TYPE_KERNEL) return RunKernel(at.world, at.thread, at.stream, step.work, at.plan);
  if (step.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) return Perform(at.world, at.thread, at.stream, step.work);
  FinishMarker(at.world, at.stream->head->markers[place + kStepMarkers]);
  return CUDA_SUCCESS;
}

unsigned ValueOf(const Plan& plan, std::uint64_t handle) {
  for (const Slot& slot : plan.slots) {
    if (slot.handle == handle) return slot.value;
  }
  return 0;
}

std::uint64_t Hosted(const World& world) { return CountKernels(&world, KernelCount::Hosted); }

CUresult RunBody(const StepPlace& at, std::size_t conditional, unsigned number) {
  std::size_t head = conditional + 1;
  for (unsigned i = 0; i < number; ++i) head += at.plan->steps[head].inner + 1;
  return RunSteps(at, head + 1, head + 1 + at.plan->steps[head].inner);
}

CUresult RunConditional(const StepPlace& at, std::size_t place) {
  const CUDA_CONDITIONAL_NODE_PARAMS& node = at.plan->steps[place].work.conditional;
  const std::uint64_t handle = node.handle;
  const unsigned size = node.size;
  const unsigned value = ValueOf(*at.plan, handle);
  switch (static_cast<int>(node.type)) {
    case 0:  // if
      if (value != 0) return RunBody(at, place, 0);
      return size == 2 ? RunBody(at, place, 1) : CUDA_SUCCESS;
    case 1:  // while
      for (std::uint64_t turn = 0; ValueOf(*at.plan, handle) != 0; ++turn) {
        if (turn == kMostTurns) return CUDA_ERROR_LAUNCH_TIMEOUT;
        const std::uint64_t before = Hosted(at.world);
        const CUresult result = RunBody(at, place, 0);
        if (result != CUDA_SUCCESS || Hosted(at.world) == before) return result;
      }
      return CUDA_SUCCESS;
    default:  // switch
      return value < size ? RunBody(at, place, value) : CUDA_SUCCESS;
  }
}

CUresult RunSteps(const StepPlace& at, std::size_t first, std::size_t last) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (std::size_t i = first; i < last && result == CUDA_SUCCESS; ++i) {
    const Step& step = at.plan->steps[i];
    if (step.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      result = RunConditional(at, i);
      i += at.plan->steps[i].inner;
    } else if (step.enabled) {
      result = RunStep(at, i);
    }
  }
  return result;
}

}  // namespace

CUresult RunPlan(World& world, Thread* thread, Stream* stream, Plan* plan) noexcept {
  for (Slot& slot : plan->slots) {
    if ((slot.flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) slot.value = slot.initial;
  }
  return RunSteps(StepPlace{world, thread, stream, plan}, 0, plan->steps.size());
}

}  // namespace cuaudit::sim
