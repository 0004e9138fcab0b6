// SPDX-License-Identifier: MIT
// instances.h: templates of the libraries that many tests use, used once. A part of the tests' precompiled header, and included nowhere
// else: what a precompiled header uses is instantiated in it, and not again in each test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::suites {

// Never called, so no code is made of them.
inline void InstantiateComparisons(int i, unsigned u, long l, std::size_t size, bool flag, const std::string& text, std::string_view view) {
  EXPECT_EQ(i, i);
  EXPECT_EQ(u, u);
  EXPECT_EQ(l, l);
  EXPECT_EQ(l, i);
  EXPECT_EQ(size, u);
  EXPECT_EQ(size, size);
  EXPECT_EQ(flag, flag);
  EXPECT_EQ(text, "");
  EXPECT_EQ(text, text);
  EXPECT_EQ(view, view);
  EXPECT_NE(i, i);
  EXPECT_NE(size, size);
  EXPECT_NE(text, text);
  EXPECT_GT(size, u);
  EXPECT_GE(size, u);
  EXPECT_LT(size, size);
}

inline void InstantiateMatchers(const std::string& text, const std::vector<std::string>& texts, const std::vector<std::size_t>& numbers) {
  using testing::HasSubstr, testing::Not, testing::StartsWith;
  EXPECT_EQ(texts, texts);
  EXPECT_THAT(text, HasSubstr("a"));
  EXPECT_THAT(text, Not(HasSubstr("a")));
  EXPECT_THAT(text, StartsWith("a"));
  EXPECT_THAT(text, Not(StartsWith("a")));
  EXPECT_THAT(text, testing::EndsWith("a"));
  EXPECT_THAT(text, testing::ContainsRegex("a"));
  EXPECT_THAT(text, testing::IsEmpty());
  EXPECT_THAT(text, testing::AllOf(HasSubstr("a"), HasSubstr("b")));
  EXPECT_THAT(text, testing::AllOf(HasSubstr("a"), Not(HasSubstr("b"))));
  EXPECT_THAT(text, testing::AllOf(HasSubstr("a"), HasSubstr("b"), HasSubstr("c")));
  EXPECT_THAT(texts, testing::IsEmpty());
  EXPECT_THAT(texts, testing::SizeIs(1));
  EXPECT_THAT(texts, testing::Contains("a"));
  EXPECT_THAT(texts, testing::Contains(HasSubstr("a")));
  EXPECT_THAT(texts, testing::ElementsAre("a"));
  EXPECT_THAT(texts, testing::ElementsAre("a", "b"));
  EXPECT_THAT(texts, testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(texts, testing::ElementsAre(HasSubstr("a")));
  EXPECT_THAT(texts, testing::UnorderedElementsAre("a", "b"));
  EXPECT_THAT(numbers, testing::ElementsAre(1));
  EXPECT_THAT(numbers, testing::ElementsAre(1, 2));
}

inline void InstantiateJson(const std::string& text, const std::vector<std::string>& texts, std::ifstream& file) {
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json, nlohmann::json::parse(file));
  EXPECT_EQ(json, nlohmann::json::parse(text, nullptr, false));
  EXPECT_EQ(json, 1);
  EXPECT_EQ(json, 1U);
  EXPECT_EQ(json, true);
  EXPECT_EQ(json, "a");
  EXPECT_EQ(json, text);
  EXPECT_GT(json, 1);
  EXPECT_GE(json, 1);
  EXPECT_EQ(json["a"].get<std::string>(), json.at("a").get<std::string>());
  EXPECT_EQ(json.value("a", text), json.value("a", "b"));
  EXPECT_EQ(json.get<std::vector<std::string>>(), texts);
  EXPECT_EQ(json.get<std::uint64_t>(), json.get<std::size_t>());
  EXPECT_EQ(json.get<int>() + json.get<double>(), json.get<bool>());
  EXPECT_TRUE(json.contains("a")) << json.dump(2) << json;
  for (const nlohmann::json& one : json) EXPECT_EQ(one.is_string(), one == "a" || one == text || one == 1);
  for (const auto& [key, value] : json.items()) EXPECT_EQ(key, value);
  std::map<std::string, std::map<std::string, std::string>> maps;
  maps[text][text] = text;
  std::map<std::string, int> counts;
  ++counts[text];
}

}  // namespace cuaudit::suites
