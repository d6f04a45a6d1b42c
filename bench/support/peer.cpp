#include "support/peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

namespace bench {
namespace {

constexpr int kStartSeconds = 120;   // importing PyTorch from a cold disk
constexpr int kAnswerSeconds = 600;  // the longest row on a slow machine
constexpr int kGoodbyeSeconds = 25;  // the processes of DDP shut down together

// Returns the text after `"key": ` in an answer, which is one flat line.
const char* after(const std::string& json, const char* key) {
  const std::string mark = std::string("\"") + key + "\": ";
  const std::size_t at = json.find(mark);
  return at == std::string::npos ? nullptr : json.c_str() + at + mark.size();
}

}  // namespace

Peer::Peer(std::string name, const std::string& program, const std::string& cores,
           const std::string& variable)
    : name_(std::move(name)) {
  if (access(program.c_str(), X_OK) != 0) {
    error_ = "not set up (bench/peers/setup.sh makes it)";
    return;
  }
  signal(SIGPIPE, SIG_IGN);  // write() to a dead peer must fail, not kill us
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) {
    error_ = std::strerror(errno);
    return;
  }
  if (pipe2(out, O_CLOEXEC) != 0) {
    error_ = std::strerror(errno);
    close(in[0]), close(in[1]);
    return;
  }
  const std::string pins = "BRAID_PIN_CORES=" + cores;
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "BRAID_PIN_CORES=", 16) != 0) environment.push_back(*e);
  environment.push_back(const_cast<char*>(pins.c_str()));
  if (!variable.empty()) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_ = fork();
  if (pid_ == 0) {  // only async-signal-safe calls
    dup2(in[0], 0);
    dup2(out[1], 1);
    execve(program.c_str(), arguments, environment.data());
    _exit(127);
  }
  close(in[0]), close(out[1]);
  to_ = in[1], from_ = out[0];
  if (pid_ < 0) {
    error_ = std::strerror(errno);
    stop(false);
    return;
  }
  if (const auto hello = ask("hello")) {
    if (const char* version = after(*hello, "version"))
      name_ += " " + std::string(version + 1, std::strcspn(version + 1, "\""));
  } else {
    stop(true);
  }
}

Peer::~Peer() { stop(false); }

void Peer::stop(bool kill_it) {
  if (pid_ > 0) {
    if (kill_it) kill(pid_, SIGKILL);
    else if (write(to_, "quit\n", 5) != 5) kill(pid_, SIGKILL);
  }
  if (to_ >= 0) close(std::exchange(to_, -1));
  if (pid_ > 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kGoodbyeSeconds);
    while (waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  pid_ = -1;
  if (from_ >= 0) close(std::exchange(from_, -1));
}

std::optional<std::string> Peer::read_line(int timeout_s) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - std::chrono::steady_clock::now())
                          .count();
    pollfd wait{from_, POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      error_ = "no answer within " + std::to_string(timeout_s) + " s";
      return std::nullopt;
    }
    char chunk[4096];
    const ssize_t n = read(from_, chunk, sizeof chunk);
    if (n <= 0) {
      error_ = "it ended";
      return std::nullopt;
    }
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

std::optional<std::string> Peer::ask(const std::string& line) {
  if (!available()) return std::nullopt;
  const std::string text = line + "\n";
  if (write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    error_ = "it ended";
    stop(true);
    return std::nullopt;
  }
  auto answer = read_line(line == "hello" ? kStartSeconds : kAnswerSeconds);
  if (!answer) {
    stop(true);
    return std::nullopt;
  }
  if (const char* what = after(*answer, "error")) {
    error_ = std::string(what + 1, std::strlen(what) > 3 ? std::strlen(what) - 3 : 0);
    return std::nullopt;
  }
  return answer;
}

// From /proc, because getrusage would also count the parent's pages before exec.
double Peer::peak_bytes() const {
  std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
  double kib = 0;
  for (std::string line; std::getline(in, line);)
    if (line.rfind("VmHWM:", 0) == 0) kib = std::strtod(line.c_str() + 6, nullptr);
  return kib * 1024;
}

std::optional<double> Peer::run(const std::string& row, int threads, int iterations) {
  const auto answer =
      ask("run " + row + " " + std::to_string(threads) + " " + std::to_string(iterations));
  if (!answer) return std::nullopt;
  const char* us = after(*answer, "us");
  const double value = us ? std::strtod(us, nullptr) : 0;
  if (!(value > 0)) {
    error_ = "an answer without a time: " + *answer;
    return std::nullopt;
  }
  return value;
}

std::vector<double> Peer::losses(const std::string& row, int threads, int count) {
  const auto answer =
      ask("losses " + row + " " + std::to_string(threads) + " " + std::to_string(count));
  std::vector<double> values;
  const char* at = answer ? after(*answer, "losses") : nullptr;
  while (at && *at != ']' && *at != '\0') {
    char* end = nullptr;
    const double value = std::strtod(++at, &end);  // after '[' or ','
    if (end == at) break;
    values.push_back(value);
    at = end;
  }
  return values;
}

}  // namespace bench
