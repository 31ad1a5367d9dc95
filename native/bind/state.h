// Switches that a warm call looks at: trace active, 64-bit types, config epoch; and the Python
// callables and classes that the runtime was given.
//
// Each switch has a value of the process and may have one of the thread (the `with` forms).
#pragma once

#include "bind.h"

namespace jato::bind {

struct ThreadState {
  bool trace_active;
  int8_t x64;  // -1: the process's value
  bool has_epoch;
  uint64_t epoch;
};

// Initial-exec: one instruction instead of a call of __tls_get_addr on each warm call.
extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
extern bool process_x64;
extern uint64_t process_epoch;

inline bool trace_active() { return thread_state.trace_active; }
inline bool x64_enabled() {
  int8_t mine = thread_state.x64;
  return JATO_LIKELY(mine < 0) ? process_x64 : mine != 0;
}
inline uint64_t config_epoch() {
  return JATO_LIKELY(!thread_state.has_epoch) ? process_epoch : thread_state.epoch;
}

// Set from Python; borrowed, nullptr when unset.
extern PyObject* tracer_type;    // set_tracer_type
extern PyObject* static_error;   // set_static_error(function, position_or_name, value) -> exception
extern PyObject* runtime_error;  // set_cold_errors(kind, message) -> exception

inline bool is_tracer(PyObject* object) {
  return tracer_type && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(tracer_type));
}

int add_state(PyObject* module);

}  // namespace jato::bind
