#include "inputs.h"

#include "numpy_api.h"

namespace jato::bind {

namespace {

int write_number(const Leaf& leaf, void* target) {
  switch (leaf.kind) {
    case LeafKind::Int:
      std::memcpy(target, &leaf.integer, itemsize(leaf.type->dtype));  // little-endian
      return 0;
    case LeafKind::Float: {
      double value = PyFloat_AsDouble(leaf.object);
      if (leaf.type->dtype == DType::Float64) {
        std::memcpy(target, &value, 8);
      } else {
        float narrow = static_cast<float>(value);
        std::memcpy(target, &narrow, 4);
      }
      return 0;
    }
    case LeafKind::NumpyScalar: {
      char wide[16];
      PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(leaf.object)));
      DType dtype;
      if (!descr || !dtype_from_numpy(reinterpret_cast<PyArray_Descr*>(descr.get()), &dtype)) return -1;
      if (dtype == DType::BFloat16)
        return write_scalar(leaf.object, dtype, target);  // no type of NumPy's own
      if (itemsize(dtype) == itemsize(leaf.type->dtype)) {
        PyArray_ScalarAsCtype(leaf.object, target);
        return 0;
      }
      PyArray_ScalarAsCtype(leaf.object, wide);
      if (dtype == DType::Float64 || dtype == DType::Complex128) {
        double parts[2];
        std::memcpy(parts, wide, 16);
        float narrow[2] = {static_cast<float>(parts[0]),
                           dtype == DType::Complex128 ? static_cast<float>(parts[1]) : 0};
        std::memcpy(target, narrow, itemsize(leaf.type->dtype));
      } else {
        std::memcpy(target, wide, itemsize(leaf.type->dtype));  // low half: cut as astype does
      }
      return 0;
    }
    default:
      return write_scalar(leaf.object, leaf.type->dtype, target);
  }
}

// The address of a NumPy array's elements in canonical dtype, dense and aligned.
const char* numpy_data(const Leaf& leaf, Signature& signature) {
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(leaf.object);
  PyArray_Descr* descr = numpy_descr(leaf.type->dtype);
  if (leaf.type->dtype == DType::Float0) {  // NumPy's has no bytes, ours has one per element
    PyRef zeros = PyRef::steal(PyBytes_FromStringAndSize(nullptr, leaf.type->nbytes));
    if (!zeros) return nullptr;
    char* data = PyBytes_AS_STRING(zeros.get());
    std::memset(data, 0, static_cast<size_t>(leaf.type->nbytes));
    signature.holders.steal(zeros.release());
    return data;
  }
  if (PyArray_ISCARRAY_RO(array) && PyArray_DESCR(array)->type_num == descr->type_num)
    return static_cast<const char*>(PyArray_DATA(array));
  Py_INCREF(descr);
  PyObject* dense = PyArray_FromArray(array, descr, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
  if (!dense) return nullptr;
  signature.holders.steal(dense);
  return static_cast<const char*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(dense)));
}

}  // namespace

int other_input(const Leaf& leaf, Signature& signature, Scalar* scalar, Buffer* buffer) {
  if (leaf.kind == LeafKind::Numpy) {
    const char* data = numpy_data(leaf, signature);
    *buffer = {nullptr, const_cast<char*>(data)};
    return data ? 0 : -1;
  }
  if (leaf.kind == LeafKind::Odd) {
    PyErr_Format(PyExc_TypeError, "expected an array or a number as an argument, got %s",
                 Py_TYPE(leaf.object)->tp_name);
    return -1;
  }
  *buffer = {nullptr, scalar};
  return write_number(leaf, scalar);
}

int settle_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array* array = input_array(plan, signature, i);
    if (!array) continue;
    if (ready(array) < 0) return -1;
    inputs[i] = {array->block, array->data};
  }
  return 0;
}

int check_inputs(const RunPlan& plan, const Signature& signature, Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array* array = input_array(plan, signature, i);
    if (!array) continue;
    if (is_deleted(array)) return ready(array);
    if (array->block) inputs[i] = {array->block, array->data};
  }
  return 0;
}

void delete_donated(const RunPlan& plan, const Signature& signature) {
  for (int32_t leaf : plan.donated) {
    const Leaf& item = signature.leaves[static_cast<size_t>(leaf)];
    if (item.kind == LeafKind::Array) delete_array(as_array(item.object));
  }
}

}  // namespace jato::bind
