#include "core/exchange/text/cursor.hpp"

namespace tidemark::exchange {
namespace {

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

unsigned take_hex(Cursor& cursor, int digits) {
  unsigned code = 0;
  for (; digits > 0 && hex_digit(cursor.peek()) >= 0; --digits) {
    code = code * 16 + static_cast<unsigned>(hex_digit(cursor.take()));
  }
  return code;
}

/// Halves of a pair stand one behind the other.
unsigned take_surrogates(Cursor& cursor) {
  const unsigned high = take_hex(cursor, 4);
  if (high < 0xD800 || high > 0xDBFF || !cursor.starts("\\u")) return high;
  cursor.skip(2);
  const unsigned low = take_hex(cursor, 4);
  return low < 0xDC00 || low > 0xDFFF ? 0xFFFD : 0x10000 + ((high - 0xD800) << 10U) + (low - 0xDC00);
}

}  // namespace

void append_utf8(std::string& text, unsigned code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
  const auto byte = [&](unsigned value) { text += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6U));
    byte(0x80 | (code & 0x3FU));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12U));
    byte(0x80 | ((code >> 6U) & 0x3FU));
    byte(0x80 | (code & 0x3FU));
  } else {
    byte(0xF0 | (code >> 18U));
    byte(0x80 | ((code >> 12U) & 0x3FU));
    byte(0x80 | ((code >> 6U) & 0x3FU));
    byte(0x80 | (code & 0x3FU));
  }
}

void take_escape(Cursor& cursor, std::string& text) {
  const char letter = cursor.take();
  switch (letter) {
    case 'n':
      text += '\n';
      break;
    case 't':
      text += '\t';
      break;
    case 'r':
      text += '\r';
      break;
    case 'b':
      text += '\b';
      break;
    case 'f':
      text += '\f';
      break;
    case '0':
      text += '\0';
      break;
    case '\n':
      break;  // the line goes on
    case 'x':
      append_utf8(text, take_hex(cursor, 2));
      break;
    case 'u':
      append_utf8(text, take_surrogates(cursor));
      break;
    case 'U':
      append_utf8(text, take_hex(cursor, 8));
      break;
    case '"':
    case '\\':
    case '/':
    case '\'':
    case ' ':
      text += letter;
      break;
    default:
      text += '\\', text += letter;
  }
}

}  // namespace tidemark::exchange
