#include <braid/data/sequences.hpp>

#include <algorithm>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/data/dataset.hpp>

#include "loader/position.hpp"

namespace braid::data {
namespace {

/// The names of the state of TokenStreams.
constexpr std::string_view kState[] = {"epoch", "batch", "length", "streams", "tokens"};

void check_sequence(const char* op, const Tensor& tokens) {
  if (tokens.dim() != 1)
    throw ShapeError(str(op, ": expected tokens in one dimension, got ", tokens.shape()));
  if (const DType t = tokens.dtype(); t != DType::int64 && t != DType::int32 && t != DType::uint8)
    throw DTypeError(str(op, ": expected tokens of int64, int32 or uint8, got ", t));
}
void check_at_least_one(const char* op, const char* what, std::int64_t value) {
  if (value < 1) throw ArgumentError(str(op, ": expected ", what, " >= 1, got ", value));
}

}  // namespace

TokenWindows::TokenWindows(const Tensor& tokens, std::int64_t length, std::int64_t stride)
    : length_(length), stride_(stride) {
  check_sequence("TokenWindows", tokens);
  if (!device_context(tokens.device()).host_memory)
    throw DeviceError(str("TokenWindows: expected tokens in host memory, got ", tokens.device()));
  check_at_least_one("TokenWindows", "length", length);
  check_at_least_one("TokenWindows", "stride", stride);
  if (length >= tokens.numel())
    throw ArgumentError(str("TokenWindows: expected more tokens than the length of a window, ",
                            length, ", got ", tokens.numel()));
  tokens_ = tokens.detach().contiguous();
  size_ = (tokens.numel() - length - 1) / stride + 1;
}

NextToken TokenWindows::get(std::int64_t index) const {
  check_index("TokenWindows", index, size_);
  const std::int64_t first = index * stride_;
  return {tokens_.narrow(0, first, length_), tokens_.narrow(0, first + 1, length_)};
}

NextToken TokenWindows::get_batch(std::span<const std::int64_t> indices) const {
  detail::check_indices("TokenWindows", indices, size_);
  const Shape shape{static_cast<std::int64_t>(indices.size()), length_};
  NextToken batch{make_tensor(shape, tokens_.dtype(), tokens_.device()),
                  make_tensor(shape, tokens_.dtype(), tokens_.device())};
  if (indices.empty()) return batch;
  const std::size_t item = size_of(tokens_.dtype()), row = static_cast<std::size_t>(length_) * item;
  const auto* from = static_cast<const std::byte*>(tokens_.id()->data());
  auto* input = static_cast<std::byte*>(batch.input.id()->data());
  auto* target = static_cast<std::byte*>(batch.target.id()->data());
  for (const std::int64_t i : indices) {
    const std::byte* first = from + static_cast<std::size_t>(i * stride_) * item;
    input = std::copy_n(first, row, input);
    target = std::copy_n(first + item, row, target);
  }
  return batch;
}

TokenStreams::TokenStreams(const Tensor& tokens, std::int64_t streams, std::int64_t length)
    : length_(length) {
  check_sequence("TokenStreams", tokens);
  check_at_least_one("TokenStreams", "streams", streams);
  check_at_least_one("TokenStreams", "length", length);
  const std::int64_t rows = tokens.numel() / streams;
  if (rows < 2)
    throw ArgumentError(str("TokenStreams: expected at least two tokens for each of ", streams,
                            " streams, got ", tokens.numel(), " in all"));
  const NoGrad guard;
  columns_ =
      tokens.narrow(0, 0, rows * streams).reshape({streams, rows}).transpose(0, 1).contiguous();
  size_ = (rows - 2) / length + 1;
}

void TokenStreams::set_epoch(std::int64_t epoch) {
  detail::check_epoch_of("TokenStreams: set_epoch", epoch, size_);
  if (epoch == epoch_ && first_ != 0) return;
  epoch_ = epoch;
  first_ = 0;
  at_ = {epoch, 0};
}

StateDict TokenStreams::state() const {
  // the end of an epoch is the beginning of the next one
  const Position at = at_.batch < size_ ? at_ : Position{at_.epoch + 1, 0};
  const std::int64_t values[] = {at.epoch, at.batch, length_, columns_.size(1), columns_.size(0)};
  return detail::numbers_state(kState, values);
}

void TokenStreams::load_state(std::span<const StateDict::value_type> dict) {
  const std::vector<std::int64_t> values = detail::load_numbers("TokenStreams", kState, dict);
  const std::int64_t own[] = {length_, columns_.size(1), columns_.size(0)};
  detail::check_epoch_of("TokenStreams: load_state", values[0], size_);
  if (values[1] != 0) {  // at the beginning of an epoch a run may go on with other windows
    for (std::size_t i = 0; i < std::size(own); ++i)
      if (values[i + 2] != own[i])
        throw ArgumentError(str("TokenStreams: load_state: expected ", kState[i + 2], " ", own[i],
                                " in the middle of an epoch, got ", values[i + 2]));
    if (values[1] < 0 || values[1] >= size_)
      throw ArgumentError(
          str("TokenStreams: load_state: expected a batch below ", size_, ", got ", values[1]));
  }
  epoch_ = values[0];
  first_ = values[1];
  at_ = {epoch_, first_};
}

NextToken TokenStreams::get(std::int64_t index) const {
  check_index("TokenStreams", index, size_);
  const std::int64_t first = index * length_,
                     count = std::min(length_, columns_.size(0) - 1 - first);
  return {columns_.narrow(0, first, count), columns_.narrow(0, first + 1, count)};
}

}  // namespace braid::data
