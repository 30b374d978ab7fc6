#include "tools/experiment/json_text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

/// Builds the tree itself, because the library's own builder keeps the last of two equal keys and says nothing.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr), true; }
  bool boolean(bool value) override { return add(value), true; }
  bool number_integer(number_integer_t value) override { return add(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return add(value), true; }
  bool number_float(number_float_t value, const string_t&) override { return add(value), true; }
  bool string(string_t& value) override { return add(std::move(value)), true; }
  bool binary(binary_t&) override { return false; }  // text has none
  bool start_object(std::size_t) override { return open_.push_back(&add(Json::object())), true; }
  bool start_array(std::size_t) override { return open_.push_back(&add(Json::array())), true; }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) throw UserError(file_ + ": " + path_to(name) + ": given twice");
    keys_.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    const auto end =
        text_.begin() + static_cast<std::ptrdiff_t>(std::min(position > 0 ? position - 1 : 0, text_.size()));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    const auto line_start = std::find(std::make_reverse_iterator(end), text_.rend(), '\n').base();
    std::string reason = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - ..."
    for (const char* lead : {"] ", "column ", ": ", " - "}) {
      if (const auto at = reason.find(lead); at != std::string::npos) reason.erase(0, at + std::strlen(lead));
    }
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw UserError(file_ + ":" + std::to_string(line) + ":" + std::to_string(end - line_start + 1) + ": " + reason);
  }

 private:
  Json& add(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_array()) return parent.emplace_back(std::move(value));
    Json& slot = parent[keys_.back()];
    slot = std::move(value);
    if (!slot.is_structured()) keys_.pop_back();
    return slot;
  }

  bool close() {
    open_.pop_back();
    if (!open_.empty() && open_.back()->is_object()) keys_.pop_back();
    return true;
  }

  std::string path_to(const std::string& name) const {
    std::string path;
    std::size_t next_key = 0;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (open_[i]->is_array()) {
        path += "[" + std::to_string(open_[i]->size() - 1) + "]";
      } else {
        path += (path.empty() ? "" : ".") + keys_[next_key++];
      }
    }
    return path.empty() ? name : path + "." + name;
  }

  const std::string& text_;
  const std::string& file_;
  Json root_;
  std::vector<Json*> open_;        ///< from the root to the innermost open object or array
  std::vector<std::string> keys_;  ///< keys whose value is open
};

constexpr std::size_t kTextBytesMax = 16 << 20;

/// Of the first value, behind blanks and comments.
std::size_t first_value(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    const bool line = text.substr(at).starts_with("//");
    if (!line && !text.substr(at).starts_with("/*")) break;
    at = line ? std::min(text.find('\n', at), text.size()) : std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  }
  return at;
}

}  // namespace

Json parse_json(const std::string& text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf"))
    throw UserError(file + ":1: the line starts with a byte order mark; a scenario is UTF-8 without one");
  TreeBuilder builder(text, file);
  Json::sax_parse(text, &builder, nlohmann::detail::input_format_t::json, true, true);
  Json tree = builder.take();
  if (!tree.is_object()) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(first_value(text));
    throw UserError(file + ":" + std::to_string(1 + std::count(text.begin(), end, '\n')) + ": must be an object");
  }
  return tree;
}

std::string read_text_file(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) throw UserError(file + ": cannot be read: it is a directory");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw UserError(file + ": cannot be read: " + std::strerror(errno));
  std::string text;
  std::array<char, 65536> chunk{};
  while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kTextBytesMax)
      throw UserError(file + ": cannot be read: it is longer than " + std::to_string(kTextBytesMax >> 20) + " MiB");
  }
  if (in.bad()) throw UserError(file + ": cannot be read: " + std::strerror(errno));
  return text;
}

Json parse_json_file(const std::string& file) { return parse_json(read_text_file(file), file); }

}  // namespace kvlift::experiment
