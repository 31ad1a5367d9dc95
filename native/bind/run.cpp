#include "run.h"

#include "../core/deadline.h"
#include "../core/errors.h"
#include "../core/queue.h"
#include "inputs.h"
#include "jobs.h"
#include "waiting.h"

namespace jato::bind {

namespace {

int wrap_outputs(const ExecutableObject* program, const Buffer* outputs, PyObject* placement,
                 SmallVector<PyObject*, 128>& results) {
  size_t count = program->output_types.size();
  for (size_t j = 0; j < count; ++j) {
    ArrayType* type = program->output_types[j];
    Py_INCREF(type);
    Array* array = new_array(type, outputs[j].block, static_cast<char*>(outputs[j].data), placement);
    if (JATO_UNLIKELY(!array)) {
      for (size_t k = j + 1; k < count; ++k) outputs[k].block->release();
      for (PyObject* result : results) Py_DECREF(result);
      results.clear();
      return -1;
    }
    results.push_back(reinterpret_cast<PyObject*>(array));
  }
  return 0;
}

int run_now(const RunPlan& plan, Signature& signature, const Inputs& inputs,
            SmallVector<PyObject*, 128>& results) {
  const ExecutableObject* program = plan.executable;
  SmallVector<Buffer, 128> outputs;
  outputs.resize(program->output_types.size());
  try {
    if (JATO_LIKELY(plan.donated.empty())) {
      if (JATO_LIKELY(program->executable->cost_ns() < kKeepGilNs)) {
        program->executable->run(inputs.data(), outputs.data());
      } else {
        signature.hold_all();
        ReleaseGil released;
        program->executable->run(inputs.data(), outputs.data());
      }
    } else {
      signature.hold_all();
      {
        DonationGuard guard(plan, signature);
        program->executable->prepare_outputs(inputs.data(), outputs.data());
      }
      // From here on a donated array may be overwritten.  Its blocks stay until the run ends.
      SmallVector<Block*, 32> alive;
      for (const Buffer& input : inputs) {
        if (!input.block) continue;
        input.block->retain();
        alive.push_back(input.block);
      }
      delete_donated(plan, signature);
      std::exception_ptr error;
      try {
        ReleaseGil released;
        program->executable->execute(inputs.data(), outputs.data());
      } catch (...) {
        error = std::current_exception();
      }
      for (Block* block : alive) block->release();
      if (error) {
        for (const Buffer& output : outputs) output.block->release();
        set_error(error);
        return -1;
      }
    }
  } catch (...) {
    set_current_error();
    return -1;
  }
  return wrap_outputs(program, outputs.data(), plan.placement, results);
}

// Runs a program whose cost nobody knows on this thread while it is short.  1: it took too long, and
// nothing has happened yet; else as run_now.
int run_trial(const RunPlan& plan, Signature& signature, const Inputs& inputs,
              SmallVector<PyObject*, 128>& results) {
  const ExecutableObject* program = plan.executable;
  SmallVector<Buffer, 128> outputs;
  outputs.resize(program->output_types.size());
  try {
    Deadline deadline(kTrialTime);
    if (program->executable->cost_ns() < kKeepGilNs) {
      program->executable->run(inputs.data(), outputs.data(), deadline.flag());
    } else {
      signature.hold_all();
      ReleaseGil released;
      program->executable->run(inputs.data(), outputs.data(), deadline.flag());
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Cancelled) {
      program->executable->note_trial(false);
      return 1;
    }
    set_current_error();
    return -1;
  } catch (...) {
    set_current_error();
    return -1;
  }
  program->executable->note_trial(true);
  return wrap_outputs(program, outputs.data(), plan.placement, results);
}

}  // namespace

void release_plan(RunPlan& plan) {
  Py_CLEAR(plan.executable);
  for (PyObject*& constant : plan.constants) Py_CLEAR(constant);
  Py_CLEAR(plan.placement);
  for (ExecutableObject*& executable : plan.stage_executables) Py_CLEAR(executable);
  for (ArrayType*& type : plan.output_types) Py_CLEAR(type);
  plan.constants.clear();
  plan.staged.reset();
  plan.stage_executables.clear();
  plan.output_types.clear();
}

int run_plan(const RunPlan& plan, Signature& signature, SmallVector<PyObject*, 128>& results) {
  Inputs inputs;
  Scalars scalars;
  size_t next_scalar = 0, chosen = plan.selection.size();
  inputs.resize(chosen + plan.constants.size());
  // One place for each leaf that is no array; a selection may name a leaf twice.
  if (JATO_UNLIKELY(signature.num_others)) scalars.resize(chosen);
  bool pending = false;
  for (size_t i = 0; i < chosen; ++i) {
    const Leaf& leaf = signature.leaves[static_cast<size_t>(plan.selection[i])];
    int status = JATO_LIKELY(leaf.kind == LeafKind::Array)
                     ? array_input(as_array(leaf.object), &inputs[i])
                     : other_input(leaf, signature, scalars.data() + next_scalar++, &inputs[i]);
    if (JATO_UNLIKELY(status != 0)) {
      if (status < 0) return -1;
      pending = true;
    }
  }
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    int status = array_input(as_array(plan.constants[i]), &inputs[chosen + i]);
    if (status < 0) return -1;
    pending |= status > 0;
  }
  if (JATO_UNLIKELY(plan.staged != nullptr)) return run_stages(plan, signature, inputs, pending, results);
  const Executable& executable = *plan.executable->executable;
  bool heavy = executable.cost_ns() >= kInlineLimitNs;
  bool trial = false;
  if (JATO_UNLIKELY(executable.unbounded() && !heavy)) {
    trial = plan.donated.empty() && executable.may_be_tried();
    heavy = !trial;
  }
  if (JATO_UNLIKELY(heavy || pending || plan.ordered)) {
    DeviceQueue& queue = DeviceQueue::get(plan.device);
    if (DeviceQueue::on_any_queue_thread()) {  // a callback: its queue, or all, may wait for it to end
      signature.hold_all();
      if (pending && settle_inputs(plan, signature, inputs) < 0) return -1;
    } else if (heavy || pending || queue.depth() > 0) {
      return run_queued(plan, signature, inputs, results);
    }
  }
  if (JATO_UNLIKELY(trial) && !DeviceQueue::on_any_queue_thread()) {
    int status = run_trial(plan, signature, inputs, results);
    return status > 0 ? run_queued(plan, signature, inputs, results) : status;
  }
  return run_now(plan, signature, inputs, results);
}

}  // namespace jato::bind
