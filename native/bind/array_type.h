// ArrayType: shape, dtype code and weak flag of an array; interned.
//
// Equal types are one object, so that a call signature is a row of pointers.  The table of all
// types holds no references: a type that nobody uses is freed.
#pragma once

#include <string>

#include "../core/dtype.h"
#include "bind.h"

namespace jato::bind {

struct ArrayType {
  PyObject_HEAD DType dtype;
  bool weak;
  int32_t ndim;
  int64_t size;    // number of elements
  int64_t nbytes;  // of the dense array
  uint64_t hash;
  ArrayType* next;  // in the bucket of the intern table
  PyObject* shape;  // tuple of ints
  PyObject* weakrefs;
  int64_t dims[1];  // ndim of them
};

constexpr int kMaxDims = 64;

extern PyTypeObject* array_type_type;

// The interned type; new reference.  ValueError for a negative or too large extent.
ArrayType* make_array_type(DType dtype, bool weak, int ndim, const int64_t* dims);

// The type of a scalar: lives for ever, borrowed.
ArrayType* scalar_array_type(DType dtype, bool weak);

// The Python object that stands for a dtype (see set_dtype_objects); borrowed, nullptr with an
// error when none was set.
PyObject* dtype_object(DType dtype);

// "float32[3,4]", for messages.
std::string describe(const ArrayType* type);

inline bool is_array_type(PyObject* object) { return Py_TYPE(object) == array_type_type; }

// Reads a shape (a sequence of ints, or one int) into `dims`; -1 with an error.
int read_shape(PyObject* shape, SmallVector<int64_t, 8>& dims);

int add_array_type(PyObject* module);

}  // namespace jato::bind
