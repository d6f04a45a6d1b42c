#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <braid/nn/walks.hpp>

namespace braid::training {

/// The layers of a model with their parameters: `print(training::summary(model))` prints a table.
struct Summary {
  struct Layer {
    std::string path;  ///< empty: the model itself
    /// `Linear(in_features=5, out_features=2, bias=true)`
    std::string type;
    /// own parameters and buffers with their shapes: `weight [2, 5], bias [2]`
    std::string shapes;
    /// counts of its own numbers, without those of layers inside it; a tied parameter counts where
    /// it appears first
    std::int64_t parameters = 0, trained = 0, buffers = 0;
    std::int64_t bytes = 0;
  };
  /// every module that contains no other module or that has tensors of its own, in field order
  std::vector<Layer> layers;
  std::int64_t parameters = 0, trained = 0, buffers = 0, bytes = 0;
  friend std::ostream& operator<<(std::ostream& out, const Summary& summary);
};

namespace detail { [[nodiscard]] Summary summary_of(const tree::Flat& flat); }

template <class M> [[nodiscard]] Summary summary(const M& model) {
  check_tree<M>();
  return detail::summary_of(tree::flatten(model));
}

}  // namespace braid::training
