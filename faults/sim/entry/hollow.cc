// SPDX-License-Identifier: MIT
// Work that nobody waits for any more.
//
// On a device it ends all the same. Here the memory and the objects that its functions use may be gone by then, so no code of the program
// is called and no memory of the program is touched. What follows in the queues still happens: memory is freed in stream order, and user
// objects that launched graphs hold are destroyed. The arguments of functions that were not called are what the program had given away with
// them.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/entry/process.h"
#include "faults/sim/graph/plan.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/world.h"

namespace cuaudit::sim {
namespace {

using Visit = void (*)(void* self, const void* argument);

void VisitArguments(const Work& work, void* self, Visit visit) {
  if (work.type == WorkType::HostFunction) visit(self, work.host.userData);
  if (work.type == WorkType::Callback) visit(self, work.callback.argument);
  if (work.type != WorkType::Launch) return;
  for (const Step& step : work.launch.plan->steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_HOST && step.enabled) visit(self, step.work.host.userData);
  }
}

}  // namespace

void EachHostArgument(World* world, void* self, Visit visit) noexcept {
  if (!UsableHere(*world)) return;
  pthread_mutex_lock(&world->lock);
  for (const Stream* const stream : world->busy_streams) {
    for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
      if (!stream->busy || operation != stream->head) VisitArguments(operation->work, self, visit);
    }
  }
  pthread_mutex_unlock(&world->lock);
}

void RunHollow(World* world) noexcept {
  // The thread that exits may itself hold the lock, when it was interrupted in a call.
  if (!UsableHere(*world) || pthread_mutex_trylock(&world->lock) != 0) return;
  Call call{*world, world->FindThread(ThreadSerial()), nullptr, false};
  if (call.thread == nullptr || call.thread->inside != Inside::Nothing) {
    pthread_mutex_unlock(&world->lock);
    return;
  }
  const auto run = [&] {
    while (RunOne(*world, call.thread)) {
    }
  };
  world->hollow.all = true;
  world->hollow.skipped = false;
  run();
  // What still waits for a value may wait for one that something has not written because it ended hollow.
  world->hollow.passes = world->hollow.skipped;
  if (world->hollow.passes) run();
  world->hollow = {.before = world->next_ticket};
  Leave(call);
}

}  // namespace cuaudit::sim
