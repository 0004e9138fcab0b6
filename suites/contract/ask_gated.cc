// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"
#include "suites/contract/ask.h"

namespace cuaudit::contract {
namespace {

class GateJournal {
 public:
  // Null when there can be none.
  static GateJournal* Only() {
    static GateJournal only;
    return only.open_ ? &only : nullptr;
  }
  faults::Journal journal;
  faults::StackTable stacks;

 private:
  GateJournal() {
    char directory[] = "/tmp/cuaudit-contract-XXXXXX";
    if (mkdtemp(directory) == nullptr) return;
    const std::string path = std::string(directory) + "/journal";
    faults::JournalOptions options;
    options.record_capacity = std::size_t{1} << 20;
    if (faults::CreateJournal(path.c_str(), options) == nullptr) {
      open_ = journal.Open(path.c_str()) == nullptr;
      unlink(path.c_str());
    }
    rmdir(directory);
    if (open_) stacks.Attach(&journal, false);
  }
  bool open_ = false;
};

}  // namespace

std::string AskGated(const Question& question) {
  GateJournal* const books = GateJournal::Only();
  if (books == nullptr) return "no journal";
  sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{1} << 30});
  if (world == nullptr) return "no world";
  const std::uint64_t before = books->journal.header().next_record.load();
  // The pinned scope would hold a reference of its own, and the questions count references.
  const auto gate = std::make_unique<faults::Gate>();
  gate->Arm(sim::Driver(world), &books->journal, &books->stacks, faults::Plan(), faults::Scope::Process);
  const std::string answer = Answer(question, faults::Driver(gate.get()));
  sim::DestroyWorld(world);
  return books->journal.header().next_record.load() == before ? "no record" : answer;
}

}  // namespace cuaudit::contract
