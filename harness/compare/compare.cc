// SPDX-License-Identifier: MIT
#include "harness/compare/compare.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "harness/compare/looked_for.h"
#include "harness/compare/similarity.h"
#include "reports/audit_defects.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

using report::Change;

struct Failing {
  Names calls;           // of first faults, or of those on the way back
  std::uint64_t places;  // of first faults
};

Failing FailingOf(const KnownDefect& defect) {
  Failing failing{{}, 0};
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> places;  // by call and function, whichever errors were tried
  for (const FailingWay& way : defect.failing) {
    failing.calls.insert(std::string(WithoutVersion(way.call)));
    std::uint64_t& most = places[{way.call, way.function}];
    if (!way.unwinding) most = std::max(most, way.places);
  }
  for (const auto& [place, count] : places) failing.places += count;
  return failing;
}

// More objects of a kind, or at least twice the bytes. How many are left after so many cycles says nothing when other cycles were run.
bool LosesMore(const KnownDefect& before, const KnownDefect& after) {
  if (before.shown_by.cycles != after.shown_by.cycles || before.shown_by.faults > 1 || after.shown_by.faults > 1) return false;
  return std::any_of(before.lost.begin(), before.lost.end(), [&](const auto& was) {
    const auto is = after.lost.find(was.first);
    if (is == after.lost.end()) return false;
    return is->second.count > was.second.count || (was.second.bytes != 0 && is->second.bytes / 2 >= was.second.bytes);
  });
}

bool MoreThan(const KnownDefect& before, const KnownDefect& after) {
  if (!std::includes(before.kinds.begin(), before.kinds.end(), after.kinds.begin(), after.kinds.end())) return true;
  if (LosesMore(before, after)) return true;
  if (!PlacesCompare(before, after)) return false;
  const Failing was = FailingOf(before);
  const Failing is = FailingOf(after);
  return !std::includes(was.calls.begin(), was.calls.end(), is.calls.begin(), is.calls.end()) || is.places > was.places;
}

std::string Joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "1 stream, 2 device_memory of 8192 bytes"
std::string AmountsOf(const KnownDefect& defect) {
  std::string text;
  for (const auto& [kind, amount] : defect.lost) {
    text += (text.empty() ? "" : ", ") + std::to_string(amount.count) + " " + kind;
    if (amount.bytes != 0) text += " of " + std::to_string(amount.bytes) + " bytes";
  }
  return text;
}

// "stream; calls fail at 2 places: cuEventCreate, cuMemAlloc"
std::string Was(const KnownDefect& before, const KnownDefect& after) {
  const Failing failing = FailingOf(before);
  std::string text = LosesMore(before, after) ? AmountsOf(before) : Joined(Names(before.kinds.begin(), before.kinds.end()));
  if (failing.calls.empty()) return text;
  const std::string places = failing.places == 1 ? "1 place" : std::to_string(failing.places) + " places";
  words::Add({Detail::CallsFailAt, {places, Joined(failing.calls)}}, &text);
  return text;
}

report::Gone GoneOf(const KnownDefect& defect, std::string because) {
  report::Gone gone;
  gone.change = because.empty() ? Change::Fixed : Change::NotRun;
  gone.because = std::move(because);
  gone.case_name = defect.case_name;
  gone.mode = defect.mode;
  gone.fingerprint = defect.fingerprint;
  gone.rule = defect.rule;
  gone.title = defect.title;
  return gone;
}

// A report of one program has a case without a name. It is compared with the only case of the other side.
void NameTheOnlyCase(Base* base, const report::Audit& head) {
  if (head.cases.size() != 1) return;
  const std::string& name = head.cases.front().name;
  std::set<std::string_view> before;
  for (const KnownDefect& defect : base->defects) before.insert(defect.case_name);
  for (const KnownRun& run : base->runs) before.insert(run.case_name);
  if (before.size() != 1 || *before.begin() == name || (!name.empty() && !before.begin()->empty())) return;
  for (KnownDefect& defect : base->defects) defect.case_name = name;
  std::set<KnownRun> runs;
  for (const KnownRun& run : base->runs) runs.insert({name, run.mode});
  base->runs = std::move(runs);
  if (base->audit && base->audit->cases.size() == 1) base->audit->cases.front().name = name;
}

// Runs of the base that the head does not have. Those that it has and that prove nothing, and cases that say why they were not carried out,
// are named by the head itself.
std::vector<report::NotProved> NotRun(const std::set<KnownRun>& before, const report::Audit& head) {
  std::vector<report::NotProved> missing;
  for (const KnownRun& run : before) {
    const report::Case* const now = CaseOf(head, run.case_name);
    if (now != nullptr && (!now->not_run.empty() || RunOf(now, run.mode) != nullptr)) continue;
    missing.push_back({run.case_name, run.mode, WhyNotThere(now, run.mode)});
  }
  return missing;
}

// Whose defect it is: the blamed function, or the acquiring one.
std::string FunctionOf(const KnownDefect& defect) {
  if (!defect.blame.empty()) return defect.blame;
  return defect.stack.empty() ? std::string() : defect.stack.front();
}

// What the base has, as reports/audit_defects.h takes it, so that a baseline file and the result that it was written of have one
// identifier.
std::string GuidOf(const Base& base) {
  std::set<report::ResultKey> keys;
  for (const KnownRun& run : base.runs) keys.emplace(run.case_name, std::string(report::Name(run.mode)), "");
  for (const KnownDefect& defect : base.defects) keys.emplace(defect.case_name, std::string(report::Name(defect.mode)), defect.fingerprint);
  return report::GuidOf(keys);
}

using Group = std::pair<std::string, report::Mode>;

// What became of a defect of the base.
struct Fate {
  bool still_there = false;
  std::string doubt = {};  // why it may still be there although it is not, in words
};

// Whether a blamed function was renamed is not always known. Then the defect of the new report is new, and that of the base is not fixed.
void DoubtFates(const std::vector<KnownDefect>& then, const std::vector<KnownDefect>& now, const report::Run& run, const BothNames& names,
                std::vector<Fate>* fates) {
  std::vector<KnownDefect> gone;
  std::vector<KnownDefect> fresh;
  std::vector<Fate*> of_gone;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if ((*fates)[i].still_there) continue;
    gone.push_back(then[i]);
    of_gone.push_back(&(*fates)[i]);
  }
  for (std::size_t i = 0; i < now.size() && !gone.empty(); ++i) {
    if (run.defects[i].change == Change::New) fresh.push_back(now[i]);
  }
  const std::vector<Index> doubts = Doubts(gone, fresh, names);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!doubts[i]) continue;
    const KnownDefect& maybe = fresh[*doubts[i]];
    of_gone[i]->doubt = words::Words({Detail::MayBeRenamed, {maybe.fingerprint, gone[i].blame, maybe.blame}});
  }
}

// Says of each defect of `run` how it compares with those that the base has of it, and of each of the base what became of it.
std::vector<Fate> CompareRun(const std::vector<KnownDefect>& then, const report::Run* run_before, const std::string& case_name,
                             report::Run* run) {
  const std::vector<KnownDefect> now = KnownDefects(case_name, *run);
  BothNames names;
  AddNames(*run, &names.after);
  for (const KnownDefect& defect : then) AddNames(defect, &names.before);
  if (run_before != nullptr) AddNames(*run_before, &names.before);
  names.only_defects = run_before == nullptr;
  for (report::Defect& defect : run->defects) {
    defect.change = Change::New;
    defect.was.clear();
    defect.taken_for.clear();
  }
  std::vector<Index> pair_now(then.size());
  std::vector<Index> pair_before(now.size());
  for (const auto& [old, fresh] : PairDefects(then, now, names)) {
    report::Defect& defect = run->defects[fresh];
    pair_now[old] = fresh;
    pair_before[fresh] = old;
    const bool more = MoreThan(then[old], now[fresh]);
    defect.change = more ? Change::Changed : Change::Unchanged;
    if (more) defect.was = Was(then[old], now[fresh]);
    if (then[old].fingerprint != now[fresh].fingerprint) defect.taken_for.push_back(WhyTaken(then[old], now[fresh], names));
  }
  const auto tell_part = [&](std::size_t now_at, const KnownDefect& whole) {
    run->defects[now_at].change = Change::Unchanged;
    run->defects[now_at].taken_for.push_back({report::Taken::Part, FunctionOf(whole), whole.fingerprint});
  };
  // Only what is left over can be a part of another one.
  const std::vector<Index> wholes_before = WholesOf(now, then, pair_before, std::vector<bool>(then.size()), false, names);
  std::vector<bool> are_parts(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!wholes_before[i]) continue;
    are_parts[i] = true;
    tell_part(i, then[*wholes_before[i]]);
  }
  std::vector<Index> wholes_now = WholesOf(then, now, pair_now, are_parts, true, names);
  // What is lost at no other places than those of a pair is in the pair, whoever else is blamed for it in some of the trials: places that
  // the base does not have make the pair a change, and where they do not compare the base has to fail in the same ways.
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Index beside = pair_before[i] || are_parts[i] ? Index() : PairedBeside(now[i], now, pair_before);
    if (!beside) continue;
    const KnownDefect& whole = then[*pair_before[*beside]];
    const bool compared = PlacesCompare(whole, now[*beside]) && !HasSecondFaults(now[i]);
    if (compared || HasWaysOf(whole, now[i])) tell_part(i, whole);
  }
  std::vector<Fate> fates(then.size());
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (!pair_now[i] && !wholes_now[i]) {
      if (const Index beside = PairedBeside(then[i], then, pair_now)) wholes_now[i] = pair_now[*beside];
    }
    fates[i].still_there = pair_now[i] || wholes_now[i];
    if (!wholes_now[i]) continue;
    run->defects[*wholes_now[i]].taken_for.push_back({report::Taken::Whole, FunctionOf(then[i]), then[i].fingerprint});
  }
  DoubtFates(then, now, *run, names, &fates);
  return fates;
}

// The case of the base that is gone and that `one` may be renamed from: same command or, where a command is unknown as in a baseline file,
// a shared fingerprint. `earlier`: the base, empty for a baseline file. Null: none, or the base has a case of that name.
const std::string* FormerName(const report::Case& one, const Base& base, const report::Audit& earlier, const report::Audit& head) {
  std::set<std::string_view> fingerprints;
  for (const report::Run& run : one.runs) {
    for (const report::Defect& defect : run.defects) fingerprints.insert(defect.fingerprint);
  }
  for (const KnownRun& run : base.runs) {
    if (run.case_name == one.name) return nullptr;
  }
  for (const KnownRun& known : base.runs) {
    const report::Run* const now = RunOf(&one, known.mode);
    if (now == nullptr || CaseOf(head, known.case_name) != nullptr) continue;
    const report::Run* const was = RunOf(CaseOf(earlier, known.case_name), known.mode);
    const bool commands = was != nullptr && !was->command.empty() && !now->command.empty();
    const bool same =
        commands ? OtherCommand(*was, *now).empty() : std::any_of(base.defects.begin(), base.defects.end(), [&](const KnownDefect& defect) {
          return defect.case_name == known.case_name && fingerprints.contains(defect.fingerprint);
        });
    if (same) return &known.case_name;
  }
  return nullptr;
}

}  // namespace

Base BaseOf(std::string name, report::Audit audit) {
  Base base;
  base.name = std::move(name);
  base.defects = KnownDefects(audit);
  base.runs = KnownRuns(audit);
  base.audit = std::move(audit);  // last: the two above read it
  return base;
}

void CompareWith(Base base, report::Audit* head) {
  report::Comparison comparison;
  comparison.base = base.name;
  comparison.base_guid = GuidOf(base);
  NameTheOnlyCase(&base, *head);
  const report::Audit earlier = base.audit ? std::move(*base.audit) : report::Audit();
  for (const report::Case& one : head->cases) {
    if (const std::string* const name = FormerName(one, base, earlier, *head))
      comparison.warnings.push_back(words::Words({Detail::LooksRenamed, {one.name, *name}}));
  }
  std::map<Group, std::vector<KnownDefect>> before;
  for (KnownDefect& defect : base.defects) {
    Group group{defect.case_name, defect.mode};
    before[std::move(group)].push_back(std::move(defect));
  }
  comparison.not_run = NotRun(base.runs, *head);
  std::map<Group, std::vector<Fate>> known;
  for (report::Case& one : head->cases) {
    for (report::Run& run : one.runs) {
      const Group group{one.name, run.mode};
      const report::Run* const run_before = RunOf(CaseOf(earlier, one.name), run.mode);
      known[group] = CompareRun(before[group], run_before, one.name, &run);
      if (const Details other = run_before == nullptr ? Details() : OtherCommand(*run_before, run); !other.empty()) {
        comparison.warnings.push_back((one.name.empty() ? "" : one.name + ", ") + std::string(report::Name(run.mode)) + ": " +
                                      Words(other));
      }
    }
  }
  for (const auto& [group, defects] : before) {
    const LookedFor looked(CaseOf(*head, group.first), RunOf(CaseOf(earlier, group.first), group.second), group.second);
    const auto paired = known.find(group);
    for (std::size_t i = 0; i < defects.size(); ++i) {
      const Fate fate = paired == known.end() ? Fate() : paired->second[i];
      if (fate.still_there) continue;
      std::string why = looked.WhyNot(defects[i]);
      comparison.gone.push_back(GoneOf(defects[i], why.empty() ? fate.doubt : why));
    }
  }
  // What nobody looked for comes first.
  std::stable_sort(comparison.gone.begin(), comparison.gone.end(),
                   [](const report::Gone& a, const report::Gone& b) { return a.change > b.change; });
  head->comparison = std::move(comparison);
}

}  // namespace cuaudit::harness
