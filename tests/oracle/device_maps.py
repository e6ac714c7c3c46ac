"""Where transformers' own code lays the modules of a model under device_map="auto": rows of tests/unit/device_map_test.cpp.

Run in the recorder's Debian (README.md), on torch's meta device: python3 device_maps.py. Every GPU has room for all of it; of quantised
models a stand-in for the quantiser has the element sizes and the tenth that bitsandbytes' classes have.
"""
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
import transformers
from transformers.integrations import accelerate as A
A.get_max_memory.__globals__["accelerate_max_memory"] = lambda m=None: dict(m)
from collections import OrderedDict
class Q:
    def __init__(self, bits): self.bits=bits
    def param_element_size(self, model, name, param):
        if "weight" not in name: return param.element_size()
        m = model.get_submodule(name.rsplit(".",1)[0])
        if isinstance(m, torch.nn.Linear) and name.endswith("weight") and "lm_head" not in name: return self.bits/8
        return param.element_size()
    def adjust_max_memory(self, mm): return {k: v*0.90 for k,v in mm.items()}
    def validate_environment(self, device_map=None): pass
cfgs = {
 "llama-3.1-8b": dict(model_type="llama", hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=False),
 "llama-2-7b": dict(model_type="llama", hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32, vocab_size=32000, tie_word_embeddings=False),
 "llama-3.2-1b": dict(model_type="llama", hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True),
 "smollm2-135m": dict(model_type="llama", hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, vocab_size=49152, tie_word_embeddings=True),
 "qwen2.5-7b": dict(model_type="qwen2", hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4, vocab_size=152064, tie_word_embeddings=False),
 "qwen2.5-0.5b": dict(model_type="qwen2", hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
 "mistral-7b-v0.3": dict(model_type="mistral", hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=32768, tie_word_embeddings=False),
 "llama-3.1-70b": dict(model_type="llama", hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=False),
 "qwen3-8b": dict(model_type="qwen3", hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=False),
}
print(transformers.__version__, file=sys.stderr)
for name, c in cfgs.items():
    c = dict(c); mt = c.pop("model_type")
    cfg = AutoConfig.for_model(mt, **c)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(cfg, dtype=torch.bfloat16)
    for bits in (0,4,8):
      for n in (2,3,4,8):
        mm = OrderedDict((i, 10**14) for i in range(n)); mm["cpu"]=10**14
        dm = A._get_device_map(model, "auto", mm, Q(bits) if bits else None)
        def where(mod):
            best=None
            for k,v in dm.items():
                if k=="" or mod==k or mod.startswith(k+"."):
                    if best is None or len(k)>best[0]: best=(len(k),v)
            return best[1]
        layers=[0]*n
        for i in range(cfg.num_hidden_layers): layers[where(f"model.layers.{i}")]+=1
        print(json.dumps([name,bits,n,layers,where("model.embed_tokens"),where("lm_head"),where("model.norm"),where("model.rotary_emb")]))
