"""What a kernel that sums (or averages) takes for the partial sums of its blocks.

ATen/native/cuda/Reduce.cuh (pytorch 2.11): setReduceConfig, ReduceConfig::global_memory_size and semaphore_size; the order of dimensions is
that of aten/src/ATen/TensorIterator.cpp reorder_dimensions and coalesce_dimensions.
"""
from math import ceil, prod

import torch

# Multiprocessors and the threads that one of them holds, by compute capability: V100, T4, A100, A6000, L40S, H100 and H200, B200, RTX 5090.
PROCESSORS = {70: (80, 2048), 75: (40, 1024), 80: (108, 2048), 86: (84, 1536), 89: (142, 1536), 90: (132, 2048), 100: (148, 2048), 120: (170, 1536)}
THREADS, WARP = 512, 32             # mnt_wrapper::MAX_NUM_THREADS
FEWEST, MOST = 16, 256              # min_values_per_thread, max_values_per_thread
VECTOR = 4                          # vt0
SUMS = {"sum.dim_IntList", "sum", "mean.dim", "mean"}


def last_power(n):
    return 1 << (max(1, n).bit_length() - 1)


def dimensions(x, reduced):
    """[(size, stride of the input in elements, is it reduced)]: reduced ones first, each by stride, neighbours joined."""
    dims = sorted(((x.shape[d], x.stride(d), d in reduced) for d in range(x.dim()) if x.shape[d] != 1), key=lambda t: (not t[2], t[1]))
    joined = []
    for size, stride, gone in dims:
        if joined and joined[-1][2] == gone and joined[-1][0] * joined[-1][1] == stride:
            joined[-1] = (joined[-1][0] * size, joined[-1][1], gone)
        else:
            joined.append((size, stride, gone))
    return joined


def output_vector(dims, first, offset):
    """get_output_vec_size: neighbours that one thread sums."""
    vector = VECTOR
    for n in (offset, dims[first][0], *(d[1] for i, d in enumerate(dims) if i != first)):
        while n % vector:
            vector //= 2
    return vector


def partial_sums(x, reduced, arch):
    """(bytes of partial sums, bytes of semaphores), or None where one block has a whole sum."""
    dims = dimensions(x, reduced)
    gone = sum(d[2] for d in dims)
    if not gone or x.numel() == 0:
        return None
    inputs = prod(d[0] for d in dims if d[2])
    outputs = x.numel() // inputs
    along = gone == len(dims) or dims[0][1] < dims[gone][1]          # reduction_on_fastest_striding_dimension
    dim0, dim1, vector = (inputs, outputs, 1) if along else (outputs, inputs, 1)
    if along and dims[0][1] == 1 and dim0 >= 128 and gone == 1:
        dim0 //= VECTOR
    if not along and dims[gone][1] == 1:
        vector = output_vector(dims, gone, x.storage_offset())
        dim0 //= vector
    most = THREADS // vector
    width0, height0 = (last_power(d) if d < most else most for d in (dim0, dim1))
    height = min(height0, most // min(width0, WARP))
    width = min(width0, most // height)
    step_in, step_out = (width, 1) if along else (1, width)
    if ceil(inputs / step_in) < min(height * FEWEST, MOST):
        return None                                                 # each warp has a sum of its own
    step_in *= height
    values, grid = ceil(inputs / step_in), ceil((outputs // vector) / step_out)
    count, threads = PROCESSORS[max(c for c in PROCESSORS if c <= arch)]
    target = count * (threads // (width * height))
    if values < MOST or grid > target:
        return None
    blocks = max(min(ceil(target / grid), ceil(values / FEWEST)), ceil(values / MOST))
    if blocks <= 1:
        return None
    accumulated = 8 if x.element_size() == 8 else 4                  # the type of the sums: fp32 for 16-bit numbers, too
    return accumulated * outputs * blocks * (1 if along else width * vector), 4 * grid


def workspaces(args, arch):
    x = args[0]
    given = args[1] if len(args) > 1 else None
    reduced = {d % x.dim() for d in ([given] if isinstance(given, int) else given)} if given and x.dim() else set(range(x.dim()))
    found = partial_sums(x, reduced, arch)
    return [] if found is None else [(found[0], "partial sums of blocks"), (found[1], "semaphores")]


def of_bias(args, arch):
    """ATen/native/Convolution.cpp convolution_backward: the bias's gradient is a sum over all but the channels. Seen on a card where these come last;
    where they come first only one of twelve took anything (tests/measured/kernels.jsonl)."""
    grad, x, mask = args[0], args[1], args[10]
    if not mask[2] or x.dim() != 4 or x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return []
    grad = torch.empty(grad.shape, device="meta", memory_format=torch.channels_last)
    return workspaces((grad, [0, 2, 3]), arch)
