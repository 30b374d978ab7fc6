// Rows of words in aligned columns: the first to the left, the others to the right.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvlift::experiment {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : rows_{std::move(head)} {}
  /// Missing cells stay empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() < 2; }
  /// Each line starts with `indent` and ends without blanks. Columns are no narrower than asked, so that tables one
  /// below the other line up.
  std::string text(const std::string& indent = "  ", std::size_t first_width_min = 0, std::size_t width_min = 0) const;
  /// The same cells as a Markdown table.
  std::string markdown() const;
  /// The same cells as CSV (RFC 4180).
  std::string csv() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kvlift::experiment
