// JitFunction: flattens a call to its signature and runs the entry for it.
#include "dispatch.h"
#include "numpy_api.h"

#include <algorithm>

#include "state.h"

namespace jato::bind {

namespace {

PyTypeObject* jit_function_class = nullptr;
PyObject* empty_tuple = nullptr;
JitFunction* all_functions = nullptr;  // linked, borrowed: for clear_jit_caches

JitFunction* as_jit(PyObject* object) { return reinterpret_cast<JitFunction*>(object); }

// Keyword arguments in the order of their names, so that the order of writing does not matter.
using KeywordOrder = SmallVector<int, 16>;

void order_keywords(PyObject* names, KeywordOrder& order) {
  int count = static_cast<int>(PyTuple_GET_SIZE(names));
  for (int i = 0; i < count; ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [names](int a, int b) {
    return PyUnicode_Compare(PyTuple_GET_ITEM(names, a), PyTuple_GET_ITEM(names, b)) < 0;
  });
}

void raise_static_error(JitFunction* function, PyObject* key, PyObject* value) {
  PyObject* wrapped = function->function;
  if (static_error) {
    PyRef exception = PyRef::steal(PyObject_CallFunctionObjArgs(static_error, wrapped, key, value, nullptr));
    if (exception && PyExceptionInstance_Check(exception.get()))
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
    if (PyErr_Occurred()) return;
  }
  PyErr_Format(
      PyExc_ValueError,
      "%S: static argument %R has a value of type %s, which is unhashable. Static arguments are compared by "
      "hash and equality: pass a hashable value, such as a tuple instead of a list, or make the argument "
      "dynamic if it is an array.",
      function->name, key, Py_TYPE(value)->tp_name);
}

// A list or NumPy array as nested tuples, so that it can be hashed; null without an error if it is neither.
PyRef frozen(PyObject* value) {
  if (PyArray_Check(value)) {
    PyRef list = PyRef::steal(PyObject_CallMethod(value, "tolist", nullptr));
    return list && PyList_Check(list.get()) ? frozen(list.get()) : std::move(list);
  }
  if (!PyList_Check(value) && !PyTuple_Check(value)) return PyRef();
  PyRef items = PyRef::steal(PySequence_Tuple(value));
  if (!items) return items;
  PyRef result = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    PyRef inner = frozen(item);
    if (!inner && PyErr_Occurred()) return PyRef();
    PyTuple_SET_ITEM(result.get(), i, inner ? inner.release() : PyRef::borrow(item).release());
  }
  return result;
}

int add_static_argument(JitFunction* function, Signature& signature, PyObject* value, Py_ssize_t position,
                        PyObject* name) {
  int status = add_static(signature, value);
  if (status <= 0) return status;
  if (function->traced_path == function->function) {
    // A function of ours: axes and shapes may come as lists.
    PyRef tuple = frozen(value);
    if (tuple) {
      signature.hold_all();
      status = add_static(signature, tuple.get());
      if (status <= 0) return status;
    } else if (PyErr_Occurred()) {
      return -1;
    }
  }
  PyRef key = name ? PyRef::borrow(name) : PyRef::steal(PyLong_FromSsize_t(position));
  if (key) raise_static_error(function, key.get(), value);
  return -1;
}

int add_keywords(JitFunction* function, PyObject* const* values, PyObject* names, const KeywordOrder& order,
                 Signature& signature) {
  for (int k : order) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    PyObject* value = values[k];
    Py_hash_t hash = PyObject_Hash(name);
    if (hash == -1) return -1;
    signature.words.push_back(tag(kTagKeyword, 0));
    signature.add_object(name, hash);
    int status = JATO_UNLIKELY(is_named(function->static_argnames, name))
                     ? add_static_argument(function, signature, value, 0, name)
                     : add_tree(signature, value);
    if (status < 0) return -1;
  }
  return 0;
}

int build_signature(JitFunction* function, PyObject* const* args, Py_ssize_t num_args, PyObject* names,
                    KeywordOrder& order, Signature& signature) {
  Py_ssize_t num_keywords = names ? PyTuple_GET_SIZE(names) : 0;
  signature.words.push_back(
      tag(kTagCall, static_cast<uint64_t>(num_args) << 16 | static_cast<uint64_t>(num_keywords)));
  signature.words.push_back(tag(kTagEpoch, config_epoch() << 1 | (x64_enabled() ? 1 : 0)));
  if (JATO_LIKELY(function->static_positions.empty())) {
    for (Py_ssize_t i = 0; i < num_args; ++i) {
      if (JATO_UNLIKELY(add_tree(signature, args[i]) < 0)) return -1;
    }
  } else {
    for (Py_ssize_t i = 0; i < num_args; ++i) {
      int status = is_static_position(function->static_positions, i, num_args)
                       ? add_static_argument(function, signature, args[i], i, nullptr)
                       : add_tree(signature, args[i]);
      if (status < 0) return -1;
    }
  }
  if (num_keywords) {
    order_keywords(names, order);
    if (add_keywords(function, args + num_args, names, order, signature) < 0) return -1;
  }
  signature.finish();
  return 0;
}

PyObject* pack_arguments(PyObject* const* args, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; ++i)
    PyTuple_SET_ITEM(tuple, i, PyRef::borrow(args[i]).release());
  return tuple;
}

PyObject* pack_keywords(PyObject* const* values, PyObject* names) {
  PyRef dict = PyRef::steal(PyDict_New());
  Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; dict && i < count; ++i) {
    if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(names, i), values[i]) < 0) return nullptr;
  }
  return dict.release();
}

// While a trace is active.  A plain function that is its own traced path is called directly.
PyObject* call_traced(JitFunction* function, PyObject* const* args, size_t nargsf, PyObject* names) {
  if (function->traced_path == function->function)
    return PyObject_Vectorcall(function->traced_path, args, nargsf, names);
  Py_ssize_t num_args = PyVectorcall_NARGS(nargsf);
  PyRef positional = PyRef::steal(pack_arguments(args, num_args));
  PyRef keywords = PyRef::steal(pack_keywords(args + num_args, names));
  if (!positional || !keywords) return nullptr;
  return PyObject_CallFunctionObjArgs(function->traced_path, reinterpret_cast<PyObject*>(function),
                                      positional.get(), keywords.get(), nullptr);
}

// No entry is known: the cold path makes one, or gives the result itself.
PyObject* call_cold(JitFunction* function, PyObject* const* args, Py_ssize_t num_args, PyObject* names,
                    const KeywordOrder& order, Signature& signature) {
  signature.hold_all();
  ++function->misses;
  PyRef positional = PyRef::steal(pack_arguments(args, num_args));
  PyRef keywords = PyRef::steal(pack_keywords(args + num_args, names));
  PyRef info = PyRef::steal(new_call_signature(function, args, num_args, names, order.data(), signature));
  if (!positional || !keywords || !info) return nullptr;
  // Two threads may both get here with one signature: both compile, the first entry is kept.
  PyRef answer =
      PyRef::steal(PyObject_CallFunctionObjArgs(function->cold_path, reinterpret_cast<PyObject*>(function),
                                                positional.get(), keywords.get(), info.get(), nullptr));
  if (!answer || !is_entry(answer.get())) return answer.release();
  Entry* entry = reinterpret_cast<Entry*>(answer.get());
  if (!signature.odd) {
    Entry* stored = function->cache.insert(signature, entry);
    if (!stored) return nullptr;
    entry = stored;
  }
  return run_entry(entry, signature);
}

PyObject* jit_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  JitFunction* function = as_jit(self);
  if (JATO_UNLIKELY(trace_active())) return call_traced(function, args, nargsf, names);
  Py_ssize_t num_args = PyVectorcall_NARGS(nargsf);
  Signature signature;
  KeywordOrder order;
  if (JATO_UNLIKELY(build_signature(function, args, num_args, names, order, signature) < 0)) return nullptr;
  if (JATO_LIKELY(!signature.odd)) {
    Entry* entry = function->cache.find(signature);
    if (JATO_LIKELY(entry != nullptr)) {
      ++function->hits;
      return run_entry(entry, signature);
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return call_cold(function, args, num_args, names, order, signature);
}

// --- the object

int read_argnums(PyObject* sequence, std::vector<Py_ssize_t>& positions) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence); ++i) {
    Py_ssize_t position = PyNumber_AsSsize_t(PyTuple_GET_ITEM(sequence, i), PyExc_OverflowError);
    if (position == -1 && PyErr_Occurred()) return -1;
    positions.push_back(position);
  }
  return 0;
}

PyObject* read_names(PyObject* sequence, const char* what) {
  PyRef names = PyRef::steal(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (!PyUnicode_Check(PyTuple_GET_ITEM(names.get(), i))) {
      PyErr_Format(PyExc_TypeError, "JitFunction: argument '%s': expected str, got %R", what,
                   PyTuple_GET_ITEM(names.get(), i));
      return nullptr;
    }
  }
  return names.release();
}

PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "fun",  "cold_path",       "traced_path", "static_argnums", "static_argnames", "donate_argnums",
      "name", "donate_argnames", nullptr};
  PyObject *fun, *cold_path, *traced_path, *name = Py_None;
  PyObject *static_argnums = empty_tuple, *static_argnames = empty_tuple, *donate_argnums = empty_tuple,
           *donate_argnames = empty_tuple;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OOOOO:JitFunction", const_cast<char**>(names), &fun,
                                   &cold_path, &traced_path, &static_argnums, &static_argnames,
                                   &donate_argnums, &name, &donate_argnames))
    return nullptr;
  JitFunction* function = reinterpret_cast<JitFunction*>(type->tp_alloc(type, 0));
  if (!function) return nullptr;
  new (&function->static_positions) std::vector<Py_ssize_t>();
  new (&function->donate_positions) std::vector<Py_ssize_t>();
  new (&function->cache) EntryCache();
  PyRef owner = PyRef::steal(reinterpret_cast<PyObject*>(function));
  function->next = all_functions;
  if (all_functions) all_functions->previous = function;
  all_functions = function;
  function->vectorcall = jit_call;
  function->function = PyRef::borrow(fun).release();
  function->cold_path = PyRef::borrow(cold_path).release();
  function->traced_path = PyRef::borrow(traced_path).release();
  function->static_argnums = PySequence_Tuple(static_argnums);
  function->donate_argnums = PySequence_Tuple(donate_argnums);
  function->static_argnames = read_names(static_argnames, "static_argnames");
  function->donate_argnames = read_names(donate_argnames, "donate_argnames");
  if (!function->static_argnums || !function->donate_argnums || !function->static_argnames ||
      !function->donate_argnames)
    return nullptr;
  if (read_argnums(function->static_argnums, function->static_positions) < 0 ||
      read_argnums(function->donate_argnums, function->donate_positions) < 0)
    return nullptr;
  if (name == Py_None) {
    function->name = PyObject_GetAttrString(fun, "__name__");
    if (!function->name) {
      PyErr_Clear();
      function->name = PyUnicode_FromString(Py_TYPE(fun)->tp_name);
    }
  } else {
    function->name = PyObject_Str(name);
  }
  return function->name ? owner.release() : nullptr;
}

int jit_traverse(PyObject* self, visitproc visit, void* arg) {
  JitFunction* function = as_jit(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function->function);
  Py_VISIT(function->cold_path);
  Py_VISIT(function->traced_path);
  Py_VISIT(function->dict);
  return function->cache.traverse(visit, arg);
}

int jit_clear(PyObject* self) {
  JitFunction* function = as_jit(self);
  function->cache.clear();
  Py_CLEAR(function->function);
  Py_CLEAR(function->cold_path);
  Py_CLEAR(function->traced_path);
  Py_CLEAR(function->dict);
  return 0;
}

void jit_dealloc(PyObject* self) {
  JitFunction* function = as_jit(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  (function->previous ? function->previous->next : all_functions) = function->next;
  if (function->next) function->next->previous = function->previous;
  if (function->weakrefs) PyObject_ClearWeakRefs(self);
  jit_clear(self);
  for (PyObject* object : {function->name, function->static_argnums, function->static_argnames,
                           function->donate_argnums, function->donate_argnames})
    Py_XDECREF(object);
  function->static_positions.~vector();
  function->donate_positions.~vector();
  function->cache.~EntryCache();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* jit_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

PyObject* jit_repr(PyObject* self) { return PyUnicode_FromFormat("<JitFunction %S>", as_jit(self)->name); }

PyObject* cache_size(PyObject* self, PyObject*) { return PyLong_FromSize_t(as_jit(self)->cache.size()); }

PyObject* cache_clear(PyObject* self, PyObject*) {
  as_jit(self)->cache.clear();
  Py_RETURN_NONE;
}

PyObject* clear_jit_caches(PyObject*, PyObject*) {
  // Dropping entries may run Python code that makes or frees functions: hold them all first.
  Holders functions;
  for (JitFunction* function = all_functions; function; function = function->next) {
    if (Py_REFCNT(function) > 0) functions.borrow(reinterpret_cast<PyObject*>(function));
  }
  for (size_t i = 0; i < functions.size(); ++i) as_jit(functions[i])->cache.clear();
  forget_key_orders();
  Py_RETURN_NONE;
}

PyMethodDef functions_of_module[] = {
    {"clear_jit_caches", clear_jit_caches, METH_NOARGS, "forgets all entries of all JitFunctions, and orders of keys"},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* get_stats(PyObject* self, void*) {
  JitFunction* function = as_jit(self);
  return Py_BuildValue("{sKsKsn}", "hits", static_cast<unsigned long long>(function->hits), "misses",
                       static_cast<unsigned long long>(function->misses), "entries",
                       static_cast<Py_ssize_t>(function->cache.size()));
}

PyObject* get_capacity(PyObject* self, void*) { return PyLong_FromSize_t(as_jit(self)->cache.capacity()); }

int set_capacity(PyObject* self, PyObject* value, void*) {
  Py_ssize_t capacity = value ? PyNumber_AsSsize_t(value, PyExc_OverflowError) : -1;
  if (capacity < 1) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "cache_capacity: expected a positive int");
    return -1;
  }
  as_jit(self)->cache.set_capacity(static_cast<size_t>(capacity));
  return 0;
}

PyObject* reduce(PyObject* self, PyObject*) {  // by name, as functions are
  PyRef name = PyRef::steal(PyObject_GetAttrString(self, "__qualname__"));
  if (!name) {
    PyErr_Clear();
    name = PyRef::borrow(as_jit(self)->name);
  }
  return name.release();
}

PyObject* return_self(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

// The signature of a call and whether an entry is stored: for ahead-of-time compilation and tools.
PyObject* signature_method(PyObject* self, PyObject* const* args, Py_ssize_t num_args, PyObject* names) {
  JitFunction* function = as_jit(self);
  Signature signature;
  KeywordOrder order;
  if (build_signature(function, args, num_args, names, order, signature) < 0) return nullptr;
  signature.hold_all();
  return new_call_signature(function, args, num_args, names, order.data(), signature);
}

PyObject* lookup_method(PyObject* self, PyObject* const* args, Py_ssize_t num_args, PyObject* names) {
  JitFunction* function = as_jit(self);
  Signature signature;
  KeywordOrder order;
  if (build_signature(function, args, num_args, names, order, signature) < 0) return nullptr;
  Entry* entry = signature.odd ? nullptr : function->cache.find(signature);
  if (!entry && PyErr_Occurred()) return nullptr;
  return PyRef::borrow(entry ? reinterpret_cast<PyObject*>(entry) : Py_None).release();
}

PyMemberDef jit_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(JitFunction, function), READONLY, "the function"},
    {"cold_path", T_OBJECT, offsetof(JitFunction, cold_path), READONLY, nullptr},
    {"traced_path", T_OBJECT, offsetof(JitFunction, traced_path), READONLY, nullptr},
    {"name", T_OBJECT, offsetof(JitFunction, name), READONLY, nullptr},
    {"static_argnums", T_OBJECT, offsetof(JitFunction, static_argnums), READONLY, nullptr},
    {"static_argnames", T_OBJECT, offsetof(JitFunction, static_argnames), READONLY, nullptr},
    {"donate_argnums", T_OBJECT, offsetof(JitFunction, donate_argnums), READONLY, nullptr},
    {"donate_argnames", T_OBJECT, offsetof(JitFunction, donate_argnames), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitFunction, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(JitFunction, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef jit_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"counters", get_stats, nullptr, "dict of counters: hits, misses, entries", nullptr},
    {"cache_capacity", get_capacity, set_capacity, "how many entries are kept", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

#define JATO_FASTCALL(function) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function))

PyMethodDef jit_methods[] = {
    {"cache_size", cache_size, METH_NOARGS, "number of entries"},
    {"cache_clear", cache_clear, METH_NOARGS, "forgets all entries"},
    {"call_signature", JATO_FASTCALL(signature_method), METH_FASTCALL | METH_KEYWORDS,
     "call_signature(*args, **kwargs) -> CallSignature: what the cold path would be told"},
    {"lookup", JATO_FASTCALL(lookup_method), METH_FASTCALL | METH_KEYWORDS,
     "lookup(*args, **kwargs) -> Entry | None: what a call would run"},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", return_self, METH_NOARGS, nullptr},
    {"__deepcopy__", return_self, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot jit_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(jit_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(jit_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(jit_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(jit_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(jit_get)},
    {Py_tp_repr, reinterpret_cast<void*>(jit_repr)},
    {Py_tp_members, jit_members},
    {Py_tp_getset, jit_getset},
    {Py_tp_methods, jit_methods},
    {Py_tp_doc,
     const_cast<char*>(
         "JitFunction(fun, cold_path, traced_path, static_argnums=(), static_argnames=(), "
         "donate_argnums=(),\n"
         "            name=None, donate_argnames=())\n--\n\n"
         "Calls compiled code chosen by the signature of the arguments.  While a trace is active on the\n"
         "thread, traced_path(self, args, kwargs) is called instead (or fun itself, if traced_path is fun).\n"
         "For an unknown signature cold_path(self, args, kwargs, call_signature) gives an Entry, which is\n"
         "kept and run, or the result of the call.")},
    {0, nullptr},
};

PyType_Spec jit_spec = {"jato._native.JitFunction", sizeof(JitFunction), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                            Py_TPFLAGS_BASETYPE | Py_TPFLAGS_METHOD_DESCRIPTOR,
                        jit_slots};

}  // namespace

bool is_static_position(const std::vector<Py_ssize_t>& positions, Py_ssize_t position, Py_ssize_t num_args) {
  for (Py_ssize_t candidate : positions) {
    if (candidate == position || candidate + num_args == position) return true;
  }
  return false;
}

bool is_named(PyObject* names, PyObject* name) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* candidate = PyTuple_GET_ITEM(names, i);
    if (candidate == name || PyUnicode_Compare(candidate, name) == 0) return true;
  }
  return false;
}

int add_dispatch(PyObject* module) {
  empty_tuple = PyTuple_New(0);
  if (!empty_tuple || add_entry(module) < 0 || add_call_signature(module) < 0) return -1;
  jit_function_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&jit_spec));
  if (!jit_function_class) return -1;
  if (PyModule_AddFunctions(module, functions_of_module) < 0) return -1;
  return PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(jit_function_class));
}

}  // namespace jato::bind
