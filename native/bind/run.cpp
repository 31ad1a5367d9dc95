#include "run.h"

#include "../core/queue.h"
#include "numpy_api.h"
#include "waiting.h"

namespace jato::bind {

namespace {

// Below this a run is shorter than what giving the GIL away and taking it back costs others.
constexpr double kKeepGilNs = 20'000;
// A caller may be this many jobs ahead of its device: results are allocated when a job runs, so
// only the jobs themselves pile up.
constexpr int64_t kQueueDepth = 128;

struct alignas(16) Scalar {
  char bytes[16];
};

using Inputs = SmallVector<Buffer, 128>;
using Scalars = SmallVector<Scalar, 16>;

int write_number(const Leaf& leaf, void* target) {
  switch (leaf.kind) {
    case LeafKind::Int:
      std::memcpy(target, &leaf.integer, itemsize(leaf.type->dtype));  // little-endian
      return 0;
    case LeafKind::Float: {
      double value = PyFloat_AsDouble(leaf.object);
      if (leaf.type->dtype == DType::Float64) {
        std::memcpy(target, &value, 8);
      } else {
        float narrow = static_cast<float>(value);
        std::memcpy(target, &narrow, 4);
      }
      return 0;
    }
    case LeafKind::NumpyScalar: {
      char wide[16];
      PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(leaf.object)));
      DType dtype;
      if (!descr || !dtype_from_numpy(reinterpret_cast<PyArray_Descr*>(descr.get()), &dtype)) return -1;
      if (dtype == DType::BFloat16) return write_scalar(leaf.object, dtype, target);  // no type of NumPy's own
      if (itemsize(dtype) == itemsize(leaf.type->dtype)) {
        PyArray_ScalarAsCtype(leaf.object, target);
        return 0;
      }
      PyArray_ScalarAsCtype(leaf.object, wide);
      if (dtype == DType::Float64 || dtype == DType::Complex128) {
        double parts[2];
        std::memcpy(parts, wide, 16);
        float narrow[2] = {static_cast<float>(parts[0]), dtype == DType::Complex128 ? static_cast<float>(parts[1]) : 0};
        std::memcpy(target, narrow, itemsize(leaf.type->dtype));
      } else {
        std::memcpy(target, wide, itemsize(leaf.type->dtype));  // low half: cut as astype does
      }
      return 0;
    }
    default: return write_scalar(leaf.object, leaf.type->dtype, target);
  }
}

// The address of a NumPy array's elements in canonical dtype, dense and aligned.
const char* numpy_data(const Leaf& leaf, Signature& signature) {
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(leaf.object);
  PyArray_Descr* descr = numpy_descr(leaf.type->dtype);
  if (leaf.type->dtype == DType::Float0) {  // NumPy's has no bytes, ours has one per element
    PyRef zeros = PyRef::steal(PyBytes_FromStringAndSize(nullptr, leaf.type->nbytes));
    if (!zeros) return nullptr;
    char* data = PyBytes_AS_STRING(zeros.get());
    std::memset(data, 0, static_cast<size_t>(leaf.type->nbytes));
    signature.holders.steal(zeros.release());
    return data;
  }
  if (PyArray_ISCARRAY_RO(array) && PyArray_DESCR(array)->type_num == descr->type_num)
    return static_cast<const char*>(PyArray_DATA(array));
  Py_INCREF(descr);
  PyObject* dense = PyArray_FromArray(array, descr, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
  if (!dense) return nullptr;
  signature.holders.steal(dense);
  return static_cast<const char*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(dense)));
}

// Fills the buffer of an array; 1 when its computation is not finished.
int array_input(Array* array, Buffer* buffer) {
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

// One input; 1 when it is a pending array.
int leaf_input(const Leaf& leaf, Signature& signature, Scalars& scalars, size_t& next_scalar, Buffer* buffer) {
  if (JATO_LIKELY(leaf.kind == LeafKind::Array)) return array_input(as_array(leaf.object), buffer);
  if (leaf.kind == LeafKind::Numpy) {
    const char* data = numpy_data(leaf, signature);
    *buffer = {nullptr, const_cast<char*>(data)};
    return data ? 0 : -1;
  }
  if (leaf.kind == LeafKind::Odd) {
    PyErr_Format(PyExc_TypeError, "expected an array or a number as an argument, got %s", Py_TYPE(leaf.object)->tp_name);
    return -1;
  }
  Scalar* scalar = &scalars[next_scalar++];
  *buffer = {nullptr, scalar};
  return write_number(leaf, scalar);
}

// The array behind input i, nullptr for numbers and NumPy arrays.
Array* input_array(const RunPlan& plan, const Signature& signature, size_t i) {
  if (i >= plan.selection.size()) return as_array(plan.constants[i - plan.selection.size()]);
  const Leaf& leaf = signature.leaves[static_cast<size_t>(plan.selection[i])];
  return leaf.kind == LeafKind::Array ? as_array(leaf.object) : nullptr;
}

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

void delete_donated(const RunPlan& plan, const Signature& signature) {
  for (int32_t leaf : plan.donated) {
    const Leaf& item = signature.leaves[static_cast<size_t>(leaf)];
    if (item.kind == LeafKind::Array) delete_array(as_array(item.object));
  }
}

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

int run_now(const RunPlan& plan, Signature& signature, const Inputs& inputs, SmallVector<PyObject*, 128>& results) {
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

// --- queued runs

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
    for (int j = 0; j < executable.num_outputs(); ++j) fresh &= executable.output(j).kind == OutputKind::Fresh;
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
void add_job_input(RunJob& job, int device, Array* array, const Buffer& buffer, size_t bytes, int64_t offset) {
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

// The array of an input may have been settled or deleted while this thread waited for the queue.
int check_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array* array = input_array(plan, signature, i);
    if (!array) continue;
    if (is_deleted(array)) return ready(array);
    if (array->block) inputs[i] = {array->block, array->data};
  }
  return 0;
}

// Waits for all inputs: on a queue's own thread nothing can be queued and waited for.
int settle_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array* array = input_array(plan, signature, i);
    if (!array) continue;
    if (ready(array) < 0) return -1;
    inputs[i] = {array->block, array->data};
  }
  return 0;
}

int run_queued(const RunPlan& plan, Signature& signature, Inputs& inputs, SmallVector<PyObject*, 128>& results) {
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

// --- runs spread over devices

// Whole results are allocated here; each shard writes its pieces.
int run_shards(const RunPlan& plan, Signature& signature, Inputs& inputs, bool pending,
               SmallVector<PyObject*, 128>& results) {
  release_dead();
  signature.hold_all();
  double cost = 0;
  bool on_queue = false;
  for (const Shard& shard : plan.shards) {
    cost += shard.executable->executable->cost_ns();
    on_queue |= DeviceQueue::get(shard.device).on_queue_thread();
  }
  bool queued = !on_queue && (pending || plan.ordered || cost >= kKeepGilNs * 2);
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
      jato::Ref<Block> block = Pool::allocate(static_cast<size_t>(type->nbytes));
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
      for (size_t s = 0; s < jobs.size(); ++s) DeviceQueue::get(plan.shards[s].device).submit(std::move(jobs[s]));
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

}  // namespace

void release_plan(RunPlan& plan) {
  Py_CLEAR(plan.executable);
  for (PyObject*& constant : plan.constants) Py_CLEAR(constant);
  Py_CLEAR(plan.placement);
  for (Shard& shard : plan.shards) Py_CLEAR(shard.executable);
  for (ArrayType*& type : plan.output_types) Py_CLEAR(type);
  plan.constants.clear();
  plan.shards.clear();
  plan.output_types.clear();
}

int run_plan(const RunPlan& plan, Signature& signature, SmallVector<PyObject*, 128>& results) {
  Inputs inputs;
  Scalars scalars;
  size_t next_scalar = 0, chosen = plan.selection.size();
  inputs.resize(chosen + plan.constants.size());
  // Selected scalars may repeat a leaf, so there can be more of them than scalar leaves.
  if (signature.num_scalars) scalars.resize(chosen);
  bool pending = false;
  for (size_t i = 0; i < chosen; ++i) {
    const Leaf& leaf = signature.leaves[static_cast<size_t>(plan.selection[i])];
    int status = leaf_input(leaf, signature, scalars, next_scalar, &inputs[i]);
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
  if (JATO_UNLIKELY(!plan.shards.empty())) return run_shards(plan, signature, inputs, pending, results);
  bool heavy = plan.executable->executable->cost_ns() >= kInlineLimitNs;
  if (JATO_UNLIKELY(heavy || pending || plan.ordered)) {
    DeviceQueue& queue = DeviceQueue::get(plan.device);
    if (queue.on_queue_thread()) {  // a callback: its own queue is busy with it
      signature.hold_all();
      if (pending && settle_inputs(plan, signature, inputs) < 0) return -1;
    } else if (heavy || pending || queue.depth() > 0) {
      return run_queued(plan, signature, inputs, results);
    }
  }
  return run_now(plan, signature, inputs, results);
}

}  // namespace jato::bind
