// Tests of the exception hierarchy, of the data that errors carry, and of warnings.
#include <cerrno>
#include <mutex>
#include <thread>

#include "shorthand.hpp"

namespace braid::test {
namespace {

template <class D, class B>
constexpr bool kIs = std::is_base_of_v<B, D> && std::is_convertible_v<D*, B*>;

std::exception_ptr pointer(const std::function<void()>& f) {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

TEST_CASE("errors: one root, single inheritance", "[errors]") {
  static_assert(kIs<Error, std::runtime_error>);
  static_assert(kIs<ArgumentError, Error> && kIs<ShapeError, ArgumentError> &&
                kIs<DTypeError, ArgumentError> && kIs<DeviceError, ArgumentError> &&
                kIs<IndexError, ArgumentError> && kIs<LayoutError, ArgumentError>);
  static_assert(kIs<AutogradError, Error> && !kIs<AutogradError, ArgumentError>);
  static_assert(kIs<OutOfMemoryError, Error> &&
                !std::is_base_of_v<std::bad_alloc, OutOfMemoryError>);
  static_assert(kIs<IoError, Error> && kIs<FormatError, IoError> && kIs<LimitError, FormatError>);
  static_assert(kIs<CommError, Error> && kIs<WorkerError, Error> && kIs<ReplicaError, Error> &&
                kIs<InternalError, Error>);
  // Each converts to std::exception (two bases would make that ambiguous).
  using Calls = std::vector<std::function<void()>>;
  for (const std::function<void()>& make : Calls{
           [] { throw ShapeError("x"); }, [] { throw OutOfMemoryError(Device("cpu"), 1, 2, 3, 4); },
           [] { throw LimitError("p", 1, "f", "e", "g"); },
           [] { throw ReplicaError({{0, Device("cpu"), "T", "m", nullptr}}); }})
    CHECK_THROWS_AS(make(), std::exception);
  // Copying does not throw.
  static_assert(std::is_nothrow_copy_constructible_v<ShapeError>);
}

TEST_CASE("errors: only some are worth trying again", "[errors]") {
  CHECK_FALSE((ShapeError("x").retryable() || AutogradError("x").retryable()));
  CHECK_FALSE((InternalError("x").retryable() || FormatError("p", 1, "f", "e", "g").retryable()));
  CHECK(OutOfMemoryError(Device("cpu"), 1, 2, 3, 4).retryable());
  for (const int number : {ENOSPC, EDQUOT}) CHECK(IoError("p", "write", number).retryable());
  for (const int number : {ENOENT, EIO}) CHECK_FALSE(IoError("p", "open", number).retryable());
}

TEST_CASE("errors: out of memory carries its figures", "[errors]") {
  const OutOfMemoryError e(Device("cpu:1"), std::size_t{3} << 30, std::size_t{5} << 20, 1024,
                           std::size_t{1} << 30, "the hook");
  CHECK(e.device == Device("cpu:1"));
  CHECK(e.requested == std::size_t{3} << 30);
  CHECK(
      (e.in_use == std::size_t{5} << 20 && e.cached == 1024 && e.capacity == std::size_t{1} << 30));
  INFO(e.what());
  for (const char* part : {"cpu:1", "expected 3221225472 free bytes", "5242880 in use",
                           "1024 cached", "capacity 1073741824", "the hook"})
    CHECK(matches(e.what(), part));
  CHECK(matches(OutOfMemoryError(Device("cpu"), 10, 0, 0, 0).what(), "capacity unlimited"));
}

TEST_CASE("errors: files carry path, operation, errno and offset", "[errors]") {
  const IoError e("dir/model.bin", "read", EIO, 4096, "while loading");
  CHECK(e.path == "dir/model.bin");
  CHECK(e.operation == "read");
  CHECK(e.error_number == EIO);
  CHECK(e.offset == 4096);
  INFO(e.what());
  for (const char* part : {"dir/model.bin", "read", "4096", "nput/output error", "while loading"})
    CHECK(matches(e.what(), part));
  const FormatError f("x.idx", 3, "magic", "0 0 8 3", "1 2 3 4");
  CHECK(matches(f.what(), "x.idx: magic: expected 0 0 8 3, got 1 2 3 4*3"));
  CHECK(f.field == "magic");
  CHECK(f.expected == "0 0 8 3");
  CHECK(f.got == "1 2 3 4");
  CHECK(f.offset == 3);
  CHECK(
      matches(LimitError("x", 0, "rank", "<= 16", "17").what(), "x: rank: expected <= 16, got 17"));
}

TEST_CASE("errors: a replica's failure keeps the original", "[errors]") {
  const std::exception_ptr shape = pointer([] { throw ShapeError("matmul: expected 3, got 4"); }),
                           number = pointer([] { throw 5; });
  const ReplicaError e(
      {{1, Device("cpu:1"), exception_type(shape), exception_message(shape), shape},
       {3, Device("cpu:3"), exception_type(number), exception_message(number), number}});
  CHECK(std::string(e.what()).rfind(
            "Caught ShapeError in replica 1 on device cpu:1: matmul: expected 3, got 4", 0) == 0);
  CHECK(e.index() == 1);
  CHECK(e.device() == Device("cpu:1"));
  CHECK(e.failures.size() == 2);
  REQUIRE(e.cause<ShapeError>() != nullptr);
  CHECK(std::string(e.cause<ShapeError>()->what()) == "matmul: expected 3, got 4");
  CHECK(e.cause<Error>() != nullptr);
  CHECK(e.cause<std::exception>() != nullptr);
  CHECK(e.cause<DTypeError>() == nullptr);
  CHECK(e.cause<int>() == nullptr);
  const ReplicaError other(
      {{0, Device("cpu:0"), exception_type(number), exception_message(number), number}});
  REQUIRE(other.cause<int>() != nullptr);
  CHECK(*other.cause<int>() == 5);
  CHECK(matches(other.what(), "Caught unknown in replica 0 on device cpu:0"));
  // A copy of the error keeps the cause too.
  const ReplicaError copy = e;
  CHECK(copy.cause<ShapeError>() == e.cause<ShapeError>());
}

TEST_CASE("errors: names and messages of any exception", "[errors]") {
  const auto of = [](const std::function<void()>& f) {
    return str(exception_type(pointer(f)), ": ", exception_message(pointer(f)));
  };
  CHECK(of([] { throw ShapeError("a"); }) == "ShapeError: a");
  CHECK(of([] { throw std::out_of_range("b"); }) == "std::out_of_range: b");
  CHECK(exception_type(pointer([] { throw std::bad_alloc(); })) == "std::bad_alloc");
  CHECK(of([] { throw 3; }) == "unknown: unknown exception");
  CHECK(of([] { throw "text"; }) == "unknown: unknown exception");
}

TEST_CASE("errors: check() throws what it is told; str() joins anything that prints", "[errors]") {
  CHECK_NOTHROW(check(true, "fine"));
  CHECK_THROWS_TEXT(Error, "the split changes nothing", check(false, "the split changes nothing"));
  CHECK(str("a ", 1, ' ', 2.5, ' ', Shape{1, 2}, ' ', DType::int64, ' ', Device("cpu:1")) ==
        "a 1 2.5 [1, 2] int64 cpu:1");
}

TEST_CASE("errors: warnings go to the handler, from any thread", "[errors]") {
  std::mutex mutex;
  std::vector<std::string> seen;
  const auto before = set_warning_handler([&](std::string_view text) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(text);
  });
  warn("one");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([i] { warn(str("thread ", i)); });
  for (std::thread& t : threads) t.join();
  const auto mine = set_warning_handler(before);
  CHECK(seen.size() == 5);
  CHECK(seen.front() == "one");
  // The previous handler is returned, and can be called.
  mine("again");
  CHECK(seen.size() == 6);
  // A handler may warn or set another handler without a deadlock.
  int calls = 0;
  const auto outer = set_warning_handler([&](std::string_view) {
    if (++calls == 1) {
      warn("nested");
      (void)set_warning_handler({});
    }
  });
  warn("first");
  (void)set_warning_handler(outer);
  CHECK(calls == 2);
}

TEST_CASE("errors: a message is one line, and names the call first", "[errors]") {
  const std::vector<std::function<void()>> wrong{
      [] { (void)zeros({2}).reshape({3}); },  [] { (void)zeros({-1}); },
      [] { (void)Device("nowhere"); },        [] { (void)arange(0, 1, 0); },
      [] { (void)zeros({2}).item<float>(); }, [] { (void)zeros({2})[5]; }};
  for (const auto& f : wrong) {
    const std::string text = exception_message(pointer(f));
    INFO(text);
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.find(": expected ") != std::string::npos);
    CHECK(text.find(", got ") != std::string::npos);
    CHECK(text.find(": ") < text.find("expected"));
  }
}

}  // namespace braid::test
