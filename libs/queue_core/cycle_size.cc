#include "libs/queue_core/cycle_size.h"

#include <string>

namespace fluxqueue::queue_core {

using events::v1::Candidate;
using events::v1::CycleRequested;

namespace {

// Of Candidate.stoppable the bits of the first `places`.
void KeepBits(size_t places, Candidate* candidate) {
  std::string* bits = candidate->mutable_stoppable();
  if (bits->size() * 8 <= places) return;
  bits->resize((places + 7) / 8);
  if (places % 8 != 0) {
    bits->back() =
        static_cast<char>(static_cast<unsigned char>(bits->back()) & ((1U << places % 8) - 1));
  }
}

// The size that is left; what an entry takes besides, a tag and its length, only makes it less.
template <typename Entries>
size_t DropFromEnd(size_t bytes, int least, Entries* entries) {
  while (bytes > kMostCycleBytes && entries->size() > least) {
    bytes -= entries->Get(entries->size() - 1).ByteSizeLong();
    entries->RemoveLast();
  }
  return bytes;
}

}  // namespace

void Fit(CycleRequested* cycle) {
  const size_t bytes = cycle->ByteSizeLong();
  if (bytes <= kMostCycleBytes) return;
  DropFromEnd(bytes, 0, cycle->mutable_stoppable());
  for (Candidate& candidate : *cycle->mutable_candidates()) {
    KeepBits(static_cast<size_t>(cycle->stoppable_size()), &candidate);
  }
  DropFromEnd(cycle->ByteSizeLong(), 1, cycle->mutable_candidates());
}

}  // namespace fluxqueue::queue_core
