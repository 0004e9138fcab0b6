// SPDX-License-Identifier: MIT
#include "harness/shards/shard_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "faults/plan/fault.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kSite = " site=";
constexpr const char* kPartial = ".partial";
constexpr std::size_t kBlock = std::size_t{1} << 20U;

void AppendFault(std::string_view fault, std::uint64_t site, std::string* line) { line->append(fault).append(kSite).append(Hex(site)); }

std::string Padded(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

__extension__ using Wide = unsigned __int128;

// The first trial of a case, of `trials`, that begins at `at` or later, when the case begins at `begin`.
std::uint64_t FirstAt(Wide at, Wide begin, std::uint64_t weight, std::uint64_t trials) {
  if (at <= begin) return 0;
  const Wide first = (at - begin + weight - 1) / weight;
  return first > trials ? trials : static_cast<std::uint64_t>(first);
}

std::optional<PlannedTrial> ParseLine(std::string_view line) {
  PlannedTrial trial;
  if (line.starts_with('~')) {
    trial.shrinks = true;
    line.remove_prefix(1);
  }
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(';'), line.size());
    const std::string_view part = line.substr(0, end);
    const std::size_t at = part.find(kSite);
    if (at == std::string_view::npos || !ParsedFault(part.substr(0, at))) return std::nullopt;
    const std::optional<std::uint64_t> site = ParseDigest(part.substr(at + kSite.size()));
    if (!site.has_value()) return std::nullopt;
    trial.faults.emplace_back(part.substr(0, at));
    trial.sites.push_back(*site);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (trial.faults.empty() || trial.faults.size() > faults::kMaxFaults) return std::nullopt;
  return trial;
}

constexpr off_t kRunBlock = 1 << 16;

Status CannotRead(const std::string& path) { return {Exit::Usage, path + ": cannot read: " + SystemWords(errno)}; }

// A journal is mostly a hole, so that only blocks with data are read, and of these only those that are not all zeros count.
Result<std::uint64_t> DigestOfFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return CannotRead(path);
  std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(facts.st_size), kHashSeed);
  for (off_t at = 0; at < facts.st_size; at += kRunBlock) {
    const off_t data = lseek(file.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole is left
    if (data < 0) return CannotRead(path);
    at = data - data % kRunBlock;
    std::string block(static_cast<std::size_t>(std::min(kRunBlock, facts.st_size - at)), '\0');
    for (std::size_t filled = 0; filled < block.size();) {
      const ssize_t got = pread(file.get(), block.data() + filled, block.size() - filled, at + static_cast<off_t>(filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return CannotRead(path);
      if (got == 0) break;  // cut while it was read: zeros stand for the rest
      filled += static_cast<std::size_t>(got);
    }
    const bool empty = std::all_of(block.begin(), block.end(), [](char byte) { return byte == '\0'; });
    if (!empty) hash = HashText(block, HashNumber(static_cast<std::uint64_t>(at), hash));
  }
  return hash;
}

}  // namespace

std::optional<std::uint64_t> ParseDigest(std::string_view digits) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  const bool whole = digits.size() == 16 && read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole ? std::optional<std::uint64_t>(value) : std::nullopt;
}

std::vector<Piece> PiecesOf(const ShardPlan& plan, std::uint64_t number) {
  Wide whole = 0;
  for (const PlannedCase& one : plan.cases) whole += Wide{one.trials} * one.weight;
  const Wide from = whole * number / plan.shards;
  const Wide to = whole * (number + 1) / plan.shards;
  std::vector<Piece> pieces;
  Wide begin = 0;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& one = plan.cases[i];
    const std::uint64_t first = FirstAt(from, begin, one.weight, one.trials);
    const std::uint64_t last = FirstAt(to, begin, one.weight, one.trials);
    if (first < last) pieces.push_back({i, one.first + first, last - first});
    begin += Wide{one.trials} * one.weight;
  }
  return pieces;
}

bool HasWork(const ShardPlan& plan, std::uint64_t number) {
  const auto only_cycles = [](const PlannedCase& one) { return one.trials == 0 && !one.cycles.empty(); };
  if (plan.round == 1 && number == 0 && std::any_of(plan.cases.begin(), plan.cases.end(), only_cycles)) return true;
  return !PiecesOf(plan, number).empty();
}

std::string PlanFolder::Round(std::uint64_t round) const { return path_ + "/round-" + std::to_string(round) + ".json"; }

std::string PlanFolder::Trials(std::uint64_t round, const std::string& name) const {
  return path_ + "/round-" + std::to_string(round) + "/" + name + ".trials";
}

std::string PlanFolder::Shard(std::uint64_t round, std::uint64_t number) const {
  return Shards() + "/" + std::to_string(round) + "-" + Padded(number) + ".shard";
}

std::string PlanFolder::Work(std::uint64_t round, std::uint64_t number) const {
  return (std::filesystem::path(path_) / "work" / (std::to_string(round) + "-" + Padded(number))).string();
}

std::uint64_t PlanFolder::LastRound() const {
  std::uint64_t last = 0;
  std::error_code error;
  while (std::filesystem::exists(Round(last + 1), error)) ++last;
  return last;
}

std::string TrialLines::Line(const PlannedTrial& trial) {
  std::string line = trial.shrinks ? "~" : "";
  for (std::size_t i = 0; i < trial.faults.size(); ++i) {
    if (i != 0) line += ';';
    AppendFault(trial.faults[i], trial.sites[i], &line);
  }
  return line += '\n';
}

Result<FileDescriptor> OpenPartial(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error) return Status(Exit::Usage, folder.string() + ": cannot create the directory: " + error.message());
  const std::string partial = path + kPartial;
  FileDescriptor file(open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return Status(Exit::Usage, partial + ": cannot open: " + SystemWords(errno));
  return file;
}

Result<TrialLines> TrialLines::Open(const std::string& path) {
  Result<FileDescriptor> file = OpenPartial(path);
  if (!file.ok()) return file.status();
  TrialLines lines;
  lines.path_ = path;
  lines.hash_ = kHashSeed;
  lines.file_ = std::move(*file);
  return lines;
}

TrialLines::~TrialLines() {
  if (file_.valid()) (void)unlink((path_ + kPartial).c_str());
}

void TrialLines::Add(std::string_view fault, std::uint64_t site) {
  line_.clear();
  AppendFault(fault, site, &line_);
  Append(line_ += '\n');
}

void TrialLines::Append(std::string_view line) {
  if (!status_.ok()) return;
  hash_ = HashText(line, hash_);
  block_ += line;
  if (block_.size() >= kBlock) WriteBlock();
}

void TrialLines::WriteBlock() {
  if (status_.ok()) status_ = WriteAll(file_.get(), block_, path_ + kPartial);
  block_.clear();
}

Result<std::uint64_t> TrialLines::Finish() {
  WriteBlock();
  if (!status_.ok()) return status_;
  if (std::rename((path_ + kPartial).c_str(), path_.c_str()) != 0) {
    return Status(Exit::Failure, path_ + ": cannot rename: " + SystemWords(errno));
  }
  file_ = FileDescriptor();
  return hash_;
}

Result<std::uint64_t> TrialLines::Write(const std::string& path, const std::vector<PlannedTrial>& trials) {
  Result<TrialLines> lines = Open(path);
  if (!lines.ok()) return lines.status();
  for (const PlannedTrial& trial : trials) lines->Add(trial);
  return lines->Finish();
}

Result<std::vector<PlannedTrial>> TrialLines::Read(const std::string& path, const PlannedCase& one, const Piece& piece) {
  std::ifstream lines(path);
  if (!lines) return Status(Exit::Usage, path + ": cannot open: " + SystemWords(errno));
  std::vector<PlannedTrial> trials;
  std::uint64_t number = 0;
  std::uint64_t hash = kHashSeed;
  for (std::string line; std::getline(lines, line); ++number) {
    hash = HashText(line + "\n", hash);
    const std::uint64_t trial = one.first + number;
    if (trial < piece.from || trial >= piece.from + piece.trials) continue;
    std::optional<PlannedTrial> parsed = ParseLine(line);
    if (!parsed.has_value())
      return Status(Exit::Usage, path + ":" + std::to_string(number + 1) + ": expected faults, each with ' site=HEX'");
    trials.push_back(std::move(*parsed));
  }
  if (number != one.trials || hash != one.digest) {
    return Status(Exit::Usage, path + ": expected the " + std::to_string(one.trials) + " trials of the plan (digest " + Hex(one.digest) +
                                   "), found " + std::to_string(number) + " (digest " + Hex(hash) + ")");
  }
  return trials;
}

Result<ShardPlan> ReadShardPlan(const PlanFolder& folder, std::uint64_t round) {
  const std::string path = folder.Round(round);
  std::error_code error;
  if (!std::filesystem::is_directory(folder.path(), error)) {
    return Status(Exit::Usage, folder.path() + ": expected the directory that cuaudit plan made");
  }
  if (!std::filesystem::exists(path, error)) {
    const std::string what = round <= 1 ? "a plan: cuaudit plan --to " + folder.path()
                                        : "the plan of round " + std::to_string(round) + ", which cuaudit plan " + folder.path() +
                                              " makes when all shards of the round before are there";
    return Status(Exit::Usage, path + ": not found: expected " + what);
  }
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  Result<ShardPlan> plan = ParseShardPlan(*text, path);
  if (!plan.ok()) return plan;
  if (plan->tool != ToolVersion()) {
    return Status(Exit::Usage,
                  path + ": of cuaudit " + plan->tool + ", this is " + std::string(ToolVersion()) + ": expected one version for a plan");
  }
  if (plan->round != round) return Status(Exit::Usage, path + ": expected the plan of round " + std::to_string(round));
  return plan;
}

Status WriteShardPlan(const PlanFolder& folder, ShardPlan* plan) {
  plan->Seal();
  return WriteFile(folder.Round(plan->round), FormatShardPlan(*plan), Exit::Usage);
}

Result<RunDigests> DigestRuns(const std::string& directory) {
  RunDigests digests;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name == "lock" || entry->path().extension() == ".log" || !entry->is_regular_file(unknown)) continue;
    const Result<std::uint64_t> digest = DigestOfFile(entry->path().string());
    if (!digest.ok()) return digest.status();
    digests[name] = *digest;
  }
  if (error) return Status(Exit::Usage, directory + ": cannot read the fault-free runs of the plan: " + error.message());
  return digests;
}

Status CheckRuns(const std::string& directory, const RunDigests& planned) {
  const Result<RunDigests> found = DigestRuns(directory);
  if (!found.ok()) return found.status();
  for (const auto& [name, digest] : planned) {
    const auto here = found->find(name);
    if (here == found->end()) return {Exit::Usage, directory + "/" + name + ": missing: expected the file that the plan was made with"};
    if (here->second == digest) continue;
    return {Exit::Usage,
            directory + "/" + name + ": changed after the plan was made: expected digest " + Hex(digest) + ", found " + Hex(here->second)};
  }
  for (const auto& [name, digest] : *found) {
    if (!planned.contains(name)) return {Exit::Usage, directory + "/" + name + ": expected only files that the plan was made with"};
  }
  return {};
}

}  // namespace cuaudit::harness
