#include "signature.h"

#include "numpy_api.h"
#include "state.h"

namespace jato::bind {

namespace {

int add_integer(Signature& signature, PyObject* object) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && !overflow && PyErr_Occurred()) return -1;
  bool wide = x64_enabled();
  if (overflow || (!wide && (value < INT32_MIN || value > INT32_MAX))) {
    PyErr_Format(PyExc_OverflowError,
                 "Python integer %S does not fit %s. Pass it as a float, or as an array of a wider dtype%s.",
                 object, wide ? "int64" : "int32", wide ? "" : "; or enable 64-bit types (jax_enable_x64)");
    return -1;
  }
  ArrayType* type = scalar_array_type(wide ? DType::Int64 : DType::Int32, true);
  signature.words.push_back(reinterpret_cast<uintptr_t>(type));
  signature.leaves.push_back({object, type, value, LeafKind::Int});
  ++signature.num_others;
  return 0;
}

void add_scalar(Signature& signature, PyObject* object, LeafKind kind, DType narrow, DType wide) {
  ArrayType* type = scalar_array_type(x64_enabled() ? wide : narrow, true);
  signature.words.push_back(reinterpret_cast<uintptr_t>(type));
  signature.leaves.push_back({object, type, 0, kind});
  ++signature.num_others;
}

void add_odd(Signature& signature, PyObject* object) {
  signature.odd = true;
  signature.words.push_back(tag(0, 0));
  signature.leaves.push_back({object, nullptr, 0, LeafKind::Odd});
  ++signature.num_others;
}

int add_array(Signature& signature, PyObject* object) {
  Array* array = as_array(object);
  signature.words.push_back(reinterpret_cast<uintptr_t>(array->type));
  signature.leaves.push_back({object, array->type, 0, LeafKind::Array});
  if (JATO_UNLIKELY(array->placement != nullptr)) {
    signature.words.push_back(tag(kTagPlacement, 0));
    PyObject* placement = array->placement;
    Py_hash_t hash = PyObject_Hash(placement);
    if (hash == -1) return -1;
    signature.add_object(placement, hash);
  }
  return 0;
}

int add_ndarray(Signature& signature, PyObject* object) {
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
  DType dtype;
  if (!dtype_from_numpy(PyArray_DESCR(array), &dtype) || is_masked(object)) {
    add_odd(signature, object);
    return 0;
  }
  int64_t dims[kMaxDims];
  int ndim = PyArray_NDIM(array);
  for (int i = 0; i < ndim; ++i) dims[i] = PyArray_DIM(array, i);
  ArrayType* type = make_array_type(canonical_dtype(dtype), false, ndim, dims);
  if (!type) return -1;
  signature.holders.steal(reinterpret_cast<PyObject*>(type));
  signature.words.push_back(reinterpret_cast<uintptr_t>(type));
  signature.leaves.push_back({object, type, 0, LeafKind::Numpy});
  ++signature.num_others;
  return 0;
}

int add_numpy_scalar(Signature& signature, PyObject* object) {
  PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(object)));
  if (!descr) return -1;
  DType dtype;
  if (!dtype_from_numpy(reinterpret_cast<PyArray_Descr*>(descr.get()), &dtype) || dtype == DType::Float0) {
    add_odd(signature, object);
    return 0;
  }
  ArrayType* type = scalar_array_type(canonical_dtype(dtype), false);
  signature.words.push_back(reinterpret_cast<uintptr_t>(type));
  signature.leaves.push_back({object, type, 0, LeafKind::NumpyScalar});
  ++signature.num_others;
  return 0;
}

int add_children(Signature& signature, PyObject* const* children, Py_ssize_t count) {
  if (Py_EnterRecursiveCall(" while flattening the arguments")) return -1;
  int status = 0;
  for (Py_ssize_t i = 0; i < count && status == 0; ++i) status = add_tree(signature, children[i]);
  Py_LeaveRecursiveCall();
  return status;
}

int add_list(Signature& signature, PyObject* list) {
  Py_ssize_t count = PyList_GET_SIZE(list);
  signature.words.push_back(tag(static_cast<int>(NodeKind::List), static_cast<uint64_t>(count)));
  if (Py_EnterRecursiveCall(" while flattening the arguments")) return -1;
  int status = 0;
  for (Py_ssize_t i = 0; i < count && status == 0; ++i) {
    if (JATO_UNLIKELY(PyList_GET_SIZE(list) != count)) {
      PyErr_SetString(PyExc_RuntimeError,
                      "a list among the arguments changed its length while it was flattened");
      status = -1;
      break;
    }
    PyObject* child = PyList_GET_ITEM(list, i);
    if (!is_array(child)) signature.holders.borrow(child);
    status = add_tree(signature, child);
  }
  Py_LeaveRecursiveCall();
  return status;
}

int add_dict(Signature& signature, PyObject* dict) {
  SmallVector<DictItem, 16> items;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  bool simple = true;
  while (PyDict_Next(dict, &position, &key, &value)) {
    items.push_back({key, value});
    simple &= is_array(value) && PyUnicode_CheckExact(key);
  }
  if (!simple) {
    for (DictItem& item : items) {
      signature.holders.borrow(item.key);
      signature.holders.borrow(item.value);
      if (!PyUnicode_CheckExact(item.key)) signature.hold_all();  // comparing keys may run Python code
    }
  }
  if (sort_dict_items(items.data(), items.size()) < 0) return -1;
  signature.words.push_back(tag(static_cast<int>(NodeKind::Dict), items.size()));
  for (DictItem& item : items) {
    Py_hash_t hash = PyObject_Hash(item.key);
    if (hash == -1) return -1;
    signature.add_object(item.key, hash);
  }
  if (Py_EnterRecursiveCall(" while flattening the arguments")) return -1;
  int status = 0;
  for (size_t i = 0; i < items.size() && status == 0; ++i) status = add_tree(signature, items[i].value);
  Py_LeaveRecursiveCall();
  return status;
}

// The node data of a container; data that cannot be hashed is compared only.
int add_data(Signature& signature, PyObject* data) {
  if (!data) return 0;
  Py_hash_t hash = PyObject_Hash(data);
  if (hash == -1) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    hash = 0;
  }
  signature.add_object(data, hash);
  return 0;
}

// Containers whose children only Python code knows, and leaves of uncommon kinds.
int add_uncommon(Signature& signature, PyObject* object) {
  if (PyArray_Check(object)) return add_ndarray(signature, object);
  if (PyArray_IsScalar(object, Generic)) return add_numpy_scalar(signature, object);
  signature.hold_all();
  const Registration* registration = nullptr;
  NodeKind kind = classify(object, &registration);
  if (kind != NodeKind::Leaf) {
    Holders children;
    PyObject* data = nullptr;
    if (node_children(object, kind, registration, children, &data) < 0) return -1;
    PyRef owned = PyRef::steal(data);
    signature.words.push_back(tag(static_cast<int>(kind), children.size()));
    signature.words.push_back(reinterpret_cast<uintptr_t>(registration));
    if (add_data(signature, data) < 0) return -1;
    SmallVector<PyObject*, 32> row;
    for (size_t i = 0; i < children.size(); ++i) row.push_back(children[i]);
    return add_children(signature, row.data(), static_cast<Py_ssize_t>(row.size()));
  }
  if (!is_tracer(object)) {
    if (PyBool_Check(object))
      return add_scalar(signature, object, LeafKind::Bool, DType::Bool, DType::Bool), 0;
    if (PyLong_Check(object)) return add_integer(signature, object);
    if (PyFloat_Check(object))
      return add_scalar(signature, object, LeafKind::Float, DType::Float32, DType::Float64), 0;
    if (PyComplex_Check(object))
      return add_scalar(signature, object, LeafKind::Complex, DType::Complex64, DType::Complex128), 0;
  }
  add_odd(signature, object);
  signature.holders.borrow(object);
  return 0;
}

}  // namespace

int add_leaf(Signature& signature, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == array_class) return add_array(signature, object);
  if (type == &PyFloat_Type) {
    add_scalar(signature, object, LeafKind::Float, DType::Float32, DType::Float64);
  } else if (type == &PyLong_Type) {
    return add_integer(signature, object);
  } else if (type == &PyBool_Type) {
    add_scalar(signature, object, LeafKind::Bool, DType::Bool, DType::Bool);
  } else if (type == &PyArray_Type) {
    return add_ndarray(signature, object);
  } else if (type == &PyComplex_Type) {
    add_scalar(signature, object, LeafKind::Complex, DType::Complex64, DType::Complex128);
  } else if (PyArray_Check(object)) {
    return add_ndarray(signature, object);
  } else if (PyArray_IsScalar(object, Generic)) {
    return add_numpy_scalar(signature, object);
  } else {
    add_odd(signature, object);
  }
  return 0;
}

int add_tree(Signature& signature, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (JATO_LIKELY(type == array_class)) {
    if (signature.holding) signature.holders.borrow(object);
    return add_array(signature, object);
  }
  if (signature.holding) signature.holders.borrow(object);
  if (type == &PyTuple_Type) {
    Py_ssize_t count = PyTuple_GET_SIZE(object);
    signature.words.push_back(tag(static_cast<int>(NodeKind::Tuple), static_cast<uint64_t>(count)));
    return add_children(signature, reinterpret_cast<PyTupleObject*>(object)->ob_item, count);
  }
  if (type == &PyList_Type) return add_list(signature, object);
  if (type == &PyDict_Type) return add_dict(signature, object);
  if (object == Py_None) {
    signature.words.push_back(tag(static_cast<int>(NodeKind::None), 0));
    return 0;
  }
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyArray_Type ||
      type == &PyComplex_Type)
    return add_leaf(signature, object);
  return add_uncommon(signature, object);
}

bool is_plain(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type ||
      object == Py_None || type == &PyBytes_Type || type == &PyComplex_Type)
    return true;
  if (type != &PyTuple_Type) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    if (!is_plain(PyTuple_GET_ITEM(object, i))) return false;
  }
  return true;
}

int add_static(Signature& signature, PyObject* value) {
  if (!is_plain(value)) signature.hold_all();
  Py_hash_t hash = PyObject_Hash(value);
  if (hash == -1) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return 1;
  }
  signature.words.push_back(tag(kTagStatic, 0));
  signature.add_object(value, hash);
  return 0;
}

int strictly_equal(PyObject* a, PyObject* b) {
  if (a == b) return 1;
  PyTypeObject* type = Py_TYPE(a);
  if (type != Py_TYPE(b)) return 0;
  if (type == &PyUnicode_Type) return PyUnicode_Compare(a, b) == 0;
  if (type == &PyFloat_Type) {  // by bits: 0.0 and -0.0 differ
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (type == &PyComplex_Type) {
    Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (type == &PyTuple_Type) {
    Py_ssize_t size = PyTuple_GET_SIZE(a);
    if (size != PyTuple_GET_SIZE(b)) return 0;
    for (Py_ssize_t i = 0; i < size; ++i) {
      int equal = strictly_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
      if (equal <= 0) return equal;
    }
    return 1;
  }
  return PyObject_RichCompareBool(a, b, Py_EQ);
}

}  // namespace jato::bind
