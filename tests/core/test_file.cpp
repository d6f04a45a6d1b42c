#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include <braid/core/internal/io/checked.hpp>

#include "shorthand.hpp"
#include "support/faulty_files.hpp"
#include "support/temporary.hpp"

namespace braid::test {
namespace {

Tensor bytes_tensor(std::int64_t n, unsigned char first) {
  return arange(first, first + n).to(DType::uint8);
}

}  // namespace

TEST_CASE("checked: arithmetic that does not fit is refused", "[io]") {
  std::uint64_t r = 0;
  CHECK((io::checked_mul<std::uint64_t>(1u << 31, 1u << 31, r) && r == std::uint64_t{1} << 62));
  CHECK_FALSE(io::checked_mul<std::uint64_t>(std::uint64_t{1} << 32, std::uint64_t{1} << 32, r));
  CHECK_FALSE(io::checked_add<std::uint64_t>(~std::uint64_t{0}, 1, r));
  CHECK((io::fits(0, 0, 0) && io::fits(3, 2, 5) && io::fits(5, 0, 5)));
  CHECK_FALSE((io::fits(3, 3, 5) || io::fits(6, 0, 5) || io::fits(1, ~std::uint64_t{0}, 5)));
  const auto bytes = [&](std::vector<std::int64_t> sizes, std::uint64_t element) {
    return io::checked_bytes(sizes, element, r);
  };
  CHECK(bytes({}, 8));
  CHECK(r == 8);
  CHECK(bytes({2, 3}, 4));
  CHECK(r == 24);
  CHECK(bytes({2, 0, 3}, 4));
  CHECK(r == 0);
  CHECK((bytes({INT64_MAX}, 1) && r == INT64_MAX));
  CHECK_FALSE((bytes({INT64_MAX}, 2) || bytes({-1}, 1) || bytes({0, -1}, 1) ||
               bytes({0, INT64_MAX, 2}, 1)));
}

TEST_CASE("file: a save is flushed, renamed and flushed again, and is private until then", "[io]") {
  const TemporaryFolder folder;
  const WithFaults with({});
  save_safetensors(folder / "x", {{"x", bytes_tensor(100, 1)}});
  CHECK(faults.last_fsync > 0);
  CHECK(faults.renamed > faults.last_fsync);
  CHECK(faults.folder_fsync > faults.renamed);
  CHECK(faults.written_mode == 0600);
}

TEST_CASE(
    "file: any failing call of a save leaves the old file, no other one, and says what failed",
    "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const Tensor old_tensor = bytes_tensor(100, 1), new_tensor = bytes_tensor(200, 7);
  for (const bool replaces : {true, false}) {
    std::string before;
    std::remove(path.c_str());
    if (replaces) {
      save_safetensors(path, {{"x", old_tensor}});
      before = read_file(path);
    }
    for (const int error : {EIO, ENOSPC, EDQUOT, EACCES}) {
      for (const bool persistent : {false, true}) {
        int k = 1;
        for (;; ++k) {
          INFO("call " << k << " error " << error << " replaces " << replaces);
          const int files = open_files();
          const WithFaults with({.fail_at = k, .error = error, .persistent = persistent});
          try {
            save_safetensors(path, {{"x", new_tensor}});
            if (faults.calls < k) break;
            // a failed search for files of killed saves, a failed lock or a failed close is no
            // error
            CHECK((faults.failed == "list" || faults.failed == "lock" || faults.failed == "close"));
          } catch (const IoError& e) {
            CHECK(e.error_number == error);
            CHECK(e.path == path);
            CHECK_FALSE(e.operation.empty());
            CHECK(matches(e.what(), std::strerror(error)));
            CHECK(e.retryable() == (error == ENOSPC || error == EDQUOT));
          }
          io::set_file_system(nullptr);
          CHECK(open_files() == files);
          if (faults.renamed == 0) {
            CHECK(!faults.failed.empty());
            if (replaces) CHECK(read_file(path) == before);
            // If the removal fails too, the temporary file stays. Nothing else stays.
            CHECK(folder.names().size() <= (replaces ? 1u : 0u) + (persistent ? 1u : 0u));
          } else {  // only the folder's fsync failed: the new file exists
            CHECK(load_safetensors(path).at("x").numel() == 200);
          }
          for (const std::string& name : folder.names()) std::remove((folder / name).c_str());
          if (replaces) save_safetensors(path, {{"x", old_tensor}});
        }
        CHECK(k >= 8);  // open, stat, open, write (twice), fsync, fchmod, close, rename at least
        io::set_file_system(nullptr);
        std::remove(path.c_str());
        if (replaces) save_safetensors(path, {{"x", old_tensor}});
      }
    }
  }
}

TEST_CASE("file: interrupted calls and short transfers are gone on with", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const Tensor tensor = bytes_tensor(300, 3);
  save_safetensors(path, {{"x", tensor}});
  const std::string expected = read_file(path);
  for (int k = 1; k <= 30; ++k) {
    std::remove(path.c_str());
    const WithFaults with({.fail_at = k, .error = EINTR});
    save_safetensors(path, {{"x", tensor}});
    CHECK(read_file(path) == expected);
    CHECK(folder.names().size() == 1);
  }
  for (int k = 1; k <= 10; ++k) {
    const WithFaults with({.fail_at = k, .error = EINTR});
    CHECK(load_safetensors(path).at("x").numel() == 300);
  }
  for (const std::size_t most : {1u, 7u}) {
    const WithFaults with({.most = most});
    std::remove(path.c_str());
    save_safetensors(path, {{"x", tensor}});
    CHECK(read_file(path) == expected);
    CHECK_SAME_BITS(load_safetensors(path).at("x"), tensor);
  }
}

TEST_CASE("file: any failing call of a load is an IoError and leaks nothing", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  save_safetensors(path, {{"x", bytes_tensor(300, 3)}});
  const int files = open_files();
  int k = 1;
  for (;; ++k) {
    const WithFaults with({.fail_at = k});
    try {
      static_cast<void>(load_safetensors(path));
      // a failing close loses nothing of a file that was read
      if (faults.failed == "close") continue;
      break;
    } catch (const IoError& e) {
      CHECK(e.error_number == EIO);
      CHECK(e.path == path);
      CHECK((e.operation == "open" || e.operation == "fstat" || e.operation == "read"));
    }
    CHECK(open_files() == files);
  }
  CHECK(k > 5);
}

TEST_CASE("file: what a killed save has left is removed by the next one", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x", stale = folder / ".braid-0123456789abcdef.tmp";
  const Tensor tensor = bytes_tensor(300, 3);
  const auto has = [](const std::string& file) {
    struct stat info{};
    return ::lstat(file.c_str(), &info) == 0;
  };
  // A save in progress, in another thread or process, must not be removed.
  io::OutputFile other(folder / "other");
  other.write("abc", 3);
  for (int i = 0; i < 3; ++i) {
    write_file(stale, "half");
    save_safetensors(path, {{"x", tensor}});
    CHECK_FALSE(has(stale));
  }
  other.commit();
  CHECK(read_file(folder / "other") == "abc");
  CHECK(folder.names().size() == 2);
  // A file with a similar name must not be removed either.
  const std::string kept[] = {".braid-0123456789abcde.tmp", ".braid-0123456789abcdef0.tmp",
                              ".braid-0123456789abcdef", "braid-0123456789abcdef.tmp"};
  for (const std::string& name : kept) write_file(folder / name, "mine");
  CHECK(::symlink("x", (folder / ".braid-000000000000000a.tmp").c_str()) == 0);
  CHECK(::mkfifo((folder / ".braid-000000000000000b.tmp").c_str(), 0666) == 0);
  CHECK(::mkdir((folder / ".braid-000000000000000c.tmp").c_str(), 0777) == 0);
  save_safetensors(path, {{"x", tensor}});
  CHECK(folder.names().size() == 2 + 4 + 3);
  CHECK(load_safetensors(path).at("x").numel() == 300);
}

TEST_CASE("file: many processes are killed in a save", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const Tensor tensor = bytes_tensor(100'000, 3);
  save_safetensors(path, {{"x", tensor}});
  int left = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {  // killed before the rename
      io::OutputFile file(path);
      file.write("half", 4);
      ::raise(SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    left = std::max(left, static_cast<int>(folder.names().size()) - 1);
  }
  CHECK(left == 1);
  save_safetensors(path, {{"x", tensor}});
  CHECK(folder.names().size() == 1);
}

TEST_CASE("file: a log is a regular file, whatever stands at its path", "[io][errors]") {
  const TemporaryFolder folder;
  using Start = io::LogFile::Start;
  write_file(folder / "precious", "numbers");
  CHECK(::symlink("precious", (folder / "link").c_str()) == 0);
  CHECK(::symlink("nothing", (folder / "dangling").c_str()) == 0);
  CHECK(::mkfifo((folder / "pipe").c_str(), 0666) == 0);
  for (const Start start : {Start::append, Start::truncate}) {
    CHECK_THROWS_TEXT(IoError, "link: expected a regular file, got a symbolic link",
                      io::LogFile(folder / "link", start));
    CHECK_THROWS_TEXT(IoError, "dangling: expected a regular file, got a symbolic link",
                      io::LogFile(folder / "dangling", start));
    CHECK_THROWS_TEXT(IoError, "pipe: expected a regular file, got something else",
                      io::LogFile(folder / "pipe", start));
    const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
    CHECK_THROWS_TEXT(IoError, "pipe: expected a regular file, got something else",
                      io::LogFile(folder / "pipe", start));
    ::close(reader);
    CHECK_THROWS_TEXT(IoError, "null: expected a regular file", io::LogFile("/dev/null", start));
    CHECK_THROWS_AS(io::LogFile(folder.path(), start), IoError);
    CHECK_THROWS_TEXT(IoError, "a symbolic link",
                      io::LogFile(io::Folder(folder.path()), "link", start));
  }
  CHECK(read_file(folder / "precious") == "numbers");
  CHECK(folder.names().size() == 4);
  for (const Start start : {Start::append, Start::append, Start::truncate}) {
    io::LogFile log(folder / "log", start);
    log.write("abc", 3);
    CHECK(log.size() == read_file(folder / "log").size());
  }
  CHECK(read_file(folder / "log") == "abc");
}

TEST_CASE("file: one that shrinks while it is read is an IoError", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  write_file(path, std::string(1000, 'x'));
  const io::InputFile file(path);
  CHECK(file.size() == 1000);
  char buffer[600];
  file.read(buffer, 600, 400);
  write_file(path, std::string(500, 'y'));
  CHECK_THROWS_TEXT(IoError, "read*at byte 500*expected 500 more bytes, got the end of the file",
                    file.read(buffer, 600, 400));
  CHECK_THROWS_TEXT(IoError, "expected 1 more bytes, got the end",
                    io::MemorySource({}).read(buffer, 1, 0));
}

TEST_CASE("file: a real limit on file size is an IoError, and the old file stays", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  save_safetensors(path, {{"x", bytes_tensor(100, 1)}});
  const std::string before = read_file(path);
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string failure = "nothing was thrown";
  try {
    save_safetensors(path, {{"x", bytes_tensor(10'000, 1)}});
  } catch (const IoError& e) {
    failure = e.error_number == EFBIG && e.operation == "write" && e.offset == 4096 ? "" : e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(failure == "");
  CHECK(read_file(path) == before);
  CHECK(folder.names() == std::vector<std::string>{"x"});
}

}  // namespace braid::test
