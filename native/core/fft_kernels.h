// The transforms of a group, in vectors of JATO_FFT_BYTES.  Included by fft_groups.cpp once for each kind of machine,
// within a namespace and a region of its own; so there is no include guard, and nothing of the standard library
// may be instantiated here.
//
// Numbers are held as a vector of real and a vector of imaginary parts, a lane for each transform: a butterfly is then
// plain vector arithmetic, without shuffles.  Stockham's passes go to and fro between two arrays and leave the results
// in order.  Only loading and storing rows transposes.

template <class T>
struct LaneType;
template <>
struct LaneType<float> {
  typedef float V __attribute__((vector_size(JATO_FFT_BYTES)));
};
template <>
struct LaneType<double> {
  typedef double V __attribute__((vector_size(JATO_FFT_BYTES)));
};

template <class T>
constexpr int kLanes = JATO_FFT_BYTES / static_cast<int>(sizeof(T));

template <class T>
struct Number {
  typename LaneType<T>::V re, im;
};

#define JATO_FFT_INLINE __attribute__((always_inline)) inline

template <class T>
JATO_FFT_INLINE typename LaneType<T>::V load(const T* from) {
  typename LaneType<T>::V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T, class V>
JATO_FFT_INLINE void store(T* to, V v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// ---- transposition of a square block: exchanges bit after bit of the number of the vector with that of the lane

template <int H, int L, class V, int... E>
JATO_FFT_INLINE void exchange(V& a, V& b, Sequence<E...>) {
  const V low = __builtin_shufflevector(a, b, ((E & H) ? L + E - H : E)...);
  const V high = __builtin_shufflevector(a, b, ((E & H) ? L + E : E + H)...);
  a = low;
  b = high;
}

template <int H, int L, class V>
JATO_FFT_INLINE void exchange_all(V* v) {
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) {
    if (!(i & H)) exchange<H, L>(v[i], v[i + H], typename Count<L>::Type{});
  }
}

template <int L, class V>
JATO_FFT_INLINE void transpose(V (&v)[L]) {
  exchange_all<1, L>(v);
  if constexpr (L > 2) exchange_all<2, L>(v);
  if constexpr (L > 4) exchange_all<4, L>(v);
  if constexpr (L > 8) exchange_all<8, L>(v);
}

template <int L, class V, int... E>
JATO_FFT_INLINE V every_second(V a, V b, Sequence<E...>) {
  return __builtin_shufflevector(a, b, (2 * E)...);
}

template <int L, class V, int... E>
JATO_FFT_INLINE V every_other(V a, V b, Sequence<E...>) {
  return __builtin_shufflevector(a, b, (2 * E + 1)...);
}

template <int L, int From, class V, int... E>
JATO_FFT_INLINE V in_turn(V a, V b, Sequence<E...>) {
  return __builtin_shufflevector(a, b, ((E & 1) ? L + From + E / 2 : From + E / 2)...);
}

// ---- butterflies: the Fourier transform of R numbers, in place

template <class T>
JATO_FFT_INLINE Number<T> operator+(const Number<T>& a, const Number<T>& b) {
  return {a.re + b.re, a.im + b.im};
}

template <class T>
JATO_FFT_INLINE Number<T> operator-(const Number<T>& a, const Number<T>& b) {
  return {a.re - b.re, a.im - b.im};
}

template <class T>
JATO_FFT_INLINE Number<T> times(const Number<T>& a, T c, T s) {
  return {a.re * c - a.im * s, a.re * s + a.im * c};
}

// -i a
template <class T>
JATO_FFT_INLINE Number<T> turned(const Number<T>& a) {
  return {a.im, -a.re};
}

template <class T>
JATO_FFT_INLINE void butterfly4(Number<T>& a0, Number<T>& a1, Number<T>& a2, Number<T>& a3) {
  const Number<T> sum = a0 + a2, difference = a0 - a2, odd = a1 + a3, turn = turned(a1 - a3);
  a0 = sum + odd;
  a1 = difference + turn;
  a2 = sum - odd;
  a3 = difference - turn;
}

template <class T, int R>
JATO_FFT_INLINE void butterfly(Number<T> (&a)[R]) {
  if constexpr (R == 2) {
    const Number<T> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  } else if constexpr (R == 3) {
    constexpr T kHalf = T(0.5), kSine = T(0.866025403784438646763723170752936183L);
    const Number<T> sum = a[1] + a[2], difference = a[1] - a[2];
    const Number<T> middle = {a[0].re - kHalf * sum.re, a[0].im - kHalf * sum.im};
    const Number<T> turn = {kSine * difference.im, -kSine * difference.re};
    a[0] = a[0] + sum;
    a[1] = middle + turn;
    a[2] = middle - turn;
  } else if constexpr (R == 4) {
    butterfly4(a[0], a[1], a[2], a[3]);
  } else if constexpr (R == 5) {
    constexpr T kCosine1 = T(0.309016994374947424102293417182819059L);
    constexpr T kCosine2 = T(-0.809016994374947424102293417182819059L);
    constexpr T kSine1 = T(0.951056516295153572116439333379382143L);
    constexpr T kSine2 = T(0.587785252292473129168705954639072769L);
    const Number<T> s1 = a[1] + a[4], d1 = a[1] - a[4], s2 = a[2] + a[3], d2 = a[2] - a[3];
    const Number<T> m1 = {a[0].re + kCosine1 * s1.re + kCosine2 * s2.re, a[0].im + kCosine1 * s1.im + kCosine2 * s2.im};
    const Number<T> m2 = {a[0].re + kCosine2 * s1.re + kCosine1 * s2.re, a[0].im + kCosine2 * s1.im + kCosine1 * s2.im};
    const Number<T> t1 = {kSine1 * d1.im + kSine2 * d2.im, -(kSine1 * d1.re + kSine2 * d2.re)};
    const Number<T> t2 = {kSine2 * d1.im - kSine1 * d2.im, kSine1 * d2.re - kSine2 * d1.re};
    a[0] = a[0] + s1 + s2;
    a[1] = m1 + t1;
    a[4] = m1 - t1;
    a[2] = m2 + t2;
    a[3] = m2 - t2;
  } else {
    static_assert(R == 8);
    constexpr T kDiagonal = T(0.707106781186547524400844362104849039L);
    butterfly4(a[0], a[2], a[4], a[6]);
    butterfly4(a[1], a[3], a[5], a[7]);
    const Number<T> t0 = a[1], t2 = turned(a[5]);
    const Number<T> t1 = {kDiagonal * (a[3].re + a[3].im), kDiagonal * (a[3].im - a[3].re)};
    const Number<T> t3 = {kDiagonal * (a[7].im - a[7].re), -kDiagonal * (a[7].re + a[7].im)};
    const Number<T> e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6];
    a[0] = e0 + t0, a[4] = e0 - t0;
    a[1] = e1 + t1, a[5] = e1 - t1;
    a[2] = e2 + t2, a[6] = e2 - t2;
    a[3] = e3 + t3, a[7] = e3 - t3;
  }
}

// y[q + s (R p + k)] = w^(p k) sum over j of x[q + s (p + m j)] exp(-2 pi i j k / R), w of order m R.
template <class T, int R, bool Last>
void pass_of(const Number<T>* x, Number<T>* y, int64_t m, int64_t s, const T* factors) {
  for (int64_t p = 0; p < m; ++p, factors += 2 * (R - 1)) {
    for (int64_t q = 0; q < s; ++q) {
      Number<T> a[R];
      for (int j = 0; j < R; ++j) a[j] = x[q + s * (p + m * j)];
      butterfly<T, R>(a);
      Number<T>* const to = y + q + s * R * p;
      to[0] = a[0];
      for (int k = 1; k < R; ++k) to[s * k] = Last ? a[k] : times(a[k], factors[2 * k - 2], factors[2 * k - 1]);
    }
  }
}

// The same for any odd radix: numbers j and R - j come in together.
template <class T>
void general_pass(const Number<T>* x, Number<T>* y, int64_t radix, int64_t m, int64_t s, const T* factors,
                  const T* roots) {
  const int64_t half = radix / 2;
  for (int64_t p = 0; p < m; ++p, factors += 2 * (radix - 1)) {
    for (int64_t q = 0; q < s; ++q) {
      Number<T> sums[kLargestRadix / 2], differences[kLargestRadix / 2];
      const Number<T> first = x[q + s * p];
      Number<T> total = first;
      for (int64_t j = 1; j <= half; ++j) {
        const Number<T> a = x[q + s * (p + m * j)], b = x[q + s * (p + m * (radix - j))];
        sums[j - 1] = a + b;
        differences[j - 1] = a - b;
        total = total + sums[j - 1];
      }
      Number<T>* const to = y + q + s * radix * p;
      to[0] = total;
      for (int64_t k = 1; k <= half; ++k) {
        Number<T> even = first, odd = {};
        int64_t place = 0;
        for (int64_t j = 0; j < half; ++j) {
          place += k;
          if (place >= radix) place -= radix;
          const T c = roots[2 * place], t = roots[2 * place + 1];  // t is minus the sine
          even.re += c * sums[j].re;
          even.im += c * sums[j].im;
          odd.re -= t * differences[j].im;
          odd.im += t * differences[j].re;
        }
        const int64_t other = radix - k;
        to[s * k] = times(even + odd, factors[2 * k - 2], factors[2 * k - 1]);
        to[s * other] = times(even - odd, factors[2 * other - 2], factors[2 * other - 1]);
      }
    }
  }
}

// The transforms of `width` neighbours; x and y are overwritten, the one returned holds the results.
template <class T>
Number<T>* run_passes(const FftPlan<T>& plan, Number<T>* x, Number<T>* y, int64_t width) {
  const T* const numbers = plan.numbers.data();
  for (const FftPass& pass : plan.passes) {
    const int64_t m = pass.count, s = pass.stride * width;
    const T* const f = numbers + pass.factors;
    switch (pass.radix) {
      case 2: m == 1 ? pass_of<T, 2, true>(x, y, m, s, f) : pass_of<T, 2, false>(x, y, m, s, f); break;
      case 3: m == 1 ? pass_of<T, 3, true>(x, y, m, s, f) : pass_of<T, 3, false>(x, y, m, s, f); break;
      case 4: m == 1 ? pass_of<T, 4, true>(x, y, m, s, f) : pass_of<T, 4, false>(x, y, m, s, f); break;
      case 5: m == 1 ? pass_of<T, 5, true>(x, y, m, s, f) : pass_of<T, 5, false>(x, y, m, s, f); break;
      case 8: m == 1 ? pass_of<T, 8, true>(x, y, m, s, f) : pass_of<T, 8, false>(x, y, m, s, f); break;
      default: general_pass<T>(x, y, pass.radix, m, s, f, numbers + pass.roots);
    }
    Number<T>* const other = x;
    x = y;
    y = other;
  }
  return x;
}

// ---- real arrays of even length 2 h as h complex numbers: the spectrum is split, or joined

// x: h numbers; y: h + 1 of the half spectrum, or all 2 h of the full one.
template <class T>
void split_spectrum(const Number<T>* x, Number<T>* y, int64_t h, const T* roots, bool full) {
  const typename LaneType<T>::V zero = {};
  y[0] = {x[0].re + x[0].im, zero};
  y[h] = {x[0].re - x[0].im, zero};
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const Number<T> a = x[k], b = x[h - k];
    const Number<T> even = {T(0.5) * (a.re + b.re), T(0.5) * (a.im - b.im)};
    const Number<T> odd = {T(0.5) * (a.im + b.im), T(0.5) * (b.re - a.re)};  // -i times the odd part
    const Number<T> turn = times(odd, roots[2 * k], roots[2 * k + 1]);
    y[k] = even + turn;
    const Number<T> other = even - turn;
    y[h - k] = {other.re, -other.im};
  }
  if (!full) return;
  for (int64_t k = 1; k < h; ++k) y[2 * h - k] = {y[k].re, -y[k].im};
}

// x: h + 1 numbers of a half spectrum; y: the h whose transform back holds the real array.
template <class T>
void join_spectrum(const Number<T>* x, Number<T>* y, int64_t h, const T* roots) {
  y[0] = {T(0.5) * (x[0].re + x[h].re), T(0.5) * (x[0].re - x[h].re)};
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const Number<T> a = x[k], b = x[h - k];
    const Number<T> even = {T(0.5) * (a.re + b.re), T(0.5) * (a.im - b.im)};
    const Number<T> turn = {T(0.5) * (a.re - b.re), T(0.5) * (a.im + b.im)};
    const Number<T> back = times(turn, roots[2 * k], -roots[2 * k + 1]);
    const Number<T> odd = {-back.im, back.re};
    y[k] = even + odd;
    const Number<T> other = even - odd;
    y[h - k] = {other.re, -other.im};
  }
}

// x: n / 2 + 1 numbers of a half spectrum, n odd; becomes all n with real and imaginary parts exchanged.
template <class T>
void mirror_spectrum(Number<T>* x, int64_t n) {
  const typename LaneType<T>::V zero = {};
  x[0] = {zero, x[0].re};
  for (int64_t k = 1; 2 * k < n; ++k) {
    const Number<T> a = x[k];
    x[k] = {a.im, a.re};
    x[n - k] = {-a.im, a.re};
  }
}

// ---- in and out.  `swap` is 1 where real and imaginary parts change places, else 0.

template <class T>
void load_rows(const FftGroup<T>& g, Number<T>* x, int64_t count, int swap) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  const T* rows[L];
  for (int i = 0; i < L; ++i) rows[i] = g.in + (i < g.lanes ? i : g.lanes - 1) * g.in_lane;
  V* const flat = reinterpret_cast<V*>(x);
  int64_t j = 0;
  for (; j + L / 2 <= count; j += L / 2) {
    V v[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) v[i] = load(rows[i] + 2 * j);
    transpose<L>(v);
#pragma GCC unroll 16
    for (int e = 0; e < L; ++e) flat[(2 * j + e) ^ swap] = v[e];
  }
  for (; j < count; ++j) {
    V re, im;
    for (int i = 0; i < L; ++i) re[i] = rows[i][2 * j], im[i] = rows[i][2 * j + 1];
    flat[(2 * j) ^ swap] = re;
    flat[(2 * j + 1) ^ swap] = im;
  }
}

template <class T>
void load_real(const FftGroup<T>& g, Number<T>* x, int64_t count) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  const T* rows[L];
  for (int i = 0; i < L; ++i) rows[i] = g.in + (i < g.lanes ? i : g.lanes - 1) * g.in_lane;
  int64_t j = 0;
  for (; j + L <= count; j += L) {
    V v[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) v[i] = load(rows[i] + j);
    transpose<L>(v);
#pragma GCC unroll 16
    for (int e = 0; e < L; ++e) x[j + e] = {v[e], V{}};
  }
  for (; j < count; ++j) {
    V re;
    for (int i = 0; i < L; ++i) re[i] = rows[i][j];
    x[j] = {re, V{}};
  }
}

template <class T>
void load_columns(const FftGroup<T>& g, Number<T>* x, int64_t count, int swap) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  using All = typename Count<L>::Type;
  V* flat = reinterpret_cast<V*>(x);
  const int64_t full = g.lanes / L, rest = g.lanes % L;
  T part[2 * L] = {};
  for (int64_t j = 0; j < count; ++j) {
    const T* from = g.in + j * g.in_element;
    for (int64_t w = 0; w < full; ++w, from += 2 * L, flat += 2) {
      const V a = load(from), b = load(from + L);
      flat[swap] = every_second<L>(a, b, All{});
      flat[1 - swap] = every_other<L>(a, b, All{});
    }
    if (rest == 0) continue;
    __builtin_memcpy(part, from, static_cast<size_t>(2 * rest) * sizeof(T));
    const V a = load(part), b = load(part + L);
    flat[swap] = every_second<L>(a, b, All{});
    flat[1 - swap] = every_other<L>(a, b, All{});
    flat += 2;
  }
}

template <class T>
void load_blocks(const FftGroup<T>& g, Number<T>* x, int64_t count) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  V* const flat = reinterpret_cast<V*>(x);
  for (int64_t j = 0; j < count; j += L) {
    for (int side = 0; side < 2; ++side) {
      V v[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) {
        v[i] = load(g.in + (i < g.lanes ? i : g.lanes - 1) * g.in_lane + 2 * j + side * L);
      }
      transpose<L>(v);
      // past the last number there is room for those of this block
#pragma GCC unroll 16
      for (int e = 0; e < L; ++e) flat[2 * (j + e) + side] = v[e];
    }
  }
}

template <class T>
struct Scales {
  T of[2];  // for the vector that is stored first and the second one
};

template <class T>
void store_rows(const FftGroup<T>& g, const Number<T>* x, int64_t count, int swap, Scales<T> scale) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  const V* const flat = reinterpret_cast<const V*>(x);
  int64_t j = 0;
  for (; j + L / 2 <= count; j += L / 2) {
    V v[L];
#pragma GCC unroll 16
    for (int e = 0; e < L; ++e) v[e] = flat[(2 * j + e) ^ swap] * scale.of[e & 1];
    transpose<L>(v);
    if (g.lanes == L) {
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) store(g.out + i * g.out_lane + 2 * j, v[i]);
    } else {
      for (int i = 0; i < g.lanes; ++i) store(g.out + i * g.out_lane + 2 * j, v[i]);
    }
  }
  for (; j < count; ++j) {
    const V re = flat[(2 * j) ^ swap] * scale.of[0], im = flat[(2 * j + 1) ^ swap] * scale.of[1];
    for (int i = 0; i < g.lanes; ++i) {
      g.out[i * g.out_lane + 2 * j] = re[i];
      g.out[i * g.out_lane + 2 * j + 1] = im[i];
    }
  }
}

// Only the real parts.
template <class T>
void store_real(const FftGroup<T>& g, const Number<T>* x, int64_t count, int swap, Scales<T> scale) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  const V* const flat = reinterpret_cast<const V*>(x);
  int64_t j = 0;
  for (; j + L <= count; j += L) {
    V v[L];
#pragma GCC unroll 16
    for (int e = 0; e < L; ++e) v[e] = flat[2 * (j + e) + swap] * scale.of[0];
    transpose<L>(v);
    for (int i = 0; i < g.lanes; ++i) store(g.out + i * g.out_lane + j, v[i]);
  }
  for (; j < count; ++j) {
    const V re = flat[2 * j + swap] * scale.of[0];
    for (int i = 0; i < g.lanes; ++i) g.out[i * g.out_lane + j] = re[i];
  }
}

template <class T>
void store_columns(const FftGroup<T>& g, const Number<T>* x, int64_t count, int swap, Scales<T> scale) {
  constexpr int L = kLanes<T>;
  using V = typename LaneType<T>::V;
  using All = typename Count<L>::Type;
  const V* flat = reinterpret_cast<const V*>(x);
  const int64_t full = g.lanes / L, rest = g.lanes % L;
  T part[2 * L];
  for (int64_t j = 0; j < count; ++j) {
    T* to = g.out + j * g.out_element;
    for (int64_t w = 0; w < full; ++w, to += 2 * L, flat += 2) {
      const V re = flat[swap] * scale.of[0], im = flat[1 - swap] * scale.of[1];
      store(to, in_turn<L, 0>(re, im, All{}));
      store(to + L, in_turn<L, L / 2>(re, im, All{}));
    }
    if (rest == 0) continue;
    const V re = flat[swap] * scale.of[0], im = flat[1 - swap] * scale.of[1];
    store(part, in_turn<L, 0>(re, im, All{}));
    store(part + L, in_turn<L, L / 2>(re, im, All{}));
    __builtin_memcpy(to, part, static_cast<size_t>(2 * rest) * sizeof(T));
    flat += 2;
  }
}

// Times g.factors, a column of blocks.
template <class T>
void store_blocks(const FftGroup<T>& g, const Number<T>* x, int64_t count) {
  constexpr int L = kLanes<T>;
  T* to = g.out;
  const T* f = g.factors;
  for (int64_t j = 0; j < count; ++j, to += g.out_element, f += 2 * L) {
    const typename LaneType<T>::V c = load(f), s = load(f + L);
    store(to, x[j].re * c - x[j].im * s);
    store(to + L, x[j].re * s + x[j].im * c);
  }
}

template <class T>
void run_group(const FftGroup<T>& g) {
  const int64_t n = g.plan->n;
  int64_t in_count = n, out_count = n;
  if (g.real == FftReal::ToHalf) out_count = n + 1;
  if (g.real == FftReal::ToFull) out_count = 2 * n;
  if (g.real == FftReal::FromHalf) in_count = n + 1;
  Number<T>* x = static_cast<Number<T>*>(g.scratch);
  Number<T>* y = x + fft_scratch_numbers(n, g.width, kLanes<T>);
  if (g.real == FftReal::Mirror) in_count = n / 2 + 1;
  if (g.stored != 0) out_count = g.stored;
  const int swap = g.inverse ? 1 : 0;
  const int in_swap = g.real == FftReal::FromHalf || g.real == FftReal::Mirror ? 0 : swap;
  switch (g.in_form) {
    case FftForm::Rows: load_rows(g, x, in_count, in_swap); break;
    case FftForm::Columns: load_columns(g, x, in_count, in_swap); break;
    case FftForm::Real: load_real(g, x, in_count); break;
    case FftForm::Blocks: load_blocks(g, x, in_count); break;
  }
  if (g.real == FftReal::FromHalf) {
    join_spectrum(x, y, n, g.half_roots);
    for (int64_t j = 0; j < n; ++j) x[j] = {y[j].im, y[j].re};
  }
  if (g.real == FftReal::Mirror) mirror_spectrum(x, n);
  Number<T>* done = run_passes(*g.plan, x, y, g.width);
  if (g.real == FftReal::ToHalf || g.real == FftReal::ToFull) {
    Number<T>* const other = done == x ? y : x;
    split_spectrum(done, other, n, g.half_roots, g.real == FftReal::ToFull);
    done = other;
  }
  const Scales<T> scale = {{g.scale, g.conjugated ? -g.scale : g.scale}};
  switch (g.out_form) {
    case FftForm::Rows: store_rows(g, done, out_count, swap, scale); break;
    case FftForm::Columns: store_columns(g, done, out_count, swap, scale); break;
    case FftForm::Real: store_real(g, done, out_count, swap, scale); break;
    case FftForm::Blocks: store_blocks(g, done, out_count); break;
  }
}

#undef JATO_FFT_INLINE
