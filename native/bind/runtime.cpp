#include "runtime.h"

#include "../core/kernel_abi.h"
#include "../core/library.h"
#include "../core/pool.h"
#include "../core/profile.h"
#include "../core/queue.h"
#include "../core/threadpool.h"
#include "array.h"
#include "waiting.h"

namespace jato::bind {

namespace {

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* get_default_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(default_num_threads()); }

// A positive int, or with `or_zero` 0 too; -1 with an error.
int read_count(PyObject* value, const char* what, bool or_zero) {
  long count = PyLong_AsLong(value);
  if (count == -1 && PyErr_Occurred()) return -1;
  if (count < (or_zero ? 0 : 1) || count > 4096) {
    PyErr_Format(PyExc_ValueError, "%s: expected an int from %d to 4096, got %ld", what, or_zero ? 0 : 1,
                 count);
    return -1;
  }
  return static_cast<int>(count);
}

PyObject* set_threads(PyObject*, PyObject* value) {
  int count = read_count(value, "set_num_threads", true);
  if (count < 0) return nullptr;
  set_num_threads(count);
  Py_RETURN_NONE;
}

PyObject* push_threads(PyObject*, PyObject* value) {
  int count = read_count(value, "push_num_threads", false);
  if (count < 0) return nullptr;
  push_num_threads(count);
  Py_RETURN_NONE;
}

PyObject* pop_threads(PyObject*, PyObject*) {
  pop_num_threads();
  Py_RETURN_NONE;
}

PyObject* pool_stats(PyObject*, PyObject*) {
  PoolStats stats = Pool::stats();
  return Py_BuildValue("{snsnsnsnsKsK}", "in_use", static_cast<Py_ssize_t>(stats.in_use), "cached",
                       static_cast<Py_ssize_t>(stats.cached), "peak", static_cast<Py_ssize_t>(stats.peak),
                       "limit", static_cast<Py_ssize_t>(stats.limit), "allocations",
                       static_cast<unsigned long long>(stats.allocations), "reuses",
                       static_cast<unsigned long long>(stats.reuses));
}

PyObject* pool_trim(PyObject*, PyObject*) {
  size_t bytes;
  {
    ReleaseGil released;
    bytes = Pool::trim();
  }
  return PyLong_FromSize_t(bytes);
}

PyObject* pool_reset_peak(PyObject*, PyObject*) {
  Pool::reset_peak();
  Py_RETURN_NONE;
}

PyObject* set_memory_limit(PyObject*, PyObject* value) {
  size_t bytes = PyLong_AsSize_t(value);
  if (bytes == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  Pool::set_limit(bytes);
  Py_RETURN_NONE;
}

PyObject* num_devices(PyObject*, PyObject*) { return PyLong_FromLong(DeviceQueue::count()); }

PyObject* set_num_devices(PyObject*, PyObject* value) {
  int count = read_count(value, "set_num_devices", false);
  if (count < 0) return nullptr;
  try {
    DeviceQueue::set_count(count);
  } catch (...) {
    return set_current_error();
  }
  Py_RETURN_NONE;
}

PyObject* queue_depth(PyObject*, PyObject* value) {
  long device = PyLong_AsLong(value);
  if (device == -1 && PyErr_Occurred()) return nullptr;
  if (device < 0 || device >= DeviceQueue::count()) {
    PyErr_Format(PyExc_ValueError, "queue_depth: there is no device %ld (num_devices() is %d)", device,
                 DeviceQueue::count());
    return nullptr;
  }
  return PyLong_FromLongLong(DeviceQueue::get(static_cast<int>(device)).depth());
}

// Is this a thread of a device, so that a callback runs here?
PyObject* on_queue_thread(PyObject*, PyObject*) {
  return PyBool_FromLong(DeviceQueue::on_any_queue_thread());
}

// Waits for everything queued on all devices.
PyObject* synchronize(PyObject*, PyObject*) {
  for (int device = 0; device < DeviceQueue::count(); ++device) {
    if (wait_for_depth(device, 0) < 0) return nullptr;
  }
  release_dead();
  Py_RETURN_NONE;
}

// Waits for a leaf: an array, or whatever else has a method of this name.
int wait_for_leaf(PyObject* leaf) {
  static PyObject* const method = PyUnicode_InternFromString("block_until_ready");
  if (is_array(leaf)) return ready(as_array(leaf));
  PyRef wait = PyRef::steal(PyObject_GetAttr(leaf, method));
  if (!wait) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
  }
  return PyRef::steal(PyObject_CallNoArgs(wait.get())) ? 0 : -1;
}

// wait_for_tree(tree, leaves_of): plain tuples and lists of arrays are walked here, anything else
// goes through leaves_of(subtree) -> list.
int wait_for_tree(PyObject* tree, PyObject* leaves_of) {
  if (is_array(tree)) return ready(as_array(tree));
  if (PyTuple_CheckExact(tree) || PyList_CheckExact(tree)) {
    if (Py_EnterRecursiveCall(" while waiting for a tree of arrays")) return -1;
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(tree); ++i) {
      PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(tree, i));
      status = wait_for_tree(item.get(), leaves_of);
    }
    Py_LeaveRecursiveCall();
    return status;
  }
  PyRef leaves = PyRef::steal(PyObject_CallOneArg(leaves_of, tree));
  if (!leaves) return -1;
  if (!PyList_Check(leaves.get())) {
    PyErr_SetString(PyExc_TypeError, "wait_for_tree: leaves_of must give a list");
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves.get()); ++i) {
    PyRef leaf = PyRef::borrow(PyList_GET_ITEM(leaves.get(), i));
    if (wait_for_leaf(leaf.get()) < 0) return -1;
  }
  return 0;
}

PyObject* call_wait_for_tree(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "wait_for_tree(tree, leaves_of)");
    return nullptr;
  }
  if (wait_for_tree(args[0], args[1]) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* cancel_all(PyObject*, PyObject*) {
  DeviceQueue::cancel_all();
  Py_RETURN_NONE;
}

// At exit: callbacks that are still queued run, and nothing outlives the code or memory it uses.
// Ctrl-C cancels the rest.
PyObject* shut_down(PyObject*, PyObject*) {
  for (int device = 0; device < DeviceQueue::count(); ++device) {
    if (wait_for_depth(device, 0) == 0) continue;
    PyErr_Clear();
    ReleaseGil released;
    DeviceQueue::cancel_all();
    DeviceQueue::drain_all(std::chrono::seconds(5));
    break;
  }
  release_dead();
  Py_RETURN_NONE;
}

PyObject* start_profile(PyObject*, PyObject* args) {
  Py_ssize_t capacity = 65536;
  if (!PyArg_ParseTuple(args, "|n:profile_start", &capacity)) return nullptr;
  if (capacity < 1) {
    PyErr_SetString(PyExc_ValueError, "profile_start: expected a positive capacity");
    return nullptr;
  }
  profile_start(static_cast<size_t>(capacity));
  Py_RETURN_NONE;
}

PyObject* stop_profile(PyObject*, PyObject*) {
  std::vector<ProfileRecord> records = profile_stop();
  PyRef list = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(records.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < records.size(); ++i) {
    const ProfileRecord& record = records[i];
    PyObject* item = Py_BuildValue("(sLLiL)", record.name, static_cast<long long>(record.start_ns),
                                   static_cast<long long>(record.end_ns), static_cast<int>(record.thread),
                                   static_cast<long long>(record.bytes));
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

PyObject* set_symbol(PyObject*, PyObject* args) {
  const char* symbol;
  PyObject* address;
  if (!PyArg_ParseTuple(args, "sO:set_library_symbol", &symbol, &address)) return nullptr;
  void* pointer = PyLong_AsVoidPtr(address);
  if (!pointer && PyErr_Occurred()) return nullptr;
  try {
    set_library_symbol(symbol, pointer);
  } catch (...) {
    return set_current_error();
  }
  Py_RETURN_NONE;
}

PyObject* as_list(const std::vector<std::string>& names) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(names.size()));
  for (size_t i = 0; list && i < names.size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i),
                    PyUnicode_FromStringAndSize(names[i].data(), static_cast<Py_ssize_t>(names[i].size())));
  return list;
}

PyObject* routine_names(PyObject*, PyObject*) { return as_list(library_names()); }
PyObject* symbol_names(PyObject*, PyObject*) { return as_list(library_symbol_names()); }

PyObject* abi_offsets(PyObject*, PyObject*) {
  return Py_BuildValue("{snsnsnsnsnsn}", "buffers", static_cast<Py_ssize_t>(offsetof(KernelArgs, buffers)),
                       "params", static_cast<Py_ssize_t>(offsetof(KernelArgs, params)), "scratch",
                       static_cast<Py_ssize_t>(offsetof(KernelArgs, scratch)), "cancel",
                       static_cast<Py_ssize_t>(offsetof(KernelArgs, cancel)), "routines",
                       static_cast<Py_ssize_t>(offsetof(KernelArgs, routines)), "size",
                       static_cast<Py_ssize_t>(sizeof(KernelArgs)));
}

PyObject* kernel_routines(PyObject*, PyObject*) { return PyLong_FromVoidPtr(const_cast<TileCopyFn*>(tile_copies())); }

PyMethodDef functions[] = {
    {"num_threads", get_num_threads, METH_NOARGS, "threads that parallel work of this thread uses"},
    {"default_num_threads", get_default_num_threads, METH_NOARGS, "the number that the machine allows"},
    {"set_num_threads", set_threads, METH_O, "set_num_threads(n): for the process; 0 restores the default"},
    {"push_num_threads", push_threads, METH_O,
     "push_num_threads(n): overrides for this thread until pop_num_threads()"},
    {"pop_num_threads", pop_threads, METH_NOARGS, "undoes the last push_num_threads"},
    {"pool_stats", pool_stats, METH_NOARGS, "dict: in_use, cached, peak, limit (bytes), allocations, reuses"},
    {"pool_trim", pool_trim, METH_NOARGS, "gives cached memory back to the system; returns the bytes"},
    {"pool_reset_peak", pool_reset_peak, METH_NOARGS, "peak becomes in_use"},
    {"set_memory_limit", set_memory_limit, METH_O, "set_memory_limit(bytes); 0: what the machine has"},
    {"num_devices", num_devices, METH_NOARGS, "number of logical devices"},
    {"set_num_devices", set_num_devices, METH_O, "set_num_devices(n)"},
    {"queue_depth", queue_depth, METH_O, "queue_depth(device) -> jobs queued or running"},
    {"on_queue_thread", on_queue_thread, METH_NOARGS, "whether this thread is one of a device's own"},
    {"synchronize", synchronize, METH_NOARGS, "waits for all queued work"},
    {"wait_for_tree", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_wait_for_tree)),
     METH_FASTCALL, "wait_for_tree(tree, leaves_of): waits for each array of a tree"},
    {"cancel_all", cancel_all, METH_NOARGS, "cancels all running and queued work"},
    {"shut_down", shut_down, METH_NOARGS,
     "waits for all work, or cancels it on Ctrl-C; for interpreter exit"},
    {"profile_start", start_profile, METH_VARARGS, "profile_start(capacity=65536)"},
    {"profile_stop", stop_profile, METH_NOARGS,
     "profile_stop() -> list of (name, start_ns, end_ns, thread, bytes)"},
    {"set_library_symbol", set_symbol, METH_VARARGS, "set_library_symbol(name, address)"},
    {"library_names", routine_names, METH_NOARGS, "names of the library routines"},
    {"library_symbol_names", symbol_names, METH_NOARGS, "names that set_library_symbol knows"},
    {"abi_offsets", abi_offsets, METH_NOARGS, "offsets of the fields of KernelArgs and its size"},
    {"kernel_routines", kernel_routines, METH_NOARGS, "address of the table that kernels call through"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_runtime(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  // Before the interpreter goes away no thread may run Python callbacks or compiled code any more.
  PyRef atexit = PyRef::steal(PyImport_ImportModule("atexit"));
  PyRef function = PyRef::steal(PyObject_GetAttrString(module, "shut_down"));
  if (!atexit || !function) return -1;
  PyRef done = PyRef::steal(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
  return done ? 0 : -1;
}

}  // namespace jato::bind
