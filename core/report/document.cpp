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

void text_table(const Block& table, const TextStyle& style, std::size_t width, std::string& out) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t most = columns_of(table.columns[c].head);
    for (const auto& row : table.rows) most = std::max(most, columns_of(row[c].text));
    widths.push_back(most);
  }
  const auto write = [&](const std::vector<TextPiece>& row) {
    std::size_t column = 2;
    out += "  ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const TextPiece& piece = row[c];
      if (c + 1 == row.size() && !table.columns[c].right) {
        out += painted(wrap(piece.text, width, column), piece.tone, style);
        break;
      }
      const std::string padded =
          table.columns[c].right ? pad_left(piece.text, widths[c]) : pad_right(piece.text, widths[c]);
      out += painted(padded, piece.tone, style) + "  ";
      column += widths[c] + 2;
    }
    end_line(out);
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
