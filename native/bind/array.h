// Array: an immutable, dense, row-major array.
//
// Data: its ArrayType, a reference to a Block (shared by views), a pointer into it.  The result of
// queued work has no block yet but a Pending, from which `ready` takes block and pointer when the
// work is done.  An array that was deleted (donated) has neither.
//
// Not tracked by the garbage collector: it refers to its placement, which never refers to arrays.
// So containers of arrays stay untracked too, and a call with hundreds of results costs no collection.
//
// Files: array.cpp (the object, its attributes and methods), array_operators.cpp (number slots, the
// table of operators), array_index.cpp (views by indexing), array_numpy.cpp (NumPy, scalars, buffer
// protocol), dlpack.cpp.
#pragma once

#include "../core/event.h"
#include "../core/pool.h"
#include "array_type.h"
#include "bind.h"

namespace jato::bind {

// The future memory of a queued result; shared by its array, that array's views and the jobs that
// make or read it.  Made with the GIL, released on any thread.
class Pending {
 public:
  Pending(jato::Ref<Event> done, int on_device) : event(std::move(done)), device(on_device) {}
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool exclusive() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

  jato::Ref<Event> event;
  int device;
  // Written by the job before the event completes, read after.
  Block* block = nullptr;  // one reference
  char* data = nullptr;

 private:
  ~Pending() {
    if (block) block->release();
  }
  std::atomic<int32_t> references_{1};
};

struct Array {
  PyObject_HEAD ArrayType* type;
  Block* block;
  char* data;
  Pending* pending;
  int64_t pending_offset;  // of `data` from the pending result's data, in bytes
  PyObject* placement;     // nullptr: the default device
  PyObject* weakrefs;
  bool donating;  // scratch mark of a call that donates (dispatch.cpp)
};

extern PyTypeObject* array_class;

inline bool is_array(PyObject* object) { return Py_TYPE(object) == array_class; }
inline Array* as_array(PyObject* object) { return reinterpret_cast<Array*>(object); }

// Makers.  They steal the references to type, block and pending and add one to placement.
Array* new_array(ArrayType* type, Block* block, char* data, PyObject* placement);
Array* new_pending_array(ArrayType* type, Pending* pending, int64_t offset, PyObject* placement);
// Memory for an array of this type (borrowed): `block` with undefined contents.
Array* empty_array(ArrayType* type, PyObject* placement);

// Makes block and data valid: waits, raises the error of failed work and of deleted arrays.
int ready_slow(Array* array);
inline int ready(Array* array) { return JATO_LIKELY(array->block != nullptr) ? 0 : ready_slow(array); }
// The same for the buffer protocol, and for __array__, which NumPy calls when the former failed.
int ready_for_buffer(Array* array);
int ready_after_buffer(Array* array);
bool is_deleted(const Array* array);
void delete_array(Array* array);

// Another type of the same size over the same memory, from `offset` bytes on; steals the type.
Array* view_array(Array* array, ArrayType* type, int64_t offset);

// --- NumPy and scalars (array_numpy.cpp)
PyObject* to_numpy(Array* array);                                    // read-only view where possible
PyObject* raw_view(Array* array);                                    // of 64-bit elements as uint64
Array* from_numpy(PyObject* array, bool weak, PyObject* placement);  // copies; canonical dtype
PyObject* element_to_python(const Array* array, int64_t position);   // the Python number
// Writes a Python or NumPy number as an element of `dtype`; -1 with an error.
int write_scalar(PyObject* value, DType dtype, void* destination);
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* array_protocol(PyObject* self, PyObject* args, PyObject* kwargs);
extern PyMethodDef array_numpy_functions[];

// --- indexing and operators
PyObject* array_subscript(PyObject* self, PyObject* index);
PyObject* array_item(PyObject* self, Py_ssize_t index);
PyObject* operator_named(const char* name);  // borrowed; nullptr without an error when unset
extern PyType_Slot number_slots[];
extern const int num_number_slots;
PyObject* array_compare(PyObject* self, PyObject* other, int operation);
extern PyMethodDef array_operator_functions[];

// --- DLPack
PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* dlpack_device(PyObject* self, PyObject*);
extern PyMethodDef dlpack_functions[];

int add_array(PyObject* module);

}  // namespace jato::bind
