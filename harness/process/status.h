// SPDX-License-Identifier: MIT
// status.h: success, or one line of error with its exit code. Every room above the driver reports errors in this way; nothing here throws.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cuaudit::harness {

enum class Exit : int {
  Clean = 0,
  Findings = 1,
  Usage = 2,
  Environment = 3,  // no driver, not exercised, or an unfit fault-free run
  Failure = 125,    // of cuaudit itself; a signal that ended the command is kSignalled plus its number
};

inline constexpr int kSignalled = 128;  // plus the signal's number: the exit status that shells report

// The option that an error is about: "--how".
struct OptionFlag {
  std::string_view name;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Exit exit, std::string message) : exit_(exit), message_(std::move(message)) {}
  // The message is "--how: text".
  Status(Exit exit, OptionFlag flag, const std::string& text) : exit_(exit), flag_(flag.name), message_(flag_ + ": " + text) {}

  // Nothing was tested. This is neither clean nor an error of the program.
  static Status NotExercised(std::string message) {
    Status status(Exit::Environment, std::move(message));
    status.not_exercised_ = true;
    return status;
  }

  bool ok() const noexcept { return exit_ == Exit::Clean; }
  bool not_exercised() const noexcept { return not_exercised_; }
  Exit exit() const noexcept { return exit_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& flag() const noexcept { return flag_; }  // empty: the error is not about one option
  // The message behind the flag.
  std::string_view text() const noexcept { return std::string_view(message_).substr(flag_.empty() ? 0 : flag_.size() + 2); }
  // Lines for the terminal after the message, such as output of the program. Empty, or each line ends in a line feed.
  const std::string& detail() const noexcept { return detail_; }
  Status With(std::string detail) const {
    Status status = *this;
    status.detail_ = std::move(detail);
    return status;
  }

 private:
  Exit exit_ = Exit::Clean;
  std::string flag_;
  std::string message_;
  std::string detail_;
  bool not_exercised_ = false;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }
  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// The word that somebody most likely meant.

// The word of `known` with the smallest edit distance (letters put in, left out or replaced) to `word`; the first of several. Empty when
// even that differs in more than half of the longer word's letters, and where `word` has more than 64.
std::string Nearest(std::string_view word, std::span<const std::string> known);

// ", did you mean WORD?", or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace cuaudit::harness
