"""Diffusion training steps of kohya-ss/sd-scripts: its own U-Nets of Stable Diffusion 1.5 and SDXL, and the LoRA layers of its networks/lora.py.

Its repository (48d368f, 2026-02-16) lies unpacked in third_party/sd-scripts; Python files are imported from there as they are, beside stubs of what they
import for logging. The step is that of train_network.py: get_noise_pred_and_target and process_batch, in short, with latents and states of the text made
before (--cache_latents, --cache_text_encoder_outputs). A method without adapters is sdxl_train.py.
Job: `library: sd_scripts`, `architecture` ("sdxl", "sd15"), `image_size`, `micro_batch`; a rank in `lora.r`. `attention`: sdpa (--sdpa) or eager (neither that
nor --xformers).
"""
import os
import sys
import types

import torch
import torch.nn.functional as F

DEVICE = "cuda"
WIDTH = {"sdxl": 2048, "sd15": 768}          # of the states of the text
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "sd-scripts")


def load():
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
        import diffusion
        diffusion.load()                     # networks/lora.py names diffusers' AutoencoderKL
        utils = types.ModuleType("library.utils")
        utils.setup_logging = lambda *a, **k: None
        sys.modules["library.utils"] = utils
    from library import original_unet, sdxl_original_unet
    from networks import lora
    return original_unet, sdxl_original_unet, lora


def build(job, dtype):
    """The base in the type of mixed precision (unet.to(weight_dtype)) beside adapters; trained weights stay in theirs."""
    for cls in (torch.nn.Linear, torch.nn.Conv2d, torch.nn.GroupNorm, torch.nn.LayerNorm):     # weights have no contents
        cls.reset_parameters = lambda self: None
    sd15, sdxl, _ = load()
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(DEVICE):
            if job["architecture"] == "sdxl":
                model = sdxl.SdxlUNet2DConditionModel()
            else:
                model = sd15.UNet2DConditionModel(sample_size=64, attention_head_dim=8, cross_attention_dim=768)
    finally:
        torch.set_default_dtype(old)
    model.set_use_sdpa(job["attention"] == "sdpa")
    if job["gradient_checkpointing"] != "none":
        model.enable_gradient_checkpointing()
    model.gradient_checkpointing_enable = lambda *a, **k: None
    model.config = types.SimpleNamespace(vocab_size=None, get_text_config=lambda *a, **k: model.config)
    return model.train()


def add_lora(model, job):
    """LoRANetwork.apply_to: forwards are replaced, the network holds the weights, in fp32 (without --full_bf16)."""
    model.requires_grad_(False)
    lo = job["lora"]
    lora = load()[2]
    lora.torch.nn.init.kaiming_uniform_ = lora.torch.nn.init.zeros_ = lambda t, *a, **k: t
    with torch.device(DEVICE):
        network = lora.LoRANetwork([], model, lora_dim=lo["r"], alpha=lo.get("alpha", 1), is_sdxl=job["architecture"] == "sdxl")
    network.apply_to([], model, False, True)
    if lo.get("adapter_dtype") == "bf16":
        network.to(torch.bfloat16)
    network.requires_grad_(True)
    model.add_module("network", network)
    return model


def half(job, dtype):
    return {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}.get(job["precision"], dtype)


def make_batch(model, job, dtype):
    b, size, dt = job["micro_batch"], job["image_size"] // 8, half(job, dtype)

    def new(*shape, t=dt):
        return torch.empty(*shape, device=DEVICE, dtype=t)
    batch = {"latents": new(b, 4, size, size, t=torch.float32), "text": [new(b, job.get("seq_len", 77), 768)]}
    if job["architecture"] == "sdxl":
        batch["text"] = [new(b, job.get("seq_len", 77), 768), new(b, job.get("seq_len", 77), 1280), new(b, 1280)]
    return batch


def forward(model, batch, job, dtype):
    """get_noise_pred_and_target, call_unet and process_batch's loss."""
    dt, latents = half(job, dtype), batch["latents"] * 0.13025
    noise = torch.randn_like(latents)                               # get_noise_noisy_latents_and_timesteps
    timesteps = torch.zeros(latents.shape[0], dtype=torch.long, device=DEVICE)
    root, rest = torch.zeros(latents.shape[0], 1, 1, 1, device=DEVICE), torch.zeros(latents.shape[0], 1, 1, 1, device=DEVICE)
    noisy = root * latents + rest * noise                           # DDPMScheduler.add_noise
    if job["gradient_checkpointing"] != "none":
        for t in batch["text"]:
            t.requires_grad_(True)
    noisy.requires_grad_(job["method"] == "lora")
    noise_pred = call_unet(model, noisy, timesteps, batch["text"], job, dt)
    loss = F.mse_loss(noise_pred.float(), noise.float(), reduction="none")
    loss = loss.mean(dim=list(range(1, loss.ndim))) * torch.ones(loss.shape[0], device=DEVICE)
    return {"loss": loss.mean()}


def call_unet(model, noisy, timesteps, text, job, dt):
    if job["architecture"] == "sd15":
        return model(noisy, timesteps, text[0].to(dt)).sample
    noisy = noisy.to(dt)
    sizes = torch.zeros(noisy.shape[0], 1536, device=DEVICE).to(dt)
    vector = torch.cat([text[2], sizes], dim=1).to(dt)
    return model(noisy, timesteps, torch.cat([text[0], text[1]], dim=2).to(dt), vector)
