#include "waiting.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "../core/errors.h"
#include "../core/queue.h"
#include "state.h"

namespace jato::bind {

namespace {

// How often a wait looks at signals: Ctrl-C must work within a second, and polling is free at this rate.
constexpr auto kPoll = std::chrono::milliseconds(50);

// Python is gone or going: references can only be leaked.
bool python_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

std::mutex dead_mutex;
std::vector<PyObject*>& dead_objects() {
  static auto* instance = new std::vector<PyObject*>;
  return *instance;
}
std::atomic<bool> any_dead{false};

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value:
      return "value";
    case ErrorKind::OutOfMemory:
      return "out_of_memory";
    case ErrorKind::Cancelled:
      return "cancelled";
    default:
      return "runtime";
  }
}

PyObject* default_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::OutOfMemory:
      return PyExc_MemoryError;
    default:
      return PyExc_RuntimeError;
  }
}

void raise_error(ErrorKind kind, const char* message) {
  if (!runtime_error) {
    PyErr_SetString(default_class(kind), message);
    return;
  }
  PyRef exception = PyRef::steal(PyObject_CallFunction(runtime_error, "ss", kind_name(kind), message));
  if (!exception) return;
  if (!PyExceptionInstance_Check(exception.get())) {
    PyErr_SetString(default_class(kind), message);
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace

PythonError::PythonError(const PythonError& other) : exception_(other.exception_) {
  if (!exception_ || python_is_ending()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_INCREF(exception_);
  PyGILState_Release(gil);
}

PythonError::~PythonError() {
  if (!exception_ || python_is_ending()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(exception_);
  PyGILState_Release(gil);
}

PythonError PythonError::fetch() {
  PythonError error;
#if PY_VERSION_HEX >= 0x030C0000
  error.exception_ = PyErr_GetRaisedException();
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback && value) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  error.exception_ = value;
#endif
  return error;
}

void PythonError::restore() const {
  if (!exception_) {
    PyErr_SetString(PyExc_SystemError, "a host callback failed without an exception");
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception_)), exception_);
}

void PythonError::restore_copy() const {
  PyRef module = PyRef::steal(exception_ ? PyImport_ImportModule("copy") : nullptr);
  PyRef copied = PyRef::steal(module ? PyObject_CallMethod(module.get(), "copy", "O", exception_) : nullptr);
  if (!copied || Py_TYPE(copied.get()) != Py_TYPE(exception_)) {  // its class cannot be copied
    PyErr_Clear();
    restore();
    return;
  }
  PyRef traceback = PyRef::steal(PyException_GetTraceback(exception_));
  if (traceback) PyException_SetTraceback(copied.get(), traceback.get());
  PyException_SetCause(copied.get(), PyException_GetCause(exception_));  // both steal
  PyException_SetContext(copied.get(), PyException_GetContext(exception_));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(copied.get())), copied.get());
}

PyObject* set_kept_error(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const PythonError& exception) {
    exception.restore_copy();
    return nullptr;
  } catch (...) {
    return set_error(error);
  }
}

PyObject* set_error(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const PythonError& exception) {
    exception.restore();
  } catch (const Error& exception) {
    raise_error(exception.kind(), exception.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& exception) {
    raise_error(ErrorKind::Runtime, exception.what());
  } catch (...) {
    raise_error(ErrorKind::Runtime, "unknown C++ exception");
  }
  return nullptr;
}

void release_later(PyObject* object) {
  std::lock_guard<std::mutex> lock(dead_mutex);
  dead_objects().push_back(object);
  any_dead.store(true, std::memory_order_release);
}

void release_dead() {
  if (!any_dead.load(std::memory_order_acquire)) return;
  std::vector<PyObject*> objects;
  {
    std::lock_guard<std::mutex> lock(dead_mutex);
    objects.swap(dead_objects());
    any_dead.store(false, std::memory_order_release);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

int wait_for(Event* event, int device) {
  if (event->ready()) return 0;
  if (DeviceQueue::comes_after_this(*event, device)) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "a callback that runs on a device waits for a result that the same device computes later. "
        "Pass that array to the callback as an argument instead of capturing it.");
    return -1;
  }
  for (;;) {
    bool ready;
    {
      ReleaseGil released;
      ready = event->wait(std::chrono::duration_cast<std::chrono::nanoseconds>(kPoll));
    }
    if (PyErr_CheckSignals() < 0) {
      if (device < 0)
        DeviceQueue::cancel_all();
      else
        DeviceQueue::get(device).cancel();
      return -1;
    }
    if (ready) {
      release_dead();
      return 0;
    }
  }
}

int wait_for_depth(int device, int64_t depth) {
  DeviceQueue& queue = DeviceQueue::get(device);
  if (queue.depth() <= depth || DeviceQueue::on_any_queue_thread()) return 0;
  for (;;) {
    bool ready;
    {
      ReleaseGil released;
      ready = queue.wait_depth(depth, std::chrono::duration_cast<std::chrono::nanoseconds>(kPoll));
    }
    if (PyErr_CheckSignals() < 0) {
      queue.cancel();
      return -1;
    }
    if (ready) return 0;
  }
}

}  // namespace jato::bind
