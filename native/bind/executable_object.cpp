// ExecutableBuilder and Executable for Python.
#include "executable_object.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array.h"
#include "numpy_api.h"
#include "run.h"
#include "waiting.h"

namespace nb = nanobind;

namespace jato::bind {

PyTypeObject* executable_class = nullptr;

namespace {

ExecutableObject* as_executable(PyObject* object) { return reinterpret_cast<ExecutableObject*>(object); }

void executable_dealloc(PyObject* self) {
  ExecutableObject* program = as_executable(self);
  PyObject_GC_UnTrack(self);
  if (program->weakrefs) PyObject_ClearWeakRefs(self);
  if (program->executable) program->executable->release();
  for (ArrayType* type : program->input_types) Py_DECREF(type);
  for (ArrayType* type : program->output_types) Py_DECREF(type);
  program->input_types.~vector();
  program->output_types.~vector();
  Py_XDECREF(program->keep_alive);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int executable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_executable(self)->keep_alive);
  return 0;
}

PyObject* types_as_list(const std::vector<ArrayType*>& types) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(types.size()));
  for (size_t i = 0; list && i < types.size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i),
                    PyRef::borrow(reinterpret_cast<PyObject*>(types[i])).release());
  return list;
}

PyObject* get_input_types(PyObject* self, void*) { return types_as_list(as_executable(self)->input_types); }
PyObject* get_output_types(PyObject* self, void*) { return types_as_list(as_executable(self)->output_types); }
PyObject* get_cost(PyObject* self, void*) {
  return PyFloat_FromDouble(as_executable(self)->executable->cost_ns());
}
PyObject* get_arena(PyObject* self, void*) {
  return PyLong_FromSize_t(as_executable(self)->executable->arena_bytes());
}

PyObject* describe_method(PyObject* self, PyObject*) {
  std::string text = as_executable(self)->executable->describe();
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* run_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"leaves", "device", "donated", nullptr};
  PyObject *leaves, *donated = nullptr;
  int device = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|iO:run", const_cast<char**>(names), &leaves, &device,
                                   &donated))
    return nullptr;
  ExecutableObject* program = as_executable(self);
  PyRef items = PyRef::steal(PySequence_Tuple(leaves));
  if (!items) return nullptr;
  size_t count = static_cast<size_t>(PyTuple_GET_SIZE(items.get()));
  if (count != program->input_types.size()) {
    PyErr_Format(PyExc_ValueError, "Executable.run: expected %zu leaves, got %zu",
                 program->input_types.size(), count);
    return nullptr;
  }
  Signature signature;
  RunPlan plan;
  plan.executable = program;
  plan.device = device;
  for (size_t i = 0; i < count; ++i) {
    if (add_leaf(signature, PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i))) < 0) return nullptr;
    const ArrayType* expected = program->input_types[i];
    const ArrayType* got = signature.leaves[i].type;
    if (!got || got->dtype != expected->dtype || got->nbytes != expected->nbytes) {
      PyErr_Format(PyExc_TypeError, "Executable.run: leaf %zu: expected an array of type %s, got %s", i,
                   describe(expected).c_str(),
                   got ? describe(got).c_str() : Py_TYPE(signature.leaves[i].object)->tp_name);
      return nullptr;
    }
    plan.selection.push_back(static_cast<int32_t>(i));
  }
  if (donated && donated != Py_None) {
    PyRef positions = PyRef::steal(PySequence_Tuple(donated));
    if (!positions) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions.get()); ++i) {
      long position = PyLong_AsLong(PyTuple_GET_ITEM(positions.get(), i));
      if (position == -1 && PyErr_Occurred()) return nullptr;
      if (position < 0 || static_cast<size_t>(position) >= count) {
        PyErr_Format(PyExc_ValueError, "Executable.run: there is no leaf %ld to donate", position);
        return nullptr;
      }
      plan.donated.push_back(static_cast<int32_t>(position));
    }
  }
  SmallVector<PyObject*, 128> results;
  if (run_plan(plan, signature, results) < 0) return nullptr;
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(results.size()));
  for (size_t j = 0; j < results.size(); ++j) {
    if (list)
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(j), results[j]);
    else
      Py_DECREF(results[j]);
  }
  return list;
}

PyMemberDef executable_members[] = {
    {"keep_alive", T_OBJECT, offsetof(ExecutableObject, keep_alive), READONLY, "what owns the machine code"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ExecutableObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef executable_getset[] = {
    {"input_types", get_input_types, nullptr, "list of ArrayTypes", nullptr},
    {"output_types", get_output_types, nullptr, "list of ArrayTypes", nullptr},
    {"cost_ns", get_cost, nullptr, "the compiler's estimate for one thread", nullptr},
    {"arena_bytes", get_arena, nullptr, "bytes of all temporaries", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef executable_methods[] = {
    {"describe", describe_method, METH_NOARGS, "describe() -> str: the steps, one a line"},
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_method)),
     METH_VARARGS | METH_KEYWORDS, "run(leaves, device=0, donated=()) -> list of Arrays"},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot executable_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(executable_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(executable_traverse)},
    {Py_tp_members, executable_members},
    {Py_tp_getset, executable_getset},
    {Py_tp_methods, executable_methods},
    {Py_tp_doc, const_cast<char*>("A compiled program: steps over a table of slots.")},
    {0, nullptr},
};
PyType_Spec executable_spec = {"jato._native.Executable", sizeof(ExecutableObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               executable_slots};

// --- host callbacks

struct HostOperand {
  Slot slot;
  ArrayType* type;
};

// A Python function called by a host step with NumPy views of its slots: inputs read-only, then
// outputs to fill.  The views are valid during the call only.  Copied and destroyed on any thread.
class HostFunction {
 public:
  HostFunction(PyObject* function, std::vector<HostOperand> operands, size_t num_inputs)
      : state_(std::make_shared<State>(function, std::move(operands), num_inputs)) {}

  void operator()(void* const* buffers) const {
    PyGILState_STATE gil = PyGILState_Ensure();
    bool good = call(buffers);
    if (good) {
      PyGILState_Release(gil);
      return;
    }
    PythonError error = PythonError::fetch();
    PyGILState_Release(gil);
    throw error;
  }

 private:
  struct State {
    State(PyObject* f, std::vector<HostOperand> ops, size_t inputs)
        : function(f), operands(std::move(ops)), num_inputs(inputs) {
      Py_INCREF(function);
      for (HostOperand& operand : operands) Py_INCREF(operand.type);
    }
    ~State() {
      drop(function);
      for (HostOperand& operand : operands) drop(reinterpret_cast<PyObject*>(operand.type));
    }
    // At once where Python frees the program; later on a thread without the interpreter lock.
    static void drop(PyObject* object) {
      if (PyGILState_Check())
        Py_DECREF(object);
      else
        release_later(object);
    }
    PyObject* function;
    std::vector<HostOperand> operands;
    size_t num_inputs;
  };

  bool call(void* const* buffers) const {
    size_t count = state_->operands.size();
    PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!args) return false;
    for (size_t i = 0; i < count; ++i) {
      const ArrayType* type = state_->operands[i].type;
      PyArray_Descr* descr = numpy_descr(type->dtype == DType::Key ? DType::UInt64 : type->dtype);
      if (!descr) {
        PyErr_Format(PyExc_TypeError, "a host callback cannot take an array of dtype %s", name(type->dtype));
        return false;
      }
      if (type->dtype == DType::Float0) descr = numpy_descr(DType::Bool);
      npy_intp dims[kMaxDims];
      for (int d = 0; d < type->ndim; ++d) dims[d] = static_cast<npy_intp>(type->dims[d]);
      Py_INCREF(descr);
      int flags = i < state_->num_inputs ? NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED : NPY_ARRAY_CARRAY;
      PyObject* view =
          PyArray_NewFromDescr(&PyArray_Type, descr, type->ndim, dims, nullptr, buffers[i], flags, nullptr);
      if (!view) return false;
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), view);
    }
    PyRef result = PyRef::steal(PyObject_Call(state_->function, args.get(), nullptr));
    return static_cast<bool>(result);
  }

  std::shared_ptr<State> state_;
};

// --- the builder

ArrayType* checked_type(nb::handle object, const char* method) {
  if (!is_array_type(object.ptr())) {
    PyErr_Format(PyExc_TypeError, "ExecutableBuilder.%s: expected an ArrayType, got %s", method,
                 Py_TYPE(object.ptr())->tp_name);
    throw nb::python_error();
  }
  return reinterpret_cast<ArrayType*>(object.ptr());
}

OutputKind output_kind(const std::string& kind) {
  if (kind == "input") return OutputKind::AliasInput;
  if (kind == "constant") return OutputKind::AliasConstant;
  if (kind == "output") return OutputKind::AliasOutput;
  throw nb::value_error(
      ("ExecutableBuilder.output_alias: kind must be 'input', 'constant' or 'output', got '" + kind + "'")
          .c_str());
}

LaunchStep launch_step(uintptr_t address, std::vector<Slot> slots, std::vector<int64_t> params,
                       int64_t extent, int64_t grain, double cost_ns, int64_t scratch_bytes, std::string name,
                       int64_t bytes) {
  LaunchStep step;
  step.fn = reinterpret_cast<KernelFn>(address);
  step.slots = std::move(slots);
  step.params = std::move(params);
  step.extent = extent;
  step.grain = grain;
  step.cost_ns = cost_ns;
  step.scratch_bytes = scratch_bytes;
  step.name = std::move(name);
  step.bytes = bytes;
  return step;
}

// Adds the types to the core's builder, which knows sizes only.
class PythonBuilder {
 public:
  ~PythonBuilder() {
    for (ArrayType* type : input_types_) Py_DECREF(type);
    for (ArrayType* type : output_types_) Py_DECREF(type);
  }

  Slot input(nb::handle type) {
    ArrayType* checked = checked_type(type, "input");
    Slot slot = core.input(static_cast<size_t>(checked->nbytes));
    Py_INCREF(checked);
    input_types_.push_back(checked);
    return slot;
  }
  Slot output(nb::handle type, int take_over) {
    ArrayType* checked = checked_type(type, "output");
    Slot slot = core.output(static_cast<size_t>(checked->nbytes), take_over);
    Py_INCREF(checked);
    output_types_.push_back(checked);
    return slot;
  }
  int output_alias(nb::handle type, const std::string& kind, int index) {
    ArrayType* checked = checked_type(type, "output_alias");
    int number = core.output_alias(static_cast<size_t>(checked->nbytes), output_kind(kind), index);
    Py_INCREF(checked);
    output_types_.push_back(checked);
    return number;
  }
  Slot constant(nb::handle object) {
    if (!is_array(object.ptr())) {
      PyErr_Format(PyExc_TypeError, "ExecutableBuilder.constant: expected an Array, got %s",
                   Py_TYPE(object.ptr())->tp_name);
      throw nb::python_error();
    }
    Array* array = as_array(object.ptr());
    if (ready(array) < 0) throw nb::python_error();
    return core.constant(jato::Ref<Block>::share(array->block), array->data,
                         static_cast<size_t>(array->type->nbytes));
  }
  void host(nb::handle function, const std::vector<std::pair<Slot, nb::handle>>& inputs,
            const std::vector<std::pair<Slot, nb::handle>>& outputs) {
    std::vector<HostOperand> operands;
    std::vector<Slot> slots;
    for (const auto* list : {&inputs, &outputs}) {
      for (const auto& [slot, type] : *list) {
        operands.push_back({slot, checked_type(type, "host")});
        slots.push_back(slot);
      }
    }
    int callback = core.callback(HostFunction(function.ptr(), std::move(operands), inputs.size()));
    core.host(callback, std::move(slots));
  }
  nb::object finish(size_t arena_bytes, double cost_ns, nb::handle keep_alive, bool unbounded,
                    std::string name) {
    jato::Ref<Executable> executable = core.finish(arena_bytes, cost_ns, unbounded, std::move(name));
    ExecutableObject* program =
        new_executable(std::move(executable), input_types_, output_types_, keep_alive.ptr());
    if (!program) throw nb::python_error();
    return nb::steal(reinterpret_cast<PyObject*>(program));
  }

  ExecutableBuilder core;

 private:
  std::vector<ArrayType*> input_types_, output_types_;
};

}  // namespace

ExecutableObject* new_executable(jato::Ref<Executable> executable, const std::vector<ArrayType*>& input_types,
                                 const std::vector<ArrayType*>& output_types, PyObject* keep_alive) {
  ExecutableObject* program =
      reinterpret_cast<ExecutableObject*>(executable_class->tp_alloc(executable_class, 0));
  if (!program) return nullptr;
  new (&program->input_types) std::vector<ArrayType*>(input_types);
  new (&program->output_types) std::vector<ArrayType*>(output_types);
  for (ArrayType* type : program->input_types) Py_INCREF(type);
  for (ArrayType* type : program->output_types) Py_INCREF(type);
  program->executable = executable.detach();
  Py_XINCREF(keep_alive);
  program->keep_alive = keep_alive;
  return program;
}

int add_executable(PyObject* module) {
  executable_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&executable_spec));
  if (!executable_class) return -1;
  return PyModule_AddObjectRef(module, "Executable", reinterpret_cast<PyObject*>(executable_class));
}

void bind_executable_builder(nb::module_& module) {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      set_current_error();
    } catch (const PythonError&) {
      set_current_error();
    }
  });
  using B = PythonBuilder;
  nb::class_<B>(module, "ExecutableBuilder",
                "Assembles an Executable.  Methods that declare a slot return its number.")
      .def(nb::init<>())
      .def("input", &B::input, nb::arg("type"), "input(ArrayType) -> slot")
      .def(
          "output", &B::output, nb::arg("type"), nb::arg("take_over") = -1,
          "output(ArrayType, take_over=-1) -> slot; may reuse the memory of donated input number `take_over`")
      .def("output_alias", &B::output_alias, nb::arg("type"), nb::arg("kind"), nb::arg("index"),
           "output_alias(ArrayType, 'input' | 'constant' | 'output', index) -> number of the output, which "
           "shares that memory")
      .def(
          "temp", [](B& b, size_t offset) { return b.core.temp(offset); }, nb::arg("offset"),
          "temp(offset) -> slot: a place in the arena")
      .def("constant", &B::constant, nb::arg("array"), "constant(Array) -> slot")
      .def(
          "view", [](B& b) { return b.core.view(); }, "view() -> slot that slice() points somewhere")
      .def(
          "launch",
          [](B& b, uintptr_t address, std::vector<Slot> slots, std::vector<int64_t> params, int64_t extent,
             int64_t grain, double cost_ns, int64_t scratch_bytes, std::string name, int64_t bytes) {
            b.core.launch(launch_step(address, std::move(slots), std::move(params), extent, grain, cost_ns,
                                      scratch_bytes, std::move(name), bytes));
          },
          nb::arg("address"), nb::arg("slots"), nb::arg("params"), nb::arg("extent"), nb::arg("grain") = 1,
          nb::arg("cost_ns") = 0.0, nb::arg("scratch_bytes") = 0, nb::arg("name") = "", nb::arg("bytes") = 0,
          "runs the kernel at `address` over [0, extent); cost_ns is that of one grid iteration")
      .def(
          "library",
          [](B& b, const std::string& name, std::vector<Slot> slots, std::vector<int64_t> params,
             double cost_ns) { b.core.library(name, std::move(slots), std::move(params), cost_ns); },
          nb::arg("name"), nb::arg("slots"), nb::arg("params"), nb::arg("cost_ns") = 0.0,
          "runs a library routine")
      .def(
          "tiled",
          [](B& b, int64_t rows, int64_t step_rows, int64_t row_steps, const std::string& library,
             std::vector<Slot> library_slots, std::vector<int64_t> library_params, uintptr_t address,
             std::vector<Slot> slots, std::vector<int64_t> params, int64_t extent, int64_t grain,
             double cost_ns, std::string name, int64_t scratch_bytes, double library_cost_ns, int64_t bytes) {
            b.core.tiled(rows, step_rows, row_steps, library, std::move(library_slots),
                         std::move(library_params), library_cost_ns,
                         launch_step(address, std::move(slots), std::move(params), extent, grain, cost_ns,
                                     scratch_bytes, std::move(name), bytes));
          },
          nb::arg("rows"), nb::arg("step_rows"), nb::arg("row_steps"), nb::arg("library"),
          nb::arg("library_slots"), nb::arg("library_params"), nb::arg("address"), nb::arg("slots"),
          nb::arg("params"), nb::arg("extent"), nb::arg("grain") = 1,
          nb::arg("cost_ns") = 0.0, nb::arg("name") = "", nb::arg("scratch_bytes") = 0,
          nb::arg("library_cost_ns") = 0.0, nb::arg("bytes") = 0,
          "row blocks: the library routine, then the kernel's grid steps for the same rows")
      .def("host", &B::host, nb::arg("function"), nb::arg("inputs"), nb::arg("outputs"),
           "host(f, [(slot, ArrayType)], [(slot, ArrayType)]): f(*read-only views, *views to fill); the "
           "views are valid "
           "during the call")
      .def(
          "swap", [](B& b, Slot a, Slot c) { b.core.swap(a, c); }, nb::arg("a"), nb::arg("b"))
      .def(
          "copy",
          [](B& b, Slot destination, Slot source, int64_t bytes) { b.core.copy(destination, source, bytes); },
          nb::arg("destination"), nb::arg("source"), nb::arg("bytes"))
      .def(
          "slice",
          [](B& b, Slot slot, Slot base, int64_t base_offset, int64_t stride) {
            b.core.slice(slot, base, base_offset, stride);
          },
          nb::arg("slot"), nb::arg("base"), nb::arg("base_offset"), nb::arg("stride"))
      .def(
          "begin_loop",
          [](B& b, int64_t count, Slot count_slot, int count_dtype, Slot predicate_slot, Slot iteration_slot,
             int iteration_dtype) {
            LoopStep loop;
            loop.count = count;
            loop.count_slot = count_slot;
            loop.count_dtype = static_cast<DType>(count_dtype);
            loop.predicate_slot = predicate_slot;
            loop.iteration_slot = iteration_slot;
            loop.iteration_dtype = static_cast<DType>(iteration_dtype);
            b.core.begin_loop(std::move(loop));
          },
          nb::arg("count") = -1, nb::arg("count_slot") = kNoSlot,
          nb::arg("count_dtype") = static_cast<int>(DType::Int32), nb::arg("predicate_slot") = kNoSlot,
          nb::arg("iteration_slot") = kNoSlot, nb::arg("iteration_dtype") = static_cast<int>(DType::Int32))
      .def(
          "begin_branch", [](B& b, Slot index_slot) { b.core.begin_branch(index_slot); },
          nb::arg("index_slot"))
      .def("next_case", [](B& b) { b.core.next_case(); })
      .def("end", [](B& b) { b.core.end(); })
      .def("finish", &B::finish, nb::arg("arena_bytes"), nb::arg("cost_ns"),
           nb::arg("keep_alive") = nb::none(), nb::arg("unbounded") = false,
           nb::arg("name") = "",
           "finish(arena_bytes, cost_ns, keep_alive=None, unbounded=False, name='') -> Executable; "
           "`keep_alive` is held as long as the code may run; `unbounded`: the estimate may be far too low; "
           "`name` is what errors call it");
}

}  // namespace jato::bind
