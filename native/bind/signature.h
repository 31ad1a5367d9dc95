// The signature of a call: everything on which the choice of compiled code depends.
//
// It is a row of words.  A container is a tag (odd), a dynamic leaf the pointer to its interned
// ArrayType (even), and everything that is compared by value (keys of dicts, static arguments,
// placements, data of custom nodes) a word with its hash, with the object itself in `objects`.
// So two signatures are equal when their words are, and then their objects are.
//
// Building one from arrays in tuples, lists and dicts runs no Python code, takes no references and
// allocates nothing.  Where Python code does run (custom nodes, hashes of static values), `hold_all`
// first takes references to what was collected, because that code may change the containers.
#pragma once

#include "array.h"
#include "bind.h"
#include "pytree.h"

namespace jato::bind {

enum class LeafKind : uint8_t { Array, Numpy, NumpyScalar, Bool, Int, Float, Complex, Odd };

struct Leaf {
  PyObject* object;
  ArrayType* type;  // nullptr for Odd
  int64_t integer;  // value of an Int
  LeafKind kind;
};

struct Signature {
  SmallVector<uint64_t, 192> words;
  SmallVector<PyObject*, 48> objects;
  SmallVector<Leaf, 128> leaves;
  Holders holders;
  uint64_t hash = 0;
  bool odd = false;      // some leaf is no array or number: never cached
  bool holding = false;  // hold_all was called
  int num_others = 0;    // leaves that are no Arrays

  void hold_all() {
    if (holding) return;
    holding = true;
    for (Leaf& leaf : leaves) holders.borrow(leaf.object);
    for (PyObject* object : objects) holders.borrow(object);
  }
  void add_object(PyObject* object, Py_hash_t object_hash) {
    if (holding) holders.borrow(object);
    objects.push_back(object);
    words.push_back(static_cast<uint64_t>(object_hash) << 1 | 1);
  }
  void finish() {
    uint64_t h = 0x8F1BBCDCBFA53E0Bull;
    for (uint64_t word : words) h = mix(h, word);
    hash = h;
  }
};

constexpr uint64_t tag(int code, uint64_t count) { return count << 8 | static_cast<uint64_t>(code) << 1 | 1; }
// Codes of tags beside those of NodeKind.
enum : int { kTagCall = 32, kTagStatic, kTagPlacement, kTagKeyword, kTagEpoch };

// Adds one dynamic argument; -1 with an error.
int add_tree(Signature& signature, PyObject* object);
// Adds a static argument.  1: it cannot be hashed (no error is set).
int add_static(Signature& signature, PyObject* value);
// Adds one leaf, whatever it is.
int add_leaf(Signature& signature, PyObject* object);

// Equality that tells 1, 1.0 and True apart, also inside tuples; -1 with an error.
int strictly_equal(PyObject* a, PyObject* b);
// Would comparing this run Python code?
bool is_plain(PyObject* object);

}  // namespace jato::bind
