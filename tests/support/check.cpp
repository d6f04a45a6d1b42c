// Implements the assertions of check.hpp with Catch2's runner, and defines main of every test
// binary. This is the only file that includes Catch2. If BRAID_ISA names an instruction set that
// this processor lacks, the run prints that and is skipped.
#define BRAID_CHECK_RUNNER 1
#include "support/check.hpp"
#include "support/exit_faults.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#if defined(BRAID_CATCH2_V2)
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_PREFIX_ALL
#include <catch2/catch.hpp>
#else
#define CATCH_CONFIG_PREFIX_ALL
#include <catch2/catch_all.hpp>
#endif

namespace braid::assertion {
namespace {

/// The messages of the open scopes, innermost last.
thread_local std::vector<std::string> messages;
/// The messages of the scopes that an exception has left. They are reported with the exception.
thread_local std::vector<std::string> left_messages;
thread_local Site last_site{};

Catch::ScopedMessage shown(const std::string& text) {
  return Catch::ScopedMessage(Catch::MessageBuilder(Catch::StringRef("INFO"),
                                                    Catch::SourceLineInfo("", 0),
                                                    Catch::ResultWas::Info)
                              << text);
}

class Expansion : public Catch::ITransientExpression {
 public:
  Expansion(bool holds, std::string text)
      : ITransientExpression(false, holds), text_(std::move(text)) {}
  void streamReconstructedExpression(std::ostream& out) const override { out << text_; }

 private:
  std::string text_;
};

const char* macro_of(Site::Kind kind) {
  switch (kind) {
    case Site::Kind::check: return "CHECK";
    case Site::Kind::check_false: return "CHECK_FALSE";
    case Site::Kind::require: return "REQUIRE";
    case Site::Kind::require_false: return "REQUIRE_FALSE";
  }
  return "";
}

bool negated(const Site& site) {
  return site.kind == Site::Kind::check_false || site.kind == Site::Kind::require_false;
}

/// Passes a result to Catch2, with the messages of the open scopes if it is a failure.
void tell(const Site& site, const char* macro, Catch::ResultWas::OfType result, std::string text) {
  const bool required = site.kind == Site::Kind::require || site.kind == Site::Kind::require_false;
  std::vector<Catch::ScopedMessage> infos;
  infos.reserve(messages.size());
  if (result != Catch::ResultWas::Ok)
    for (const std::string& m : messages) infos.push_back(shown(m));
  Catch::AssertionHandler handler(
      Catch::StringRef(macro),
      Catch::SourceLineInfo(site.file, static_cast<std::size_t>(site.line)),
      Catch::StringRef(site.text),
      required ? Catch::ResultDisposition::Normal : Catch::ResultDisposition::ContinueOnFailure);
  if (result == Catch::ResultWas::Ok || result == Catch::ResultWas::ExpressionFailed)
    handler.handleExpr(Expansion(result == Catch::ResultWas::Ok, std::move(text)));
  else handler.handleMessage(result, Catch::StringRef(text));
  handler.complete();
}
void tell(const Site& site, bool holds, std::string text) {
  tell(site, macro_of(site.kind), holds ? Catch::ResultWas::Ok : Catch::ResultWas::ExpressionFailed,
       std::move(text));
}

std::string what_is_thrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text;
  } catch (...) {
    return "something that is no std::exception";
  }
}

class Invoker : public Catch::ITestInvoker {
 public:
  explicit Invoker(TestFunction test) : test_(test) {}
  void invoke() const override {
    messages.clear();
    left_messages.clear();
    last_site = {};
    try {
      test_();
    } catch (const Catch::TestFailureException&) {
      throw;
    } catch (...) {
      // Catch2 shows the messages that exist while the exception propagates.
      std::vector<Catch::ScopedMessage> infos;
      infos.reserve(left_messages.size() + 1);
      for (std::size_t i = left_messages.size(); i-- > 0;) infos.push_back(shown(left_messages[i]));
      if (last_site.file != nullptr)
        infos.push_back(shown("the last assertion begun is " + std::string(last_site.file) + ":" +
                              std::to_string(last_site.line) + ": " + last_site.text));
      throw;
    }
  }

 private:
  TestFunction test_;
};

std::string taken(std::ostream& written) {
  auto& stream = static_cast<std::ostringstream&>(written);
  std::string text = stream.str();
  stream.str("");
  stream.copyfmt(std::ios(nullptr));
  return text;
}

/// With BRAID_TEST_RESULTS=FILE, appends a line for each test to that file: "pass" or "FAIL", and
/// the name.
#if defined(BRAID_CATCH2_V2)
using Listener = Catch::TestEventListenerBase;
const std::string& name_of(const Catch::TestCaseInfo& info) { return info.name; }
#else
using Listener = Catch::EventListenerBase;
const std::string& name_of(const Catch::TestCaseInfo* info) { return info->name; }
#endif
class Results : public Listener {
 public:
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const char* path = std::getenv("BRAID_TEST_RESULTS");
    if (path == nullptr) return;
    std::ofstream out(path, std::ios::app);
    out << (stats.totals.assertions.allOk() ? "pass " : "FAIL ") << name_of(stats.testInfo) << '\n';
  }
};
CATCH_REGISTER_LISTENER(Results)

}  // namespace

Registered::Registered(TestFunction test, const char* file, int line, const char* name,
                       const char* tags) {
#if defined(BRAID_CATCH2_V2)
  Catch::ITestInvoker* invoker = new Invoker(test);
#else
  Catch::Detail::unique_ptr<Catch::ITestInvoker> invoker(new Invoker(test));
#endif
  Catch::AutoReg(std::move(invoker), Catch::SourceLineInfo(file, static_cast<std::size_t>(line)),
                 Catch::StringRef(),
                 Catch::NameAndTags{Catch::StringRef(name), Catch::StringRef(tags)});
}

void begin(const Site& site) noexcept { last_site = site; }

void evaluate(const Site& site, bool holds) {
  if (negated(site)) holds = !holds;
  tell(site, holds, site.text);
}

void evaluate(const Site& site, bool holds, const void* left, Writer write_left, const char* op,
              const void* right, Writer write_right) {
  if (negated(site)) holds = !holds;
  std::ostringstream text;
  if (!holds) {
    write_left(text, left);
    text << ' ' << op << ' ';
    write_right(text, right);
  }
  tell(site, holds, text.str());
}

void evaluate(const Site& site, bool holds, const void* value, Writer write) {
  if (negated(site)) holds = !holds;
  std::ostringstream text;
  if (!holds) write(text, value);
  tell(site, holds, text.str());
}

void check_message(const Site& site, bool holds, const std::string& message) {
  tell(site, holds, message);
}

void check_throws(const Site& site, Call call, bool (*expected)()) {
  begin(site);
  try {
    call();
  } catch (...) {
    const bool holds = expected();
    return tell(site, holds, holds ? "" : "another type is thrown: " + what_is_thrown());
  }
  tell(site, false, "nothing is thrown");
}

void check_throws_with(const Site& site, Call call, const std::string& text) {
  begin(site);
  try {
    call();
  } catch (...) {
    const std::string got = what_is_thrown();
    return tell(site, got == text, "expected \"" + text + "\", got \"" + got + '"');
  }
  tell(site, false, "nothing is thrown");
}

void check_nothrow(const Site& site, Call call) {
  begin(site);
  try {
    call();
  } catch (...) {
    return tell(site, false, "thrown: " + what_is_thrown());
  }
  tell(site, true, "");
}

void write_text(std::ostream& out, std::string_view text) { out << '"' << text << '"'; }
void write_number(std::ostream& out, double value) {
  const auto before = out.precision(std::numeric_limits<double>::max_digits10);
  out << value;
  out.precision(before);
}
void write_number(std::ostream& out, float value) {
  const auto before = out.precision(std::numeric_limits<float>::max_digits10);
  out << value << 'f';
  out.precision(before);
}

std::ostream& message() {
  // An argument of a message may itself build a message, so each gets a separate stream.
  thread_local std::vector<std::unique_ptr<std::ostringstream>> streams;
  for (const auto& stream : streams)
    if (stream->tellp() == 0) return *stream;
  streams.push_back(std::make_unique<std::ostringstream>());
  return *streams.back();
}

Info::Info(std::ostream& written) { messages.push_back(taken(written)); }
Info::~Info() {
  if (std::uncaught_exceptions() > 0) left_messages.push_back(std::move(messages.back()));
  messages.pop_back();
}

std::string written(std::initializer_list<std::pair<const void*, Writer>> values) {
  std::ostringstream out;
  const char* between = "";
  for (const auto& [value, write_it] : values) {
    out << between;
    write_it(out, value);
    between = ", ";
  }
  return out.str();
}

void fail(const Site& site, std::ostream& written) {
  tell(site, "FAIL", Catch::ResultWas::ExplicitFailure, taken(written));
  std::abort();  // not reached: a failed REQUIRE throws
}
void fail_check(const Site& site, std::ostream& written) {
  tell(site, "FAIL_CHECK", Catch::ResultWas::ExplicitFailure, taken(written));
}
void warn(const Site& site, std::ostream& written) {
  tell(site, "WARN", Catch::ResultWas::Warning, taken(written));
}

bool Approx::equals(double other) const {
  if (value_ == other) return true;
  const double off = std::fabs(value_ - other);
  return off <= margin_ || off <= epsilon_ * std::fabs(std::isinf(value_) ? 0 : value_);
}
std::ostream& operator<<(std::ostream& out, const Approx& a) {
  out << "Approx(";
  write_number(out, a.value_);
  return out << ')';
}

}  // namespace braid::assertion

namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

bool processor_has([[maybe_unused]] const std::string& isa) {
#if defined(__x86_64__)
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx512") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  }
#endif
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const char* isa = std::getenv("BRAID_ISA");
  if (isa != nullptr && !processor_has(isa)) {
    std::cout << "SKIP(this processor lacks " << isa << ")\n";
    return kSkipped;
  }
  const int result = Catch::Session().run(argc, argv);
  braid::tests::show_faults_at_exit();
  return result;
}
