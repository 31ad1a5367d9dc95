#include "array_type.h"

#include <vector>

#include "numpy_api.h"

namespace jato::bind {

PyTypeObject* array_type_type = nullptr;

namespace {

ArrayType* scalar_types[kNumDTypes][2];
PyObject* dtype_objects[kNumDTypes];

// Chained hash table of borrowed pointers; a type unlinks itself when it dies.
struct InternTable {
  std::vector<ArrayType*> buckets = std::vector<ArrayType*>(256, nullptr);
  size_t count = 0;

  ArrayType** bucket(uint64_t hash) { return &buckets[hash & (buckets.size() - 1)]; }

  void insert(ArrayType* type) {
    if (++count > buckets.size()) grow();
    ArrayType** place = bucket(type->hash);
    type->next = *place;
    *place = type;
  }
  void erase(ArrayType* type) {
    ArrayType** place = bucket(type->hash);
    while (*place != type) place = &(*place)->next;
    *place = type->next;
    --count;
  }
  void grow() {
    std::vector<ArrayType*> old(buckets.size() * 2, nullptr);
    old.swap(buckets);
    for (ArrayType* type : old) {
      while (type) {
        ArrayType* next = type->next;
        ArrayType** place = bucket(type->hash);
        type->next = *place;
        *place = type;
        type = next;
      }
    }
  }
};

InternTable& table() {
  static InternTable* instance = new InternTable;  // outlives every type, also at exit
  return *instance;
}

void type_dealloc(PyObject* self) {
  ArrayType* type = reinterpret_cast<ArrayType*>(self);
  table().erase(type);
  if (type->weakrefs) PyObject_ClearWeakRefs(self);
  Py_XDECREF(type->shape);
  PyTypeObject* cls = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(cls);
}

bool read_dtype_code(long code, DType* dtype) {
  if (code < 0 || code >= kNumDTypes) {
    PyErr_Format(PyExc_ValueError, "ArrayType: argument 'dtype_code': expected an int in [0, %d), got %ld",
                 kNumDTypes, code);
    return false;
  }
  *dtype = static_cast<DType>(code);
  return true;
}

PyObject* type_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"shape", "dtype_code", "weak_type", nullptr};
  PyObject* shape;
  long code;
  int weak = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ol|p:ArrayType", const_cast<char**>(names), &shape, &code,
                                   &weak))
    return nullptr;
  DType dtype;
  if (!read_dtype_code(code, &dtype)) return nullptr;
  SmallVector<int64_t, 8> dims;
  if (read_shape(shape, dims) < 0) return nullptr;
  return reinterpret_cast<PyObject*>(
      make_array_type(dtype, weak != 0, static_cast<int>(dims.size()), dims.data()));
}

PyObject* type_str(PyObject* self) {
  std::string text = describe(reinterpret_cast<ArrayType*>(self));
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* type_repr(PyObject* self) {
  ArrayType* type = reinterpret_cast<ArrayType*>(self);
  return PyUnicode_FromFormat("ArrayType(%s%s)", describe(type).c_str(),
                              type->weak ? ", weak_type=True" : "");
}

Py_hash_t type_hash(PyObject* self) {
  Py_hash_t hash = static_cast<Py_hash_t>(reinterpret_cast<ArrayType*>(self)->hash);
  return hash == -1 ? -2 : hash;
}

PyObject* type_reduce(PyObject* self, PyObject*) {
  ArrayType* type = reinterpret_cast<ArrayType*>(self);
  return Py_BuildValue("O(OiO)", array_type_type, type->shape, static_cast<int>(type->dtype),
                       type->weak ? Py_True : Py_False);
}

PyObject* return_self(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

PyObject* type_update(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"shape", "dtype_code", "weak_type", nullptr};
  ArrayType* type = reinterpret_cast<ArrayType*>(self);
  PyObject* shape = nullptr;
  long code = static_cast<long>(type->dtype);
  int weak = type->weak;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$Olp:update", const_cast<char**>(names), &shape, &code,
                                   &weak))
    return nullptr;
  DType dtype;
  if (!read_dtype_code(code, &dtype)) return nullptr;
  if (!shape) return reinterpret_cast<PyObject*>(make_array_type(dtype, weak != 0, type->ndim, type->dims));
  SmallVector<int64_t, 8> dims;
  if (read_shape(shape, dims) < 0) return nullptr;
  return reinterpret_cast<PyObject*>(
      make_array_type(dtype, weak != 0, static_cast<int>(dims.size()), dims.data()));
}

PyObject* get_dtype(PyObject* self, void*) {
  PyObject* object = dtype_object(reinterpret_cast<ArrayType*>(self)->dtype);
  Py_XINCREF(object);
  return object;
}
PyObject* get_dtype_code(PyObject* self, void*) {
  return PyLong_FromLong(static_cast<long>(reinterpret_cast<ArrayType*>(self)->dtype));
}
PyObject* get_weak(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<ArrayType*>(self)->weak);
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(itemsize(reinterpret_cast<ArrayType*>(self)->dtype));
}

PyMemberDef type_members[] = {
    {"shape", T_OBJECT_EX, offsetof(ArrayType, shape), READONLY, "tuple of the extents"},
    {"ndim", T_INT, offsetof(ArrayType, ndim), READONLY, "number of axes"},
    {"size", T_LONGLONG, offsetof(ArrayType, size), READONLY, "number of elements"},
    {"nbytes", T_LONGLONG, offsetof(ArrayType, nbytes), READONLY, "bytes of the dense array"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayType, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef type_getset[] = {
    {"dtype", get_dtype, nullptr, "the dtype object (see set_dtype_objects)", nullptr},
    {"dtype_code", get_dtype_code, nullptr, "position of the dtype in the runtime's list", nullptr},
    {"weak_type", get_weak, nullptr, "True for values of Python scalars", nullptr},
    {"itemsize", get_itemsize, nullptr, "bytes of one element", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef type_methods[] = {
    {"update", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(type_update)),
     METH_VARARGS | METH_KEYWORDS,
     "update(*, shape=..., dtype_code=..., weak_type=...) -> ArrayType: this type with some fields replaced"},
    {"__reduce__", type_reduce, METH_NOARGS, nullptr},
    {"__copy__", return_self, METH_NOARGS, nullptr},
    {"__deepcopy__", return_self, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot type_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(type_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(type_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(type_repr)},
    {Py_tp_str, reinterpret_cast<void*>(type_str)},
    {Py_tp_hash, reinterpret_cast<void*>(type_hash)},
    {Py_tp_members, type_members},
    {Py_tp_getset, type_getset},
    {Py_tp_methods, type_methods},
    {Py_tp_doc,
     const_cast<char*>("ArrayType(shape, dtype_code, weak_type=False)\n--\n\n"
                       "Shape, dtype and weak flag of an array.  Interned: equal types are one object.")},
    {0, nullptr},
};

PyType_Spec type_spec = {"jato._native.ArrayType", sizeof(ArrayType), 0, Py_TPFLAGS_DEFAULT, type_slots};

PyObject* set_dtype_objects(PyObject*, PyObject* sequence) {
  PyRef items =
      PyRef::steal(PySequence_Fast(sequence, "set_dtype_objects: expected a list of dtype objects"));
  if (!items) return nullptr;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  if (count > kNumDTypes) {
    PyErr_Format(PyExc_ValueError, "set_dtype_objects: expected at most %d objects, got %zd", kNumDTypes,
                 count);
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = PySequence_Fast_GET_ITEM(items.get(), i);
    set_global(dtype_objects[i], object);
    if (PyArray_DescrCheck(object))
      register_numpy_dtype(static_cast<DType>(i), reinterpret_cast<PyArray_Descr*>(object));
  }
  Py_RETURN_NONE;
}

PyObject* array_type_count(PyObject*, PyObject*) { return PyLong_FromSize_t(table().count); }

PyMethodDef functions[] = {
    {"set_dtype_objects", set_dtype_objects, METH_O,
     "set_dtype_objects(list): one Python object per dtype code; NumPy dtypes among them also tell "
     "how such arrays convert"},
    {"array_type_count", array_type_count, METH_NOARGS, "number of ArrayTypes alive"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

ArrayType* make_array_type(DType dtype, bool weak, int ndim, const int64_t* dims) {
  weak &= dtype != DType::Bool;  // a truth value has no kind to give way to: Python's bool is not weak
  uint64_t hash = mix(0x517CC1B727220A95ull, static_cast<uint64_t>(dtype) * 2 + weak);
  for (int i = 0; i < ndim; ++i) hash = mix(hash, static_cast<uint64_t>(dims[i]));
  for (ArrayType* type = *table().bucket(hash); type; type = type->next) {
    if (type->hash == hash && type->dtype == dtype && type->weak == weak && type->ndim == ndim &&
        std::memcmp(type->dims, dims, static_cast<size_t>(ndim) * sizeof(int64_t)) == 0) {
      Py_INCREF(type);
      return type;
    }
  }
  if (ndim > kMaxDims) {
    PyErr_Format(PyExc_ValueError, "array type: expected at most %d axes, got %d", kMaxDims, ndim);
    return nullptr;
  }
  int64_t size = 1, nbytes = 0;
  bool empty = false, overflow = false;
  for (int i = 0; i < ndim; ++i) {
    if (dims[i] < 0) {
      PyErr_Format(PyExc_ValueError, "array type: extents must not be negative, got %lld at axis %d",
                   static_cast<long long>(dims[i]), i);
      return nullptr;
    }
    if (dims[i] == 0) empty = true;
    overflow |= __builtin_mul_overflow(size, dims[i], &size);
  }
  if (empty) {
    size = 0;
  } else {
    overflow |= __builtin_mul_overflow(size, static_cast<int64_t>(itemsize(dtype)), &nbytes);
    if (overflow) {
      PyErr_SetString(PyExc_ValueError, "array type: the array would have more than 2**63 bytes");
      return nullptr;
    }
  }
  PyRef shape = PyRef::steal(PyTuple_New(ndim));
  if (!shape) return nullptr;
  for (int i = 0; i < ndim; ++i) {
    PyObject* extent = PyLong_FromLongLong(dims[i]);
    if (!extent) return nullptr;
    PyTuple_SET_ITEM(shape.get(), i, extent);
  }
  size_t bytes = offsetof(ArrayType, dims) + sizeof(int64_t) * static_cast<size_t>(ndim > 0 ? ndim : 1);
  ArrayType* type = static_cast<ArrayType*>(PyObject_Malloc(bytes));
  if (!type) {
    PyErr_NoMemory();
    return nullptr;
  }
  std::memset(static_cast<void*>(type), 0, bytes);
  type->dtype = dtype;
  type->weak = weak;
  type->ndim = ndim;
  type->size = size;
  type->nbytes = nbytes;
  type->hash = hash;
  std::memcpy(type->dims, dims, static_cast<size_t>(ndim) * sizeof(int64_t));
  type->shape = shape.release();
  PyObject_Init(reinterpret_cast<PyObject*>(type), array_type_type);  // also counts the class
  table().insert(type);
  return type;
}

std::string describe(const ArrayType* type) {
  std::string text = std::string(type->dtype == DType::Key ? "key<fry>" : name(type->dtype)) + "[";
  for (int i = 0; i < type->ndim; ++i) {
    if (i) text += ',';
    text += std::to_string(type->dims[i]);
  }
  return text + "]";
}

ArrayType* scalar_array_type(DType dtype, bool weak) { return scalar_types[static_cast<int>(dtype)][weak]; }

PyObject* dtype_object(DType dtype) {
  PyObject* object = dtype_objects[static_cast<int>(dtype)];
  if (!object)
    PyErr_Format(PyExc_RuntimeError, "no dtype object was set for %s (set_dtype_objects)", name(dtype));
  return object;
}

int read_shape(PyObject* shape, SmallVector<int64_t, 8>& dims) {
  if (PyIndex_Check(shape)) {
    Py_ssize_t extent = PyNumber_AsSsize_t(shape, PyExc_OverflowError);
    if (extent == -1 && PyErr_Occurred()) return -1;
    dims.push_back(extent);
    return 0;
  }
  PyRef items = PyRef::steal(PySequence_Fast(shape, "shape: expected a sequence of ints"));
  if (!items) return -1;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    Py_ssize_t extent = PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(items.get(), i), PyExc_OverflowError);
    if (extent == -1 && PyErr_Occurred()) return -1;
    dims.push_back(extent);
  }
  return 0;
}

int add_array_type(PyObject* module) {
  array_type_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&type_spec));
  if (!array_type_type) return -1;
  for (int code = 0; code < kNumDTypes; ++code) {
    for (int weak = 0; weak < 2; ++weak) {
      scalar_types[code][weak] = make_array_type(static_cast<DType>(code), weak != 0, 0, nullptr);
      if (!scalar_types[code][weak]) return -1;
    }
  }
  if (PyModule_AddObjectRef(module, "ArrayType", reinterpret_cast<PyObject*>(array_type_type)) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace jato::bind
