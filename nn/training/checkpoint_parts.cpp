// What the parts of a checkpoint share: the learning rates of an optimizer's state, and errors.
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/nn/training/checkpoint.hpp>

namespace braid::training::detail {

Tensor split_rates(std::span<const StateDict::value_type> dict, std::int64_t groups,
                   StateDict& rest) {
  rest = StateDict(std::vector<StateDict::value_type>(dict.begin(), dict.end()));
  const Tensor* const found = rest.find("lr");
  if (found == nullptr || found->dtype() != DType::float64 || found->numel() != groups)
    throw ArgumentError(str("Checkpoint: expected the optimizer's state to hold lr, ", groups,
                            " of float64, got ", found == nullptr ? "none" : "another tensor"));
  const Tensor rates = *found;
  for (std::int64_t i = 0; i < groups; ++i) {
    const double lr = rates.data<double>()[i];
    if (!(lr >= 0) || std::isinf(lr))
      throw ArgumentError(
          str("Checkpoint: expected learning rates >= 0 in the optimizer's state, got ", lr));
  }
  rest.erase("lr");
  return rates;
}

void nothing_to_save(const char* signature) {
  throw ArgumentError(str("Checkpoint: expected something to save in ",
                          ::braid::detail::short_type_name(signature),
                          ", got a tree without tensors"));
}

}  // namespace braid::training::detail
