#pragma once
#include <braid/core/tree.hpp>

namespace braid::data {

/// An image and its label, as an item or as a batch.
struct Labelled {
  Tensor image;  ///< item: [channels, height, width]
  Tensor label;  ///< item: 0-dim int64
  BRAID_FIELDS(image, label)
};

}  // namespace braid::data
