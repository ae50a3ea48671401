#include "tools/fluxqueue/archive.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include <fmt/format.h>
#include <zlib.h>

#include "libs/base/check.h"

namespace fluxqueue::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kSumAt = 148;
constexpr size_t kSumSize = 8;

void Put(std::array<char, kBlock>* header, size_t at, std::string_view text) {
  text.copy(header->data() + at, text.size());
}

// Without the lines of YAML's blocks that are values of such keys: "password: |" and what is
// deeper.
std::string WithoutSecretBlocks(const std::string& text) {
  static const std::regex kBegin(
      R"re([ -]*["']?[\w.-]*(password|passwd|token|secret|authorization)["']?\s*:\s*[|>][-+0-9]*\s*)re",
      std::regex::icase);
  std::string result;
  std::optional<size_t> column;  // of the key
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    if (column.has_value() && line.find_first_not_of(" \n") > *column) continue;
    column.reset();
    if (std::regex_match(line, kBegin)) column = line.find_first_not_of(" -");
    result += line;
  }
  return result;
}

}  // namespace

// A ustar header, and the content in whole blocks.
void Archive::Add(const std::string& name, std::string_view content) {
  const std::string path = folder_ + "/" + name;
  CHECK(path.size() < 100, "{}", path);
  std::array<char, kBlock> header{};
  Put(&header, 0, path);
  Put(&header, 100, "0000644");
  Put(&header, 108, "0000000");
  Put(&header, 116, "0000000");
  Put(&header, 124, fmt::format("{:011o}", content.size()));
  Put(&header, 136, fmt::format("{:011o}", time_.count() / 1000));
  Put(&header, kSumAt, std::string(kSumSize, ' '));
  Put(&header, 156, "0");
  Put(&header, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  Put(&header, kSumAt, fmt::format("{:06o}", sum) + '\0');
  tar_.append(header.data(), header.size());
  tar_.append(content);
  tar_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

std::string Archive::Pack() const {
  // It ends with two empty blocks.
  const std::string whole = tar_ + std::string(2 * kBlock, '\0');
  constexpr int kGzip = 16;
  z_stream stream{};
  CHECK(deflateInit2(
            &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) ==
            Z_OK,
        "zlib");
  std::string packed(deflateBound(&stream, whole.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(whole.data()));
  stream.avail_in = static_cast<uInt>(whole.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Redacted(const std::string& text) {
  static const std::regex kAssigned(
      R"re(\b([\w.-]*(password|passwd|token|secret))\s*=\s*('[^']*'|\\?"[^"]*"|[^\s'"&,}]+))re",
      std::regex::icase);
  static const std::regex kUrl(R"re((://[^\s:/@"]*):[^\s@/"]+@)re");
  static const std::regex kKey(
      R"re((["']?[\w.-]*(password|passwd|token|secret|authorization)\\?["']?\s*:\s*)(\\?"[^"\n]*"|'[^'\n]*'|[^\s,}{"']+))re",
      std::regex::icase);
  std::string result = std::regex_replace(WithoutSecretBlocks(text), kAssigned, "$1=(redacted)");
  result = std::regex_replace(result, kUrl, "$1:(redacted)@");
  return std::regex_replace(result, kKey, "$1\"(redacted)\"");
}

}  // namespace fluxqueue::cli
