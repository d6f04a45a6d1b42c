#pragma once
// GPT-2's weights under Hugging Face's names. The model's fields have these names; only the
// products differ: a file has them as [in, out], and nn::Linear as [out, in].
#include <algorithm>

#include "model.hpp"

namespace gpt2 {

namespace detail {

/// Whether the file has the transpose of the model's tensor.
inline bool is_transposed(std::string_view name) {
  return name.starts_with("h.") &&
         (name.find(".attn.c_") != name.npos || name.find(".mlp.c_") != name.npos) &&
         name.ends_with(".weight");
}
/// Whether it is a mask, which older files have and which is no weight: h.N.attn.bias.
inline bool is_mask(std::string_view name) {
  return name.starts_with("h.") &&
         (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}
inline std::string shape_of(const Tensor& t) { return str(t.shape()); }

}  // namespace detail

/// Returns a model's tensors as files on Hugging Face's hub have them: `wte.weight`,
/// `h.0.attn.c_attn.weight` [width, 3 width], ….
inline StateDict to_hugging_face(const GPT2& model) {
  StateDict file;
  for (const auto& [name, t] : state_dict(model))
    file.set(name, detail::is_transposed(name) ? t.t() : t);
  return file;
}

/// Writes the numbers of a file into the model, converted to its dtype. Names may begin with
/// `transformer.`; masks are ignored; `lm_head.weight` must be equal to `wte.weight`.
///
/// Throws    ArgumentError that lists every name that is missing, unexpected, given twice or of
///           another shape; then nothing was changed
inline void from_hugging_face(GPT2& model, const StateDict& file) {
  const NoGrad guard;
  const StateDict want = to_hugging_face(model);
  constexpr std::string_view kPrefix = "transformer.";
  std::vector<std::string> wrong;
  StateDict found, here;
  Tensor head;
  for (const auto& [full, t] : file) {
    const std::string name = full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
    if (name == "lm_head.weight") head = t;
    if (name == "lm_head.weight" || detail::is_mask(name)) continue;
    const Tensor* expected = want.find(name);
    if (expected == nullptr) wrong.push_back("unexpected " + full);
    else if (found.contains(name)) wrong.push_back("a second " + name);
    else if (expected->shape() != t.shape())
      wrong.push_back(full + " " + detail::shape_of(t) + " instead of " +
                      detail::shape_of(*expected));
    else if (!is_floating(t.dtype())) wrong.push_back(full + " of " + str(t.dtype()));
    found.set(name, t);
  }
  for (const auto& [name, t] : want)
    if (!found.contains(name)) wrong.push_back("no " + name + " " + detail::shape_of(t));
  if (const Tensor* wte = found.find("wte.weight"); head.defined() && wte != nullptr)
    if (head.shape() != wte->shape() || head.dtype() != wte->dtype() || !equal(head, *wte))
      wrong.emplace_back("a lm_head.weight that is not wte.weight");
  if (!wrong.empty()) {
    std::string list = wrong[0];
    for (std::size_t i = 1; i < wrong.size(); ++i) list += ", " + wrong[i];
    throw ArgumentError(str("gpt2: expected the weights of a GPT-2 with ", model.config.layers,
                            " layers, got ", list));
  }
  for (const auto& [name, t] : state_dict(model)) {
    const Tensor& from = found.at(name);
    here.set(name, (detail::is_transposed(name) ? from.t() : from).to(t.device(), t.dtype()));
  }
  load_state_dict(model, here);
}

}  // namespace gpt2
