// The program that bench_start starts and times: it creates the net of the row mlp512_b64_sgd and
// trains it. It speaks the peers' protocol (peers/README.md), for that row only. With
// BRAID_BENCH_OWN_KERNELS=1 matrix products use Braid's own loops, as in a build without oneDNN.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "cpu/gemm_library.hpp"
#include "support/rows.hpp"

int main() {
  try {
    if (std::getenv("BRAID_BENCH_OWN_KERNELS") != nullptr) braid::cpu::use_library_gemm(false);
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
      std::istringstream words(line);
      std::string command, row;
      int threads = 1, count = 0;
      words >> command >> row >> threads >> count;
      if (command == "losses" && row == "mlp512_b64_sgd") {
        braid::set_num_threads(threads);
        bench::Row mlp(bench::make_mlp(512), bench::input(64, 784), bench::classes(64, 10),
                       bench::kCrossEntropy);
        std::cout.precision(17);
        std::cout << R"({"losses": [)";
        const char* between = "";
        for (const double loss : mlp.losses(count))
          std::cout << std::exchange(between, ", ") << loss;
        std::cout << "]}" << std::endl;
      } else {
        std::cout
            << (command == "hello"
                    ? R"({"peer": "braid"})"
                    : R"({"error": "expected: hello | losses mlp512_b64_sgd THREADS COUNT | quit"})")
            << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "first_step: " << error.what() << '\n';
    return 1;
  }
}
