#pragma once
// The assertions of the tests: the Catch2 macros that the tests use, declared in a small header and
// implemented with Catch2's runner (check.cpp). Catch2's own header adds seconds to each compile.
//   TEST_CASE(name, tags)        a test; names, tags and the command line are Catch2's
//   CHECK, CHECK_FALSE           continue after a failure; REQUIRE, REQUIRE_FALSE end the test
//   CHECK_THROWS_AS(x, E), CHECK_THROWS_WITH(x, text), CHECK_NOTHROW(x), REQUIRE_NOTHROW(x)
//   INFO(a << b), CAPTURE(a)     shown with every failure in the rest of the scope
//   FAIL, FAIL_CHECK, WARN       report a given message
// An exception that leaves a CHECK ends the test; the report names the last assertion.
#include <concepts>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace braid::assertion {

using TestFunction = void (*)();

/// Registers a test with the runner.
struct Registered {
  Registered(TestFunction test, const char* file, int line, const char* name,
             const char* tags = "");
};

/// The location and the text of an assertion.
struct Site {
  enum class Kind : unsigned char { check, check_false, require, require_false };
  Kind kind;
  const char* text;
  const char* file;
  int line;
};

using Writer = void (*)(std::ostream&, const void*);
/// Counts an assertion that holds. Reports one that does not hold, and throws if it is a REQUIRE.
void judge(const Site& site, bool holds);
/// The same for `left op right`; the report shows both values.
void judge(const Site& site, bool holds, const void* left, Writer write_left, const char* op,
           const void* right, Writer write_right);
/// The same for one value.
void judge(const Site& site, bool holds, const void* value, Writer write);
void judge_message(const Site& site, bool holds, const std::string& message);
/// Records the assertion, so that the report of an unexpected exception can name it.
void begin(const Site& site) noexcept;

// ---- values as text

template <class T>
concept Streams = requires(std::ostream& out, const T& value) { out << value; };
template <class T>
concept Walks = requires(const T& value) {
  std::begin(value) != std::end(value);
  *std::begin(value);
};
template <class T>
concept Pair = requires(const T& value) { value.first, value.second; };

template <class T> void write(std::ostream& out, const T& value);
void write_text(std::ostream& out, std::string_view text);  // in quotes
void write_number(std::ostream& out, double value);
void write_number(std::ostream& out, float value);

/// Writes the T that `value` points to.
template <class T> void write_at(std::ostream& out, const void* value) {
  write(out, *static_cast<const T*>(value));
}

template <class T> void write(std::ostream& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::same_as<T, std::nullptr_t> || std::same_as<T, std::nullopt_t>) {
    out << "nothing";
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    write_text(out, value);
  } else if constexpr (std::same_as<T, double> || std::same_as<T, float>) {
    write_number(out, value);
  } else if constexpr (std::integral<T> && sizeof(T) == 1) {
    out << static_cast<int>(value);
  } else if constexpr (Streams<T>) {
    out << value;
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (Pair<T>) {
    out << '{';
    write(out, value.first);
    out << ", ";
    write(out, value.second);
    out << '}';
  } else if constexpr (Walks<T>) {
    const char* between = "{";
    for (const auto& each : value) {
      out << between;
      write(out, each);
      between = ", ";
    }
    out << (*between == '{' ? "{}" : "}");
  } else if constexpr (requires { value.has_value(), *value; }) {
    if (value.has_value()) write(out, *value);
    else out << "nothing";
  } else {
    out << "{?}";
  }
}

// ---- `site <= left == right` as an expression: its value is checked, its operands are shown

struct Judged {};
// The tests compare mixed signs and floating-point numbers for equality on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wfloat-equal"
template <class L> struct Left {
  const Site& site;
  const L& value;
  template <class R> Judged show(bool holds, const char* op, const R& right) const {
    judge(site, holds, &value, &write_at<L>, op, &right, &write_at<R>);
    return {};
  }
  template <class R> Judged operator==(const R& r) const { return show(value == r, "==", r); }
  template <class R> Judged operator!=(const R& r) const { return show(value != r, "!=", r); }
  template <class R> Judged operator<(const R& r) const { return show(value < r, "<", r); }
  template <class R> Judged operator<=(const R& r) const { return show(value <= r, "<=", r); }
  template <class R> Judged operator>(const R& r) const { return show(value > r, ">", r); }
  template <class R> Judged operator>=(const R& r) const { return show(value >= r, ">=", r); }
  template <class R> void operator&&(const R&) const = delete;  // use two CHECKs, or parentheses
  template <class R> void operator||(const R&) const = delete;
};
#pragma GCC diagnostic pop
template <class L> Left<L> operator<=(const Site& site, const L& value) {
  begin(site);
  return {site, value};
}
inline void finish(Judged) {}
template <class L> void finish(const Left<L>& left) {
  judge(left.site, static_cast<bool>(left.value), &left.value, &write_at<L>);
}

// ---- exceptions

/// A callable that is borrowed for the duration of a call.
class Call {
 public:
  template <class F> explicit Call(const F& f) : object_(&f), call_(&run<F>) {}
  void operator()() const { call_(object_); }

 private:
  template <class F> static void run(const void* f) { (*static_cast<const F*>(f))(); }
  const void* object_;
  void (*call_)(const void*);
};

/// Returns whether the current exception is an E.
template <class E> bool current_is() {
  try {
    throw;
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}
void judge_throws(const Site& site, Call call, bool (*expected)());
void judge_throws_with(const Site& site, Call call, const std::string& text);
void judge_nothrow(const Site& site, Call call);

// ---- messages

/// Returns an empty stream for the next message. Each thread has separate streams.
std::ostream& message();
/// Shows the text written to message() with the failures of its scope.
class Info {
 public:
  explicit Info(std::ostream& written);
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  ~Info();
};
[[noreturn]] void fail(const Site& site, std::ostream& written);
void fail_check(const Site& site, std::ostream& written);
void warn(const Site& site, std::ostream& written);

/// Returns the values as a failure report writes them, separated by commas.
std::string written(std::initializer_list<std::pair<const void*, Writer>> values);
template <class... T> std::string listed(const T&... values) {
  return written({{&values, &write_at<T>}...});
}

// ---- floating-point numbers that are close

/// Equal up to epsilon times the expected value, or up to a margin.
class Approx {
 public:
  explicit Approx(double value) : value_(value) {}
  Approx& epsilon(double relative) {
    epsilon_ = relative;
    return *this;
  }
  Approx& margin(double absolute) {
    margin_ = absolute;
    return *this;
  }
  [[nodiscard]] bool equals(double other) const;
  friend bool operator==(double a, const Approx& b) { return b.equals(a); }
  friend bool operator==(const Approx& a, double b) { return a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, const Approx& a);

 private:
  double value_, epsilon_ = 0x1p-23 * 100, margin_ = 0;
};

}  // namespace braid::assertion

#if !defined(BRAID_CHECK_RUNNER)  // check.cpp uses Catch2's Approx
using braid::assertion::Approx;
#endif

#define BRAID_JOIN_(a, b) a##b
#define BRAID_JOIN(a, b) BRAID_JOIN_(a, b)
#define BRAID_TEST_(name, ...)                                                               \
  static void name();                                                                        \
  static const ::braid::assertion::Registered BRAID_JOIN(name, _)(&name, __FILE__, __LINE__, \
                                                                  __VA_ARGS__);              \
  static void name()
#define BRAID_SITE(kind, text) \
  ::braid::assertion::Site { ::braid::assertion::Site::Kind::kind, text, __FILE__, __LINE__ }
#define BRAID_ASSERT(kind, ...) \
  ::braid::assertion::finish(BRAID_SITE(kind, #__VA_ARGS__) <= __VA_ARGS__)
#define BRAID_CALL(...) ::braid::assertion::Call([&] { static_cast<void>(__VA_ARGS__); })

#define TEST_CASE(...) BRAID_TEST_(BRAID_JOIN(braid_test_, __LINE__), __VA_ARGS__)
#define CHECK(...) BRAID_ASSERT(check, __VA_ARGS__)
#define CHECK_FALSE(...) BRAID_ASSERT(check_false, __VA_ARGS__)
#define REQUIRE(...) BRAID_ASSERT(require, __VA_ARGS__)
#define REQUIRE_FALSE(...) BRAID_ASSERT(require_false, __VA_ARGS__)
#define CHECK_THROWS_AS(x, E)                                                    \
  ::braid::assertion::judge_throws(BRAID_SITE(check, #x ", " #E), BRAID_CALL(x), \
                                   &::braid::assertion::current_is<E>)
#define CHECK_THROWS_WITH(x, text) \
  ::braid::assertion::judge_throws_with(BRAID_SITE(check, #x), BRAID_CALL(x), text)
#define CHECK_NOTHROW(...) \
  ::braid::assertion::judge_nothrow(BRAID_SITE(check, #__VA_ARGS__), BRAID_CALL(__VA_ARGS__))
#define REQUIRE_NOTHROW(...) \
  ::braid::assertion::judge_nothrow(BRAID_SITE(require, #__VA_ARGS__), BRAID_CALL(__VA_ARGS__))
#define INFO(...)                                                                                \
  const ::braid::assertion::Info BRAID_JOIN(braid_info_, __LINE__)(::braid::assertion::message() \
                                                                   << __VA_ARGS__)
#define CAPTURE(...) INFO(#__VA_ARGS__ " = " << ::braid::assertion::listed(__VA_ARGS__))
#define FAIL(...) \
  ::braid::assertion::fail(BRAID_SITE(require, ""), ::braid::assertion::message() << __VA_ARGS__)
#define FAIL_CHECK(...)                                                               \
  ::braid::assertion::fail_check(BRAID_SITE(check, ""), ::braid::assertion::message() \
                                                            << __VA_ARGS__)
#define WARN(...) \
  ::braid::assertion::warn(BRAID_SITE(check, ""), ::braid::assertion::message() << __VA_ARGS__)
