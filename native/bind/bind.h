// What every file of bind/ shares: Python.h, owning references, a small vector.
//
// Conventions of this folder.  A function that returns PyObject* or int follows CPython's rule:
// nullptr or -1 means that a Python error is set.  `PyRef` owns, a raw pointer borrows unless its
// function's comment says "new reference" or "steals".  Everything here runs with the GIL held,
// except where a comment says otherwise.  Start reading at array.h, then signature.h and
// dispatch.cpp: they are the path of a warm call.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace jato::bind {

#define JATO_LIKELY(x) __builtin_expect(!!(x), 1)
#define JATO_UNLIKELY(x) __builtin_expect(!!(x), 0)

// An owned reference.
class PyRef {
 public:
  PyRef() = default;
  PyRef(PyRef&& other) noexcept : pointer_(other.release()) {}
  PyRef(const PyRef& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
  PyRef& operator=(PyRef other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(pointer_); }

  static PyRef steal(PyObject* object) {
    PyRef ref;
    ref.pointer_ = object;
    return ref;
  }
  static PyRef borrow(PyObject* object) {
    Py_XINCREF(object);
    return steal(object);
  }

  PyObject* get() const { return pointer_; }
  PyObject* release() { return std::exchange(pointer_, nullptr); }
  explicit operator bool() const { return pointer_ != nullptr; }

 private:
  PyObject* pointer_ = nullptr;
};

// A vector of plain data whose first N items live inside the object: on the stack of a warm call.
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() : data_(inline_data()), size_(0), capacity_(N) {}
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  ~SmallVector() {
    if (data_ != inline_data()) std::free(data_);
  }

  void push_back(T item) {
    if (JATO_UNLIKELY(size_ == capacity_)) grow(size_ + 1);
    data_[size_++] = item;
  }
  void resize(size_t size) {
    if (JATO_UNLIKELY(size > capacity_)) grow(size);
    size_ = size;
  }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* inline_data() { return reinterpret_cast<T*>(storage_); }
  const T* inline_data() const { return reinterpret_cast<const T*>(storage_); }
  void grow(size_t needed) {
    size_t capacity = capacity_ * 2 > needed ? capacity_ * 2 : needed;
    T* fresh = static_cast<T*>(std::malloc(capacity * sizeof(T)));
    if (!fresh) throw std::bad_alloc();
    std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    if (data_ != inline_data()) std::free(data_);
    data_ = fresh;
    capacity_ = capacity;
  }

  T* data_;
  size_t size_;
  size_t capacity_;
  alignas(T) unsigned char storage_[N * sizeof(T)];
};

// Owned references that are released together: what a call must keep alive while it runs.
class Holders {
 public:
  Holders() = default;
  ~Holders() {
    for (PyObject* object : items_) Py_DECREF(object);
  }
  void steal(PyObject* object) { items_.push_back(object); }
  void borrow(PyObject* object) {
    Py_INCREF(object);
    items_.push_back(object);
  }
  size_t size() const { return items_.size(); }
  PyObject* operator[](size_t i) const { return items_[i]; }

 private:
  SmallVector<PyObject*, 16> items_;
};

inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// Calls a Python function of one or two arguments; new reference.
inline PyObject* call1(PyObject* function, PyObject* a) {
  PyObject* stack[2] = {nullptr, a};
  return PyObject_Vectorcall(function, stack + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}
inline PyObject* call2(PyObject* function, PyObject* a, PyObject* b) {
  PyObject* stack[3] = {nullptr, a, b};
  return PyObject_Vectorcall(function, stack + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

// Replaces the global `place` by a new reference to `object`, or by nothing for None.
inline void set_global(PyObject*& place, PyObject* object) {
  if (object == Py_None) object = nullptr;
  Py_XINCREF(object);
  PyObject* old = std::exchange(place, object);
  Py_XDECREF(old);
}

}  // namespace jato::bind
