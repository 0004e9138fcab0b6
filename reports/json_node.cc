// SPDX-License-Identifier: MIT
#include "reports/json_node.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace cuaudit::report {
namespace {

constexpr int kDeepest = 64;  // lists and objects within one another

std::string LineAndColumn(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const std::size_t feed = before.rfind('\n');
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - (feed == std::string_view::npos ? 0 : feed + 1) + 1);
}

// Goes through a text and tells of each MiB of it.
class ToldText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ToldText(std::string_view text, const char* at, const ReadSoFar& told) : text_(text), at_(at), next_(at), told_(&told) {}

  const char& operator*() const { return *at_; }
  ToldText& operator++() {
    if (at_ == next_) Tell();
    ++at_;
    return *this;
  }
  friend bool operator==(const ToldText& a, const ToldText& b) { return a.at_ == b.at_; }
  friend bool operator!=(const ToldText& a, const ToldText& b) { return a.at_ != b.at_; }

 private:
  static constexpr std::size_t kMiB = std::size_t{1} << 20U;

  void Tell() {
    const auto done = static_cast<std::size_t>(at_ - text_.data());
    if (*told_ && text_.size() > kMiB) (*told_)("MiB", done / kMiB, text_.size() / kMiB);
    next_ = text_.size() - done > kMiB ? at_ + kMiB : nullptr;
  }

  std::string_view text_;
  const char* at_;
  const char* next_;
  const ReadSoFar* told_;
};

}  // namespace

std::string JsonNode::Way() const {
  if (above_ == nullptr) return {};
  const std::string way = above_->Way();
  if (key_ == nullptr) return way + "[" + std::to_string(index_) + "]";
  constexpr std::size_t kLongest = 60;
  return way + (way.empty() ? "" : ".") + std::string(key_).substr(0, kLongest);
}

void JsonNode::Expected(std::string_view what) const {
  if (failed()) return;
  const std::string way = Way();
  failure_->line = (way.empty() ? "" : way + ": ") + "expected " + std::string(what);
}

JsonNode JsonNode::operator[](const char* key) const {
  const JsonNode node = Maybe(key);
  if (node.value_ == nullptr) node.Expected("this key");
  return node;
}

JsonNode JsonNode::Maybe(const char* key) const {
  if (failed() || value_ == nullptr) return {nullptr, this, key, 0};
  if (!value_->is_object()) {
    Expected("an object");
    return {nullptr, this, key, 0};
  }
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, this, key, 0};
}

bool JsonNode::present() const { return !failed() && value_ != nullptr && !value_->is_null(); }

std::string JsonNode::Text() const {
  if (failed() || value_ == nullptr) return {};
  if (value_->is_string()) return value_->get_ref<const std::string&>();
  Expected("a string");
  return {};
}

std::uint64_t JsonNode::Count() const {
  if (failed() || value_ == nullptr) return 0;
  if (value_->is_number_unsigned()) return value_->get<std::uint64_t>();
  Expected("a whole number from 0 to 18446744073709551615");
  return 0;
}

double JsonNode::Number() const {
  if (failed() || value_ == nullptr) return 0;
  if (value_->is_number()) return value_->get<double>();
  if (value_->is_null()) return std::numeric_limits<double>::quiet_NaN();
  Expected("a number");
  return 0;
}

bool JsonNode::Flag() const {
  if (failed() || value_ == nullptr) return false;
  if (value_->is_boolean()) return value_->get<bool>();
  Expected("true or false");
  return false;
}

std::vector<std::string> JsonNode::Texts() const {
  std::vector<std::string> texts;
  ForEach([&texts](const JsonNode& one) { texts.push_back(one.Text()); });
  return texts;
}

std::vector<std::uint64_t> JsonNode::Counts() const {
  std::vector<std::uint64_t> counts;
  ForEach([&counts](const JsonNode& one) { counts.push_back(one.Count()); });
  return counts;
}

std::size_t JsonNode::Size() const {
  if (failed() || value_ == nullptr) return 0;
  if (value_->is_array()) return value_->size();
  Expected("a list");
  return 0;
}

std::vector<std::string> JsonNode::Keys() const {
  std::vector<std::string> keys;
  if (failed() || value_ == nullptr) return keys;
  if (!value_->is_object()) {
    Expected("an object");
    return keys;
  }
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

JsonNode JsonNode::At(std::size_t index) const {
  if (index < Size()) return {&(*value_)[index], this, nullptr, index};
  Expected("more entries");
  return {nullptr, this, nullptr, index};
}

JsonNode JsonNode::Under(const std::string& key) const {
  if (failed()) return {nullptr, this, key.c_str(), 0};
  return {&*value_->find(key), this, key.c_str(), 0};
}

nlohmann::json ParseJson(std::string_view text, Failure* failure, const ReadSoFar& told) {
  bool deep = false;
  const nlohmann::json::parser_callback_t shallow = [&deep](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(ToldText(text, text.data(), told), ToldText(text, text.data() + text.size(), told), shallow);
  } catch (const nlohmann::json::parse_error& error) {
    *failure = {LineAndColumn(text, error.byte) + ": expected JSON", true};
    return {};
  } catch (const nlohmann::json::out_of_range&) {
    failure->line = "expected no number beyond 1.8e308";
    return {};
  }
  if (!deep) return document;
  failure->line = "expected lists and objects at most " + std::to_string(kDeepest) + " deep";
  return {};
}

}  // namespace cuaudit::report
