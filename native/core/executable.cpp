// Running executables.  Building them is in builder.cpp, printing them in describe.cpp.
#include "executable.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "profile.h"
#include "threadpool.h"

namespace jato {

const volatile int32_t kNeverCancelled = 0;

namespace {

// Tables up to this size live on the stack: 2 KiB, and no allocation on the path of a call.
constexpr int kStackSlots = 256;
// A range of a launch takes at least this long, or handing it out costs too much.
constexpr double kRangeNs = 2'000;

// Asked for once, not in each launch.
const TileCopyFn* const kRoutines = tile_copies();

bool is_raised(const volatile int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

void run_kernel(const LaunchStep& step, void* const* buffers, const volatile int32_t* cancel, int64_t begin,
                int64_t end) {
  const KernelArgs args{
      buffers, step.params.data(),
      step.scratch_bytes > 0 ? thread_scratch(static_cast<size_t>(step.scratch_bytes)) : nullptr, cancel,
      kRoutines};
  step.fn(&args, begin, end);
}

// The grain of a launch, raised to a multiple that is worth handing out.
int64_t range_grain(const LaunchStep& step) {
  const double grain_ns = static_cast<double>(step.grain) * step.cost_ns;
  if (grain_ns >= kRangeNs) return step.grain;
  const double multiple = kRangeNs / grain_ns;
  if (!(multiple < static_cast<double>(step.extent))) return step.extent;
  return step.grain * (static_cast<int64_t>(multiple) + 1);
}

void run_launch(const LaunchStep& step, void* const* buffers, const volatile int32_t* cancel) {
  if (step.extent <= 0) return;
  if (static_cast<double>(step.extent) * step.cost_ns <= kParallelThresholdNs || step.extent <= step.grain) {
    run_kernel(step, buffers, cancel, 0, step.extent);
    return;
  }
  parallel_for(step.extent, range_grain(step), [&](int64_t begin, int64_t end, int) {
    if (!is_raised(cancel)) run_kernel(step, buffers, cancel, begin, end);
  });
}

struct RowsOfKernel {
  const TiledStep& step;
  void* const* buffers;
  const volatile int32_t* cancel;

  static void run(void* context, int64_t begin, int64_t end) {
    const RowsOfKernel& rows = *static_cast<const RowsOfKernel*>(context);
    const TiledStep& s = rows.step;
    run_kernel(s.launch, rows.buffers, rows.cancel, begin * s.row_steps / s.step_rows,
               (end * s.row_steps + s.step_rows - 1) / s.step_rows);
  }
};

void run_tiled(const TiledStep& step, void* const* library_buffers, void* const* kernel_buffers,
               const volatile int32_t* cancel) {
  if (step.rows <= 0) return;
  const LibraryRoutine& routine = *step.library.routine;
  Context context{cancel};
  RowsOfKernel kernel{step, kernel_buffers, cancel};
  if (routine.run_tiled(library_buffers, step.library.params.data(), context,
                        {step.step_rows, &RowsOfKernel::run, &kernel})) {
    return;
  }
  routine.run(library_buffers, step.library.params.data(), context);
  run_launch(step.launch, kernel_buffers, cancel);
}

int64_t load_integer(const void* address, DType dtype) {
  if (dtype == DType::Int64) return *static_cast<const int64_t*>(address);
  return *static_cast<const int32_t*>(address);
}

void store_integer(void* address, DType dtype, int64_t value) {
  if (dtype == DType::Int64) {
    *static_cast<int64_t*>(address) = value;
  } else {
    *static_cast<int32_t*>(address) = static_cast<int32_t>(value);
  }
}

// What a step is called in the profile, and its memory traffic.
struct StepLabel {
  const char* name;
  int64_t bytes = 0;
};

StepLabel label_of(const Step& step) {
  return std::visit(
      [](const auto& s) -> StepLabel {
        using S = std::decay_t<decltype(s)>;
        if constexpr (std::is_same_v<S, LaunchStep>) return {s.name.c_str(), s.bytes};
        if constexpr (std::is_same_v<S, LibraryStep>) return {s.routine->name};
        if constexpr (std::is_same_v<S, TiledStep>) return {s.launch.name.c_str(), s.launch.bytes};
        if constexpr (std::is_same_v<S, HostStep>) return {"host"};
        if constexpr (std::is_same_v<S, CopyStep>) return {"copy", 2 * s.bytes};
        return {nullptr};  // takes no time, or its inner steps are recorded
      },
      step.kind);
}

}  // namespace

// The state of one run.
struct Executable::Frame {
  void** slots;
  void** gathered;  // room for the pointers of one step
  const volatile int32_t* cancel;
  int64_t iteration = 0;  // of the innermost loop

  void** gather(const std::vector<Slot>& list, int offset = 0) const {
    void** const pointers = gathered + offset;
    const Slot* const numbers = list.data();
    for (size_t i = 0, n = list.size(); i < n; ++i) pointers[i] = slots[numbers[i]];
    return pointers;
  }
};

Ref<Block> Executable::new_block(size_t bytes) const {
  try {
    return Pool::allocate(bytes);
  } catch (const OutOfMemory& error) {
    if (name_.empty()) throw;
    throw Error(ErrorKind::OutOfMemory, name_ + ": " + error.what());
  }
}

void Executable::prepare_outputs(const Buffer* inputs, Buffer* outputs) const {
  const int num_in = num_inputs();
  const int num_out = num_outputs();
  // With a reference for each input, a block that is an input twice has three, and stays.
  if (may_take_over_) {
    for (int i = 0; i < num_in; ++i) {
      if (inputs[i].block != nullptr) inputs[i].block->retain();
    }
  }
  const auto release_inputs = [&] {
    if (!may_take_over_) return;
    for (int i = 0; i < num_in; ++i) {
      if (inputs[i].block != nullptr) inputs[i].block->release();
    }
  };
  int done = 0;
  const auto allocate = [this](size_t bytes) {
    Block* const block = new_block(bytes).detach();
    return Buffer{block, block->data()};
  };
  const auto share = [](Buffer buffer) {
    buffer.block->retain();
    return buffer;
  };
  try {
    for (; done < num_out; ++done) {
      const OutputSpec& spec = outputs_[done];
      Buffer& output = outputs[done];
      switch (spec.kind) {
        case OutputKind::Fresh: {
          if (spec.take_over >= 0) {
            const Buffer& donated = inputs[spec.take_over];
            const Block* const block = donated.block;
            if (block != nullptr && block->pooled() && block->references() == 2 &&
                donated.data == block->data() && block->capacity() >= spec.bytes) {
              output = share(donated);
              break;
            }
          }
          output = allocate(spec.bytes);
          break;
        }
        case OutputKind::AliasInput: {
          const Buffer& input = inputs[spec.index];
          if (input.block != nullptr) {
            output = share(input);
          } else {
            output = allocate(spec.bytes);
            std::memcpy(output.data, input.data, spec.bytes);
          }
          break;
        }
        case OutputKind::AliasConstant: {
          const ConstantSlot& constant = constants_[spec.index];
          output = share({constant.block.get(), constant.data});
          break;
        }
        case OutputKind::AliasOutput:
          output = share(outputs[spec.index]);
          break;
      }
    }
  } catch (...) {
    for (int j = 0; j < done; ++j) outputs[j].block->release();
    release_inputs();
    throw;
  }
  release_inputs();
}

void Executable::execute(const Buffer* inputs, const Buffer* outputs, const volatile int32_t* cancel) const {
  void* stack_table[kStackSlots];
  std::unique_ptr<void*[]> heap_table;
  void** table = stack_table;
  if (num_slots_ + max_step_slots_ > kStackSlots) {
    heap_table.reset(new void*[static_cast<size_t>(num_slots_ + max_step_slots_)]);
    table = heap_table.get();
  }
  Ref<Block> arena;
  Frame frame{table, table + num_slots_, cancel};

  for (size_t i = 0; i < input_slots_.size(); ++i) table[input_slots_[i]] = inputs[i].data;
  for (size_t j = 0; j < outputs_.size(); ++j) {
    if (outputs_[j].slot != kNoSlot) table[outputs_[j].slot] = outputs[j].data;
  }
  if (!temps_.empty()) {
    char* base = nullptr;
    if (arena_bytes_ != 0) {
      arena = new_block(arena_bytes_);
      base = static_cast<char*>(arena->data());
    }
    for (const TempSlot& temp : temps_) table[temp.slot] = base + temp.offset;
  }
  for (const ConstantSlot& constant : constants_) table[constant.slot] = constant.data;
  for (const Slot view : views_) table[view] = nullptr;

  execute_steps(steps_, frame);
  if (swaps_outputs_) settle_outputs(outputs, frame);
  if (is_raised(cancel)) throw Error(ErrorKind::Cancelled, "the computation was cancelled");
}

void Executable::run(const Buffer* inputs, Buffer* outputs, const volatile int32_t* cancel) const {
  prepare_outputs(inputs, outputs);
  try {
    execute(inputs, outputs, cancel);
  } catch (...) {
    for (int j = 0; j < num_outputs(); ++j) {
      outputs[j].block->release();
      outputs[j] = Buffer{};
    }
    throw;
  }
}

void Executable::execute_steps(const StepList& steps, Frame& frame) const {
  if (!profile_enabled()) {
    for (const Step& step : steps) execute_step(step, frame);
    return;
  }
  for (const Step& step : steps) {
    const StepLabel label = label_of(step);
    const int64_t start = now_ns();
    execute_step(step, frame);
    if (label.name != nullptr) profile_record(label.name, start, now_ns(), label.bytes);
  }
}

void Executable::execute_step(const Step& step, Frame& frame) const {
  struct Visitor {
    const Executable& executable;
    Frame& frame;

    void operator()(const LaunchStep& s) const { run_launch(s, frame.gather(s.slots), frame.cancel); }
    void operator()(const LibraryStep& s) const {
      Context context{frame.cancel};
      s.routine->run(frame.gather(s.slots), s.params.data(), context);
    }
    void operator()(const TiledStep& s) const {
      void** const library_buffers = frame.gather(s.library.slots);
      void** const kernel_buffers = frame.gather(s.launch.slots, static_cast<int>(s.library.slots.size()));
      run_tiled(s, library_buffers, kernel_buffers, frame.cancel);
    }
    void operator()(const HostStep& s) const { executable.callbacks_[s.callback](frame.gather(s.slots)); }
    void operator()(const SwapStep& s) const { std::swap(frame.slots[s.a], frame.slots[s.b]); }
    void operator()(const CopyStep& s) const {
      copy_bytes(frame.slots[s.destination], frame.slots[s.source], static_cast<size_t>(s.bytes));
    }
    void operator()(const SliceStep& s) const {
      frame.slots[s.slot] =
          static_cast<char*>(frame.slots[s.base]) + s.base_offset + frame.iteration * s.stride;
    }
    void operator()(const LoopStep& s) const { executable.execute_loop(s, frame); }
    void operator()(const BranchStep& s) const {
      const int64_t index = *static_cast<const int32_t*>(frame.slots[s.index_slot]);
      const auto last = static_cast<int64_t>(s.cases.size()) - 1;
      executable.execute_steps(s.cases[static_cast<size_t>(std::clamp<int64_t>(index, 0, last))], frame);
    }
  };
  std::visit(Visitor{*this, frame}, step.kind);
}

void Executable::execute_loop(const LoopStep& loop, Frame& frame) const {
  int64_t count = loop.count;
  if (loop.count_slot != kNoSlot) {
    count = std::max<int64_t>(load_integer(frame.slots[loop.count_slot], loop.count_dtype), 0);
  }
  const int64_t outer_iteration = frame.iteration;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    if (loop.predicate_slot != kNoSlot && *static_cast<const uint8_t*>(frame.slots[loop.predicate_slot]) == 0)
      break;
    if (is_raised(frame.cancel)) break;
    frame.iteration = i;
    if (loop.iteration_slot != kNoSlot)
      store_integer(frame.slots[loop.iteration_slot], loop.iteration_dtype, i);
    execute_steps(loop.body, frame);
  }
  frame.iteration = outer_iteration;
}

// After swaps a result may sit in a temporary, or in the memory of another output: moves each one
// to its own.  Sources that other outputs overwrite are saved first.
void Executable::settle_outputs(const Buffer* outputs, Frame& frame) const {
  struct Move {
    void* destination;
    const void* source;
    size_t bytes;
    Ref<Block> saved;
  };
  std::vector<Move> moves;
  for (size_t j = 0; j < outputs_.size(); ++j) {
    const OutputSpec& spec = outputs_[j];
    if (spec.slot == kNoSlot || frame.slots[spec.slot] == outputs[j].data) continue;
    moves.push_back({outputs[j].data, frame.slots[spec.slot], spec.bytes, {}});
  }
  for (Move& move : moves) {
    const bool overwritten = std::any_of(moves.begin(), moves.end(), [&](const Move& other) {
      return &other != &move && other.destination == move.source;
    });
    if (!overwritten) continue;
    move.saved = new_block(move.bytes);
    copy_bytes(move.saved->data(), move.source, move.bytes);
    move.source = move.saved->data();
  }
  for (const Move& move : moves) copy_bytes(move.destination, move.source, move.bytes);
}

ExecutableJob::ExecutableJob(Ref<Executable> executable, const Buffer* inputs, const Buffer* outputs,
                             Ref<Event> done_event)
    : executable_(std::move(executable)),
      inputs_(inputs, inputs + executable_->num_inputs()),
      outputs_(outputs, outputs + executable_->num_outputs()) {
  done = std::move(done_event);
  for (const Buffer& input : inputs_) {
    if (input.block != nullptr) input.block->retain();
  }
  for (const Buffer& output : outputs_) output.block->retain();
}

ExecutableJob::~ExecutableJob() {
  for (const Buffer& input : inputs_) {
    if (input.block != nullptr) input.block->release();
  }
  for (const Buffer& output : outputs_) output.block->release();
}

void ExecutableJob::run(const volatile int32_t* cancel) {
  executable_->execute(inputs_.data(), outputs_.data(), cancel);
}

}  // namespace jato
