#!/usr/bin/env python3
"""crossed_jobs.py MODELS.json KIND AMOUNT SEED > jobs.jsonl    strategies and options that earlier draws seldom put together ("cross…")

KIND: tpfsdp (torchtitan's tensor-parallel plan, with FSDP 2 outside), pp (pipelines with adapters, autocast, FSDP 2, DDP, tensor parallelism), zero
(offloads, thresholds, sub-groups, adapters, accumulation), fsdp (HSDP, prefetches, offload, kinds of checkpoints), titan, mega (Megatron-Core), mixed
(label smoothing, losses in chunks, NEFTune, packed rows, biases, frozen pieces, evaluation under every kind of data parallelism)."""
import json
import random
import sys
rows = json.load(open(sys.argv[1]))
M = {k: r for r in rows for k in [*r.get('same_arch_ids', []), *r.get('aliases', []), r['id']]}
kind, amount, seed = (sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
d = random.Random(f'combos {kind} {seed}')
C = d.choice


def plain(layers=None, tied=None, families=('llama', 'mistral', 'qwen2', 'qwen3')):
    t = C(families)
    name = {'llama': 'meta-llama/Llama-3.1-8B', 'mistral': 'mistralai/Mistral-7B-v0.1', 'qwen2': 'Qwen/Qwen2.5-1.5B', 'qwen3': 'Qwen/Qwen3-0.6B'}[t]
    c = dict(M[name]['config'])
    h = C((1024, 1536, 2048))
    c.update(hidden_size=h, num_attention_heads=h // 64, num_key_value_heads=C((4, 8, h // 64)), intermediate_size=C((2, 3, 4)) * h,
            num_hidden_layers=layers or C((3, 4, 5, 8)), vocab_size=C((4096, 32000, 128256)), head_dim=64)
    if h // 64 % c['num_key_value_heads']:
        c['num_key_value_heads'] = h // 64
    c['tie_word_embeddings'] = C((True, False)) if tied is None else tied
    for k in ('layer_types', 'pad_token_id', 'bos_token_id', 'eos_token_id', 'torch_dtype', 'rope_scaling'):
        c.pop(k, None)
    c['pad_token_id'] = 0
    return c


def base(**m):
    j = {'micro_batch': C((1, 2, 3)), 'seq_len': C((512, 768, 1024, 2048)), 'precision': 'bf16', 'method': 'full',
            'optimizer': C(('adamw_torch_fused', 'adamw_torch')), 'grad_accum': C((1, 1, 1, 2)), 'gradient_checkpointing': 'none',
            'attention': 'sdpa', 'arch': C((80, 80, 90))}
    j.update(m)
    return j


def ck(j, kinds=('none', 'full', 're')):
    k = C(kinds)
    if k == 'none':
        return
    j['gradient_checkpointing'] = {'full': 'full', 're': 'full', 'host': 'offload', 'every': {'every': 2}, 'core': {'selective': ['core_attn']}}[k]
    j['use_reentrant'] = k == 're'


def lora(j, dtype=None, kinds=('lora', 'lora', 'qlora'), targets=True):
    j['method'] = C(kinds)
    j['lora'] = {'r': C((8, 16, 64)), 'alpha': 32, 'dropout': C((0.0, 0.0, 0.05)), 'target_modules': C(('all-linear', ['q_proj', 'v_proj'],
            ['q_proj', 'k_proj', 'v_proj', 'o_proj'])) if targets else 'all-linear', 'adapter_dtype': dtype or C(('bf16', 'fp32'))}
    if j['method'] == 'qlora':
        j.update(quant_storage='bf16', kbit_prepare=False)


def tpfsdp():
    j = base(config=plain(tied=False))
    n = C((1, 2, 4))
    t = C((2, 4))
    p = {'strategy': 'tp', 'tensor': t, 'sequence_parallel': C((True, True, False)) if n > 1 else True, 'loss_parallel': C((True, False))}
    if n > 1:
        p.update(data=n, reshard_after_forward=C((True, False)), groups=C(('root', 'separate')))
        if C((1, 1, 0)):
            j['precision'] = 'fp32'
            p.update(param_dtype='bf16', reduce_dtype=C(('fp32', 'bf16')))
        if j['grad_accum'] > 1:
            p['no_sync'] = C((True, False))
    else:
        j['precision'] = C(('bf16', 'fp32'))
    ck(j, ('none', 'full'))
    j['parallelism'] = p
    return j


def pp():
    s = C((2, 2, 4))
    sched = C(('1f1b', '1f1b', 'gpipe', 'interleaved', 'zero_bubble', 'zbv'))
    v = 2 if sched in ('interleaved', 'zero_bubble', 'zbv') else 1
    j = base(config=plain(layers=max(8, s * v) if C((0, 1)) else s * v * C((1, 2)), tied=False), grad_accum=1, seq_len=C((512, 1024)))
    p = {'strategy': 'pp', 'pipeline': s, 'schedule': sched, 'num_micro_batches': s * C((1, 2, 2)), 'virtual_pipeline': v, 'rank': C((0, s - 1,
            C(range(s))))}
    cut = sched in ('zero_bubble', 'zbv')
    how = C(('whole', 'lora', 'lora', 'amp', 'fsdp', 'fsdp', 'fsdplora', 'ddp', 'tp', 'tpfsdp', 'fsdpamp')) if not cut else C(('whole', 'lora',
            'amp', 'ddp'))
    if 'lora' in how:
        lora(j, 'bf16' if 'fsdp' in how else None, ('lora',) if cut else ('lora', 'qlora'))
        j['precision'] = C(('bf16', 'bf16_amp')) if 'fsdp' not in how else 'bf16'
    if 'amp' in how:
        j['precision'] = 'amp_bf16'
    if 'fsdp' in how:
        p.update(data=C((2, 4)), reshard_after_forward=C((True, False)), groups=C(('root', 'separate')))
        if how in ('fsdp', 'tpfsdp') and C((1, 1, 0)):
            j['precision'] = 'fp32'
            p.update(param_dtype='bf16', reduce_dtype=C(('fp32', 'bf16')))
        if 'lora' in how:
            p['groups'] = 'root'
        if 'amp' in how:
            p.update(param_dtype='bf16', reduce_dtype='bf16')
    if how == 'ddp':
        p.update(data=2, ddp=True, gradient_as_bucket_view=C((True, False)))
    if how.startswith('tp'):
        p.update(tensor=2, sequence_parallel=True if how == 'tp' else C((True, False)), loss_parallel=C((True, False)))
    ck(j, ('none',) if cut else ('none', 'full', 're') if not how.startswith('tp') else ('none', 'full'))
    j['parallelism'] = p
    return j


def zero():
    st = C((1, 2, 3, 3))
    off = C(('none', 'optimizer', 'all' if st == 3 else 'optimizer', 'parameters' if st == 3 else 'none'))
    j = base(config=plain(), precision=C(('bf16', 'bf16', 'fp16')), grad_accum=C((1, 2, 3)), padding=C((False, False, True)))
    p = {'strategy': f'zero{st}', 'data': C((2, 4, 8)), 'hf_auto': C((True, False))}
    if off != 'none':
        p['offload'] = off
    z = {}
    if st == 3 and C((0, 1)):
        z.update({C(('stage3_prefetch_bucket_size', 'stage3_param_persistence_threshold')): C((0, 1000, 10 ** 6, 5 * 10 ** 7))})
        if C((0, 1)):
            z['stage3_max_live_parameters'] = z['stage3_max_reuse_distance'] = C((10 ** 7, 5 * 10 ** 7, 10 ** 8))
    if C((0, 0, 1)):
        z['sub_group_size'] = C((10 ** 6, 10 ** 7, 5 * 10 ** 7)) if st == 3 else 10 ** 9
    if C((0, 0, 1)):
        z['overlap_comm'] = False
    if C((0, 0, 1)) and (not p['hf_auto']):
        z['reduce_bucket_size'] = C((10 ** 6, 2 * 10 ** 7, 10 ** 8))
    if st < 3 and C((0, 0, 1)):
        z['contiguous_gradients'] = False
    if z:
        p['zero'] = z
    if C((0, 1)):
        lora(j, j['precision'], ('lora', 'qlora') if st < 3 or True else ('lora',))
    ck(j, ('none', 'full', 're', 'host'))
    j['parallelism'] = p
    j['optimizer'] = C(('adamw_torch_fused', 'adamw_torch', 'adamw_torch_fused', 'adamw_8bit' if off == 'none' else 'adamw_torch_fused'))
    if C((0, 0, 0, 1)):
        j['evaluation'] = {'micro_batch': j['micro_batch'] * C((1, 4, 8)), 'batches': 2, **C(({}, {'keep_logits': True}))}
    if st == 3 and j.get('evaluation'):
        j['steps'] = 4
        j['evaluation']['from_step'] = 2
    return j


def fsdp():
    v = C((1, 2, 2))
    j = base(config=plain(), padding=C((False, False, True)), grad_accum=C((1, 2)))
    p = {'strategy': f'fsdp{v}', 'data': C((2, 4))}
    if C((0, 1)):
        p['replicate'] = C((2, 4))
    m = C(('full', 'full', 'lora'))
    if m == 'full':
        j['precision'] = C(('fp32', 'bf16', 'amp_bf16'))
        if j['precision'] == 'fp32':
            p.update(param_dtype='bf16', reduce_dtype=C(('fp32', 'bf16')))
        if j['precision'] == 'amp_bf16':
            p.update(param_dtype='bf16', reduce_dtype='bf16')
    else:
        lora(j, 'bf16', ('lora', 'qlora'))
    if v == 2:
        p['reshard_after_forward'] = C((True, False, 2 if p['data'] == 4 and 'replicate' not in p else True))
        if m == 'full' and C((0, 1)):
            p['groups'] = 'separate'
        if C((0, 0, 1)):
            p['offload'] = True
    else:
        p.update(sharding='hybrid_shard' if 'replicate' in p else C(('full_shard', 'shard_grad_op')), use_orig_params=C((True, False)),
                forward_prefetch=C((False, True)), backward_prefetch=C(('backward_pre', 'backward_post', None)))
        if m == 'lora':
            p.update(wrap='peft', use_orig_params=False)
        if C((0, 0, 1)) and 'replicate' not in p:
            p['offload'] = True
    if j['grad_accum'] > 1:
        p['no_sync'] = C((True, False))
    ck(j, ('none', 'full', 're', 'host', 'every', 'core'))
    if C((0, 0, 0, 1)):
        j['evaluation'] = {'micro_batch': j['micro_batch'] * C((1, 4, 8)), 'batches': 2, **C(({}, {'keep_logits': True}))}
    j['parallelism'] = p
    return j


def titan():
    moe = C((1, 1, 0))
    c = dict(M['Qwen/Qwen3-30B-A3B' if moe else 'Qwen/Qwen3-0.6B']['config'])
    c.update(num_hidden_layers=C((2, 3, 4)), vocab_size=C((8192, 32000, 151936)), tie_word_embeddings=False)
    if moe:
        c.update(num_experts=C((8, 16, 32)), num_experts_per_tok=C((2, 4, 8)), moe_intermediate_size=C((512, 768, 1024)), hidden_size=C((1024, 2048)))
    c.pop('layer_types', None)
    j = base(config=c, loss='hf_titan', precision=C(('fp32', 'bf16')), seq_len=C((512, 1024, 2048)))
    n = C((2, 4, 8))
    p = {'strategy': 'titan', 'data': n, 'param_dtype': 'bf16', 'reduce_dtype': C(('fp32', 'bf16')), 'reshard_after_forward': C((True, False))}
    if moe:
        p['expert'] = C([e for e in (1, 2, 4, 8) if e <= n])
    j['gradient_checkpointing'] = C(('none', 'full', {'selective': 'op'}, {'every': 2}))
    j['grad_accum'] = 1
    j['parallelism'] = p
    return j


def mega():
    which = C(('llama', 'llama', 'qwen2', 'qwen3', 'gpt2', 'mixtral', 'qwen3moe', 'moonlight', 'qwen2moe', 'glm'))
    name = {'llama': 'meta-llama/Llama-3.1-8B', 'qwen2': 'Qwen/Qwen2.5-1.5B', 'qwen3': 'Qwen/Qwen3-0.6B', 'gpt2': 'openai-community/gpt2-medium',
            'mixtral': 'mistralai/Mixtral-8x7B-v0.1', 'qwen3moe': 'Qwen/Qwen3-30B-A3B', 'moonlight': 'moonshotai/Moonlight-16B-A3B',
            'qwen2moe': 'Qwen/Qwen1.5-MoE-A2.7B', 'glm': 'zai-org/GLM-4.5-Air'}[which]
    c = dict(M[name]['config'])
    moe = which in ('mixtral', 'qwen3moe', 'moonlight', 'qwen2moe', 'glm')
    for k in ('layer_types', 'mlp_only_layers'):
        c.pop(k, None)
    tp = C((1, 2, 4) if not moe else (1, 1))
    ppn = C((1, 1, 2, 4))
    chunks = C((1, 2)) if ppn > 1 and (not moe) else 1
    layers = ppn * chunks * C((1, 2)) if ppn > 1 else C((2, 3, 4))
    layers = max(layers, 2)
    if which in ('moonlight', 'glm') and layers < 2 * ppn:
        layers = 2 * ppn
    c['n_layer' if 'n_layer' in c else 'num_hidden_layers'] = layers
    if which == 'llama':
        c.update(hidden_size=2048, intermediate_size=C((5504, 8192)), num_attention_heads=32, num_key_value_heads=8, head_dim=64,
                vocab_size=C((32000, 128256)), tie_word_embeddings=C((False, False, True)))
    if which == 'mixtral':
        c.update(hidden_size=2048, intermediate_size=4096, num_attention_heads=16)
    if which == 'moonlight':
        c.update(n_routed_experts=8, n_group=1, topk_group=1)
    if which == 'glm':
        c.update(hidden_size=2048, intermediate_size=4096, num_attention_heads=16, num_key_value_heads=4, n_routed_experts=8, use_qk_norm=C((True,
                False)))
    if which in ('qwen3moe', 'qwen2moe'):
        c.update(num_experts=C((8, 16)))
    data = C((1, 2, 4)) if not moe else C((2, 4, 8))
    par = {'strategy': 'megatron', 'data': data}
    if tp > 1:
        par.update(tensor=tp)
    if tp > 1 and which == 'gpt2':
        par['sequence_parallel'] = C((True, False))
    if moe:
        par['expert'] = C([e for e in (1, 2, 4, 8) if data % e == 0])
    if moe and which in ('mixtral', 'qwen3moe') and C((0, 0, 1)) and (data // par['expert'] >= 2):
        par['expert_tensor'] = 2
    if data > 1:
        par['zero_stage'] = C((0, 1, 1))
    if par.get('zero_stage') == 0:
        par.pop('zero_stage')
    if ppn > 1:
        par.update(pipeline=ppn, num_micro_batches=ppn * C((1, 2)), rank=C(range(ppn)))
    else:
        par['num_micro_batches'] = C((1, 1, 2, 3))
    if chunks > 1:
        par['virtual_pipeline'] = 2
    if C((0, 0, 1)):
        par['loss'] = 'native'
    if C((0, 0, 1)):
        par['fuse_gradients'] = False
    j = {'config': c, 'precision': C(('megatron_bf16', 'megatron_bf16', 'megatron_fp16')), 'micro_batch': C((1, 2, 4)), 'seq_len': C((512, 1024,
            2048)), 'gradient_checkpointing': C(('none', 'full', {'selective': ['core_attn']})), 'parallelism': par}
    t = C((None, None, None, 'dpo', 'grpo', 'lora', 'lora'))
    if t == 'lora' and which not in ('moonlight', 'qwen2moe', 'glm'):
        j.update(method='lora', lora={'r': C((8, 16, 64)), 'alpha': 32, 'dropout': C((0.0, 0.1)), 'target_modules': C((['linear_qkv',
                'linear_proj', 'linear_fc1', 'linear_fc2'], ['linear_qkv', 'linear_proj']))})
    elif t == 'grpo' and chunks == 1 or (t == 'dpo' and ppn == 1):
        par['task'] = t
        par.pop('loss', None) if t == 'grpo' else None
        if ppn == 1:
            par.pop('num_micro_batches', None)
    return j


def mixed():
    v = C(('fsdp1', 'fsdp2', 'acc', 'acc', 'ddp', 'zero2', 'zero1'))
    j = base(config=plain(layers=3, families=('llama', 'qwen2', 'qwen3', 'mistral')), seq_len=C((512, 768)), arch=80, grad_accum=C((1, 2)))
    p = {'data': C((2, 4))}
    m = C(('full', 'lora', 'lora', 'qlora'))
    if v == 'acc':
        mixed = C((True, True, False))
        p.update(strategy='fsdp2', accelerate='1.15.0', mixed_precision='bf16' if mixed else 'no', reshard_after_forward=C((True, False)))
        if mixed:
            p.update(param_dtype='bf16', reduce_dtype='bf16')
        j['precision'] = 'fp32' if mixed and m == 'full' else 'bf16'
        if m != 'full':
            lora(j, 'fp32' if mixed else 'bf16', (m,))
        if p['mixed_precision'] == 'bf16' and C((0, 0, 1)):
            p['offload'] = True
    elif v.startswith('fsdp'):
        p['strategy'] = v
        if m == 'full':
            j['precision'] = C(('fp32', 'bf16'))
            if j['precision'] == 'fp32':
                p.update(param_dtype='bf16', reduce_dtype=C(('fp32', 'bf16')))
            if v == 'fsdp1':
                p['use_orig_params'] = C((True, False))
        else:
            lora(j, 'bf16', (m,))
            if v == 'fsdp1':
                p.update(wrap='peft', use_orig_params=False)
    elif v == 'ddp':
        p.update(strategy='ddp', gradient_as_bucket_view=C((True, False)))
        j['precision'] = C(('bf16', 'amp_bf16', 'fp32')) if m == 'full' else C(('bf16', 'bf16_amp'))
        if m != 'full':
            lora(j, None, (m,))
            j['kbit_prepare'] = C((True, False))
            j.pop('quant_storage', None)
    else:
        p.update(strategy=v, hf_auto=C((True, False)))
        if m != 'full':
            lora(j, 'bf16', (m,))
    if m != 'full':
        x = C(('', '', 'dora', 'saved', 'layers', 'bias'))
        if x == 'dora' and v != 'fsdp1':
            j['lora']['use_dora'] = True
        if x == 'saved' and v in ('ddp', 'zero1', 'zero2'):
            j['lora']['modules_to_save'] = ['lm_head']
        if x == 'layers':
            j['lora']['layers_to_transform'] = [0, 2]
        if x == 'bias':
            j['lora']['bias'] = C(('all', 'lora_only'))
    elif C((0, 0, 1)):
        j['freeze'] = [C(('embed', 'layers\\.0\\.', 'norm', 'lm_head', 'mlp'))]
    for what in d.sample(['smooth', 'chunked', 'neftune', 'packing', 'attn', 'keep', 'outputs', 'liger', 'padding', 'actoff', 'eval',
            'evallogits'], 3):
        if what == 'smooth':
            j['label_smoothing'] = 0.1
        if what == 'chunked' and 'label_smoothing' not in j:
            j['loss'] = 'chunked'
        if what == 'neftune':
            j['neftune'] = 5
        if what == 'packing':
            j['packing'] = True
            j['attention'] = 'flash_attention_2'
            j['padding'] = False
        if what == 'attn' and j['precision'] != 'fp32':
            j['attention'] = C(('eager', 'flash_attention_2'))
        if what == 'keep':
            j['keep_outputs'] = True
        if what == 'outputs':
            j['outputs_fp32'] = False if 'amp' in j['precision'] else True
        if what == 'liger':
            j['liger'] = d.sample(['rms_norm', 'swiglu', 'rope'], 2)
        if what == 'padding' and (not j.get('packing')):
            j['padding'] = True
        if what == 'actoff':
            j['activation_offloading'] = True
        if what == 'eval':
            j['evaluation'] = {'micro_batch': j['micro_batch'] * C((1, 4)), 'batches': 2}
        if what == 'evallogits':
            j['evaluation'] = {'micro_batch': j['micro_batch'] * C((2, 8)), 'batches': 2, 'keep_logits': True}
    ck(j, ('none', 'full', 're'))
    j['parallelism'] = p
    if v in ('ddp', 'zero2'):
        j['optimizer'] = C(('adamw_torch_fused', 'adamw_8bit', 'lion_8bit' if v == 'ddp' else 'adamw_torch', 'adafactor' if v == 'ddp' else 'sgd'))
    return j


for i in range(amount):
    j = {'tpfsdp': tpfsdp, 'pp': pp, 'zero': zero, 'fsdp': fsdp, 'titan': titan, 'mega': mega, 'mixed': mixed}[kind]()
    j['id'] = f'cross{seed}-{kind}-{i:03d}'
    print(json.dumps(j))
