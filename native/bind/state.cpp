#include "state.h"

namespace jato::bind {

thread_local ThreadState thread_state __attribute__((tls_model("initial-exec"))) = {false, -1, false, 0};
bool process_x64 = false;
uint64_t process_epoch = 0;

PyObject* tracer_type = nullptr;
PyObject* static_error = nullptr;
PyObject* runtime_error = nullptr;

namespace {

PyObject* set_trace_active(PyObject*, PyObject* value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  thread_state.trace_active = truth != 0;
  Py_RETURN_NONE;
}

PyObject* is_trace_active(PyObject*, PyObject*) { return PyBool_FromLong(thread_state.trace_active); }

PyObject* set_x64(PyObject*, PyObject* value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  process_x64 = truth != 0;
  Py_RETURN_NONE;
}

PyObject* set_thread_x64(PyObject*, PyObject* value) {
  int truth = value == Py_None ? -1 : PyObject_IsTrue(value);
  if (truth < 0 && value != Py_None) return nullptr;
  thread_state.x64 = static_cast<int8_t>(truth);
  Py_RETURN_NONE;
}

PyObject* x64(PyObject*, PyObject*) { return PyBool_FromLong(x64_enabled()); }

PyObject* set_config_epoch(PyObject*, PyObject* value) {
  unsigned long long epoch = PyLong_AsUnsignedLongLong(value);
  if (epoch == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  process_epoch = epoch;
  Py_RETURN_NONE;
}

PyObject* set_thread_config_epoch(PyObject*, PyObject* value) {
  if (value == Py_None) {
    thread_state.has_epoch = false;
    Py_RETURN_NONE;
  }
  unsigned long long epoch = PyLong_AsUnsignedLongLong(value);
  if (epoch == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  thread_state.epoch = epoch;
  thread_state.has_epoch = true;
  Py_RETURN_NONE;
}

PyObject* config_epoch_of_thread(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(config_epoch()); }

// Sets a global and gives back what it was.
PyObject* replace(PyObject*& place, PyObject* value) {
  PyRef before = PyRef::borrow(place ? place : Py_None);
  set_global(place, value);
  return before.release();
}

PyObject* set_tracer_type(PyObject*, PyObject* value) {
  if (value != Py_None && !PyType_Check(value)) {
    PyErr_Format(PyExc_TypeError, "set_tracer_type: expected a class or None, got %R", value);
    return nullptr;
  }
  return replace(tracer_type, value);
}

PyObject* set_static_error(PyObject*, PyObject* value) { return replace(static_error, value); }

PyObject* set_cold_errors(PyObject*, PyObject* value) { return replace(runtime_error, value); }

PyMethodDef functions[] = {
    {"set_trace_active", set_trace_active, METH_O,
     "set_trace_active(bool): is a trace active on this thread"},
    {"trace_active", is_trace_active, METH_NOARGS, "is a trace active on this thread"},
    {"set_x64", set_x64, METH_O, "set_x64(bool): are 64-bit types kept (process)"},
    {"set_thread_x64", set_thread_x64, METH_O,
     "set_thread_x64(bool | None): the same for this thread; None follows the process"},
    {"x64_enabled", x64, METH_NOARGS, "are 64-bit types kept on this thread"},
    {"set_config_epoch", set_config_epoch, METH_O,
     "set_config_epoch(int): a number that stands for all configuration that changes compiled code "
     "(process)"},
    {"set_thread_config_epoch", set_thread_config_epoch, METH_O,
     "set_thread_config_epoch(int | None): the same for this thread; None follows the process"},
    {"config_epoch", config_epoch_of_thread, METH_NOARGS, "the config epoch of this thread"},
    {"set_tracer_type", set_tracer_type, METH_O,
     "set_tracer_type(class | None): the base class of tracers; returns the one before"},
    {"set_static_error", set_static_error, METH_O,
     "set_static_error(f | None): f(function, position_or_name, value) makes the exception for an unhashable "
     "static "
     "argument; returns the function before"},
    {"set_cold_errors", set_cold_errors, METH_O,
     "set_cold_errors(f | None): f(kind, message) makes the exception for a failure in the runtime; kind is "
     "'runtime', 'value', 'out_of_memory' or 'cancelled'; returns the function before"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_state(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace jato::bind
