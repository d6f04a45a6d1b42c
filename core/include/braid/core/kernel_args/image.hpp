#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of pooling and resizing. Images are [n, c, height, width] of any strides (those with
// channels-last layout are processed along the channels). An Axis describes how each of the two
// dims is processed; [0] is the height, [1] the width.
#if defined(__CUDACC__)
#define BRAID_AXIS __host__ __device__ __forceinline__
#elif defined(__GNUC__)
// always inlined, so files compiled for one instruction set may include this
#define BRAID_AXIS inline __attribute__((always_inline))
#else
#define BRAID_AXIS inline
#endif

namespace braid {

/// The elements [first, last).
struct Span {
  std::int64_t first, last;
};

/// Which elements of the input each element of the output uses, along one dim.
struct Axis {
  enum class Kind : std::uint8_t {
    window,    ///< kernel elements, `dilation` apart, from o * stride - pad on
    adaptive,  ///< equal parts: [⌊o in / out⌋, ⌈(o + 1) in / out⌉)
    nearest,   ///< one element: ⌊o * scale⌋, or ⌊o in / out⌋ exactly where scale is 0
    linear     ///< the two elements around o * scale + shift, clamped to the image
  };
  Kind kind = Kind::window;
  std::int64_t in = 1, out = 1;
  std::int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
  /// divisor of the mean over a window; 0: the number of its elements inside the image; -1: that
  /// number and the zeros of the padding in the window
  std::int64_t divisor = 0;
  double scale = 0, shift = 0;
};

/// The position in the input of output element o, for a linear axis.
BRAID_AXIS double source_of(const Axis& a, std::int64_t o) {
  const double at = static_cast<double>(o) * a.scale + a.shift;
  return at > 0 ? at : 0;
}

/// The input elements that output element o uses; of a dilated window, every `dilation`-th of them.
BRAID_AXIS Span seen_by(const Axis& a, std::int64_t o) {
  switch (a.kind) {
    case Axis::Kind::window: {
      const std::int64_t from = o * a.stride - a.pad, to = from + (a.kernel - 1) * a.dilation + 1;
      return {from >= 0 ? from : from + (-from + a.dilation - 1) / a.dilation * a.dilation,
              to < a.in ? to : a.in};
    }
    case Axis::Kind::adaptive: return {o * a.in / a.out, ((o + 1) * a.in + a.out - 1) / a.out};
    case Axis::Kind::nearest: {
      const std::int64_t at = a.scale > 0
                                  ? static_cast<std::int64_t>(static_cast<double>(o) * a.scale)
                                  : o * a.in / a.out;
      const std::int64_t i = at < a.in ? at : a.in - 1;
      return {i, i + 1};
    }
    default: {
      const std::int64_t at = static_cast<std::int64_t>(source_of(a, o)),
                         i = at < a.in ? at : a.in - 1;
      return {i, i + 2 < a.in ? i + 2 : a.in};
    }
  }
}

/// The factor of element i of those that o uses, in a mean or an interpolation.
BRAID_AXIS double weight_of(const Axis& a, std::int64_t o, Span seen, std::int64_t i) {
  if (a.kind == Axis::Kind::nearest) return 1;
  if (a.kind == Axis::Kind::linear) {
    double second = source_of(a, o) - static_cast<double>(seen.first);
    second = seen.last - seen.first < 2 ? 0 : second < 1 ? second : 1;
    return i == seen.first ? 1 - second : second;
  }
  if (a.kind == Axis::Kind::adaptive || a.divisor == 0)
    return 1 / static_cast<double>(seen.last - seen.first);
  if (a.divisor > 0) return 1 / static_cast<double>(a.divisor);
  const std::int64_t from = o * a.stride - a.pad,
                     to = from + a.kernel < a.in + a.pad ? from + a.kernel : a.in + a.pad;
  return 1 / static_cast<double>(to - from);
}

/// A range that contains all output elements that use input element i. In a dilated window, it may
/// also contain others.
BRAID_AXIS Span that_see(const Axis& a, std::int64_t i) {
  if (a.kind == Axis::Kind::window) {
    const std::int64_t above = i + a.pad - (a.kernel - 1) * a.dilation,
                       last = (i + a.pad) / a.stride + 1;
    return {above <= 0 ? 0 : (above + a.stride - 1) / a.stride, last < a.out ? last : a.out};
  }
  if (a.kind == Axis::Kind::adaptive)
    return {i * a.out / a.in, ((i + 1) * a.out + a.in - 1) / a.in};
  // From an estimate, searches for the first output element whose last input is not before i, then
  // for the first one whose inputs begin after i.
  const double guess =
      a.scale > 0 ? (static_cast<double>(i) - a.shift) / a.scale
                  : static_cast<double>(i) * static_cast<double>(a.out) / static_cast<double>(a.in);
  std::int64_t first = !(guess > 0)                         ? 0
                       : guess < static_cast<double>(a.out) ? static_cast<std::int64_t>(guess)
                                                            : a.out;
  while (first > 0 && seen_by(a, first - 1).last > i) --first;
  while (first < a.out && seen_by(a, first).last <= i) ++first;
  std::int64_t last = first;
  while (last < a.out && seen_by(a, last).first <= i) ++last;
  return {first, last};
}

/// Strides in elements: n, c, height, width.
struct ImageStrides {
  std::int64_t of[4];
};

/// y [n, c, out] = for each output element, the largest of the elements of x [n, c, in] that it
/// uses; index (int32, strides as y) = the row-major index of that element in the image, of equal
/// ones the first. NaN counts as the largest; of several the last is taken. The axes are windows or
/// adaptive. Each output element uses at least one input element. Floating point.
struct MaxPoolArgs {
  DType dtype;
  const void* x;
  void* y;
  std::int32_t* index;
  std::int64_t n, c;
  Axis axis[2];
  ImageStrides in, out;  // of x; of y and index
};

/// dx [n, c, in] = for each element, Σ of dy over the output elements whose index refers to it, in
/// the order of the output elements.
struct MaxPoolBackwardArgs {
  DType dtype;
  const void* dy;
  const std::int32_t* index;
  void* dx;
  std::int64_t n, c;
  Axis axis[2];
  ImageStrides in, out;  // of dx; of dy and index
};

/// y [n, c, out] = x [n, c, in] at index: the same choice as a max pooling, from another image.
struct MaxPoolPickArgs {
  DType dtype;
  const void* x;
  const std::int32_t* index;
  void* y;
  std::int64_t n, c;
  Axis axis[2];
  ImageStrides in, out;  // of x; of y and index
};

/// y [n, c, out] = Σ weight * x over the elements of x [n, c, in] that each output element uses,
/// row by row: mean pooling and resizing. No dilation. transposed: computes the gradient. Then x is
/// [n, c, out] and y [n, c, in], and the sum is over the output elements that use an element.
/// Floating point.
struct ResampleArgs {
  DType dtype;
  bool transposed;
  const void* x;
  void* y;
  std::int64_t n, c;
  Axis axis[2];
  ImageStrides from, to;  // of x; of y
};

}  // namespace braid
