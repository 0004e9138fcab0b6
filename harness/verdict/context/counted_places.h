// SPDX-License-Identifier: MIT
// counted_places.h: finds calls that give back a counted thing which their own code never took.
//
//   Owns      the counts of the fault-free run. Borrows journals while it reads them.
//   Threads   one thread.
//
// Counted things are references of a primary context, entries of context stacks and peer access. A driver does not know whose reference a
// release ends: after a retain that failed, the release takes the reference of somebody else. The fault-free run shows which places take
// and which places give back the same things. README.md ("Less than the fault-free run") says what counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// True for a kind of counted things.
constexpr bool IsCountedByPlace(driver::Kind kind) {
  return kind == driver::Kind::PrimaryContext || kind == driver::Kind::ContextStackEntry || kind == driver::Kind::PeerAccess;
}

// A call that gave back one thing too many.
struct Excess {
  driver::Kind kind{};
  Site site;
  bool declined = false;        // there was nothing to take, so nothing is lost in this run
  bool one_of_several = false;  // one of several calls gave back too much, and it is not known which
};

class CountedPlaces {
 public:
  explicit CountedPlaces(const Evidence& fault_free);

  // What the trial gave back beyond what it took, in the order of the calls.
  [[nodiscard]] std::vector<Excess> Beyond(const Evidence& trial) const;

 private:
  // How much of a call stack tells two places apart. The finest grain that shows an excess names the call best.
  enum class Grain : std::uint8_t { Stack, Caller, None };
  static constexpr std::array<Grain, 3> kGrains = {Grain::Stack, Grain::Caller, Grain::None};

  using Thing = std::pair<driver::Kind, std::uint64_t>;                  // and the device of a primary context, else 0
  using Place = std::tuple<driver::Kind, std::uint64_t, std::uint64_t>;  // of a thing, and a key
  static Thing ThingOf(const Place& place) { return {std::get<0>(place), std::get<1>(place)}; }

  // Places where things are taken, and the places where the fault-free run gives them back.
  struct Group {
    Thing thing;
    std::int64_t taken = 0;
    std::int64_t given = 0;
    std::int64_t ahead = 0;  // the most by which the fault-free run was ahead with giving: it may give back what is not its own
  };
  struct Level {
    std::map<Place, std::size_t> group_of;
    std::vector<Group> groups;
  };

  static constexpr std::size_t kNowhere = ~std::size_t{0};
  struct Step {
    driver::Kind kind{};
    std::uint64_t of = 0;
    bool gives = false;
    bool declined = false;
    bool ended = false;              // a pop of a context that the thread's next call destroys
    bool owned = false;              // a pop of a context that the process made and destroys later (PoppedContexts)
    bool instead = false;            // and which it made at a place where the fault-free run makes none
    bool strange = false;            // from a place that the fault-free run does not have
    std::size_t partner = kNowhere;  // the step that gives back what this one took, or took what this one gives back
    Site site;
    Site created;  // of an owned context
  };
  struct Steps {
    std::vector<Step> steps;
    std::vector<Site> created;             // contexts; each is on the stack without a push
    std::map<Thing, std::int64_t> denied;  // taken, though the program was told that the call failed
  };

  static Steps StepsOf(const Evidence& run);
  static void Pair(const Ledger& ledger, Steps* steps);
  static std::uint64_t KeyOf(Grain grain, const faults::JournalView& journal, const Site& site);
  static Level LevelOf(Grain grain, const Evidence& run, const Steps& steps);
  // False: a coarser grain may show more.
  bool Compare(Grain grain, const Evidence& trial, Steps* steps, std::vector<Excess>* excess) const;

  std::array<Level, kGrains.size()> levels_;
  std::set<std::uint64_t> creations_;  // places where contexts are created
};

// True when the run pops more contexts than it pushes, releases more references of a primary context than it retains, or disables peer
// access more often than it enables it.
[[nodiscard]] bool GivesMoreThanItTakes(const Evidence& run);

}  // namespace cuaudit::harness
