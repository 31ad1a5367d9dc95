#include "jobs.h"

#include <memory>

#include "../core/deadline.h"
#include "../core/queue.h"
#include "waiting.h"

namespace jato::bind {

namespace {

// A caller may be this many jobs ahead of its device: results are allocated when a job runs, so
// only the jobs themselves pile up.
constexpr int64_t kQueueDepth = 128;

// One input of a job: a block, or a result that an earlier job makes.
struct JobInput {
  Block* block = nullptr;
  char* data = nullptr;
  Pending* pending = nullptr;
  int64_t offset = 0;

  // The earlier job is done: takes its result.
  void settle() {
    if (!pending) return;
    pending->event->rethrow_if_failed();
    data = pending->data + offset;
    if (pending->exclusive()) {  // donated, or dropped by everybody: the block becomes this job's own
      block = std::exchange(pending->block, nullptr);
    } else {
      block = pending->block;
      block->retain();
    }
    std::exchange(pending, nullptr)->release();
  }
  void release() {
    if (block) block->release();
    if (pending) pending->release();
  }
};

// The input for an array, or for memory without a block, which is copied.
JobInput job_input(Array* array, const Buffer& buffer, size_t bytes) {
  JobInput input;
  if (array && !array->block) {
    array->pending->retain();
    input.pending = array->pending;
    input.offset = array->pending_offset;
  } else if (buffer.block) {
    buffer.block->retain();
    input.block = buffer.block;
    input.data = static_cast<char*>(buffer.data);
  } else {
    jato::Ref<Block> block = Pool::allocate(bytes);
    std::memcpy(block->data(), buffer.data, bytes);
    input.data = static_cast<char*>(block->data());
    input.block = block.detach();
  }
  return input;
}

class RunJob final : public Job {
 public:
  RunJob(PyObject* owner, Executable* executable) : owner_(owner) {
    Py_INCREF(owner);
    executable_ = jato::Ref<Executable>::share(executable);
  }
  ~RunJob() override {
    for (JobInput& input : inputs) input.release();
    for (Pending* pending : results) pending->release();
    release_later(owner_);
  }

  void run(const volatile int32_t* cancel) override {
    std::vector<Buffer> buffers;
    buffers.reserve(inputs.size());
    for (JobInput& input : inputs) {
      input.settle();
      buffers.push_back({input.block, input.data});
    }
    std::vector<Buffer> outputs(results.size());
    executable_->run(buffers.data(), outputs.data(), cancel);
    for (size_t j = 0; j < results.size(); ++j) {
      results[j]->block = outputs[j].block;
      results[j]->data = static_cast<char*>(outputs[j].data);
    }
  }

  std::vector<JobInput> inputs;
  std::vector<Pending*> results;  // one reference each

 private:
  PyObject* owner_;
  jato::Ref<Executable> executable_;
};

// What keeps the machine code while a job runs it.
PyObject* owner_of(const RunPlan& plan, ExecutableObject* executable) {
  return plan.owner ? plan.owner : reinterpret_cast<PyObject*>(executable);
}

// A call of a program in stages.
class PlanRun final : public StagedRun {
 public:
  PlanRun(const RunPlan& plan, jato::Ref<Event> done)
      : StagedRun(plan.staged, std::move(done)), owner_(plan.owner) {
    Py_INCREF(owner_);
  }
  ~PlanRun() override {
    for (JobInput& input : arguments) input.release();
    for (Pending* pending : pendings) pending->release();
    for (const Buffer& result : results) result.block->release();
    release_later(owner_);
  }

  std::vector<JobInput> arguments;
  std::vector<Pending*> pendings;  // of a queued run, one reference each
  std::vector<Buffer> results;     // of one on the calling thread

 private:
  void take_inputs(std::vector<Buffer>& inputs) override {
    for (JobInput& argument : arguments) {
      argument.settle();
      inputs.push_back({std::exchange(argument.block, nullptr), argument.data});
    }
  }
  void give_results(const std::vector<Buffer>& made) override {
    if (pendings.empty()) {
      results = made;
      return;
    }
    for (size_t j = 0; j < made.size(); ++j) {
      pendings[j]->block = made[j].block;
      pendings[j]->data = static_cast<char*>(made[j].data);
    }
  }

  PyObject* owner_;
};

}  // namespace

int run_queued(const RunPlan& plan, Signature& signature, Inputs& inputs,
               SmallVector<PyObject*, 128>& results) {
  const ExecutableObject* program = plan.executable;
  release_dead();
  signature.hold_all();
  if (wait_for_depth(plan.device, kQueueDepth) < 0 || check_inputs(plan, signature, inputs) < 0) return -1;
  try {
    auto job = std::make_unique<RunJob>(owner_of(plan, plan.executable), program->executable);
    // An array passed twice is held twice by the job, so that its memory is not taken over.
    for (size_t i = 0; i < inputs.size(); ++i) {
      job->inputs.push_back(job_input(input_array(plan, signature, i), inputs[i],
                                      program->executable->input_bytes(static_cast<int>(i))));
      const Pending* pending = job->inputs.back().pending;
      if (pending && pending->device != plan.device && !pending->event->ready())
        job->wait_for.push_back(pending->event);
    }
    jato::Ref<Event> done = Event::create();
    for (ArrayType* type : program->output_types) {
      Pending* pending = new Pending(done, plan.device);
      pending->retain();
      job->results.push_back(pending);
      Py_INCREF(type);
      Array* array = new_pending_array(type, pending, 0, plan.placement);
      if (!array) {
        for (PyObject* result : results) Py_DECREF(result);
        results.clear();
        return -1;
      }
      results.push_back(reinterpret_cast<PyObject*>(array));
    }
    job->done = done;
    delete_donated(plan, signature);
    DeviceQueue::get(plan.device).submit(std::move(job));
  } catch (...) {
    for (PyObject* result : results) Py_DECREF(result);
    results.clear();
    set_current_error();
    return -1;
  }
  return 0;
}

namespace {

std::shared_ptr<PlanRun> new_run(const RunPlan& plan, const Signature& signature, const Inputs& inputs,
                                 jato::Ref<Event> done) {
  auto run = std::make_shared<PlanRun>(plan, std::move(done));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array* array = input_array(plan, signature, i);
    const size_t bytes =
        array ? 0
              : static_cast<size_t>(
                    signature.leaves[static_cast<size_t>(plan.selection[i])].type->nbytes);
    run->arguments.push_back(job_input(array, inputs[i], bytes));
    const Pending* input = run->arguments.back().pending;
    if (input && !input->event->ready()) run->wait_for.push_back(input->event);
  }
  return run;
}

// Runs on this thread while that is short.
bool run_in_time(const StagedProgram& program, PlanRun& run) {
  try {
    Deadline deadline(kTrialTime);
    ReleaseGil released;
    run.run_here(deadline.flag());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Cancelled) throw;
    program.note_trial(false);
    return false;
  }
  program.note_trial(true);
  return true;
}

}  // namespace

int run_stages(const RunPlan& plan, Signature& signature, Inputs& inputs, bool pending,
               SmallVector<PyObject*, 128>& results) {
  const StagedProgram& program = *plan.staged;
  release_dead();
  signature.hold_all();
  const bool light = program.cost_ns() < kKeepGilNs * 2;
  const bool here = DeviceQueue::on_any_queue_thread();
  bool queued = !here && (pending || plan.ordered || program.unbounded() || !light);
  // Loops of unknown length, as in run_plan.
  const bool trial = queued && !pending && !plan.ordered && program.unbounded() &&
                     program.cost_ns() < kInlineLimitNs && plan.donated.empty() && program.may_be_tried();
  try {
    jato::Ref<Event> done;
    std::shared_ptr<PlanRun> run;
    if (trial) {
      run = new_run(plan, signature, inputs, Event::create(0));
      queued = !run_in_time(program, *run);
    }
    if (queued) {
      for (int device : program.devices()) {
        if (wait_for_depth(device, kQueueDepth) < 0) return -1;
      }
      if (check_inputs(plan, signature, inputs) < 0) return -1;
      done = Event::create(static_cast<int>(program.devices().size()));
      run = new_run(plan, signature, inputs, done);
    } else if (!trial) {
      if (pending && settle_inputs(plan, signature, inputs) < 0) return -1;
      run = new_run(plan, signature, inputs, Event::create(0));
      if (light) {
        run->run_here();
      } else {
        ReleaseGil released;
        run->run_here();
      }
    }
    for (size_t j = 0; j < plan.output_types.size(); ++j) {
      ArrayType* type = plan.output_types[j];
      Py_INCREF(type);
      Array* array;
      if (queued) {
        // No single device: whoever uses it waits for the event.
        Pending* result = new Pending(done, kAllDevices);
        result->retain();
        run->pendings.push_back(result);
        array = new_pending_array(type, result, 0, plan.placement);
      } else {
        const Buffer& result = run->results[j];
        result.block->retain();
        array = new_array(type, result.block, static_cast<char*>(result.data), plan.placement);
      }
      if (!array) {
        for (PyObject* item : results) Py_DECREF(item);
        results.clear();
        return -1;
      }
      results.push_back(reinterpret_cast<PyObject*>(array));
    }
    delete_donated(plan, signature);
    if (queued) StagedRun::submit(run);
  } catch (...) {
    for (PyObject* item : results) Py_DECREF(item);
    results.clear();
    set_current_error();
    return -1;
  }
  return 0;
}

}  // namespace jato::bind
