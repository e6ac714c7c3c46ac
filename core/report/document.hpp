#pragma once

#include <string>
#include <vector>

#include "core/report/text.hpp"

namespace tidemark {

/// How a piece of text is meant; a colour on terminals, bold or nothing in Markdown.
enum class Tone : std::uint8_t { kPlain, kStrong, kDim, kGood, kWarning, kBad };

struct TextPiece {
  std::string text;
  Tone tone = Tone::kPlain;
};

/// One part of a report, written once and rendered as text or as Markdown.
struct Block {
  enum class Kind : std::uint8_t { kTitle, kHeading, kParagraph, kTable };
  struct Column {
    std::string head;
    bool right = false;  ///< figures are aligned to the right
  };

  Kind kind = Kind::kParagraph;
  TextPiece text;                            ///< of all but tables
  std::vector<Column> columns;               ///< of a table
  std::vector<std::vector<TextPiece>> rows;  ///< as many pieces as columns
};

/// A report in parts.
struct Document {
  std::vector<Block> blocks;
  Issues issues;  ///< told at the end

  void title(std::string text);
  void heading(std::string text);
  void paragraph(std::string text, Tone tone = Tone::kPlain);
  /// Rows are added to the result; it is valid until the next block.
  Block& table(std::vector<Block::Column> columns);
};

/// For a terminal; the last column is wrapped to the width. Ends with a line break.
std::string render_text(const Document& document, const TextStyle& style = {});
std::string render_markdown(const Document& document);

}  // namespace tidemark
