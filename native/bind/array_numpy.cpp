// Arrays and NumPy: conversion both ways, Python scalars, the buffer protocol.
#include <bit>

#include "array.h"
#include "half.h"
#include "numpy_api.h"
#include "state.h"
#include "waiting.h"

namespace jato::bind {

namespace {

constexpr const char* kBlockCapsule = "jato.block";

void release_capsule(PyObject* capsule) {
  static_cast<Block*>(PyCapsule_GetPointer(capsule, kBlockCapsule))->release();
}

// A read-only ndarray over the array's memory; the Block is its base, so that donation cannot
// overwrite what NumPy sees.
PyObject* numpy_view(Array* array, PyArray_Descr* descr) {
  const ArrayType* type = array->type;
  npy_intp dims[kMaxDims];
  for (int i = 0; i < type->ndim; ++i) dims[i] = static_cast<npy_intp>(type->dims[i]);
  Py_INCREF(descr);
  PyRef result =
      PyRef::steal(PyArray_NewFromDescr(&PyArray_Type, descr, type->ndim, dims, nullptr, array->data,
                                        NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, nullptr));
  if (!result) return nullptr;
  PyObject* base = PyCapsule_New(array->block, kBlockCapsule, release_capsule);
  if (!base) return nullptr;
  array->block->retain();
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(result.get()), base) < 0) return nullptr;
  return result.release();
}

// The Block under an ndarray that is a read-only view of one of our arrays; nullptr otherwise.
Block* block_under(PyArrayObject* array) {
  if (PyArray_ISWRITEABLE(array)) return nullptr;
  PyObject* base = PyArray_BASE(array);
  while (base && PyArray_Check(base)) {
    if (PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(base))) return nullptr;
    base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(base));
  }
  if (!base) return nullptr;
  if (PyCapsule_IsValid(base, kBlockCapsule))
    return static_cast<Block*>(PyCapsule_GetPointer(base, kBlockCapsule));
  if (PyMemoryView_Check(base)) {
    Py_buffer* buffer = PyMemoryView_GET_BUFFER(base);
    if (buffer->obj && is_array(buffer->obj)) return static_cast<Block*>(buffer->internal);
  }
  return nullptr;
}

const char* buffer_format(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "?";
    case DType::Int8:
      return "b";
    case DType::Int16:
      return "h";
    case DType::Int32:
      return "i";
    case DType::Int64:
      return "q";
    case DType::UInt8:
      return "B";
    case DType::UInt16:
      return "H";
    case DType::UInt32:
      return "I";
    case DType::UInt64:
      return "Q";
    case DType::Float16:
      return "e";
    case DType::Float32:
      return "f";
    case DType::Float64:
      return "d";
    case DType::Complex64:
      return "Zf";
    case DType::Complex128:
      return "Zd";
    default:
      return nullptr;
  }
}

int not_a_number(PyObject* value, DType dtype) {
  PyErr_Format(PyExc_TypeError, "expected a number for an element of type %s, got %s", name(dtype),
               Py_TYPE(value)->tp_name);
  return -1;
}

int write_integer(PyObject* value, DType dtype, void* destination) {
  PyRef number = PyRef::steal(PyNumber_Index(value));
  if (!number) {
    PyErr_Clear();
    number = PyRef::steal(PyNumber_Long(value));  // floats are cut, as NumPy does
    if (!number) return -1;
  }
  int overflow = 0;
  long long small = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (small == -1 && PyErr_Occurred()) return -1;
  size_t bytes = itemsize(dtype);
  bool is_signed = dtype <= DType::Int64;
  if (dtype == DType::UInt64 && overflow > 0) {
    unsigned long long large = PyLong_AsUnsignedLongLong(number.get());
    if (!PyErr_Occurred()) {
      std::memcpy(destination, &large, 8);
      return 0;
    }
    PyErr_Clear();
  }
  bool fits = overflow == 0;
  if (fits && bytes < 8) {
    long long limit = 1ll << (8 * bytes - (is_signed ? 1 : 0));
    fits = is_signed ? small >= -limit && small < limit : small >= 0 && small < limit;
  } else if (fits && !is_signed) {
    fits = small >= 0;
  }
  if (!fits) {
    PyErr_Format(PyExc_OverflowError, "Python integer %R does not fit %s", number.get(), name(dtype));
    return -1;
  }
  std::memcpy(destination, &small, bytes);  // little-endian
  return 0;
}

void copy_elements(const ArrayType* type, PyArrayObject* source, char* destination) {
  std::memcpy(destination, PyArray_DATA(source), static_cast<size_t>(type->nbytes));
}

PyObject* from_numpy_function(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"array", "weak", "placement", nullptr};
  PyObject *object, *placement = Py_None;
  int weak = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pO:from_numpy", const_cast<char**>(names), &object, &weak,
                                   &placement))
    return nullptr;
  return reinterpret_cast<PyObject*>(
      from_numpy(object, weak != 0, placement == Py_None ? nullptr : placement));
}

PyObject* to_numpy_function(PyObject*, PyObject* object) {
  if (!is_array(object)) {
    PyErr_Format(PyExc_TypeError, "to_numpy: expected an Array, got %s", Py_TYPE(object)->tp_name);
    return nullptr;
  }
  return to_numpy(as_array(object));
}

PyObject* from_scalar(PyObject*, PyObject* args) {
  PyObject *value, *type;
  if (!PyArg_ParseTuple(args, "OO:from_scalar", &value, &type)) return nullptr;
  if (!is_array_type(type)) {
    PyErr_Format(PyExc_TypeError, "from_scalar: expected an ArrayType, got %s", Py_TYPE(type)->tp_name);
    return nullptr;
  }
  ArrayType* wanted = reinterpret_cast<ArrayType*>(type);
  char element[16];
  if (write_scalar(value, wanted->dtype, element) < 0) return nullptr;
  Array* array = empty_array(wanted, nullptr);
  if (!array) return nullptr;
  size_t bytes = itemsize(wanted->dtype);
  for (int64_t i = 0; i < wanted->size; ++i)
    std::memcpy(array->data + static_cast<size_t>(i) * bytes, element, bytes);
  return reinterpret_cast<PyObject*>(array);
}

}  // namespace

PyObject* to_numpy(Array* array) {
  if (ready(array) < 0) return nullptr;
  DType dtype = array->type->dtype;
  PyArray_Descr* descr = numpy_descr(dtype);
  if (!descr) {
    PyErr_Format(PyExc_TypeError, "an array of dtype %s has no NumPy form.%s", name(dtype),
                 dtype == DType::Key ? " Use jax.random.key_data(keys) for the numbers inside." : "");
    return nullptr;
  }
  if (PyDataType_ELSIZE(descr) != static_cast<npy_intp>(itemsize(dtype))) {  // float0: NumPy's has no bytes
    npy_intp dims[kMaxDims];
    for (int i = 0; i < array->type->ndim; ++i) dims[i] = static_cast<npy_intp>(array->type->dims[i]);
    Py_INCREF(descr);
    return PyArray_Zeros(array->type->ndim, dims, descr, 0);
  }
  return numpy_view(array, descr);
}

PyObject* raw_view(Array* array) {
  if (ready(array) < 0) return nullptr;
  return numpy_view(array, numpy_descr(DType::UInt64));
}

Array* from_numpy(PyObject* object, bool weak, PyObject* placement) {
  PyRef owned =
      PyRef::steal(PyArray_Check(object) ? PyRef::borrow(object).release() : PyArray_FROM_O(object));
  if (!owned) return nullptr;
  PyArrayObject* source = reinterpret_cast<PyArrayObject*>(owned.get());
  DType dtype;
  if (!dtype_from_numpy(PyArray_DESCR(source), &dtype)) {
    PyErr_Format(
        PyExc_TypeError,
        "NumPy dtype %R is not supported. Supported: bool, int8..int64, uint8..uint64, float16, bfloat16, "
        "float32, float64, complex64, complex128.",
        PyArray_DESCR(source));
    return nullptr;
  }
  dtype = canonical_dtype(dtype);
  SmallVector<int64_t, 8> dims;
  for (int i = 0; i < PyArray_NDIM(source); ++i) dims.push_back(PyArray_DIM(source, i));
  ArrayType* type = make_array_type(dtype, weak, static_cast<int>(dims.size()), dims.data());
  if (!type) return nullptr;
  PyRef type_owner = PyRef::steal(reinterpret_cast<PyObject*>(type));
  bool direct = PyArray_IS_C_CONTIGUOUS(source) && PyArray_ISNOTSWAPPED(source) &&
                PyArray_EquivTypes(PyArray_DESCR(source), numpy_descr(dtype));
  if (direct) {
    if (Block* block = block_under(source)) {
      block->retain();
      type_owner.release();
      return new_array(type, block, static_cast<char*>(PyArray_DATA(source)), placement);
    }
  }
  Array* array = empty_array(type, placement);
  if (!array) return nullptr;
  if (dtype == DType::Float0) {
    std::memset(array->data, 0, static_cast<size_t>(type->nbytes));
  } else if (direct) {
    if (type->nbytes > (1 << 16)) {
      // The caller's reference keeps the memory of `source`; NumPy copies without the GIL as well.
      ReleaseGil released;
      copy_elements(type, source, array->data);
    } else {
      copy_elements(type, source, array->data);
    }
  } else {
    npy_intp extents[kMaxDims];
    for (size_t i = 0; i < dims.size(); ++i) extents[i] = static_cast<npy_intp>(dims[i]);
    PyArray_Descr* descr = numpy_descr(dtype);
    Py_INCREF(descr);
    PyRef target =
        PyRef::steal(PyArray_NewFromDescr(&PyArray_Type, descr, static_cast<int>(dims.size()), extents,
                                          nullptr, array->data, NPY_ARRAY_CARRAY, nullptr));
    // CopyInto casts like astype: 64-bit values are cut to 32 bits.
    if (!target || PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.get()), source) < 0) {
      Py_DECREF(array);
      return nullptr;
    }
  }
  return array;
}

PyObject* element_to_python(const Array* array, int64_t position) {
  const char* at = array->data + position * static_cast<int64_t>(itemsize(array->type->dtype));
  auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (array->type->dtype) {
    case DType::Bool:
      return PyBool_FromLong(*at != 0);
    case DType::Int8:
      return PyLong_FromLong(load(int8_t{}));
    case DType::Int16:
      return PyLong_FromLong(load(int16_t{}));
    case DType::Int32:
      return PyLong_FromLong(load(int32_t{}));
    case DType::Int64:
      return PyLong_FromLongLong(load(int64_t{}));
    case DType::UInt8:
      return PyLong_FromLong(load(uint8_t{}));
    case DType::UInt16:
      return PyLong_FromLong(load(uint16_t{}));
    case DType::UInt32:
      return PyLong_FromUnsignedLong(load(uint32_t{}));
    case DType::UInt64:
      return PyLong_FromUnsignedLongLong(load(uint64_t{}));
    case DType::Float16:
      return PyFloat_FromDouble(half_to_double(load(uint16_t{})));
    case DType::BFloat16:
      return PyFloat_FromDouble(bfloat16_to_double(load(uint16_t{})));
    case DType::Float32:
      return PyFloat_FromDouble(static_cast<double>(load(float{})));
    case DType::Float64:
      return PyFloat_FromDouble(load(double{}));
    case DType::Complex64: {
      float parts[2];
      std::memcpy(parts, at, sizeof parts);
      return PyComplex_FromDoubles(static_cast<double>(parts[0]), static_cast<double>(parts[1]));
    }
    case DType::Complex128: {
      double parts[2];
      std::memcpy(parts, at, sizeof parts);
      return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    case DType::Float0:
      return PyBool_FromLong(0);
    case DType::Key:
      break;
  }
  PyErr_SetString(PyExc_TypeError,
                  "a random key has no Python number. Use jax.random.key_data(key) for the numbers inside.");
  return nullptr;
}

int write_scalar(PyObject* value, DType dtype, void* destination) {
  switch (dtype) {
    case DType::Bool: {
      int truth = PyObject_IsTrue(value);
      if (truth < 0) return -1;
      *static_cast<uint8_t*>(destination) = static_cast<uint8_t>(truth);
      return 0;
    }
    case DType::Float0:
      *static_cast<uint8_t*>(destination) = 0;
      return 0;
    case DType::Key: {
      unsigned long long bits = PyLong_AsUnsignedLongLong(value);
      if (PyErr_Occurred()) return -1;
      std::memcpy(destination, &bits, 8);
      return 0;
    }
    case DType::Complex64:
    case DType::Complex128: {
      Py_complex number = PyComplex_AsCComplex(value);
      if (number.real == -1.0 && PyErr_Occurred()) return not_a_number(value, dtype);
      if (dtype == DType::Complex128) {
        std::memcpy(destination, &number, 16);
      } else {
        float parts[2] = {static_cast<float>(number.real), static_cast<float>(number.imag)};
        std::memcpy(destination, parts, 8);
      }
      return 0;
    }
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64: {
      double number = PyFloat_AsDouble(value);
      if (number == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        return not_a_number(value, dtype);
      }
      if (dtype == DType::Float64) {
        std::memcpy(destination, &number, 8);
      } else if (dtype == DType::Float32) {
        float narrow = static_cast<float>(number);
        std::memcpy(destination, &narrow, 4);
      } else {
        uint16_t bits = dtype == DType::Float16 ? double_to_half(number) : double_to_bfloat16(number);
        std::memcpy(destination, &bits, 2);
      }
      return 0;
    }
    default:
      return write_integer(value, dtype, destination);
  }
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Array* array = as_array(self);
  view->obj = nullptr;
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError,
                    "arrays are immutable: a writable buffer cannot be had. Copy with numpy.array(x).");
    return -1;
  }
  const char* format = buffer_format(array->type->dtype);
  if (!format) {
    PyErr_Format(PyExc_BufferError,
                 "arrays of dtype %s do not support the buffer protocol. Use numpy.asarray(x).",
                 name(array->type->dtype));
    return -1;
  }
  if (ready_for_buffer(array) < 0) return -1;
  const ArrayType* type = array->type;
  // Shape and strides live as long as the type does; strides are made here.
  Py_ssize_t* geometry = nullptr;
  if (type->ndim > 0) {
    geometry =
        static_cast<Py_ssize_t*>(PyMem_Malloc(sizeof(Py_ssize_t) * 2 * static_cast<size_t>(type->ndim)));
    if (!geometry) {
      PyErr_NoMemory();
      return -1;
    }
    Py_ssize_t stride = static_cast<Py_ssize_t>(itemsize(type->dtype));
    for (int i = type->ndim - 1; i >= 0; --i) {
      geometry[i] = static_cast<Py_ssize_t>(type->dims[i]);
      geometry[type->ndim + i] = stride;
      stride *= static_cast<Py_ssize_t>(type->dims[i]);
    }
  }
  view->buf = array->data;
  view->len = static_cast<Py_ssize_t>(type->nbytes);
  view->readonly = 1;
  view->itemsize = static_cast<Py_ssize_t>(itemsize(type->dtype));
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->ndim = type->ndim;
  view->shape = flags & PyBUF_ND ? geometry : nullptr;
  view->strides =
      (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (geometry ? geometry + type->ndim : nullptr) : nullptr;
  view->suboffsets = nullptr;
  // The exporter's block, so that deleting or donating the array does not free what is looked at.
  array->block->retain();
  view->internal = array->block;
  if (geometry && !view->shape) PyMem_Free(geometry);
  view->obj = PyRef::borrow(self).release();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  static_cast<Block*>(view->internal)->release();
  if (view->shape) PyMem_Free(view->shape);
}

PyObject* array_protocol(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
    return nullptr;
  if (ready_after_buffer(as_array(self)) < 0) return nullptr;
  PyRef view = PyRef::steal(to_numpy(as_array(self)));
  if (!view) return nullptr;
  PyArrayObject* source = reinterpret_cast<PyArrayObject*>(view.get());
  bool must_copy = false;
  if (copy != Py_None) {
    int truth = PyObject_IsTrue(copy);
    if (truth < 0) return nullptr;
    must_copy = truth != 0;
  }
  PyArray_Descr* descr = nullptr;
  if (dtype != Py_None && !PyArray_DescrConverter(dtype, &descr)) return nullptr;
  PyRef descr_owner = PyRef::steal(reinterpret_cast<PyObject*>(descr));
  bool same = !descr || PyArray_EquivTypes(descr, PyArray_DESCR(source));
  if (same && !must_copy) return view.release();
  if (!same && copy != Py_None && !must_copy) {
    PyErr_Format(PyExc_ValueError,
                 "__array__: a view of dtype %s as %R needs a copy, and copy=False was asked",
                 name(as_array(self)->type->dtype), dtype);
    return nullptr;
  }
  if (!descr) {
    descr = PyArray_DESCR(source);
    Py_INCREF(descr);
  } else {
    descr_owner.release();
  }
  return PyArray_FromArray(source, descr, NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_CARRAY);
}

PyMethodDef array_numpy_functions[] = {
    {"from_numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_numpy_function)),
     METH_VARARGS | METH_KEYWORDS,
     "from_numpy(array, weak=False, placement=None) -> Array: a copy, in canonical dtype (64-bit types are "
     "narrowed "
     "unless x64 is on)"},
    {"to_numpy", to_numpy_function, METH_O,
     "to_numpy(array) -> ndarray: a read-only view of the array's memory"},
    {"from_scalar", from_scalar, METH_VARARGS,
     "from_scalar(number, ArrayType) -> Array: every element is the number; OverflowError if it does not "
     "fit"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace jato::bind
