// SPDX-License-Identifier: MIT
#include "harness/shards/shard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kShardSchema = "cuaudit.shard/1";
constexpr std::size_t kDigestBlock = std::size_t{1} << 20U;  // the digest is made of blocks of this size
constexpr std::size_t kLongestEnd = std::size_t{256} << 20U;

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json PieceJson(const WrittenPiece& one, const ShardPlan& plan) {
  const PlannedCase& in = plan.cases[one.piece.in_case];
  return {{"case", in.name}, {"subject", Hex(in.subject)}, {"from", one.piece.from}, {"trials", one.piece.trials},
          {"at", one.at},    {"bytes", one.bytes},         {"run", one.run},         {"us", one.microseconds}};
}

Json CyclesJson(const WrittenCycles& one, const ShardPlan& plan) {
  return {{"case", plan.cases[one.in_case].name},
          {"report", one.report},
          {"line", one.line},
          {"defects", one.defects},
          {"exit", one.exit},
          {"unused_suppressions", one.unused_suppressions}};
}

std::uint64_t Number(const Json& json) {
  if (!json.is_number_unsigned()) throw std::invalid_argument("expected a number");
  return json.get<std::uint64_t>();
}

// Reads all of [at, at + bytes), or says which part of it is not there.
Result<std::string> ReadRange(const FileDescriptor& file, const std::string& path, std::uint64_t at, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = pread(file.get(), text.data() + filled, bytes - filled, static_cast<off_t>(at + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status(Exit::Usage, path + ": cannot read: " + SystemWords(errno));
    if (got == 0) return Status(Exit::Usage, path + ": truncated while it was read");
    filled += static_cast<std::size_t>(got);
  }
  return text;
}

struct OpenedShard {
  FileDescriptor file;
  std::uint64_t body = 0;  // bytes before the last line
  Json end;
};

Status Truncated(const std::string& path) { return {Exit::Usage, path + ": truncated: expected a last line that ends a shard"}; }

Result<OpenedShard> OpenEnd(const std::string& path) {
  OpenedShard opened;
  opened.file = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts = {};
  if (!opened.file.valid() || fstat(opened.file.get(), &facts) != 0)
    return Status(Exit::Usage, path + ": cannot open: " + SystemWords(errno));
  if (!S_ISREG(facts.st_mode)) return Status(Exit::Usage, path + ": expected a regular file");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  for (std::uint64_t wanted = 1U << 16U;; wanted *= 2) {
    const std::uint64_t bytes = std::min(wanted, size);
    Result<std::string> tail = ReadRange(opened.file, path, size - bytes, bytes);
    if (!tail.ok()) return tail.status();
    if (tail->empty() || tail->back() != '\n') return Truncated(path);
    tail->pop_back();
    const std::size_t line_feed = tail->rfind('\n');
    if (line_feed == std::string::npos && bytes != size) {
      if (wanted >= kLongestEnd) return Truncated(path);
      continue;
    }
    const std::size_t begin = line_feed == std::string::npos ? 0 : line_feed + 1;
    opened.body = size - bytes + begin;
    opened.end = Json::parse(tail->substr(begin), nullptr, false);
    if (!opened.end.is_object() || !opened.end.contains("end") || !opened.end["end"].is_object()) return Truncated(path);
    opened.end = Json(opened.end["end"]);
    return opened;
  }
}

Shard ReadEnd(const Json& end, const ShardPlan& plan, std::uint64_t body) {
  Shard shard;
  shard.round = Number(end.at("round"));
  shard.number = Number(end.at("number"));
  const auto number_of = [&](const std::string& name) {
    const auto found = std::find_if(plan.cases.begin(), plan.cases.end(), [&](const PlannedCase& one) { return one.name == name; });
    if (found == plan.cases.end()) throw std::invalid_argument("unknown case");
    return static_cast<std::size_t>(found - plan.cases.begin());
  };
  for (const Json& row : end.at("pieces")) {
    WrittenPiece one;
    one.piece = {number_of(row.at("case")), Number(row.at("from")), Number(row.at("trials"))};
    one.at = Number(row.at("at"));
    one.bytes = Number(row.at("bytes"));
    if (one.at > body || one.bytes > body - one.at) throw std::invalid_argument("outside the file");
    one.run = Number(row.at("run"));
    one.microseconds = Number(row.at("us"));
    shard.pieces.push_back(one);
  }
  for (const Json& row : end.at("cycles")) {
    WrittenCycles one;
    one.in_case = number_of(row.at("case"));
    one.report = row.at("report").get<std::string>();
    one.line = row.at("line").get<std::string>();
    one.defects = Number(row.at("defects"));
    one.exit = row.at("exit").get<int>();
    one.unused_suppressions = row.at("unused_suppressions").get<std::vector<std::string>>();
    shard.cycles.push_back(std::move(one));
  }
  return shard;
}

// Why a whole shard is not one of this plan; empty: it is.
std::string Foreign(const Json& end, const Rounds& rounds) {
  if (end.at("schema") != kShardSchema) return "not a shard of this version of cuaudit";
  const auto& tool = end.at("tool").get_ref<const std::string&>();
  if (tool != rounds.front().tool) return "foreign: written by cuaudit " + tool + ", the plan is of " + rounds.front().tool;
  const std::uint64_t round = Number(end.at("round"));
  if (round == 0 || round > rounds.size()) return "foreign: of round " + std::to_string(round) + ", which this plan does not have";
  const ShardPlan& plan = rounds[round - 1];
  for (const Json& row : end.at("pieces")) {
    for (const PlannedCase& one : plan.cases) {
      if (row.at("case") != one.name || row.at("subject") == Hex(one.subject)) continue;
      return "foreign: of another program, build or settings of " + one.name + " (digest " + row.at("subject").get<std::string>() +
             ", the plan has " + Hex(one.subject) + ")";
    }
  }
  if (end.at("plan") != Hex(plan.digest)) {
    return "foreign: of another plan (digest " + end.at("plan").get<std::string>() + ", expected " + Hex(plan.digest) + ")";
  }
  return {};
}

Result<std::uint64_t> DigestOf(const OpenedShard& opened, const std::string& path) {
  std::uint64_t hash = kHashSeed;
  for (std::uint64_t at = 0; at < opened.body; at += kDigestBlock) {
    const Result<std::string> block = ReadRange(opened.file, path, at, std::min<std::uint64_t>(kDigestBlock, opened.body - at));
    if (!block.ok()) return block.status();
    hash = HashText(*block, hash);
  }
  return hash;
}

// With that of the last line.
std::uint64_t WholeDigest(std::uint64_t of_trials, Json end) {
  end.erase("digest");
  return HashText(Dump(end), of_trials);
}

}  // namespace

Result<ShardWriter> ShardWriter::Open(const std::string& path, const ShardPlan& plan, std::uint64_t number) {
  Result<FileDescriptor> file = OpenPartial(path);
  if (!file.ok()) return file.status();
  ShardWriter writer;
  writer.plan_ = &plan;
  writer.shard_.path = path;
  writer.shard_.round = plan.round;
  writer.shard_.number = number;
  writer.shard_.trials_digest = kHashSeed;
  writer.file_ = std::move(*file);
  return writer;
}

Status ShardWriter::Flush(std::size_t bytes) {
  const std::string_view block = std::string_view(block_).substr(0, bytes);
  shard_.trials_digest = HashText(block, shard_.trials_digest);
  Status written = WriteAll(file_.get(), block, shard_.path + ".partial");
  block_.erase(0, bytes);
  return written;
}

Status ShardWriter::Add(const Piece& piece, const std::vector<TrialResult>& trials, std::uint64_t run, std::uint64_t microseconds) {
  WrittenPiece one = {.piece = piece, .at = at_};
  LogRows rows;
  for (const TrialResult& trial : trials) {
    const std::string line = rows.Write(trial);
    at_ += line.size();
    block_ += line;
    while (block_.size() >= kDigestBlock) {
      Status written = Flush(kDigestBlock);
      if (!written.ok()) return written;
    }
  }
  one.bytes = at_ - one.at;
  one.run = run;
  one.microseconds = microseconds;
  shard_.pieces.push_back(one);
  return {};
}

Status ShardWriter::Finish() {
  if (!block_.empty()) {
    Status written = Flush(block_.size());
    if (!written.ok()) return written;
  }
  Json end = {{"schema", kShardSchema}, {"tool", plan_->tool},     {"plan", Hex(plan_->digest)},
              {"round", shard_.round},  {"number", shard_.number}, {"of", plan_->shards}};
  end["pieces"] = Json::array();
  for (const WrittenPiece& one : shard_.pieces) end["pieces"].push_back(PieceJson(one, *plan_));
  end["cycles"] = Json::array();
  for (const WrittenCycles& one : shard_.cycles) end["cycles"].push_back(CyclesJson(one, *plan_));
  end["digest"] = Hex(WholeDigest(shard_.trials_digest, end));
  const std::string partial = shard_.path + ".partial";
  Status written = WriteAll(file_.get(), Dump(Json{{"end", std::move(end)}}), partial);
  if (!written.ok()) return written;
  if (fsync(file_.get()) != 0 || std::rename(partial.c_str(), shard_.path.c_str()) != 0) {
    return {Exit::Failure, shard_.path + ": cannot write: " + SystemWords(errno)};
  }
  return {};
}

Result<Shard> OpenShard(const std::string& path, const Rounds& rounds) {
  Result<OpenedShard> opened = OpenEnd(path);
  if (!opened.ok()) return opened.status();
  try {
    if (const std::string why = Foreign(opened->end, rounds); !why.empty()) return Status(Exit::Usage, path + ": " + why);
    const ShardPlan& plan = rounds[Number(opened->end.at("round")) - 1];
    Shard shard = ReadEnd(opened->end, plan, opened->body);
    shard.path = path;
    if (shard.number >= plan.shards) return Status(Exit::Usage, path + ": expected a shard below " + std::to_string(plan.shards));
    const std::vector<Piece> planned = PiecesOf(plan, shard.number);
    const bool same = std::equal(planned.begin(), planned.end(), shard.pieces.begin(), shard.pieces.end(),
                                 [](const Piece& a, const WrittenPiece& b) { return a == b.piece; });
    if (!same) return Status(Exit::Usage, path + ": expected the trials that the plan gives to shard " + std::to_string(shard.number));
    const Result<std::uint64_t> digest = DigestOf(*opened, path);
    if (!digest.ok()) return digest.status();
    shard.trials_digest = *digest;
    const std::string whole = Hex(WholeDigest(*digest, opened->end));
    if (opened->end.at("digest") != whole) return Status(Exit::Usage, path + ": changed after it was written: expected digest " + whole);
    return shard;
  } catch (const std::exception&) {
    return Status(Exit::Usage, path + ": expected a shard as cuaudit run-shard writes it");
  }
}

std::optional<double> MicrosecondsOfTrial(const std::string& shards, const std::string& name) {
  std::uint64_t run = 0;
  std::uint64_t microseconds = 0;
  for (const std::string& path : ShardFiles(shards)) {
    const Result<OpenedShard> opened = OpenEnd(path);
    if (!opened.ok()) continue;
    try {
      for (const Json& row : opened->end.at("pieces")) {
        if (row.at("case") != name) continue;
        run += Number(row.at("run"));
        microseconds += Number(row.at("us"));
      }
    } catch (const std::exception&) {
      continue;
    }
  }
  if (run == 0) return std::nullopt;
  return static_cast<double>(microseconds) / static_cast<double>(run);
}

Status ReadPiece(const Shard& shard, const WrittenPiece& piece, std::vector<TrialResult>* trials) {
  const FileDescriptor file(open(shard.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {Exit::Usage, shard.path + ": cannot open: " + SystemWords(errno)};
  const Result<std::string> text = ReadRange(file, shard.path, piece.at, piece.bytes);
  if (!text.ok()) return text.status();
  const std::uint64_t end = piece.piece.from + piece.piece.trials;
  LogRows rows;
  std::uint64_t counted = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    std::optional<TrialResult> trial = rows.Read(rest.substr(0, length));
    const bool fits = trial.has_value() && trial->index == piece.piece.from + counted && trial->index < end;
    if (!fits) {
      return {Exit::Usage, shard.path + ": at byte " + std::to_string(piece.at + (text->size() - rest.size())) + ": expected trial " +
                               std::to_string(piece.piece.from + counted)};
    }
    counted += trial->stray ? 0 : 1;
    trials->push_back(std::move(*trial));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  if (counted != piece.piece.trials) {
    return {Exit::Usage, shard.path + ": expected " + std::to_string(piece.piece.trials) + " trials, found " + std::to_string(counted)};
  }
  return {};
}

bool ShardSet::Whole(const ShardPlan& plan) const {
  const auto& shards = rounds[plan.round - 1];
  for (std::uint64_t number = 0; number < shards.size(); ++number) {
    if (!shards[number].has_value() && HasWork(plan, number)) return false;
  }
  return true;
}

ShardSet CollectShards(const std::vector<std::string>& files, const Rounds& rounds) {
  ShardSet set;
  for (const ShardPlan& plan : rounds) set.rounds.emplace_back(plan.shards);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unlike;
  for (const std::string& path : files) {
    Result<Shard> shard = OpenShard(path, rounds);
    if (!shard.ok()) {
      set.faults.push_back(shard.status().message());
      continue;
    }
    std::optional<Shard>& place = set.rounds[shard->round - 1][shard->number];
    if (!place.has_value()) {
      place = std::move(*shard);
      continue;
    }
    const bool same = place->trials_digest == shard->trials_digest;
    set.faults.push_back(path + ": duplicated: shard " + std::to_string(shard->number) + " of round " + std::to_string(shard->round) +
                         " is also " + place->path + (same ? ", with the same trials" : ", with other trials, and neither is used"));
    if (!same) unlike.emplace_back(shard->round - 1, shard->number);
  }
  for (const auto& [round, number] : unlike) set.rounds[round][number].reset();
  for (std::size_t round = 0; round < set.rounds.size(); ++round) {
    for (std::size_t number = 0; number < set.rounds[round].size(); ++number) {
      if (set.rounds[round][number].has_value() || !HasWork(rounds[round], number)) continue;
      set.faults.push_back("shard " + std::to_string(number) + " of round " + std::to_string(round + 1) + ": missing");
    }
  }
  return set;
}

std::vector<std::string> ShardFiles(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".shard") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace cuaudit::harness
