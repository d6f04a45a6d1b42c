#pragma once
#include <braid/core/internal/kernel_args/reduce.hpp>

#include "cuda/device/group.cuh"
#include "cuda/device/loop.cuh"

// The loaders of reductions of a tensor (see reduce.cuh).
namespace braid::cuda {

/// The offsets of a tensor's elements: outputs are the elements of `keep` (operand 1 of the op's
/// loop), the reduced elements those of `over`.
struct Places {
  DeviceLoop<1> keep, over;
  bool packs, beside_packs;  // packs of an output's elements, of neighbouring outputs' elements
  BRAID_DEVICE std::int64_t base(std::int64_t e) const { return offsets_of(keep, e).at[0]; }
  BRAID_DEVICE std::int64_t offset(std::int64_t j) const { return offsets_of(over, j).at[0]; }
};
/// A pack is `pack` elements of `bytes` each, which are read in one access.
inline Places places_of(const ReduceArgs& args, int pack, std::size_t bytes) {
  const std::size_t all = static_cast<std::size_t>(pack) * bytes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(args.x) % (all < 16 ? all : 16) == 0;
  const auto whole = [&](const Loop& loop, int dims) {  // strides of the outer dims
    for (int d = 0; d < dims; ++d)
      if (loop.stride[1][d] % pack != 0) return false;
    return true;
  };
  const auto inner = [&](const Loop& loop) {
    return loop.rank > 0 && loop.stride[1][loop.rank - 1] == 1 &&
           loop.size[loop.rank - 1] % pack == 0;
  };
  const Loop &keep = args.keep, &over = args.over;
  const bool row = over.rank == 1 && over.stride[1][0] == 1;  // of any length
  return {make_loop<1>(keep, 1), make_loop<1>(over, 1), aligned && row && whole(keep, keep.rank),
          aligned && inner(keep) && whole(keep, keep.rank - 1) && whole(over, over.rank)};
}

/// Reads elements of the floating dtype of E, as V.
template <class E, class V> struct ReadFloating {
  using Value = V;
  static constexpr int kPack = kWidest<typename E::T>;
  const typename E::T* x;
  explicit ReadFloating(const ReduceArgs& args) : x(static_cast<const typename E::T*>(args.x)) {}
  BRAID_DEVICE V at(std::int64_t i) const { return static_cast<V>(E::load(x[i])); }
  BRAID_DEVICE void pack(std::int64_t i, V (&to)[kPack]) const {
    const auto from = load_pack<kPack>(x + i);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = static_cast<V>(E::load(from.v[v]));
  }
};

/// Reads integers and bool of any size, selected at run time, so that one set of kernels serves
/// all.
template <class V> struct ReadIntegers {
  using Value = V;
  static constexpr int kPack = 4;
  const void* x;
  DType dtype;
  explicit ReadIntegers(const ReduceArgs& args) : x(args.x), dtype(args.dtype) {}
  BRAID_DEVICE V at(std::int64_t i) const {
    if (dtype == DType::int64) return static_cast<V>(static_cast<const std::int64_t*>(x)[i]);
    if (dtype == DType::int32) return static_cast<V>(static_cast<const std::int32_t*>(x)[i]);
    return static_cast<V>(static_cast<const std::uint8_t*>(x)[i]);
  }
  BRAID_DEVICE void pack(std::int64_t i, V (&to)[kPack]) const {
    if (dtype == DType::int64) pack_of<std::int64_t>(i, to);
    else if (dtype == DType::int32) pack_of<std::int32_t>(i, to);
    else pack_of<std::uint8_t>(i, to);
  }

 private:
  template <class T> BRAID_DEVICE void pack_of(std::int64_t i, V (&to)[kPack]) const {
    const auto from = load_pack<kPack>(static_cast<const T*>(x) + i);
#pragma unroll
    for (int v = 0; v < kPack; ++v) to[v] = static_cast<V>(from.v[v]);
  }
};

/// Loads the elements of a tensor by a reader R.
template <class R> struct LoadBy : Places {
  using V = typename R::Value;
  static constexpr int kPack = R::kPack;
  static constexpr bool kSideBySide = true;
  R read;
  explicit LoadBy(const ReduceArgs& args)
      : Places(places_of(args, kPack, size_of(args.dtype))), read(args) {}
  BRAID_DEVICE V at(std::int64_t base, std::int64_t j) const { return read.at(base + offset(j)); }
  BRAID_DEVICE void pack(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read.pack(base + j, to);
  }
  BRAID_DEVICE void beside(std::int64_t base, std::int64_t j, V (&to)[kPack]) const {
    read.pack(base + offset(j), to);
  }
};
template <class E, class V> using LoadTensor = LoadBy<ReadFloating<E, V>>;
template <class V> using LoadIntegers = LoadBy<ReadIntegers<V>>;

/// True if neighbouring outputs are closer in memory than neighbouring elements.
inline bool by_columns(const ReduceArgs& args) {
  const auto step = [](const Loop& loop) {
    const std::int64_t stride = loop.rank == 0 ? INT64_MAX : loop.stride[1][loop.rank - 1];
    return stride < 0 ? -stride : stride;
  };
  return args.keep.n >= 8 && step(args.keep) != 0 && step(args.keep) < step(args.over);
}

}  // namespace braid::cuda
