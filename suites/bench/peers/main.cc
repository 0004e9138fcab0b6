// SPDX-License-Identifier: MIT
// Allocators side by side in one process: rows of a table, one per peer, loop and number of threads. See README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <thread>

#include "suites/bench/peers/loops.h"

namespace {

using namespace cuaudit::bench;

struct Choice {
  std::string directory = ".";
  std::string output;
  std::string trace;
  std::string recorded;
  std::vector<std::string> settings = {"policy:poll", "policy:wait"};
  std::vector<std::string> loops;  // empty: all
  double seconds_per_row = 0.12;
  double budget_seconds = 200;
  std::uint64_t split_merge_cycles = 10'000'000;
  int rounds = 3;
  int max_threads = 16;
  int device = 0;
  bool has_work = false;
  bool Wants(const std::string& loop) const { return loops.empty() || std::find(loops.begin(), loops.end(), loop) != loops.end(); }
};

const std::vector<std::string>& Loops() {
  static const std::vector<std::string> loops = {"pair",           "mixed",         "shared_stream",  "free_elsewhere",
                                                 "training_trace", "serving_trace", "recorded_trace", "record",
                                                 "record_alone",   "record_paired", "cuEventRecord",  "split_and_merge"};
  return loops;
}

// A failure in a cell of the table.
std::string OneLine(std::string text) {
  text = text.substr(0, text.find('\n'));
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text.substr(0, 300);
}

class Table {
 public:
  explicit Table(std::FILE* file) : file_(file) {
    std::fprintf(
        file_,
        "round\tpeer\tloop\tbytes\tthreads\tuses\tstate\toperations\tmean_ns\tmedian_ns\tp99_ns\tmops\tasked_peak\treserved_peak\tnote\n");
  }
  void set_round(int round) { round_ = round; }
  void Row(const std::string& peer, const std::string& loop, std::size_t bytes, int threads, int uses, const char* state,
           const Figures& figures, std::size_t asked_peak = 0, std::size_t reserved_peak = 0, const std::string& note = "") {
    std::fprintf(file_, "%d\t%s\t%s\t%zu\t%d\t%d\t%s\t", round_, peer.c_str(), loop.c_str(), bytes, threads, uses, state);
    if (figures.failure.empty() && figures.operations > 0) {
      std::fprintf(file_, "%llu\t%.1f\t%.1f\t%.1f\t%.4f\t", static_cast<unsigned long long>(figures.operations), figures.mean_ns,
                   figures.median_ns, figures.p99_ns, figures.millions_per_second);
    } else {
      std::fprintf(file_, "0\t\t\t\t\t");
    }
    if (asked_peak != 0) {
      std::fprintf(file_, "%zu\t%zu\t", asked_peak, reserved_peak);
    } else {
      std::fprintf(file_, "\t\t");
    }
    std::fprintf(file_, "%s\n", figures.failure.empty() ? note.c_str() : OneLine(figures.failure).c_str());
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
  int round_ = 0;
};

// One row's figures; what a peer throws is the row's failure.
template <typename Loop>
Figures Tried(Loop loop) {
  try {
    return loop();
  } catch (const std::exception& error) {
    return {.failure = std::string("threw: ") + error.what()};
  } catch (...) {
    return {.failure = "threw"};
  }
}

// A peer's own part, outside the rows.
void Empty(const Peer& peer) noexcept {
  try {
    peer.empty();
  } catch (...) {
    std::fprintf(stderr, "allocator_peers: %s: emptying its cache threw\n", peer.name);
  }
}

std::string OneDigit(double number) {
  char text[32];
  (void)std::snprintf(text, sizeof(text), "%.1f", number);
  return text;
}

std::string Text(const Differences& of) {
  return " p10 " + OneDigit(of.tenth_ns) + " p25 " + OneDigit(of.quarter_ns) + " p50 " + OneDigit(of.median_ns) + " p75 " +
         OneDigit(of.three_quarters_ns);
}

std::vector<int> ThreadCounts(int highest) {
  std::vector<int> counts;
  for (int threads = 1; threads <= highest; threads *= 2) counts.push_back(threads);
  return counts;
}

struct NamedTrace {
  const char* name;
  Trace trace;
};

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

Budget OneRow(const Choice& choice) { return {.nanoseconds = static_cast<std::uint64_t>(choice.seconds_per_row * 1e9)}; }

void PairRows(Stage* stage, const Entrant& entrant, const Choice& choice, bool is_plain, Table* table) {
  for (const std::size_t bytes : {std::size_t{512}, 64 * kKiB, kMiB, 8 * kMiB, 64 * kMiB}) {
    for (const int threads : ThreadCounts(choice.max_threads)) {
      if (is_plain && (threads > 2 || bytes != 64 * kKiB)) continue;
      table->Row(entrant.label, "pair", bytes, threads, 0, "",
                 Tried([&] { return Pair(stage, entrant, bytes, threads, false, OneRow(choice)); }));
    }
    Empty(*entrant.peer);
  }
}

void MixedRows(Stage* stage, const Entrant& entrant, const Choice& choice, Table* table) {
  for (const int threads : ThreadCounts(choice.max_threads)) {
    if (choice.Wants("mixed"))
      table->Row(entrant.label, "mixed", 0, threads, 0, "", Tried([&] { return Mixed(stage, entrant, threads, OneRow(choice)); }));
    if (threads == 1) continue;
    if (choice.Wants("shared_stream"))
      table->Row(entrant.label, "shared_stream", 64 * kKiB, threads, 0, "",
                 Tried([&] { return Pair(stage, entrant, 64 * kKiB, threads, true, OneRow(choice)); }));
    if (choice.Wants("free_elsewhere"))
      table->Row(entrant.label, "free_elsewhere", 64 * kKiB, threads, 0, "",
                 Tried([&] { return FreeElsewhere(stage, entrant, 64 * kKiB, threads, OneRow(choice)); }));
  }
  Empty(*entrant.peer);
}

void TraceRow(Stage* stage, const Entrant& entrant, const Choice& choice, const NamedTrace& each, bool is_working, Table* table) {
  Replayed replayed;
  const Figures figures = Tried([&] {
    replayed = Replay(stage, entrant, each.trace, is_working, OneRow(choice));
    return replayed.figures;
  });
  table->Row(entrant.label, each.name, 0, 1, 0, is_working ? "working" : "", figures, each.trace.peak_bytes,
             replayed.has_usage ? replayed.usage.reserved_peak : 0,
             entrant.peer->record == nullptr ? "uses are left out: the peer knows none" : "");
}

void RecordRows(Stage* stage, const Entrant& entrant, const Choice& choice, Table* table) {
  for (const int uses : {0, 1, 4})
    table->Row(entrant.label, "record", 64 * kKiB, 1, uses, "ready",
               Tried([&] { return Recorded(stage, entrant, uses, false, OneRow(choice)); }));
  for (const int uses : {1, 4}) {
    table->Row(entrant.label, "record", 64 * kKiB, 1, uses, "held",
               Tried([&] { return Recorded(stage, entrant, uses, true, OneRow(choice)); }));
    Empty(*entrant.peer);
  }
}

void PairedRows(Stage* stage, const Entrant& entrant, const Choice& choice, Table* table) {
  for (const int others : {0, 1, 4}) {
    Paired paired;
    const Figures figures = Tried([&] {
      paired = RecordPaired(stage, entrant, others, {.nanoseconds = 4 * OneRow(choice).nanoseconds});
      return paired.record;
    });
    table->Row(entrant.label, "record_paired", 64 * kKiB, 1, others, others == 0 ? "ready" : "held", figures, 0, 0,
               "beyond cuEventRecord" + Text(paired.beyond) + "; cuEventRecord beyond itself" + Text(paired.noise) +
                   "; cuEventRecord p50 " + OneDigit(paired.event_record_ns));
    Empty(*entrant.peer);
  }
}

void Rows(Stage* stage, const Entrant& entrant, const Choice& choice, const std::vector<NamedTrace>& traces, Table* table) {
  const bool is_plain = entrant.label == "cudaMalloc";  // no cache: a few rows say it all
  if (choice.Wants("pair")) PairRows(stage, entrant, choice, is_plain, table);
  if (is_plain) return;
  MixedRows(stage, entrant, choice, table);
  for (const NamedTrace& each : traces) {
    if (!choice.Wants(each.name)) continue;
    TraceRow(stage, entrant, choice, each, false, table);
    if (choice.has_work) TraceRow(stage, entrant, choice, each, true, table);
  }
  if (entrant.peer->record == nullptr) return;
  if (choice.Wants("record")) RecordRows(stage, entrant, choice, table);
  if (choice.Wants("record_alone"))
    table->Row(entrant.label, "record_alone", 64 * kKiB, 1, 1, "ready", Tried([&] { return RecordAlone(stage, entrant, OneRow(choice)); }));
  if (choice.Wants("record_paired")) PairedRows(stage, entrant, choice, table);
}

void StateRow(const Entrant& entrant, const Choice& choice, Table* table) {
  if (entrant.peer->counters == nullptr || choice.split_merge_cycles == 0) return;
  Bounded bounded;
  Figures figures = Tried([&] {
    bounded = SplitAndMerge(entrant, choice.split_merge_cycles, 25'000'000'000ULL);
    return Figures();
  });
  figures.operations = bounded.cycles;
  figures.mean_ns = bounded.mean_ns;
  const std::string note = "resident +" + std::to_string(bounded.resident_growth_kib) + " KiB from a tenth on; events " +
                           std::to_string(bounded.counters.events_live) + ", blocks pending " +
                           std::to_string(bounded.counters.blocks_pending) + ", segments " + std::to_string(bounded.counters.segments) +
                           (bounded.failure.empty() ? "" : "; " + bounded.failure);
  table->Row(entrant.label, "split_and_merge", 0, 1, 2, "ready", figures, 0, 0, note);
  Empty(*entrant.peer);
}

int Compare(const Choice& choice) {
  std::vector<NamedTrace> traces = {{"training_trace", TrainingTrace()}, {"serving_trace", ServingTrace()}};
  if (!choice.recorded.empty()) {
    traces.push_back({"recorded_trace", {}});
    if (const std::string wrong = ReadTrace(choice.recorded, &traces.back().trace); !wrong.empty()) {
      std::fprintf(stderr, "allocator_peers: %s\n", wrong.c_str());
      return 2;
    }
  }
  std::FILE* const file = choice.output.empty() ? stdout : std::fopen(choice.output.c_str(), "we");
  if (file == nullptr) {
    std::fprintf(stderr, "allocator_peers: %s cannot be written\n", choice.output.c_str());
    return 2;
  }
  Stage stage;
  if (const std::string wrong = stage.Open(choice.device); !wrong.empty()) {
    std::fprintf(stderr, "allocator_peers: %s\n", wrong.c_str());
    return 77;
  }
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm broken = {};
  (void)std::strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &broken));
  std::fprintf(file, "# date %s; device %s; %u cores; nanoseconds; an operation is an allocation with its free\n", date,
               stage.device_text().c_str(), std::thread::hardware_concurrency());
  std::vector<Entrant> entrants;
  for (const std::string& settings : choice.settings)
    entrants.push_back({"cuaudit " + settings, choice.directory + "/libpeer_ours.so", settings, nullptr, {}, ""});
  for (const auto& [label, library] : {std::pair<const char*, const char*>("cuaudit plug-in", "plug_in"),
                                       {"pytorch", "torch"},
                                       {"cub", "cub"},
                                       {"cudaMallocAsync", "async"},
                                       {"cudaMalloc", "plain"}}) {
    entrants.push_back({label, choice.directory + "/libpeer_" + library + ".so", "", nullptr, {}, ""});
  }
  for (Entrant& entrant : entrants) {
    stage.Load(&entrant);
    std::fprintf(file, "# peer %s: %s\n", entrant.label.c_str(),
                 entrant.peer == nullptr ? entrant.failure.c_str() : entrant.peer->version());
    std::fprintf(stderr, "allocator_peers: %s: %s\n", entrant.label.c_str(), entrant.peer == nullptr ? entrant.failure.c_str() : "ready");
  }
  for (const NamedTrace& each : traces)
    std::fprintf(file, "# %s: %zu allocations, peak %zu bytes\n", each.name, each.trace.allocations, each.trace.peak_bytes);
  Table table(file);
  const std::uint64_t start = Now();
  const auto is_late = [&](double share) { return static_cast<double>(Now() - start) > choice.budget_seconds * 1e9 * share; };
  for (int round = 1; round <= choice.rounds && !is_late(0.8); ++round) {
    table.set_round(round);
    for (const int threads : ThreadCounts(choice.Wants("cuEventRecord") ? choice.max_threads : 0)) {
      table.Row("driver", "cuEventRecord", 0, threads, 0, "ready", EventRecord(&stage, threads, OneRow(choice)));
    }
    // Another peer begins each round, so that none always meets the same neighbour.
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      const Entrant& entrant = entrants[(i + static_cast<std::size_t>(round) - 1) % entrants.size()];
      if (entrant.peer == nullptr) {
        if (round == 1) table.Row(entrant.label, "", 0, 0, 0, "", {.failure = entrant.failure});
        continue;
      }
      if (!is_late(1)) Rows(&stage, entrant, choice, traces, &table);
    }
    std::fprintf(stderr, "allocator_peers: round %d done after %.0f s\n", round, static_cast<double>(Now() - start) / 1e9);
  }
  for (const Entrant& entrant : entrants) {
    if (entrant.peer != nullptr && choice.Wants("split_and_merge")) StateRow(entrant, choice, &table);
  }
  return std::ferror(file) != 0 || (file != stdout && std::fclose(file) != 0) ? 2 : 0;
}

int PrintTrace(const std::string& name) {
  const Trace trace = name == "training" ? TrainingTrace() : ServingTrace();
  for (const TraceOp& op : trace.ops) {
    const char* const kind = op.kind == TraceKind::Allocate ? "allocate" : op.kind == TraceKind::Free ? "free" : "use";
    std::printf("%s\t%u\t%u\t%zu\n", kind, op.block, op.stream, op.bytes);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  Choice choice;
  CLI::App app("Allocators side by side: PyTorch, CUB, cudaMallocAsync, cudaMalloc and ours, the same loops in one process");
  app.add_option("--peers", choice.directory, "directory of the libpeer_*.so")->check(CLI::ExistingDirectory);
  app.add_option("--output", choice.output, "file for the table; default stdout");
  app.add_option("--settings", choice.settings, "settings of ours, each a peer of its own");
  app.add_option("--loops", choice.loops, "these alone, between commas; default all")->delimiter(',')->check(CLI::IsMember(Loops()));
  app.add_option("--seconds-per-row", choice.seconds_per_row)->check(CLI::Range(0.001, 60.0));
  app.add_option("--budget-seconds", choice.budget_seconds, "no new round after 0.8 of it, no new peer after all of it")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--split-merge-cycles", choice.split_merge_cycles);
  app.add_option("--rounds", choice.rounds)->check(CLI::Range(1, 100));
  app.add_option("--max-threads", choice.max_threads)->check(CLI::Range(1, kMaxStreams));
  app.add_option("--device", choice.device)->check(CLI::Range(0, 63));
  app.add_option("--recorded-trace", choice.recorded, "file with a recorded trace, for rows of that name")->check(CLI::ExistingFile);
  app.add_flag("--working", choice.has_work, "traces also with a device that writes each block once");
  app.add_option("--print-trace", choice.trace, "writes a trace and ends")->check(CLI::IsMember({"training", "serving"}));
  CLI11_PARSE(app, count, arguments);
  return choice.trace.empty() ? Compare(choice) : PrintTrace(choice.trace);
}
