#include <algorithm>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/data/image.hpp>

namespace braid::data {

Tensor image_grid(const Tensor& images, std::int64_t columns) {
  if (images.dim() != 4 || images.numel() == 0)
    throw ShapeError(
        str("image_grid: expected [n, channels, height, width] with no size of 0, got ",
            images.shape()));
  if (columns < 1) throw ArgumentError(str("image_grid: expected columns >= 1, got ", columns));
  const NoGrad guard;
  const std::int64_t n = images.size(0), height = images.size(2), width = images.size(3);
  columns = std::min(columns, n);
  const std::int64_t rows = (n + columns - 1) / columns;
  const Tensor grid = zeros({images.size(1), rows * (height + 1) - 1, columns * (width + 1) - 1},
                            {.device = images.device(), .dtype = images.dtype()});
  for (std::int64_t i = 0; i < n; ++i)
    grid.narrow(1, i / columns * (height + 1), height)
        .narrow(2, i % columns * (width + 1), width)
        .copy_(images[i]);
  return grid;
}

}  // namespace braid::data
