// SPDX-License-Identifier: MIT
// check_options.cc: which options and operands go together.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "harness/options/options.h"

namespace cuaudit::harness {

Status CheckOptions(const Options& options) {
  const std::span<const CommandRow> rows = Commands();
  const CommandRow& row = *std::find_if(rows.begin(), rows.end(), [&](const CommandRow& one) { return one.command == options.command; });
  const std::string usage = std::string("cuaudit ") + row.name + " [OPTIONS]" + row.usage;
  const char* instead = options.print_environment ? "--print-environment" : !options.pack.empty() ? "--pack" : "--from-journal";
  const bool is_instead = options.print_environment || !options.pack.empty() || !options.from_journal.empty();
  const bool takes_program = (options.command & (kAudit | kInit | kRecord)) != 0;
  if (is_instead && !options.program.empty()) return {Exit::Usage, std::string("expected no program beside ") + instead + ": " + usage};
  if (options.print_environment && !options.pack.empty()) return {Exit::Usage, "expected --print-environment or --pack, not both"};
  if (takes_program && !is_instead && options.program.empty()) return {Exit::Usage, "expected -- and a program: " + usage};
  const bool may_take_program = takes_program || (options.command & (kEnv | kPlan | kReduce)) != 0;
  if (!may_take_program && !options.program.empty()) return {Exit::Usage, std::string(row.name) + " takes no program: " + usage};
  if (options.command == kExplain && options.operand.empty() == options.rule.empty())
    return {Exit::Usage, "expected a journal or --rule: " + usage};
  if (options.command == kReplay && options.fault.empty()) return {Exit::Usage, "expected at least one --fault: " + usage};
  if (options.command == kCompare && options.operands.size() != 2) return {Exit::Usage, "expected a base and a head: " + usage};
  if (options.command == kBaseline) {
    const std::size_t count = options.operands.size();
    const bool shows = count == 2 && options.operands[0] == "show";
    const bool writes = (count == 2 || count == 3) && options.operands[0] == "write";
    if (!shows && !writes) return {Exit::Usage, "expected write and a result, or show and a file: " + usage};
  }
  if (options.command == kSuppress && options.operands.size() != 1) return {Exit::Usage, "expected a fingerprint: " + usage};
  const std::size_t named = options.operands.size() + (options.program.empty() ? 0 : 1);
  if (options.command == kReduce && (options.operands.empty() || options.operands.size() > 2 || named < 2))
    return {Exit::Usage, "expected a fingerprint, and a result or -- and a program: " + usage};
  if (options.command == kReport && options.operands.empty()) return {Exit::Usage, "expected a result: " + usage};
  if (options.no_prune && options.prune != Options().prune) return {Exit::Usage, "expected --prune or --no-prune, not both"};
  if (options.allow_left && !(options.lifetime + options.write_lifetime).empty())
    return {Exit::Usage, "expected --allow-left or --lifetime and --write-lifetime, not both"};
  if (options.host && options.no_host) return {Exit::Usage, "expected --host or --no-host, not both"};
  return {};
}

}  // namespace cuaudit::harness
