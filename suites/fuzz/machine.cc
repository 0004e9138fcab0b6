// SPDX-License-Identifier: MIT
#include "suites/fuzz/machine.h"

#include <cstring>
#include <vector>

namespace cuaudit::fuzz {
namespace {

constexpr int kMostOperations = 48;
// A byte beyond the table chooses one of these, as it did when they were all: an operation that is added takes one byte from them, and all
// others mean what they meant.
constexpr std::size_t kFirstOperations = 171;

alignas(kPage) char g_host[kHostBytes];

const std::vector<Operation>& AllOperations() {
  static const auto* const all = [] {
    auto* const operations = new std::vector<Operation>;
    for (const std::span<const Operation> family :
         {MemoryOperations(), WorkOperations(), GraphOperations(), ObjectOperations(), ShareOperations(), FurtherOperations()}) {
      operations->insert(operations->end(), family.begin(), family.end());
    }
    return operations;
  }();
  return *all;
}

}  // namespace

char* Machine::Host() { return g_host; }

void RunProgram(Machine* machine) {
  const std::vector<Operation>& all = AllOperations();
  static_assert(kFirstOperations * 2 > 255);
  static_assert(sizeof(g_host) == kHostBytes);
  std::memset(g_host, 0, sizeof(g_host));
  for (int i = 0; i < kMostOperations && !machine->input.empty(); ++i) {
    const std::size_t which = machine->input.Byte();
    all[which < all.size() ? which : which % kFirstOperations](*machine);
  }
}

}  // namespace cuaudit::fuzz
