#pragma once
#include <braid/core/kernel_args/image.hpp>

#include "cuda/device/loop.cuh"

// Maps threads to the elements of an image result: neighbouring threads have neighbours in memory.
namespace braid::cuda {

struct ImagePlan {
  // sizes, fastest first: (c, w, h) if the result is channels last, else (w, h, c)
  Divider fast, middle, slow;
  bool channels_last, narrow;
  std::int64_t count;
  ImagePlan(std::int64_t n, std::int64_t c, std::int64_t height, std::int64_t width,
            const ImageStrides& to)
      : fast(to.of[1] == 1 ? c : width),
        middle(to.of[1] == 1 ? width : height),
        slow(to.of[1] == 1 ? height : c),
        channels_last(to.of[1] == 1),
        narrow(n * c * height * width < std::int64_t{1} << 31),
        count(n * c * height * width) {}
};

struct ImagePlace {
  std::int64_t n, c, h, w;
  [[nodiscard]] BRAID_DEVICE std::int64_t of(const ImageStrides& s) const {
    return n * s.of[0] + c * s.of[1] + h * s.of[2] + w * s.of[3];
  }
};
/// The position of element e of a result.
BRAID_DEVICE ImagePlace place_of(const ImagePlan& p, std::int64_t e) {
  const std::int64_t a = p.fast.divide(e, p.narrow), b = p.middle.divide(a, p.narrow),
                     n = p.slow.divide(b, p.narrow);
  const std::int64_t fast = e - a * p.fast.divisor, middle = a - b * p.middle.divisor,
                     slow = b - n * p.slow.divisor;
  return p.channels_last ? ImagePlace{n, fast, slow, middle} : ImagePlace{n, slow, middle, fast};
}
/// The offset of channel c of image n.
BRAID_DEVICE std::int64_t plane_of(const ImageStrides& s, const ImagePlace& p) {
  return p.n * s.of[0] + p.c * s.of[1];
}

}  // namespace braid::cuda
