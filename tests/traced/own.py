"""Models that no family of tidemark describes, as people write their own: traced by `tidemark trace`, recorded by the recorder (own_records.py).

Each class is one; MODELS gives a small instance of it and its batch of B samples of S positions (tokens, nodes, patches, frames, states).
The forward returns the loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class NanoGpt(nn.Module):
    """A GPT in the manner of nanoGPT: one projection for queries, keys and values, learned positions, a tied head."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, s, c = x.shape
            q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
            q, k, v = (t.view(b, s, self.heads, c // self.heads).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, s, c))
            return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x))))

    def __init__(self, width=256, heads=4, layers=4, vocabulary=2048, positions=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList([self.Block(width, heads) for _ in range(layers)])
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Squares(nn.Module):
    """RMSNorm by hand."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class OwnLlama(nn.Module):
    """Rotary positions, grouped heads and a gated feed-forward, written by hand."""

    class Block(nn.Module):
        def __init__(self, width, heads, groups, hidden):
            super().__init__()
            self.heads, self.groups, self.size = heads, groups, width // heads
            self.norm_1, self.norm_2 = Squares(width), Squares(width)
            self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * self.size, bias=False)
            self.o = nn.Linear(width, width, bias=False)
            self.up, self.gate, self.down = (nn.Linear(*s, bias=False) for s in ((width, hidden), (width, hidden), (hidden, width)))

        def rotate(self, x, cos, sin):
            a, b = x[..., :self.size // 2], x[..., self.size // 2:]
            return x * cos + torch.cat((-b, a), dim=-1) * sin

        def forward(self, x, cos, sin):
            b, s, c = x.shape
            y = self.norm_1(x)
            q = self.q(y).view(b, s, self.heads, self.size).transpose(1, 2)
            k, v = self.kv(y).view(b, s, 2 * self.groups, self.size).transpose(1, 2).chunk(2, dim=1)
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            shape = (b, self.groups, self.heads // self.groups, s, self.size)
            k, v = (t.unsqueeze(2).expand(shape).reshape(b, self.heads, s, self.size) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, s, c))
            y = self.norm_2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self, width=256, heads=8, groups=2, hidden=768, layers=4, vocabulary=4096, positions=1024):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([self.Block(width, heads, groups, hidden) for _ in range(layers)])
        self.norm, self.head = Squares(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("cos", torch.zeros(positions, width // heads))
        self.register_buffer("sin", torch.zeros(positions, width // heads))

    def forward(self, ids, targets):
        x = self.tokens(ids)
        cos, sin = self.cos[:ids.shape[1]], self.sin[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x, cos, sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Mixer(nn.Module):
    """MLP-Mixer on patches: one feed-forward over places, one over channels."""

    class Block(nn.Module):
        def __init__(self, places, width):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.place_in, self.place_out = nn.Linear(places, 2 * places), nn.Linear(2 * places, places)
            self.channel_in, self.channel_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            y = self.norm_1(x).transpose(1, 2)
            x = x + self.place_out(F.gelu(self.place_in(y))).transpose(1, 2)
            return x + self.channel_out(F.gelu(self.channel_in(self.norm_2(x))))

    def __init__(self, side=64, patch=8, width=256, layers=6, classes=100):
        super().__init__()
        self.stem = nn.Conv2d(3, width, patch, stride=patch)
        self.blocks = nn.ModuleList([self.Block((side // patch) ** 2, width) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, targets):
        x = self.stem(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), targets)


class Attention(nn.Module):
    """Softmax by hand, with what is added to the scores."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, source=None, bias=None):
        source = x if source is None else source
        b, s, c = x.shape
        n = source.shape[1]
        q = self.q(x).view(b, s, self.heads, self.size).transpose(1, 2)
        k = self.k(source).view(b, n, self.heads, self.size).transpose(1, 2)
        v = self.v(source).view(b, n, self.heads, self.size).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size)
        if bias is not None:
            scores = scores + bias
        y = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.o(y.transpose(1, 2).reshape(b, s, c))


class GraphTransformer(nn.Module):
    """Nodes that see each other by a bias made of their edges, as Graphormer's."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm_1, self.norm_2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
            self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x, bias):
            x = x + self.attention(self.norm_1(x), bias=bias)
            return x + self.down(F.relu(self.up(self.norm_2(x))))

    def __init__(self, features=32, width=128, heads=4, layers=4, distances=16):
        super().__init__()
        self.node, self.distance = nn.Linear(features, width), nn.Embedding(distances, heads)
        self.layers = nn.ModuleList([self.Block(width, heads) for _ in range(layers)])
        self.out = nn.Linear(width, 1)

    def forward(self, nodes, distances, targets):
        bias = self.distance(distances).permute(0, 3, 1, 2)
        x = self.node(nodes)
        for layer in self.layers:
            x = layer(x, bias)
        return F.mse_loss(self.out(x), targets)


class GraphConvolution(nn.Module):
    """GCN on dense adjacency matrices: neighbours are a product."""

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.own, self.others = nn.Linear(width, width), nn.Linear(width, width, bias=False)

        def forward(self, x, adjacency):
            return F.relu(self.own(x) + torch.bmm(adjacency, self.others(x))) + x

    def __init__(self, features=64, width=256, layers=5, classes=16):
        super().__init__()
        self.first, self.last = nn.Linear(features, width), nn.Linear(width, classes)
        self.layers = nn.ModuleList([self.Layer(width) for _ in range(layers)])

    def forward(self, nodes, adjacency, targets):
        x = F.relu(self.first(nodes))
        for layer in self.layers:
            x = layer(x, adjacency)
        logits = self.last(x)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


class SpectrogramTransformer(nn.Module):
    """Sound as pictures of mel bands, cut into patches (AST)."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc_1, self.fc_2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.qkv(self.norm_1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
            x = x + self.proj(y)
            return x + self.fc_2(F.gelu(self.fc_1(self.norm_2(x))))

    def __init__(self, bands=128, frames=256, patch=16, width=192, heads=3, layers=6, classes=50):
        super().__init__()
        self.stem = nn.Conv2d(1, width, patch, stride=patch)
        self.positions = nn.Parameter(torch.zeros(1, bands // patch * (frames // patch), width))
        self.blocks = nn.ModuleList([self.Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, spectrogram, targets):
        x = self.stem(spectrogram).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), targets)


class DiffusionTransformer(nn.Module):
    """DiT: each block shifts, scales and gates by what the time says."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm_1, self.norm_2 = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
            self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc_1, self.fc_2, self.modulation = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Linear(width, 6 * width)

        def forward(self, x, time):
            b, n, c = x.shape
            shift_1, scale_1, gate_1, shift_2, scale_2, gate_2 = self.modulation(F.silu(time)).unsqueeze(1).chunk(6, dim=-1)
            y = self.norm_1(x) * (1 + scale_1) + shift_1
            q, k, v = (t.view(b, n, self.heads, c // self.heads).transpose(1, 2) for t in self.qkv(y).chunk(3, dim=-1))
            x = x + gate_1 * self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))
            y = self.norm_2(x) * (1 + scale_2) + shift_2
            return x + gate_2 * self.fc_2(F.gelu(self.fc_1(y), approximate="tanh"))

    def __init__(self, channels=16, width=256, heads=4, layers=4, steps=1000):
        super().__init__()
        self.inward, self.outward = nn.Linear(channels, width), nn.Linear(width, channels)
        self.time, self.mlp = nn.Embedding(steps, width), nn.Linear(width, width)
        self.blocks = nn.ModuleList([self.Block(width, heads) for _ in range(layers)])

    def forward(self, latents, times, noise):
        x, time = self.inward(latents), self.mlp(self.time(times))
        for block in self.blocks:
            x = block(x, time)
        return F.mse_loss(self.outward(x), noise)


class Perceiver(nn.Module):
    """A few latents that look at all positions, again and again."""

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(width) for _ in range(3))
            self.cross, self.own = Attention(width, heads), Attention(width, heads)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, latents, source):
            latents = latents + self.cross(self.norm_1(latents), source)
            latents = latents + self.own(self.norm_2(latents))
            return latents + self.down(F.gelu(self.up(self.norm_3(latents))))

    def __init__(self, features=48, width=192, latents=32, heads=6, layers=4, classes=10):
        super().__init__()
        self.inward, self.latents = nn.Linear(features, width), nn.Parameter(torch.zeros(1, latents, width))
        self.blocks = nn.ModuleList([self.Block(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, classes)

    def forward(self, points, targets):
        source = self.inward(points)
        x = self.latents.expand(points.shape[0], -1, -1)
        for block in self.blocks:
            x = block(x, source)
        return F.cross_entropy(self.head(x.mean(1)), targets)


class GatedMlp(nn.Module):
    """gMLP: a product over positions gates one half of the channels."""

    class Block(nn.Module):
        def __init__(self, positions, width):
            super().__init__()
            self.norm, self.gate_norm = nn.LayerNorm(width), nn.LayerNorm(2 * width)
            self.up, self.down, self.places = nn.Linear(width, 4 * width), nn.Linear(2 * width, width), nn.Linear(positions, positions)

        def forward(self, x):
            u, v = F.gelu(self.up(self.norm(x))).chunk(2, dim=-1)
            v = self.places(self.gate_norm(v).transpose(1, 2)).transpose(1, 2)
            return x + self.down(u * v)

    def __init__(self, positions=128, width=192, layers=6, vocabulary=1000):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([self.Block(positions, width) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Recommender(nn.Module):
    """DLRM: tables of categories, a bottom and a top network, products of each with each."""

    def __init__(self, tables=8, rows=20000, dense=13, width=64):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(rows, width) for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(dense, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear((tables + 1) ** 2 + width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense, categories, targets):
        x = self.bottom(dense)
        rows = [x.unsqueeze(1)] + [table(categories[:, i]).unsqueeze(1) for i, table in enumerate(self.tables)]
        rows = torch.cat(rows, dim=1)
        products = torch.bmm(rows, rows.transpose(1, 2)).reshape(dense.shape[0], -1)
        return F.mse_loss(self.top(torch.cat((x, products), dim=1)), targets)


class Forecaster(nn.Module):
    """PatchTST: windows of a series are tokens; a network of its own for the outcome."""

    def __init__(self, window=16, width=128, heads=4, layers=3):
        super().__init__()
        self.inward, self.outward = nn.Linear(window, width), nn.Linear(width, window)
        self.layers = nn.ModuleList([GraphTransformer.Block(width, heads) for _ in range(layers)])

    def forward(self, series, targets):
        x = self.inward(series)
        for layer in self.layers:
            x = layer(x, None)
        return F.mse_loss(self.outward(x), targets)


class ValueNetwork(nn.Module):
    """Reinforcement learning: a state, two heads, actions as classes."""

    def __init__(self, state=64, width=512, actions=18):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(state, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy, self.value = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, states, actions, returns):
        x = self.body(states)
        policy = F.cross_entropy(self.policy(x).reshape(-1, self.policy.out_features), actions.reshape(-1))
        return policy + F.mse_loss(self.value(x), returns)


class Timm(nn.Module):
    """A model of timm 1.0.20, as it is."""

    def __init__(self, name):
        super().__init__()
        import timm
        self.body = timm.create_model(name, num_classes=100)

    def forward(self, images, targets):
        return F.cross_entropy(self.body(images), targets)


def whole(*shape):
    return torch.zeros(shape, dtype=torch.int64)


def ids(B, S):
    return {"ids": whole(B, S), "targets": whole(B, S)}


def pictures(B, S):
    return {"images": torch.zeros(B, 3, 224, 224), "targets": whole(B)}


TIMM = ("vit_tiny_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224", "mixer_s32_224", "gmixer_12_224", "gmlp_ti16_224", "cait_xxs24_224")

# name: (model, batch)
MODELS = {
    "nanogpt": (NanoGpt, ids),
    "own-llama": (OwnLlama, ids),
    "mixer": (Mixer, lambda B, S: {"images": torch.zeros(B, 3, 64, 64), "targets": whole(B)}),
    "graph-transformer": (GraphTransformer, lambda B, S: {"nodes": torch.zeros(B, S, 32), "distances": whole(B, S, S), "targets": torch.zeros(B, S, 1)}),
    "graph-convolution": (GraphConvolution, lambda B, S: {"nodes": torch.zeros(B, S, 64), "adjacency": torch.zeros(B, S, S), "targets": whole(B, S)}),
    "spectrogram": (SpectrogramTransformer, lambda B, S: {"spectrogram": torch.zeros(B, 1, 128, 256), "targets": whole(B)}),
    "diffusion-transformer": (DiffusionTransformer, lambda B, S: {"latents": torch.zeros(B, S, 16), "times": whole(B), "noise": torch.zeros(B, S, 16)}),
    "perceiver": (Perceiver, lambda B, S: {"points": torch.zeros(B, S, 48), "targets": whole(B)}),
    "gmlp": (GatedMlp, lambda B, S: {"ids": whole(B, 128), "targets": whole(B, 128)}),
    "recommender": (Recommender, lambda B, S: {"dense": torch.zeros(B, 13), "categories": whole(B, 8), "targets": torch.zeros(B, 1)}),
    "forecaster": (Forecaster, lambda B, S: {"series": torch.zeros(B, S, 16), "targets": torch.zeros(B, S, 16)}),
    "value-network": (ValueNetwork, lambda B, S: {"states": torch.zeros(B, S, 64), "actions": whole(B, S), "returns": torch.zeros(B, S, 1)}),
    **{name: (lambda name=name: Timm(name), pictures) for name in TIMM},
}
