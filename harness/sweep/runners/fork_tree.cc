// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_tree.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace cuaudit::harness {
namespace {

using faults::Fault;

struct Branch {
  Fault fault;
  std::uint32_t trial = faults::kNoTrial;
  std::vector<std::size_t> children;  // in the order in which the lists name them
};

using Key = std::tuple<std::size_t, driver::BaseId, faults::Phase, std::uint32_t, CUresult, faults::How, std::uint32_t>;

}  // namespace

std::vector<ForkRow> PlantForks(const std::vector<std::vector<Fault>>& lists) {
  std::vector<Branch> branches(1);
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::size_t at = 0;
    for (const Fault& fault : lists[i]) {
      const Key key{at, fault.base, fault.phase, fault.occurrence, fault.code, fault.how, fault.burst};
      const auto [found, added] = known.try_emplace(key, branches.size());
      if (added) {
        branches[at].children.push_back(found->second);
        branches.push_back({fault, faults::kNoTrial, {}});
      }
      at = found->second;
    }
    if (at != 0 && branches[at].trial == faults::kNoTrial) branches[at].trial = static_cast<std::uint32_t>(i);
  }
  std::vector<ForkRow> rows(1);
  std::vector<std::size_t> branch_of = {0};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::size_t> children = branches[branch_of[row]].children;
    std::stable_sort(children.begin(), children.end(),
                     [&](std::size_t a, std::size_t b) { return faults::CompareWhere(branches[a].fault, branches[b].fault) < 0; });
    rows[row].first_child = static_cast<std::uint32_t>(rows.size());
    rows[row].children = static_cast<std::uint32_t>(children.size());
    for (const std::size_t child : children) {
      rows.push_back({branches[child].fault, static_cast<std::uint32_t>(row), 0, 0, rows[row].depth + 1, branches[child].trial, false});
      branch_of.push_back(child);
    }
  }
  return rows;
}

std::vector<ForkRow> PlantControls(const std::vector<Fault>& points) {
  std::vector<std::vector<Fault>> lists;
  lists.reserve(points.size());
  for (const Fault& point : points) lists.push_back({point});
  std::vector<ForkRow> rows = PlantForks(lists);
  for (std::size_t row = 1; row < rows.size(); ++row) rows[row].control = true;
  return rows;
}

}  // namespace cuaudit::harness
