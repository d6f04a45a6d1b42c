// A program that uses the standard library alone. The check api compiles it as a reference, to
// measure how fast this machine's compiler is.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

int main() {
  const std::regex word("[a-z]+");
  std::map<std::string, std::vector<int>> lists;
  std::unordered_map<std::string, std::variant<int, double, std::string>> values;
  lists["a"].push_back(std::regex_match("abc", word));
  values["b"] = 2.0;
  const std::function<int(int)> next = [](int x) { return x + 1; };
  std::future<int> later = std::async(next, 2);
  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  std::cout << later.get() + normal(generator) << std::filesystem::path("a/b").filename()
            << lists.size() << values.size();
}
