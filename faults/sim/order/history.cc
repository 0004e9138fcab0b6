// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/history.h"

#include "faults/sim/base/treap.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

using Tree = Treap<Span, &Span::begin>;

constexpr std::uint64_t kSweepAt = 4096;
constexpr std::size_t kMostPatches = 256;

void FreeSpan(World& world, Span* span) {
  span->reads.Clear(world.arena);
  world.arena.Delete(span);
  --world.spans;
}

void FreeTree(World& world, Span* root) {
  while (root != nullptr) {
    if (root->left != nullptr) {
      // Turned until nothing is left of the root, so no depth is needed.
      Span* const left = root->left;
      root->left = left->right;
      left->right = root;
      root = left;
    } else {
      Span* const next = root->right;
      FreeSpan(world, root);
      root = next;
    }
  }
}

Span* MakeSpan(World& world, std::uint64_t begin, std::uint64_t end) {
  Span* const span = world.arena.New<Span>();
  if (span == nullptr) return nullptr;
  span->begin = begin;
  span->end = end;
  ++world.spans;
  return span;
}

Span* Rightmost(Span* root) {
  while (root != nullptr && root->right != nullptr) root = root->right;
  return root;
}

// Cuts the tree at `key`: no span lies across it afterwards.
void Cut(World& world, Span* root, std::uint64_t key, Span** low, Span** high) {
  Tree::Split(root, key, low, high);
  Span* const last = Rightmost(*low);
  if (last == nullptr || last->end <= key) return;
  Span* const rest = MakeSpan(world, key, last->end);
  last->end = key;
  if (rest == nullptr) return;
  rest->write = last->write;
  (void)rest->reads.Assign(world.arena, last->reads.begin(), last->reads.size());
  *high = Tree::Merge(rest, *high);
}

struct Cutting {
  Span* low = nullptr;
  Span* middle = nullptr;  // the spans in [begin, end)
  Span* high = nullptr;
};

Cutting CutOut(World& world, Span* root, std::uint64_t begin, std::uint64_t end) {
  Cutting parts;
  Span* rest = nullptr;
  Cut(world, root, begin, &parts.low, &rest);
  Cut(world, rest, end, &parts.middle, &parts.high);
  return parts;
}

// Keeps one trace for each slot, the latest, and drops traces that the host knows to be done.
void Add(World& world, Vector<Trace>* traces, const Trace& trace) {
  for (std::size_t i = 0; i < traces->size();) {
    if ((*traces)[i].stamp.slot == trace.stamp.slot || IsKnown(world, (*traces)[i].stamp)) {
      (*traces)[i] = (*traces)[traces->size() - 1];
      traces->Truncate(traces->size() - 1);
    } else {
      ++i;
    }
  }
  (void)traces->Push(world.arena, trace);
}

void Compare(const World& world, const Stream* stream, const Span& span, bool reads_too, const Conflict& conflict) {
  if (!IsBehind(world, stream, span.write.stamp)) conflict.tell(conflict.teller, span.begin, span.end, span.write);
  if (!reads_too) return;
  for (const Trace& read : span.reads) {
    if (!IsBehind(world, stream, read.stamp)) conflict.tell(conflict.teller, span.begin, span.end, read);
  }
}

// Visits in order of addresses; the stack is as deep as the tree, which is shallow.
template <typename Visit>
void ForEach(Span* root, const Visit& visit) {
  if (root == nullptr) return;
  Span* const left = root->left;
  Span* const right = root->right;
  ForEach(left, visit);
  visit(root);
  ForEach(right, visit);
}

bool IsOver(World& world, Span* span) {
  for (const Trace& read : span->reads) {
    if (!IsKnown(world, read.stamp)) return false;
  }
  return IsKnown(world, span->write.stamp);
}

// Keeps, in their order, the patches that `keep` says.
template <typename Keep>
void Filter(Vector<Patch>* patches, const Keep& keep) {
  std::size_t kept = 0;
  for (const Patch& patch : *patches) {
    if (keep(patch)) (*patches)[kept++] = patch;
  }
  patches->Truncate(kept);
}

// Reports the patches that an access to `box` may be in conflict with, and drops those that the host knows to be done.
void ComparePatches(World& world, History* history, const Stream* stream, const Box& box, bool write, const Conflict& conflict) {
  Filter(&history->patches, [&](const Patch& patch) {
    if (IsKnown(world, patch.trace.stamp)) return false;
    if ((write || patch.write) && !IsBehind(world, stream, patch.trace.stamp) && Overlap(patch.box, box)) {
      const std::uint64_t begin = patch.box.address > box.address ? patch.box.address : box.address;
      const std::uint64_t end = EndOf(patch.box) < EndOf(box) ? EndOf(patch.box) : EndOf(box);
      conflict.tell(conflict.teller, begin, end, patch.trace);
    }
    return true;
  });
}

// Visits the spans that lie in [begin, end), in part at least.
template <typename Visit>
void ForEachIn(Span* root, std::uint64_t begin, std::uint64_t end, const Visit& visit) {
  while (root != nullptr) {
    if (root->begin >= end) {
      root = root->left;
      continue;
    }
    if (root->end > begin) {
      ForEachIn(root->left, begin, end, visit);
      visit(*root);
    }
    root = root->right;
  }
}

// Drops the spans and patches that the host knows to be done with.
void Prune(World& world, History* history) {
  Filter(&history->patches, [&](const Patch& patch) { return !IsKnown(world, patch.trace.stamp); });
  Span* kept = nullptr;
  ForEach(history->root, [&](Span* span) {
    if (IsOver(world, span)) {
      FreeSpan(world, span);
      return;
    }
    span->left = span->right = nullptr;
    kept = Tree::Merge(kept, span);
  });
  history->root = kept;
}

}  // namespace

History* MakeHistory(World& world) noexcept {
  History* const history = world.arena.New<History>();
  if (history == nullptr) return nullptr;
  history->generation = world.order.generation;
  history->next = world.histories;
  if (world.histories != nullptr) world.histories->previous = history;
  world.histories = history;
  return history;
}

void FreeHistory(World& world, History* history) noexcept {
  if (history == nullptr) return;
  FreeTree(world, history->root);
  history->uses.Clear(world.arena);
  history->patches.Clear(world.arena);
  (history->previous != nullptr ? history->previous->next : world.histories) = history->next;
  if (history->next != nullptr) history->next->previous = history->previous;
  world.arena.Delete(history);
}

void Refresh(World& world, History* history) noexcept {
  if (history->generation != world.order.generation) {
    FreeTree(world, history->root);
    history->root = nullptr;
    history->uses.Truncate(0);
    history->patches.Truncate(0);
    history->birth = {};
    history->generation = world.order.generation;
  }
  if (world.spans <= world.sweep_at) return;
  for (History* each = world.histories; each != nullptr; each = each->next) Prune(world, each);
  world.sweep_at = world.spans * 2 + kSweepAt;
}

void NoteRead(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
              const Conflict& conflict) noexcept {
  const auto [low, middle, high] = CutOut(world, history->root, begin, end);
  if (!history->patches.empty()) ComparePatches(world, history, stream, Box{begin, end - begin}, false, conflict);
  Span* read = nullptr;
  std::uint64_t at = begin;
  const auto fill = [&](std::uint64_t until) {
    Span* const gap = at < until ? MakeSpan(world, at, until) : nullptr;
    if (gap == nullptr) return;
    Add(world, &gap->reads, trace);
    read = Tree::Merge(read, gap);
  };
  ForEach(middle, [&](Span* span) {
    fill(span->begin);
    at = span->end;
    Compare(world, stream, *span, false, conflict);
    Add(world, &span->reads, trace);
    span->left = span->right = nullptr;
    read = Tree::Merge(read, span);
  });
  fill(end);
  history->root = Tree::Merge(Tree::Merge(low, read), high);
}

void NoteWrite(World& world, History* history, const Stream* stream, std::uint64_t begin, std::uint64_t end, const Trace& trace,
               const Conflict& conflict) noexcept {
  const auto [low, middle, high] = CutOut(world, history->root, begin, end);
  ForEach(middle, [&](Span* span) { Compare(world, stream, *span, true, conflict); });
  FreeTree(world, middle);
  if (!history->patches.empty()) {
    const Box box{begin, end - begin};
    ComparePatches(world, history, stream, box, true, conflict);
    Filter(&history->patches, [&](const Patch& patch) { return !Covers(box, patch.box); });
  }
  Span* const written = MakeSpan(world, begin, end);
  if (written != nullptr) written->write = trace;
  history->root = Tree::Merge(Tree::Merge(low, written), high);
}

// Spans below it stay: whoever is ordered after the patch is ordered after them too, or that was told.
void NotePatch(World& world, History* history, const Stream* stream, const Patch& patch, const Conflict& conflict) noexcept {
  ForEachIn(history->root, patch.box.address, EndOf(patch.box), [&](const Span& span) {
    if (Overlap(patch.box, Box{span.begin, span.end - span.begin})) Compare(world, stream, span, patch.write, conflict);
  });
  ComparePatches(world, history, stream, patch.box, patch.write, conflict);
  Vector<Patch>& patches = history->patches;
  Filter(&patches, [&](const Patch& before) {
    const bool replaced = patch.write || (!before.write && before.trace.stamp.slot == patch.trace.stamp.slot);
    return !replaced || !Covers(patch.box, before.box);
  });
  if (patches.size() >= kMostPatches) patches.Erase(0);
  (void)patches.Push(world.arena, patch);
}

void NoteUse(World& world, History* history, const Trace& trace) noexcept { Add(world, &history->uses, trace); }

void TellUnordered(World& world, const History* history, const Stream* stream, const Conflict& conflict) noexcept {
  if (history->generation != world.order.generation) return;
  ForEach(history->root, [&](Span* span) { Compare(world, stream, *span, true, conflict); });
  for (const Patch& patch : history->patches) {
    if (!IsBehind(world, stream, patch.trace.stamp)) conflict.tell(conflict.teller, 0, 0, patch.trace);
  }
  for (const Trace& use : history->uses) {
    if (!IsBehind(world, stream, use.stamp)) conflict.tell(conflict.teller, 0, 0, use);
  }
}

}  // namespace cuaudit::sim
