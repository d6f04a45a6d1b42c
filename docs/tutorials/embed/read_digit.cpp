// Reads digits: ./read_digit net.safetensors digit_3.png …
#include <cstdio>

#include "digit_reader.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: read_digit MODEL IMAGE...\n");
    return 2;
  }
  try {
    const digits::Reader reader(argv[1]);
    for (int i = 2; i < argc; ++i) {
      const digits::Reading reading = reader.read_file(argv[i]);
      std::printf("%s: %d (%.0f %%)\n", argv[i], reading.digit, 100 * reading.probability);
    }
    return 0;
  } catch (const digits::Error& e) {
    std::fprintf(stderr, "read_digit: %s\n", e.what());
    return 1;
  }
}
