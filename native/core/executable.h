// Executable: a compiled program, as a list of steps over a table of slots.
//
// A slot is a pointer at run time: to an input, an output, a place in the arena of temporaries, or a
// constant.  Everything with a size is fixed when the executable is built, so that running one
// allocates its outputs, at most one arena, and nothing else.
//
//   ExecutableBuilder  declares slots and outputs, appends steps, opens and closes nested blocks
//   Executable         prepare_outputs (allocates, aliases, takes over donated inputs), execute, run
//   Step               one of the structures below; loops and branches hold lists of steps
//
// Start at Executable::run, then execute_steps in executable.cpp.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dtype.h"
#include "kernel_abi.h"
#include "library.h"
#include "pool.h"
#include "queue.h"
#include "ref.h"

namespace jato {

// Below this estimate a program runs at once on the calling thread, above it on the device's queue.
inline constexpr double kInlineLimitNs = 150'000;
// A launch is spread over threads when one thread would need longer than this.
inline constexpr double kParallelThresholdNs = 10'000;

// A program whose cost nobody knows is given up on the calling thread after this time, and queued.
inline constexpr auto kTrialTime = std::chrono::microseconds(300);
inline constexpr int kMostTrials = 3;

// A flag that is never raised, for runs that nobody cancels.
extern const volatile int32_t kNeverCancelled;

// An array as the runtime sees it.  `block` may be null for an input whose memory the caller keeps
// valid during an inline run (a NumPy array, a scalar on the stack).
struct Buffer {
  Block* block = nullptr;
  void* data = nullptr;
};

// Gets the pointers of its step's slots.  May throw; the exception ends the run and reaches the
// caller or the event unchanged.  Copied and destroyed with the executable.
using HostCallback = std::function<void(void* const* buffers)>;

// --- steps -------------------------------------------------------------------------------------

struct Step;
using StepList = std::vector<Step>;
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

// Runs a kernel over its grid [0, extent).
struct LaunchStep {
  KernelFn fn = nullptr;
  std::vector<Slot> slots;
  std::vector<int64_t> params;
  int64_t extent = 0;
  int64_t grain = 1;
  double cost_ns = 0;  // of one grid iteration
  int64_t scratch_bytes = 0;
  std::string name;
  int64_t bytes = 0;  // memory traffic, for the profile
};

// Runs a routine of library.h.
struct LibraryStep {
  const LibraryRoutine* routine;
  std::vector<Slot> slots;
  std::vector<int64_t> params;
  double cost_ns = 0;  // of the whole routine, on one thread
};

// For blocks of rows, in parallel: the routine on these rows, then the part of the kernel's grid that works
// on them, while they are in cache.  A grid step works on `step_rows` rows, or a row takes `row_steps` grid
// steps (the other number is 1).
struct TiledStep {
  int64_t rows;
  int64_t step_rows, row_steps;
  LibraryStep library;
  LaunchStep launch;
};

struct HostStep {
  int callback;
  std::vector<Slot> slots;
};

// Exchanges two pointers (the carries of a loop).  Temporaries and fresh outputs only.
struct SwapStep {
  Slot a, b;
};

struct CopyStep {
  Slot destination, source;
  int64_t bytes;
};

// Points `slot` (declared by view()) into `base`, at base_offset + iteration * stride bytes, where
// iteration is that of the innermost loop around the step, 0 outside loops.
struct SliceStep {
  Slot slot, base;
  int64_t base_offset, stride;
};

// Repeats its body: `count` times (negative: no bound), or as often as the integer in `count_slot` says
// when the loop is entered, and while the bool in `predicate_slot` is true (tested before each iteration; the
// body computes the next one).  `iteration_slot` receives the iteration number before each iteration. Ends
// early when the run is cancelled.
struct LoopStep {
  int64_t count = -1;
  Slot count_slot = kNoSlot;
  DType count_dtype = DType::Int32;
  Slot predicate_slot = kNoSlot;
  Slot iteration_slot = kNoSlot;
  DType iteration_dtype = DType::Int32;
  StepList body;
};

// Runs one of its cases: the one numbered by the int32 in `index_slot`, clamped.
struct BranchStep {
  Slot index_slot;
  std::vector<StepList> cases;
};

struct Step {
  std::variant<LaunchStep, LibraryStep, TiledStep, HostStep, SwapStep, CopyStep, SliceStep, LoopStep,
               BranchStep>
      kind;
};

// --- executable --------------------------------------------------------------------------------

enum class OutputKind : uint8_t { Fresh, AliasInput, AliasConstant, AliasOutput };

struct OutputSpec {
  size_t bytes;
  OutputKind kind = OutputKind::Fresh;
  int32_t index = -1;      // of the input, constant or output whose buffer it shares
  int32_t take_over = -1;  // Fresh: the donated input whose block it may take
  Slot slot = kNoSlot;     // Fresh: where kernels write it
};

class Executable {
 public:
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  int num_inputs() const noexcept { return static_cast<int>(input_slots_.size()); }
  int num_outputs() const noexcept { return static_cast<int>(outputs_.size()); }
  const OutputSpec& output(int j) const { return outputs_[j]; }
  size_t input_bytes(int i) const { return input_bytes_[i]; }
  // The compiler's estimate for one thread.
  double cost_ns() const noexcept { return cost_ns_; }
  // It holds loops without a known number of iterations, so that the estimate may be far too low.
  bool unbounded() const noexcept { return unbounded_; }
  // May it be tried on the calling thread, and started again elsewhere?
  bool may_be_tried() const noexcept {
    return callbacks_.empty() && !may_take_over_ && failed_trials_.load(std::memory_order_relaxed) < kMostTrials;
  }
  // Remembers how a trial ended: after several in a row that took too long, runs are queued at once.  (One
  // may be a busy machine's fault.)
  void note_trial(bool in_time) const noexcept {
    if (in_time && failed_trials_.load(std::memory_order_relaxed) == 0) return;
    failed_trials_.store(in_time ? 0 : failed_trials_.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  }
  size_t arena_bytes() const noexcept { return arena_bytes_; }
  bool has_host_steps() const noexcept { return !callbacks_.empty(); }

  // Fills outputs[0 .. num_outputs) with blocks; each carries one reference that the caller owns.
  // A donated input's block is taken over when the input is all of it and nobody else holds it: its
  // references are then one of the caller's array and one of the output.  An output that aliases
  // an input without a block is a copy of it.  Throws OutOfMemory, and then leaves no references.
  void prepare_outputs(const Buffer* inputs, Buffer* outputs) const;
  // Runs the steps.  Needs prepared outputs; keeps nothing after it returns.
  void execute(const Buffer* inputs, const Buffer* outputs,
               const volatile int32_t* cancel = &kNeverCancelled) const;
  // The same with memory of somebody else's for every output, also for those that share a buffer: these
  // become copies.
  void execute_into(const Buffer* inputs, const Buffer* outputs, const volatile int32_t* cancel) const;
  // Both.  When a step throws, the outputs are released again.
  void run(const Buffer* inputs, Buffer* outputs, const volatile int32_t* cancel = &kNeverCancelled) const;

  // What the user calls it.
  const std::string& name() const noexcept { return name_; }
  // Memory for a result or temporaries; an error of memory begins with the name.
  Ref<Block> new_block(size_t bytes) const;
  // The steps as text, one a line.
  std::string describe() const;

 private:
  friend class ExecutableBuilder;
  struct Frame;
  Executable() = default;
  ~Executable() = default;

  void execute_steps(const StepList& steps, Frame& frame) const;
  void execute_step(const Step& step, Frame& frame) const;
  void execute_loop(const LoopStep& loop, Frame& frame) const;
  void settle_outputs(const Buffer* outputs, Frame& frame) const;

  struct TempSlot {
    Slot slot;
    size_t offset;
  };
  struct ConstantSlot {
    Slot slot;
    Ref<Block> block;
    void* data;
    size_t bytes;
  };

  std::atomic<int32_t> references_{1};
  std::string name_;
  StepList steps_;
  std::vector<Slot> input_slots_;
  std::vector<size_t> input_bytes_;
  std::vector<OutputSpec> outputs_;
  std::vector<TempSlot> temps_;
  std::vector<ConstantSlot> constants_;
  std::vector<Slot> views_;
  std::vector<HostCallback> callbacks_;
  int num_slots_ = 0;
  int max_step_slots_ = 0;  // longest list of slots of one step
  size_t arena_bytes_ = 0;
  double cost_ns_ = 0;
  bool unbounded_ = false;
  mutable std::atomic<int> failed_trials_{0};
  bool may_take_over_ = false;
  bool swaps_outputs_ = false;
};

// Assembles an executable.  Methods that declare a slot return its number; steps go to the
// innermost open block.  A mistake (unknown slot, unclosed block, ...) is an Error(Value).
class ExecutableBuilder {
 public:
  ExecutableBuilder();

  Slot input(size_t bytes);
  Slot output(size_t bytes, int take_over = -1);
  // Shares the buffer of input, constant or output number `index` (in order of declaration, each kind
  // counted by itself; AliasOutput counts all outputs).  Has no slot of its own; returns the output's number.
  int output_alias(size_t bytes, OutputKind kind, int index);
  Slot temp(size_t offset);
  Slot constant(Ref<Block> block, void* data, size_t bytes);
  // A slot that slice() points somewhere before it is used.
  Slot view();

  void launch(LaunchStep step);
  void library(std::string_view name, std::vector<Slot> slots, std::vector<int64_t> params, double cost_ns);
  void tiled(int64_t rows, int64_t step_rows, int64_t row_steps, std::string_view library_name,
             std::vector<Slot> library_slots, std::vector<int64_t> library_params, double library_cost_ns,
             LaunchStep launch);
  int callback(HostCallback callback);
  void host(int callback, std::vector<Slot> slots);
  void swap(Slot a, Slot b);
  void copy(Slot destination, Slot source, int64_t bytes);
  void slice(Slot slot, Slot base, int64_t base_offset, int64_t stride);

  // Only the fields besides `body` matter.
  void begin_loop(LoopStep loop);
  void begin_branch(Slot index_slot);  // opens the first case
  void next_case();
  void end();  // of the innermost loop or branch

  Ref<Executable> finish(size_t arena_bytes, double cost_ns, bool unbounded = false, std::string name = {});

 private:
  enum class SlotKind : uint8_t { Input, Output, Temp, Constant, View };

  Slot declare(SlotKind kind);
  void check_slot(Slot slot, const char* method) const;
  void check_slots(const std::vector<Slot>& slots, const char* method);
  void check_writable(Slot slot, const char* method) const;
  void check_launch(const LaunchStep& step, const char* method);
  void check_output(const OutputSpec& output, int number) const;
  LibraryStep make_library(std::string_view name, std::vector<Slot> slots, std::vector<int64_t> params,
                           const char* method);
  void append(Step step);

  Ref<Executable> executable_;
  std::vector<SlotKind> slot_kinds_;
  std::vector<Step> open_;  // loops and branches not yet ended, outermost first
};

// --- queued runs -------------------------------------------------------------------------------

// A run on a device's queue.  Holds references to the executable and to the blocks of inputs and
// outputs until it is done.  Inputs without a block must be given one (copied) by the caller.
class ExecutableJob final : public Job {
 public:
  // `outputs` come from prepare_outputs; the job adds references of its own.
  ExecutableJob(Ref<Executable> executable, const Buffer* inputs, const Buffer* outputs, Ref<Event> done);
  ~ExecutableJob() override;
  void run(const volatile int32_t* cancel) override;

 private:
  Ref<Executable> executable_;
  std::vector<Buffer> inputs_, outputs_;
};

}  // namespace jato
