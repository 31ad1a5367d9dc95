// JitFunction: the callable that users hold, and Entry: the compiled code for one signature.
//
// A warm call is jit_call -> add_tree (signature.cpp) -> find -> run_plan (run.cpp).
#pragma once

#include <vector>

#include "bind.h"
#include "pytree.h"
#include "run.h"
#include "signature.h"

namespace jato::bind {

struct Entry {
  PyObject_HEAD RunPlan plan;
  TreeDef* out_tree;
  PyObject* effects;
  PyObject* info;  // whatever the maker wants to remember; an attribute
  PyObject* weakrefs;
  int32_t num_outputs;
  bool single;  // the result is one leaf
};

extern PyTypeObject* entry_class;
extern PyTypeObject* call_signature_class;

inline bool is_entry(PyObject* object) { return Py_TYPE(object) == entry_class; }

// New reference to the result.
PyObject* run_entry(Entry* entry, Signature& signature);

// A signature kept in a function's cache; owned by the cache and, while it is compared, by the search.
struct Record {
  uint64_t hash;
  std::vector<uint64_t> words;
  std::vector<PyObject*> objects;  // owned
  std::vector<PyObject*> types;    // owned: keeps the addresses among the words valid
  Entry* entry;                    // owned
  Record* next;                    // in the bucket
  Record* newer;                   // in the order of use
  Record* older;
  int references;
};

// Signatures and their entries, the least recently used ones dropped beyond `capacity`.
class EntryCache {
 public:
  EntryCache() = default;
  EntryCache(const EntryCache&) = delete;
  ~EntryCache() { clear(); }

  // The entry for a signature; borrowed.  nullptr if there is none, or with an error set.
  Entry* find(Signature& signature);
  // Keeps the first entry for a signature: returns the one that is stored (borrowed).
  Entry* insert(Signature& signature, Entry* entry);
  void clear();
  size_t size() const { return count_; }
  int traverse(visitproc visit, void* arg);
  size_t capacity() const { return capacity_; }
  void set_capacity(size_t capacity) { capacity_ = capacity; }

 private:
  void unlink(Record* record);
  void touch(Record* record);
  void drop(Record* record);
  void grow();

  std::vector<Record*> buckets_;
  size_t capacity_ = 4096;
  size_t count_ = 0;
  uint64_t version_ = 0;  // changes with every insertion and removal
  Record* newest_ = nullptr;
  Record* oldest_ = nullptr;
};

struct JitFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* cold_path;
  PyObject* traced_path;
  PyObject* name;
  PyObject* static_argnums;  // tuples, as given
  PyObject* static_argnames;
  PyObject* donate_argnums;
  PyObject* donate_argnames;
  PyObject* dict;
  PyObject* weakrefs;
  std::vector<Py_ssize_t> static_positions, donate_positions;
  EntryCache cache;
  uint64_t hits, misses;
  JitFunction *previous, *next;  // in the list of all functions
};

// The Python face of a signature, handed to the cold path (call_signature.cpp); new reference.
PyObject* new_call_signature(JitFunction* function, PyObject* const* args, Py_ssize_t num_args,
                             PyObject* keyword_names, const int* keyword_order, Signature& signature);

bool is_static_position(const std::vector<Py_ssize_t>& positions, Py_ssize_t position, Py_ssize_t num_args);
bool is_named(PyObject* names, PyObject* name);

int add_entry(PyObject* module);
int add_call_signature(PyObject* module);
int add_dispatch(PyObject* module);

}  // namespace jato::bind
