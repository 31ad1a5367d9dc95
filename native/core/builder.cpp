// Building executables: declares slots, checks and appends steps.
#include <algorithm>
#include <utility>

#include "executable.h"

namespace jato {
namespace {

[[noreturn]] void fail(const char* method, const std::string& message) {
  throw Error(ErrorKind::Value, "ExecutableBuilder." + std::string(method) + ": " + message);
}

bool is_loop_integer(DType dtype) { return dtype == DType::Int32 || dtype == DType::Int64; }

}  // namespace

ExecutableBuilder::ExecutableBuilder() : executable_(Ref<Executable>::adopt(new Executable)) {}

Slot ExecutableBuilder::declare(SlotKind kind) {
  if (!executable_) fail("slot", "the executable is finished already");
  slot_kinds_.push_back(kind);
  return static_cast<Slot>(slot_kinds_.size()) - 1;
}

Slot ExecutableBuilder::input(size_t bytes) {
  const Slot slot = declare(SlotKind::Input);
  executable_->input_slots_.push_back(slot);
  executable_->input_bytes_.push_back(bytes);
  return slot;
}

Slot ExecutableBuilder::output(size_t bytes, int take_over) {
  const Slot slot = declare(SlotKind::Output);
  executable_->outputs_.push_back({bytes, OutputKind::Fresh, -1, take_over, slot});
  return slot;
}

int ExecutableBuilder::output_alias(size_t bytes, OutputKind kind, int index) {
  if (!executable_) fail("output_alias", "the executable is finished already");
  if (kind == OutputKind::Fresh) fail("output_alias", "an alias is of an input, a constant or an output");
  executable_->outputs_.push_back({bytes, kind, index, -1, kNoSlot});
  return executable_->num_outputs() - 1;
}

Slot ExecutableBuilder::temp(size_t offset) {
  const Slot slot = declare(SlotKind::Temp);
  executable_->temps_.push_back({slot, offset});
  return slot;
}

Slot ExecutableBuilder::constant(Ref<Block> block, void* data, size_t bytes) {
  if (!block) fail("constant", "expected a block, got none");
  const Slot slot = declare(SlotKind::Constant);
  executable_->constants_.push_back({slot, std::move(block), data, bytes});
  return slot;
}

Slot ExecutableBuilder::view() {
  const Slot slot = declare(SlotKind::View);
  executable_->views_.push_back(slot);
  return slot;
}

void ExecutableBuilder::check_slot(Slot slot, const char* method) const {
  if (slot < 0 || static_cast<size_t>(slot) >= slot_kinds_.size()) {
    fail(method, "there is no slot " + std::to_string(slot) + ", only 0 to " +
                     std::to_string(static_cast<int>(slot_kinds_.size()) - 1));
  }
}

void ExecutableBuilder::check_slots(const std::vector<Slot>& slots, const char* method) {
  for (const Slot slot : slots) check_slot(slot, method);
  if (executable_) {
    executable_->max_step_slots_ = std::max(executable_->max_step_slots_, static_cast<int>(slots.size()));
  }
}

void ExecutableBuilder::check_writable(Slot slot, const char* method) const {
  check_slot(slot, method);
  const SlotKind kind = slot_kinds_[static_cast<size_t>(slot)];
  if (kind == SlotKind::Input || kind == SlotKind::Constant) {
    fail(method, "slot " + std::to_string(slot) + " is an input or a constant and must not be written");
  }
}

void ExecutableBuilder::check_launch(const LaunchStep& step, const char* method) {
  check_slots(step.slots, method);
  if (step.fn == nullptr) fail(method, "the kernel '" + step.name + "' has no address");
  if (step.grain < 1) fail(method, "expected a grain of at least 1, got " + std::to_string(step.grain));
  if (step.extent < 0) fail(method, "expected an extent of at least 0, got " + std::to_string(step.extent));
  if (!(step.cost_ns >= 0)) fail(method, "expected a cost of at least 0");
}

void ExecutableBuilder::append(Step step) {
  if (!executable_) fail("append", "the executable is finished already");
  StepList* list = &executable_->steps_;
  if (!open_.empty()) {
    if (auto* loop = std::get_if<LoopStep>(&open_.back().kind)) {
      list = &loop->body;
    } else {
      list = &std::get<BranchStep>(open_.back().kind).cases.back();
    }
  }
  list->push_back(std::move(step));
}

void ExecutableBuilder::launch(LaunchStep step) {
  check_launch(step, "launch");
  append({std::move(step)});
}

LibraryStep ExecutableBuilder::make_library(std::string_view name, std::vector<Slot> slots,
                                            std::vector<int64_t> params, const char* method) {
  const LibraryRoutine* const routine = find_routine(name);
  if (routine == nullptr) fail(method, "there is no library routine '" + std::string(name) + "'");
  check_slots(slots, method);
  if (static_cast<int>(slots.size()) != routine->num_buffers ||
      static_cast<int>(params.size()) != routine->num_params) {
    fail(method, "'" + std::string(name) + "' takes " + std::to_string(routine->num_buffers) +
                     " buffers and " + std::to_string(routine->num_params) + " parameters, got " +
                     std::to_string(slots.size()) + " and " + std::to_string(params.size()));
  }
  routine->check(params.data());
  return {routine, std::move(slots), std::move(params)};
}

void ExecutableBuilder::library(std::string_view name, std::vector<Slot> slots, std::vector<int64_t> params,
                                double cost_ns) {
  LibraryStep step = make_library(name, std::move(slots), std::move(params), "library");
  step.cost_ns = cost_ns;
  append({std::move(step)});
}

void ExecutableBuilder::tiled(int64_t rows, int64_t step_rows, int64_t row_steps,
                              std::string_view library_name, std::vector<Slot> library_slots,
                              std::vector<int64_t> library_params, double library_cost_ns,
                              LaunchStep launch) {
  if (step_rows < 1 || row_steps < 1 || (step_rows > 1 && row_steps > 1)) {
    fail("tiled", "expected step_rows and row_steps of at least 1, one of them 1, got " +
                      std::to_string(step_rows) + " and " + std::to_string(row_steps));
  }
  LibraryStep library =
      make_library(library_name, std::move(library_slots), std::move(library_params), "tiled");
  if (library.routine->run_tiled == nullptr) {
    fail("tiled", "'" + std::string(library_name) + "' cannot run on a part of its rows");
  }
  library.cost_ns = library_cost_ns;
  check_launch(launch, "tiled");
  const int64_t steps = (rows * row_steps + step_rows - 1) / step_rows;
  if (launch.extent != steps) {
    fail("tiled", "the kernel's extent is " + std::to_string(launch.extent) + ", the rows take " +
                      std::to_string(steps) + " grid steps");
  }
  // Both lists are gathered at the same time.
  executable_->max_step_slots_ =
      std::max(executable_->max_step_slots_, static_cast<int>(library.slots.size() + launch.slots.size()));
  append({TiledStep{rows, step_rows, row_steps, std::move(library), std::move(launch)}});
}

int ExecutableBuilder::callback(HostCallback callback) {
  if (!executable_) fail("callback", "the executable is finished already");
  if (!callback) fail("callback", "expected a callable, got an empty one");
  executable_->callbacks_.push_back(std::move(callback));
  return static_cast<int>(executable_->callbacks_.size()) - 1;
}

void ExecutableBuilder::host(int callback, std::vector<Slot> slots) {
  check_slots(slots, "host");
  if (executable_ && (callback < 0 || static_cast<size_t>(callback) >= executable_->callbacks_.size())) {
    fail("host", "there is no callback " + std::to_string(callback));
  }
  append({HostStep{callback, std::move(slots)}});
}

void ExecutableBuilder::swap(Slot a, Slot b) {
  for (const Slot slot : {a, b}) {
    check_writable(slot, "swap");
    const SlotKind kind = slot_kinds_[static_cast<size_t>(slot)];
    if (kind == SlotKind::View) fail("swap", "slot " + std::to_string(slot) + " is a view");
    if (kind == SlotKind::Output && executable_) executable_->swaps_outputs_ = true;
  }
  append({SwapStep{a, b}});
}

void ExecutableBuilder::copy(Slot destination, Slot source, int64_t bytes) {
  check_writable(destination, "copy");
  check_slot(source, "copy");
  if (bytes < 0) fail("copy", "expected a number of bytes of at least 0, got " + std::to_string(bytes));
  append({CopyStep{destination, source, bytes}});
}

void ExecutableBuilder::slice(Slot slot, Slot base, int64_t base_offset, int64_t stride) {
  check_slot(slot, "slice");
  check_slot(base, "slice");
  if (slot_kinds_[static_cast<size_t>(slot)] != SlotKind::View) {
    fail("slice", "slot " + std::to_string(slot) + " was not declared by view()");
  }
  append({SliceStep{slot, base, base_offset, stride}});
}

void ExecutableBuilder::begin_loop(LoopStep loop) {
  if (loop.count_slot != kNoSlot) check_slot(loop.count_slot, "begin_loop");
  if (loop.predicate_slot != kNoSlot) check_slot(loop.predicate_slot, "begin_loop");
  if (loop.iteration_slot != kNoSlot) check_writable(loop.iteration_slot, "begin_loop");
  if (loop.count < 0 && loop.count_slot == kNoSlot && loop.predicate_slot == kNoSlot) {
    fail("begin_loop", "a loop needs a count, a slot for the count or a slot for the predicate");
  }
  if (!is_loop_integer(loop.count_dtype) || !is_loop_integer(loop.iteration_dtype)) {
    fail("begin_loop", "the count and the iteration number are int32 or int64");
  }
  loop.body.clear();
  open_.push_back({std::move(loop)});
}

void ExecutableBuilder::begin_branch(Slot index_slot) {
  check_slot(index_slot, "begin_branch");
  BranchStep branch{index_slot, {}};
  branch.cases.emplace_back();
  open_.push_back({std::move(branch)});
}

void ExecutableBuilder::next_case() {
  BranchStep* const branch = open_.empty() ? nullptr : std::get_if<BranchStep>(&open_.back().kind);
  if (branch == nullptr) fail("next_case", "the innermost open block is not a branch");
  branch->cases.emplace_back();
}

void ExecutableBuilder::end() {
  if (open_.empty()) fail("end", "no loop or branch is open");
  Step step = std::move(open_.back());
  open_.pop_back();
  append(std::move(step));
}

void ExecutableBuilder::check_output(const OutputSpec& output, int number) const {
  const std::string which = "output " + std::to_string(number) + " ";
  const Executable& executable = *executable_;
  int limit = 0;
  switch (output.kind) {
    case OutputKind::Fresh:
      if (output.take_over >= executable.num_inputs()) {
        fail("finish",
             which + "takes over input " + std::to_string(output.take_over) + ", which does not exist");
      }
      return;
    case OutputKind::AliasInput:
      limit = executable.num_inputs();
      break;
    case OutputKind::AliasConstant:
      limit = static_cast<int>(executable.constants_.size());
      break;
    case OutputKind::AliasOutput:
      limit = number;
      break;
  }
  if (output.index < 0 || output.index >= limit) {
    fail("finish", which + "is an alias of number " + std::to_string(output.index) +
                       ", which does not exist or comes later");
  }
  if (output.kind != OutputKind::AliasInput) return;
  for (const OutputSpec& other : executable.outputs_) {
    if (other.take_over == output.index) {
      fail("finish", which + "is an alias of an input that another output takes over");
    }
  }
}

Ref<Executable> ExecutableBuilder::finish(size_t arena_bytes, double cost_ns, bool unbounded,
                                          std::string name) {
  if (!executable_) fail("finish", "the executable is finished already");
  if (!open_.empty()) fail("finish", std::to_string(open_.size()) + " loops or branches are still open");
  Executable& executable = *executable_;
  for (int j = 0; j < executable.num_outputs(); ++j) {
    check_output(executable.outputs_[static_cast<size_t>(j)], j);
    if (executable.outputs_[static_cast<size_t>(j)].take_over >= 0) executable.may_take_over_ = true;
  }
  for (const Executable::TempSlot& temp : executable.temps_) {
    if (temp.offset > arena_bytes) {
      fail("finish", "a temporary begins at " + std::to_string(temp.offset) + ", behind the arena of " +
                         std::to_string(arena_bytes) + " bytes");
    }
  }
  executable.num_slots_ = static_cast<int>(slot_kinds_.size());
  executable.arena_bytes_ = arena_bytes;
  executable.cost_ns_ = cost_ns;
  executable.unbounded_ = unbounded;
  executable.name_ = std::move(name);
  return std::move(executable_);
}

}  // namespace jato
