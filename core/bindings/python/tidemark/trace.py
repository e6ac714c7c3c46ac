"""Records one forward of your model, so that tidemark can answer for code that it has never seen.

    from tidemark_trace import trace                     # this file: tidemark trace > tidemark_trace.py
    trace(build, batch, "my-model.json")                 # build() -> nn.Module, batch(B, S) -> dict of its arguments
    tidemark estimate --config my-model.json --micro-batch-size 8 --sequence-length 4096

    python tidemark_trace.py my_file.py:build my_file.py:batch -o my-model.json
    python tidemark_trace.py --transformers config.json -o my-model.json        # a model of transformers, by its config

Nothing is computed and nothing is downloaded: tensors are fake (shapes without numbers), on the CPU, in seconds. The forward
must return the loss, or something with a `loss`. It runs at five pairs of batch and length and in four precisions; every size
becomes c + b*B + s*S + t*B*S, every cast says where it leads in which precision. What is written: which torch function made
which tensor of which others, when Python let go of each, which modules and parameters took part. No weights, no data, no code.
"""
import argparse
import inspect
import json
import os
import sys
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.overrides import TorchFunctionMode, resolve_name

FORMAT = 1
# Pairs of batch and length: four settle c + b*B + s*S + t*B*S, the fifth checks it.
SHAPES = [(2, 32), (3, 32), (2, 48), (3, 48), (5, 80)]
# Weights and autocast of each precision that is traced: its column in every cast that depends on it.
MODES = [("fp32", False), ("low", False), ("fp32", True), ("low", True)]
LOW = torch.bfloat16

DTYPES = {torch.float32: "fp32", torch.bfloat16: "low", torch.float16: "low", torch.int64: "int64", torch.int32: "int32",
          torch.bool: "bool", torch.uint8: "uint8", torch.int8: "uint8"}

# aten/src/ATen/autocast_mode.h, as CUDA has them: what runs in 16 bits, and what in fp32.
AUTOCAST_LOW = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                "conv_transpose2d", "scaled_dot_product_attention", "__matmul__", "mv", "addbmm"}
AUTOCAST_FP32 = {"pow", "__pow__", "square", "rsqrt", "exp", "log", "softmax", "log_softmax", "layer_norm", "group_norm", "norm", "cumsum", "sum",
                 "prod", "softplus", "mse_loss", "nll_loss", "nll_loss_nd", "cross_entropy_loss", "binary_cross_entropy_with_logits",
                 "rms_norm", "erfinv", "reciprocal", "l1_loss", "smooth_l1_loss", "kl_div", "cosine_similarity"}


class Refused(Exception):
    """The model does something that a trace cannot say."""


def base_name(func):
    name = resolve_name(func) or getattr(func, "__name__", str(func))
    if name.endswith(".__get__"):
        return name[: -len(".__get__")].rsplit(".", 1)[-1] + ".get"
    return name.rsplit(".", 1)[-1]


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name))


def mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[mapped(item, change) for item in value])
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    return value


class Dt:
    """A dtype that stands in an event; told apart from sizes when runs are merged."""

    def __init__(self, dtype):
        self.name = DTYPES.get(dtype)
        if self.name is None:
            raise Refused(f"a tensor of {dtype}")


class Like:
    """A tensor whose dtype a cast leads to, as far as this run can tell."""

    def __init__(self, number, holds):
        self.number, self.holds = number, holds


class Sizes(list):
    """Sizes that stand in an event."""


class Recorder(TorchFunctionMode):
    def __init__(self, model, autocast):
        super().__init__()
        self.events = []      # [kind, payload...]
        self.ids = {}         # id(tensor) -> number, while the tensor lives
        self.count = 0
        self.autocast = autocast
        self.path_of = {module: name for name, module in model.named_modules()}
        self.parameter_of, self.buffer_of = {}, {}
        for path, module in model.named_modules():
            for leaf, parameter in module.named_parameters(recurse=False):
                self.parameter_of.setdefault(id(parameter), (path, leaf, module))
            for leaf, buffer in module.named_buffers(recurse=False):
                if id(buffer) not in self.buffer_of:
                    self.buffer_of[id(buffer)] = (path, leaf, self.count, buffer)
                    self.count += 1
        self.modules = []     # the stack of those that run
        self.given = []       # of each: the number and the dtype of the first tensor that it was handed
        self.quiet = 0
        self.casting = True
        self.plain = set()     # tensors without a gradient
        self.compared = set()  # tensors that say whether a number is below another

    # -- tensors ---------------------------------------------------------------------------------------------------
    def give(self, tensor):
        number = self.count
        self.count += 1
        key = id(tensor)
        self.ids[key] = number
        weakref.finalize(tensor, self.drop, key, number).atexit = False
        return number

    def drop(self, key, number):
        if self.ids.get(key) == number:
            del self.ids[key]
        self.events.append(["drop", number])

    def number(self, tensor):
        known = self.ids.get(id(tensor))
        if known is not None:
            if known in self.plain and tensor.requires_grad:
                raise Refused(f"a gradient of a tensor that no torch function gave one{self.where()}: an autograd function of its own")
            return known
        if id(tensor) in self.parameter_of:
            path, leaf, _ = self.parameter_of[id(tensor)]
            number = self.hold(tensor)
            self.events.append(["parameter", number, path, leaf, Sizes(tensor.shape)])
            return number
        if id(tensor) in self.buffer_of:
            path, leaf, number, _ = self.buffer_of[id(tensor)]
            self.ids[id(tensor)] = number
            self.events.append(["buffer", number, path, leaf, Sizes(tensor.shape), Dt(tensor.dtype)])
            return number
        if tensor.requires_grad:
            raise Refused(f"a tensor that no torch function made{self.where()}: an autograd function of its own")
        number = self.give(tensor)  # made where nobody looked: a constant
        self.make(number, tensor, "constant")
        return number

    def hold(self, tensor):
        # Parameters and buffers outlive the trace: no drop is written of them.
        number = self.count
        self.count += 1
        self.ids[id(tensor)] = number
        return number

    def make(self, number, tensor, name):
        self.events.append(["make", number, Sizes(tensor.shape), Dt(tensor.dtype), name])

    # -- functions -------------------------------------------------------------------------------------------------
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = base_name(func)
        if self.quiet or name.endswith(".get") and name not in ("T.get", "mT.get", "H.get"):
            return func(*args, **kwargs)
        if name == "__bool__":
            try:
                return func(*args, **kwargs)
            except Exception:  # numbers that nobody has: masks are of ones, no row is padded, and dice leave no layer out
                return id(args[0]) not in self.compared
        casts = self.autocast and torch.is_autocast_enabled("cpu")
        if name == "einsum" or (name in DECOMPOSED and not inspect.isbuiltin(func)):
            with self:
                return DECOMPOSED[name](*args, **kwargs)
        call_args, call_kwargs = args, kwargs
        if casts and name in AUTOCAST_LOW:
            call_args, call_kwargs = self.cast((args, kwargs), torch.float32, LOW)
        elif casts and name in AUTOCAST_FP32:
            call_args, call_kwargs = self.cast((args, kwargs), LOW, torch.float32)
        with torch.autocast("cpu", enabled=False) if casts else torch.enable_grad() if torch.is_grad_enabled() else torch.no_grad():
            result = func(*call_args, **call_kwargs)
        if casts and name in AUTOCAST_FP32 and "dtype" in kwargs and kwargs["dtype"] is not None and torch.is_tensor(result):
            result = result.to(kwargs["dtype"])
        outs = list(tensors_in(result))
        if not outs:
            return result
        inputs = {id(t) for t in tensors_in((args, kwargs))}
        in_place = (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name not in ("__invert__",)) \
            or name == "__setitem__"
        if not in_place:
            # What comes back as it went in is another tensor here, so that each has a life of its own in every precision. (No view:
            # a view keeps its base alive.)
            result = mapped(result, lambda t: t.clone() if id(t) in inputs else t)
            outs = list(tensors_in(result))
        self.note(name, args, kwargs, result, outs, in_place, casts)
        if name in ("lt", "__lt__"):
            self.compared.add(id(outs[0]))
        else:
            self.compared.discard(id(outs[0]))
        del outs, call_args, call_kwargs
        return result

    def cast(self, value, wrong, right):
        args, kwargs = value
        change = lambda t: t.to(right) if t.dtype == wrong else t
        return mapped(args, change), {key: mapped(item, change) for key, item in kwargs.items()}

    def note(self, name, args, kwargs, result, outs, in_place, casts):
        if casts != self.casting and self.autocast and any(o.requires_grad for o in outs):
            self.events.append(["autocast", int(casts)])
            self.casting = casts
        if in_place:
            target = args[0]
            if not target.requires_grad:
                return
            known = {"add_": "add_in_place", "__iadd__": "add_in_place", "mul_": "scale_in_place", "__imul__": "scale_in_place"}
            if name in known:
                second = args[1]
                if known[name] == "add_in_place" and isinstance(second, torch.Tensor):
                    here, other = self.number(target), self.number(second)
                    self.events.append(["add_in_place", here, here, other])
                    return
                if not isinstance(second, torch.Tensor):
                    here = self.number(target)
                    self.events.append(["scale_in_place", here, here])
                    return
            raise Refused(f"torch function {name} in place{self.where()}")
        rule = RULES.get(name)
        grad = any(o.requires_grad for o in outs)
        if rule is not None and (grad or name in ALWAYS):
            rule(self, name, args, kwargs, result, outs)
            return
        if grad:
            raise Refused(f"torch function {name}{self.where()}")
        for out in outs:
            shared = [t for t in tensors_in((args, kwargs)) if same_storage(t, out)]
            if shared:
                source = self.number(shared[0])
                self.plain.add(self.count)
                self.events.append(["share", self.give(out), source, Sizes(out.shape)])
            else:
                self.plain.add(self.count)
                self.make(self.give(out), out, name.strip("_"))

    def where(self):
        return f" in {self.path_of.get(self.modules[-1], '')} ({type(self.modules[-1]).__name__})" if self.modules else ""

    # -- modules ---------------------------------------------------------------------------------------------------
    def enter(self, module, args):
        self.modules.append(module)
        if self.quiet or type(module).__name__ == "Conv1D":
            self.quiet += 1
            return
        source = f"{type(module).__module__}: {type(module).__qualname__}.forward"
        first = next((t for t in tensors_in(args)), None)
        known = self.ids.get(id(first)) if first is not None else None
        given = [self.ids[id(t)] for t in tensors_in(args) if id(t) in self.ids]
        self.given.append((known, first.dtype if first is not None else None))
        self.events.append(["enter", self.path_of.get(module, ""), source, known, given])

    def leave(self, module, args, result):
        if module not in self.path_of:  # made inside the forward: a loss
            return None
        self.modules.pop()
        if self.quiet:
            self.quiet -= 1
            if not self.quiet:
                source = self.number(args[0])
                self.events.append(["conv1d", self.give(result), source, self.path_of[module], module.nf])
            return None
        self.given.pop()
        first = next((t for t in tensors_in(result)), None)
        self.events.append(["leave", self.path_of.get(module, ""), self.ids.get(id(first)) if first is not None else None])
        return None


def same_storage(a, b):
    try:
        return a.untyped_storage()._cdata == b.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return False


# -- rules: torch function -> operations of a trace -----------------------------------------------------------------------
def is_tensor(value):
    return isinstance(value, torch.Tensor)


def argument(args, kwargs, place, name, default=None):
    if len(args) > place:
        return args[place]
    return kwargs.get(name, default)


def axis(dim, rank):
    return dim % rank if rank else 0


def unary(kind):
    def rule(r, name, args, kwargs, result, outs):
        source = r.number(args[0] if args else kwargs["input"])
        r.events.append([kind, r.give(outs[0]), source])
    return rule


def scalar_or(kind, scalar_kind, swapped=False):
    def rule(r, name, args, kwargs, result, outs):
        a, b = args[0], argument(args, kwargs, 1, "other")
        if kwargs.get("rounding_mode") is not None:
            raise Refused("division that rounds")
        if is_tensor(a) and is_tensor(b):
            if swapped:
                a, b = b, a
            left, right = r.number(a), r.number(b)
            if a.dim() == 0 and not a.requires_grad:
                r.events.append([scalar_kind, r.give(outs[0]), right])
            elif b.dim() == 0 and not b.requires_grad:
                r.events.append([scalar_kind, r.give(outs[0]), left])
            else:
                r.events.append([kind, r.give(outs[0]), left, right])
            return
        source = r.number(a if is_tensor(a) else b)
        if kind == "div" and not is_tensor(a) or swapped and kind == "div":
            raise Refused("a number divided by a tensor")
        r.events.append([scalar_kind, r.give(outs[0]), source])
    return rule


def to_rule(r, name, args, kwargs, result, outs):
    source = r.number(args[0])
    # `.to(input_dtype)`: what the module was handed decides, also where a quantised layer hands on another dtype.
    given, dtype = r.given[-1] if r.given else (None, None)
    r.events.append(["to", r.give(outs[0]), source, Dt(outs[0].dtype), Like(given, given is not None and dtype == outs[0].dtype)])


def view_rule(kind):
    def rule(r, name, args, kwargs, result, outs):
        source = r.number(args[0])
        if name == "view" and len(args) > 1 and isinstance(args[1], torch.dtype):
            raise Refused("a view of another dtype")
        r.events.append([kind, r.give(outs[0]), source, Sizes(outs[0].shape)])
    return rule


def transpose_rule(r, name, args, kwargs, result, outs):
    rank = args[0].dim()
    if name in ("t", "T.get", "mT.get"):
        a, b = (0, 1) if name != "mT.get" else (rank - 2, rank - 1)
        if name == "T.get" and rank != 2:
            raise Refused("T of more than two dimensions")
        if rank < 2:
            a = b = 0
    else:
        a, b = argument(args, kwargs, 1, "dim0"), argument(args, kwargs, 2, "dim1")
    source = r.number(args[0])
    r.events.append(["transpose", r.give(outs[0]), source, axis(a, rank), axis(b, rank)])


def permute_rule(r, name, args, kwargs, result, outs):
    order = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:] or kwargs["dims"]
    source = r.number(args[0])
    r.events.append(["permute", r.give(outs[0]), source, [axis(d, args[0].dim()) for d in order]])


def unsqueeze_rule(r, name, args, kwargs, result, outs):
    source = r.number(args[0])
    r.events.append(["unsqueeze", r.give(outs[0]), source, axis(argument(args, kwargs, 1, "dim"), args[0].dim() + 1)])


def chunks_rule(r, name, args, kwargs, result, outs):
    if name == "unbind":
        dim = argument(args, kwargs, 1, "dim", 0)
    else:
        dim = argument(args, kwargs, 2, "dim", 0)
    source = r.number(args[0])
    dim = axis(dim, args[0].dim())
    if name == "unbind":
        r.events.append(["unbind", [r.give(o) for o in outs], source, dim])
    else:
        sizes = Sizes(o.shape[dim] for o in outs)
        r.events.append(["split", [r.give(o) for o in outs], source, dim, sizes])


def narrow_rule(r, name, args, kwargs, result, outs):
    dim, start, length = (argument(args, kwargs, i + 1, n) for i, n in enumerate(("dim", "start", "length")))
    source = r.number(args[0])
    r.events.append(["narrow", r.give(outs[0]), source, axis(dim, args[0].dim()), Sizes([int(start)]), Sizes([int(length)])])


def select_rule(r, name, args, kwargs, result, outs):
    source = r.number(args[0])
    r.events.append(["select", r.give(outs[0]), source, axis(argument(args, kwargs, 1, "dim"), args[0].dim())])


def index_rule(r, name, args, kwargs, result, outs):
    x, index = args
    index = index if isinstance(index, tuple) else (index,)
    if any(is_tensor(i) or isinstance(i, list) for i in index):
        indices = [i for i in index if is_tensor(i)]
        lists = [place for place, i in enumerate(index) if isinstance(i, list)]
        if len(lists) == 1 and not indices and all(isinstance(i, (slice, list)) or i is Ellipsis for i in index):
            place = lists[0] if Ellipsis not in index[: lists[0]] else x.dim() - (len(index) - lists[0])
            r.events.append(["take", r.give(outs[0]), r.number(x), place, Sizes([len(index[lists[0]])])])
            return
        if len(index) == 1 and is_tensor(index[0]) and index[0].dtype == torch.int64:
            source, rows = r.number(x), r.number(index[0])
            r.events.append(["gather_rows", r.give(outs[0]), source, rows, Sizes(outs[0].shape)])
            return
        if len(index) == 2 and len(indices) == 2 and all(i.dtype == torch.int64 and i.dim() == 1 for i in indices) and x.dim() >= 2:
            source, rows, places = r.number(x), r.number(index[0]), r.number(index[1])
            r.events.append(["pick", r.give(outs[0]), source, rows, places])
            return
        raise Refused(f"an index made of tensors{r.where()}")
    taken = sum(1 for i in index if i is not None and i is not Ellipsis)
    steps, current, dim = [], x, 0
    for i in index:
        if i is Ellipsis:
            dim += x.dim() - taken
        elif i is None:
            steps.append(("unsqueeze", dim))
            dim += 1
        elif isinstance(i, slice):
            steps.append(("slice", dim, i))
            dim += 1
        else:
            steps.append(("select", dim))
    number = r.number(x)
    shape = list(x.shape)
    written = []
    for step in steps:
        if step[0] == "unsqueeze":
            shape.insert(step[1], 1)
            written.append(["unsqueeze", step[1]])
        elif step[0] == "select":
            shape.pop(step[1])
            written.append(["select", step[1]])
        else:
            start, stop, stride = step[2].indices(shape[step[1]])
            length = max(0, -(-(stop - start) // stride))
            if stride == 2 and step[1] == len(shape) - 1:
                written.append(["every_other", start])
            elif stride != 1:
                raise Refused("a slice with a step")
            elif step[2].start not in (None, 0) or step[2].stop is not None:
                # Whether a slice takes everything may depend on the sizes: the engine leaves it out where it does.
                written.append(["narrow", step[1], Sizes([start]), Sizes([length])])
            shape[step[1]] = length
    if not written:
        r.events.append(["alias", r.give(outs[0]), number])
        return
    for place, step in enumerate(written):
        last = place + 1 == len(written)
        out = r.give(outs[0]) if last else r.count
        if not last:
            r.count += 1
        r.events.append([step[0], out, number, *step[1:]])
        if place > 0:
            r.events.append(["drop", number])
        number = out


def linear_rule(r, name, args, kwargs, result, outs):
    x, weight, bias = args[0], argument(args, kwargs, 1, "weight"), argument(args, kwargs, 2, "bias")
    module = r.modules[-1] if r.modules else None
    source = r.number(x)
    if type(module) is nn.Linear and module.weight is weight:
        r.events.append(["linear", r.give(outs[0]), source, r.path_of[module], weight.shape[0], int(bias is not None), weight.shape[1]])
        return
    w = r.number(weight)
    b = r.number(bias) if bias is not None else -1
    r.events.append(["product", r.give(outs[0]), source, w, b])


def embedding_rule(r, name, args, kwargs, result, outs):
    if name == "embedding":
        weight, ids = args[0], argument(args, kwargs, 1, "indices")
        if weight.dtype in (torch.int64, torch.int32):
            weight, ids = ids, weight
    module = r.modules[-1] if r.modules else None
    rows = r.number(ids)
    if isinstance(module, nn.Embedding) and module.weight is weight:
        r.events.append(["embedding", r.give(outs[0]), rows, r.path_of[module], weight.shape[0], weight.shape[1]])
        return
    w = r.number(weight)
    r.events.append(["lookup", r.give(outs[0]), rows, w])


def layer_norm_rule(r, name, args, kwargs, result, outs):
    x, shape = args[0], args[1]
    weight, bias = argument(args, kwargs, 2, "weight"), argument(args, kwargs, 3, "bias")
    if len(shape) != 1:
        raise Refused("a layer norm over several dimensions")
    source = r.number(x)
    w = r.number(weight) if weight is not None else -1
    b = r.number(bias) if bias is not None else -1
    r.events.append(["layer_norm", r.give(outs[0]), source, w, b])


def softmax_rule(r, name, args, kwargs, result, outs):
    asked = kwargs.get("dtype") or next((a for a in args if isinstance(a, torch.dtype)), None)
    source = r.number(args[0])
    r.events.append([name, r.give(outs[0]), source, Dt(asked) if asked else None])


def dropout_rule(r, name, args, kwargs, result, outs):
    p, training = argument(args, kwargs, 1, "p", 0.5), argument(args, kwargs, 2, "train", argument(args, kwargs, 2, "training", True))
    source = r.number(args[0])
    r.events.append(["dropout", r.give(outs[0]), source, {"p": float(p) if training else 0.0}])


def cat_rule(r, name, args, kwargs, result, outs):
    parts = args[0] if args else kwargs["tensors"]
    dim = argument(args, kwargs, 1, "dim", 0)
    numbers = [r.number(t) for t in parts]
    if name == "stack":
        if len(parts) == 2 and axis(dim, parts[0].dim() + 1) == parts[0].dim():
            r.events.append(["stack_last", r.give(outs[0]), *numbers])
            return
        at = axis(dim, parts[0].dim() + 1)
        lifted = []
        for n in numbers:
            r.events.append(["unsqueeze", r.count, n, at])
            lifted.append(r.count)
            r.count += 1
        r.events.append(["cat", r.give(outs[0]), lifted, at])
        r.events += [["drop", n] for n in lifted]
        return
    r.events.append(["cat", r.give(outs[0]), numbers, axis(dim, parts[0].dim())])


def binary(kind):
    def rule(r, name, args, kwargs, result, outs):
        a, b = r.number(args[0]), r.number(argument(args, kwargs, 1, "other", argument(args, kwargs, 1, "mat2", argument(args, kwargs, 1, "target"))))
        r.events.append([kind, r.give(outs[0]), a, b])
    return rule


def matmul_rule(r, name, args, kwargs, result, outs):
    a, b = args[0], argument(args, kwargs, 1, "other", kwargs.get("mat2", kwargs.get("tensor2")))
    if a.dim() < 2 or b.dim() < 2:
        raise Refused("a product with a vector")
    left, right = r.number(a), r.number(b)
    r.events.append(["matmul", r.give(outs[0]), left, right])


def baddbmm_rule(r, name, args, kwargs, result, outs):
    a, b = argument(args, kwargs, 1, "batch1"), argument(args, kwargs, 2, "batch2")
    numbers = [r.number(t) for t in (args[0], a, b)]
    r.events.append(["baddbmm", r.give(outs[0]), *numbers])


def attention_rule(r, name, args, kwargs, result, outs):
    q, k, v = (argument(args, kwargs, i, n) for i, n in enumerate(("query", "key", "value")))
    mask = argument(args, kwargs, 3, "attn_mask")
    numbers = [r.number(t) for t in (q, k, v)]
    m = r.number(mask) if mask is not None else -1
    r.events.append(["attention", r.give(outs[0]), *numbers, m, {"p": float(argument(args, kwargs, 4, "dropout_p", 0.0))},
                     int(bool(argument(args, kwargs, 5, "is_causal", False))), int(bool(kwargs.get("enable_gqa", False)))])


def loss_rule(r, name, args, kwargs, result, outs):
    x, target = args[0], argument(args, kwargs, 1, "target")
    if argument(args, kwargs, 2, "weight") is not None:
        raise Refused("a loss with weights of classes")
    numbers = [r.number(x), r.number(target)]
    r.events.append(["cross_entropy", r.give(outs[0]), *numbers])


def broadcast_rule(r, name, args, kwargs, result, outs):
    """What F.mse_loss asks of tensors that have one shape."""
    sources = args[0] if isinstance(args[0], (list, tuple)) else args
    for source, made in zip(sources, outs):
        if source.shape != made.shape:
            raise Refused(f"tensors of several shapes in {name}{r.where()}")
        r.events.append(["alias", r.give(made), r.number(source)])


def pool_rule(kind):
    def rule(r, name, args, kwargs, result, outs):
        source = r.number(args[0])
        dims = argument(args, kwargs, 1, "dim")
        rank = args[0].dim()
        dims = [dims] if isinstance(dims, int) else list(dims) if dims is not None else list(range(rank))
        dims = [axis(d, rank) for d in dims]
        if len(dims) == rank:
            r.events.append(["mean_all", r.give(outs[0]), source])
        elif kind == "mean" and dims == [rank - 1] and argument(args, kwargs, 2, "keepdim", False):
            r.events.append(["mean_last", r.give(outs[0]), source])
        elif dims == [1] and rank == 3 and not argument(args, kwargs, 2, "keepdim", False):
            r.events.append(["sum_rows", r.give(outs[0]), source])
        else:
            raise Refused(f"{kind} over dimensions {dims} of {rank}{r.where()}")
    return rule


def masked_rule(r, name, args, kwargs, result, outs):
    source, mask = r.number(args[0]), r.number(argument(args, kwargs, 1, "mask"))
    r.events.append(["masked_fill", r.give(outs[0]), source, mask])


def where_rule(r, name, args, kwargs, result, outs):
    condition, a, b = args
    if name == "where" and is_tensor(args[0]) and args[0].dtype != torch.bool and is_tensor(args[1]):
        a, condition = args[0], args[1]
    numbers = [r.number(t) for t in (condition, a, b) if is_tensor(t)]
    if len(numbers) == 3:
        r.events.append(["where", r.give(outs[0]), *numbers])
    elif is_tensor(a):
        r.events.append(["masked_fill", r.give(outs[0]), numbers[1], numbers[0]])
    else:
        raise Refused("where with a number first")


def pad_rule(r, name, args, kwargs, result, outs):
    pad = list(argument(args, kwargs, 1, "pad"))
    if any(pad[2:]) or pad[0] != 0 or argument(args, kwargs, 2, "mode", "constant") != "constant":
        raise Refused("padding other than behind the last dimension")
    source = r.number(args[0])
    r.events.append(["pad_last", r.give(outs[0]), source, Sizes([pad[1]])])


def convolution_rule(r, name, args, kwargs, result, outs):
    x, weight, bias = args[0], argument(args, kwargs, 1, "weight"), argument(args, kwargs, 2, "bias")
    stride = argument(args, kwargs, 3, "stride", 1)
    stride = tuple(stride) if isinstance(stride, (list, tuple)) else (stride,) * (x.dim() - 2)
    if tuple(weight.shape[2:]) != stride:
        raise Refused("a convolution whose stride is not its kernel")
    source, w = r.number(x), r.number(weight)
    b = r.number(bias) if bias is not None else -1
    r.events.append(["patches", r.give(outs[0]), source, w, b])


def power_rule(r, name, args, kwargs, result, outs):
    source = r.number(args[0])
    r.events.append(["power", r.give(outs[0]), source])


def addmm_rule(r, name, args, kwargs, result, outs):
    bias, a, b = (r.number(t) for t in args[:3])
    product = r.count
    r.count += 1
    r.events.append(["matmul", product, a, b])
    r.events.append(["add", r.give(outs[0]), product, bias])
    r.events.append(["drop", product])


RULES = {
    "linear": linear_rule, "embedding": embedding_rule, "layer_norm": layer_norm_rule,
    "softmax": softmax_rule, "log_softmax": softmax_rule, "dropout": dropout_rule,
    "scaled_dot_product_attention": attention_rule, "cross_entropy_loss": loss_rule, "cross_entropy": loss_rule,
    "cat": cat_rule, "concat": cat_rule, "stack": cat_rule,
    "matmul": matmul_rule, "bmm": matmul_rule, "mm": matmul_rule, "__matmul__": matmul_rule, "baddbmm": baddbmm_rule,
    "addmm": addmm_rule,
    "view": view_rule("view"), "view_as": view_rule("view"), "_unsafe_view": view_rule("view"), "unflatten": view_rule("view"),
    "squeeze": view_rule("view"), "reshape": view_rule("reshape"), "flatten": view_rule("reshape"),
    "expand": view_rule("expand"), "expand_as": view_rule("expand"), "broadcast_to": view_rule("expand"),
    "transpose": transpose_rule, "swapaxes": transpose_rule, "t": transpose_rule, "T.get": transpose_rule, "mT.get": transpose_rule,
    "permute": permute_rule, "unsqueeze": unsqueeze_rule, "split": chunks_rule, "chunk": chunks_rule,
    "tensor_split": chunks_rule, "split_with_sizes": chunks_rule, "unbind": chunks_rule, "narrow": narrow_rule,
    "select": select_rule, "__getitem__": index_rule, "detach": unary("detach"),
    "contiguous": unary("contiguous"), "clone": unary("clone"),
    "to": to_rule, "float": to_rule, "half": to_rule, "bfloat16": to_rule, "type_as": to_rule, "type": to_rule, "double": to_rule,
    "add": scalar_or("add", "add_scalar"), "__add__": scalar_or("add", "add_scalar"), "__radd__": scalar_or("add", "add_scalar"),
    "sub": scalar_or("sub", "add_scalar"), "__sub__": scalar_or("sub", "add_scalar"),
    "rsub": scalar_or("sub", "mul_scalar", True), "__rsub__": scalar_or("sub", "mul_scalar", True),
    "mul": scalar_or("mul", "mul_scalar"), "__mul__": scalar_or("mul", "mul_scalar"), "__rmul__": scalar_or("mul", "mul_scalar"),
    "multiply": scalar_or("mul", "mul_scalar"),
    "div": scalar_or("div", "mul_scalar"), "__truediv__": scalar_or("div", "mul_scalar"), "true_divide": scalar_or("div", "mul_scalar"),
    "neg": unary("neg"), "__neg__": unary("neg"), "rsqrt": unary("rsqrt"),
    "pow": power_rule, "__pow__": power_rule, "square": power_rule,
    "silu": unary("silu"), "gelu": unary("gelu"), "relu": unary("relu"), "tanh": unary("tanh"), "sigmoid": unary("sigmoid"),
    "clamp": unary("clamp"), "clip": unary("clamp"), "mean": pool_rule("mean"), "sum": pool_rule("sum"),
    "masked_fill": masked_rule, "where": where_rule, "pad": pad_rule, "broadcast_tensors": broadcast_rule, "mse_loss": binary("mse_loss"),
    "conv2d": convolution_rule, "conv3d": convolution_rule, "maximum": binary("maximum"),
}
# Also where no gradient passes: whether they copy depends on precision and layout, which the engine knows.
ALWAYS = {"to", "float", "half", "bfloat16", "type_as", "type", "contiguous"}


def einsum(equation, *operands):
    """Products of two tensors in terms of permutations and torch.bmm, as ATen does them."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    left, _, out = equation.replace(" ", "").partition("->")
    a, b = left.split(",") if "," in left else (left, None)
    if b is None or "." in equation or len(set(a)) < len(a) or len(set(b)) < len(b):
        raise Refused(f"einsum {equation}")
    x, y = operands
    batch = [c for c in a if c in b and c in out]
    summed = [c for c in a if c in b and c not in out]
    rows = [c for c in a if c not in b]
    columns = [c for c in b if c not in a]
    size = {**dict(zip(a, x.shape)), **dict(zip(b, y.shape))}

    def product(names):
        n = 1
        for c in names:
            n *= size[c]
        return n

    x = x.permute([a.index(c) for c in batch + rows + summed]).reshape(product(batch), product(rows), product(summed))
    y = y.permute([b.index(c) for c in batch + summed + columns]).reshape(product(batch), product(summed), product(columns))
    z = torch.bmm(x, y).view([size[c] for c in batch + rows + columns])
    order = batch + rows + columns
    return z.permute([order.index(c) for c in out])


DECOMPOSED = {"einsum": einsum}


# -- one run --------------------------------------------------------------------------------------------------------------
class Python:
    """torch.nn.functional's own checks for overrides are off while it lives, so that composite functions show their parts."""

    NAMES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")

    def __enter__(self):
        self.before = {(m, n): getattr(m, n) for m in (F, torch.nn.init) for n in self.NAMES if hasattr(m, n)}
        for module, name in self.before:
            setattr(module, name, lambda *a: False)

    def __exit__(self, *_):
        for (module, name), value in self.before.items():
            setattr(module, name, value)


def loss_of(outputs):
    if is_tensor(outputs):
        return outputs
    if isinstance(outputs, dict) and "loss" in outputs:
        return outputs["loss"]
    if getattr(outputs, "loss", None) is not None:
        return outputs.loss
    if isinstance(outputs, (tuple, list)):
        return next((t for t in outputs if is_tensor(t) and t.dim() == 0), None)
    return None


def is_list_of_layers(module):
    return isinstance(module, (nn.ModuleList, nn.Sequential)) and len(module) > 1 and all(any(True for _ in c.children()) for c in module)


class Untraced:
    """transformers builds masks otherwise for tensors that are fake; it is not told that these are."""

    def __enter__(self):
        self.before = []
        for name, module in list(sys.modules.items()):
            if name.startswith("transformers.") and "is_tracing" in getattr(module, "__dict__", {}):
                self.before.append((module, module.is_tracing))
                module.is_tracing = lambda *a, **k: False

    def __exit__(self, *_):
        for module, value in self.before:
            module.is_tracing = value


class Known(torch.Tensor):
    """A tensor that has its values, whatever is fake around it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with unset_fake_temporarily():
            return super().__torch_function__(func, types, args, kwargs or {})


class RealNumbers:
    """While a model is made, torch.linspace has values: timm spreads the rates of its drop paths so, and asks for each."""

    def __enter__(self):
        self.plain = torch.linspace

        def linspace(*args, **kwargs):
            with unset_fake_temporarily():
                return self.plain(*args, **kwargs).as_subclass(Known)
        torch.linspace = linspace

    def __exit__(self, *_):
        torch.linspace = self.plain


def run(build, batch, shape, mode, loss):
    weights, autocast = mode
    with FakeTensorMode(allow_non_fake_inputs=True):
        takes = "dtype" in inspect.signature(build).parameters
        dtype = torch.float32 if weights == "fp32" else LOW
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)  # what `model.to(dtype)` comes to
        try:
            with RealNumbers():
                model = build(dtype=dtype) if takes else build()
        finally:
            torch.set_default_dtype(before)
        model.train()
        for buffer in model.buffers():
            buffer.requires_grad_(False) if buffer.is_floating_point() else None
        arguments = batch(*shape)
        if dtype == LOW and not autocast:       # kernels refuse inputs in another dtype than the weights'
            arguments = {name: value.to(LOW) if is_tensor(value) and value.is_floating_point() else value for name, value in arguments.items()}
        recorder = Recorder(model, autocast)
        inputs = []
        for name, value in arguments.items():
            if is_tensor(value):
                number = recorder.hold(value)
                inputs.append([name, number, Sizes(value.shape), Dt(value.dtype)])
        hooks = [nn.modules.module.register_module_forward_pre_hook(lambda m, a, k=None: recorder.enter(m, a)),
                 nn.modules.module.register_module_forward_hook(lambda m, a, o: recorder.leave(m, a, o))]
        # Kwargs hooks see what a layer is given by name.
        hooks[0].remove()
        handles = [m.register_forward_pre_hook(lambda mod, a, k: recorder.enter(mod, (a, k)), with_kwargs=True) for m in model.modules()]
        nothing = torch.autograd.graph.saved_tensors_hooks(lambda t: None, lambda t: None)
        try:
            with Python(), Untraced(), torch.autocast("cpu", dtype=LOW, enabled=autocast), nothing, recorder:
                outputs = model(**arguments)
                if loss is not None:
                    value = loss(outputs, arguments)
                else:
                    value = loss_of(outputs)
        finally:
            hooks[1].remove()
            for handle in handles:
                handle.remove()
        if value is None or value.dim() != 0:
            raise Refused("no loss: the forward must return one, or give loss=…")
        root = recorder.ids[id(value)]
        kept = sorted({recorder.ids[id(t)] for t in tensors_in(outputs if not isinstance(outputs, dict) else dict(outputs))
                       if id(t) in recorder.ids} - {root})
        events = list(recorder.events)
        read = {e[1] for e in events if e[0] == "buffer"}
        for path, leaf, number, buffer in recorder.buffer_of.values():
            if number not in read and buffer.dtype in DTYPES:  # on the card, though nobody reads it
                events.insert(0, ["buffer", number, path, leaf, Sizes(buffer.shape), Dt(buffer.dtype)])
        tied = getattr(model, "get_output_embeddings", lambda: None)() if hasattr(model, "get_output_embeddings") else None
        table = getattr(model, "get_input_embeddings", lambda: None)() if hasattr(model, "get_input_embeddings") else None
        names = {module: name for name, module in model.named_modules()}
        if tied is None:
            linears = [m for m in model.modules() if type(m) is nn.Linear]
            tied = linears[-1] if linears else None  # bitsandbytes leaves the last one as it is
        if table is None:
            table = next((m for m in model.modules() if isinstance(m, nn.Embedding)), None)
        facts = {
            "head": names.get(tied) if tied is not None else None,
            "table": names.get(table) if table is not None else None,
            "tied": tied is not None and table is not None and getattr(tied, "weight", None) is getattr(table, "weight", None),
            "lists": [(path, len(module)) for path, module in model.named_modules() if is_list_of_layers(module)],
            "class": type(model).__name__,
            "parameters": sum(p.numel() for p in model.parameters()),
        }
        del outputs, value
    return {"events": events, "inputs": inputs, "loss": root, "kept": kept, **facts}


# -- merging runs ---------------------------------------------------------------------------------------------------------
def fit(values):
    """c, b, s, t of c + b*B + s*S + t*B*S through the first four shapes; checked on the fifth."""
    if all(v == values[0] for v in values):
        return int(values[0])
    (b0, s0), (b1, _), (_, s1), _ = SHAPES[:4]
    f00, f10, f01, f11, last = values
    t = (f11 - f10 - f01 + f00) / ((b1 - b0) * (s1 - s0))
    b = (f10 - f00) / (b1 - b0) - t * s0
    s = (f01 - f00) / (s1 - s0) - t * b0
    c = f00 - b * b0 - s * s0 - t * b0 * s0
    found = [c, b, s, t]
    if any(x != int(x) for x in found) or c + b * SHAPES[4][0] + s * SHAPES[4][1] + t * SHAPES[4][0] * SHAPES[4][1] != last:
        raise Refused(f"a size that is no c + b*B + s*S + t*B*S: {values} at (B, S) = {SHAPES}")
    return [int(x) for x in found]


def merged(items, modes):
    """The same entry of all runs: the five shapes in fp32, then the other precisions."""
    first = items[0]
    if isinstance(first, Sizes):
        if any(len(i) != len(first) for i in items):
            raise Refused("a tensor whose number of dimensions depends on its size")
        return [fit([i[k] for i in items[: len(SHAPES)]]) for k in range(len(first))]
    if isinstance(first, Dt):
        names = [items[0].name] + [i.name for i in modes]
        return names[0] if len(set(names)) == 1 else names
    if isinstance(first, Like):
        return first.number if all(i.holds for i in items + modes) else -1
    if isinstance(first, list):
        return [merged([i[k] for i in items], [m[k] for m in modes]) for k in range(len(first))]
    return first


def skeleton(event):
    return [event[0], len(event)] + [e for e in event[1:] if isinstance(e, int)] if event[0] not in ("enter", "leave") else event[:2]


def combine(runs):
    base = runs[0]
    streams = []
    switches = {}
    for index, r in enumerate(runs):
        stream = []
        for event in r["events"]:
            if event[0] == "autocast":
                if index >= len(SHAPES):
                    switches.setdefault(len(stream), event)
                continue
            stream.append(event)
        streams.append(stream)
    for index, stream in enumerate(streams):
        for place, (a, b) in enumerate(zip(streams[0], stream)):
            if skeleton(a) != skeleton(b):
                what = f"shape {SHAPES[index]}" if index < len(SHAPES) else f"precision {MODES[index - len(SHAPES) + 1]}"
                raise Refused(f"the forward does other things at another {what}: {a[:2]} and {b[:2]} at step {place}")
        if len(stream) != len(streams[0]):
            raise Refused("the forward has other steps at other sizes or precisions")
    events = []
    for place, event in enumerate(streams[0]):
        if place in switches:
            events.append(switches[place])
        if event[0] in ("enter", "leave"):
            events.append(event)
            continue
        shapes = [s[place] for s in streams[: len(SHAPES)]]
        modes = [s[place] for s in streams[len(SHAPES):]]
        events.append([event[0]] + [merged([e[k] for e in shapes], [e[k] for e in modes]) for k in range(1, len(event))])
        if event[0] == "to" and isinstance(events[-1][3], str):
            events[-1][4] = -1  # it leads to the same dtype whatever the precision
    inputs = [[name, number, merged([r["inputs"][i][2] for r in runs[: len(SHAPES)]], []),
               merged([r["inputs"][i][3] for r in runs[:1]], [r["inputs"][i][3] for r in runs[len(SHAPES):]])]
              for i, (name, number, _, _) in enumerate(base["inputs"])]
    return events, inputs


# -- stacks of layers -----------------------------------------------------------------------------------------------------
WRITES_LIST = {"split", "unbind"}


def outs_of(event):
    if event[0] in ("drop", "enter", "leave", "autocast"):
        return []
    return event[1] if event[0] in WRITES_LIST else [event[1]]


# Where an operation names the tensors that it reads.
READS = {"parameter": (), "buffer": (), "make": (), "cat": ("list", 2), "product": (2, 3, 4), "layer_norm": (2, 3, 4),
         "attention": (2, 3, 4, 5), "patches": (2, 3, 4), "add": (2, 3), "sub": (2, 3), "mul": (2, 3), "div": (2, 3),
         "matmul": (2, 3), "baddbmm": (2, 3, 4), "cross_entropy": (2, 3), "mse_loss": (2, 3), "maximum": (2, 3),
         "masked_fill": (2, 3), "where": (2, 3, 4), "stack_last": (2, 3), "lookup": (2, 3), "gather_rows": (2, 3),
         "pick": (2, 3, 4), "add_in_place": (2, 3), "to": (2, 4)}


def reads_of(event):
    if event[0] in ("enter", "leave", "autocast", "drop"):
        return []
    places = READS.get(event[0], (2,))
    if places and places[0] == "list":
        return list(event[places[1]])
    return [event[p] for p in places if event[p] >= 0]


def renumber(event, number):
    """The same event by other numbers of tensors."""
    kind = event[0]
    if kind == "drop":
        return [kind, number(event[1])]
    if kind == "autocast":
        return event
    out = list(event)
    out[1] = [number(n) for n in event[1]] if kind in WRITES_LIST else number(event[1])
    places = READS.get(kind, (2,))
    if places and places[0] == "list":
        out[places[1]] = [number(n) for n in event[places[1]]]
    else:
        for p in places:
            if event[p] >= 0:
                out[p] = number(event[p])
    return out


PATHS = {"linear": 3, "conv1d": 3, "embedding": 3, "parameter": 2, "buffer": 2}


def relative(event, prefix):
    if event[0] == "enter":
        path = event[1]
        return ["enter", path[len(prefix):].lstrip(".") if path.startswith(prefix) else path, event[2]]
    place = PATHS.get(event[0])
    if place is None:
        return event
    out = list(event)
    if not out[place].startswith(prefix):
        raise Refused(f"{out[place]} used inside {prefix}: weights that layers share")
    out[place] = out[place][len(prefix):].lstrip(".")
    return out


def calls_of(events, path, count):
    """Where the children 0 … count-1 of a list run, each once and in order: (begin, end, in, out), or None."""
    found, place = [], 0
    for child in range(count):
        name = f"{path}.{child}"
        begin = next((i for i in range(place, len(events)) if events[i][0] == "enter" and events[i][1] == name), None)
        if begin is None:
            return None
        end = next((i for i in range(begin, len(events)) if events[i][0] == "leave" and events[i][1] == name), None)
        if end is None or events[begin][3] is None or events[end][2] is None:
            return None
        found.append((begin, end, events[begin][3], events[end][2]))
        place = end + 1
    if any(e[0] == "enter" and any(e[1] == f"{path}.{c}" for c in range(count)) for e in events[place:]):
        return None
    for (_, end, _, out), (begin, _, into, _) in zip(found, found[1:]):
        # OPT and its kin throw dice between layers: a number is no work of the loop's.
        between = [e for e in events[end + 1: begin] if e[0] not in ("drop", "enter", "leave", "parameter", "autocast")
                   and not (e[0] == "make" and not e[2])]
        if between or into != out:
            return None
    return found


def fold(events, lists):
    """Puts each list of layers into one event ["stack", out, in, path, [[block, [captured…]]…]]; returns the blocks, too."""
    blocks, known = [], {}
    taken = []
    for path, count in sorted(lists, key=lambda item: -item[1]):
        if any(path.startswith(other + ".") or other.startswith(path + ".") for other in taken):
            continue
        calls = calls_of(events, path, count)
        if calls is None:
            continue
        rows, leftovers = [], []
        ok = True
        new_blocks, new_known = list(blocks), dict(known)
        for child, (begin, end, into, out) in enumerate(calls):
            body = events[begin + 1: end]
            made = {n for e in body for n in outs_of(e)}
            if out not in made:
                ok = False
                break
            later = [n for n in made - {out} if any(n in reads_of(e) for e in events[end + 1:])]
            if later:
                ok = False
                break
            captures = [n for n in dict.fromkeys(events[begin][4]) if n != into]  # a checkpoint holds all that it is called with
            for e in body:
                for n in reads_of(e):
                    if n not in made and n != into and n not in captures:
                        captures.append(n)
            names = {into: 0}
            for n in captures:
                names[n] = len(names)

            def number(n, names=names):
                if n not in names:
                    names[n] = len(names)
                return names[n]

            written = []
            for e in body:
                if e[0] == "drop" and e[1] not in made:
                    leftovers.append(e)
                    continue
                if e[0] == "drop" and e[1] == out:
                    continue
                written.append(relative(e, f"{path}.{child}") if e[0] in ("enter", "leave") else
                               relative(renumber(e, number), f"{path}.{child}"))
            block = {"captures": len(captures), "out": number(out), "source": events[begin][2], "ops": tidy(written)}
            key = json.dumps(block, sort_keys=True)
            if key not in new_known:
                new_known[key] = len(new_blocks)
                new_blocks.append(block)
            rows.append([new_known[key], captures])
        if not ok:
            continue
        blocks, known = new_blocks, new_known
        taken.append(path)
        first, last = calls[0], calls[-1]
        inner = {n for e in events[first[0]: last[1] + 1] for n in outs_of(e)} - {last[3]}
        drops = [e for e in leftovers if e[1] not in inner]
        between = [e for (_, end, _, _), (begin, _, _, _) in zip(calls, calls[1:]) for e in events[end + 1: begin]
                   if e[0] == "drop" and e[1] not in inner]
        rest = [e for e in events[last[1] + 1:] if not (e[0] == "drop" and e[1] in inner)]
        # The loop's own name for what it hands to the first layer goes when the first layer returns.
        events = events[: first[0]] + [["stack", last[3], first[2], path, rows]] + drops + between + rest
    return events, blocks


def tidy(events):
    """Without modules in which nothing happens, and without numbers that only told layers apart."""
    out = []
    for event in events:
        if event[0] == "leave":
            if out and out[-1][0] == "enter":
                out.pop()
            else:
                out.append(["leave"])
        else:
            out.append(event[:3] if event[0] == "enter" else event)
    return out


def heads(events, facts):
    """The token table and the output head by their roles; a tied head reads the table."""
    out = []
    for event in events:
        if event[0] == "linear" and event[3] == facts["head"]:
            event = ["head", *event[1:]]
        elif event[0] == "embedding" and event[3] == facts["table"]:
            event = ["tokens", *event[1:]]
        out.append(event)
    return out


def unique(events, blocks):
    seen = {}
    for scope, ops in [("", events)] + [(f"block {i}", b["ops"]) for i, b in enumerate(blocks)]:
        for event in ops:
            place = PATHS.get("linear" if event[0] == "head" else "embedding" if event[0] == "tokens" else event[0])
            if place is None or event[0] == "buffer":
                continue
            key = (scope, event[place], event[3] if event[0] == "parameter" else "")
            if key in seen:
                raise Refused(f"{event[place]} is used twice: weights that are shared are not traced")
            seen[key] = True


def trace(build, batch, path=None, loss=None):
    """Writes the trace of the model that build() makes, as batch(B, S) feeds it, to `path`; returns it as a dict."""
    runs = [run(build, batch, shape, MODES[0], loss) for shape in SHAPES]
    runs += [run(build, batch, SHAPES[0], mode, loss) for mode in MODES[1:]]
    events, inputs = combine(runs)
    facts = runs[0]
    events = heads(events, facts)
    events, blocks = fold(events, facts["lists"])
    events = tidy(events)
    unique(events, blocks)
    document = {
        "model_type": "model_trace", "format": FORMAT, "torch": torch.__version__.split("+")[0], "class": facts["class"],
        "parameters": facts["parameters"], "tie_word_embeddings": bool(facts["tied"]),
        "inputs": inputs, "ops": events, "blocks": blocks, "loss": facts["loss"], "outputs": facts["kept"],
    }
    if path is not None:
        with open(path, "w") as file:
            file.write(written(document))
    return document


def written(document):
    """One operation a line."""
    def lines(ops, indent):
        return "[\n" + ",\n".join(indent + json.dumps(op, separators=(",", ":")) for op in ops) + "]"

    parts = []
    for key, value in document.items():
        if key == "ops":
            parts.append(f'"ops":{lines(value, "  ")}')
        elif key == "blocks":
            inside = ",\n".join(" {" + ",".join(f'"{k}":{lines(v, "  ") if k == "ops" else json.dumps(v)}' for k, v in b.items()) + "}" for b in value)
            parts.append(f'"blocks":[{inside}]')
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}")
    return "{" + ",\n".join(parts) + "}\n"


# -- from the command line ------------------------------------------------------------------------------------------------
def from_transformers(file, architecture=None):
    import transformers
    values = json.load(open(file)) if isinstance(file, str) else dict(file)
    config = transformers.AutoConfig.for_model(**values) if "model_type" in values else None
    config.use_cache = False
    name = architecture or (values.get("architectures") or [None])[0]
    kind = getattr(transformers, name) if name else None

    def build(dtype=torch.float32):
        if kind is not None:
            return kind._from_config(config, dtype=dtype)
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)

    def batch(B, S):
        return {"input_ids": torch.zeros(B, S, dtype=torch.int64), "labels": torch.zeros(B, S, dtype=torch.int64)}

    return build, batch


def named(place):
    file, _, name = place.partition(":")
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    module = __import__(os.path.basename(file).removesuffix(".py"))
    return getattr(module, name)


def main():
    parser = argparse.ArgumentParser(description="Records one forward of a model for tidemark.")
    parser.add_argument("build", nargs="?", help="FILE.py:FUNCTION that returns the model")
    parser.add_argument("batch", nargs="?", help="FILE.py:FUNCTION that returns its arguments for B, S")
    parser.add_argument("--loss", help="FILE.py:FUNCTION of outputs and batch, where the forward returns none")
    parser.add_argument("--transformers", metavar="CONFIG", help="a config.json of transformers instead")
    parser.add_argument("--architecture", help="its class, where the file names none")
    parser.add_argument("-o", "--output", default="model-trace.json")
    given = parser.parse_args()
    if given.transformers:
        build, batch = from_transformers(given.transformers, given.architecture)
    elif given.build and given.batch:
        build, batch = named(given.build), named(given.batch)
    else:
        parser.error("name a model: FILE.py:build FILE.py:batch, or --transformers config.json")
    try:
        document = trace(build, batch, given.output, named(given.loss) if given.loss else None)
    except Refused as reason:
        sys.exit(f"This model cannot be traced: {reason}")
    print(f"{given.output}: {document['class']}, {document['parameters']} parameters, {len(document['ops'])} operations and "
          f"{len(document['blocks'])} kinds of layer. Next: tidemark estimate --config {given.output}")


if __name__ == "__main__":
    main()
