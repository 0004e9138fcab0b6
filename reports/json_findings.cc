// SPDX-License-Identifier: MIT
#include "reports/json_findings.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "reports/defect_words.h"

namespace cuaudit::report {
namespace {

Frame ReadFrame(const JsonNode& node) {
  Frame frame;
  frame.module = node["module"].Text();
  frame.function = node["function"].Text();
  frame.file = node["file"].Text();
  const std::uint64_t line = node["line"].Count();
  if (line > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) node["line"].Expected("the number of a line");
  else frame.line = static_cast<int>(line);
  frame.offset = node["offset"].Count();
  frame.start = node.Maybe("start").Count();
  return frame;
}

Acquired ReadPlaceOrNull(const JsonNode& node) { return node.present() ? ReadPlace(node) : Acquired(); }

Fault ReadFault(const JsonNode& node) {
  Fault fault;
  fault.call = node["call"].Text();
  const std::uint64_t occurrence = node["occurrence"].Count();
  if (occurrence > std::numeric_limits<std::uint32_t>::max()) node["occurrence"].Expected("a number below 4294967296");
  fault.occurrence = static_cast<std::uint32_t>(occurrence);
  fault.how = node["how"].Text();
  fault.code = node["code"].Text();
  fault.text = node["text"].Text();
  fault.stack = ReadStack(node["stack"]);
  return fault;
}

Rule RuleOf(const JsonNode& node) { return Worded<Rule>(node, node.Text(), "a rule that this version knows (cuaudit list rules)"); }

// Finds findings by fingerprint. Where several have one, each is taken once, those with the rule and kind of the member first; a finding
// may belong to several defects, so one that is taken is answered again when there is no other.
class FindingsByName {
 public:
  explicit FindingsByName(const std::vector<Finding>& findings) : findings_(findings), taken_(findings.size()) {
    for (std::size_t i = 0; i < findings.size(); ++i) places_[findings[i].fingerprint].indices.push_back(i);
  }

  std::optional<std::size_t> Take(const std::string& fingerprint, std::string_view rule, std::string_view kind) {
    const auto found = places_.find(fingerprint);
    if (found == places_.end()) return std::nullopt;
    const std::vector<std::size_t>& all = found->second.indices;
    std::size_t& first = found->second.first;
    while (first + 1 < all.size() && taken_[all[first]]) ++first;
    std::size_t best = all[first];
    for (std::size_t i = first, end = std::min(all.size(), first + kLookAhead); i < end; ++i) {
      const Finding& one = findings_[all[i]];
      if (taken_[all[i]] || words::Name(one.rule) != rule || one.kind != kind) continue;
      best = all[i];
      break;
    }
    taken_[best] = true;
    return best;
  }

 private:
  static constexpr std::size_t kLookAhead = 64;  // a report with more equal fingerprints was not written by cuaudit
  struct Same {
    std::vector<std::size_t> indices;
    std::size_t first = 0;  // those before it are taken
  };
  const std::vector<Finding>& findings_;
  std::vector<bool> taken_;
  std::unordered_map<std::string, Same> places_;
};

Suppressed ReadSuppressed(const JsonNode& node) {
  return {node["reason"].Text(), node["owner"].Text(), node["until"].Text(), node["expired"].Flag(), node["entry"].Text()};
}

Defect ReadDefect(const JsonNode& node, FindingsByName* findings) {
  constexpr std::array kBecause = {BlamedBecause::HeldIt, BlamedBecause::BeganRelease, BlamedBecause::NeverReached,
                                   BlamedBecause::MadeTheCall};
  Defect defect;
  defect.fingerprint = node["fingerprint"].Text();
  if (const JsonNode blame = node["blame"]; blame.present()) {
    defect.blame = Blame{ReadFrame(blame["function"]), OneOf(blame["because"], kBecause, "why a function is blamed")};
  }
  defect.released = ReadPlaceOrNull(node["released"]);
  defect.trials = node["trials"].Count();
  if (const JsonNode change = node.Maybe("change"); change.present()) {
    defect.change = Worded<Change>(change, change.Text(), "how a defect has changed (new, changed, unchanged)");
  }
  defect.was = node.Maybe("was").Text();
  node.Maybe("taken_for").ForEach([&defect](const JsonNode& one) {
    const JsonNode why = one["why"];
    defect.taken_for.push_back({Worded<Taken>(why, why.Text(), "why it is taken for one of the base (renamed, moved, ...)"),
                                one["function"].Text(), one["fingerprint"].Text()});
  });
  if (const JsonNode suppressed = node.Maybe("suppressed"); suppressed.present()) defect.suppressed = ReadSuppressed(suppressed);
  const JsonNode members = node["members"];
  members.ForEach([&](const JsonNode& one) {
    Member member;
    const std::string rule = one["rule"].Text();
    const std::string kind = one["kind"].Text();
    member.count = one["count"].Count();
    member.bytes = one["bytes"].Count();
    const JsonNode names = one["findings"];
    names.ForEach([&](const JsonNode& name) {
      const std::optional<std::size_t> index = findings->Take(name.Text(), rule, kind);
      if (index) member.findings.push_back(*index);
      else name.Expected("the fingerprint of a finding of this report");
    });
    if (member.findings.empty()) names.Expected("at least one finding");
    defect.members.push_back(std::move(member));
  });
  if (defect.members.empty()) members.Expected("at least one member");
  return defect;
}

}  // namespace

std::vector<Frame> ReadStack(const JsonNode& node) {
  std::vector<Frame> stack;
  node.ForEach([&stack](const JsonNode& frame) { stack.push_back(ReadFrame(frame)); });
  return stack;
}

Acquired ReadPlace(const JsonNode& node) { return {node["call"].Text(), ReadStack(node["stack"])}; }

nlohmann::ordered_json TakenForToJson(const std::vector<TakenFor>& defects) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TakenFor& one : defects) {
    list.push_back({{"why", words::Name(one.why)}, {"function", one.function}, {"fingerprint", one.fingerprint}});
  }
  return list;
}

Finding ReadFinding(const JsonNode& node) {
  Finding finding;
  finding.rule = RuleOf(node["rule"]);
  finding.title = node["title"].Text();
  finding.kind = node["kind"].Text();
  finding.count = node["count"].Count();
  finding.bytes = node["bytes"].Count();
  if (const JsonNode fault = node["fault"]; fault.present()) finding.fault = ReadFault(fault);
  node.Maybe("then").ForEach([&finding](const JsonNode& fault) { finding.then.push_back(ReadFault(fault)); });
  finding.shrunk_from = node.Maybe("shrunk_from").Texts();
  finding.detail = node.Maybe("detail").Text();
  finding.acquired = ReadPlace(node["acquired"]);
  finding.where = node["where"].Text();
  finding.where_stack = ReadStack(node["where_stack"]);
  finding.other = ReadPlaceOrNull(node["other"]);
  finding.fingerprint = node["fingerprint"].Text();
  finding.reproduce = node["reproduce"].Text();
  finding.trials = node["trials"].Count();
  return finding;
}

void ReadDefects(const JsonNode& node, Run* run) {
  FindingsByName findings(run->findings);
  node.ForEach([&](const JsonNode& defect) { run->defects.push_back(ReadDefect(defect, &findings)); });
}

}  // namespace cuaudit::report
