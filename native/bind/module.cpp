// The module jato._native: the only file with a module definition.
#include <nanobind/nanobind.h>

#include "array.h"
#include "array_type.h"
#include "bind.h"
#include "dispatch.h"
#include "executable_object.h"
#include "numpy_api.h"
#include "pytree.h"
#include "runtime.h"
#include "sources_hash.h"
#include "state.h"

NB_MODULE(_native, module) {
  using namespace jato::bind;
  nanobind::set_leak_warnings(false);  // objects in cycles that live until exit are no mistake
  module.doc() = "The native runtime of jato: arrays, pytrees, call dispatch, execution.";
  PyObject* m = module.ptr();
  if (import_numpy() < 0 || add_state(m) < 0 || add_array_type(m) < 0 || add_array(m) < 0 ||
      add_pytree_registry(m) < 0 || add_pytree(m) < 0 || add_executable(m) < 0 || add_dispatch(m) < 0 ||
      add_runtime(m) < 0)
    nanobind::raise_python_error();
  bind_executable_builder(module);
  module.attr("version") = JATO_VERSION;
  module.attr("sources") = JATO_SOURCES;
}
