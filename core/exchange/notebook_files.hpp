#pragma once

#include <string>
#include <vector>

#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// What a notebook hands to a shell (`!torchrun train.py`, `%%bash`) and the files that it writes (`%%writefile`), as
/// sources of their own.
struct NotebookFiles {
  struct Place {
    int cell = -1;
    int line = 0;
  };
  std::vector<Source> sources;  ///< the commands, if there are any, first
  std::string commands;         ///< the name of that source; empty where none is started
  std::vector<Place> lines;     ///< where each line of the commands stands in the notebook
};
NotebookFiles files_of_notebook(const Source& notebook);

}  // namespace tidemark::exchange
