// SPDX-License-Identifier: MIT
// blame.c: ways of losing something in C, each with a repaired twin. See blame.h.
#include "blame.h"

int wrong;

// early_return: the second of two fails.
static int pair_open(Pair *pair) {
  if (failed(cuStreamCreate(&pair->stream, 0))) return 1;
  if (failed(cuEventCreate(&pair->event, 0))) {
    if (!wrong) cuStreamDestroy(pair->stream);
    return 1;
  }
  return 0;
}
static int early_return(void) {
  Pair pair;
  if (pair_open(&pair)) return 1;
  return pair_close(&pair);
}

// wrong_label: the way out jumps over one release.
static int labels_run(void) {
  Pair pair;
  CUdeviceptr memory;
  int status = 1;
  if (failed(cuStreamCreate(&pair.stream, 0))) return 1;
  if (failed(cuEventCreate(&pair.event, 0))) goto no_event;
  if (failed(cuMemAlloc(&memory, 4096))) {
    if (wrong) goto no_event;
    goto no_memory;
  }
  status = failed(cuMemsetD8(memory, 0, 4096));
  status |= failed(cuMemFree(memory));
no_memory:
  status |= failed(cuEventDestroy(pair.event));
no_event:
  status |= failed(cuStreamDestroy(pair.stream));
  return status;
}
static int wrong_label(void) { return labels_run(); }

// nested_helper: a helper that makes a stream for its caller is innocent.
static CUstream make_stream(void) {
  CUstream stream;
  return failed(cuStreamCreate(&stream, 0)) ? NULL : stream;
}
static int make_two(CUstream *one, CUstream *two) {
  *one = make_stream();
  if (*one == NULL) return 1;
  *two = make_stream();
  if (*two == NULL && !wrong) cuStreamDestroy(*one);
  return *two == NULL;
}
static int nested_helper(void) {
  CUstream one, two;
  int bad;
  if (make_two(&one, &two)) return 1;
  bad = failed(cuStreamDestroy(two));
  return bad | failed(cuStreamDestroy(one));
}

// nested_caller: two helpers that clean up after themselves, and a caller that does not.
static int session_run(void) {
  Pair first;
  CUdeviceptr memory;
  int bad;
  first.stream = make_stream();
  if (first.stream == NULL) return 1;
  if (failed(cuMemAlloc(&memory, 64))) {
    if (!wrong) cuStreamDestroy(first.stream);
    return 1;
  }
  bad = failed(cuMemFree(memory));
  return bad | failed(cuStreamDestroy(first.stream));
}
static int nested_caller(void) { return session_run(); }

// half_close: a tear-down that stops at its first error.
static int half_close_pair(Pair *pair) {
  if (failed(cuEventDestroy(pair->event))) {
    if (!wrong) cuStreamDestroy(pair->stream);
    return 1;
  }
  return failed(cuStreamDestroy(pair->stream)) ? 1 : 0;
}
static int half_close(void) {
  Pair pair;
  if (failed(cuStreamCreate(&pair.stream, 0))) return 1;
  if (failed(cuEventCreate(&pair.event, 0))) {
    cuStreamDestroy(pair.stream);
    return 1;
  }
  return half_close_pair(&pair);
}

// loop_inside: a function that fills an array and returns at the first failure.
enum { kStreams = 3 };
static int streams_open(CUstream *streams) {
  int i;
  for (i = 0; i < kStreams; ++i) {
    if (failed(cuStreamCreate(&streams[i], 0))) {
      while (!wrong && i-- > 0) cuStreamDestroy(streams[i]);
      return 1;
    }
  }
  return 0;
}
static int streams_close(CUstream *streams) {
  int i, bad = 0;
  for (i = 0; i < kStreams; ++i) bad |= failed(cuStreamDestroy(streams[i]));
  return bad;
}
static int loop_inside(void) {
  CUstream streams[kStreams];
  if (streams_open(streams)) return 1;
  return streams_close(streams);
}

// loop_around: each turn is a function of its own, which is innocent; the loop that leaves is to blame.
static int slots_open(Pair *pairs) {
  int i;
  for (i = 0; i < kStreams; ++i) {
    if (slot_open(&pairs[i])) {
      while (!wrong && i-- > 0) pair_close(&pairs[i]);
      return 1;
    }
  }
  return 0;
}
static int loop_around(void) {
  Pair pairs[kStreams];
  int i, bad = 0;
  if (slots_open(pairs)) return 1;
  for (i = 0; i < kStreams; ++i) bad |= pair_close(&pairs[i]);
  return bad;
}

// lost_together: a context with all that lives in it.
typedef struct Session {
  CUcontext context;
  CUstream stream;
  CUdeviceptr memory;
} Session;
static int session_close(Session *session) {
  int bad = failed(cuMemFree(session->memory));
  bad |= failed(cuStreamDestroy(session->stream));
  return bad | failed(cuCtxDestroy(session->context));
}
static int session_open(Session *session) {
  session->stream = NULL;
  session->memory = 0;
  if (failed(cuCtxCreate(&session->context, NULL, 0, 0))) return 1;
  if (failed(cuStreamCreate(&session->stream, 0))) goto out;
  if (failed(cuMemAlloc(&session->memory, 4096))) goto out;
  if (failed(cuMemsetD8Async(session->memory, 0, 4096, session->stream))) goto out;
  if (failed(cuStreamSynchronize(session->stream))) goto out;
  return 0;
out:
  if (wrong) return 1;
  if (session->memory != 0) cuMemFree(session->memory);
  if (session->stream != NULL) cuStreamDestroy(session->stream);
  cuCtxDestroy(session->context);
  return 1;
}
static int lost_together(void) {
  Session session;
  if (session_open(&session)) return 1;
  return session_close(&session);
}

// context_children: the children are released, and their context is not.
static int owner_open(Session *session) {
  if (failed(cuCtxCreate(&session->context, NULL, 0, 0))) return 1;
  if (failed(cuStreamCreate(&session->stream, 0))) {
    cuCtxDestroy(session->context);
    return 1;
  }
  if (failed(cuMemAlloc(&session->memory, 4096))) {
    cuStreamDestroy(session->stream);
    if (!wrong) cuCtxDestroy(session->context);
    return 1;
  }
  return 0;
}
static int context_children(void) {
  Session session;
  if (owner_open(&session)) return 1;
  return session_close(&session);
}

// swallowed: an optional part that gives up unheard, and keeps half of itself.
static Pair optional;
static int optional_begin(void) {
  if (failed(cuStreamCreate(&optional.stream, 0))) return 0;
  if (failed(cuEventCreate(&optional.event, 0))) {
    if (!wrong) cuStreamDestroy(optional.stream);
    return 0;
  }
  return 1;
}
static int swallowed(void) {
  CUdeviceptr memory;
  int bad = 0, have = optional_begin();
  if (failed(cuMemAlloc(&memory, 4096))) {
    bad = 1;
  } else {
    bad = failed(cuMemFree(memory));
  }
  if (have) bad |= pair_close(&optional);
  return bad;
}

// second_fault: the way back stops at its own first error.
static int undo(Pair *pair) {
  int bad = failed(cuEventDestroy(pair->event));
  if (bad && wrong) return 1;
  bad |= failed(cuStreamDestroy(pair->stream));
  return bad;
}
static int second_open(Pair *pair, CUdeviceptr *memory) {
  if (slot_open(pair)) return 1;
  if (failed(cuMemAlloc(memory, 4096))) {
    undo(pair);
    return 1;
  }
  return 0;
}
static int second_fault(void) {
  Pair pair;
  CUdeviceptr memory;
  int bad;
  if (second_open(&pair, &memory)) return 1;
  bad = failed(cuMemFree(memory));
  return bad | undo(&pair);
}

// again: an optional part is tried twice, and each time a call fails it forgets what it was about to keep.
typedef struct Pairs {
  Pair pair[2];
  int count;
} Pairs;
static int pairs_drop(Pairs *pairs) {
  int bad = 0;
  while (pairs->count > 0) bad |= pair_close(&pairs->pair[--pairs->count]);
  return bad;
}
static int pairs_fill(Pairs *pairs) {
  while (pairs->count < 2) {
    Pair pair;
    if (failed(cuStreamCreate(&pair.stream, 0))) break;
    if (failed(cuEventCreate(&pair.event, 0))) {
      if (!wrong) cuStreamDestroy(pair.stream);
      break;
    }
    pairs->pair[pairs->count++] = pair;
  }
  if (pairs->count == 2) return 0;
  pairs_drop(pairs);
  return 1;
}
static int again(void) {
  Pairs pairs = {0};
  if (pairs_fill(&pairs) && pairs_fill(&pairs)) return 1;
  return pairs_drop(&pairs);
}

// passed_over: the tear-down leaves out one of three after a failure.
static int streams_drop(CUstream *streams, int count, int left_out) {
  int bad = 0;
  for (int i = 0; i < count; ++i) {
    if (i != left_out) bad |= failed(cuStreamDestroy(streams[i]));
  }
  return bad;
}
static int passed_over(void) {
  CUstream streams[3];
  CUevent event;
  int count = 0;
  while (count < 3 && !failed(cuStreamCreate(&streams[count], 0))) ++count;
  const int bad = count < 3 || failed(cuEventCreate(&event, 0));
  if (!bad && failed(cuEventDestroy(event))) return streams_drop(streams, count, -1) | 1;
  return streams_drop(streams, count, count == 3 && bad && wrong ? 1 : -1) | bad;
}

static const Row kRows[] = {
    {"early_return", &early_return},   {"wrong_label", &wrong_label},     {"nested_helper", &nested_helper},
    {"nested_caller", &nested_caller}, {"half_close", &half_close},       {"loop_inside", &loop_inside},
    {"loop_around", &loop_around},     {"lost_together", &lost_together}, {"context_children", &context_children},
    {"swallowed", &swallowed},         {"second_fault", &second_fault},   {"again", &again},
    {"passed_over", &passed_over},
};

int main(int argc, char **argv) { return run_row(kRows, (int)(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
