// SPDX-License-Identifier: MIT
// For the smoke test: a peer that throws from each thing it is asked for once it has been asked often enough.
#include <cstdlib>
#include <stdexcept>

#include "suites/bench/peers/peer.h"

namespace {

const char* Version() { return "throws"; }
const char* Open(int, const char*) { return nullptr; }
const char* Token(CUstream stream, void** out) {
  *out = stream;
  return nullptr;
}
void* Allocate(std::size_t bytes, void*) {
  if (bytes == 512) throw std::runtime_error("Allocate\tin two\nlines");
  return std::malloc(1);
}
void Free(void* pointer, void*) {
  std::free(pointer);
  throw std::runtime_error("Free");
}
void Record(void*, void*) { throw 1; }
void Empty() { throw std::runtime_error("Empty"); }

const Peer kPeer = {"throwing", Version, Open, Token, Allocate, Free, Record, nullptr, nullptr, nullptr, Empty};

}  // namespace

const Peer* cuaudit_peer() { return &kPeer; }
