// The text form of executables: one line for each step, nested blocks indented.
#include <sstream>

#include "executable.h"

namespace jato {
namespace {

template <class T>
std::string join(const std::vector<T>& values) {
  std::ostringstream out;
  out << '(';
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
  out << ')';
  return out.str();
}

class Printer {
 public:
  explicit Printer(std::ostringstream& out) : out_(out) {}

  void steps(const StepList& list) {
    ++depth_;
    for (const Step& step : list) std::visit(*this, step.kind);
    --depth_;
  }

  void operator()(const LaunchStep& s) {
    line() << "launch " << s.name << " slots=" << join(s.slots) << " params=" << join(s.params)
           << " extent=" << s.extent << " grain=" << s.grain << " cost_ns=" << s.cost_ns;
    if (s.scratch_bytes != 0) out_ << " scratch=" << s.scratch_bytes;
    out_ << '\n';
  }
  void operator()(const LibraryStep& s) {
    line() << "library " << s.routine->name << " slots=" << join(s.slots) << " params=" << join(s.params)
           << " cost_ns=" << s.cost_ns << '\n';
  }
  void operator()(const TiledStep& s) {
    line() << "tiled rows=" << s.rows << " step_rows=" << s.step_rows << " row_steps=" << s.row_steps << '\n';
    ++depth_;
    (*this)(s.library);
    (*this)(s.launch);
    --depth_;
  }
  void operator()(const HostStep& s) {
    line() << "host " << s.callback << " slots=" << join(s.slots) << '\n';
  }
  void operator()(const SwapStep& s) { line() << "swap " << s.a << ' ' << s.b << '\n'; }
  void operator()(const CopyStep& s) {
    line() << "copy " << s.destination << " <- " << s.source << " bytes=" << s.bytes << '\n';
  }
  void operator()(const SliceStep& s) {
    line() << "slice " << s.slot << " <- " << s.base << " + " << s.base_offset << " + iteration * "
           << s.stride << '\n';
  }
  void operator()(const LoopStep& s) {
    line() << "loop";
    if (s.count >= 0) out_ << " count=" << s.count;
    if (s.count_slot != kNoSlot) out_ << " count_slot=" << s.count_slot;
    if (s.predicate_slot != kNoSlot) out_ << " while=" << s.predicate_slot;
    if (s.iteration_slot != kNoSlot) out_ << " iteration=" << s.iteration_slot;
    out_ << '\n';
    steps(s.body);
  }
  void operator()(const BranchStep& s) {
    line() << "branch index=" << s.index_slot << '\n';
    for (size_t i = 0; i < s.cases.size(); ++i) {
      line() << "case " << i << '\n';
      steps(s.cases[i]);
    }
  }

 private:
  std::ostringstream& line() {
    for (int i = 0; i < depth_; ++i) out_ << "  ";
    return out_;
  }

  std::ostringstream& out_;
  int depth_ = -1;
};

}  // namespace

std::string Executable::describe() const {
  std::ostringstream out;
  for (size_t i = 0; i < input_slots_.size(); ++i) {
    out << "slot " << input_slots_[i] << " = input " << i << " bytes=" << input_bytes_[i] << '\n';
  }
  for (size_t k = 0; k < constants_.size(); ++k) {
    out << "slot " << constants_[k].slot << " = constant " << k << " bytes=" << constants_[k].bytes << '\n';
  }
  for (const TempSlot& temp : temps_) out << "slot " << temp.slot << " = temp offset=" << temp.offset << '\n';
  for (const Slot view : views_) out << "slot " << view << " = view\n";
  for (size_t j = 0; j < outputs_.size(); ++j) {
    const OutputSpec& spec = outputs_[j];
    if (spec.kind == OutputKind::Fresh) {
      out << "slot " << spec.slot << " = output " << j << " bytes=" << spec.bytes;
      if (spec.take_over >= 0) out << " take_over=" << spec.take_over;
    } else {
      const char* const kinds[] = {"fresh", "input", "constant", "output"};
      out << "output " << j << " = " << kinds[static_cast<int>(spec.kind)] << ' ' << spec.index
          << " bytes=" << spec.bytes;
    }
    out << '\n';
  }
  Printer(out).steps(steps_);
  out << "arena=" << arena_bytes_ << " cost_ns=" << cost_ns_ << '\n';
  return out.str();
}

}  // namespace jato
