// SPDX-License-Identifier: MIT
#include "harness/defect/reference_pairs.h"

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/defect/defects.h"

namespace cuaudit::harness {
namespace {

// Signs that a release belongs to an acquisition, the strongest first.
struct Signs {
  std::size_t known = 0;
  std::size_t shared = 0;
  std::size_t words = 0;
  bool not_left = true;  // not acquired by a function that failed and returned before the release
  std::size_t guessed = 0;

  auto operator<=>(const Signs&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};

// Number of functions that were running at both calls, counted from the outer end of `b`.
std::size_t Shared(const Stack& a, const Stack& b) {
  const std::optional<Common> both = CommonActivation(a, b);
  return both ? b.size() - both->in_b : 0;
}

// Number of functions that two stacks have in common, counted from the innermost one outwards, wherever they were called from.
std::size_t SameWayIn(const Stack& a, const Stack& b) {
  const std::size_t both = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same < both && SameFunction(a[same], b[same])) ++same;
  return same;
}

// The words of a name, in small letters: "Decoder::OpenOne" and "decoder_open_one" have "decoder", "open" and "one".
void AddWords(std::string_view name, std::set<std::string>* words) {
  std::string word;
  const auto end = [&] {
    if (word.size() > 1) words->insert(word);
    word.clear();
  };
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) == 0) {
      end();
      continue;
    }
    if (std::isupper(letter) != 0 && !word.empty() && std::islower(static_cast<unsigned char>(word.back())) != 0) end();
    word += static_cast<char>(std::tolower(letter));
  }
  end();
}

std::set<std::string> Words(const Stack& stack, std::size_t frames) {
  std::set<std::string> words;
  for (std::size_t i = 0; i < frames; ++i) {
    AddWords(PlainName(stack[i].function), &words);
    if (!stack[i].file.empty()) words.insert("file " + stack[i].file);
    words.insert("module " + stack[i].module);
  }
  return words;
}

constexpr std::size_t kSameFunction = 1000;  // more than the words of any stack

// What the functions have in common that the innermost function running at both calls called on the way to each.
std::size_t WordsInCommon(const Stack& taken, const Stack& given) {
  const std::optional<Common> both = CommonActivation(taken, given);
  const std::size_t in_taken = both ? both->in_a : taken.size();
  const std::size_t in_given = both ? both->in_b : given.size();
  if (both && in_taken == 0 && in_given == 0) return kSameFunction;
  const std::set<std::string> a = Words(taken, in_taken);
  const std::set<std::string> b = Words(given, in_given);
  return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [&](const std::string& word) { return b.contains(word); }));
}

// True when a function that acquired failed and returned, and somebody else made the release.
bool LeftIt(const ReferenceTaken& taken, const ReferenceGiven& given, std::span<const FailedCall> failed) {
  return std::any_of(failed.begin(), failed.end(), [&](const FailedCall& call) {
    return taken.when < call.when && given.when > call.when && Shared(taken.stack, call.stack) > Shared(given.stack, call.stack);
  });
}

Signs SignsOf(const ReferenceTaken& taken, const ReferenceGiven& given, std::span<const KnownPair> known) {
  Signs signs;
  for (const KnownPair& pair : known) {
    if (pair.place != taken.place) continue;
    std::size_t& same = pair.sure ? signs.known : signs.guessed;
    same = std::max(same, SameWayIn(pair.given, given.stack));
  }
  signs.shared = Shared(taken.stack, given.stack);
  signs.words = WordsInCommon(taken.stack, given.stack);
  return signs;
}

struct Candidate {
  Signs signs;
  std::size_t given = 0;
  std::size_t taken = 0;
  bool so_far = false;
};

// True when the stacks told that the release belongs to this place: every other place has weaker signs.
bool IsSure(const Candidate& chosen, std::span<const Candidate> all, std::span<const ReferenceTaken> taken) {
  return std::none_of(all.begin(), all.end(), [&](const Candidate& other) {
    return other.given == chosen.given && taken[other.taken].place != taken[chosen.taken].place && other.signs >= chosen.signs;
  });
}

}  // namespace

std::vector<ReferencePair> PairReferences(std::span<const ReferenceTaken> taken, std::span<const ReferenceGiven> given,
                                          std::span<const KnownPair> known, std::span<const FailedCall> failed) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Signs> of_places;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t j = 0; j < taken.size(); ++j) {
      if (taken[j].when >= given[i].when) continue;
      const auto [of_place, fresh] = of_places.try_emplace({taken[j].place, given[i].place});
      if (fresh) of_place->second = SignsOf(taken[j], given[i], known);
      Signs signs = of_place->second;
      signs.not_left = !LeftIt(taken[j], given[i], failed);
      candidates.push_back({signs, i, j, given[i].taken == j});
    }
  }
  const std::vector<Candidate> all = candidates;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(b.signs, a.given, b.so_far, b.taken) < std::tie(a.signs, b.given, a.so_far, a.taken);
  });
  std::vector<std::optional<ReferencePair>> pairs(given.size());
  std::vector<bool> used(taken.size());
  for (const Candidate& candidate : candidates) {
    if (pairs[candidate.given].has_value() || used[candidate.taken]) continue;
    pairs[candidate.given] = ReferencePair{candidate.taken, IsSure(candidate, all, taken)};
    used[candidate.taken] = true;
  }
  std::vector<ReferencePair> answer;
  answer.reserve(given.size());
  if (std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.has_value(); })) {
    for (const std::optional<ReferencePair>& pair : pairs) answer.push_back(*pair);
  } else {
    // The best pairs left a release without an acquisition before it.
    for (const ReferenceGiven& one : given) answer.push_back({one.taken, false});
  }
  return answer;
}

}  // namespace cuaudit::harness
