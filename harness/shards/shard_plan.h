// SPDX-License-Identifier: MIT
// shard_plan.h: what is cut into shards: the trials of one round of each case, and how many shards there are.
//
//   Threads   one thread.
//   Errors    one line: file, what was expected. A plan is written whole or not at all.
//
// A plan is a directory:
//
//     round-1.json          the first faults: cases with their settings, number of trials, digests
//     round-1/CASE.trials   one line for each trial: "cuInit#1=NOT_INITIALIZED,refuse site=8c1f0be3a5d29e47"
//     round-2.json, ...     the second faults, once all shards of the first round are there (`cuaudit plan PLAN`)
//     cases/CASE/           the fault-free runs, beside which every trial is judged on whichever machine
//     shards/1-0007.shard   the result of shard 7 of round 1 (shard_file.h)
//     work/1-0007/          the unfinished work of that shard
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/options/options.h"
#include "harness/process/files.h"
#include "harness/process/status.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

inline constexpr std::uint64_t kMostShards = 100000;
inline constexpr const char* kOnlyCase = "program";  // name of the case of `cuaudit plan -- PROGRAM`

// The fault-free runs of a case, beside which every trial is judged: a digest of each file, by its name.
using RunDigests = std::map<std::string, std::uint64_t>;

struct PlannedCase {
  std::string name;
  std::vector<std::string> tags;
  Options options;            // the program and the keys of cuaudit.toml
  std::uint64_t subject = 0;  // program, fault-free run and settings: the subject in plan.txt of a sweep (plan_file.h)
  std::uint64_t first = 0;    // number of the first trial of this round
  std::uint64_t trials = 0;   // of this round
  std::uint64_t digest = 0;   // of the lines of CASE.trials
  std::uint64_t weight = 1;   // of one trial beside those of other cases: its microseconds, or the calls of the fault-free run
  RunDigests runs;            // the fault-free runs
  std::string cycles;         // the counts of --n; empty: none. The shard that has the first trial carries the cycles out
};

struct ShardPlan {
  std::string tool;      // version
  bool project = false;  // the cases of a cuaudit.toml, whose reports go to a result directory
  std::uint64_t round = 1;
  std::uint64_t shards = 1;
  std::uint64_t before = 0;  // digest of the plan of the round before
  std::vector<PlannedCase> cases;
  std::uint64_t digest = 0;  // of everything above; set by Seal, ParseShardPlan and WriteShardPlan

  void Seal();
};

// Trials of one case that a shard has.
struct Piece {
  std::size_t in_case = 0;  // number of the case
  std::uint64_t from = 0;   // number of the first trial in the case
  std::uint64_t trials = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

// The pieces of shard `number`. All shards together have each trial once, in order, and about the same weight.
std::vector<Piece> PiecesOf(const ShardPlan& plan, std::uint64_t number);

// Whether shard `number` has trials or cycles to carry out. There may be more shards than trials: nobody needs those without.
bool HasWork(const ShardPlan& plan, std::uint64_t number);

// Paths in the directory of a plan.
class PlanFolder {
 public:
  explicit PlanFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const noexcept { return path_; }
  std::string Round(std::uint64_t round) const;
  std::string Trials(std::uint64_t round, const std::string& name) const;
  std::string Case(const std::string& name) const { return path_ + "/cases/" + name; }
  std::string Shards() const { return path_ + "/shards"; }
  std::string Shard(std::uint64_t round, std::uint64_t number) const;
  std::string Work(std::uint64_t round, std::uint64_t number) const;
  std::uint64_t LastRound() const;  // 0: there is none

 private:
  std::string path_;
};

// 16 hexadecimal digits.
std::optional<std::uint64_t> ParseDigest(std::string_view digits);
// Words that are not UTF-8 would not come back as they were.
bool CanBeWritten(const PlannedCase& one);
std::string FormatShardPlan(const ShardPlan& plan);
Result<ShardPlan> ParseShardPlan(std::string_view text, const std::string& name);

// Refuses the plan of another version of the tool.
Result<ShardPlan> ReadShardPlan(const PlanFolder& folder, std::uint64_t round);
Status WriteShardPlan(const PlanFolder& folder, ShardPlan* plan);

// Of all files of the directory but logs and locks. A file and its copy without holes have the same digest.
Result<RunDigests> DigestRuns(const std::string& directory);

// Names the first file that is changed, missing or not of the plan.
Status CheckRuns(const std::string& directory, const RunDigests& planned);

// Makes the folder of `path`, and in it the empty file `path`.partial, which is to be renamed when it is whole.
Result<FileDescriptor> OpenPartial(const std::string& path);

// The lines of CASE.trials. They go into the file as they are made, which gets its name when the last one is written. A file that is not
// finished is removed.
class TrialLines {
 public:
  TrialLines(TrialLines&&) = default;
  TrialLines& operator=(TrialLines&&) = delete;
  ~TrialLines();

  static std::string Line(const PlannedTrial& trial);
  static Result<TrialLines> Open(const std::string& path);
  void Add(const PlannedTrial& trial) { Append(Line(trial)); }
  void Add(std::string_view fault, std::uint64_t site);  // a trial with this one fault
  Result<std::uint64_t> Finish();                        // answers the digest

  static Result<std::uint64_t> Write(const std::string& path, const std::vector<PlannedTrial>& trials);
  // Reads `piece`; checks that the whole file is what the plan says.
  static Result<std::vector<PlannedTrial>> Read(const std::string& path, const PlannedCase& one, const Piece& piece);

 private:
  TrialLines() = default;
  void Append(std::string_view line);
  void WriteBlock();

  std::string path_;
  FileDescriptor file_;
  std::uint64_t hash_ = 0;
  std::string block_;  // what is not written yet
  std::string line_;
  Status status_;  // of writing
};

// The shell script that has Slurm carry out a plan. It submits four jobs, each after the one before it: the array of the first faults, the
// plan of the second ones, their array, the merge. Slurm is the scheduler; the script ends at once. A task that was killed or requeued goes
// on with its shard where it was, and a merge runs even when a shard has failed, so that its report names it. In slurm_script.cc.
struct SlurmRequest {
  std::string tool;                 // path of cuaudit
  std::string plan;                 // path of the plan
  std::string directory;            // where the commands of the plan run
  std::vector<std::string> sbatch;  // further options of all jobs
};

// Cases on a genuine driver ask for a GPU.
std::string SlurmScript(const ShardPlan& plan, const SlurmRequest& request);

}  // namespace cuaudit::harness
