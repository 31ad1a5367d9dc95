// Threads, devices, memory, profile and library symbols for Python.
#pragma once

#include "bind.h"

namespace jato::bind {

int add_runtime(PyObject* module);

}  // namespace jato::bind
