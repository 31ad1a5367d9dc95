// CallSignature: what the cold path is told about a call, so that it need not flatten again.
#include <algorithm>

#include "dispatch.h"

namespace jato::bind {

PyTypeObject* call_signature_class = nullptr;

namespace {

struct CallSignature {
  PyObject_HEAD PyObject* leaves;
  PyObject* leaf_types;
  PyObject* leaf_arguments;
  PyObject* donated;
  PyObject* odd;
  PyObject* statics;
  PyObject* arguments;
  PyObject* argument_trees;
  PyObject* in_tree;
};

void call_signature_dealloc(PyObject* self) {
  CallSignature* info = reinterpret_cast<CallSignature*>(self);
  for (PyObject* object : {info->leaves, info->leaf_types, info->leaf_arguments, info->donated, info->odd,
                           info->statics, info->arguments, info->argument_trees, info->in_tree})
    Py_XDECREF(object);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"leaves", T_OBJECT, offsetof(CallSignature, leaves), READONLY,
     "list of the dynamic leaves, in flattening order"},
    {"leaf_types", T_OBJECT, offsetof(CallSignature, leaf_types), READONLY,
     "list of their ArrayTypes; None for a leaf that is no array or number"},
    {"leaf_arguments", T_OBJECT, offsetof(CallSignature, leaf_arguments), READONLY,
     "list: for each leaf, the position (int) or name (str) of its argument"},
    {"donated", T_OBJECT, offsetof(CallSignature, donated), READONLY,
     "tuple: positions of the donated leaves"},
    {"odd", T_OBJECT, offsetof(CallSignature, odd), READONLY,
     "tuple: positions of leaves that are no arrays or numbers; such a call is never cached"},
    {"statics", T_OBJECT, offsetof(CallSignature, statics), READONLY, "tuple of (position or name, value)"},
    {"arguments", T_OBJECT, offsetof(CallSignature, arguments), READONLY,
     "tuple: position or name of each argument, keywords sorted"},
    {"argument_trees", T_OBJECT, offsetof(CallSignature, argument_trees), READONLY,
     "tuple: PyTreeDef of each argument, None for static ones"},
    {"in_tree", T_OBJECT, offsetof(CallSignature, in_tree), READONLY,
     "PyTreeDef of (tuple of dynamic positional arguments, dict of dynamic keyword arguments)"},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(call_signature_dealloc)},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("What a JitFunction tells its cold path about a call.")},
    {0, nullptr},
};

PyType_Spec spec = {"jato._native.CallSignature", sizeof(CallSignature), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// Collects the parts while the arguments are walked.
struct Walk {
  PyRef leaf_arguments = PyRef::steal(PyList_New(0));
  PyRef donated = PyRef::steal(PyList_New(0));
  PyRef statics = PyRef::steal(PyList_New(0));
  PyRef arguments = PyRef::steal(PyList_New(0));
  PyRef trees = PyRef::steal(PyList_New(0));
  PyRef positional = PyRef::steal(PyList_New(0));  // trees of the dynamic arguments
  PyRef keywords = PyRef::steal(PyDict_New());     // name -> tree
  Py_ssize_t next_leaf = 0;

  bool valid() const {
    return leaf_arguments && donated && statics && arguments && trees && positional && keywords;
  }

  int add(PyObject* key, PyObject* value, bool is_static, bool is_donated, bool is_keyword) {
    if (PyList_Append(arguments.get(), key) < 0) return -1;
    if (is_static) {
      PyRef pair = PyRef::steal(PyTuple_Pack(2, key, value));
      if (!pair || PyList_Append(statics.get(), pair.get()) < 0) return -1;
      return PyList_Append(trees.get(), Py_None);
    }
    PyRef own_leaves = PyRef::steal(PyList_New(0));
    if (!own_leaves) return -1;
    PyRef tree = PyRef::steal(reinterpret_cast<PyObject*>(flatten_tree(value, nullptr, own_leaves.get())));
    if (!tree || PyList_Append(trees.get(), tree.get()) < 0) return -1;
    if ((is_keyword ? PyDict_SetItem(keywords.get(), key, tree.get())
                    : PyList_Append(positional.get(), tree.get())) < 0)
      return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(own_leaves.get()); ++i, ++next_leaf) {
      if (PyList_Append(leaf_arguments.get(), key) < 0) return -1;
      if (!is_donated) continue;
      PyRef position = PyRef::steal(PyLong_FromSsize_t(next_leaf));
      if (!position || PyList_Append(donated.get(), position.get()) < 0) return -1;
    }
    return 0;
  }
};

TreeDef* as_tree(PyObject* object) { return reinterpret_cast<TreeDef*>(object); }

// The tree of (tuple of trees, dict of trees).
TreeDef* whole_tree(PyObject* positional, PyObject* keywords) {
  std::vector<Node> nodes;
  nodes.push_back({NodeKind::Tuple, 2, 0, 0, nullptr, nullptr});
  size_t at = nodes.size();
  nodes.push_back(
      {NodeKind::Tuple, static_cast<int32_t>(PyList_GET_SIZE(positional)), 0, 0, nullptr, nullptr});
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(positional); ++i) {
    const std::vector<Node>& added = as_tree(PyList_GET_ITEM(positional, i))->nodes;
    append_nodes(nodes, added.data(), added.data() + added.size());
  }
  close_node(nodes, at);
  at = nodes.size();
  PyObject* keys = PySequence_Tuple(keywords);
  if (!keys) {
    release_nodes(nodes);
    return nullptr;
  }
  nodes.push_back({NodeKind::Dict, static_cast<int32_t>(PyTuple_GET_SIZE(keys)), 0, 0, keys, nullptr});
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    const std::vector<Node>& added =
        as_tree(PyDict_GetItemWithError(keywords, PyTuple_GET_ITEM(keys, i)))->nodes;
    append_nodes(nodes, added.data(), added.data() + added.size());
  }
  close_node(nodes, at);
  close_node(nodes, 0);
  return intern_tree(std::move(nodes));
}

}  // namespace

PyObject* new_call_signature(JitFunction* function, PyObject* const* args, Py_ssize_t num_args,
                             PyObject* keyword_names, const int* keyword_order, Signature& signature) {
  Walk walk;
  if (!walk.valid()) return nullptr;
  for (Py_ssize_t i = 0; i < num_args; ++i) {
    PyRef position = PyRef::steal(PyLong_FromSsize_t(i));
    if (!position ||
        walk.add(position.get(), args[i], is_static_position(function->static_positions, i, num_args),
                 is_static_position(function->donate_positions, i, num_args), false) < 0)
      return nullptr;
  }
  Py_ssize_t num_keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < num_keywords; ++k) {
    PyObject* key = PyTuple_GET_ITEM(keyword_names, keyword_order[k]);
    if (walk.add(key, args[num_args + keyword_order[k]], is_named(function->static_argnames, key),
                 is_named(function->donate_argnames, key), true) < 0)
      return nullptr;
  }
  if (walk.next_leaf != static_cast<Py_ssize_t>(signature.leaves.size())) {
    PyErr_SetString(PyExc_RuntimeError,
                    "a container among the arguments gave different children when it was flattened again");
    return nullptr;
  }
  PyRef leaves = PyRef::steal(PyList_New(walk.next_leaf)), types = PyRef::steal(PyList_New(walk.next_leaf));
  PyRef odd = PyRef::steal(PyList_New(0));
  if (!leaves || !types || !odd) return nullptr;
  for (Py_ssize_t i = 0; i < walk.next_leaf; ++i) {
    const Leaf& leaf = signature.leaves[static_cast<size_t>(i)];
    PyList_SET_ITEM(leaves.get(), i, PyRef::borrow(leaf.object).release());
    PyObject* type = leaf.type ? reinterpret_cast<PyObject*>(leaf.type) : Py_None;
    PyList_SET_ITEM(types.get(), i, PyRef::borrow(type).release());
    if (leaf.type) continue;
    PyRef position = PyRef::steal(PyLong_FromSsize_t(i));
    if (!position || PyList_Append(odd.get(), position.get()) < 0) return nullptr;
  }
  PyRef in_tree =
      PyRef::steal(reinterpret_cast<PyObject*>(whole_tree(walk.positional.get(), walk.keywords.get())));
  PyRef donated = PyRef::steal(PyList_AsTuple(walk.donated.get())),
        statics = PyRef::steal(PyList_AsTuple(walk.statics.get()));
  PyRef arguments = PyRef::steal(PyList_AsTuple(walk.arguments.get())),
        trees = PyRef::steal(PyList_AsTuple(walk.trees.get()));
  PyRef odd_tuple = PyRef::steal(PyList_AsTuple(odd.get()));
  if (!in_tree || !donated || !statics || !arguments || !trees || !odd_tuple) return nullptr;
  CallSignature* info =
      reinterpret_cast<CallSignature*>(call_signature_class->tp_alloc(call_signature_class, 0));
  if (!info) return nullptr;
  info->leaves = leaves.release();
  info->leaf_types = types.release();
  info->leaf_arguments = walk.leaf_arguments.release();
  info->donated = donated.release();
  info->odd = odd_tuple.release();
  info->statics = statics.release();
  info->arguments = arguments.release();
  info->argument_trees = trees.release();
  info->in_tree = in_tree.release();
  return reinterpret_cast<PyObject*>(info);
}

int add_call_signature(PyObject* module) {
  call_signature_class = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!call_signature_class) return -1;
  return PyModule_AddObjectRef(module, "CallSignature", reinterpret_cast<PyObject*>(call_signature_class));
}

}  // namespace jato::bind
