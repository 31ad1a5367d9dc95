// The Python face of TreeDef.
#include <cctype>

#include "pytree.h"

namespace jato::bind {

namespace {

TreeDef* as_tree(PyObject* object) { return reinterpret_cast<TreeDef*>(object); }
PyObject* as_object(TreeDef* tree) { return reinterpret_cast<PyObject*>(tree); }

std::string text_of(PyObject* object, bool as_repr) {
  PyRef text = PyRef::steal(as_repr ? PyObject_Repr(object) : PyObject_Str(object));
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!characters) {
    PyErr_Clear();
    return "?";
  }
  return characters;
}

std::string class_name(PyObject* type) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(type, "__name__"));
  return name ? text_of(name.get(), false) : std::string("?");
}

void describe_node(const Node*& next, std::string& text);

void describe_children(const Node& node, const Node*& next, std::string& text) {
  for (int32_t i = 0; i < node.arity; ++i) {
    if (i) text += ", ";
    describe_node(next, text);
  }
}

void describe_node(const Node*& next, std::string& text) {
  const Node& node = *next++;
  switch (node.kind) {
    case NodeKind::Leaf:
      text += "*";
      return;
    case NodeKind::None:
      text += "None";
      return;
    case NodeKind::Tuple:
      text += "(";
      describe_children(node, next, text);
      text += node.arity == 1 ? ",)" : ")";
      return;
    case NodeKind::List:
      text += "[";
      describe_children(node, next, text);
      text += "]";
      return;
    case NodeKind::Dict:
      text += "{";
      for (int32_t i = 0; i < node.arity; ++i) {
        text += (i ? ", " : "") + text_of(PyTuple_GET_ITEM(node.data, i), true) + ": ";
        describe_node(next, text);
      }
      text += "}";
      return;
    case NodeKind::NamedTuple:
      text += "CustomNode(namedtuple[" + class_name(node.data) + "], [";
      break;
    default:
      text += "CustomNode(" + class_name(node.registration->type) + "[" + text_of(node.data, false) + "], [";
  }
  describe_children(node, next, text);
  text += "])";
}

const char* kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::None:
      return "None";
    case NodeKind::Tuple:
      return "tuple";
    case NodeKind::List:
      return "list";
    case NodeKind::Dict:
      return "dict";
    case NodeKind::NamedTuple:
      return "named tuple";
    default:
      return "custom node";
  }
}

// Sets a ValueError for a structure that does not match.
int mismatch(const Node& node, PyObject* object, NodeKind kind) {
  if (node.registration) {
    PyErr_Format(PyExc_ValueError, "Custom node type mismatch: expected type: %R, value: %R.",
                 node.registration->type, object);
  } else if (node.kind == NodeKind::None) {
    PyErr_Format(
        PyExc_ValueError,
        "Expected None, got %R.\n\nNone is a container without leaves. To treat None as a leaf, pass "
        "is_leaf=lambda x: x is None.",
        object);
  } else if (node.kind == NodeKind::NamedTuple && kind == NodeKind::NamedTuple) {
    PyErr_Format(PyExc_ValueError, "Named tuple type mismatch: expected type: %R, tuple: %R.", node.data,
                 object);
  } else {
    PyErr_Format(PyExc_ValueError, "Expected %s, got %R.", kind_name(node.kind), object);
  }
  return -1;
}

int check_data(const Node& node, PyObject* data, PyObject* object) {
  if (!node.data || node.data == data) return 0;
  int equal = PyObject_RichCompareBool(node.data, data, Py_EQ);
  if (equal != 0) return equal < 0 ? -1 : 0;
  switch (node.kind) {
    case NodeKind::Dict: {
      PyRef expected = PyRef::steal(PySequence_List(node.data)),
            present = PyRef::steal(PySequence_List(data));
      if (expected && present)
        PyErr_Format(PyExc_ValueError, "Dict key mismatch; expected keys: %R; present keys: %R.",
                     expected.get(), present.get());
      return -1;
    }
    case NodeKind::NamedTuple:
      return mismatch(node, object, NodeKind::NamedTuple);
    default:
      PyErr_Format(PyExc_ValueError, "Mismatch custom node data: expected %R, got %R; value: %R.", node.data,
                   data, object);
      return -1;
  }
}

int flatten_up_to_node(const Node*& next, PyObject* object, PyObject* leaves) {
  const Node& node = *next++;
  if (node.kind == NodeKind::Leaf) return PyList_Append(leaves, object);
  const Registration* registration = nullptr;
  NodeKind kind = classify(object, &registration);
  if (kind != node.kind || registration != node.registration) return mismatch(node, object, kind);
  Holders children;
  PyObject* data = nullptr;
  if (node_children(object, kind, registration, children, &data) < 0) return -1;
  PyRef owned = PyRef::steal(data);
  if (check_data(node, data, object) < 0) return -1;
  if (children.size() != static_cast<size_t>(node.arity)) {
    std::string name = kind_name(kind);
    name[0] = static_cast<char>(std::toupper(name[0]));
    PyErr_Format(PyExc_ValueError, "%s arity mismatch: %zd != %d; %s: %R.", name.c_str(),
                 static_cast<Py_ssize_t>(children.size()), static_cast<int>(node.arity), kind_name(kind),
                 object);
    return -1;
  }
  if (Py_EnterRecursiveCall(" while flattening a pytree")) return -1;
  int status = 0;
  for (size_t i = 0; i < children.size() && status == 0; ++i)
    status = flatten_up_to_node(next, children[i], leaves);
  Py_LeaveRecursiveCall();
  return status;
}

PyObject* flatten_up_to(PyObject* self, PyObject* object) {
  PyRef leaves = PyRef::steal(PyList_New(0));
  const Node* next = as_tree(self)->nodes.data();
  if (!leaves || flatten_up_to_node(next, object, leaves.get()) < 0) return nullptr;
  return leaves.release();
}

PyObject* unflatten_method(PyObject* self, PyObject* iterable) {
  PyRef items = PyRef::steal(PySequence_Fast(iterable, "unflatten: expected an iterable of leaves"));
  if (!items) return nullptr;
  Py_ssize_t expected = as_tree(self)->nodes[0].num_leaves, count = PySequence_Fast_GET_SIZE(items.get());
  if (count < expected) {
    PyErr_Format(PyExc_ValueError, "Too few leaves for PyTreeDef; expected %zd, got %zd", expected, count);
    return nullptr;
  }
  if (count > expected) {
    PyErr_Format(PyExc_ValueError, "Too many leaves for PyTreeDef; expected %zd, got %zd.", expected, count);
    return nullptr;
  }
  // A list may change while a custom node is rebuilt: hold what is used.
  Holders leaves;
  for (Py_ssize_t i = 0; i < count; ++i) leaves.borrow(PySequence_Fast_GET_ITEM(items.get(), i));
  SmallVector<PyObject*, 64> row;
  for (size_t i = 0; i < leaves.size(); ++i) row.push_back(leaves[i]);
  return unflatten(as_tree(self), row.data());
}

TreeDef* subtree(const Node* root) {
  std::vector<Node> nodes;
  append_nodes(nodes, root, root + root->num_nodes);
  return intern_tree(std::move(nodes));
}

PyObject* children(PyObject* self, PyObject*) {
  const std::vector<Node>& nodes = as_tree(self)->nodes;
  PyRef list = PyRef::steal(PyList_New(0));
  if (!list) return nullptr;
  for (size_t at = 1; at < nodes.size(); at += static_cast<size_t>(nodes[at].num_nodes)) {
    PyRef child = PyRef::steal(as_object(subtree(&nodes[at])));
    if (!child || PyList_Append(list.get(), child.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* node_type(const Node& node) {
  switch (node.kind) {
    case NodeKind::None:
      return reinterpret_cast<PyObject*>(Py_TYPE(Py_None));
    case NodeKind::Tuple:
      return reinterpret_cast<PyObject*>(&PyTuple_Type);
    case NodeKind::List:
      return reinterpret_cast<PyObject*>(&PyList_Type);
    case NodeKind::Dict:
      return reinterpret_cast<PyObject*>(&PyDict_Type);
    case NodeKind::NamedTuple:
      return node.data;
    default:
      return node.registration->type;
  }
}

PyObject* node_data(PyObject* self, PyObject*) {
  const Node& node = as_tree(self)->nodes[0];
  if (node.kind == NodeKind::Leaf) Py_RETURN_NONE;
  if (node.kind == NodeKind::Dict) {
    PyRef keys = PyRef::steal(PySequence_List(node.data));
    return keys ? PyTuple_Pack(2, node_type(node), keys.get()) : nullptr;
  }
  PyObject* data = node.kind == NodeKind::NamedTuple || !node.data ? Py_None : node.data;
  return PyTuple_Pack(2, node_type(node), data);
}

PyObject* compose(PyObject* self, PyObject* other) {
  if (!is_tree_def(other)) {
    PyErr_Format(PyExc_TypeError, "compose: expected a PyTreeDef, got %s", Py_TYPE(other)->tp_name);
    return nullptr;
  }
  const std::vector<Node>& outer = as_tree(self)->nodes;
  const std::vector<Node>& inner = as_tree(other)->nodes;
  std::vector<Node> nodes;
  for (const Node& node : outer) {
    if (node.kind == NodeKind::Leaf)
      append_nodes(nodes, inner.data(), inner.data() + inner.size());
    else {
      append_nodes(nodes, &node, &node + 1);
      // Replacing l leaves by trees of n nodes adds l * (n - 1) nodes.
      nodes.back().num_nodes += node.num_leaves * (static_cast<int32_t>(inner.size()) - 1);
      nodes.back().num_leaves *= inner[0].num_leaves;
    }
  }
  return as_object(intern_tree(std::move(nodes)));
}

// (kind, arity, data, class or None) of each node.
PyObject* reduce(PyObject* self, PyObject*) {
  const std::vector<Node>& nodes = as_tree(self)->nodes;
  PyRef state = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(nodes.size())));
  if (!state) return nullptr;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    PyObject* item =
        Py_BuildValue("(iiOO)", static_cast<int>(node.kind), static_cast<int>(node.arity),
                      node.data ? node.data : Py_None, node.registration ? node.registration->type : Py_None);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(state.get(), static_cast<Py_ssize_t>(i), item);
  }
  PyRef module = PyRef::steal(PyImport_ImportModule("jato._native"));
  PyRef maker = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "treedef_from_state")) : PyRef();
  return maker ? Py_BuildValue("O(O)", maker.get(), state.get()) : nullptr;
}

// Fills in the sizes of the subtree that begins at `at`; returns its end, 0 when the state is damaged.
size_t measure(std::vector<Node>& nodes, size_t at) {
  if (at >= nodes.size()) return 0;
  size_t next = at + 1;
  int32_t leaves = nodes[at].kind == NodeKind::Leaf ? 1 : 0;
  for (int32_t i = 0; i < nodes[at].arity; ++i) {
    size_t child = next;
    next = measure(nodes, child);
    if (!next) return 0;
    leaves += nodes[child].num_leaves;
  }
  nodes[at].num_nodes = static_cast<int32_t>(next - at);
  nodes[at].num_leaves = leaves;
  return next;
}

bool has_data(NodeKind kind) { return kind >= NodeKind::Dict; }

PyObject* treedef_from_state(PyObject*, PyObject* state) {
  if (!PyTuple_Check(state)) {
    PyErr_SetString(PyExc_TypeError, "treedef_from_state: expected a tuple");
    return nullptr;
  }
  std::vector<Node> nodes;
  auto fail = [&]() -> PyObject* {
    release_nodes(nodes);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "treedef_from_state: damaged state");
    return nullptr;
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(state); ++i) {
    int kind, arity;
    PyObject *data, *type;
    if (!PyTuple_Check(PyTuple_GET_ITEM(state, i)) ||
        !PyArg_ParseTuple(PyTuple_GET_ITEM(state, i), "iiOO", &kind, &arity, &data, &type))
      return fail();
    if (kind < 0 || kind > static_cast<int>(NodeKind::Custom) || arity < 0) return fail();
    Node node{static_cast<NodeKind>(kind), arity, 0, 0, nullptr, nullptr};
    if (type != Py_None && !(node.registration = find_registration(type))) {
      PyErr_Format(PyExc_ValueError, "%R is not registered as a pytree node in this process", type);
      return fail();
    }
    if (has_data(node.kind)) node.data = PyRef::borrow(data).release();
    nodes.push_back(node);
  }
  if (nodes.empty() || measure(nodes, 0) != nodes.size()) return fail();
  return as_object(intern_tree(std::move(nodes)));
}

PyObject* make_treedef(PyObject*, PyObject* args) {
  PyObject *data, *iterable;
  if (!PyArg_ParseTuple(args, "OO:make_treedef", &data, &iterable)) return nullptr;
  PyRef items = PyRef::steal(PySequence_Fast(iterable, "make_treedef: expected an iterable of PyTreeDefs"));
  if (!items) return nullptr;
  Node root{NodeKind::Leaf, 0, 1, 1, nullptr, nullptr};
  PyRef node_payload;
  if (data != Py_None) {
    PyObject *type, *payload;
    if (!PyTuple_Check(data) || !PyArg_ParseTuple(data, "OO", &type, &payload)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "make_treedef: expected (class, data) or None");
      return nullptr;
    }
    if (type == reinterpret_cast<PyObject*>(Py_TYPE(Py_None)))
      root.kind = NodeKind::None;
    else if (type == reinterpret_cast<PyObject*>(&PyTuple_Type))
      root.kind = NodeKind::Tuple;
    else if (type == reinterpret_cast<PyObject*>(&PyList_Type))
      root.kind = NodeKind::List;
    else if (type == reinterpret_cast<PyObject*>(&PyDict_Type)) {
      root.kind = NodeKind::Dict;
      node_payload = PyRef::steal(PySequence_Tuple(payload));
      if (!node_payload) return nullptr;
    } else if ((root.registration = find_registration(type))) {
      root.kind = root.registration->kind;
      node_payload = PyRef::borrow(payload);
    } else {
      root.kind = NodeKind::NamedTuple;
      node_payload = PyRef::borrow(type);
    }
  }
  std::vector<Node> nodes;
  root.arity = static_cast<int32_t>(PySequence_Fast_GET_SIZE(items.get()));
  root.data = node_payload.release();
  nodes.push_back(root);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* child = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_tree_def(child) || root.kind == NodeKind::Leaf) {
      release_nodes(nodes);
      PyErr_Format(PyExc_TypeError, "expected PyTreeDefs as children of a node, got %s",
                   Py_TYPE(child)->tp_name);
      return nullptr;
    }
    const std::vector<Node>& added = as_tree(child)->nodes;
    append_nodes(nodes, added.data(), added.data() + added.size());
  }
  if (root.kind != NodeKind::Leaf) close_node(nodes, 0);
  return as_object(intern_tree(std::move(nodes)));
}

PyObject* treedef_tuple(PyObject*, PyObject* iterable) {
  PyRef args = PyRef::steal(Py_BuildValue("((OO)O)", &PyTuple_Type, Py_None, iterable));
  return args ? make_treedef(nullptr, args.get()) : nullptr;
}

PyObject* tree_flatten(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || count > 2) {
    PyErr_Format(PyExc_TypeError, "tree_flatten: expected (tree, is_leaf=None), got %zd arguments", count);
    return nullptr;
  }
  PyRef leaves = PyRef::steal(PyList_New(0));
  if (!leaves) return nullptr;
  PyObject* is_leaf = count == 2 && args[1] != Py_None ? args[1] : nullptr;
  PyRef tree = PyRef::steal(as_object(flatten_tree(args[0], is_leaf, leaves.get())));
  return tree ? PyTuple_Pack(2, leaves.get(), tree.get()) : nullptr;
}

PyObject* flatten_static(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return tree_flatten(nullptr, args, count);
}

PyObject* get_num_leaves(PyObject* self, void*) {
  return PyLong_FromLong(as_tree(self)->nodes[0].num_leaves);
}
PyObject* get_num_nodes(PyObject* self, void*) { return PyLong_FromLong(as_tree(self)->nodes[0].num_nodes); }

int same_tree(const TreeDef* a, const TreeDef* b) {
  if (a == b) return 1;
  if (a->nodes.size() != b->nodes.size()) return 0;
  for (size_t i = 0; i < a->nodes.size(); ++i) {
    const Node &x = a->nodes[i], &y = b->nodes[i];
    if (x.kind != y.kind || x.arity != y.arity || x.registration != y.registration) return 0;
    if (x.data == y.data) continue;
    int equal = PyObject_RichCompareBool(x.data, y.data, Py_EQ);
    if (equal <= 0) return equal;
  }
  return 1;
}

}  // namespace

std::string describe_tree(const TreeDef* tree) {
  std::string text = "PyTreeDef(";
  const Node* next = tree->nodes.data();
  describe_node(next, text);
  return text + ")";
}

PyObject* tree_def_repr(PyObject* self) {
  std::string text = describe_tree(as_tree(self));
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* tree_def_compare(PyObject* self, PyObject* other, int operation) {
  if (!is_tree_def(other) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  int same = same_tree(as_tree(self), as_tree(other));
  return same < 0 ? nullptr : PyBool_FromLong((same != 0) == (operation == Py_EQ));
}

Py_hash_t tree_def_hash(PyObject* self) {
  uint64_t hash = 0x9E3779B97F4A7C15ull;
  for (const Node& node : as_tree(self)->nodes) {
    hash = mix(hash, static_cast<uint64_t>(node.kind) | static_cast<uint64_t>(node.arity) << 8);
    if (!node.data) continue;
    Py_hash_t data = PyObject_Hash(node.data);
    if (data == -1) return -1;
    hash = mix(hash, static_cast<uint64_t>(data));
  }
  Py_hash_t result = static_cast<Py_hash_t>(hash);
  return result == -1 ? -2 : result;
}

PyGetSetDef tree_def_getset[] = {
    {"num_leaves", get_num_leaves, nullptr, "number of leaves", nullptr},
    {"num_nodes", get_num_nodes, nullptr, "number of nodes, leaves included", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tree_def_methods[] = {
    {"flatten", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(flatten_static)),
     METH_FASTCALL | METH_STATIC, "flatten(tree, is_leaf=None) -> (leaves, treedef)"},
    {"unflatten", unflatten_method, METH_O,
     "unflatten(leaves) -> tree; ValueError for another number of leaves"},
    {"flatten_up_to", flatten_up_to, METH_O,
     "flatten_up_to(tree) -> list: the subtrees of `tree` at this structure's leaves; ValueError if it does "
     "not fit"},
    {"children", children, METH_NOARGS, "children() -> list of PyTreeDef"},
    {"node_data", node_data, METH_NOARGS, "node_data() -> (class, data) of the root, None for a leaf"},
    {"compose", compose, METH_O,
     "compose(inner) -> PyTreeDef: this structure with each leaf replaced by `inner`"},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef pytree_functions[] = {
    {"tree_flatten", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tree_flatten)), METH_FASTCALL,
     "tree_flatten(tree, is_leaf=None) -> (leaves, treedef)"},
    {"treedef_tuple", treedef_tuple, METH_O, "treedef_tuple(treedefs) -> PyTreeDef of a tuple of them"},
    {"make_treedef", make_treedef, METH_VARARGS,
     "make_treedef(node_data, children) -> PyTreeDef: the inverse of node_data() and children()"},
    {"treedef_from_state", treedef_from_state, METH_O, "rebuilds a pickled PyTreeDef"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace jato::bind
