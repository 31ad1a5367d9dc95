// Running an executable on the leaves of a call: at once, or on the queue of a device.
//
//   below 20 us (the compiler's estimate)   at once, with the GIL
//   below kInlineLimitNs                    at once, without the GIL
//   above, or when an input is pending      queued; the results are pending arrays
//   in stages over several devices          jobs.cpp
#pragma once

#include <memory>
#include <vector>

#include "../core/stages.h"
#include "array.h"
#include "executable_object.h"
#include "signature.h"

namespace jato::bind {

// How an entry is run.
struct RunPlan {
  ExecutableObject* executable = nullptr;  // owned; nullptr when there are stages
  std::vector<int32_t> selection;          // leaf of each leading input
  std::vector<PyObject*> constants;        // owned Arrays: the trailing inputs
  std::vector<int32_t> donated;            // leaves to delete, by position among the dynamic leaves
  PyObject* owner = nullptr;               // borrowed; kept alive by queued runs (nullptr: the executable)
  bool ordered = false;                    // never overtakes queued work of its device
  int device = 0;
  PyObject* placement = nullptr;  // owned; of the results
  std::shared_ptr<const StagedProgram> staged;      // spread over devices
  std::vector<ExecutableObject*> stage_executables;  // owned; those of its parts
  std::vector<ArrayType*> output_types;              // owned; with stages: of the results
};

void release_plan(RunPlan& plan);

// Runs; `results` receives a new reference for each output.  -1 with an error.
int run_plan(const RunPlan& plan, Signature& signature, SmallVector<PyObject*, 128>& results);

}  // namespace jato::bind
