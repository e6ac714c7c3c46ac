"""Linear layers of GPTQ, AWQ, HQQ, quanto, torchao and AQLM: the libraries' own modules and autograd functions on fake tensors, and PEFT's classes for them.

`packed` {kind gptq, awq, hqq, quanto, torchao, aqlm; bits; group_size; desc_act}; `release` 4.x: AutoGPTQ's and AutoAWQ's in the place of gptqmodel's.
third_party/quantised holds gptqmodel 7.7.0, auto_gptq 0.7.1, awq (autoawq 0.2.9) and hqq 0.2.8.post1, optimum-quanto 0.2.7,
torchao 0.17.0 and aqlm 1.1.7 as unzipped; what they import
beside and never call here is a stand-in. A kernel allocates what its wrapper allocates."""
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from unittest.mock import MagicMock

import torch
import torch.nn as nn
from transformers.pytorch_utils import Conv1D

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "quantised")
ABSENT = ("logbar", "device_smi", "tokenicer", "threadpoolctl", "random_word", "termcolor", "pcre", "evalution", "datasets", "defuser", "dill",
          "kernels", "ninja")


class Standing(types.ModuleType):
    """A package that is imported and not used."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ABSENT else None

    def create_module(self, spec):
        return Standing(spec.name)

    def exec_module(self, module):
        pass


def install():
    """Before PEFT is imported: it looks for hqq once."""
    if FOLDER not in sys.path:
        sys.path.append(FOLDER)
        sys.meta_path.append(Finder())


def bare(*names):
    """Packages whose __init__ imports models and trainers."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(FOLDER, *name.split("."))]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules.setdefault(name, module)


def dequantized(qweight, scales, *_):
    """gptqmodel_ext/awq/quantization/gemm_cuda_gen.cu dequantize_weights_cuda, and AutoAWQ_kernels': one tensor."""
    return torch.empty(qweight.shape[0], qweight.shape[1] * 8, dtype=scales.dtype, device=qweight.device)


# -- gptqmodel ---------------------------------------------------------------------------------
def compiled(method, **_):
    """TorchLinear.optimize compiles dequantize_weight: torch 2.14's inductor makes one kernel and one buffer of it."""
    layer = method.__self__
    return lambda num_itr=1: torch.empty(layer.in_features, layer.out_features, dtype=layer.scales.dtype, device=layer.scales.device)


def gptq(source, packed):
    library = importlib.import_module("gptqmodel.nn_modules.qlinear.torch")
    library.torch_compile = compiled
    layer = library.TorchLinear(packed["bits"], packed["group_size"], True, packed.get("desc_act", False), source.in_features,
                                source.out_features, source.bias is not None, register_buffers=True).to("cuda")
    layer.post_init()
    return layer


def awq(source, packed):
    library = importlib.import_module("gptqmodel.nn_modules.qlinear.gemm_awq")
    library.awq_dequantize_weights, library.awq_runtime_available = dequantized, lambda: True

    def gemm(x, qweight, scales, qzeros, splits, fp32_accum):
        """gemm_forward_cuda_fp32_reduce: partial sums in fp32, one kernel that adds them up."""
        partial = torch.empty(splits, x.shape[0], qweight.shape[1] * 8, dtype=torch.float32, device=x.device)
        return torch.empty(partial.shape[1:], dtype=x.dtype, device=x.device)
    library.awq_gemm_forward = gemm
    layer = library.AwqGEMMLinear(packed["bits"], packed["group_size"], False, False, source.in_features, source.out_features,
                                  source.bias is not None, register_buffers=True).to("cuda")
    layer.post_init()
    return layer


# -- what transformers 4 had -------------------------------------------------------------------
def auto_gptq(source, packed):
    bare("auto_gptq", "auto_gptq.nn_modules", "auto_gptq.nn_modules.qlinear")
    kernel = "qlinear_cuda" if packed.get("desc_act") else "qlinear_cuda_old"     # utils/import_utils.py dynamically_import_QuantLinear
    for name in ("autogptq_cuda_64", "autogptq_cuda_256"):                       # used below 128 tokens
        sys.modules.setdefault(name, types.ModuleType(name))
    library = importlib.import_module("auto_gptq.nn_modules.qlinear." + kernel)
    return library.QuantLinear(packed["bits"], packed["group_size"], source.in_features, source.out_features, source.bias is not None,
                               weight_dtype=source.weight.dtype).to("cuda")


def auto_awq(source, packed):
    bare("awq", "awq.modules", "awq.modules.linear", "awq.utils")
    library = importlib.import_module("awq.modules.linear.gemm")

    def gemm(x, qweight, scales, qzeros, splits):
        return torch.empty(splits, x.shape[0], qweight.shape[1] * 8, dtype=x.dtype, device=x.device).sum(0)
    library.awq_ext = types.SimpleNamespace(dequantize_weights_cuda=dequantized, gemm_forward_cuda=gemm)
    layer = library.WQLinear_GEMM(packed["bits"], packed["group_size"], source.in_features, source.out_features, source.bias is not None,
                                  "cuda", training=True)
    sys.modules["awq.modules.linear"].WQLinear_GEMM = library.WQLinear_GEMM
    return layer


# -- hqq ---------------------------------------------------------------------------------------
def hqq(source, packed):
    library = importlib.import_module("hqq.core.quantize")
    config = library.BaseQuantizeConfig(nbits=packed["bits"], group_size=packed["group_size"])
    config["weight_quant_params"]["optimize"] = False            # a search over values; the packed tensors are the same
    dtype = source.weight.dtype
    layer = library.HQQLinear(source, config, compute_dtype=dtype, device="cuda", del_orig=False)
    layer.linear_layer = None
    for key, tensor in {**layer.meta, "bias": layer.bias}.items():   # attributes, which nobody else would count
        if isinstance(tensor, torch.Tensor):
            layer.register_buffer("oracle_" + key, tensor, persistent=False)
    return layer


# -- weights that are tensors of a class of their own --------------------------------------------
def quanto(source, packed):
    """transformers 5.12 integrations/quanto.py QuantoQuantize: the scales of inputs and outputs lie on the CPU."""
    library = importlib.import_module("optimum.quanto")
    torch.ops.quanto.qbytes_mm = importlib.import_module("optimum.quanto.library.qbytes_mm").qbytes_mm     # its operations, one by one
    with torch.device("meta"):
        layer = library.QLinear(source.in_features, source.out_features, source.bias is not None, dtype=source.weight.dtype, weights=library.qint8)
    layer.weight, layer.bias = source.weight, source.bias
    layer.input_scale, layer.output_scale = torch.ones(()), torch.ones(())
    layer.freeze()
    layer.weight.requires_grad = False
    return layer


def torchao(source, packed):
    library = importlib.import_module("torchao.quantization")
    with torch.device(source.weight.device):
        library.quantize_(source, library.Int8WeightOnlyConfig(set_inductor_config=False))
    return source


# -- aqlm --------------------------------------------------------------------------------------
def aqlm(source, packed):
    """aqlm 1.1.7 inference.py QuantizedLinear; its kernels are compiled as they are imported: what cuda_kernel.cpp allocates instead."""
    def whole(codes, codebooks):
        return torch.empty(codes.shape[0], codes.shape[1] * codebooks.shape[3], dtype=codebooks.dtype, device=codes.device)

    def forward(x, codes, codebooks, scales, bias):
        """code1x16_matmat_dequant, scale_bias_unflatten_output."""
        flat = torch.nn.functional.linear(x.reshape(-1, x.shape[-1]), whole(codes, codebooks))
        flat *= scales.flatten().unsqueeze(0)
        if bias is not None:
            flat += bias.unsqueeze(0)
        return flat.reshape(*x.shape[:-1], flat.shape[-1]).clone()

    def backward(g, codes, codebooks, scales, bias):
        """code1x16_matmat_dequant_transposed."""
        scaled = (g.reshape(-1, g.shape[-1]) * scales.flatten().unsqueeze(0)).reshape(g.shape)
        return torch.nn.functional.linear(scaled, whole(codes, codebooks).transpose(0, 1), None)
    library = importlib.import_module("aqlm.inference")
    library.get_forward_pass_kernel, library.get_backward_pass_kernel = lambda *a: forward, lambda *a: backward
    layer = library.QuantizedLinear(source.in_features, source.out_features, 8, 1, packed.get("codebooks", 1), packed["bits"],
                                    bias=source.bias is not None, device="cuda", dtype=source.weight.dtype)
    return layer.requires_grad_(False)


# -- eetq --------------------------------------------------------------------------------------
def eetq(source, packed):
    """The package's layer, of which transformers 5 has a copy; PEFT looks for the package as it is imported."""
    from transformers.integrations import eetq as library
    package = sys.modules.setdefault("eetq", types.ModuleType("eetq"))
    package.EetqLinear, package.__spec__ = library.EetqLinear, importlib.machinery.ModuleSpec("eetq", None)

    def gemm(x, weight, scales):
        return torch.empty(*x.shape[:-1], weight.shape[1], dtype=x.dtype, device=x.device)
    library.eetq_kernels_hub = types.SimpleNamespace(w8_a16_gemm=gemm)
    with torch.device("cuda"):
        layer = library.EetqLinear(source.in_features, source.out_features, bias=source.bias is not None)
    layer.in_features, layer.out_features = source.in_features, source.out_features      # which the package's has, and PEFT asks
    return layer.requires_grad_(False)


NOW = {"gptq": gptq, "awq": awq, "hqq": hqq, "quanto": quanto, "torchao": torchao, "aqlm": aqlm}
FORMER = {"gptq": auto_gptq, "awq": auto_awq, "hqq": hqq, "eetq": eetq}


def pack(model, job):
    """GPTQ packs what lies in the layers (optimum gptq/quantizer.py), the others every linear layer but the head."""
    install()
    packed = {"bits": 4, "group_size": 64 if job["packed"]["kind"] == "hqq" else 128, **job["packed"]}
    make = (FORMER if job.get("release") else NOW)[packed["kind"]]
    if packed["kind"] in ("quanto", "torchao"):     # they know their products by torch's own function
        torch.nn.functional.linear = getattr(torch.nn.functional.linear, "plain", torch.nn.functional.linear)
    head = model.get_output_embeddings()
    for p in model.parameters():                    # hqq models/base.py patch_model freezes first: a bias is copied
        p.requires_grad = False
    for name, m in list(model.named_modules()):
        if not isinstance(m, (nn.Linear, Conv1D)) or m is head or (packed["kind"] == "gptq" and ".layers." not in name):
            continue
        parent, _, leaf = name.rpartition(".")
        with torch.device("cpu"):
            setattr(model.get_submodule(parent), leaf, make(m, packed))
    model.is_quantized, model.quantization_method = True, packed["kind"]
    if packed["kind"] == "torchao":                 # whom PEFT asks how to merge
        model.hf_quantizer = types.SimpleNamespace(quantization_config=types.SimpleNamespace(get_apply_tensor_subclass=None))


def classes(job):
    """Which of PEFT's classes its dispatchers choose (peft 0.18 tuners/lora): gptqmodel's layers for AWQ are a BaseQuantLinear, too."""
    kind = job["packed"]["kind"]
    if kind in ("quanto", "torchao"):              # PEFT's dispatchers find them by themselves
        return {}
    if kind == "eetq":
        from peft.tuners.lora.eetq import EetqLoraLinear
        return {sys.modules["eetq"].EetqLinear: EetqLoraLinear}
    if kind == "aqlm":
        from peft.tuners.lora.aqlm import AqlmLoraLinear
        return {importlib.import_module("aqlm.inference").QuantizedLinear: AqlmLoraLinear}
    from peft.tuners.lora.awq import AwqLoraLinear
    from peft.tuners.lora.gptq import GPTQLoraLinear
    from peft.tuners.lora.hqq import HqqLoraLinear
    module = HqqLoraLinear if kind == "hqq" else AwqLoraLinear if kind == "awq" and job.get("release") else GPTQLoraLinear
    names = ("TorchLinear", "AwqGEMMLinear", "QuantLinear", "WQLinear_GEMM", "HQQLinear")

    class AnyPacked(type):
        def __instancecheck__(cls, layer):
            return type(layer).__name__ in names
    return {AnyPacked("Packed", (), {}): module}


def turn(job):
    """peft 0.18 tuners/oft: dispatch_gptq, dispatch_awq, which ask for packages that are installed."""
    import peft.tuners.oft.model as oft
    from peft.tuners.oft.awq import AwqOFTLinear
    from peft.tuners.oft.gptq import GPTQOFTLinear
    module = AwqOFTLinear if job["packed"]["kind"] == "awq" and job.get("release") else GPTQOFTLinear
    names = ("TorchLinear", "AwqGEMMLinear", "QuantLinear", "WQLinear_GEMM")

    def dispatch(target, adapter_name, **words):
        return module(target, adapter_name, **words) if type(target).__name__ in names else None
    oft.dispatch_gptq = oft.dispatch_awq = dispatch


def is_left_alone(job):
    """peft 0.18 utils/other.py prepare_model_for_kbit_training makes nothing fp32 in models of these kinds."""
    return job.get("packed", {}).get("kind") in ("gptq", "hqq", "torchao", "aqlm", "eetq")
