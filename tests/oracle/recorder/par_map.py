"""device_map="auto": one process, layers on one card after another, and accelerate's own hooks between them; the memory of one card.

par: device_map (cards), rank (the card).  transformers' own plan says where modules lie (as ../device_maps.py asks for it), accelerate's
dispatch_model puts them there.  Fake tensors know their card ("cuda:1"), and refuse to be mixed; autograd runs in the calling thread,
because the shims have one card's engine thread.  Storages of the other cards are not recorded (Tracker.device).
"""
from collections import OrderedDict

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

import jobs as J
import record
from multi import Strategy

ROOM = 10 ** 14             # of each card: more than any model needs


class Quantiser:
    """What infer_auto_device_map asks of bitsandbytes' quantisers (transformers quantizers/quantizer_bnb_*.py)."""

    def __init__(self, bits):
        self.bits = bits

    def param_element_size(self, model, name, param):
        packed = name.endswith("weight") and "lm_head" not in name and isinstance(model.get_submodule(name.rpartition(".")[0]), torch.nn.Linear)
        return self.bits / 8 if packed else param.element_size()

    def adjust_max_memory(self, room):
        return {card: bytes * 0.90 for card, bytes in room.items()}

    def validate_environment(self, device_map=None):
        pass


class Map(Strategy):
    def world(self):
        return self.par["device_map"]

    def setup(self):
        self.tr.device = self.par["rank"]
        FakeTensor.data_ptr = lambda t: t.untyped_storage()._cdata      # dispatch_model knows tied parameters by it

    def plan(self, registry):
        import transformers.integrations.accelerate as integration
        integration.get_max_memory.__globals__["accelerate_max_memory"] = dict
        quantiser = Quantiser(self.job.get("bits", 4)) if self.job["method"] == "qlora" else None
        with unset_fake_temporarily():
            model = J.build_model(self.job, registry, True, device="meta")
            room = OrderedDict((card, ROOM) for card in [*range(self.par["device_map"]), "cpu"])
            return integration._get_device_map(model, "auto", room, quantiser)

    def build(self, registry):
        from accelerate import dispatch_model
        self.where = self.plan(registry)

        def placed(model):
            self.load(model)
            dispatch_model(model, self.where, skip_keys=model._skip_keys_device_placement)
        return record.build(J, self.job, registry, fake=True, placed=placed)

    def card(self, name):
        return self.where[max((k for k in self.where if k == "" or name == k or name.startswith(k + ".")), key=len)]

    def load(self, model):
        """from_pretrained reads each tensor to its card.  (dispatch_model could not: a parameter's class is FakeTensor here.)"""
        known = {}
        for path, module in model.named_modules():
            for leaf, p in module._parameters.items():
                if p is not None and id(p) not in known:
                    known[id(p)] = torch.nn.Parameter(p.detach().to(self.card(f"{path}.{leaf}")), p.requires_grad)
                module._parameters[leaf] = p if p is None else known[id(p)]

    def counted(self, model):
        """Those on the card."""
        mine = torch.nn.Module()
        for i, p in enumerate(model.parameters()):
            if not self.tr.elsewhere(p):
                mine.register_parameter(str(i), p)
        return mine

    def backward(self, loss):
        with torch.autograd.set_multithreading_enabled(False):
            loss.backward()


def make(job, tr):
    return Map(job, tr)
