#include "primitives/pieces.hpp"

#include <braid/core/autograd.hpp>

#include "copies.hpp"
#include "primitives/copy_streams.hpp"
#include "primitives/views.hpp"
#include "workers.hpp"

namespace braid::parallel {
namespace {

std::vector<std::int64_t> starts(const Pieces& pieces) {
  std::vector<std::int64_t> starts;
  std::int64_t at = 0;
  for (const std::int64_t size : pieces.sizes) {
    starts.push_back(at);
    at += size;
  }
  return starts;
}

}  // namespace

std::vector<Tensor> cut(const Tensor& x, const Pieces& pieces, const Traced& traced) {
  std::vector<Tensor> parts(pieces.sizes.size());
  {
    const NoGrad guard;  // recorded below, as one op
    const std::vector<std::int64_t> start = starts(pieces);
    for_each_device(pieces.devices, bytes_of(x), [&](std::size_t i) {
      Tensor part = pieces.scalars ? x.select(pieces.dim, start[i])
                                   : x.narrow(pieces.dim, start[i], pieces.sizes[i]);
      trace::Span span(traced.name, traced.phase, pieces.devices[i], static_cast<std::int32_t>(i));
      if (pieces.devices[i] != x.device()) span.add_bytes(bytes_of(part));
      parts[i] = copy_in_background(part, pieces.devices[i]);
      if (pieces.separate && parts[i].storage() == x.storage()) parts[i] = parts[i].clone();
    });
  }
  if (needs_grad({x})) {
    record_many("scatter", {&x, 1}, parts, x.device(),
                [pieces, shape = x.shape(), dtype = x.dtype(),
                 device = x.device()](std::span<const Tensor> dys) {
                  return Grads{join(dys, pieces, shape, dtype, device,
                                    {"scatter backward", phase::scatter})};
                });
  }
  return parts;
}

Tensor join(std::span<const Tensor> parts, const Pieces& pieces, const Shape& shape, DType dtype,
            Device device, const Traced& traced) {
  Tensor whole = make_tensor(shape, dtype, device);
  {
    const NoGrad guard;
    trace::Span all(traced.name, traced.phase, device);
    all.add_kept_bytes(bytes_of(whole));
    const std::vector<std::int64_t> start = starts(pieces);
    for_each_device(pieces.devices, bytes_of(whole), [&](std::size_t i) {
      const Tensor place = pieces.scalars ? whole.select(pieces.dim, start[i])
                                          : whole.narrow(pieces.dim, start[i], pieces.sizes[i]);
      trace::Span span(traced.name, traced.phase, pieces.devices[i], static_cast<std::int32_t>(i));
      span.add_bytes(bytes_of(place));
      if (!parts[i].defined()) place.zero_();
      else if (place.is_contiguous() && parts[i].is_contiguous())
        copy_flat(place.id()->data(), device, parts[i].id()->data(), parts[i].device(),
                  bytes_of(place));
      else place.copy_(parts[i]);
    });
  }
  bool needed = false;
  for (const Tensor& part : parts) needed = needed || needs_grad({part});
  if (!needed) return whole;
  record_many("gather", parts, {&whole, 1}, device, [pieces](std::span<const Tensor> dys) {
    return Grads(cut(dys[0], pieces, {"gather backward", phase::gather}));
  });
  return whole;
}

}  // namespace braid::parallel
