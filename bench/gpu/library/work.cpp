// The timed operations of Braid by name, written as a user would write them.
#include "library/entries.hpp"
#include "library/replicas.hpp"
#include "simt/cuda_runtime.hpp"
#include "support/rows.hpp"

namespace bench::gpu {
namespace {

using braid::Tensor;

/// step(batch), as usual or as a graph, which is recorded once and then replayed.
template <class Step, class Batch> Work work_of(const Step& step, const Batch& batch, bool graph) {
  Work work;
  if (graph)
    work.once = [batch, captured = std::make_shared<braid::training::CapturedStep<Step>>(
                            braid::training::captured_step(step))](std::size_t) {
      return (*captured)(batch);
    };
  else work.once = [step, batch](std::size_t) { return step(batch); };
  return work;
}

/// One SGD step of Linear(5, 2) on 30 rows, as in rows.py, as usual or captured. The result is the
/// loss.
Work sgd_step(bool capture) {
  using Step = Row<braid::nn::Linear, decltype(kMse)>;
  braid::nn::Linear model(5, 2);
  braid::to(model, device());
  auto row = std::make_shared<Step>(std::move(model), input(30, 5).to(device()),
                                    target(30, 2).to(device()), kMse);
  const Tensor unused = braid::zeros({1}, {.device = device()});  // the row has its own batch
  return work_of([row](const Tensor&) { return row->step().detach(); }, unused, capture);
}

/// A training step of a network of three layers, with clipped gradients and AdamW, as usual or
/// captured. The operands are the weight and the bias of each layer, the batch and its labels. The
/// result is the loss.
Work mlp_step(const Sets& sets, bool capture) {
  using Batch = std::pair<Tensor, Tensor>;
  struct Training {
    std::vector<Tensor> p;
    std::unique_ptr<braid::optim::AdamW> adam;
    Tensor operator()(const Batch& batch) const {
      adam->zero_grad();
      const Tensor h = linear_relu(linear_relu(batch.first, p[0], p[1]), p[2], p[3]);
      const Tensor loss = braid::nn::cross_entropy(braid::linear(h, p[4], p[5]), batch.second);
      loss.backward();
      adam->step(braid::optim::clip_grad_norm(p, 1).factor);
      return loss.detach();
    }
  };
  auto training = std::make_shared<Training>();
  for (std::size_t i = 0; i < 6; ++i)
    training->p.push_back(sets[0][i].detach().clone().requires_grad_());
  training->adam = std::make_unique<braid::optim::AdamW>(training->p);
  const Batch batch{sets[0][6], sets[0][7]};
  return work_of([training](const Batch& b) { return (*training)(b); }, batch, capture);
}

/// One optimizer step for a large parameter with a fixed gradient.
template <class Optimizer> Work update(const Sets& sets) {
  Tensor parameter = sets[0][0].detach().clone();
  parameter.requires_grad_();
  parameter.set_grad(sets[0][1]);
  auto optimizer = std::make_shared<Optimizer>(std::vector<Tensor>{parameter});
  Work work;
  work.once = [optimizer, parameter](std::size_t) {
    optimizer->step();
    return parameter;
  };
  return work;
}

/// Clipping the gradients of a parameter that is cut into as many as GPT-2 has, and AdamW's step:
/// in the step itself, or before it.
Work clip_and_step(const Sets& sets, bool in_step) {
  constexpr std::int64_t pieces = 148;
  constexpr double max_norm = 1e-4;  // rows_one_pass.py says why
  const Tensor whole = sets[0][0].detach().clone(), gradient = sets[0][1].detach().clone();
  const std::int64_t n = whole.numel() / pieces;
  std::vector<Tensor> parameters;
  for (std::int64_t i = 0; i < pieces; ++i) {
    parameters.push_back(whole.slice(0, i * n, (i + 1) * n).detach().requires_grad_());
    parameters.back().set_grad(gradient.slice(0, i * n, (i + 1) * n));
  }
  auto optimizer = std::make_shared<braid::optim::AdamW>(parameters);
  Work work;
  work.once = [optimizer, parameters, whole, in_step](std::size_t) {
    if (in_step) {
      optimizer->step(braid::optim::clip_grad_norm(parameters, max_norm).factor);
    } else {
      braid::optim::clip_grad_norm_(parameters, max_norm);
      optimizer->step();
    }
    return whole;
  };
  return work;
}

/// The gradient of an embedding. The operands are its weight, uniform numbers below its rows, which
/// become the words of a Zipf text, and the incoming gradient.
Work embedding_gradient(const Sets& sets) {
  const double words = static_cast<double>(sets[0][0].size(0));
  const Tensor u = sets[0][1].to(braid::DType::float64) / words;
  const Tensor index = (braid::exp(u * std::log(words)).to(braid::DType::int64) - 1).contiguous();
  return gradients_of({{sets[0][0], sets[0][2]}}, Gradients::first,
                      [index](const auto& t) { return braid::embedding(t[0], index); });
}

/// Eight products on the device (`works`), then a copy from the host that overlaps them (`copies`).
Work upload_beside(const Sets& sets, bool copies, bool works, bool pinned) {
  const Tensor pageable = sets[0][0].to(braid::Device());
  const Tensor host = pinned ? pageable.pin_memory() : pageable;
  Work work;
  work.once = [host, copies, works, set = sets[0]](std::size_t) {
    const braid::NoGrad guard;
    Tensor y = set[1], there;
    if (works)
      for (int i = 0; i < 8; ++i) y = braid::matmul(set[1], set[2]);
    if (copies) there = host.to(device(), true);
    return y;
  };
  return work;
}

/// The driver's own copy within the device: the reference for the rows of memory-bound kernels.
Work copy_within(const Sets& sets) {
  const Tensor from = sets[0][0], to = braid::empty_like(from);
  Work work;
  work.once = [from, to,
               bytes = static_cast<std::size_t>(from.numel()) *
                       braid::size_of(from.dtype())](std::size_t) {
    auto* const stream = static_cast<cudaStream_t>(braid::current_stream(device()).native());
    if (cudaMemcpyAsync(to.id()->data(), from.id()->data(), bytes, cudaMemcpyDeviceToDevice,
                        stream) != cudaSuccess)
      throw braid::Error("copy: cudaMemcpyAsync");
    return to;
  };
  return work;
}

// Matrices: nn takes a [m, k] and b [k, n]; nt takes b [n, k]; tn takes a [k, m]. With the suffix
// 64 a name means the same in float64, with which the others are compared.
const Entry kEntries[] = {
    {"nn", 2,
     [](const Sets& s) { return forward(s, [](const auto& t) { return matmul(t[0], t[1]); }); }},
    {"nt", 2,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return matmul(t[0], t[1].transpose(0, 1)); });
     }},
    {"tn", 2,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return matmul(t[0].transpose(0, 1), t[1]); });
     }},
    {"sgd_step", 0, [](const Sets&) { return sgd_step(false); }},
    {"captured_sgd_step", 0, [](const Sets&) { return sgd_step(true); }},
    {"mlp_step", 8, [](const Sets& s) { return mlp_step(s, false); }},
    {"captured_step", 8, [](const Sets& s) { return mlp_step(s, true); }},
    {"gpt2_step", 3, [](const Sets& s) { return gpt2_step(s[0], "gpt2", 1024); }},
    {"gpt2_tiny_step", 3, [](const Sets& s) { return gpt2_step(s[0], "tiny", 8); }},
    {"copy", 1, copy_within},
    {"add", 2, [](const Sets& s) { return forward(s, [](const auto& t) { return t[0] + t[1]; }); }},
    {"scale", 1,
     [](const Sets& s) { return forward(s, [](const auto& t) { return t[0] * 1.5; }); }},
    {"relu", 1, [](const Sets& s) { return forward(s, [](const auto& t) { return relu(t[0]); }); }},
    {"exp", 1, [](const Sets& s) { return forward(s, [](const auto& t) { return exp(t[0]); }); }},
    {"sum", 1, [](const Sets& s) { return forward(s, [](const auto& t) { return t[0].sum(); }); }},
    {"softmax", 1,
     [](const Sets& s) { return forward(s, [](const auto& t) { return softmax(t[0]); }); }},
    {"cross_entropy", 2,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return braid::nn::cross_entropy(t[0], t[1]); });
     }},
    {"sgd", 2, [](const Sets& s) { return update<braid::optim::SGD>(s); }},
    {"adamw", 2, [](const Sets& s) { return update<braid::optim::AdamW>(s); }},
    {"adamw_clipping", 2, [](const Sets& s) { return clip_and_step(s, true); }},
    {"clip_then_adamw", 2, [](const Sets& s) { return clip_and_step(s, false); }},
    {"embedding_gradient", 3, embedding_gradient},
    {"upload", 1,
     [](const Sets& s) {
       return forward({{s[0][0].to(braid::Device())}},
                      [](const auto& t) { return t[0].to(device()); });
     }},
    {"upload_pinned", 1,
     [](const Sets& s) {
       return forward({{s[0][0].to(braid::Device()).pin_memory()}},
                      [](const auto& t) { return t[0].to(device(), true); });
     }},
    {"only_copy", 3, [](const Sets& s) { return upload_beside(s, true, false, true); }},
    {"only_work", 3, [](const Sets& s) { return upload_beside(s, false, true, true); }},
    {"copy_beside_work", 3, [](const Sets& s) { return upload_beside(s, true, true, true); }},
    {"pageable_beside_work", 3, [](const Sets& s) { return upload_beside(s, true, true, false); }},
};

Sets in_float64(const Sets& sets) {
  Sets wide;
  for (const Tensor& t : sets[0]) {
    if (wide.empty()) wide.emplace_back();
    wide[0].push_back(t.dtype() == braid::DType::int64 ? t : t.to(device(), braid::DType::float64));
  }
  return wide;
}

}  // namespace

Work make_work(const std::string& kind, const Sets& sets) {
  constexpr std::string_view kWide = "64";
  const bool wide = kind.size() > kWide.size() && kind.ends_with(kWide);
  const std::string name = wide ? kind.substr(0, kind.size() - kWide.size()) : kind;
  for (const std::span<const Entry> table :
       {std::span<const Entry>(kEntries), layer_entries(), replica_entries()})
    for (const Entry& entry : table) {
      if (name != entry.kind) continue;
      if (sets.empty() || sets[0].size() != entry.operands)
        throw braid::ArgumentError(braid::str("bb_work: ", kind, ": expected ", entry.operands,
                                              " operands, got ",
                                              sets.empty() ? 0 : sets[0].size()));
      return entry.make(wide ? in_float64(sets) : sets);
    }
  throw braid::ArgumentError("bb_work: there is no work '" + kind + "'");
}

}  // namespace bench::gpu
