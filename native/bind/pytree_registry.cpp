// Which objects are pytree nodes, and what their children are.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "array.h"
#include "numpy_api.h"
#include "pytree.h"

namespace jato::bind {

namespace {

std::unordered_map<PyObject*, Registration*>& registry() {
  static auto* instance = new std::unordered_map<PyObject*, Registration*>;
  return *instance;
}

PyObject* fields_name = nullptr;  // "_fields"
PyObject* default_factory_name = nullptr;

bool is_named_tuple(PyObject* object) {
  if (!PyTuple_Check(object) || PyTuple_CheckExact(object)) return false;
  PyObject* fields = PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(object)), fields_name);
  if (!fields) {
    PyErr_Clear();
    return false;
  }
  Py_DECREF(fields);
  return true;
}

PyObject* type_name(PyObject* object) {
  return PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__qualname__");
}

// Sorts a list; an order that does not exist leaves the list as it was.
int sort_if_ordered(PyObject* list) {
  PyRef copy = PyRef::steal(PyList_GetSlice(list, 0, PyList_GET_SIZE(list)));
  if (!copy) return -1;
  if (PyList_Sort(copy.get()) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();
    return 1;
  }
  return PyList_SetSlice(list, 0, PyList_GET_SIZE(list), copy.get());
}

// The keys of any types: in Python's order if there is one, else grouped by the name of their type.
int sort_keys(PyObject* keys) {
  int status = sort_if_ordered(keys);
  if (status <= 0) return status;
  PyRef groups = PyRef::steal(PyDict_New());
  if (!groups) return -1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); ++i) {
    PyObject* key = PyList_GET_ITEM(keys, i);
    PyRef name = PyRef::steal(type_name(key));
    if (!name) return -1;
    PyObject* group = PyDict_GetItemWithError(groups.get(), name.get());
    if (!group) {
      if (PyErr_Occurred()) return -1;
      PyRef fresh = PyRef::steal(PyList_New(0));
      if (!fresh || PyDict_SetItem(groups.get(), name.get(), fresh.get()) < 0) return -1;
      group = fresh.get();  // the dict holds it
    }
    if (PyList_Append(group, key) < 0) return -1;
  }
  PyRef names = PyRef::steal(PyDict_Keys(groups.get()));
  PyRef sorted = PyRef::steal(PyList_New(0));
  if (!names || !sorted || PyList_Sort(names.get()) < 0) return -1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* group = PyDict_GetItemWithError(groups.get(), PyList_GET_ITEM(names.get(), i));
    if (!group || sort_if_ordered(group) < 0) return -1;
    Py_ssize_t end = PyList_GET_SIZE(sorted.get());
    if (PyList_SetSlice(sorted.get(), end, end, group) < 0) return -1;
  }
  return PyList_SetSlice(keys, 0, PyList_GET_SIZE(keys), sorted.get());
}

int dict_children(PyObject* dict, bool sorted, Holders& children, PyObject** keys_out) {
  PyRef keys;
  if (PyDict_CheckExact(dict) || sorted) {
    SmallVector<DictItem, 16> items;
    Holders alive;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
      items.push_back({key, value});
      alive.borrow(key);
      alive.borrow(value);
    }
    if (sort_dict_items(items.data(), items.size()) < 0) return -1;
    keys = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    if (!keys) return -1;
    for (size_t i = 0; i < items.size(); ++i) {
      Py_INCREF(items[i].key);
      PyTuple_SET_ITEM(keys.get(), static_cast<Py_ssize_t>(i), items[i].key);
      children.borrow(items[i].value);
    }
  } else {  // OrderedDict: move_to_end changes an order that PyDict_Next does not see
    keys = PyRef::steal(PySequence_Tuple(dict));
    if (!keys) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
      PyObject* value = PyObject_GetItem(dict, PyTuple_GET_ITEM(keys.get(), i));
      if (!value) return -1;
      children.steal(value);
    }
  }
  *keys_out = keys.release();
  return 0;
}

int dataclass_children(PyObject* object, const Registration* registration, Holders& children,
                       PyObject** data) {
  PyObject* fields = registration->data_fields;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i) {
    PyObject* value = PyObject_GetAttr(object, PyTuple_GET_ITEM(fields, i));
    if (!value) return -1;
    children.steal(value);
  }
  PyObject* names = registration->meta_fields;
  PyRef values = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(names)));
  if (!values) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* value = PyObject_GetAttr(object, PyTuple_GET_ITEM(names, i));
    if (!value) return -1;
    PyTuple_SET_ITEM(values.get(), i, value);
  }
  *data = values.release();
  return 0;
}

int custom_children(PyObject* object, const Registration* registration, Holders& children, PyObject** data) {
  PyRef pair = PyRef::steal(call1(registration->to_iterable, object));
  if (!pair) return -1;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
    PyErr_Format(
        PyExc_TypeError,
        "the flatten function of pytree node %R must return a pair (children, auxiliary data), got %R",
        registration->type, pair.get());
    return -1;
  }
  PyRef items = PyRef::steal(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
  if (!items) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    children.borrow(PyTuple_GET_ITEM(items.get(), i));
  *data = PyRef::borrow(PyTuple_GET_ITEM(pair.get(), 1)).release();
  return 0;
}

PyObject* build_dict(PyObject* keys, PyObject* const* children) {
  PyRef dict = PyRef::steal(PyDict_New());
  if (!dict) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(keys, i), children[i]) < 0) return nullptr;
  }
  return dict.release();
}

PyObject* make_tuple(PyObject* const* children, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(children[i]);
    PyTuple_SET_ITEM(tuple, i, children[i]);
  }
  return tuple;
}

PyObject* build_dataclass(const Node& node, PyObject* const* children) {
  const Registration* registration = node.registration;
  PyRef kwargs = PyRef::steal(build_dict(registration->data_fields, children));
  if (!kwargs) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(registration->meta_fields); ++i) {
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(registration->meta_fields, i),
                       PyTuple_GET_ITEM(node.data, i)) < 0)
      return nullptr;
  }
  PyRef empty = PyRef::steal(PyTuple_New(0));
  return empty ? PyObject_Call(registration->type, empty.get(), kwargs.get()) : nullptr;
}

int add_registration(Registration&& registration) {
  if (!PyType_Check(registration.type)) {
    PyErr_Format(PyExc_TypeError, "register_pytree_node: expected a class, got %R", registration.type);
    return -1;
  }
  PyObject* type = registration.type;
  if (type == reinterpret_cast<PyObject*>(&PyTuple_Type) ||
      type == reinterpret_cast<PyObject*>(&PyList_Type) ||
      type == reinterpret_cast<PyObject*>(&PyDict_Type) ||
      type == reinterpret_cast<PyObject*>(Py_TYPE(Py_None)) || registry().count(type)) {
    PyErr_Format(PyExc_ValueError, "Duplicate custom PyTreeDef type registration for %R", type);
    return -1;
  }
  for (PyObject* object : {registration.type, registration.to_iterable, registration.from_iterable,
                           registration.data_fields, registration.meta_fields})
    Py_XINCREF(object);
  registry()[type] = new Registration(registration);
  return 0;
}

PyObject* register_node(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "to_iterable", "from_iterable", nullptr};
  PyObject *type, *to_iterable, *from_iterable;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:register_node", const_cast<char**>(names), &type,
                                   &to_iterable, &from_iterable))
    return nullptr;
  if (add_registration({type, NodeKind::Custom, to_iterable, from_iterable, nullptr, nullptr}) < 0)
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* register_dataclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "data_fields", "meta_fields", nullptr};
  PyObject *type, *data_fields, *meta_fields;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:register_dataclass", const_cast<char**>(names), &type,
                                   &data_fields, &meta_fields))
    return nullptr;
  PyRef data = PyRef::steal(PySequence_Tuple(data_fields)),
        meta = PyRef::steal(PySequence_Tuple(meta_fields));
  if (!data || !meta) return nullptr;
  if (add_registration({type, NodeKind::Dataclass, nullptr, nullptr, data.get(), meta.get()}) < 0)
    return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"register_node", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(register_node)),
     METH_VARARGS | METH_KEYWORDS,
     "register_node(type, to_iterable, from_iterable): object -> (children, data), (data, children) -> "
     "object"},
    {"register_dataclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(register_dataclass)),
     METH_VARARGS | METH_KEYWORDS, "register_dataclass(type, data_fields, meta_fields)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Registration* find_registration(PyObject* type) {
  auto found = registry().find(type);
  return found == registry().end() ? nullptr : found->second;
}

NodeKind classify(PyObject* object, const Registration** registration) {
  PyTypeObject* type = Py_TYPE(object);
  if (JATO_LIKELY(type == array_class)) return NodeKind::Leaf;
  if (type == &PyTuple_Type) return NodeKind::Tuple;
  if (type == &PyList_Type) return NodeKind::List;
  if (type == &PyDict_Type) return NodeKind::Dict;
  if (object == Py_None) return NodeKind::None;
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyArray_Type)
    return NodeKind::Leaf;
  const Registration* found = find_registration(reinterpret_cast<PyObject*>(type));
  if (found) {
    *registration = found;
    return found->kind;
  }
  return is_named_tuple(object) ? NodeKind::NamedTuple : NodeKind::Leaf;
}

namespace {

// A key with its first eight bytes as a number, which nearly always decides a comparison.
struct PrefixedItem {
  uint64_t prefix;
  DictItem item;
};

uint64_t ascii_prefix(PyObject* key) {
  const auto* bytes = static_cast<const unsigned char*>(PyUnicode_DATA(key));
  const Py_ssize_t length = std::min<Py_ssize_t>(PyUnicode_GET_LENGTH(key), 8);
  uint64_t prefix = 0;
  for (Py_ssize_t i = 0; i < length; ++i) prefix |= static_cast<uint64_t>(bytes[i]) << (56 - 8 * i);
  return prefix;
}

// Sorting fifty keys by comparing strings alone took a third of the flattening of their dict.
void sort_strings(DictItem* items, size_t count) {
  const auto by_string = [](const DictItem& a, const DictItem& b) { return PyUnicode_Compare(a.key, b.key) < 0; };
  bool ascii = true;
  for (size_t i = 0; i < count && ascii; ++i) ascii = PyUnicode_IS_ASCII(items[i].key);
  if (!ascii || count < 8) {
    std::sort(items, items + count, by_string);
    return;
  }
  SmallVector<PrefixedItem, 64> prefixed;
  for (size_t i = 0; i < count; ++i) prefixed.push_back({ascii_prefix(items[i].key), items[i]});
  std::sort(prefixed.data(), prefixed.data() + count, [&](const PrefixedItem& a, const PrefixedItem& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : by_string(a.item, b.item);
  });
  for (size_t i = 0; i < count; ++i) items[i] = prefixed[i].item;
}

// Orders of keys found before: the dicts of a program have the same strings in the same order at each
// call, and recognizing them by address is ten times as fast as comparing them.
class KnownOrders {
 public:
  // Sorts the items if these very keys came before.
  bool apply(DictItem* items, size_t count) {
    if (count > kMostKeys) return false;
    const Entry& entry = entries_[hash_of(items, count) >> 56];
    if (entry.keys.size() != count) return false;
    for (size_t i = 0; i < count; ++i) {
      if (entry.keys[i] != items[i].key) return false;
    }
    if (entry.order.empty()) return true;
    SmallVector<DictItem, 64> sorted;
    for (const uint16_t i : entry.order) sorted.push_back(items[i]);
    std::copy_n(sorted.data(), count, items);
    return true;
  }

  // `before`: the keys, strings, as they came; `items`: sorted.  Kept when they come a second time: strings
  // that are made anew for each call never do.
  void remember(const DictItem* before, const DictItem* items, size_t count) {
    if (count > kMostKeys) return;
    const uint64_t hash = hash_of(before, count);
    Entry& entry = entries_[hash >> 56];
    if (entry.seen != hash) {
      entry.seen = hash;
      return;
    }
    Entry fresh;
    fresh.seen = hash;
    std::unordered_map<PyObject*, uint16_t> places;
    bool moved = false;
    for (size_t i = 0; i < count; ++i) {
      fresh.keys.push_back(PyRef::borrow(before[i].key).release());
      places[before[i].key] = static_cast<uint16_t>(i);
      moved |= before[i].key != items[i].key;
    }
    for (size_t i = 0; i < count && moved; ++i) fresh.order.push_back(places[items[i].key]);
    std::swap(entry, fresh);
    for (PyObject* key : fresh.keys) Py_DECREF(key);  // strings: no code of anybody runs
  }

  void clear() {
    for (Entry& entry : entries_) {
      Entry old;
      std::swap(entry, old);
      for (PyObject* key : old.keys) Py_DECREF(key);
    }
  }

 private:
  static constexpr size_t kEntries = 256, kMostKeys = 512;
  struct Entry {
    std::vector<PyObject*> keys;   // held, so that no other string gets their address
    std::vector<uint16_t> order;  // sorted[i] = items[order[i]]; empty: they came sorted
    uint64_t seen = 0;             // hash of the keys that came last, kept or not
  };

  static uint64_t hash_of(const DictItem* items, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; ++i) {
      hash = (hash ^ reinterpret_cast<uintptr_t>(items[i].key) >> 4) * 0x9e3779b97f4a7c15;
    }
    return hash;
  }

  Entry entries_[kEntries];
};

KnownOrders& known_orders() {
  static auto* instance = new KnownOrders;
  return *instance;
}

}  // namespace

void forget_key_orders() { known_orders().clear(); }

int sort_dict_items(DictItem* items, size_t count) {
  if (count < 2 || known_orders().apply(items, count)) return 0;
  bool strings = true, sorted = true;
  for (size_t i = 0; i < count && strings; ++i) {
    strings = PyUnicode_CheckExact(items[i].key);
    if (strings && i > 0 && sorted) sorted = PyUnicode_Compare(items[i - 1].key, items[i].key) < 0;
  }
  if (strings) {
    SmallVector<DictItem, 64> before;
    for (size_t i = 0; i < count; ++i) before.push_back(items[i]);
    if (!sorted) sort_strings(items, count);
    known_orders().remember(before.data(), items, count);
    return 0;
  }
  PyRef keys = PyRef::steal(PyList_New(static_cast<Py_ssize_t>(count)));
  PyRef values = PyRef::steal(PyDict_New());
  if (!keys || !values) return -1;
  for (size_t i = 0; i < count; ++i) {
    Py_INCREF(items[i].key);
    PyList_SET_ITEM(keys.get(), static_cast<Py_ssize_t>(i), items[i].key);
    if (PyDict_SetItem(values.get(), items[i].key, items[i].value) < 0) return -1;
  }
  if (sort_keys(keys.get()) < 0) return -1;
  for (size_t i = 0; i < count; ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), static_cast<Py_ssize_t>(i));
    PyObject* value = PyDict_GetItemWithError(values.get(), key);
    if (!value) {
      if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
      return -1;
    }
    items[i] = {key, value};
  }
  return 0;
}

int node_children(PyObject* object, NodeKind kind, const Registration* registration, Holders& children,
                  PyObject** data) {
  *data = nullptr;
  switch (kind) {
    case NodeKind::Leaf:
    case NodeKind::None:
      return 0;
    case NodeKind::Tuple:
    case NodeKind::NamedTuple:
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) children.borrow(PyTuple_GET_ITEM(object, i));
      if (kind == NodeKind::NamedTuple)
        *data = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object))).release();
      return 0;
    case NodeKind::List:
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) children.borrow(PyList_GET_ITEM(object, i));
      return 0;
    case NodeKind::Dict:
      return dict_children(object, true, children, data);
    case NodeKind::OrderedDict:
      return dict_children(object, false, children, data);
    case NodeKind::DefaultDict: {
      PyObject* keys = nullptr;
      if (dict_children(object, true, children, &keys) < 0) return -1;
      PyRef owned = PyRef::steal(keys);
      PyRef factory = PyRef::steal(PyObject_GetAttr(object, default_factory_name));
      if (!factory) return -1;
      *data = PyTuple_Pack(2, factory.get(), keys);
      return *data ? 0 : -1;
    }
    case NodeKind::Dataclass:
      return dataclass_children(object, registration, children, data);
    case NodeKind::Custom:
      return custom_children(object, registration, children, data);
  }
  return 0;
}

PyObject* build_node(const Node& node, PyObject* const* children) {
  switch (node.kind) {
    case NodeKind::Leaf:
      return PyRef::borrow(children[0]).release();
    case NodeKind::None:
      return PyRef::borrow(Py_None).release();
    case NodeKind::Tuple:
      return make_tuple(children, node.arity);
    case NodeKind::List: {
      PyObject* list = PyList_New(node.arity);
      if (!list) return nullptr;
      for (int32_t i = 0; i < node.arity; ++i) {
        Py_INCREF(children[i]);
        PyList_SET_ITEM(list, i, children[i]);
      }
      return list;
    }
    case NodeKind::Dict:
      return build_dict(node.data, children);
    case NodeKind::NamedTuple:
      return PyObject_Vectorcall(node.data, children, static_cast<size_t>(node.arity), nullptr);
    case NodeKind::OrderedDict: {
      PyRef result = PyRef::steal(PyObject_CallNoArgs(node.registration->type));
      if (!result) return nullptr;
      for (int32_t i = 0; i < node.arity; ++i) {
        if (PyObject_SetItem(result.get(), PyTuple_GET_ITEM(node.data, i), children[i]) < 0) return nullptr;
      }
      return result.release();
    }
    case NodeKind::DefaultDict: {
      PyRef dict = PyRef::steal(build_dict(PyTuple_GET_ITEM(node.data, 1), children));
      return dict ? call2(node.registration->type, PyTuple_GET_ITEM(node.data, 0), dict.get()) : nullptr;
    }
    case NodeKind::Dataclass:
      return build_dataclass(node, children);
    case NodeKind::Custom: {
      PyRef tuple = PyRef::steal(make_tuple(children, node.arity));
      return tuple ? call2(node.registration->from_iterable, node.data, tuple.get()) : nullptr;
    }
  }
  return nullptr;
}

int add_pytree_registry(PyObject* module) {
  fields_name = PyUnicode_InternFromString("_fields");
  default_factory_name = PyUnicode_InternFromString("default_factory");
  PyRef collections = PyRef::steal(PyImport_ImportModule("collections"));
  if (!fields_name || !default_factory_name || !collections) return -1;
  PyRef ordered = PyRef::steal(PyObject_GetAttrString(collections.get(), "OrderedDict"));
  PyRef with_default = PyRef::steal(PyObject_GetAttrString(collections.get(), "defaultdict"));
  if (!ordered || !with_default) return -1;
  if (add_registration({ordered.get(), NodeKind::OrderedDict, nullptr, nullptr, nullptr, nullptr}) < 0 ||
      add_registration({with_default.get(), NodeKind::DefaultDict, nullptr, nullptr, nullptr, nullptr}) < 0)
    return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace jato::bind
