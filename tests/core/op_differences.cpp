// The deliberate differences from PyTorch, and the cases that PyTorch has no call for.
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "op_cases.hpp"

namespace braid::test {
namespace {

struct OfOp {
  const char *ops, *cases, *where, *reason;  // cases: a regular expression, found in the variant
  bool always = true;
};

const char* const kSome = "^(?!.*empty)";  // all cases but those without elements
const char* const kSignOfNan = "the sign of NaN is NaN; PyTorch says 0";
const char* const kProducts = "products of the others; PyTorch divides by the element";
const char* const kWeightOfNorm =
    "an infinite weight; PyTorch's two parts are infinities of both signs";
const char* const kHidden = "what a query does not see counts for nothing; PyTorch adds 0 times it";
const char* const kOwnShape =
    "the product has a shape of its own: the gradient is summed over the broadcast before it meets "
    "the other factor";
// the samples whose special value is in the weight
const char* const kInWeight =
    "(^nan middle|^inf (first|last)|^-inf (middle|last)): (output|gradient of x0)";
const char* const kPadding =
    "an infinity or NaN beside the padding: one of us leaves the padding out, the other adds 0 "
    "times it";

// Differences for infinities and NaN; all finite results agree.
const OfOp kSpecialValues[] = {
    {"hardtanh", "^$|-0.5", "nan.*gradient",
     "a NaN is neither below nor above: the gradient passes; PyTorch's vectors of float64 drop it, "
     "and nothing else does"},
    {"relu6", "^$", "nan.*gradient",
     "a NaN is neither below nor above: the gradient passes; PyTorch's vectors of float64 drop it, "
     "and nothing else does"},
    {"softsign", kSome, "inf.*gradient", "flat at infinity; PyTorch's is NaN"},
    {"mish", kSome, "^inf.*gradient", "1 at infinity; PyTorch's is NaN"},
    {"addcmul", "broadcast", "^inf middle: gradient of x1", kOwnShape},
    {"addcmul", "empty", "(nan|-inf) first: gradient of x2|^inf first: gradient of x1", kOwnShape},
    {"addcdiv", "empty", "(nan|-inf) first: gradient of x2", kOwnShape},
    {"cumprod", "^(last|first|middle) dim|vector|integers", "(nan|inf).*gradient", kProducts},
    {"prod", "^(all|last dim|first dim|two dims)", "(nan|inf).*gradient", kProducts},
    {"var_mean", "", "inf (first|middle): output 1",
     "the mean of an infinity is one; PyTorch's running mean is NaN"},
    {"norm", "p = (1|inf|-inf)", "nan.*gradient", kSignOfNan},
    {"l1_loss", kSome, "nan.*gradient", kSignOfNan},
    {"smooth_l1_loss", "beta 0, (?!.*empty)", "nan.*gradient", kSignOfNan},
    {"margin_ranking_loss", "^(none|mean|sum)(, three dims)?$", "nan last: output", kSignOfNan},
    {"soft_margin_loss", kSome, "inf (middle|last): gradient of x0|^inf first: gradient of x0",
     "the slope of log(1 + e^x) at infinity is 1; PyTorch's is NaN"},
    {"binary_cross_entropy_with_logits", "weights, (none, one element|mean, scalar)",
     "^inf first: gradient of x0", "an infinite target; PyTorch adds infinities of both signs"},
    {"cross_entropy", "all options, two dims more", "nan.*gradient",
     "an ignored row gets the gradient 0, whatever is in it"},
    {"layer_norm", "last dim|two dims", "-inf last: gradient of x0", kWeightOfNorm},
    {"group_norm", "sequence|channels alone", "^inf first: output|-inf last: output",
     kWeightOfNorm},
    {"group_norm batch_norm", "image", "^inf (first|last): output|-inf middle: output",
     kWeightOfNorm},
    {"group_norm", "sequence", "-inf last: gradient of x0", kWeightOfNorm},
    {"batch_norm", "rows", "^inf first: output|-inf last: output", kWeightOfNorm},
    {"scaled_dot_product_attention", "^causal$",
     "nan first: (output|gradient of x[12])|nan middle: output",
     "a row of scores with a NaN is NaN; PyTorch takes it for one without keys"},
    {"scaled_dot_product_attention", "causal, more keys",
     "nan middle: output|inf last: (output|gradient)", kHidden},
    {"scaled_dot_product_attention", "groups, one key head, causal",
     "nan middle: output|-inf last: (output|gradient)", kHidden},
    {"conv1d conv2d conv_transpose1d conv_transpose2d", kSome, kInWeight, kPadding, false},
    {"conv_transpose1d conv_transpose2d", "padding", "^nan first: gradient of x1", kPadding, false},
    {"interpolate", "from one element", "inf (first|middle): output",
     "between two infinities is one; PyTorch has 0 times it too"},
    {"interpolate", "^linear, corners", "inf last: output",
     "between two infinities is one; PyTorch has 0 times it too"},
};

const char* const kWhole = "whole numbers become float32 here";
const char* const kEmpty = "nothing in, nothing out; PyTorch refuses it";
const OfOp kRefusals[] = {
    {"gelu silu softplus elu celu selu leaky_relu mish logsigmoid", "",
     "^(integers|uint8|bool): refused", kWhole},
    {"hardsigmoid hardswish", "whole numbers", "^(integers|uint8|bool): refused", kWhole},
    {"softsign", "", "^bool: refused", kWhole},
    {"relu6", "whole numbers", "^bool: refused", kWhole},
    {"hardtanh", "", "^bool: refused", kWhole},
    {"hardtanh", "-0.5", "^(integers|uint8): output",
     "whole numbers become float32 here; PyTorch cuts the bounds to their type"},
    {"hardsigmoid", "^$", "^(numbers|nan .*|-?inf .*): gradient", "PyTorch's sixth is a float32"},
    {"one_hot", "", "^bool: refused", "argmax takes bool here"},
    {"pad", "constant \\[-1", "^one element: refused", "what can be padded is"},
    {"pad", "reflect|replicate", "^bool: refused", "what can be padded is"},
    {"pad", "(reflect|replicate) \\[2, .\\]", "^empty \\(3\\): refused", "what can be padded is"},
    {"pad", "(reflect|replicate) \\[2, 1, 0, 2\\]", "^empty \\(2\\): refused",
     "what can be padded is"},
    {"group_norm", "sequence|image", "^empty \\(3\\): refused", kEmpty},
    {"group_norm", "image", "^empty \\(2\\): refused", kEmpty},
    {"batch_norm", "rows|image", "^empty \\(3\\): refused", kEmpty},
    {"conv1d", "^(|no bias|one sequence|empty batch)$", "^empty \\(2\\): refused",
     "a convolution without channels is refused"},
    {"conv2d", "one image|dilation", "^empty \\(2\\): refused",
     "a convolution without channels is refused"},
    {"conv2d", "^1x1$", "^empty \\(3\\): refused", "a convolution without channels is refused"},
    {"conv_transpose1d conv_transpose2d", "empty batch", "^empty \\(3\\): refused",
     "an image without sides is refused, of an empty batch too"},
    {"max_pool1d", "one sequence", "^one element: refused",
     "a window that sees no element is refused; PyTorch's gives -inf"},
    {"max_pool2d", "^$|dilation", "^empty \\(2\\): refused", kEmpty},
    {"max_pool2d_with_indices adaptive_max_pool2d", "^$|indices", "^empty \\(2\\): refused",
     kEmpty},
    {"max_pool1d avg_pool1d adaptive_avg_pool1d", "", "^empty .*: refused", kEmpty},
    {"avg_pool2d", "^$|overlapping|without the padding", "^empty \\(2\\): refused", kEmpty},
    {"adaptive_avg_pool2d", "^$|to one", "^empty .*: refused",
     "no channels are nothing; an image without sides has no mean"},
    {"interpolate", "from one element|^linear, corners", "^empty \\(2\\): refused", kEmpty},
    {"binary_cross_entropy", kSome, "(nan|inf).*refused", "a probability outside [0, 1] gives NaN"},
};

const char* const kOwnRandom = "the random numbers are Braid's own";
const OfOp kWithoutWords[] = {
    {"scatter", "", "", "which of several equal indices stays is open in PyTorch"},
    {"dropout dropout1d dropout2d", "", "", kOwnRandom},
    {"scaled_dot_product_attention", "", "",
     "the random numbers are Braid's own, and a query without keys gives 0"},
    {"packed_attention", "", "", "not in PyTorch: scaled_dot_product_attention on its parts"},
    {"varlen_attn", "", "", "only on CUDA, and only of 16 bits, in PyTorch"},
    {"lstm gru rnn_tanh rnn_relu", "", "",
     "sequences of several lengths are another call in PyTorch: test_rnn.cpp"},
    {"cross_entropy nll_loss mse_loss", "", "", "the sum and count are not in PyTorch"},
    {"capsule_margin_loss", "", "", "not in PyTorch"},
};

}  // namespace

void add_differences(std::vector<OpCase>& list) {
  const auto add = [&](const OfOp& d) {
    std::istringstream ops(d.ops);
    for (std::string op; ops >> op;) {
      bool found = false;
      for (OpCase& c : list) {
        if (c.op != op || c.torch.empty() != std::string(d.where).empty() ||
            !std::regex_search(c.variant, std::regex(d.cases)))
          continue;
        c.differs.push_back({d.where, d.reason, d.always});
        found = true;
      }
      if (!found)
        throw std::logic_error(str("op_differences.cpp: no case of ", op, " is like ", d.cases));
    }
  };
  for (const OfOp& d : kSpecialValues) add(d);
  for (const OfOp& d : kRefusals) add(d);
  for (const OfOp& d : kWithoutWords) add(d);
}

}  // namespace braid::test
