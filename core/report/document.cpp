#include "core/report/document.hpp"

#include <algorithm>

#include "core/report/layout.hpp"
#include "core/report/words.hpp"

namespace tidemark {
namespace {

std::string_view colour_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return {};
    case Tone::kStrong:
      return "1";
    case Tone::kDim:
      return "2";
    case Tone::kGood:
      return "32";
    case Tone::kWarning:
      return "33";
    case Tone::kBad:
      return "31";
  }
  return {};
}

std::string painted(std::string_view text, Tone tone, const TextStyle& style) {
  const std::string_view colour = colour_of(tone);
  if (!style.colour || colour.empty() || text.empty()) return std::string{text};
  return "\x1b[" + std::string{colour} + "m" + std::string{text} + "\x1b[0m";
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    longest = std::max(longest, columns_of(text.substr(0, end)));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return longest;
}

std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  const std::string wrapped = wrap(text, width, 0);
  for (std::size_t at = 0; at <= wrapped.size();) {
    const std::size_t end = std::min(wrapped.find('\n', at), wrapped.size());
    lines.push_back(wrapped.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// How many lines the rows of a table take.
std::size_t height_of(const Block& table, const std::vector<std::size_t>& widths) {
  std::size_t height = 0;
  for (const auto& row : table.rows) {
    std::size_t highest = 1;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (columns_of(row[c].text) <= widths[c] || table.columns[c].right) continue;
      highest = std::max(highest, lines_of(row[c].text, widths[c]).size());
    }
    height += highest;
  }
  return height;
}

/// What each column takes: where a line would be too wide, columns of words are broken, never within a word and so that
/// the table grows least.
std::vector<std::size_t> widths_of(const Block& table, std::size_t width) {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> least;
  std::size_t total = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t most = columns_of(table.columns[c].head);
    std::size_t words = most;
    for (const auto& row : table.rows) {
      most = std::max(most, columns_of(row[c].text));
      words = std::max(words, longest_word(row[c].text));
    }
    widths.push_back(most);
    least.push_back(table.columns[c].right ? most : words);
    total += most + 2;
  }
  while (total > width) {
    std::size_t best = widths.size();
    std::size_t best_height = 0;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] <= least[c]) continue;
      --widths[c];
      const std::size_t height = height_of(table, widths);
      ++widths[c];
      if (best == widths.size() || height < best_height || (height == best_height && widths[c] > widths[best])) {
        best = c;
        best_height = height;
      }
    }
    if (best == widths.size()) break;
    --widths[best];
    --total;
  }
  return widths;
}

void text_table(const Block& table, const TextStyle& style, std::size_t width, std::string& out) {
  const std::vector<std::size_t> widths = widths_of(table, width);
  const auto write = [&](const std::vector<TextPiece>& row) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t c = 0; c < row.size(); ++c) {
      cells.push_back(table.columns[c].right ? std::vector{row[c].text} : lines_of(row[c].text, widths[c]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string text = line < cells[c].size() ? cells[c][line] : std::string{};
        const std::string padded = table.columns[c].right ? pad_left(text, widths[c])
                                   : c + 1 == row.size()  ? text
                                                          : pad_right(text, widths[c]);
        out += "  " + (text.empty() ? padded : painted(padded, row[c].tone, style));
      }
      end_line(out);
    }
  };
  std::vector<TextPiece> head;
  bool named = false;
  for (const Block::Column& column : table.columns) {
    head.push_back({column.head, Tone::kDim});
    named = named || !column.head.empty();
  }
  if (named) write(head);
  for (const auto& row : table.rows) write(row);
}

std::string cell(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '|') {
      safe += "\\|";
    } else if (c == '<') {
      safe += "&lt;";
    } else {
      safe += c == '\n' ? ' ' : c;
    }
  }
  return safe;
}

void markdown_table(const Block& table, std::string& out) {
  out += "|";
  for (const Block::Column& column : table.columns) out += " " + cell(column.head) + " |";
  out += "\n|";
  for (const Block::Column& column : table.columns) out += column.right ? "---:|" : "---|";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const TextPiece& piece : row) {
      const bool strong = !piece.text.empty() && (piece.tone == Tone::kStrong || piece.tone == Tone::kGood);
      out += strong ? " **" + cell(piece.text) + "** |" : " " + cell(piece.text) + " |";
    }
    out += "\n";
  }
}

}  // namespace

void Document::title(std::string text) {
  Block block;
  block.kind = Block::Kind::kTitle;
  block.text = {std::move(text), Tone::kStrong};
  blocks.push_back(std::move(block));
}

void Document::heading(std::string text) {
  Block block;
  block.kind = Block::Kind::kHeading;
  block.text = {std::move(text), Tone::kStrong};
  blocks.push_back(std::move(block));
}

void Document::paragraph(std::string text, Tone tone) {
  Block block;
  block.text = {std::move(text), tone};
  blocks.push_back(std::move(block));
}

Block& Document::table(std::vector<Block::Column> columns) {
  Block block;
  block.kind = Block::Kind::kTable;
  block.columns = std::move(columns);
  blocks.push_back(std::move(block));
  return blocks.back();
}

std::string render_text(const Document& document, const TextStyle& style) {
  const std::size_t width = std::max<std::size_t>(style.width, 40);
  std::string out;
  for (const Block& block : document.blocks) {
    switch (block.kind) {
      case Block::Kind::kTitle:
        out += painted(block.text.text, block.text.tone, style);
        end_line(out);
        break;
      case Block::Kind::kHeading:
        out += "\n" + painted(block.text.text, block.text.tone, style);
        end_line(out);
        break;
      case Block::Kind::kParagraph:
        out += "  " + painted(wrap(block.text.text, width, 2), block.text.tone, style);
        end_line(out);
        break;
      case Block::Kind::kTable:
        text_table(block, style, width, out);
        break;
    }
  }
  if (!style.unicode) out = to_ascii(out);
  if (!document.issues.empty()) out += "\n" + render_issues(document.issues, style);
  return out;
}

std::string render_markdown(const Document& document) {
  std::string out;
  for (const Block& block : document.blocks) {
    if (!out.empty()) out += "\n";
    switch (block.kind) {
      case Block::Kind::kTitle:
        out += "## " + block.text.text + "\n";
        break;
      case Block::Kind::kHeading:
        out += "### " + block.text.text + "\n";
        break;
      case Block::Kind::kParagraph:
        out += block.text.text + "\n";
        break;
      case Block::Kind::kTable:
        markdown_table(block, out);
        break;
    }
  }
  if (!document.issues.empty()) out += "\n### Notes\n\n";
  for (const Issue& issue : document.issues) {
    out += "- **" + std::string{severity_in_words(issue.severity)} + "** `" + issue.code + "`";
    if (!issue.path.empty()) out += " `" + issue.path + "`";
    out += ": " + issue.message + "\n";
  }
  return out;
}

}  // namespace tidemark
