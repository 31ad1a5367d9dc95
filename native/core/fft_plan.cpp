// Tables of Fourier transforms and the cache that keeps them.
#include "fft_plan.h"

#include <pthread.h>

#include <cmath>
#include <complex>
#include <list>
#include <mutex>
#include <numbers>
#include <tuple>

namespace jato {
namespace {

// Tables of one transform of 16 million points take 128 MiB; two that evict each other are made in each call.
constexpr size_t kCacheBytes = 256 << 20;

using Wide = std::complex<long double>;

// exp(-2 pi i k / n), right to the last bit but a few: k is brought into the first eighth of the circle, where the root
// is the product of two that sine and cosine were computed for.  So quarters of the circle are exact.
class Roots {
 public:
  explicit Roots(int64_t n) : n_(n), step_(static_cast<int64_t>(std::sqrt(static_cast<double>(n) / 2)) + 1) {
    for (int64_t i = 0; i < step_; ++i) fine_.push_back(computed(i));
    for (int64_t i = 0; i * step_ <= n / 2; ++i) coarse_.push_back(computed(i * step_));
  }

  template <class T>
  void store(int64_t k, T* to) const {
    const Wide root = (*this)[k];
    to[0] = static_cast<T>(root.real());
    to[1] = static_cast<T>(root.imag());
  }

  Wide operator[](int64_t k) const {
    k %= n_;
    const bool below = 2 * k > n_;
    if (below) k = n_ - k;  // to the upper half of the circle
    const bool left = 4 * k > n_;
    k = left ? n_ - 2 * k : 2 * k;  // to its right quarter, in halves of a step
    const bool steep = 4 * k > n_;
    k = steep ? n_ - 2 * k : 2 * k;  // to the first eighth, in quarters
    Wide root = product(coarse_[static_cast<size_t>(k / step_)], fine_[static_cast<size_t>(k % step_)]);
    if (steep) root = {root.imag(), root.real()};
    if (left) root = {-root.real(), root.imag()};
    return below ? root : std::conj(root);
  }

  static Wide product(Wide x, Wide y) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }

 private:
  // exp(2 pi i quarter / (4 n)): quarters of a step keep all that follows whole.
  Wide computed(int64_t quarter) const {
    const long double angle =
        std::numbers::pi_v<long double> * static_cast<long double>(quarter) / (2 * static_cast<long double>(n_));
    return {std::cos(angle), std::sin(angle)};
  }

  int64_t n_, step_;
  std::vector<Wide> fine_, coarse_;
};

std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> found;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  // eights, and two fours rather than an eight and a two
  while (twos >= 5 || twos == 3) found.push_back(8), twos -= 3;
  while (twos >= 2) found.push_back(4), twos -= 2;
  if (twos == 1) found.push_back(2);
  for (int64_t r = 3; r <= kLargestRadix && n > 1; r += 2) {
    for (; n % r == 0; n /= r) found.push_back(r);
  }
  if (n > 1) found.clear();
  return found;
}

using Key = std::tuple<int, int64_t, int64_t, int64_t, size_t>;  // what, its numbers, size of an element

struct Kept {
  Key key;
  std::shared_ptr<const void> value;
  size_t bytes;
};

std::mutex kept_mutex;
std::list<Kept> kept;  // the last used first; guarded by the mutex
size_t kept_bytes = 0;
// A child must not find the mutex taken by a thread that it does not have.
const int fork_handlers = pthread_atfork([] { kept_mutex.lock(); }, [] { kept_mutex.unlock(); },
                                         [] { kept_mutex.unlock(); });

template <class V, class Make, class Size>
std::shared_ptr<const V> cached(const Key& key, Make make, Size size) {
  {
    std::lock_guard lock(kept_mutex);
    for (auto i = kept.begin(); i != kept.end(); ++i) {
      if (i->key != key) continue;
      kept.splice(kept.begin(), kept, i);
      return std::static_pointer_cast<const V>(kept.front().value);
    }
  }
  std::shared_ptr<const V> made = make();
  const size_t bytes = size(*made) + 256;
  std::lock_guard lock(kept_mutex);
  for (const Kept& other : kept) {  // another thread was faster
    if (other.key == key) return std::static_pointer_cast<const V>(other.value);
  }
  kept.push_front({key, made, bytes});
  kept_bytes += bytes;
  while (kept_bytes > kCacheBytes && kept.size() > 1) {
    kept_bytes -= kept.back().bytes;
    kept.pop_back();
  }
  return made;
}

template <class T>
std::shared_ptr<const FftPlan<T>> make_plan(int64_t n) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  int64_t left = n, stride = 1;
  for (const int64_t radix : radices(n)) {
    const int64_t count = left / radix;
    FftPass pass{radix, count, stride, static_cast<int64_t>(plan->numbers.size()), 0};
    const Roots roots(left);
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        T root[2];
        roots.store(p * k, root);
        plan->numbers.insert(plan->numbers.end(), root, root + 2);
      }
    }
    pass.roots = static_cast<int64_t>(plan->numbers.size());
    const Roots own(radix);
    for (int64_t k = 0; k < radix; ++k) {
      T root[2];
      own.store(k, root);
      plan->numbers.insert(plan->numbers.end(), root, root + 2);
    }
    plan->passes.push_back(pass);
    left = count;
    stride *= radix;
  }
  return plan;
}

// The transform of a power of two numbers in the precision of the tables.
void transform_wide(std::vector<Wide>& x, const Roots& roots, int64_t step) {
  const size_t half = x.size() / 2;
  if (half == 0) return;
  std::vector<Wide> even(half), odd(half);
  for (size_t i = 0; i < half; ++i) even[i] = x[2 * i], odd[i] = x[2 * i + 1];
  transform_wide(even, roots, 2 * step);
  transform_wide(odd, roots, 2 * step);
  for (size_t i = 0; i < half; ++i) {
    const Wide turned = Roots::product(odd[i], roots[static_cast<int64_t>(i) * step]);
    x[i] = even[i] + turned;
    x[half + i] = even[i] - turned;
  }
}

template <class T>
size_t size_of(const std::vector<T>& v) {
  return v.size() * sizeof(T);
}

}  // namespace

bool fft_factors(int64_t n) { return n == 1 || !radices(n).empty(); }

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  if (!fft_factors(n)) return nullptr;
  return cached<FftPlan<T>>(
      Key{0, n, 0, 0, sizeof(T)}, [&] { return make_plan<T>(n); },
      [](const FftPlan<T>& plan) { return size_of(plan.numbers); });
}

template <class T>
Numbers<T> half_roots(int64_t n) {
  return cached<std::vector<T>>(
      Key{1, n, 0, 0, sizeof(T)},
      [&] {
        auto made = std::make_shared<std::vector<T>>(static_cast<size_t>(n / 2 + 2));
        const Roots roots(n);
        for (int64_t k = 0; k <= n / 4; ++k) roots.store(k, made->data() + 2 * k);
        return made;
      },
      size_of<T>);
}

template <class T>
Numbers<T> grid_roots(int64_t rows, int64_t columns, int64_t lanes) {
  return cached<std::vector<T>>(
      Key{2, rows, columns, lanes, sizeof(T)},
      [&] {
        const int64_t blocks = (columns + lanes - 1) / lanes;
        auto made = std::make_shared<std::vector<T>>(static_cast<size_t>(2 * blocks * lanes * rows));
        const Roots roots(rows * columns);
        T* to = made->data();
        for (int64_t block = 0; block < blocks; ++block) {
          for (int64_t k = 0; k < rows; ++k, to += 2 * lanes) {
            for (int64_t lane = 0; lane < lanes; ++lane) {
              T root[2];
              roots.store(k * (block * lanes + lane), root);
              to[lane] = root[0];
              to[lanes + lane] = root[1];
            }
          }
        }
        return made;
      },
      size_of<T>);
}

template <class T>
Numbers<T> chirp_tables(int64_t n, int64_t padded) {
  return cached<std::vector<T>>(
      Key{3, n, padded, 0, sizeof(T)},
      [&] {
        auto made = std::make_shared<std::vector<T>>();
        const auto add = [&](Wide x) {
          made->push_back(static_cast<T>(x.real()));
          made->push_back(static_cast<T>(x.imag()));
        };
        const Roots roots(2 * n);
        std::vector<Wide> response(static_cast<size_t>(padded));
        int64_t square = 0;  // k^2 modulo 2 n
        for (int64_t k = 0; k < n; ++k) {
          add(roots[square]);
          // with the 1 / padded of the transform back
          const Wide back = std::conj(roots[square]) / static_cast<long double>(padded);
          response[static_cast<size_t>(k)] = back;
          if (k > 0) response[static_cast<size_t>(padded - k)] = back;
          square = (square + 2 * k + 1) % (2 * n);
        }
        transform_wide(response, Roots(padded), 1);
        for (const Wide& x : response) add(x);
        return made;
      },
      size_of<T>);
}

template std::shared_ptr<const FftPlan<float>> fft_plan(int64_t n);
template std::shared_ptr<const FftPlan<double>> fft_plan(int64_t n);
template Numbers<float> half_roots(int64_t n);
template Numbers<double> half_roots(int64_t n);
template Numbers<float> grid_roots(int64_t rows, int64_t columns, int64_t lanes);
template Numbers<double> grid_roots(int64_t rows, int64_t columns, int64_t lanes);
template Numbers<float> chirp_tables(int64_t n, int64_t padded);
template Numbers<double> chirp_tables(int64_t n, int64_t padded);

}  // namespace jato
