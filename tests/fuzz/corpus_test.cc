// What fuzzing has kept, through the same entry points without a fuzzer: in every build, with every
// compiler.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

namespace fs = std::filesystem;

// Set by CMake: the folder corpus/.
fs::path Corpus() {
  const char* folder = std::getenv("FLUXQUEUE_FUZZ_CORPUS");
  return folder == nullptr ? "tests/fuzz/corpus" : folder;
}

std::vector<fs::path> FilesOf(std::string_view target) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(Corpus() / target)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  return files;
}

std::string Read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, Replays) {
  const std::vector<fs::path> files = FilesOf(GetParam().name);
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) {
    // A check that fails ends the process: the last file named is the one.
    std::cout << file.string() << std::endl;
    const auto begun = std::chrono::steady_clock::now();
    GetParam().run(Read(file));
    // No input here is large; with sanitizers too, this is far more than one takes.
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, ::testing::ValuesIn(kTargets), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace fluxqueue::fuzz
