// Waiting for events without the GIL, looking at signals; and C++ exceptions as Python ones.
#pragma once

#include <exception>

#include "../core/event.h"
#include "bind.h"

namespace jato::bind {

// A Python exception on its way through C++ code (steps, jobs, events).
class PythonError : public std::exception {
 public:
  PythonError() = default;
  PythonError(const PythonError& other);
  PythonError& operator=(const PythonError&) = delete;
  ~PythonError() override;
  // Takes the current Python error; the GIL is held.
  static PythonError fetch();
  // Raises it again; the GIL is held.
  void restore() const;
  // Raises a copy.  For an exception that an event keeps: its traceback would grow to the frames
  // that catch it, these refer to the array, the array to the event - a cycle no collector sees.
  void restore_copy() const;
  const char* what() const noexcept override { return "a Python exception"; }

 private:
  PyObject* exception_ = nullptr;
};

// Sets the Python error for a C++ exception; always returns nullptr, for `return set_error(...)`.
PyObject* set_error(std::exception_ptr error);
// The same for the exception being handled.
inline PyObject* set_current_error() { return set_error(std::current_exception()); }

// The same for the error that an event keeps.
PyObject* set_kept_error(std::exception_ptr error);

// Waits until the event is ready; -1 with an error on a signal (the work of `device` is cancelled
// then; -1 stands for all devices).  A failed event is ready: the caller asks for its error.
int wait_for(Event* event, int device);
// Waits until at most `depth` jobs are queued on the device; -1 with an error on a signal.
int wait_for_depth(int device, int64_t depth);

// Gives up a reference from a thread that has no GIL: it is dropped by the next `release_dead`.
// (A queue's thread that took the GIL would stall behind whatever Python code runs.)
void release_later(PyObject* object);
void release_dead();

class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil() { PyEval_RestoreThread(state_); }
  ReleaseGil(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace jato::bind
