// Intrusive reference counting: Ref<T> holds one reference to a T that has retain() and release().
//
// Blocks, events and executables are shared between Python objects, queued jobs and each other;
// the count lives in the object, so that a reference is one pointer and can be handed through C.
#pragma once
#include <cstddef>
#include <utility>

namespace jato {

template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}

  // Takes over a reference that the caller already holds.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Adds a reference of its own.
  static Ref share(T* object) noexcept {
    if (object != nullptr) object->retain();
    return adopt(object);
  }

  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  // Gives the reference away: the caller must release() it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept { *this = Ref(); }

 private:
  T* object_ = nullptr;
};

}  // namespace jato
