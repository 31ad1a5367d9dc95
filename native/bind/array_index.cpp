// Array.__getitem__: an index that selects one contiguous piece is a view; the rest goes to the
// operator table.
//
// A piece is contiguous when every axis before the last restricted one is indexed by an integer:
// x[2], x[1:3], x[0, 1:3], x[None, 1], x[..., None].
#include "array.h"
#include "numpy_api.h"

namespace jato::bind {

namespace {

// A small result is copied: a view would keep a large array alive for a few bytes.
constexpr int64_t kCopyBytes = 256;

enum class Outcome { View, Elsewhere, Error };

struct Piece {
  SmallVector<int64_t, 8> dims;
  int64_t offset = 0;       // in elements
  int axis = 0;             // next axis of the array
  bool restricted = false;  // an axis that is not a single index was met: later ones must be full
};

Outcome take_integer(const ArrayType* type, int64_t index, int64_t stride, Piece& piece) {
  int64_t extent = type->dims[piece.axis];
  if (index < -extent || index >= extent) {
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for axis %d with size %lld",
                 static_cast<long long>(index), piece.axis, static_cast<long long>(extent));
    return Outcome::Error;
  }
  if (piece.restricted && extent != 1) return Outcome::Elsewhere;
  piece.offset += (index < 0 ? index + extent : index) * stride;
  ++piece.axis;
  return Outcome::View;
}

Outcome take_slice(const ArrayType* type, PyObject* slice, int64_t stride, Piece& piece) {
  PySliceObject* bounds = reinterpret_cast<PySliceObject*>(slice);
  // Bounds that are not Python ints (tracers, arrays) are for the operator table to judge.
  for (PyObject* bound : {bounds->start, bounds->stop, bounds->step}) {
    if (bound != Py_None && !PyLong_CheckExact(bound)) return Outcome::Elsewhere;
  }
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return Outcome::Error;
  if (step != 1) return Outcome::Elsewhere;
  int64_t extent = type->dims[piece.axis];
  Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(extent), &start, &stop, 1);
  if (count != extent) {
    if (piece.restricted) return Outcome::Elsewhere;
    piece.offset += start * stride;
  }
  if (extent != 1) piece.restricted = true;
  piece.dims.push_back(count);
  ++piece.axis;
  return Outcome::View;
}

int64_t stride_of(const ArrayType* type, int axis) {
  int64_t stride = 1;
  for (int i = type->ndim - 1; i > axis; --i) stride *= type->dims[i];
  return stride;
}

Outcome take(const ArrayType* type, PyObject* item, Piece& piece) {
  if (item == Py_None) {
    piece.dims.push_back(1);
    return Outcome::View;
  }
  bool integer = PyLong_CheckExact(item) || PyArray_IsScalar(item, Integer);
  if (!integer && !PySlice_Check(item)) return Outcome::Elsewhere;
  if (piece.axis >= type->ndim) {
    PyErr_Format(PyExc_IndexError, "too many indices for an array of type %s", describe(type).c_str());
    return Outcome::Error;
  }
  int64_t stride = stride_of(type, piece.axis);
  if (!integer) return take_slice(type, item, stride, piece);
  Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) return Outcome::Error;
  return take_integer(type, index, stride, piece);
}

Outcome take_all(const ArrayType* type, PyObject* index, Piece& piece) {
  if (!PyTuple_CheckExact(index)) {
    if (index == Py_Ellipsis) return Outcome::View;
    return take(type, index, piece);
  }
  Py_ssize_t count = PyTuple_GET_SIZE(index);
  int consumed = 0;
  bool ellipsis = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(index, i);
    if (item == Py_Ellipsis) {
      if (ellipsis) return Outcome::Elsewhere;
      ellipsis = true;
    } else if (item != Py_None) {
      if (!PyLong_CheckExact(item) && !PySlice_Check(item) && !PyArray_IsScalar(item, Integer))
        return Outcome::Elsewhere;
      ++consumed;
    }
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(index, i);
    if (item == Py_Ellipsis) {
      for (int skipped = type->ndim - consumed; skipped > 0; --skipped) {
        int64_t extent = type->dims[piece.axis++];
        if (extent != 1) piece.restricted = true;
        piece.dims.push_back(extent);
      }
      continue;
    }
    Outcome outcome = take(type, item, piece);
    if (outcome != Outcome::View) return outcome;
  }
  return Outcome::View;
}

PyObject* piece_of(Array* array, Piece& piece) {
  const ArrayType* source = array->type;
  while (piece.axis < source->ndim) piece.dims.push_back(source->dims[piece.axis++]);
  ArrayType* type =
      make_array_type(source->dtype, source->weak, static_cast<int>(piece.dims.size()), piece.dims.data());
  if (!type) return nullptr;
  int64_t offset = piece.offset * static_cast<int64_t>(itemsize(source->dtype));
  if (type->nbytes == 0) offset = 0;
  if (array->block && type->nbytes <= kCopyBytes && source->nbytes > type->nbytes) {
    Array* copy = empty_array(type, array->placement);
    if (copy) std::memcpy(copy->data, array->data + offset, static_cast<size_t>(type->nbytes));
    Py_DECREF(type);
    return reinterpret_cast<PyObject*>(copy);
  }
  return reinterpret_cast<PyObject*>(view_array(array, type, offset));
}

}  // namespace

PyObject* array_subscript(PyObject* self, PyObject* index) {
  Array* array = as_array(self);
  if (is_deleted(array) && ready(array) < 0) return nullptr;
  Piece piece;
  switch (take_all(array->type, index, piece)) {
    case Outcome::View:
      return piece_of(array, piece);
    case Outcome::Error:
      return nullptr;
    case Outcome::Elsewhere:
      break;
  }
  PyObject* getitem = operator_named("getitem");
  if (!getitem) {
    PyErr_Format(PyExc_TypeError, "indexing with %R needs the operator 'getitem' (set_array_operators)",
                 index);
    return nullptr;
  }
  return call2(getitem, self, index);
}

PyObject* array_item(PyObject* self, Py_ssize_t index) {
  Array* array = as_array(self);
  if (array->type->ndim == 0) {
    PyErr_SetString(PyExc_IndexError, "too many indices for a 0-d array");
    return nullptr;
  }
  if (is_deleted(array) && ready(array) < 0) return nullptr;
  Piece piece;
  if (take_integer(array->type, index, stride_of(array->type, 0), piece) != Outcome::View) return nullptr;
  return piece_of(array, piece);
}

}  // namespace jato::bind
