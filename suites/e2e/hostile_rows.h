// SPDX-License-Identifier: MIT
// hostile_rows.h: hostile programs, and what cuaudit must say of each: docs/ADVERSARIES.md is this table.
//
// Most programs tell one story (programs/hostile/hostile_story.h) in two forms. The careful one gives everything back when its event is
// refused. The other one loses its stream then. So each row shows twice that the hostile part hides nothing: no finding where nothing is
// lost, and the lost stream where it is.
#pragma once

namespace cuaudit::e2e::adversaries {

struct Said {
  int exit = -1;              // of cuaudit; -1: this form is not run
  const char* outcome = "";   // in the JSON report; "": none is written
  const char* findings = "";  // rule, kind and count, as Audit::findings has them
  const char* line = "";      // part of a line on stderr, or of the report's message
  const char* note = "";      // a rule among the notes
};

enum class Needs {
  Nothing,
  Mounts,  // a file system mounted in a user namespace, which some machines forbid
  Copy,    // the program is a copy in $DIR
  Time,    // CUAUDIT_ADVERSARIES=all in the environment: it takes many seconds
};

// What a row may end with besides what is said of it.
enum class Allows {
  Nothing,
  Refusal,  // the machine may not allow what the program does: the program alone, without cuaudit, exits with 77 then
  Child,    // `run` leaves a process alone that ends when nobody reads its output
};

struct Row {
  const char* program;
  const char* mode;
  const char* does;     // "The program ..."
  const char* command;  // $DIR: a directory of this row alone
  Said careful;
  Said loses = {};
  const char* around = "";  // a shell script that starts cuaudit: "$@"
  Needs needs = Needs::Nothing;
  Allows allows = Allows::Nothing;
};

// A row of another test: what it does, and which test holds it.
struct Elsewhere {
  const char* does;
  const char* test;
};

inline constexpr Elsewhere kElsewhere[] = {
    {"die: null page, overflow, division, a jump to nothing, bus error, trap, assert", "deaths_test.cc"},
    {"hang: in an event, beside another thread, in a loop, in a lock, with the signal taken by which they would be asked",
     "deaths_test.cc"},
    {"handle deadly signals themselves, on stacks of their own, and must not notice", "deaths_test.cc"},
    {"leave daemons behind: always, after a fault only, without any environment", "deaths_test.cc"},
    {"print 10 MB", "deaths_test.cc"},
    {"let children work that leave by exit, _exit, _Exit, quick_exit, the bare system call, SIGKILL, exec, vfork", "processes_test.cc"},
    {"fork beside threads that call the driver; have the smallest stacks that a thread may have", "processes_test.cc"},
    {"close all descriptors one by one, or start without stdout", "processes_test.cc"},
    {"shut themselves in: seccomp, no descriptor, no file, little address space", "processes_test.cc"},
    {"are no programs: missing, a directory, text, garbage behind an ELF magic", "input_test.cc"},
    {"change or cut the journal byte by byte", "input_test.cc"},
    {"open the driver by its absolute path, by RTLD_DEEPBIND, by DT_RPATH", "clients_test.cc"},
};

inline constexpr const char* kSweep = "sweep";  // of one trial, in which the event is refused: kSweepOptions
inline constexpr const char* kSweepOptions = "--depth 1 --no-shrink --call cuEventCreate";
inline constexpr const char* kReplay = "replay --fault cuMemAlloc#1=OUT_OF_MEMORY,refuse";
inline constexpr const char* kHang = "sweep --deadline-ms 500";
inline constexpr Said kClean = {0, "clean"};
inline constexpr Said kFound = {1, "findings", "orphaned stream 1"};
inline constexpr Said kHangs = {1, "findings", "hang  1"};
inline constexpr Said kCrashes = {1, "findings", "crash  1"};
inline constexpr Said kJournalGone = {3, "error", "", "the program removed or overwrote the journal of its audit"};
inline constexpr Said kNotJudged = {3, "not_exercised", "", "the program removed or overwrote its journal", "not_exercised"};

inline constexpr Row kRows[] = {
    // Deaths.
    {"hostile", "crash", "crashes once its memory is refused", kReplay, kCrashes},
    {"hostile", "abort", "aborts then", kReplay, {1, "findings", "abort  1"}},
    {"hostile", "kill", "kills itself by SIGKILL then", kReplay, kCrashes},
    {"hostile", "hang", "hangs then", "replay --deadline-ms 300 --fault cuMemAlloc#1=OUT_OF_MEMORY,refuse", kHangs},
    {"hostile", "always_crash", "crashes whatever happens", kSweep, {3, "error", "", "died of signal 11"}},
    {"hostile", "always_hang", "hangs whatever happens", "sweep --deadline-ms 300", {3, "error", "", "did not finish within 300 ms"}},
    {"hostile", "give_up", "exits with an error right after the fault", kReplay, {0, "clean", "", "", "abandoned_at_exit"}},
    {"hostile", "half_exit", "does so, and its exit handler releases half", kReplay, {0, "clean", "", "", "abandoned_at_exit"}},
    {"hostile", "leave", "does so by _exit", kReplay, {0, "clean", "", "", "abandoned_at_exit"}},
    {"hostile", "shrug", "exits with success right after the fault", kReplay, {1, "findings", "leak context 1, leak stream 1"}},
    {"hostile",
     "other",
     "ends with status 7 whatever happens",
     kSweep,
     {3, "error", "", "exited with status 7, expected exit status 0 (--expect-exit)"}},
    // Processes.
    {"hostile_processes", "double_fork", "works in a grandchild of another session, whose parent is gone", kSweep, kClean, kFound},
    {"hostile_processes", "double_fork", "does so where its host resources are judged, too", "sweep --host", kClean, kFound},
    {"hostile_processes", "daemon_holds", "leaves a daemon that holds a context, a stream and an event for ever", kSweep, kClean},
    {"hostile_processes",
     "daemon_holds",
     "does the same where nothing is made to fail",
     "run",
     {1, "left", "left_at_exit event 1, left_at_exit primary_context 1, left_at_exit stream 1", "left running"},
     {},
     "",
     Needs::Nothing,
     Allows::Child},
    {"hostile_processes", "vfork_exec", "works in a program that a child of vfork executes", kSweep, kClean, kFound},
    {"hostile_processes", "clone3", "works in a child made by the bare system call clone3", kSweep, kClean, kFound, "", Needs::Nothing,
     Allows::Refusal},
    {"hostile_processes", "clone3_inherits", "makes a child by clone3 that destroys the stream of its parent", kSweep, kClean, kFound, "",
     Needs::Nothing, Allows::Refusal},
    {"hostile_processes", "clone_vm", "works in a child that shares its memory (CLONE_VM)", kSweep, kClean, kFound},
    {"hostile_processes", "exec_while_holding", "executes itself while it holds a context and a stream", kSweep, kClean, kFound},
    {"hostile_processes",
     "exec_while_holding",
     "does the same where nothing is made to fail",
     "run",
     {1, "left", "left_at_exit primary_context 1, left_at_exit stream 1"}},
    {"hostile_processes", "many_children", "works in 16 children at the same time", "replay --fault cuEventCreate#1=OUT_OF_MEMORY,refuse",
     kClean, kFound},
    {"hostile_processes", "unwaited_child", "ignores SIGCHLD, so that the kernel reaps its children", kSweep, kClean, kFound},
    {"hostile_processes", "pid_namespace", "works in a child that is process 1 of a namespace of its own", kSweep, kClean, kFound, "",
     Needs::Nothing, Allows::Refusal},
    {"hostile_processes", "no_proc", "hides /proc from itself before it calls the driver", kSweep, kClean, kFound, "", Needs::Nothing,
     Allows::Refusal},
    {"hostile_processes", "jail", "enters a directory without /proc by chroot", kSweep, kClean, kFound, "", Needs::Nothing,
     Allows::Refusal},
    {"hostile_processes", "undumpable", "forbids others to look into it (PR_SET_DUMPABLE)", kSweep, kClean, kFound},
    {"hostile_processes", "joins_our_group", "joins the process group of cuaudit and hangs", kHang, kHangs},
    {"hostile_processes", "stops", "stops itself (SIGSTOP)", kHang, kHangs},
    {"hostile_processes", "traced", "lets its parent trace it and waits for it", kHang, kHangs},
    // Signals.
    {"hostile_signals", "takes_all", "has a handler for each of 64 signals", kSweep, kClean, kFound},
    {"hostile_signals", "blocks_all", "blocks all signals and hangs", kHang, kHangs},
    {"hostile_signals", "timer", "is interrupted by a timer 5,000 times a second", kSweep, kClean, kFound},
    {"hostile_signals", "jumps_over_release", "leaves the failing function by longjmp", kSweep, kClean, kFound},
    {"hostile_signals", "jumps_out_of_driver", "leaves cuMemcpyHtoD by siglongjmp from a handler of SIGSEGV: its lock stays taken", kHang,
     kHangs},
    {"hostile_signals", "faults_for_ever", "has a handler of SIGSEGV that returns to the bad access", kHang, kHangs},
    {"hostile_signals", "core_limit", "allows core files of one byte and crashes", kSweep, kCrashes},
    {"hostile_signals", "cpu_limit", "allows itself one second of processor time and spins", "sweep --isolation=spawn --deadline-ms=60000",
     kCrashes},
    {"hostile_signals",
     "sandbox",
     "forbids itself to open files, on pain of death (seccomp)",
     kSweep,
     {3, "error", "",
      "Bad system call), expected exit status 0 (--expect-exit); its standard input was empty; a sandbox of its own may forbid what the "
      "host probes do: try --no-host"}},
    {"hostile_signals", "sandbox", "does so where cuaudit opens none either", "sweep --no-host", kClean, kFound},
    {"hostile_signals", "kills_us", "sends SIGTERM to cuaudit", kSweep, {143, "interrupted"}},
    {"hostile_signals", "kills_group", "sends SIGTERM to its process group, cuaudit included", "run", {143, "interrupted"}},
    // Memory.
    {"hostile_memory",
     "protects",
     "makes each shared mapping that it finds read-only: the journal, too",
     kSweep,
     {3, "error", "", "died of signal 11"}},
    {"hostile_memory", "unmaps", "unmaps each shared mapping that it finds", kSweep, {3, "error", "", "died of signal 11"}},
    {"hostile_memory", "scribbles", "writes over each shared mapping that it finds", kSweep, kJournalGone},
    {"hostile_memory", "scribbles_later", "does so once its event is refused", kSweep, kNotJudged},
    {"hostile_memory", "forks_1_a5", "writes over the tree of forks that it shares with cuaudit, and over nothing else", kSweep, kClean,
     kFound},
    {"hostile_memory", "forks_1_0", "clears the tree of forks", kSweep, kClean, kFound},
    {"hostile_memory", "forks_2_a5", "writes over the slots of forks, and over nothing else", kSweep, kClean, kFound},
    {"hostile_memory", "forks_2_0", "clears the slots of forks", kSweep, kClean, kFound},
    {"hostile_memory", "forks_held", "marks every slot in which a fork notes itself as taken", "sweep --deadline-ms 1000", kClean, kFound},
    {"hostile_memory", "forks_cut", "cuts the file of forks to nothing", kSweep, kClean, kFound},
    {"hostile_memory", "no_more", "leaves itself no further address space", kSweep, kClean, kFound},
    {"hostile_memory", "objects_100000", "has 100,000 events at once", "run", kClean, {1, "left", "left_at_exit event 100000"}},
    {"hostile_memory",
     "objects_1000000",
     "has 1,000,000 events at once",
     "run",
     kClean,
     {1, "left", "left_at_exit event 1000000"},
     "",
     Needs::Time},
    // Files.
    {"hostile_files", "closes_all", "closes all descriptors (close_range)", kSweep, kClean, kFound},
    {"hostile_files", "wipes_environment", "clears its environment and the memory behind it", kSweep, kClean, kFound},
    {"hostile_files", "journal_removed", "removes the journal", kSweep, kJournalGone},
    {"hostile_files", "journal_is_pipe", "puts a pipe in place of the journal", kSweep, kJournalGone},
    {"hostile_files", "journal_is_directory", "puts a directory in place of the journal", kSweep, kJournalGone},
    {"hostile_files", "journal_removed_later", "removes the journal once its event is refused", "sweep --isolation=spawn", kNotJudged},
    {"hostile_files", "journal_removed_later", "does so in a forked copy, whose records are elsewhere", kSweep, kClean, kFound},
    {"hostile_files", "truncates_journal", "truncates the journal to nothing", kSweep, kJournalGone},
    {"hostile_files",
     "prints_bytes",
     "prints control sequences and bytes that are no text, and fails",
     kSweep,
     {3, "error", "", "\\x1b[2J"}},
    {"hostile_files", "removes_itself", "removes its own file", "run", kClean, {}, "", Needs::Copy},
    {"hostile_files",
     "fills_disk",
     "fills the disk that the work directory is on",
     "sweep --work-dir $DIR/disk",
     {125, "error", "", "No space left on device"},
     {},
     "exec unshare -r -m /bin/sh -c 'mount -t tmpfs -o size=8m tmpfs \"$DIR/disk\" && cd \"$DIR/disk\" && exec \"$@\"' sh \"$@\"",
     Needs::Mounts},
    {"threads",
     "",
     "writes more records than the disk holds",
     "run --work-dir $DIR/disk",
     {125, "error", "", "no space left for the journal"},
     {},
     "exec unshare -r -m /bin/sh -c 'mount -t tmpfs -o size=256k tmpfs \"$DIR/disk\" && exec \"$@\"' sh \"$@\"",
     Needs::Mounts},
    {"hostile_files",
     "plain",
     "is audited in a read-only work directory",
     "sweep --work-dir $DIR/disk",
     {2, "", "", "Read-only file system"},
     {},
     "exec unshare -r -m /bin/sh -c 'mount -t tmpfs -o ro tmpfs \"$DIR/disk\" && exec \"$@\"' sh \"$@\"",
     Needs::Mounts},
    // Threads.
    {"hostile_threads", "thousand", "has 1,000 threads at once, each with a stream", kSweep, kClean, kFound, "", Needs::Nothing,
     Allows::Refusal},
    {"hostile_threads", "cancelled", "cancels the thread that works (pthread_cancel)", kSweep, kClean, kFound},
    {"hostile_threads", "left_running", "ends while 3 threads call the driver", kSweep, kClean, kFound},
    {"hostile_threads", "main_leaves", "ends its first thread; another one works and exits", kSweep, kClean, kFound},
    {"hostile_threads", "exits_in_thread", "exits from a thread while the first one waits", kSweep, kClean, kFound},
    {"hostile_threads", "own_stack", "calls the driver on a stack of its own (swapcontext)", kSweep, kClean, kFound},
    {"hostile_threads", "key_destructor", "releases in the destructor of a thread's key", kSweep, kClean, kFound},
    // Loading.
    {"hostile_loading", "unloads", "loads and unloads its driver three times (dlclose)", kSweep, kClean, kFound},
    {"hostile_loading", "dlmopen", "loads its driver in name spaces of their own (dlmopen)", kSweep, kClean, kFound},
    {"hostile_loading",
     "bare_exec",
     "executes itself where the environment leads to another driver",
     kSweep,
     {3, "not_exercised", "", "never called the CUDA driver"}},
    {"hostile_loading",
     "destructor",
     "releases in a destructor of the executable, after all exit handlers",
     kSweep,
     kClean,
     {3, "not_exercised", "", "", "abandoned_at_exit"}},
    {"hostile_own_getenv", "plain", "has a getenv of its own that knows no variable", kSweep, {3, "not_exercised", "", "never entered"}},
    {"client_static_pie", "", "is a static-pie that loads the driver", "run", kClean},
    // What is around cuaudit.
    {"hostile_files",
     "plain",
     "is audited by a cuaudit that may write files of 1 KiB",
     kSweep,
     {125, "", "", "ulimit -f"},
     {},
     "ulimit -f 1; exec \"$@\""},
    {"hostile_files",
     "plain",
     "is audited by a cuaudit with 8 descriptors",
     kSweep,
     {125, "error", "", "Too many open files"},
     {},
     "ulimit -n 8; exec \"$@\""},
    {"hostile_files", "plain", "is audited by a cuaudit without standard streams", kSweep, kClean, kFound, "exec \"$@\" 0<&- 1>&- 2>&-"},
    {"hostile",
     "always_crash",
     "crashes under a cuaudit that was told to ignore SIGCHLD",
     "run",
     kCrashes,
     {},
     "exec env --ignore-signal=CHLD \"$@\""},
    {"hostile_files", "plain", "is audited by a cuaudit that was told to ignore SIGCHLD", kSweep, kClean, kFound,
     "exec env --ignore-signal=CHLD \"$@\""},
    {"hostile_signals",
     "core_limit",
     "is audited by a cuaudit that was told to ignore SIGCHLD",
     kSweep,
     kCrashes,
     {},
     "exec env --ignore-signal=CHLD \"$@\""},
    {"hostile_files",
     "plain",
     "is audited with a configuration that is a program",
     "run --config $DIR/config",
     {2, "", "", "expected text, options in TOML"},
     {},
     "head -c 400 /bin/sh > \"$DIR/config\"; exec \"$@\""},
};

}  // namespace cuaudit::e2e::adversaries
