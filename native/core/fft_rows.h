// Transforms along the last axis: complex rows, real rows to spectra, and half spectra back.
//
// Real rows of even length are transformed as complex ones of half the length, each by itself: a NaN, or
// large numbers, in one row do not reach another.
#pragma once
#include "fft_alone.h"

namespace jato {
namespace {  // included by fft.cpp only

// Rows of `in_row` and `out_row` elements of T.
template <class T>
struct Rows {
  const T* from;
  T* to;
  int64_t count, in_row, out_row;
};

template <class T>
void transform_rows(const Rows<T>& r, FftForm in, FftForm out, FftReal real, const Stage<T>& stage,
                    const Context& context, int64_t stored = 0) {
  const int64_t lanes = lane_count<T>();
  const auto plan = fft_plan<T>(stage.n);
  const bool halves = real != FftReal::None && real != FftReal::Mirror;
  const auto roots = halves ? half_roots<T>(2 * stage.n) : nullptr;
  for_each_group((r.count + lanes - 1) / lanes, stage.n, context, [&](int64_t i) {
    FftGroup<T> g{};
    g.width = 1;
    g.plan = plan.get();
    g.in = r.from + i * lanes * r.in_row, g.in_lane = r.in_row;
    g.out = r.to + i * lanes * r.out_row, g.out_lane = r.out_row;
    g.lanes = std::min(lanes, r.count - i * lanes);
    g.scale = stage.scale;
    g.in_form = in, g.out_form = out;
    g.real = real;
    g.stored = stored;
    g.inverse = stage.inverse;
    g.conjugated = stage.conjugated;
    g.half_roots = roots ? roots->data() : nullptr;
    run(g);
  });
}

template <class T>
void complex_rows(const Rows<T>& r, const Stage<T>& stage, const Context& context) {
  if (!alone(r.count, stage.n, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Rows, FftReal::None, stage, context);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    lone(r.from + i * r.in_row, r.to + i * r.out_row, stage, context);
  });
}

// The numbers k and h - k of a half spectrum from those of the complex transform of length h (fft_kernels.h
// has the same for lanes), for k in [begin, end), end at most h / 2 + 1 and begin at least 1.
template <class T>
void split_range(const T* z, T* out, int64_t h, const T* roots, T sign, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const T *a = z + 2 * k, *b = z + 2 * (h - k);
    const T even_re = T(0.5) * (a[0] + b[0]), even_im = T(0.5) * (a[1] - b[1]);
    const T odd_re = T(0.5) * (a[1] + b[1]), odd_im = T(0.5) * (b[0] - a[0]);
    const T c = roots[2 * k], s = roots[2 * k + 1];
    const T turn_re = odd_re * c - odd_im * s, turn_im = odd_re * s + odd_im * c;
    out[2 * k] = even_re + turn_re;
    out[2 * k + 1] = sign * (even_im + turn_im);
    out[2 * (h - k)] = even_re - turn_re;
    out[2 * (h - k) + 1] = sign * (turn_im - even_im);
  }
}

template <class T>
void join_range(const T* x, T* z, int64_t h, const T* roots, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    const T *a = x + 2 * k, *b = x + 2 * (h - k);
    const T even_re = T(0.5) * (a[0] + b[0]), even_im = T(0.5) * (a[1] - b[1]);
    const T turn_re = T(0.5) * (a[0] - b[0]), turn_im = T(0.5) * (a[1] + b[1]);
    const T c = roots[2 * k], s = -roots[2 * k + 1];
    const T odd_re = -(turn_re * s + turn_im * c), odd_im = turn_re * c - turn_im * s;
    z[2 * k] = even_re + odd_re;
    z[2 * k + 1] = even_im + odd_im;
    z[2 * (h - k)] = even_re - odd_re;
    z[2 * (h - k) + 1] = odd_im - even_im;
  }
}

template <class F>
void in_ranges(int64_t begin, int64_t end, F f) {
  constexpr int64_t kRange = 8192;
  if (end - begin <= kRange) return f(begin, end);
  parallel_for(end - begin, kRange, [&](int64_t b, int64_t e, int) { f(begin + b, begin + e); });
}

// Real rows of odd length, as complex ones.
template <class T>
void odd_rows(const Rows<T>& r, bool full, const Stage<T>& stage, const Context& context) {
  const int64_t n = stage.n, stored = full ? n : n / 2 + 1;
  if (!alone(r.count, n, lane_count<T>())) {
    return transform_rows(r, FftForm::Real, FftForm::Rows, FftReal::None, stage, context, stored);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(4 * n) * sizeof(T));
    T* const x = static_cast<T*>(block->data());
    for (int64_t j = 0; j < n; ++j) x[2 * j] = r.from[i * r.in_row + j], x[2 * j + 1] = 0;
    lone(x, x + 2 * n, stage, context);
    std::copy_n(x + 2 * n, 2 * stored, r.to + i * r.out_row);
  });
}

template <class T>
void odd_half_rows(const Rows<T>& r, const Stage<T>& stage, const Context& context) {
  const int64_t n = stage.n;
  if (!alone(r.count, n, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Real, FftReal::Mirror, stage, context);
  }
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(4 * n) * sizeof(T));
    T* const x = static_cast<T*>(block->data());
    const T* const from = r.from + i * r.in_row;
    x[0] = from[0], x[1] = 0;
    for (int64_t k = 1; 2 * k < n; ++k) {
      x[2 * k] = x[2 * (n - k)] = from[2 * k];
      x[2 * k + 1] = from[2 * k + 1];
      x[2 * (n - k) + 1] = -from[2 * k + 1];
    }
    lone(x, x + 2 * n, stage, context);
    for (int64_t j = 0; j < n; ++j) r.to[i * r.out_row + j] = x[2 * n + 2 * j];
  });
}

// Real rows of n to half spectra, or to full ones.
template <class T>
void real_rows(const Rows<T>& r, int64_t n, bool full, Stage<T> stage, const Context& context) {
  const int64_t h = n / 2;
  stage.n = n;
  if (n % 2 != 0) return odd_rows(r, full, stage, context);
  stage.n = h;
  if (!alone(r.count, h, lane_count<T>())) {
    const FftReal real = full ? FftReal::ToFull : FftReal::ToHalf;
    return transform_rows(r, FftForm::Rows, FftForm::Rows, real, stage, context);
  }
  const auto roots = half_roots<T>(n);
  const T sign = stage.conjugated ? T(-1) : T(1);
  stage.conjugated = false;
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(n) * sizeof(T));
    T* const z = static_cast<T*>(block->data());
    T* const out = r.to + i * r.out_row;
    lone(r.from + i * r.in_row, z, stage, context);
    out[0] = z[0] + z[1];
    out[n] = z[0] - z[1];
    out[1] = out[n + 1] = 0;
    in_ranges(1, h / 2 + 1, [&](int64_t begin, int64_t end) {
      split_range(z, out, h, roots->data(), sign, begin, end);
    });
    if (!full) return;
    in_ranges(1, h, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        out[2 * (n - k)] = out[2 * k];
        out[2 * (n - k) + 1] = -out[2 * k + 1];
      }
    });
  });
}

// Half spectra to real rows of n.
template <class T>
void half_rows(const Rows<T>& r, int64_t n, Stage<T> stage, const Context& context) {
  const int64_t h = n / 2;
  stage.inverse = true;
  stage.n = n;
  if (n % 2 != 0) return odd_half_rows(r, stage, context);
  stage.n = h;
  stage.scale *= 2;  // of n points; the complex transform has half as many
  if (!alone(r.count, h, lane_count<T>())) {
    return transform_rows(r, FftForm::Rows, FftForm::Rows, FftReal::FromHalf, stage, context);
  }
  const auto roots = half_roots<T>(n);
  const LoneTransform<T> lone(stage.n);
  for_each_row(r.count, context, [&](int64_t i) {
    const Ref<Block> block = Pool::allocate(static_cast<size_t>(n) * sizeof(T));
    T* const z = static_cast<T*>(block->data());
    const T* const x = r.from + i * r.in_row;
    z[0] = T(0.5) * (x[0] + x[n]);
    z[1] = T(0.5) * (x[0] - x[n]);
    in_ranges(1, h / 2 + 1, [&](int64_t begin, int64_t end) {
      join_range(x, z, h, roots->data(), begin, end);
    });
    lone(z, r.to + i * r.out_row, stage, context);
  });
}

}  // namespace
}  // namespace jato
