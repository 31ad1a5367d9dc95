// The leaves of a call as the buffers that a program reads.
//
// An input is a selected leaf of the signature or a constant of the plan.  A Buffer without a block
// is memory that stays valid during an inline run only: a NumPy array, a number on the stack.
#pragma once

#include "run.h"

namespace jato::bind {

struct alignas(16) Scalar {
  char bytes[16];
};

using Inputs = SmallVector<Buffer, 128>;
using Scalars = SmallVector<Scalar, 16>;

// Fills the buffer of an array; 1 when its computation is not finished.
inline int array_input(Array* array, Buffer* buffer) {
  if (JATO_UNLIKELY(!array->block)) {
    if (array->pending && !array->pending->event->ready()) {
      *buffer = {nullptr, nullptr};
      return 1;
    }
    if (ready(array) < 0) return -1;
  }
  *buffer = {array->block, array->data};
  return 0;
}

// Numbers (into `scalar`) and NumPy arrays; -1 with an error.
int other_input(const Leaf& leaf, Signature& signature, Scalar* scalar, Buffer* buffer);

// The array behind input i, nullptr for numbers and NumPy arrays.
inline Array* input_array(const RunPlan& plan, const Signature& signature, size_t i) {
  if (i >= plan.selection.size()) return as_array(plan.constants[i - plan.selection.size()]);
  const Leaf& leaf = signature.leaves[static_cast<size_t>(plan.selection[i])];
  return leaf.kind == LeafKind::Array ? as_array(leaf.object) : nullptr;
}

// Waits for all inputs: on a queue's own thread nothing can be queued and waited for.
int settle_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs);
// After this thread waited: arrays may have been settled or deleted meanwhile.
int check_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs);

// Extra references to the blocks of arrays that are donated and passed a second time as well: their
// memory must not be taken over while the other argument reads it.
class DonationGuard {
 public:
  DonationGuard(const RunPlan& plan, const Signature& signature) {
    if (JATO_LIKELY(plan.donated.empty())) return;
    for (int32_t leaf : plan.donated) {
      const Leaf& item = signature.leaves[static_cast<size_t>(leaf)];
      if (item.kind == LeafKind::Array) as_array(item.object)->donating = false;
    }
    size_t count = plan.selection.size() + plan.constants.size();
    for (size_t i = 0; i < count; ++i) {
      if (Array* array = input_array(plan, signature, i)) array->donating = false;
    }
    for (size_t i = 0; i < count; ++i) {
      Array* array = input_array(plan, signature, i);
      if (!array) continue;
      if (array->donating) hold(array);
      array->donating = true;
    }
  }
  ~DonationGuard() {
    for (Block* block : blocks_) block->release();
    for (Pending* pending : pendings_) pending->release();
  }

 private:
  void hold(Array* array) {
    if (array->block) {
      array->block->retain();
      blocks_.push_back(array->block);
    } else if (array->pending) {
      array->pending->retain();
      pendings_.push_back(array->pending);
    }
  }
  SmallVector<Block*, 8> blocks_;
  SmallVector<Pending*, 8> pendings_;
};

// Deletes the arrays that the call donates.
void delete_donated(const RunPlan& plan, const Signature& signature);

}  // namespace jato::bind
