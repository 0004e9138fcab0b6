// SPDX-License-Identifier: MIT
// shard_file.h: the result of one shard: the finished trials of its pieces, as trial_log.h keeps them.
//
//   Owns      the writer its unfinished file, which gets its name only when it is whole.
//   Threads   one thread.
//   Units     bytes; times in microseconds.
//   Errors    one line that names the file and says whether it is truncated, changed, or of another plan, program or version of the tool.
//
// Each line but the last is a trial: one piece after the other, and what trials have in common stands once in a piece (log_rows.h). The
// last line says whose shard this is, where each piece is, so that a merge reads one case at a time, and the digest of all
// that is before the digest:
//
//     {"end":{"schema":"cuaudit.shard/1","tool":"0.9","plan":"HEX","round":1,"number":7,"of":8,"pieces":[...],"digest":"HEX"}}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/process/files.h"
#include "harness/process/status.h"
#include "harness/shards/shard_plan.h"
#include "harness/sweep/log_rows.h"

namespace cuaudit::harness {

struct WrittenPiece {
  Piece piece;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint64_t run = 0;  // trials that were run in `microseconds`; those taken from before a restart are not among them
  std::uint64_t microseconds = 0;
};

// The cycles of a case, which one shard carries out whole.
struct WrittenCycles {
  std::size_t in_case = 0;
  std::string report;  // JSON, as the report file of the case is
  std::string line;    // for stdout
  std::uint64_t defects = 0;
  int exit = 0;
  std::vector<std::string> unused_suppressions;
};

struct Shard {
  std::string path;
  std::uint64_t round = 0;
  std::uint64_t number = 0;
  std::uint64_t trials_digest = 0;  // of the lines of the trials
  std::vector<WrittenPiece> pieces;
  std::vector<WrittenCycles> cycles;
};

class ShardWriter {
 public:
  static Result<ShardWriter> Open(const std::string& path, const ShardPlan& plan, std::uint64_t number);
  // `trials` have their numbers in the case, in order; attempts that missed stand before the one that counts.
  Status Add(const Piece& piece, const std::vector<TrialResult>& trials, std::uint64_t run, std::uint64_t microseconds);
  void Add(WrittenCycles cycles) { shard_.cycles.push_back(std::move(cycles)); }
  Status Finish();

 private:
  Status Flush(std::size_t bytes);

  Shard shard_;
  const ShardPlan* plan_ = nullptr;
  FileDescriptor file_;
  std::string block_;
  std::uint64_t at_ = 0;
};

// The plans of all rounds, the first one first.
using Rounds = std::vector<ShardPlan>;

// Checks every byte of the file.
Result<Shard> OpenShard(const std::string& path, const Rounds& rounds);

// How long trials of the case took, of all shards in the directory of a plan; empty: it has none that says so.
std::optional<double> MicrosecondsOfTrial(const std::string& shards, const std::string& name);

// Appends the finished trials of a piece, attempts that missed among them.
Status ReadPiece(const Shard& shard, const WrittenPiece& piece, std::vector<TrialResult>* trials);

// The shards of a merge, and what is wrong with the files.
struct ShardSet {
  std::vector<std::vector<std::optional<Shard>>> rounds;  // by round from 0, by number
  std::vector<std::string> faults;                        // one line each: missing, duplicated, truncated, foreign, changed

  bool Whole(const ShardPlan& plan) const;  // all shards of that round that have work are there
};
ShardSet CollectShards(const std::vector<std::string>& files, const Rounds& rounds);

// The files *.shard of a directory, sorted.
std::vector<std::string> ShardFiles(const std::string& directory);

}  // namespace cuaudit::harness
