#include <cmath>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/internal/state_fields.hpp>

namespace braid::optim::detail {

bool is_rate(double value) { return value >= 0 && !std::isinf(value); }
bool is_count(double value) { return value >= 0 && value < 0x1p53; }

LoadReport load_fields(std::span<const StateField> fields,
                       std::span<const StateDict::value_type> dict, const LoadOptions& options,
                       const char* signature) {
  const NoGrad guard;
  std::vector<Tensor> fresh;
  fresh.reserve(fields.size());
  tree::Flat flat;
  for (const StateField& field : fields) {
    fresh.push_back(field.tensor->detach().clone());
    flat.leaves.push_back({&fresh.back(), tree::Kind::buffer, tree::Name(field.name), -1});
  }
  LoadReport report = ::braid::detail::load_state(flat, dict, options, signature);
  for (std::size_t i = 0; i < fields.size(); ++i)
    for (const double value : fresh[i].to_vector<double>())
      if (!fields[i].fits(value))
        throw ArgumentError(str("load_state_dict: expected ", fields[i].name, " of ",
                                ::braid::detail::short_type_name(signature), " to be ",
                                fields[i].expected, ", got ", value));
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i].tensor->copy_(fresh[i]);
  return report;
}

}  // namespace braid::optim::detail
