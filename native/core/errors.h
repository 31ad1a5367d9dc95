// The exceptions of the runtime.  A layer above turns them into its own by `kind`; an exception
// that is not an Error (for example one that carries an exception of the embedding language out
// of a host callback) travels through steps, jobs and events unchanged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace jato {

enum class ErrorKind : uint8_t {
  Runtime,      // a failure while running
  Value,        // an argument that cannot be (a mistake of the caller)
  OutOfMemory,  // see OutOfMemory in pool.h
  Cancelled,    // the job was cancelled, by Ctrl-C or at exit
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace jato
