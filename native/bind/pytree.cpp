// TreeDef: flatten, unflatten and the table of interned trees.
#include "pytree.h"

#include <new>

namespace jato::bind {

PyTypeObject* tree_def_type = nullptr;

namespace {

// Equal in the narrow sense under which two trees may become one object: nothing that a user could
// tell apart (1 and True are equal for Python) is ever merged.
bool same_data(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b)) return PyUnicode_Compare(a, b) == 0;
  if (PyTuple_CheckExact(a) && PyTuple_CheckExact(b)) {
    Py_ssize_t size = PyTuple_GET_SIZE(a);
    if (size != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!same_data(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    }
    return true;
  }
  return false;
}

uint64_t hash_data(uint64_t hash, PyObject* data) {
  if (!data) return hash;
  if (PyUnicode_CheckExact(data)) return mix(hash, static_cast<uint64_t>(PyObject_Hash(data)));
  if (PyTuple_CheckExact(data)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(data); ++i) hash = hash_data(hash, PyTuple_GET_ITEM(data, i));
    return hash;
  }
  return mix(hash, reinterpret_cast<uintptr_t>(data));
}

bool same_nodes(const std::vector<Node>& a, const std::vector<Node>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind != b[i].kind || a[i].arity != b[i].arity || a[i].registration != b[i].registration ||
        !same_data(a[i].data, b[i].data))
      return false;
  }
  return true;
}

struct InternTable {
  std::vector<TreeDef*> buckets = std::vector<TreeDef*>(256, nullptr);
  size_t count = 0;
  TreeDef*& bucket(uint64_t hash) { return buckets[hash & (buckets.size() - 1)]; }
  void link(TreeDef* tree) {
    TreeDef*& head = bucket(tree->hash);
    tree->next = head;
    head = tree;
  }
  void insert(TreeDef* tree) {
    if (++count > buckets.size()) {
      std::vector<TreeDef*> old(buckets.size() * 2, nullptr);
      old.swap(buckets);
      for (TreeDef* item : old) {
        while (item) {
          TreeDef* next = item->next;
          link(item);
          item = next;
        }
      }
    }
    link(tree);
  }
  void erase(TreeDef* tree) {
    TreeDef** place = &bucket(tree->hash);
    while (*place && *place != tree) place = &(*place)->next;
    if (!*place) return;
    *place = tree->next;
    --count;
  }
};

InternTable& table() {
  static InternTable* instance = new InternTable;
  return *instance;
}

int tree_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const Node& node : reinterpret_cast<TreeDef*>(self)->nodes) Py_VISIT(node.data);
  return 0;
}

// A cleared tree is an empty one: it may not be found again.
int tree_clear(PyObject* self) {
  TreeDef* tree = reinterpret_cast<TreeDef*>(self);
  table().erase(tree);
  std::vector<Node> nodes = std::move(tree->nodes);
  tree->nodes.clear();
  release_nodes(nodes);
  return 0;
}

void tree_dealloc(PyObject* self) {
  TreeDef* tree = reinterpret_cast<TreeDef*>(self);
  PyObject_GC_UnTrack(self);
  tree_clear(self);  // first leaves the table: a callback of a weak reference must not find it there
  if (tree->weakrefs) PyObject_ClearWeakRefs(self);
  tree->nodes.~vector();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int flatten_node(PyObject* object, PyObject* is_leaf, std::vector<Node>& nodes, PyObject* leaves) {
  const Registration* registration = nullptr;
  NodeKind kind = NodeKind::Leaf;
  bool stop = false;
  if (is_leaf) {
    PyRef answer = PyRef::steal(call1(is_leaf, object));
    if (!answer) return -1;
    int truth = PyObject_IsTrue(answer.get());
    if (truth < 0) return -1;
    stop = truth != 0;
  }
  if (!stop) kind = classify(object, &registration);
  size_t at = nodes.size();
  nodes.push_back({kind, 0, 0, 1, nullptr, kind == NodeKind::Leaf ? nullptr : registration});
  if (kind == NodeKind::Leaf) {
    nodes[at].num_leaves = 1;
    return PyList_Append(leaves, object);
  }
  Holders children;
  PyObject* data = nullptr;
  if (node_children(object, kind, registration, children, &data) < 0) return -1;
  nodes[at].data = data;
  nodes[at].arity = static_cast<int32_t>(children.size());
  if (Py_EnterRecursiveCall(" while flattening a pytree")) return -1;
  int status = 0;
  for (size_t i = 0; i < children.size() && status == 0; ++i)
    status = flatten_node(children[i], is_leaf, nodes, leaves);
  Py_LeaveRecursiveCall();
  if (status == 0) close_node(nodes, at);
  return status;
}

PyObject* unflatten_node(const Node*& next, PyObject* const*& leaf) {
  const Node& node = *next++;
  if (node.kind == NodeKind::Leaf) return PyRef::borrow(*leaf++).release();
  bool flat = node.num_nodes == node.arity + 1 && node.num_leaves == node.arity;
  if (flat) {
    PyObject* const* children = leaf;
    leaf += node.arity;
    next += node.arity;
    return build_node(node, children);
  }
  if (Py_EnterRecursiveCall(" while unflattening a pytree")) return nullptr;
  SmallVector<PyObject*, 32> children;
  PyObject* result = nullptr;
  bool good = true;
  for (int32_t i = 0; i < node.arity && good; ++i) {
    PyObject* child = unflatten_node(next, leaf);
    good = child != nullptr;
    if (good) children.push_back(child);
  }
  if (good) result = build_node(node, children.data());
  for (PyObject* child : children) Py_DECREF(child);
  Py_LeaveRecursiveCall();
  return result;
}

PyMemberDef tree_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TreeDef, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot tree_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(tree_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tree_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tree_clear)},
    {Py_tp_repr, reinterpret_cast<void*>(tree_def_repr)},
    {Py_tp_hash, reinterpret_cast<void*>(tree_def_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(tree_def_compare)},
    {Py_tp_members, tree_members},
    {Py_tp_getset, tree_def_getset},
    {Py_tp_methods, tree_def_methods},
    {Py_tp_doc, const_cast<char*>("The structure of a pytree: nested containers without their leaves.")},
    {0, nullptr},
};

PyType_Spec tree_spec = {"jato._native.PyTreeDef", sizeof(TreeDef), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         tree_slots};

}  // namespace

void release_nodes(std::vector<Node>& nodes) {
  for (Node& node : nodes) Py_CLEAR(node.data);
}

void append_nodes(std::vector<Node>& nodes, const Node* begin, const Node* end) {
  for (const Node* node = begin; node != end; ++node) {
    Py_XINCREF(node->data);
    nodes.push_back(*node);
  }
}

void close_node(std::vector<Node>& nodes, size_t at) {
  nodes[at].num_nodes = static_cast<int32_t>(nodes.size() - at);
  int32_t leaves = 0;
  for (size_t child = at + 1; child < nodes.size(); child += static_cast<size_t>(nodes[child].num_nodes))
    leaves += nodes[child].num_leaves;
  nodes[at].num_leaves = leaves;
}

TreeDef* intern_tree(std::vector<Node>&& nodes) {
  uint64_t hash = 0x2545F4914F6CDD1Dull;
  for (const Node& node : nodes)
    hash = hash_data(mix(hash, static_cast<uint64_t>(node.kind) | static_cast<uint64_t>(node.arity) << 8),
                     node.data);
  for (TreeDef* tree = table().bucket(hash); tree; tree = tree->next) {
    if (tree->hash == hash && same_nodes(tree->nodes, nodes)) {
      Py_INCREF(tree);
      release_nodes(nodes);
      return tree;
    }
  }
  TreeDef* tree = reinterpret_cast<TreeDef*>(tree_def_type->tp_alloc(tree_def_type, 0));
  if (!tree) {
    release_nodes(nodes);
    return nullptr;
  }
  new (&tree->nodes) std::vector<Node>(std::move(nodes));
  tree->hash = hash;
  table().insert(tree);
  return tree;
}

int flatten(PyObject* object, PyObject* is_leaf, std::vector<Node>& nodes, PyObject* leaves) {
  return flatten_node(object, is_leaf, nodes, leaves);
}

TreeDef* flatten_tree(PyObject* object, PyObject* is_leaf, PyObject* leaves) {
  std::vector<Node> nodes;
  if (flatten_node(object, is_leaf, nodes, leaves) < 0) {
    release_nodes(nodes);
    return nullptr;
  }
  return intern_tree(std::move(nodes));
}

PyObject* unflatten(const TreeDef* tree, PyObject* const* leaves) {
  const Node* next = tree->nodes.data();
  return unflatten_node(next, leaves);
}

int add_pytree(PyObject* module) {
  tree_def_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tree_spec));
  if (!tree_def_type) return -1;
  if (PyModule_AddObjectRef(module, "PyTreeDef", reinterpret_cast<PyObject*>(tree_def_type)) < 0) return -1;
  return PyModule_AddFunctions(module, pytree_functions);
}

}  // namespace jato::bind
