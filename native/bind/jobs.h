// Runs on the queues of devices: one program on one device, or stages on several.
#pragma once

#include "inputs.h"

namespace jato::bind {

// Below this a run is shorter than what giving the GIL away and taking it back costs others.
inline constexpr double kKeepGilNs = 20'000;

// Queues the program; the results are pending arrays.
int run_queued(const RunPlan& plan, Signature& signature, Inputs& inputs,
               SmallVector<PyObject*, 128>& results);

// Runs the stages of the plan, queued unless they are very light.  `pending`: some input is.
int run_stages(const RunPlan& plan, Signature& signature, Inputs& inputs, bool pending,
               SmallVector<PyObject*, 128>& results);

}  // namespace jato::bind
