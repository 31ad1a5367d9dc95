// Pytrees: nested containers as a list of leaves and a TreeDef.
//
// A TreeDef is its nodes in pre-order: a node, then the subtrees of its children.  So a subtree is
// a contiguous range, and flattening and unflattening read straight through.  TreeDefs are
// interned: those whose node data are the same objects (or equal strings) are one object; equality
// in general is by value.
//
// Files: pytree_registry.cpp (what is a node, its children), pytree.cpp (flatten, unflatten,
// interning), pytree_methods.cpp (the Python face).
#pragma once

#include <string>
#include <vector>

#include "bind.h"

namespace jato::bind {

enum class NodeKind : uint8_t {
  Leaf,
  None,
  Tuple,
  List,
  Dict,         // data: tuple of sorted keys
  NamedTuple,   // data: the class
  OrderedDict,  // data: tuple of keys, in order
  DefaultDict,  // data: (factory, tuple of sorted keys)
  Dataclass,    // data: tuple of the values of the meta fields
  Custom,       // data: what the user's flatten function returned beside the children
};

// A class registered as a node; lives for ever.
struct Registration {
  PyObject* type;
  NodeKind kind;            // Custom or Dataclass, OrderedDict, DefaultDict
  PyObject* to_iterable;    // object -> (children, data)
  PyObject* from_iterable;  // (data, children) -> object
  PyObject* data_fields;    // Dataclass: tuples of field names
  PyObject* meta_fields;
};

struct Node {
  NodeKind kind;
  int32_t arity;
  int32_t num_leaves;  // of the subtree
  int32_t num_nodes;   // of the subtree, itself included
  PyObject* data;      // owned by the TreeDef; nullptr where the kind has none
  const Registration* registration;
};

struct TreeDef {
  PyObject_HEAD std::vector<Node> nodes;
  uint64_t hash;  // of the interned form
  TreeDef* next;  // in the bucket of the intern table
  PyObject* weakrefs;
};

extern PyTypeObject* tree_def_type;

inline bool is_tree_def(PyObject* object) { return Py_TYPE(object) == tree_def_type; }

// What kind of node an object is; runs no Python code except for unknown subclasses of tuple.
NodeKind classify(PyObject* object, const Registration** registration);

// Everything but Leaf and None: owned children in order and the node's data (new reference or nullptr).
int node_children(PyObject* object, NodeKind kind, const Registration* registration, Holders& children,
                  PyObject** data);

struct DictItem {
  PyObject* key;
  PyObject* value;
};
// Sorts by key; keys of mixed types by the name of their type first, and keys without an order stay
// in the dict's order.
int sort_dict_items(DictItem* items, size_t count);
// Lets go of the strings whose order sort_dict_items remembers.
void forget_key_orders();

const Registration* find_registration(PyObject* type);

// Makes one object of a node's kind from its children (borrowed); new reference.
PyObject* build_node(const Node& node, PyObject* const* children);

// Takes over the node data; new reference.
TreeDef* intern_tree(std::vector<Node>&& nodes);
void release_nodes(std::vector<Node>& nodes);
// Adds the range as the child of what is being built; data references are added.
void append_nodes(std::vector<Node>& nodes, const Node* begin, const Node* end);
// Sets num_leaves and num_nodes of nodes[at], whose subtree ends at the end of the vector.
void close_node(std::vector<Node>& nodes, size_t at);

// Flattens; leaves are appended to the list.  `is_leaf` may be nullptr.  -1 with an error.
int flatten(PyObject* object, PyObject* is_leaf, std::vector<Node>& nodes, PyObject* leaves);
TreeDef* flatten_tree(PyObject* object, PyObject* is_leaf, PyObject* leaves);
// Builds the object from exactly num_leaves leaves (borrowed); new reference.
PyObject* unflatten(const TreeDef* tree, PyObject* const* leaves);

std::string describe_tree(const TreeDef* tree);

int add_pytree_registry(PyObject* module);
int add_pytree(PyObject* module);

// The method tables of pytree_methods.cpp, for the type made in pytree.cpp.
extern PyMethodDef tree_def_methods[];
extern PyGetSetDef tree_def_getset[];
extern PyMethodDef pytree_functions[];
PyObject* tree_def_repr(PyObject* self);
PyObject* tree_def_compare(PyObject* self, PyObject* other, int operation);
Py_hash_t tree_def_hash(PyObject* self);

}  // namespace jato::bind
