#pragma once
#include <string>
#include <vector>

#include <braid/core/ops/conv.hpp>
#include <braid/core/ops/pad.hpp>
#include <braid/core/ops/pool.hpp>
#include <braid/nn/losses.hpp>

// LibTorch's options of functions, which are built step by step. Most are the options of Braid's
// function of the same name, with a setter for each.
namespace braid {

// Constants that these options take.
inline constexpr Reduction kMean = Reduction::mean, kSum = Reduction::sum, kNone = Reduction::none;
inline constexpr PadMode kConstant = PadMode::constant, kReflect = PadMode::reflect,
                         kReplicate = PadMode::replicate, kCircular = PadMode::circular;
inline constexpr Interpolation kNearest = Interpolation::nearest, kLinear = Interpolation::linear,
                               kBilinear = Interpolation::bilinear;
/// The reduction of kl_div that is its option batch_mean.
struct BatchMean {};
inline constexpr BatchMean kBatchMean{};

namespace nn::functional {

// A struct `Self` with setters of the fields that its base has: `Self().stride(2)`.
#define BRAID_SETTER(Self, Type, name) \
  Self& name(const Type& value) {      \
    Base::name = value;                \
    return *this;                      \
  }
// A setter of a field of its own.
#define BRAID_OPTION(Self, Type, name, initial) \
  Type name##_ = initial;                       \
  Self& name(const Type& value) {               \
    name##_ = value;                            \
    return *this;                               \
  }

// `More`: setters that only the transposed ones have
#define BRAID_CONV(Name, Options, Size, Padding, More) \
  struct Name : Options {                              \
    using Base = Options;                              \
    Tensor bias_ = {};                                 \
    BRAID_SETTER(Name, Size, stride)                   \
    BRAID_SETTER(Name, Padding, padding)               \
    BRAID_SETTER(Name, Size, dilation)                 \
    BRAID_SETTER(Name, std::int64_t, groups)           \
    More Name& bias(const Tensor& value) {             \
      bias_ = value;                                   \
      return *this;                                    \
    }                                                  \
  };
#define BRAID_CONV_TRANSPOSE(Name, Options, Size) \
  BRAID_CONV(Name, Options, Size, Size, BRAID_SETTER(Name, Size, output_padding))
BRAID_CONV(Conv1dFuncOptions, Conv1dOptions, std::int64_t, ConvPadding, )
BRAID_CONV(Conv2dFuncOptions, Conv2dOptions, Size2, ConvPadding, )
BRAID_CONV_TRANSPOSE(ConvTranspose1dFuncOptions, ConvTranspose1dOptions, std::int64_t)
BRAID_CONV_TRANSPOSE(ConvTranspose2dFuncOptions, ConvTranspose2dOptions, Size2)
#undef BRAID_CONV_TRANSPOSE
#undef BRAID_CONV

#define BRAID_POOL(Name, Options, Size)             \
  struct Name : Options {                           \
    using Base = Options;                           \
    Size kernel;                                    \
    Name(Size kernel_size) : kernel(kernel_size) {} \
    BRAID_SETTER(Name, Size, stride)                \
    BRAID_SETTER(Name, Size, padding)               \
    BRAID_SETTER(Name, bool, ceil_mode)
BRAID_POOL(MaxPool1dFuncOptions, MaxPool1dOptions, std::int64_t)
BRAID_SETTER(MaxPool1dFuncOptions, std::int64_t, dilation)
};
BRAID_POOL(MaxPool2dFuncOptions, MaxPool2dOptions, Size2)
BRAID_SETTER(MaxPool2dFuncOptions, Size2, dilation)
};
BRAID_POOL(AvgPool1dFuncOptions, AvgPool1dOptions, std::int64_t)
BRAID_SETTER(AvgPool1dFuncOptions, bool, count_include_pad)
}
;
BRAID_POOL(AvgPool2dFuncOptions, AvgPool2dOptions, Size2)
BRAID_SETTER(AvgPool2dFuncOptions, bool, count_include_pad)
BRAID_SETTER(AvgPool2dFuncOptions, std::int64_t, divisor_override)
}
;
#undef BRAID_POOL
// Only a size: these convert to it.
struct AdaptiveAvgPool1dFuncOptions {
  std::int64_t size;
  AdaptiveAvgPool1dFuncOptions(std::int64_t output_size) : size(output_size) {}
  operator std::int64_t() const { return size; }
};
struct AdaptiveAvgPool2dFuncOptions {
  Size2 size;
  AdaptiveAvgPool2dFuncOptions(Size2 output_size) : size(output_size) {}
  operator Size2() const { return size; }
};
using AdaptiveMaxPool2dFuncOptions = AdaptiveAvgPool2dFuncOptions;

struct InterpolateFuncOptions : InterpolateOptions {
  using Base = InterpolateOptions;
  /// One size, or a height and a width. Throws ShapeError for another number of them.
  InterpolateFuncOptions& size(const std::vector<std::int64_t>& sizes);
  InterpolateFuncOptions& scale_factor(const std::vector<double>& factors);
  BRAID_SETTER(InterpolateFuncOptions, Interpolation, mode)
  BRAID_SETTER(InterpolateFuncOptions, bool, align_corners)
  BRAID_SETTER(InterpolateFuncOptions, bool, recompute_scale_factor)
};

struct PadFuncOptions {
  IntList sizes;
  PadFuncOptions(const IntList& pad) : sizes(pad) {}
  BRAID_OPTION(PadFuncOptions, PadMode, mode, PadMode::constant)
  BRAID_OPTION(PadFuncOptions, double, value, 0)
};

struct PixelShuffleFuncOptions {
  std::int64_t upscale_factor;
  explicit PixelShuffleFuncOptions(std::int64_t factor) : upscale_factor(factor) {}
};
struct PixelUnshuffleFuncOptions {
  std::int64_t downscale_factor;
  explicit PixelUnshuffleFuncOptions(std::int64_t factor) : downscale_factor(factor) {}
};

#define BRAID_LOSS_OPTIONS(Name, Options) \
  struct Name : Options {                 \
    using Base = Options;                 \
    BRAID_SETTER(Name, Reduction, reduction)
BRAID_LOSS_OPTIONS(CrossEntropyFuncOptions, CrossEntropyOptions)
BRAID_SETTER(CrossEntropyFuncOptions, Tensor, weight)
BRAID_SETTER(CrossEntropyFuncOptions, std::int64_t, ignore_index)
BRAID_SETTER(CrossEntropyFuncOptions, double, label_smoothing)
}
;
BRAID_LOSS_OPTIONS(NLLLossFuncOptions, NllOptions)
BRAID_SETTER(NLLLossFuncOptions, Tensor, weight)
BRAID_SETTER(NLLLossFuncOptions, std::int64_t, ignore_index)
}
;
BRAID_LOSS_OPTIONS(BinaryCrossEntropyFuncOptions, BceOptions)
BRAID_SETTER(BinaryCrossEntropyFuncOptions, Tensor, weight)
}
;
BRAID_LOSS_OPTIONS(BinaryCrossEntropyWithLogitsFuncOptions, BceWithLogitsOptions)
BRAID_SETTER(BinaryCrossEntropyWithLogitsFuncOptions, Tensor, weight)
BRAID_SETTER(BinaryCrossEntropyWithLogitsFuncOptions, Tensor, pos_weight)
}
;
struct KLDivFuncOptions : KlDivOptions {
  using Base = KlDivOptions;
  KLDivFuncOptions& reduction(Reduction value) {
    Base::reduction = value;
    batch_mean = false;
    return *this;
  }
  KLDivFuncOptions& reduction(BatchMean) {
    batch_mean = true;
    return *this;
  }
  BRAID_SETTER(KLDivFuncOptions, bool, log_target)
};
BRAID_LOSS_OPTIONS(PoissonNLLLossFuncOptions, PoissonNllOptions)
BRAID_SETTER(PoissonNLLLossFuncOptions, bool, log_input)
BRAID_SETTER(PoissonNLLLossFuncOptions, bool, full)
BRAID_SETTER(PoissonNLLLossFuncOptions, double, eps)
}
;
BRAID_LOSS_OPTIONS(SmoothL1LossFuncOptions, SmoothL1Options)
BRAID_SETTER(SmoothL1LossFuncOptions, double, beta)
}
;
BRAID_LOSS_OPTIONS(HuberLossFuncOptions, HuberOptions)
BRAID_SETTER(HuberLossFuncOptions, double, delta)
}
;
BRAID_LOSS_OPTIONS(HingeEmbeddingLossFuncOptions, HingeEmbeddingOptions)
BRAID_SETTER(HingeEmbeddingLossFuncOptions, double, margin)
}
;
BRAID_LOSS_OPTIONS(CosineEmbeddingLossFuncOptions, CosineEmbeddingOptions)
BRAID_SETTER(CosineEmbeddingLossFuncOptions, double, margin)
}
;
BRAID_LOSS_OPTIONS(MarginRankingLossFuncOptions, MarginRankingOptions)
BRAID_SETTER(MarginRankingLossFuncOptions, double, margin)
}
;
BRAID_LOSS_OPTIONS(TripletMarginLossFuncOptions, TripletMarginOptions)
BRAID_SETTER(TripletMarginLossFuncOptions, double, margin)
BRAID_SETTER(TripletMarginLossFuncOptions, double, eps)
BRAID_SETTER(TripletMarginLossFuncOptions, bool, swap)
}
;
#undef BRAID_LOSS_OPTIONS
/// Losses whose only option is the reduction.
struct ReductionFuncOptions {
  Reduction value = Reduction::mean;
  ReductionFuncOptions() = default;
  ReductionFuncOptions(Reduction reduction) : value(reduction) {}
  ReductionFuncOptions& reduction(Reduction reduction) {
    value = reduction;
    return *this;
  }
  operator Reduction() const { return value; }
};
using L1LossFuncOptions = ReductionFuncOptions;
using MSELossFuncOptions = ReductionFuncOptions;
using SoftMarginLossFuncOptions = ReductionFuncOptions;

struct BatchNormFuncOptions {
  BRAID_OPTION(BatchNormFuncOptions, Tensor, weight, {})
  BRAID_OPTION(BatchNormFuncOptions, Tensor, bias, {})
  BRAID_OPTION(BatchNormFuncOptions, bool, training, false)
  BRAID_OPTION(BatchNormFuncOptions, double, momentum, 0.1)
  BRAID_OPTION(BatchNormFuncOptions, double, eps, 1e-5)
};
struct GroupNormFuncOptions {
  std::int64_t num_groups;
  GroupNormFuncOptions(std::int64_t groups) : num_groups(groups) {}
  BRAID_OPTION(GroupNormFuncOptions, Tensor, weight, {})
  BRAID_OPTION(GroupNormFuncOptions, Tensor, bias, {})
  BRAID_OPTION(GroupNormFuncOptions, double, eps, 1e-5)
};
struct LayerNormFuncOptions {
  Shape normalized_shape;
  LayerNormFuncOptions(const std::vector<std::int64_t>& shape) : normalized_shape(shape) {}
  BRAID_OPTION(LayerNormFuncOptions, Tensor, weight, {})
  BRAID_OPTION(LayerNormFuncOptions, Tensor, bias, {})
  BRAID_OPTION(LayerNormFuncOptions, double, eps, 1e-5)
};
struct NormalizeFuncOptions {
  BRAID_OPTION(NormalizeFuncOptions, double, p, 2)
  BRAID_OPTION(NormalizeFuncOptions, std::int64_t, dim, 1)
  BRAID_OPTION(NormalizeFuncOptions, double, eps, 1e-12)
};
struct CosineSimilarityFuncOptions {
  BRAID_OPTION(CosineSimilarityFuncOptions, std::int64_t, dim, 1)
  BRAID_OPTION(CosineSimilarityFuncOptions, double, eps, 1e-8)
};
/// As in LibTorch, dropout of these options is for training unless told otherwise.
struct DropoutFuncOptions {
  BRAID_OPTION(DropoutFuncOptions, double, p, 0.5)
  BRAID_OPTION(DropoutFuncOptions, bool, training, true)
};
using Dropout2dFuncOptions = DropoutFuncOptions;

struct SoftmaxFuncOptions {
  std::int64_t dim;
  explicit SoftmaxFuncOptions(std::int64_t along) : dim(along) {}
};
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
using SoftminFuncOptions = SoftmaxFuncOptions;
struct GELUFuncOptions {
  BRAID_OPTION(GELUFuncOptions, std::string, approximate, "none")
};
struct ThresholdFuncOptions {
  double threshold, value;
  ThresholdFuncOptions(double limit, double below) : threshold(limit), value(below) {}
};
struct ReLUFuncOptions {
  BRAID_OPTION(ReLUFuncOptions, bool, inplace, false)
};
struct ELUFuncOptions {
  BRAID_OPTION(ELUFuncOptions, double, alpha, 1)
  BRAID_OPTION(ELUFuncOptions, bool, inplace, false)
};
using CELUFuncOptions = ELUFuncOptions;
struct LeakyReLUFuncOptions {
  BRAID_OPTION(LeakyReLUFuncOptions, double, negative_slope, 0.01)
  BRAID_OPTION(LeakyReLUFuncOptions, bool, inplace, false)
};
struct HardtanhFuncOptions {
  BRAID_OPTION(HardtanhFuncOptions, double, min_val, -1)
  BRAID_OPTION(HardtanhFuncOptions, double, max_val, 1)
  BRAID_OPTION(HardtanhFuncOptions, bool, inplace, false)
};
struct SoftplusFuncOptions {
  BRAID_OPTION(SoftplusFuncOptions, double, beta, 1)
  BRAID_OPTION(SoftplusFuncOptions, double, threshold, 20)
};
#undef BRAID_SETTER
#undef BRAID_OPTION

}  // namespace nn::functional
}  // namespace braid
