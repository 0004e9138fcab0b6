// SPDX-License-Identifier: MIT
#include "harness/defect/defects.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "harness/defect/blame.h"
#include "harness/ledger/host_deed.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using report::Rule;
using words::IsLoss;

// Of objects that are lost together the owner comes first: a context, then what the driver made, then what the host made. Blocks of the
// heap come last: the C library has some for each stream and directory.
int OwnerRank(Kind kind) {
  switch (kind) {
    case Kind::Context:
    case Kind::PrimaryContext:
    case Kind::GreenContext:
      return 0;
    case Kind::None:
    case Kind::Block:
      return 2;
    case Kind::HostHeap:
      return 3;
    default:
      return IsHost(kind) ? 2 : 1;
  }
}

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdU;
}

std::size_t FirstFinding(const report::Defect& defect) {
  std::size_t first = defect.members.front().findings.front();
  for (const report::Member& member : defect.members) first = std::min(first, member.findings.front());
  return first;
}

void AddOnce(std::size_t value, std::vector<std::size_t>* to) {
  const auto at = std::lower_bound(to->begin(), to->end(), value);
  if (at == to->end() || *at != value) to->insert(at, value);
}

// Of the fingerprints that are made.
constexpr std::string_view kVersion = "v2-";
constexpr std::size_t kDigits = 16;

}  // namespace

std::size_t DefectFinder::Take(const Shown& shown, Rule rule) {
  const std::uint64_t blamed = shown.blame ? FunctionKey(shown.blame->function) : 0;
  const auto what = static_cast<std::uint64_t>(words::WithoutItsContext(rule));
  // A failure that one function remembers is one cause, wherever in it a call failed and wherever a later cycle notices.
  const bool remembered = rule == Rule::NotRecovered && blamed != 0;
  const auto kind = static_cast<std::uint64_t>(remembered ? Kind::None : shown.kind);
  const std::uint64_t key = Mix(Mix(Mix(what, kind), remembered ? 0 : shown.place), blamed);
  const auto [found, fresh] = by_key_.try_emplace(key, things_.size());
  if (fresh) {
    Thing thing;
    thing.rule = rule;
    thing.kind = shown.kind;
    thing.blame = shown.blame;
    if (shown.released != nullptr) thing.released = *shown.released;
    thing.blamed = blamed;
    thing.joined = things_.size();
    things_.push_back(std::move(thing));
  }
  AddOnce(shown.finding, &things_[found->second].findings);
  const std::size_t thing = found->second;
  std::vector<Counts>& counts = by_finding_[shown.finding];
  const auto at = std::find_if(counts.begin(), counts.end(), [&](const Counts& one) { return one.thing == thing; });
  if (at == counts.end()) {
    counts.push_back({thing, shown.count, shown.count});
  } else {
    at->least = std::min(at->least, shown.count);
    at->most = std::max(at->most, shown.count);
  }
  return thing;
}

void DefectFinder::Add(const Shown& shown, Rule rule) {
  const std::size_t thing = Take(shown, rule);
  AddOnce(shown.trial, &things_[thing].trials);
  if (shown.common_call != 0) Join(by_call_.try_emplace({shown.trial, shown.common_call}, thing).first->second, thing);
  NoteFaults(shown, rule, thing);
}

void DefectFinder::NoteFaults(const Shown& shown, Rule rule, std::size_t thing) {
  if (shown.faults <= 1) things_[thing].alone = true;
  const std::uint64_t again = IsLoss(rule) && shown.failed_at != 0 && shown.acquirer != 0
                                  ? Mix(Mix(static_cast<std::uint64_t>(shown.kind), shown.acquirer), shown.failed_at)
                                  : 0;
  if (shown.faults == 1) {
    if (again != 0) AddOnce(thing, &by_first_[again]);
    if (rule == Rule::Deficit && shown.kind == Kind::PrimaryContext) AddOnce(thing, &takers_[shown.first_fault]);
  } else if (shown.faults > 1) {
    things_[thing].again.push_back(again);
    things_[thing].taken.push_back(shown.first_fault);
  }
}

void DefectFinder::AddOthers(const report::Run& run) {
  std::vector<bool> known(run.findings.size());
  for (const Thing& thing : things_) {
    for (const std::size_t finding : thing.findings) known[finding] = true;
  }
  std::unordered_map<std::uint64_t, std::size_t> blamed;
  std::unordered_map<std::uint64_t, std::size_t> deaths;    // by the blamed function
  std::unordered_map<std::uint64_t, std::size_t> acquired;  // by kind and place
  std::unordered_map<std::string, std::size_t> trials;      // by the fault, from the end of the numbers down
  for (std::size_t i = 0; i < run.findings.size(); ++i) {
    if (known[i]) continue;
    const report::Finding& finding = run.findings[i];
    const bool remembered = finding.rule == Rule::NotRecovered && finding.fault.has_value();
    // Whoever ended the context of what is left need not be the one that should have released it.
    const bool left = words::SortOf(finding.rule) == words::RuleSort::Kept;
    const Stack& elsewhere = remembered ? finding.fault->stack : finding.acquired.stack;
    const Stack& where = left || finding.where_stack.empty() ? elsewhere : finding.where_stack;
    const bool lost = finding.fault.has_value() && IsLoss(finding.rule);
    Shown shown;
    shown.finding = i;
    shown.count = finding.count;
    shown.kind = driver::KindFromName(finding.kind);
    shown.blame = lost         ? BlameForLoss({finding.acquired.stack, finding.fault->stack, {}, 0, {}})
                  : remembered ? BlameForNoRecovery(where)
                               : BlameForCall(where);
    shown.place = WayKey(lost || left ? finding.acquired : report::Acquired{finding.where, where}, shown.blame);
    if (finding.fault) {
      shown.trial = ~trials.try_emplace(finding.fault->text, trials.size()).first->second;
      Add(shown, finding.rule);
      continue;
    }
    const std::size_t thing = Take(shown, finding.rule);
    if (finding.rule == Rule::Growth || finding.rule == Rule::MutexFreed) {
      // Mutexes that become more because their memory is freed and they are not destroyed.
      const auto [same, fresh] =
          acquired.try_emplace(Mix(WayKey(finding.acquired, std::nullopt), static_cast<std::uint64_t>(shown.kind)), thing);
      if (!fresh) Join(same->second, thing);
    }
    if (things_[thing].blamed == 0) continue;
    const auto [same, fresh] = blamed.try_emplace(Mix(things_[thing].blamed, static_cast<std::uint64_t>(finding.rule)), thing);
    if (!fresh) Join(same->second, thing);
    if (finding.rule == Rule::Crash || finding.rule == Rule::Abort || finding.rule == Rule::Hang)
      deaths.emplace(things_[thing].blamed, thing);
  }
  // A run may die of a wrong call, but of nothing that is only left.
  for (std::size_t i = 0; i < things_.size(); ++i) {
    if (words::SortOf(things_[i].rule) != words::RuleSort::Call || !things_[i].trials.empty()) continue;
    if (const auto death = deaths.find(things_[i].blamed); death != deaths.end()) Join(death->second, i);
  }
}

std::size_t DefectFinder::First(std::size_t thing) {
  while (things_[thing].joined != thing) thing = things_[thing].joined = things_[things_[thing].joined].joined;
  return thing;
}

void DefectFinder::Join(std::size_t a, std::size_t b) {
  a = First(a);
  b = First(b);
  things_[std::max(a, b)].joined = std::min(a, b);
}

// Of two functions that are blamed one may lose one object and the other those of all earlier turns: a finding is not told by its count.
void DefectFinder::JoinByFinding() {
  for (const auto& [finding, counts] : by_finding_) {
    for (std::size_t i = 1; i < counts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool same_count = std::max(counts[i].most, counts[j].most) == std::min(counts[i].least, counts[j].least);
        if (same_count || things_[counts[i].thing].blamed == things_[counts[j].thing].blamed) Join(counts[j].thing, counts[i].thing);
      }
    }
  }
}

void DefectFinder::JoinByBlame() {
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> of_trial;  // trial and blamed function
  for (std::size_t i = 0; i < things_.size(); ++i) {
    if (things_[i].blamed == 0) continue;
    for (const std::size_t trial : things_[i].trials) {
      const auto [same, fresh] = of_trial.try_emplace({trial, things_[i].blamed}, i);
      if (!fresh) Join(same->second, i);
    }
  }
}

void DefectFinder::JoinByTrials() {
  std::map<std::vector<std::size_t>, std::size_t> losses;
  for (std::size_t i = 0; i < things_.size(); ++i) {
    if (!IsLoss(things_[i].rule) || things_[i].trials.empty()) continue;
    const auto [same, fresh] = losses.try_emplace(things_[i].trials, i);
    if (!fresh) Join(same->second, i);
  }
}

void DefectFinder::JoinConsequences() {
  std::unordered_map<std::size_t, std::vector<std::size_t>> losses;  // by trial
  for (std::size_t i = 0; i < things_.size(); ++i) {
    if (!IsLoss(things_[i].rule)) continue;
    for (const std::size_t trial : things_[i].trials) losses[trial].push_back(i);
  }
  for (std::size_t i = 0; i < things_.size(); ++i) {
    const std::vector<std::size_t>& trials = things_[i].trials;
    if (things_[i].rule != Rule::NotRecovered || trials.empty()) continue;
    for (const std::size_t loss : losses[trials.front()]) {
      const std::vector<std::size_t>& of_loss = things_[loss].trials;
      if (!std::includes(of_loss.begin(), of_loss.end(), trials.begin(), trials.end())) continue;
      Join(loss, i);
      break;
    }
  }
}

void DefectFinder::JoinSecondTimes() {
  const auto join_all = [&](std::size_t thing, const std::vector<std::uint64_t>& keys, const auto& firsts) {
    // Of two causes nobody knows which one comes again.
    const auto is_one = [&](const std::vector<std::size_t>& all) {
      return std::all_of(all.begin(), all.end(), [&](std::size_t one) { return First(one) == First(all.front()); });
    };
    const bool known = std::all_of(keys.begin(), keys.end(), [&](std::uint64_t key) {
      const auto found = firsts.find(key);
      return key != 0 && found != firsts.end() && is_one(found->second);
    });
    for (std::size_t i = 0; known && i < keys.size(); ++i) Join(firsts.at(keys[i]).front(), thing);
  };
  for (std::size_t i = 0; i < things_.size(); ++i) {
    const Thing& thing = things_[i];
    if (thing.alone) continue;
    if (IsLoss(thing.rule)) join_all(i, thing.again, by_first_);
    if (thing.rule == Rule::OverReleasedPrimary) join_all(i, thing.taken, takers_);
  }
}

report::Defect DefectFinder::ToDefect(const std::vector<std::size_t>& things, const report::Run& run) const {
  report::Defect defect;
  std::vector<std::size_t> order = things;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](const Thing& thing) {
      // A release that the driver declined is a consequence: something that lies in the object was in its way.
      const bool was_declined = thing.rule == Rule::Leak && !run.findings[thing.findings.front()].where.empty();
      const bool lost = words::SortOf(thing.rule) == words::RuleSort::Lost;  // of growth and a freed mutex the mutex tells more
      return std::tuple(lost ? 0 : thing.rule == Rule::NotRecovered ? 2 : 1, was_declined, OwnerRank(thing.kind));
    };
    return rank(things_[a]) < rank(things_[b]);
  });
  std::vector<std::size_t> trials;
  std::unordered_map<std::size_t, std::size_t> member_of;  // by finding: two things that share one are the same objects
  for (const std::size_t one : order) {
    const Thing& thing = things_[one];
    std::size_t at = defect.members.size();
    for (const std::size_t index : thing.findings) {
      if (const auto known = member_of.find(index); known != member_of.end()) at = std::min(at, known->second);
    }
    if (at == defect.members.size()) defect.members.emplace_back();
    report::Member& member = defect.members[at];
    for (const std::size_t index : thing.findings) {
      if (member_of.try_emplace(index, at).first->second != at) continue;
      const report::Finding& finding = run.findings[index];
      const bool others = finding.rule == Rule::LeftAtExit;  // of one run: each finding has other objects. Trials lose the same ones again
      member.count = others ? member.count + finding.count : std::max(member.count, finding.count);
      member.bytes = others ? member.bytes + finding.bytes : std::max(member.bytes, finding.bytes);
      AddOnce(index, &member.findings);
    }
    trials.insert(trials.end(), thing.trials.begin(), thing.trials.end());
  }
  std::sort(trials.begin(), trials.end());
  trials.erase(std::unique(trials.begin(), trials.end()), trials.end());
  defect.trials = trials.size();
  defect.shown_by.assign(trials.begin(), trials.end());
  const Thing& root = things_[order.front()];
  defect.blame = root.blame;
  defect.released = root.released;
  defect.fingerprint = DefectFingerprint(run.findings[root.findings.front()], defect.blame);
  return defect;
}

void DefectFinder::Find(report::Run* run) {
  AddOthers(*run);
  JoinByFinding();
  JoinByBlame();
  JoinByTrials();
  JoinConsequences();
  JoinSecondTimes();
  std::map<std::size_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < things_.size(); ++i) groups[First(i)].push_back(i);
  run->defects.clear();
  for (const auto& [first, things] : groups) run->defects.push_back(ToDefect(things, *run));
  std::stable_sort(run->defects.begin(), run->defects.end(),
                   [](const report::Defect& a, const report::Defect& b) { return FirstFinding(a) < FirstFinding(b); });
  std::unordered_map<std::string, std::size_t> claimed;
  for (report::Defect& defect : run->defects) {
    const std::size_t number = ++claimed[defect.fingerprint];
    if (number > 1) defect.fingerprint += "-" + std::to_string(number);
  }
}

void FindDefects(report::Run* run) { DefectFinder().Find(run); }

namespace {

constexpr std::uint64_t kSeed = 0xcbf29ce484222325U;

// FNV-1a, with a zero byte behind each text so that "ab", "c" and "a", "bc" differ.
std::uint64_t Hash(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash ^ 0xffU) * 0x100000001b3U;
}

// The file name without the version behind ".so".
std::string_view PlainModule(std::string_view module) {
  const std::size_t so = module.find(".so.");
  return so == std::string_view::npos ? module : module.substr(0, so + 3);
}

std::uint64_t HashFunction(const report::Frame& frame, std::uint64_t hash) {
  return Hash(PlainName(frame.function), Hash(PlainModule(frame.module), hash));
}

}  // namespace

std::string_view PlainName(std::string_view function) {
  // The parameters begin at the first parenthesis outside of template arguments that does not belong to "(anonymous namespace)" or to
  // "operator()".
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '<') ++depth;
    if (c == '>' && (i == 0 || function[i - 1] != '-')) depth = std::max(0, depth - 1);
    if (depth == 0 && c == '(' && i != 0 && !function.substr(i).starts_with("(anonymous namespace)")) {
      if (!function.substr(0, i).ends_with("operator") && function[i - 1] != ' ') return function.substr(0, i);
    }
  }
  // Copies that GCC makes of a C function: "f.part.0", "f.isra.0", "f.constprop.0", "f.cold".
  for (const std::string_view copy : {".part.", ".isra.", ".constprop.", ".cold", ".llvm.", ".lto_priv."}) {
    function = function.substr(0, function.find(copy));
  }
  return function;
}

std::uint64_t FunctionKey(const report::Frame& frame) {
  const std::uint64_t hash = Hash(frame.function, Hash(frame.module, kSeed));
  return frame.function.empty() ? (hash ^ (frame.start != 0 ? frame.start : frame.offset)) * 0x100000001b3U : hash;
}

std::uint64_t WayKey(const report::Acquired& place, const std::optional<report::Blame>& blame) {
  std::uint64_t hash = Hash(place.call, kSeed);
  for (const report::Frame& frame : place.stack) {
    const std::uint64_t at = frame.line != 0 ? static_cast<std::uint64_t>(frame.line) : frame.offset;
    hash = (Hash(frame.function, Hash(frame.module, hash)) ^ at) * 0x100000001b3U;
    if (blame && SameFunction(frame, blame->function)) break;
  }
  return hash;
}

std::string DefectFingerprint(const report::Finding& root, const std::optional<report::Blame>& blame) {
  std::uint64_t hash = Hash(words::Name(words::WithoutItsContext(root.rule)), kSeed);
  hash = Hash(root.acquired.call, Hash(root.kind, hash));
  const std::vector<report::Frame>& stack = root.acquired.stack.empty() ? root.where_stack : root.acquired.stack;
  const auto program = std::find_if(stack.begin(), stack.end(), IsProgram);
  if (program != stack.end()) hash = HashFunction(*program, hash);
  if (root.rule != report::Rule::LeftAtExit) hash = Hash(root.where, hash);
  if (blame) hash = HashFunction(blame->function, hash);
  char text[32];
  std::snprintf(text, sizeof(text), "%s%016llx", kVersion.data(), static_cast<unsigned long long>(hash));
  return text;
}

bool IsFingerprint(std::string_view text) {
  const auto take = [&text](std::string_view letters) {
    const std::size_t size = std::min(text.find_first_not_of(letters), text.size());
    text.remove_prefix(size);
    return size;
  };
  constexpr std::string_view kNumber = "0123456789";
  if (take("v") != 1 || take(kNumber) == 0 || take("-") != 1 || take("0123456789abcdef") != kDigits) return false;
  return text.empty() || (take("-") == 1 && take(kNumber) != 0 && text.empty());
}

bool IsPresentFingerprint(std::string_view text) {
  return text.size() == kVersion.size() + kDigits && text.starts_with(kVersion) && IsFingerprint(text);
}

}  // namespace cuaudit::harness
