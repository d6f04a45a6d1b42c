#include "support/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "support/machine.hpp"

namespace bench {

Options read_options(int argc, char** argv, const std::string& about,
                     const std::vector<OwnOption>& own) {
  Options o;
  const char* folder = std::getenv("BRAID_PEERS");
  o.peers = folder && *folder ? folder : std::string(BRAID_SOURCE_DIR) + "/build/peers-venv";
  const auto usage = [&](int code) {
    std::printf(
        "%s\n\n  --json FILE   write the rows\n  --peers DIR   where bench/peers/setup.sh put "
        "PyTorch\n  --no-peers    Braid alone\n",
        about.c_str());
    std::printf(
        "  --rounds N    rounds of ABBA turns (5)\n  --check       compare results, time nothing\n "
        " --strict      a missed bar is exit code 1\n");
    for (const OwnOption& option : own)
      std::printf("  %-13s %s\n",
                  (std::string(option.name) + (option.value ? std::string(" ") + option.value : ""))
                      .c_str(),
                  option.about);
    std::exit(code);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) {
        std::fprintf(stderr, "%s needs a value\n", argv[i]);
        usage(2);
      }
      return argv[++i];
    };
    const auto mine = std::find_if(own.begin(), own.end(),
                                   [&](const OwnOption& option) { return word == option.name; });
    if (mine != own.end()) o.own[mine->name] = mine->value ? value() : std::string();
    else if (word == "--json") o.json = value();
    else if (word == "--peers") o.peers = value();
    else if (word == "--no-peers") o.no_peers = true;
    else if (word == "--check") o.check = true;
    else if (word == "--strict") o.strict = true;
    else if (word == "--rounds") {
      o.rounds = std::atoi(value().c_str());
      if (o.rounds < 1) usage(2);
    } else if (word == "--help" || word == "-h") {
      usage(0);
    } else {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      usage(2);
    }
  }
  return o;
}

int Options::number(std::string_view name, int otherwise, int most) const {
  const std::string text = value(name, std::to_string(otherwise));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= most)
    return number;
  std::fprintf(stderr, "%s: expected a number from 1 to %d, got '%s'\n", std::string(name).c_str(),
               most, text.c_str());
  std::exit(2);
}

int run_program(int argc, char** argv, const Program& program, int (*run)(const Options&)) {
  const Options options =
      read_options(argc, argv, std::string(program.name) + ": " + program.about, program.options);
  if (program.cores > 0) stay_on(static_cast<std::size_t>(program.cores));
  for (const auto& [name, value] : program.environment) setenv(name, value, 1);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.name, error.what());
    return 1;
  }
}

void write_json(const Options& options, const Json& machine, const std::vector<Json>& rows) {
  if (options.json.empty()) return;
  std::ofstream out(options.json);
  Json all;
  all.set("machine", machine).set("rows", rows);
  out << all.text() << '\n';
  out.close();
  if (!out) throw std::runtime_error("cannot write " + options.json);
}

}  // namespace bench
