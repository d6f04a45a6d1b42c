#include <braid/nn/training/options.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/internal/io/json.hpp>

namespace braid::training {
namespace {

/// The options common to all programs, followed by the program's own.
std::vector<Option> entries(Options& o, const std::vector<Option>& own) {
  std::vector<Option> all{
      {"data", "FOLDER", "the data set; default: where BRAID_DATA says", &o.data},
      {"epochs", "N", "passes over the data", &o.epochs},
      {"batch", "N", "rows of a batch", &o.batch, 1},
      {"lr", "X", "learning rate", &o.lr},
      {"checkpoint", "FOLDER", "where checkpoints are kept; default: none are", &o.checkpoint},
      {"resume", "", "go on from the newest checkpoint", &o.resume},
      {"seed", "N", "of weights, shuffles and all other random numbers", &o.seed},
      {"devices", "N", "logical CPU devices", &o.devices, 1},
      {"tensorboard", "FOLDER", "write events for TensorBoard", &o.tensorboard},
      {"csv", "FILE", "append every reported value to a table", &o.csv},
      {"trace", "FILE", "write a timeline for Perfetto or chrome://tracing", &o.trace},
      {"quiet", "", "show no progress", &o.quiet},
  };
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

[[noreturn]] void fail(std::string_view name, const std::string& expected, const std::string& got) {
  throw ArgumentError(str("options: --", name, ": expected ", expected, ", got ", got));
}

template <class T> T number(const Option& e, std::string_view text) {
  constexpr bool kWhole = std::is_integral_v<T>;
  const std::string expected = str(kWhole ? "a whole number" : "a number", " >= ", e.least);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size() &&
                    std::isfinite(static_cast<double>(value)) &&
                    static_cast<double>(value) >= e.least;
  if (!good) fail(e.name, expected, io::quoted(text));
  return value;
}

/// Parses the text according to the option's type, and stores the value if `keep` is true.
void read(const Option& e, std::string_view text, bool keep) {
  e.to.visit([&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    T value;
    if constexpr (std::is_same_v<T, std::string>) value = text;
    else if constexpr (std::is_same_v<T, bool>) value = true;
    else value = number<T>(e, text);
    if (keep) *to = std::move(value);
  });
}

void check_own(const std::vector<Option>& known, std::size_t first) {
  for (std::size_t i = first; i < known.size(); ++i) {
    const Option& e = known[i];
    if (e.value.empty() != e.to.is_flag())
      fail(e.name, "a bool without the name of a value, or another type with one",
           io::quoted(e.value));
    for (std::size_t k = 0; k < i; ++k)
      if (known[k].name == e.name) fail(e.name, "a name of its own", "that of another option");
  }
}

std::string shown(const Option& e) {
  return e.to.visit([](const auto* value) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(value)>>;
    if constexpr (std::is_same_v<T, std::string>)
      return value->empty() ? std::string() : " [" + *value + "]";
    else if constexpr (std::is_same_v<T, bool>) return std::string(*value ? " [on]" : "");
    else if constexpr (std::is_same_v<T, int>)
      return *value == 0 ? std::string() : str(" [", *value, "]");
    else return str(" [", *value, "]");
  });
}

}  // namespace

int report_exception(const char* program) noexcept {
  std::string_view name = program != nullptr && *program != 0 ? program : "program";
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  const auto say = [&](const char* what) {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(name.size()), name.data(), what);
    return 1;
  };
  if (!std::current_exception()) return say("expected an exception that is being handled");
  try {
    throw;
  } catch (const HelpRequested& help) {
    std::fputs(help.what(), stdout);
    return 0;
  } catch (const std::exception& e) {
    return say(e.what());
  } catch (...) {
    return say("an exception of another kind");
  }
}

std::string help(const std::string& program, const Options& defaults,
                 const std::vector<Option>& own) {
  Options copy = defaults;
  std::string text = str("usage: ", program, " [options]\n");
  const auto line = [&](const std::string& left, std::string_view right) {
    text += "  " + left + std::string(left.size() < 22 ? 22 - left.size() : 1, ' ') +
            std::string(right) + '\n';
  };
  for (const Option& e : entries(copy, own))
    line(str("--", e.name, e.value.empty() ? "" : " ", e.value), str(e.help, shown(e)));
  line("--help", "this text");
  return text;
}

Options options(int argc, const char* const* argv, const Options& defaults,
                const std::vector<Option>& own) {
  Options o = defaults;
  const std::vector<Option> known = entries(o, own);
  const std::size_t first_own = known.size() - own.size();
  check_own(known, first_own);
  // the texts of the program's own options, which are stored after every check
  std::vector<std::string_view> texts(known.size());
  std::set<std::string_view> seen;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--help" || word == "-h")
      throw HelpRequested(help(argc > 0 ? argv[0] : "program", defaults, own));
    if (!word.starts_with("--"))
      throw ArgumentError(str("options: expected an option that begins with --, got ",
                              io::quoted(word), " (--help lists them)"));
    word.remove_prefix(2);
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Option* entry = nullptr;
    for (const Option& e : known) {
      if (e.name == name) entry = &e;
    }
    if (entry == nullptr)
      throw ArgumentError(
          str("options: expected an option that --help lists, got ", io::quoted(argv[i])));
    if (!seen.insert(entry->name).second) fail(name, "it once", "it twice");
    std::string_view text;
    if (entry->value.empty()) {
      if (equals != std::string_view::npos)
        fail(name, "no value", io::quoted(word.substr(equals + 1)));
    } else if (equals != std::string_view::npos) {
      text = word.substr(equals + 1);
    } else {
      if (i + 1 == argc || std::string_view(argv[i + 1]).starts_with("--"))
        fail(name, "a value", i + 1 == argc ? "the end" : io::quoted(argv[i + 1]));
      text = argv[++i];
    }
    const auto at = static_cast<std::size_t>(entry - known.data());
    read(*entry, text, at < first_own);
    texts[at] = text;
  }
  if (o.resume && o.checkpoint.empty())
    throw ArgumentError("options: --resume: expected --checkpoint FOLDER with it, got none");
  if (seen.contains("devices")) set_cpu_device_count(o.devices);
  for (std::size_t i = first_own; i < known.size(); ++i)
    if (seen.contains(known[i].name)) read(known[i], texts[i], true);
  return o;
}

}  // namespace braid::training
