// difference A B: prints the largest absolute difference of the tensors of two safetensors files; 0
// only for the same bits.
#include <cmath>
#include <cstdio>
#include <cstring>

#include <braid/braid.hpp>

using namespace braid;

int main(int argc, char** argv) {
  try {
    check(argc == 3, "usage: difference A B");
    const Safetensors a = load_safetensors(argv[1]), b = load_safetensors(argv[2]);
    check(a.tensors.size() == b.tensors.size(), "expected as many tensors");
    double most = 0;
    bool same = true;
    for (const auto& [name, x] : a.tensors) {
      const Tensor& y = b.at(name);
      check(x.shape() == y.shape() && x.dtype() == DType::float32 && y.dtype() == x.dtype(),
            "expected float32 tensors of the same shapes");
      const auto p = x.to_vector<float>(), q = y.to_vector<float>();
      same = same && std::memcmp(p.data(), q.data(), p.size() * sizeof(float)) == 0;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const double d = std::abs(static_cast<double>(p[i]) - static_cast<double>(q[i]));
        most = d <= most ? most : d;  // NaN stays
      }
    }
    std::printf("%.3g\n", same ? 0 : std::fmax(most, 1e-300));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "difference: %s\n", e.what());
    return 1;
  }
}
