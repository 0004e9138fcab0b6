// SPDX-License-Identifier: MIT
// json_node.h: a value of a JSON document that somebody else wrote, with the way to it.
//
//   Owns      nothing: the document, the Failure and the nodes above outlive a node.
//   Errors    the first thing that is not as expected is kept in the Failure, with the way to it. From then on every node answers empty
//             values, so that a reader needs one check at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::report {

struct Failure {
  std::string line;     // "findings[3].count: expected a number from 0 up"; empty: none
  bool syntax = false;  // the text is no JSON
};

class JsonNode {
 public:
  JsonNode(const nlohmann::json* value, Failure* failure) : value_(value), failure_(failure) {}

  JsonNode operator[](const char* key) const;  // has to be there
  JsonNode Maybe(const char* key) const;       // may be missing
  bool present() const;                        // neither missing nor null

  std::string Text() const;
  std::uint64_t Count() const;
  double Number() const;  // null is not a number: JSON has no infinity
  bool Flag() const;
  std::vector<std::string> Texts() const;
  std::vector<std::uint64_t> Counts() const;

  // Calls take(node) for each entry of a list, and take(key, node) for each of an object.
  template <typename Take>
  void ForEach(const Take& take) const {
    for (std::size_t i = 0, size = Size(); i < size; ++i) take(At(i));
  }
  template <typename Take>
  void ForEachKey(const Take& take) const {
    for (const std::string& key : Keys()) take(key, Under(key));
  }

  std::size_t Size() const;              // of a list
  JsonNode At(std::size_t index) const;  // an entry of a list, which has to be there

  // The same value with a Failure of its own, and without the way to it.
  JsonNode Apart(Failure* failure) const { return {value_, failure}; }

  void Expected(std::string_view what) const;  // fails here
  bool failed() const { return !failure_->line.empty(); }

 private:
  JsonNode(const nlohmann::json* value, const JsonNode* above, const char* key, std::size_t index)
      : value_(value), failure_(above->failure_), above_(above), key_(key), index_(index) {}
  std::string Way() const;
  std::vector<std::string> Keys() const;
  JsonNode Under(const std::string& key) const;

  const nlohmann::json* value_ = nullptr;  // null: missing, or something failed before
  Failure* failure_ = nullptr;
  const JsonNode* above_ = nullptr;
  const char* key_ = nullptr;
  std::size_t index_ = 0;
};

// Called now and then while something is read: "MiB", done and all there are.
using ReadSoFar = std::function<void(const char* unit, std::size_t done, std::size_t total)>;

// Parses `text`. A text that is no JSON fails with line and column. A document nested deeper than any report is refused.
nlohmann::json ParseJson(std::string_view text, Failure* failure, const ReadSoFar& told = {});

}  // namespace cuaudit::report
