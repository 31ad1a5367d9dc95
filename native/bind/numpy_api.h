// NumPy's C API, and how NumPy's dtypes map to ours.  Only numpy_api.cpp imports the API.
#pragma once

#include "bind.h"

#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#endif
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL jato_numpy_api
#ifndef JATO_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include "../core/dtype.h"

namespace jato::bind {

// Tells which NumPy dtype a dtype code is (bfloat16 and float0 have no fixed type number).
void register_numpy_dtype(DType dtype, PyArray_Descr* descr);

// The dtype of a NumPy descriptor, 64-bit types as they are; false if there is none.
bool dtype_from_numpy(PyArray_Descr* descr, DType* dtype);

// The NumPy descriptor of a dtype: borrowed; nullptr without an error for keys, or before it was set.
PyArray_Descr* numpy_descr(DType dtype);

// 64-bit types narrowed to 32 bits unless x64 is on.
DType canonical_dtype(DType dtype);

// A numpy.ma.MaskedArray?  Its mask would be lost in silence, so it is not taken for an array.
bool is_masked(PyObject* array);

int import_numpy();

}  // namespace jato::bind
