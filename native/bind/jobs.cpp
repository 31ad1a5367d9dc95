#include "jobs.h"

#include <memory>

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
};

class RunJob final : public Job {
 public:
  RunJob(PyObject* owner, Executable* executable) : owner_(owner) {
    Py_INCREF(owner);
    executable_ = jato::Ref<Executable>::share(executable);
  }
  ~RunJob() override {
    for (JobInput& input : inputs) {
      if (input.block) input.block->release();
      if (input.pending) input.pending->release();
    }
    for (Pending* pending : results) pending->release();
    for (Buffer& output : pieces) output.block->release();
    release_later(owner_);
  }

  void run(const volatile int32_t* cancel) override {
    std::vector<Buffer> buffers;
    buffers.reserve(inputs.size());
    for (JobInput& input : inputs) {
      if (input.pending) take_result(input);
      buffers.push_back({input.block, input.data});
    }
    if (pieces.empty() && !results.empty()) {
      std::vector<Buffer> outputs(results.size());
      executable_->run(buffers.data(), outputs.data(), cancel);
      for (size_t j = 0; j < results.size(); ++j) {
        results[j]->block = outputs[j].block;
        results[j]->data = static_cast<char*>(outputs[j].data);
      }
    } else {
      run_pieces(*executable_, buffers.data(), pieces.data(), cancel);
    }
  }

  // Runs with outputs that are pieces of memory somebody else allocated.
  static void run_pieces(const Executable& executable, const Buffer* inputs, const Buffer* outputs,
                         const volatile int32_t* cancel) {
    bool fresh = true;
    for (int j = 0; j < executable.num_outputs(); ++j)
      fresh &= executable.output(j).kind == OutputKind::Fresh;
    if (fresh) {
      executable.execute(inputs, outputs, cancel);
      return;
    }
    // Outputs that share an input's memory have none of their own to write to: copy them.
    std::vector<Buffer> own(static_cast<size_t>(executable.num_outputs()));
    executable.run(inputs, own.data(), cancel);
    for (size_t j = 0; j < own.size(); ++j) {
      std::memcpy(outputs[j].data, own[j].data, executable.output(static_cast<int>(j)).bytes);
      own[j].block->release();
    }
  }

  std::vector<JobInput> inputs;
  std::vector<Pending*> results;  // one reference each
  std::vector<Buffer> pieces;     // of a sharded run; one reference to each block

 private:
  static void take_result(JobInput& input) {
    Pending* pending = input.pending;
    pending->event->rethrow_if_failed();
    input.data = pending->data + input.offset;
    if (pending->exclusive()) {  // donated, or dropped by everybody: the block becomes this job's own
      input.block = std::exchange(pending->block, nullptr);
    } else {
      input.block = pending->block;
      input.block->retain();
    }
    input.pending = nullptr;
    pending->release();
  }

  PyObject* owner_;
  jato::Ref<Executable> executable_;
};

// What keeps the machine code while a job runs it.
PyObject* owner_of(const RunPlan& plan, ExecutableObject* executable) {
  return plan.owner ? plan.owner : reinterpret_cast<PyObject*>(executable);
}

// Adds input i of the plan, `offset` bytes in; memory without a block is copied.
void add_job_input(RunJob& job, int device, Array* array, const Buffer& buffer, size_t bytes,
                   int64_t offset) {
  JobInput input;
  if (array && !array->block) {
    Pending* pending = array->pending;
    pending->retain();
    input.pending = pending;
    input.offset = array->pending_offset + offset;
    if (pending->device != device && !pending->event->ready()) job.wait_for.push_back(pending->event);
  } else if (buffer.block) {
    buffer.block->retain();
    input.block = buffer.block;
    input.data = static_cast<char*>(buffer.data) + offset;
  } else {
    jato::Ref<Block> block = Pool::allocate(bytes);
    std::memcpy(block->data(), static_cast<char*>(buffer.data) + offset, bytes);
    input.data = static_cast<char*>(block->data());
    input.block = block.detach();
  }
  job.inputs.push_back(input);
}

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
    for (size_t i = 0; i < inputs.size(); ++i)
      add_job_input(*job, plan.device, input_array(plan, signature, i), inputs[i],
                    program->executable->input_bytes(static_cast<int>(i)), 0);
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

// Whole results are allocated here; each shard writes its pieces.
int run_shards(const RunPlan& plan, Signature& signature, Inputs& inputs, bool pending,
               SmallVector<PyObject*, 128>& results) {
  release_dead();
  signature.hold_all();
  double cost = 0;
  bool on_queue = false, unbounded = false;
  for (const Shard& shard : plan.shards) {
    cost += shard.executable->executable->cost_ns();
    unbounded |= shard.executable->executable->unbounded();
    on_queue |= DeviceQueue::get(shard.device).on_queue_thread();
  }
  bool queued = !on_queue && (pending || plan.ordered || unbounded || cost >= kKeepGilNs * 2);
  if (queued) {
    for (const Shard& shard : plan.shards) {
      if (wait_for_depth(shard.device, kQueueDepth) < 0) return -1;
    }
    if (check_inputs(plan, signature, inputs) < 0) return -1;
  } else if (pending && settle_inputs(plan, signature, inputs) < 0) {
    return -1;
  }
  SmallVector<Buffer, 32> whole;
  auto release_whole = [&] {
    for (Buffer& buffer : whole) buffer.block->release();
  };
  try {
    for (ArrayType* type : plan.output_types) {
      const Executable& first = *plan.shards[0].executable->executable;
      jato::Ref<Block> block = first.new_block(static_cast<size_t>(type->nbytes));
      void* data = block->data();
      whole.push_back({block.detach(), data});
    }
    jato::Ref<Event> done = Event::create(queued ? static_cast<int>(plan.shards.size()) : 0);
    std::vector<std::unique_ptr<RunJob>> jobs;
    for (const Shard& shard : plan.shards) {
      const Executable& executable = *shard.executable->executable;
      auto job = std::make_unique<RunJob>(owner_of(plan, shard.executable), shard.executable->executable);
      for (size_t i = 0; i < inputs.size(); ++i)
        add_job_input(*job, shard.device, input_array(plan, signature, i), inputs[i],
                      executable.input_bytes(static_cast<int>(i)), shard.input_offsets[i]);
      for (size_t j = 0; j < whole.size(); ++j) {
        whole[j].block->retain();
        job->pieces.push_back({whole[j].block, static_cast<char*>(whole[j].data) + shard.output_offsets[j]});
      }
      job->done = done;
      jobs.push_back(std::move(job));
    }
    if (queued) {
      delete_donated(plan, signature);
      for (size_t s = 0; s < jobs.size(); ++s)
        DeviceQueue::get(plan.shards[s].device).submit(std::move(jobs[s]));
    } else {
      for (auto& job : jobs) job->run(&kNeverCancelled);
      delete_donated(plan, signature);
    }
    for (size_t j = 0; j < whole.size(); ++j) {
      ArrayType* type = plan.output_types[j];
      Py_INCREF(type);
      Array* array;
      if (queued) {
        Pending* result = new Pending(done, -1);  // no single device: every later job waits for the event
        result->block = whole[j].block;
        result->data = static_cast<char*>(whole[j].data);
        whole[j].block->retain();
        array = new_pending_array(type, result, 0, plan.placement);
      } else {
        whole[j].block->retain();
        array = new_array(type, whole[j].block, static_cast<char*>(whole[j].data), plan.placement);
      }
      if (!array) {
        release_whole();
        for (PyObject* item : results) Py_DECREF(item);
        results.clear();
        return -1;
      }
      results.push_back(reinterpret_cast<PyObject*>(array));
    }
  } catch (...) {
    release_whole();
    for (PyObject* item : results) Py_DECREF(item);
    results.clear();
    set_current_error();
    return -1;
  }
  release_whole();
  return 0;
}

}  // namespace jato::bind
