#include <braid/core/error.hpp>
#include <braid/nn/pad.hpp>

#include "layers/call.hpp"

namespace braid::nn::detail {

Pad::Pad(const char* name, int dims, PadMode how, const IntList& sizes, double with)
    : padding(sizes), mode(how), value(with) {
  const auto count = static_cast<std::size_t>(2 * dims);
  if (sizes.size() != 1 && sizes.size() != count)
    throw ArgumentError(str(name, ": expected 1 or ", count, " numbers, got ", sizes));
  if (sizes.size() == 1) padding = std::vector<std::int64_t>(count, sizes[0]);
}
Tensor Pad::forward(const Tensor& x) const { return pad(x, padding, mode, value); }
BRAID_LAYER_CALL(Tensor, Pad, (const Tensor& x), (x))
std::string Pad::extra() const {
  return value == 0 ? str("padding=", padding) : str("padding=", padding, ", value=", value);
}

}  // namespace braid::nn::detail
