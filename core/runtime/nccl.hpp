#pragma once

#include "core/units/bytes.hpp"

namespace tidemark {

/// What one NCCL communicator takes on the card outside PyTorch's allocator: its channels' buffers. Bytes; `ranks` is
/// the number of GPUs that it joins, 0 for one that stands alone. Reported figures go up to 1.6 GB (nccl issue 864).
/// Source: nccl issue 964: 544 MB for two ranks and 688 MB for more, 4 × A100 with NVLink.
Bytes nccl_communicator(Count ranks);

}  // namespace tidemark
