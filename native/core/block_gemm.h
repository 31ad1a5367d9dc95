// Matrix products of float and double on AVX-512.
//
//   block_gemm      one product on one thread
//   SharedProduct   one product on several threads by blocks of rows.  A small B is packed by each thread for
//                   itself; a large one once, panel by panel, by the thread that needs a panel first
//
// A register tile of 14 rows by 2 vectors; B packed into panels of 2 vectors; A read in place where its
// rows lie well, else packed.  The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication", ACM TOMS 34(3), 2008; sharing B among threads is that of Smith et al.,
// "Anatomy of High-Performance Many-Threaded Matrix Multiplication", IPDPS 2014.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "pool.h"
#include "ref.h"

namespace jato {

// C (m x n, rows ldc apart) = A (m x k) B (k x n), or C += A B with `accumulate`.  Strides in elements.
template <class T>
struct BlockProduct {
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t ldc;
  int64_t m, n, k;
  bool accumulate;
};

// False when this machine has no AVX-512: then nothing was done.
bool block_gemm(const BlockProduct<float>& product);
bool block_gemm(const BlockProduct<double>& product);

template <class T>
class SharedProduct {
 public:
  // Whether this machine has the kernels and B's panels are not too large to be all kept at once.
  static bool suits(const BlockProduct<T>& product);
  // For this many threads at the most.  Throws OutOfMemory when there is none for the panels of a large B.
  SharedProduct(const BlockProduct<T>& product, int64_t threads);

  // Rows of A that stay in the second-level cache beside panels of B.
  static constexpr int64_t kRowBlock = 168;

  // The fewest rows that are worth a call of multiply_rows: few when B's panels stay in the thread's caches.
  int64_t least_rows() const;

  // One thread's part: made and used on the thread, which makes no other while it is in use (they would share
  // thread_panels), and outlived by the product.
  class Part {
   public:
    explicit Part(SharedProduct& product);
    // Computes rows [first, first + count) of C, which no other thread does.  More rows than kRowBlock at
    // once: a panel is used for all of them before the next depth.
    void multiply_rows(int64_t first, int64_t count);

   private:
    SharedProduct& product_;
    T* memory_;                 // B's panels
    int64_t start_;             // the panel to begin with
    std::vector<int64_t> done_;  // by depth, when the panels are the thread's own: how many are packed
  };

 private:
  class Panels;
  size_t panel_bytes() const;
  int64_t depth_at(int64_t depth_block) const;

  BlockProduct<T> product_;
  int64_t depth_, depth_blocks_, column_blocks_, threads_;
  bool in_place_;
  std::atomic<int64_t> arrivals_{0};  // parts made so far
  // Panels that all threads share, and whether each is unpacked, being packed or packed; null when each
  // thread has its own.
  Ref<Block> memory_;
  std::unique_ptr<std::atomic<uint8_t>[]> states_;
};

extern template class SharedProduct<float>;
extern template class SharedProduct<double>;

}  // namespace jato
