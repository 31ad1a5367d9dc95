// Library steps: routines that no generated kernel replaces, found by name.
//
//   copy   buffers: source, destination       params: bytes
//   fill   buffers: destination               params: count, itemsize, low 64 bits, high 64 bits of the value
//   gemm   buffers: A, B, C                   params: GemmParams in order of declaration
//   gemv   buffers: A, x, y                   params: GemvParams in order of declaration
//   conv, conv_kernel                         see convolution.h
//
//   cholesky, lu, lu_solve, triangular_solve: lapack.h      qr, svd, eigh, eig and their kin: spectra.h
//   fft: fft.h      top_k: selection.h
//
// Another family is one more file that defines its routines and one line in the table of library.cpp.
// BLAS arrives as function pointers with the Fortran interface (32-bit integers, everything by pointer),
// set from outside by name: sgemm dgemm cgemm zgemm, sgemv dgemv cgemv zgemv, likewise trsm, trsv and what lapack.cpp and
// spectra.cpp name, and
// openblas_set_num_threads_local if there is one: with it, BLAS is kept to one thread while work is split
// over the thread pool here. Without a BLAS a plain loop computes the same, slowly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dtype.h"

namespace jato {

// What a running step knows of its surroundings.
struct Context {
  const volatile int32_t* cancel;  // never null; nonzero: stop early, results are discarded
};

using LibraryFn = void (*)(void* const* buffers, const int64_t* params, Context& context);

// What follows a routine on rows of its result, for tiled steps: done(context, begin, end) once rows
// [begin, end) are there, from any thread, each row once.  `begin` is a multiple of `unit`.
struct RowTiles {
  int64_t unit;
  void (*done)(void* context, int64_t begin, int64_t end);
  void* context;
};
// Runs the routine by blocks of rows.  False when it had better run as a whole: then nothing was done.
using LibraryTiledFn = bool (*)(void* const* buffers, const int64_t* params, Context& context,
                                const RowTiles& tiles);

struct LibraryRoutine {
  const char* name;
  int num_buffers;
  int num_params;
  LibraryFn run;
  LibraryTiledFn run_tiled;  // null: cannot be tiled
  // Throws Error(Value) when the parameters make no sense; called once, when a program is built.
  void (*check)(const int64_t* params);
};

// Null when there is no such routine.
const LibraryRoutine* find_routine(std::string_view name);
std::vector<std::string> library_names();

// Gives the address of an external function; null removes it.  Unknown names are an Error(Value).
void set_library_symbol(std::string_view name, void* address);
void* library_symbol(std::string_view name);
std::vector<std::string> library_symbol_names();

// While one lives, BLAS runs on one thread in each thread that calls it.  Counted: several may live.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas();
  ~SingleThreadedBlas();
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;

  // False when BLAS has no such control: then only one thread at a time should call it.
  static bool possible();
  // To be called on every thread that calls BLAS on behalf of the one that holds the guard.
  static void limit_worker();

 private:
  int (*set_)(int);
};

// memcpy, over several threads when that pays.
void copy_bytes(void* destination, const void* source, size_t bytes);

// How an operand is stored.  `Transpose`: the operand is the transpose of the stored matrix.
enum class Operand : int64_t { AsStored = 0, Transpose = 1, ConjugateTranspose = 2 };

// C = alpha * op(A) @ op(B) + beta * C for each of `batch` matrices.  Row-major.  op(A) is m x k,
// op(B) k x n, C m x n.  Leading dimensions (elements between rows of what is stored) and batch
// strides are in elements; a batch stride of 0 uses one matrix for all.  alpha and beta are the bit patterns
// of doubles (real and imaginary part).  With beta = 0, C is not read.
struct GemmParams {
  int64_t dtype;  // Float32, Float64, Complex64, Complex128
  int64_t operand_a, operand_b;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch, stride_a, stride_b, stride_c;
  int64_t alpha_real, alpha_imag, beta_real, beta_imag;
  // The whole batch this many times, with strides of its own.
  int64_t outer, outer_stride_a, outer_stride_b, outer_stride_c;
};

// y = alpha * op(A) @ x + beta * y for each of `batch`; op(A) is m x k.
struct GemvParams {
  int64_t dtype;
  int64_t operand_a;
  int64_t m, k;
  int64_t lda, stride_x, stride_y;  // elements between rows of A, elements of x, elements of y
  int64_t batch, batch_stride_a, batch_stride_x, batch_stride_y;
  int64_t alpha_real, alpha_imag, beta_real, beta_imag;
};

}  // namespace jato
