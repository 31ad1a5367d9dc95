#include "array.h"

#include <chrono>
#include <utility>

#include "numpy_api.h"
#include "waiting.h"

namespace jato::bind {

PyTypeObject* array_class = nullptr;

namespace {

// Dead array objects, linked through their `block` field: a warm call makes and drops arrays all
// the time, and this is cheaper than the general allocator.
Array* free_list = nullptr;
int free_count = 0;
constexpr int kFreeLimit = 512;

Array* allocate() {
  Array* array;
  if (JATO_LIKELY(free_list != nullptr)) {
    array = free_list;
    free_list = reinterpret_cast<Array*>(array->block);
    --free_count;
  } else {
    array = static_cast<Array*>(PyObject_Malloc(sizeof(Array)));
    if (!array) {
      PyErr_NoMemory();
      return nullptr;
    }
  }
  PyObject_Init(reinterpret_cast<PyObject*>(array), array_class);
  array->weakrefs = nullptr;
  array->donating = false;
  return array;
}

void array_dealloc(PyObject* self) {
  Array* array = as_array(self);
  if (array->weakrefs) PyObject_ClearWeakRefs(self);
  if (JATO_LIKELY(array->block != nullptr)) array->block->release();
  if (array->pending) array->pending->release();
  Py_DECREF(array->type);
  Py_XDECREF(array->placement);
  PyTypeObject* type = Py_TYPE(self);
  if (JATO_LIKELY(free_count < kFreeLimit)) {
    array->block = reinterpret_cast<Block*>(free_list);
    free_list = array;
    ++free_count;
  } else {
    PyObject_Free(self);
  }
  Py_DECREF(type);
}

PyObject* get_shape(PyObject* self, void*) { return PyRef::borrow(as_array(self)->type->shape).release(); }
PyObject* get_dtype(PyObject* self, void*) {
  PyObject* object = dtype_object(as_array(self)->type->dtype);
  Py_XINCREF(object);
  return object;
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(as_array(self)->type->ndim); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(as_array(self)->type->size); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromLongLong(as_array(self)->type->nbytes); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(itemsize(as_array(self)->type->dtype));
}
PyObject* get_weak(PyObject* self, void*) { return PyBool_FromLong(as_array(self)->type->weak); }
PyObject* get_aval(PyObject* self, void*) {
  return PyRef::borrow(reinterpret_cast<PyObject*>(as_array(self)->type)).release();
}
PyObject* get_placement(PyObject* self, void*) {
  PyObject* placement = as_array(self)->placement;
  return PyRef::borrow(placement ? placement : Py_None).release();
}

PyObject* call_is_deleted(PyObject* self, PyObject*) { return PyBool_FromLong(is_deleted(as_array(self))); }

PyObject* call_delete(PyObject* self, PyObject*) {
  delete_array(as_array(self));
  Py_RETURN_NONE;
}

PyObject* is_ready(PyObject* self, PyObject*) {
  Array* array = as_array(self);
  if (!array->block && !array->pending) return ready(array) < 0 ? nullptr : PyBool_FromLong(1);
  return PyBool_FromLong(!array->pending || array->pending->event->ready());
}

PyObject* block_until_ready(PyObject* self, PyObject*) {
  if (ready(as_array(self)) < 0) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* unsafe_buffer_pointer(PyObject* self, PyObject*) {
  if (ready(as_array(self)) < 0) return nullptr;
  return PyLong_FromVoidPtr(as_array(self)->data);
}

Py_ssize_t array_length(PyObject* self) {
  Array* array = as_array(self);
  if (array->type->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
  }
  return static_cast<Py_ssize_t>(array->type->dims[0]);
}

PyObject* array_iter(PyObject* self) {
  if (as_array(self)->type->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
    return nullptr;
  }
  return PySeqIter_New(self);
}

// The one element of an array of any rank; `what` names the conversion in messages.
PyObject* single_element(Array* array, const char* what) {
  if (array->type->ndim != 0) {
    PyErr_Format(PyExc_TypeError,
                 "%s: Only scalar arrays can be converted to Python scalars; got an array of type %s. "
                 "Use x.item() for an array of one element.",
                 what, describe(array->type).c_str());
    return nullptr;
  }
  if (ready(array) < 0) return nullptr;
  return element_to_python(array, 0);
}

PyObject* array_int(PyObject* self) {
  PyRef value = PyRef::steal(single_element(as_array(self), "int()"));
  if (!value) return nullptr;
  if (PyComplex_Check(value.get())) {
    PyErr_SetString(PyExc_TypeError, "int(): the array is complex. Take x.real first.");
    return nullptr;
  }
  return PyNumber_Long(value.get());
}

PyObject* array_float(PyObject* self) {
  PyRef value = PyRef::steal(single_element(as_array(self), "float()"));
  if (!value) return nullptr;
  if (PyComplex_Check(value.get())) {
    PyErr_SetString(PyExc_TypeError, "float(): the array is complex. Take x.real first.");
    return nullptr;
  }
  return PyNumber_Float(value.get());
}

PyObject* array_complex(PyObject* self, PyObject*) {
  PyRef value = PyRef::steal(single_element(as_array(self), "complex()"));
  if (!value) return nullptr;
  if (PyComplex_CheckExact(value.get())) return value.release();
  double real = PyFloat_AsDouble(value.get());
  if (real == -1.0 && PyErr_Occurred()) return nullptr;
  return PyComplex_FromDoubles(real, 0.0);
}

PyObject* array_index(PyObject* self) {
  Array* array = as_array(self);
  if (array->type->ndim != 0 || array->type->dtype < DType::Int8 || array->type->dtype > DType::UInt64) {
    PyErr_Format(PyExc_TypeError,
                 "Only integer scalar arrays can be converted to a scalar index; got an array of type %s.",
                 describe(array->type).c_str());
    return nullptr;
  }
  if (ready(array) < 0) return nullptr;
  return element_to_python(array, 0);
}

int array_bool(PyObject* self) {
  Array* array = as_array(self);
  if (array->type->size != 1) {
    PyErr_Format(PyExc_ValueError,
                 array->type->size == 0
                     ? "The truth value of an empty array is ambiguous (type %s). Use `array.size > 0`."
                     : "The truth value of an array with more than one element is ambiguous (type %s). "
                       "Use a.any() or a.all()",
                 describe(array->type).c_str());
    return -1;
  }
  if (ready(array) < 0) return -1;
  PyRef value = PyRef::steal(element_to_python(array, 0));
  return value ? PyObject_IsTrue(value.get()) : -1;
}

PyObject* array_item_method(PyObject* self, PyObject* args) {
  Array* array = as_array(self);
  if (PyTuple_GET_SIZE(args) == 0) {
    if (array->type->size != 1) {
      PyErr_Format(PyExc_ValueError,
                   "item: can only convert an array of size 1 to a Python scalar, got an array of type %s",
                   describe(array->type).c_str());
      return nullptr;
    }
    if (ready(array) < 0) return nullptr;
    return element_to_python(array, 0);
  }
  PyRef view = PyRef::steal(to_numpy(array));
  if (!view) return nullptr;
  PyRef method = PyRef::steal(PyObject_GetAttrString(view.get(), "item"));
  return method ? PyObject_Call(method.get(), args, nullptr) : nullptr;
}

PyObject* tolist(PyObject* self, PyObject*) {
  Array* array = as_array(self);
  if (array->type->ndim == 0) {
    if (ready(array) < 0) return nullptr;
    return element_to_python(array, 0);
  }
  PyRef view = PyRef::steal(to_numpy(array));
  return view ? PyObject_CallMethod(view.get(), "tolist", nullptr) : nullptr;
}

PyObject* reduce(PyObject* self, PyObject*) {
  Array* array = as_array(self);
  // Keys travel as the 64-bit numbers that they are; the type says what they mean.
  PyRef view = PyRef::steal(array->type->dtype == DType::Key ? raw_view(array) : to_numpy(array));
  if (!view) return nullptr;
  PyRef module = PyRef::steal(PyImport_ImportModule("jato._native"));
  if (!module) return nullptr;
  PyRef maker = PyRef::steal(PyObject_GetAttrString(module.get(), "array_from_pickle"));
  if (!maker) return nullptr;
  return Py_BuildValue("O(OO)", maker.get(), view.get(), reinterpret_cast<PyObject*>(array->type));
}

int array_assign(PyObject*, PyObject*, PyObject* value) {
  PyErr_SetString(PyExc_TypeError,
                  value ? "arrays are immutable: in place of x[index] = value write "
                          "x = x.at[index].set(value)."
                        : "arrays are immutable: elements cannot be deleted; jato.numpy.delete(x, index) "
                          "gives a new array.");
  return -1;
}

PyObject* copy(PyObject* self, PyObject*) {  // immutable: a copy is another reference
  Py_INCREF(self);
  return self;
}

PyObject* default_repr(PyObject* self) {
  Array* array = as_array(self);
  if (is_deleted(array)) return PyUnicode_FromFormat("<deleted Array %s>", describe(array->type).c_str());
  PyRef view = PyRef::steal(to_numpy(array));
  if (!view) return nullptr;
  PyRef text = PyRef::steal(PyObject_Str(view.get()));
  return text ? PyUnicode_FromFormat("Array(%U, %s)", text.get(), describe(array->type).c_str()) : nullptr;
}

PyObject* array_from_pickle(PyObject*, PyObject* args) {
  PyObject *data, *type;
  if (!PyArg_ParseTuple(args, "OO:array_from_pickle", &data, &type)) return nullptr;
  if (!PyArray_Check(data) || !is_array_type(type)) {
    PyErr_SetString(PyExc_TypeError, "array_from_pickle: expected (numpy.ndarray, ArrayType)");
    return nullptr;
  }
  ArrayType* wanted = reinterpret_cast<ArrayType*>(type);
  Array* array = empty_array(wanted, nullptr);
  if (!array) return nullptr;
  PyRef owner = PyRef::steal(reinterpret_cast<PyObject*>(array));
  PyRef dense =
      PyRef::steal(PyArray_FromArray(reinterpret_cast<PyArrayObject*>(data), nullptr, NPY_ARRAY_CARRAY_RO));
  if (!dense) return nullptr;
  PyArrayObject* source = reinterpret_cast<PyArrayObject*>(dense.get());
  if (wanted->dtype == DType::Float0) {
    std::memset(array->data, 0, static_cast<size_t>(wanted->nbytes));
    return owner.release();
  }
  if (PyArray_NBYTES(source) != wanted->nbytes) {
    PyErr_Format(PyExc_ValueError, "array_from_pickle: %zd bytes do not make an array of type %s",
                 static_cast<Py_ssize_t>(PyArray_NBYTES(source)), describe(wanted).c_str());
    return nullptr;
  }
  std::memcpy(array->data, PyArray_DATA(source), static_cast<size_t>(wanted->nbytes));
  return owner.release();
}

PyObject* view(PyObject*, PyObject* args) {
  PyObject *object, *type;
  if (!PyArg_ParseTuple(args, "OO:view", &object, &type)) return nullptr;
  if (!is_array(object) || !is_array_type(type)) {
    PyErr_Format(PyExc_TypeError, "view: expected (Array, ArrayType), got (%s, %s)", Py_TYPE(object)->tp_name,
                 Py_TYPE(type)->tp_name);
    return nullptr;
  }
  ArrayType* wanted = reinterpret_cast<ArrayType*>(type);
  if (wanted->nbytes != as_array(object)->type->nbytes) {
    PyErr_Format(PyExc_ValueError, "view: cannot view an array of type %s as %s: the sizes in bytes differ",
                 describe(as_array(object)->type).c_str(), describe(wanted).c_str());
    return nullptr;
  }
  Py_INCREF(wanted);
  return reinterpret_cast<PyObject*>(view_array(as_array(object), wanted, 0));
}

PyObject* with_placement(PyObject*, PyObject* args) {
  PyObject *object, *placement;
  if (!PyArg_ParseTuple(args, "OO:with_placement", &object, &placement)) return nullptr;
  if (!is_array(object)) {
    PyErr_Format(PyExc_TypeError, "with_placement: expected an Array, got %s", Py_TYPE(object)->tp_name);
    return nullptr;
  }
  Array* array = as_array(object);
  Py_INCREF(array->type);
  Array* result = view_array(array, array->type, 0);
  if (!result) return nullptr;
  set_global(result->placement, placement);
  return reinterpret_cast<PyObject*>(result);
}

PyObject* set_array_methods(PyObject*, PyObject* methods) {
  if (!PyDict_Check(methods)) {
    PyErr_Format(PyExc_TypeError, "set_array_methods: expected a dict, got %s", Py_TYPE(methods)->tp_name);
    return nullptr;
  }
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(methods, &position, &name, &value)) {
    if (PyObject_SetAttr(reinterpret_cast<PyObject*>(array_class), name, value) < 0) return nullptr;
  }
  Py_RETURN_NONE;
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Array, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "tuple of the extents", nullptr},
    {"dtype", get_dtype, nullptr, "the element type", nullptr},
    {"ndim", get_ndim, nullptr, "number of axes", nullptr},
    {"size", get_size, nullptr, "number of elements", nullptr},
    {"nbytes", get_nbytes, nullptr, "bytes of all elements", nullptr},
    {"itemsize", get_itemsize, nullptr, "bytes of one element", nullptr},
    {"weak_type", get_weak, nullptr, "True if the dtype gives way in promotion, as a Python scalar's does",
     nullptr},
    {"aval", get_aval, nullptr, "the ArrayType", nullptr},
    {"placement", get_placement, nullptr, "where the array was put, None for the default device", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

#define JATO_KEYWORDS(function) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function))

PyMethodDef methods[] = {
    {"is_deleted", call_is_deleted, METH_NOARGS, "was the array deleted or donated"},
    {"delete", call_delete, METH_NOARGS, "gives the memory back; later use raises RuntimeError"},
    {"is_ready", is_ready, METH_NOARGS, "is the computation of the array finished"},
    {"block_until_ready", block_until_ready, METH_NOARGS,
     "waits for the array's computation, raises its error; returns the array"},
    {"unsafe_buffer_pointer", unsafe_buffer_pointer, METH_NOARGS, "address of the first element"},
    {"item", array_item_method, METH_VARARGS, "item(*index): one element as a Python number"},
    {"tolist", tolist, METH_NOARGS, "the elements as nested lists of Python numbers"},
    {"__complex__", array_complex, METH_NOARGS, nullptr},
    {"__array__", JATO_KEYWORDS(array_protocol), METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)"},
    {"__dlpack__", JATO_KEYWORDS(to_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)"},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__deepcopy__", copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef functions[] = {
    {"array_from_pickle", array_from_pickle, METH_VARARGS, "array_from_pickle(ndarray, ArrayType) -> Array"},
    {"view", view, METH_VARARGS,
     "view(array, ArrayType) -> Array: the same memory under another type of equal size"},
    {"with_placement", with_placement, METH_VARARGS,
     "with_placement(array, placement | None) -> Array: the same memory, known to be elsewhere"},
    {"set_array_methods", set_array_methods, METH_O,
     "set_array_methods(dict): attributes of the Array class"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Array* new_array(ArrayType* type, Block* block, char* data, PyObject* placement) {
  Array* array = allocate();
  if (!array) {
    Py_DECREF(type);
    block->release();
    return nullptr;
  }
  array->type = type;
  array->block = block;
  array->data = data;
  array->pending = nullptr;
  array->pending_offset = 0;
  Py_XINCREF(placement);
  array->placement = placement;
  return array;
}

Array* new_pending_array(ArrayType* type, Pending* pending, int64_t offset, PyObject* placement) {
  Array* array = allocate();
  if (!array) {
    Py_DECREF(type);
    pending->release();
    return nullptr;
  }
  array->type = type;
  array->block = nullptr;
  array->data = nullptr;
  array->pending = pending;
  array->pending_offset = offset;
  Py_XINCREF(placement);
  array->placement = placement;
  return array;
}

Array* empty_array(ArrayType* type, PyObject* placement) {
  try {
    jato::Ref<Block> block = Pool::allocate(static_cast<size_t>(type->nbytes));
    char* data = static_cast<char*>(block->data());
    Py_INCREF(type);
    return new_array(type, block.detach(), data, placement);
  } catch (...) {
    set_current_error();
    return nullptr;
  }
}

bool is_deleted(const Array* array) { return !array->block && !array->pending; }

void delete_array(Array* array) {
  if (Block* block = std::exchange(array->block, nullptr)) block->release();
  if (Pending* pending = std::exchange(array->pending, nullptr)) pending->release();
  array->data = nullptr;
}

namespace {

// Where numpy.asarray(x) waits for x, Ctrl-C lands in the buffer protocol, whose errors NumPy drops
// before it asks for __array__: the exception is kept for that call, which comes at once.
constexpr auto kBufferRetry = std::chrono::milliseconds(20);
thread_local Event* interrupted_event = nullptr;  // only compared
thread_local std::chrono::steady_clock::time_point interrupted_at;

}  // namespace

int ready_for_buffer(Array* array) {
  const Pending* pending = array->pending;
  Event* event = pending ? pending->event.get() : nullptr;
  if (ready(array) == 0) return 0;
  if (event && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    interrupted_event = event;
    interrupted_at = std::chrono::steady_clock::now();
  }
  return -1;
}

int ready_after_buffer(Array* array) {
  Event* event = std::exchange(interrupted_event, nullptr);
  if (event && array->pending && array->pending->event.get() == event &&
      std::chrono::steady_clock::now() - interrupted_at < kBufferRetry) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    return -1;
  }
  return ready(array);
}

int ready_slow(Array* array) {
  if (array->block) return 0;
  if (!array->pending) {
    PyErr_Format(PyExc_RuntimeError,
                 "Array has been deleted with shape=%R and dtype=%s. It was donated to a jitted function, or "
                 "delete() was called.",
                 array->type->shape, name(array->type->dtype));
    return -1;
  }
  Pending* pending = array->pending;
  pending->retain();  // another thread may settle or delete the array while this one waits
  int status = wait_for(pending->event.get(), pending->device);
  if (status == 0) {
    if (std::exception_ptr error = pending->event->error()) {
      set_kept_error(error);
      status = -1;
    } else if (array->pending == pending) {
      array->block = pending->block;
      array->block->retain();
      array->data = pending->data + array->pending_offset;
      array->pending = nullptr;
      pending->release();
    }
  }
  pending->release();
  return status < 0 ? -1 : ready(array);
}

Array* view_array(Array* array, ArrayType* type, int64_t offset) {
  if (array->block) {
    array->block->retain();
    return new_array(type, array->block, array->data + offset, array->placement);
  }
  if (!array->pending) {
    ready_slow(array);
    Py_DECREF(type);
    return nullptr;
  }
  array->pending->retain();
  return new_pending_array(type, array->pending, array->pending_offset + offset, array->placement);
}

int add_array(PyObject* module) {
  SmallVector<PyType_Slot, 96> slots;
  auto add = [&](int id, auto function) { slots.push_back({id, reinterpret_cast<void*>(function)}); };
  add(Py_tp_dealloc, array_dealloc);
  add(Py_tp_repr, default_repr);
  add(Py_tp_hash, PyObject_HashNotImplemented);
  add(Py_tp_richcompare, array_compare);
  add(Py_tp_iter, array_iter);
  add(Py_tp_members, members);
  add(Py_tp_getset, getset);
  add(Py_tp_methods, methods);
  add(Py_mp_length, array_length);
  add(Py_mp_subscript, array_subscript);
  add(Py_mp_ass_subscript, array_assign);
  add(Py_sq_length, array_length);
  add(Py_sq_item, array_item);
  add(Py_bf_getbuffer, get_buffer);
  add(Py_bf_releasebuffer, release_buffer);
  add(Py_nb_bool, array_bool);
  add(Py_nb_int, array_int);
  add(Py_nb_float, array_float);
  add(Py_nb_index, array_index);
  for (int i = 0; i < num_number_slots; ++i) slots.push_back(number_slots[i]);
  add(Py_tp_doc, const_cast<char*>("An immutable, dense, row-major array."));
  slots.push_back({0, nullptr});
  static PyType_Spec spec = {"jato._native.ArrayImpl", sizeof(Array), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, nullptr};
  spec.slots = slots.data();
  array_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!array_class) return -1;
  PyRef priority = PyRef::steal(PyLong_FromLong(100));
  if (!priority || PyObject_SetAttrString(reinterpret_cast<PyObject*>(array_class), "__array_priority__",
                                          priority.get()) < 0)
    return -1;
  for (const char* name : {"ArrayImpl", "Array"}) {
    if (PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(array_class)) < 0) return -1;
  }
  for (PyMethodDef* table : {functions, array_numpy_functions, array_operator_functions, dlpack_functions}) {
    if (PyModule_AddFunctions(module, table) < 0) return -1;
  }
  return 0;
}

}  // namespace jato::bind
