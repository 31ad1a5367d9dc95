// Transforms of arrays: along the last axis (fft_rows.h), then along the others, each a stage of all its
// transforms.
//
// A group works on as many transforms as a vector has lanes.  Those are rows (the last axis), neighbouring columns
// (other axes), or parts of one long transform (fft_alone.h).
#include "fft.h"

#include <string>

#include "errors.h"
#include "fft_rows.h"

namespace jato {
namespace {

// Columns are taken in strips with so many numbers of a vector each: 64 KiB for an array.  Rows of an array are often a
// multiple of 4 KiB apart, so all pieces of a narrow strip would fall into the same cache lines.
constexpr int64_t kColumnNumbers = 1024;

enum class Kind : int64_t { Forward = 0, Back = 1, RealToHalf = 2, HalfToReal = 3 };

// Along an axis before the last: [outer, n, inner] complex, perhaps in place.
template <class T>
void transform_columns(const T* from, T* to, int64_t outer, int64_t inner, const Stage<T>& stage,
                       const Context& context) {
  const int64_t n = stage.n, lanes = lane_count<T>();
  const int64_t width = std::clamp(kColumnNumbers / n, int64_t{1}, (inner + lanes - 1) / lanes);
  const int64_t columns = width * lanes, blocks = (inner + columns - 1) / columns;
  const auto plan = fft_plan<T>(n);
  if (plan == nullptr) {
    const ChirpTransform<T> chirp(n, lanes);
    return for_each_row(outer * inner, context, [&](int64_t i) {
      const int64_t offset = 2 * (i / inner * n * inner + i % inner);
      chirp(from + offset, 2 * inner, to + offset, 2 * inner, stage, context);
    });
  }
  for_each_group(outer * blocks, n * width, context, [&](int64_t i) {
    const int64_t first = i % blocks * columns, offset = 2 * (i / blocks * n * inner + first);
    FftGroup<T> g{};
    g.width = 1;
    g.plan = plan.get();
    g.in = from + offset, g.out = to + offset;
    g.in_element = g.out_element = 2 * inner;
    g.lanes = std::min(columns, inner - first);
    g.width = (g.lanes + lanes - 1) / lanes;
    g.scale = stage.scale;
    g.in_form = g.out_form = FftForm::Columns;
    g.inverse = stage.inverse;
    run(g);
  });
}

// ---- all axes

template <class T>
void transform(const T* in, T* out, bool real, const int64_t* params, const Context& context) {
  const Kind kind = static_cast<Kind>(params[1]);
  const int64_t batch = params[2], rank = params[3];
  const int64_t* const lengths = params + 4;
  const int64_t n = lengths[rank - 1];
  int64_t points = n, outer = batch;
  for (int64_t i = 0; i + 1 < rank; ++i) points *= lengths[i], outer *= lengths[i];
  if (batch == 0) return;
  const bool back = kind == Kind::Back || kind == Kind::HalfToReal;
  const T scale = back ? static_cast<T>(1.0L / static_cast<long double>(points)) : T(1);
  const int64_t half = n / 2 + 1;
  const int64_t width = kind == Kind::RealToHalf || kind == Kind::HalfToReal ? half : n;  // of the spectrum

  // the axes before the last, in `data` [batch, lengths ..., width]
  const auto others = [&](const T* from, T* data, bool inverse) {
    int64_t before = batch, after = outer / batch * width;
    for (int64_t i = 0; i + 1 < rank; ++i) {
      after /= lengths[i];
      transform_columns(from, data, before, after, Stage<T>{lengths[i], T(1), inverse, false}, context);
      from = data;
      before *= lengths[i];
    }
  };

  if (kind == Kind::HalfToReal) {
    Ref<Block> block;
    if (rank > 1) {
      block = Pool::allocate(static_cast<size_t>(2 * outer * half) * sizeof(T));
      T* const between = static_cast<T*>(block->data());
      others(in, between, true);
      in = between;
    }
    return half_rows(Rows<T>{in, out, outer, 2 * half, n}, n, Stage<T>{n, scale, true, false}, context);
  }
  if (real) {
    const bool full = kind != Kind::RealToHalf;
    // exp(+ ...) of real numbers is the conjugate of exp(- ...) of them
    real_rows(Rows<T>{in, out, outer, n, 2 * width}, n, full, Stage<T>{n, scale, false, back}, context);
  } else {
    complex_rows(Rows<T>{in, out, outer, 2 * n, 2 * n}, Stage<T>{n, scale, back, false}, context);
  }
  others(out, out, back);
}

}  // namespace

void run_fft(void* const* buffers, const int64_t* params, Context& context) {
  const auto of = [&](auto zero, bool real) {
    using T = decltype(zero);
    transform(static_cast<const T*>(buffers[0]), static_cast<T*>(buffers[1]), real, params, context);
  };
  switch (static_cast<DType>(params[0])) {
    case DType::Float32: return of(float{}, true);
    case DType::Float64: return of(double{}, true);
    case DType::Complex64: return of(float{}, false);
    default: return of(double{}, false);
  }
}

void check_fft(const int64_t* params) {
  const auto require = [](bool good, const char* what, int64_t value) {
    if (!good) throw Error(ErrorKind::Value, std::string("fft: expected ") + what + ", got " + std::to_string(value));
  };
  const DType dtype = static_cast<DType>(params[0]);
  const bool real = dtype == DType::Float32 || dtype == DType::Float64;
  require(real || dtype == DType::Complex64 || dtype == DType::Complex128, "the code of a float or complex dtype",
          params[0]);
  require(params[1] >= 0 && params[1] <= 3, "a kind from 0 to 3", params[1]);
  require(params[1] < 2 || real == (params[1] == 2), "a kind that goes with the dtype", params[1]);
  require(params[2] >= 0, "a batch of at least 0", params[2]);
  require(params[3] >= 1 && params[3] <= kMaxFftRank, "1 to 4 axes", params[3]);
  for (int i = 0; i < kMaxFftRank; ++i) {
    require(params[4 + i] >= 1, "lengths of at least 1", params[4 + i]);
  }
}

}  // namespace jato
