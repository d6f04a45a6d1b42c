// Printed tensors against PyTorch's text (goldens/print.txt).
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace braid;
using braid::testing::Goldens;

namespace {
std::string printed(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}
bool wants_grad(const std::string& name) { return name.rfind("grad.", 0) == 0; }
}  // namespace

TEST_CASE("print: every golden tensor prints as PyTorch prints it", "[core][print][goldens]") {
  const Goldens goldens("print.txt");
  REQUIRE(goldens.texts().size() >= 50);
  for (const auto& [name, text] : goldens.texts()) {
    INFO(name);
    const Tensor value = goldens.tensor(name + ".value");
    if (wants_grad(name)) value.requires_grad_();
    CHECK(printed(value) == text);
  }
}

TEST_CASE("print: a strided view prints as its dense copy", "[core][print][goldens]") {
  const Goldens goldens("print.txt");
  int seen = 0;
  for (const auto& [name, text] : goldens.texts()) {
    const Tensor value = goldens.tensor(name + ".value");
    if (value.dim() < 2 || value.numel() == 0 || wants_grad(name)) continue;
    INFO(name);
    const Tensor view = value.transpose(0, 1).contiguous().transpose(0, 1);
    CHECK(printed(view) == text);
    seen += !view.is_contiguous();
  }
  CHECK(seen >= 10);  // views of one row or column are dense
}
