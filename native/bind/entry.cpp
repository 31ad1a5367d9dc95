// Entry: the compiled code for one signature and how its inputs and results are arranged.
#include <algorithm>

#include "dispatch.h"
#include "waiting.h"

namespace jato::bind {

PyTypeObject* entry_class = nullptr;

namespace {

Entry* as_entry(PyObject* object) { return reinterpret_cast<Entry*>(object); }

int read_positions(PyObject* sequence, const char* what, std::vector<int32_t>& positions) {
  PyRef items = PyRef::steal(PySequence_Fast(sequence, what));
  if (!items) return -1;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    long position = PyLong_AsLong(PySequence_Fast_GET_ITEM(items.get(), i));
    if (position == -1 && PyErr_Occurred()) return -1;
    if (position < 0 || position > INT32_MAX) {
      PyErr_Format(PyExc_ValueError, "%s: positions must not be negative, got %ld", what, position);
      return -1;
    }
    positions.push_back(static_cast<int32_t>(position));
  }
  return 0;
}

// [(slot, offset in bytes), ...]
int read_operands(PyObject* sequence, std::vector<StageOperand>& operands) {
  PyRef items = PyRef::steal(PySequence_Fast(sequence, "Entry: operands of a part"));
  if (!items) return -1;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    int slot;
    long long offset;
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iL:operand", &slot, &offset)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Entry: an operand is (slot, offset)");
      return -1;
    }
    operands.push_back({slot, offset});
  }
  return 0;
}

// (device, executable, inputs, outputs)
int read_part(PyObject* item, RunPlan& plan, Stage& stage) {
  StagePart part{};
  PyObject *executable, *inputs, *outputs;
  if (!PyTuple_Check(item) ||
      !PyArg_ParseTuple(item, "iOOO:part", &part.device, &executable, &inputs, &outputs)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "Entry: a part is (device, executable, inputs, outputs)");
    return -1;
  }
  if (!is_executable(executable)) {
    PyErr_Format(PyExc_TypeError, "Entry: a part's executable is a %s", Py_TYPE(executable)->tp_name);
    return -1;
  }
  if (read_operands(inputs, part.inputs) < 0 || read_operands(outputs, part.outputs) < 0) return -1;
  auto* program = reinterpret_cast<ExecutableObject*>(PyRef::borrow(executable).release());
  plan.stage_executables.push_back(program);
  part.executable = jato::Ref<Executable>::share(program->executable);
  stage.parts.push_back(std::move(part));
  return 0;
}

// stages: [[part, ...], ...]; buffers: bytes of each value between them.
int read_stages(PyObject* sequence, PyObject* buffers, size_t num_inputs, RunPlan& plan) {
  PyRef items = PyRef::steal(PySequence_Fast(sequence, "Entry: argument 'stages'"));
  if (!items) return -1;
  std::vector<Stage> stages;
  for (Py_ssize_t s = 0; s < PySequence_Fast_GET_SIZE(items.get()); ++s) {
    PyRef parts = PyRef::steal(PySequence_Fast(PySequence_Fast_GET_ITEM(items.get(), s), "Entry: a stage"));
    if (!parts) return -1;
    stages.emplace_back();
    for (Py_ssize_t p = 0; p < PySequence_Fast_GET_SIZE(parts.get()); ++p) {
      if (read_part(PySequence_Fast_GET_ITEM(parts.get(), p), plan, stages.back()) < 0) return -1;
    }
  }
  PyRef sizes = PyRef::steal(PySequence_Fast(buffers, "Entry: argument 'buffers'"));
  if (!sizes) return -1;
  std::vector<size_t> bytes;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes.get()); ++i) {
    bytes.push_back(PyLong_AsSize_t(PySequence_Fast_GET_ITEM(sizes.get(), i)));
    if (PyErr_Occurred()) return -1;
  }
  for (const ArrayType* type : plan.output_types) bytes.push_back(static_cast<size_t>(type->nbytes));
  try {
    plan.staged =
        std::make_shared<StagedProgram>(static_cast<int>(num_inputs), std::move(bytes),
                                        static_cast<int>(plan.output_types.size()), std::move(stages));
  } catch (...) {
    set_current_error();
    return -1;
  }
  return 0;
}

// A program may take over only what the call donates.
int check_take_over(const RunPlan& plan) {
  const Executable& executable = *plan.executable->executable;
  for (int j = 0; j < executable.num_outputs(); ++j) {
    int32_t taken = executable.output(j).take_over;
    if (taken < 0) continue;
    if (static_cast<size_t>(taken) >= plan.selection.size() ||
        std::find(plan.donated.begin(), plan.donated.end(), plan.selection[static_cast<size_t>(taken)]) ==
            plan.donated.end()) {
      PyErr_Format(PyExc_ValueError, "Entry: output %d takes over input %d, which is not donated", j,
                   static_cast<int>(taken));
      return -1;
    }
  }
  return 0;
}

void entry_free_members(Entry* entry) {
  release_plan(entry->plan);
  Py_CLEAR(entry->out_tree);
  Py_CLEAR(entry->effects);
  Py_CLEAR(entry->info);
}

int fill_entry(Entry* entry, PyObject* executable, PyObject* out_tree, PyObject* selection,
               PyObject* constants, PyObject* donated, PyObject* stages, PyObject* buffers,
               PyObject* output_types) {
  RunPlan& plan = entry->plan;
  entry->out_tree = reinterpret_cast<TreeDef*>(PyRef::borrow(out_tree).release());
  if (read_positions(selection, "Entry: argument 'leaf_selection'", plan.selection) < 0 ||
      read_positions(donated, "Entry: argument 'donated'", plan.donated) < 0)
    return -1;
  PyRef items = PyRef::steal(PySequence_Fast(constants, "Entry: argument 'constants'"));
  if (!items) return -1;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* constant = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_array(constant)) {
      PyErr_Format(PyExc_TypeError, "Entry: argument 'constants': expected Arrays, got %s",
                   Py_TYPE(constant)->tp_name);
      return -1;
    }
    plan.constants.push_back(PyRef::borrow(constant).release());
  }
  size_t num_inputs = plan.selection.size() + plan.constants.size();
  if (stages != Py_None) {
    PyRef types = PyRef::steal(PySequence_Fast(output_types, "Entry: argument 'output_types'"));
    if (!types) return -1;
    for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(types.get()); ++j) {
      PyObject* type = PySequence_Fast_GET_ITEM(types.get(), j);
      if (!is_array_type(type)) {
        PyErr_Format(PyExc_TypeError, "Entry: argument 'output_types': expected ArrayTypes, got %s",
                     Py_TYPE(type)->tp_name);
        return -1;
      }
      plan.output_types.push_back(reinterpret_cast<ArrayType*>(PyRef::borrow(type).release()));
    }
    entry->num_outputs = static_cast<int32_t>(plan.output_types.size());
    if (read_stages(stages, buffers, num_inputs, plan) < 0) return -1;
  } else {
    if (!is_executable(executable)) {
      PyErr_Format(PyExc_TypeError, "Entry: argument 'executable': expected an Executable, got %s",
                   Py_TYPE(executable)->tp_name);
      return -1;
    }
    plan.executable = reinterpret_cast<ExecutableObject*>(PyRef::borrow(executable).release());
    if (plan.executable->input_types.size() != num_inputs) {
      PyErr_Format(PyExc_ValueError,
                   "Entry: the executable has %zu inputs, but %zu leaves and %zu constants were given",
                   plan.executable->input_types.size(), plan.selection.size(), plan.constants.size());
      return -1;
    }
    entry->num_outputs = static_cast<int32_t>(plan.executable->output_types.size());
    if (check_take_over(plan) < 0) return -1;
  }
  const Node& root = entry->out_tree->nodes[0];
  if (root.num_leaves != entry->num_outputs) {
    PyErr_Format(PyExc_ValueError, "Entry: out_tree has %d leaves, the executable %d outputs",
                 static_cast<int>(root.num_leaves), static_cast<int>(entry->num_outputs));
    return -1;
  }
  entry->single = root.kind == NodeKind::Leaf;
  return 0;
}

PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"executable",   "out_tree", "leaf_selection", "constants", "donated",
                                "effects",      "device",   "placement",      "info",      "stages",
                                "buffers",      "output_types", "ordered", nullptr};
  PyRef empty = PyRef::steal(PyTuple_New(0));
  if (!empty) return nullptr;
  PyObject *executable, *out_tree, *selection, *constants = empty.get(), *donated = empty.get(),
                                               *effects = Py_None;
  PyObject *placement = Py_None, *info = Py_None, *stages = Py_None, *buffers = empty.get(),
           *output_types = empty.get();
  int device = 0, ordered = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OOO$iOOOOOp:Entry", const_cast<char**>(names),
                                   &executable, &out_tree, &selection, &constants, &donated, &effects,
                                   &device, &placement, &info, &stages, &buffers, &output_types, &ordered))
    return nullptr;
  if (!is_tree_def(out_tree)) {
    PyErr_Format(PyExc_TypeError, "Entry: argument 'out_tree': expected a PyTreeDef, got %s",
                 Py_TYPE(out_tree)->tp_name);
    return nullptr;
  }
  if (device < 0) {
    PyErr_Format(PyExc_ValueError, "Entry: argument 'device': expected a device number, got %d", device);
    return nullptr;
  }
  Entry* entry = reinterpret_cast<Entry*>(type->tp_alloc(type, 0));
  if (!entry) return nullptr;
  new (&entry->plan) RunPlan();
  PyRef owner = PyRef::steal(reinterpret_cast<PyObject*>(entry));
  entry->effects = PyRef::borrow(effects).release();
  entry->info = PyRef::borrow(info).release();
  entry->plan.owner = owner.get();
  entry->plan.ordered = ordered != 0;
  entry->plan.device = device;
  set_global(entry->plan.placement, placement);
  if (fill_entry(entry, executable, out_tree, selection, constants, donated, stages, buffers, output_types) <
      0)
    return nullptr;
  return owner.release();
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
  Entry* entry = as_entry(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(entry->plan.executable);
  Py_VISIT(entry->plan.placement);
  for (ExecutableObject* executable : entry->plan.stage_executables) Py_VISIT(executable);
  Py_VISIT(entry->out_tree);
  Py_VISIT(entry->effects);
  Py_VISIT(entry->info);
  return 0;
}

// Only what can be part of a cycle: an entry in use keeps its program.
int entry_clear(PyObject* self) {
  Py_CLEAR(as_entry(self)->info);
  Py_CLEAR(as_entry(self)->effects);
  return 0;
}

void entry_dealloc(PyObject* self) {
  Entry* entry = as_entry(self);
  PyObject_GC_UnTrack(self);
  if (entry->weakrefs) PyObject_ClearWeakRefs(self);
  entry_free_members(entry);
  entry->plan.~RunPlan();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get_executable(PyObject* self, void*) {
  PyObject* executable = reinterpret_cast<PyObject*>(as_entry(self)->plan.executable);
  return PyRef::borrow(executable ? executable : Py_None).release();
}

PyObject* get_device(PyObject* self, void*) { return PyLong_FromLong(as_entry(self)->plan.device); }

PyObject* run_method(PyObject* self, PyObject* leaves) {
  PyRef items = PyRef::steal(PySequence_Fast(leaves, "Entry.run: expected a sequence of leaves"));
  if (!items) return nullptr;
  Signature signature;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    signature.holders.borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    if (add_leaf(signature, PySequence_Fast_GET_ITEM(items.get(), i)) < 0) return nullptr;
  }
  return run_entry(as_entry(self), signature);
}

PyMemberDef entry_members[] = {
    {"out_tree", T_OBJECT, offsetof(Entry, out_tree), READONLY, "structure of the result"},
    {"effects", T_OBJECT, offsetof(Entry, effects), READONLY,
     "the effects, or whatever else the maker keeps there"},
    {"info", T_OBJECT, offsetof(Entry, info), 0, "whatever the maker wants to remember"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Entry, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef entry_getset[] = {
    {"executable", get_executable, nullptr, "the Executable, None with stages", nullptr},
    {"device", get_device, nullptr, "the logical device", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef entry_methods[] = {
    {"run", run_method, METH_O,
     "run(leaves) -> result: runs on the dynamic leaves of a call, in flattening order"},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot entry_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(entry_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(entry_clear)},
    {Py_tp_members, entry_members},
    {Py_tp_getset, entry_getset},
    {Py_tp_methods, entry_methods},
    {Py_tp_doc,
     const_cast<char*>(
         "Entry(executable, out_tree, leaf_selection, constants=(), donated=(), effects=None, *, device=0,\n"
         "      placement=None, info=None, stages=None, buffers=(), output_types=(), ordered=False)\n--\n\n"
         "Compiled code for one signature.  The executable's inputs are the selected dynamic leaves, in\n"
         "this order, then the constants (Arrays).  `donated` are positions of leaves whose arrays are\n"
         "deleted by the call.  `placement` is given to the results.  With `stages` the program is spread\n"
         "over devices and `executable` is None: each stage is a list of parts (device, executable, inputs,\n"
         "outputs) that run on their devices, or one part of device -1 that runs when all have arrived.  Its\n"
         "inputs and outputs are (slot, offset in bytes); slots are the inputs, then `buffers` (their bytes),\n"
         "then results of `output_types`.  An `ordered` program never overtakes queued work of its device.")},
    {0, nullptr},
};

PyType_Spec entry_spec = {"jato._native.Entry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                          entry_slots};

}  // namespace

PyObject* run_entry(Entry* entry, Signature& signature) {
  for (int32_t leaf : entry->plan.selection) {
    if (JATO_UNLIKELY(static_cast<size_t>(leaf) >= signature.leaves.size())) {
      PyErr_Format(PyExc_ValueError, "Entry: leaf %d is selected, but the call has %zu dynamic leaves",
                   static_cast<int>(leaf), signature.leaves.size());
      return nullptr;
    }
  }
  Py_INCREF(entry);  // the cache may drop it while it runs
  SmallVector<PyObject*, 128> results;
  PyObject* result = nullptr;
  if (run_plan(entry->plan, signature, results) == 0) {
    if (JATO_LIKELY(entry->single)) {
      result = results[0];
    } else {
      result = unflatten(entry->out_tree, results.data());
      for (PyObject* item : results) Py_DECREF(item);
    }
  }
  Py_DECREF(entry);
  return result;
}

int add_entry(PyObject* module) {
  entry_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
  if (!entry_class) return -1;
  return PyModule_AddObjectRef(module, "Entry", reinterpret_cast<PyObject*>(entry_class));
}

}  // namespace jato::bind
