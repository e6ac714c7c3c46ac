"""Quantisation-aware training by torchao: `qat` {weight_dtype, activation_dtype, group_size, quantize_embedding}, as Axolotl 067b021
utils/quantization.py prepare_model_for_qat makes it: get_quantization_config and _make_qat_config, word for word where they decide."""
import os
import sys

import torch

FP8 = torch.float8_e4m3fn


def weight_config(weight, activation, group):
    from torchao.quantization.qat.fake_quantize_config import Float8FakeQuantizeConfig, Int4WeightFakeQuantizeConfig
    if weight == "int4":
        more = {"int8": {"activation_dtype": torch.bfloat16}, "fp8": {"activation_dtype": FP8}}.get(activation, {})
        return Int4WeightFakeQuantizeConfig(group_size=group, **more)
    return Float8FakeQuantizeConfig(dtype=FP8)


def config_of(weight, activation, group):
    from torchao.quantization.qat import QATConfig
    from torchao.quantization.qat.fake_quantize_config import Float8FakeQuantizeConfig, IntxFakeQuantizeConfig
    if weight == "mxfp4":
        from torchao.prototype.qat import MXFakeQuantizeConfig
        mx = MXFakeQuantizeConfig(dtype=torch.float4_e2m1fn_x2, block_size=32)
        return QATConfig(activation_config=mx, weight_config=mx)
    if weight == "nvfp4":
        from torchao.prototype.mx_formats import NVFP4DynamicActivationNVFP4WeightConfig
        return QATConfig(NVFP4DynamicActivationNVFP4WeightConfig())
    inputs = {"int8": lambda: IntxFakeQuantizeConfig(dtype=torch.int8, granularity="per_token", is_symmetric=False),
              "fp8": lambda: Float8FakeQuantizeConfig(dtype=FP8)}.get(activation, lambda: None)()
    return QATConfig(weight_config=weight_config(weight, activation, group), activation_config=inputs)


def prepare(model, job):
    if not job.get("qat"):
        return
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "optimizers"))     # torchao 0.18
    from torchao.quantization import quantize_
    said = job["qat"]
    weight, group = said["weight_dtype"], said.get("group_size", 32)
    quantize_(model, config_of(weight, said.get("activation_dtype"), group))
    if said.get("quantize_embedding"):
        quantize_(model, config_of(weight, None, group), filter_fn=lambda m, _: isinstance(m, torch.nn.Embedding))
