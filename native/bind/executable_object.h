// Executable as a Python object: the compiled program and the types of its inputs and outputs.
#pragma once

#include <vector>

#include "../core/executable.h"
#include "array_type.h"
#include "bind.h"

namespace nanobind {
class module_;
}

namespace jato::bind {

struct ExecutableObject {
  PyObject_HEAD Executable* executable;  // one reference
  std::vector<ArrayType*> input_types;   // owned
  std::vector<ArrayType*> output_types;
  PyObject* keep_alive;  // what owns the machine code
  PyObject* weakrefs;
};

extern PyTypeObject* executable_class;

inline bool is_executable(PyObject* object) { return Py_TYPE(object) == executable_class; }

// Steals the reference; the types are borrowed and kept.
ExecutableObject* new_executable(jato::Ref<Executable> executable, const std::vector<ArrayType*>& input_types,
                                 const std::vector<ArrayType*>& output_types, PyObject* keep_alive);

int add_executable(PyObject* module);
void bind_executable_builder(nanobind::module_& module);

}  // namespace jato::bind
