// What the engine says, in Chinese: of each pair the engine's own English, {1} and {2} being whatever stands there, and the same in Chinese. What
// stands there is looked up in turn. tests/web/said.test.mjs holds the English against what the engine says.
export default [
  // Advice: what to change.
  ["LoRA adapters instead of all weights", "用 LoRA 适配器代替训练全部权重"],
  ["QLoRA: adapters beside 4-bit weights", "QLoRA：4 比特权重旁的适配器"],
  ["Frozen weights in 4 bits (QLoRA)", "冻结的权重用 4 比特（QLoRA）"],
  ["Frozen weights in bf16", "冻结的权重用 bf16"],
  ["Latents and embeddings made before", "潜变量和嵌入事先算好"],
  [
    "faster: each sample is encoded once, before training; kept on disk or in host memory",
    "更快：每个样本在训练前只编码一次，存在磁盘或主机内存中",
  ],
  ["the same latents and embeddings, if nothing is drawn anew in each epoch", "若每轮不重新随机，潜变量和嵌入相同"],
  ["none without random crops and captions that are left out", "没有随机裁剪和随机丢弃标题时无"],
  ["Adapters in bf16", "适配器用 bf16"],
  ["Frozen weights and adapters in bf16, no autocast", "冻结的权重和适配器都用 bf16，不用 autocast"],
  ["Frozen weights in bf16, no autocast", "冻结的权重用 bf16，不用 autocast"],
  ["Gradients in bf16", "梯度用 bf16"],
  ["Weights and optimizer states in bf16, no master copy", "权重和优化器状态用 bf16，不留主副本"],
  ["bf16 autocast", "bf16 autocast"],
  ["Weights and optimizer states in bf16, under autocast", "权重和优化器状态用 bf16，在 autocast 之下"],
  ["Everything in bf16, no autocast", "全部用 bf16，不用 autocast"],
  ["No autocast: everything in bf16", "不用 autocast：全部用 bf16"],
  ["Sequences of {1} tokens", "序列长度 {1} 个 token"],
  ["8-bit AdamW", "8 比特 AdamW"],
  ["8-bit AdamW in managed memory (paged)", "托管内存中的 8 比特 AdamW（分页）"],
  ["Fused AdamW", "融合的 AdamW"],
  ["8-bit Lion", "8 比特 Lion"],
  ["8-bit Lion in managed memory (paged)", "托管内存中的 8 比特 Lion（分页）"],
  ["Checkpoint every layer", "每层都做检查点"],
  ["Checkpoint every second layer", "每隔一层做检查点"],
  ["Checkpoint every layer, inputs in host memory", "每层都做检查点，输入放在主机内存"],
  ["Micro-batches of {1}, {2} per step", "微批次为 {1}，每步 {2} 个"],
  ["Cross-entropy in chunks", "分块计算交叉熵"],
  ["Fused linear cross-entropy (Liger)", "融合的线性交叉熵（Liger）"],
  ["Adapters of rank {1}", "秩为 {1} 的适配器"],
  ["Sequence parallel beside tensor parallelism", "张量并行再加序列并行"],
  ["Tensor parallelism over {1} GPUs of a host", "在一台主机的 {1} 块 GPU 上做张量并行"],
  ["transformers' tp_plan over {1} GPUs of a host", "在一台主机的 {1} 块 GPU 上用 transformers 的 tp_plan"],
  ["A pipeline of {1} GPUs", "{1} 块 GPU 的流水线"],
  ["Experts divided among {1} GPUs", "专家分到 {1} 块 GPU 上"],
  ["Context parallelism over {1} GPUs of a host", "在一台主机的 {1} 块 GPU 上做上下文并行"],
  ["Optimizer states in host memory (ZeRO-Offload)", "优化器状态放在主机内存（ZeRO-Offload）"],
  ["Weights and optimizer states in host memory (ZeRO-Infinity)", "权重和优化器状态放在主机内存（ZeRO-Infinity）"],
  [
    "Weights, gradients and states in host memory (CPUOffloadPolicy)",
    "权重、梯度和状态放在主机内存（CPUOffloadPolicy）",
  ],
  ["Expandable segments", "可扩展的内存段"],
  ["1 card, as it is", "1 块卡，不做改动"],
  ["as it is", "不做改动"],
  ["{1} cards, {2}, every layer checkpointed", "{1} 块卡，{2}，每层都做检查点"],
  ["{1} cards, {2}", "{1} 块卡，{2}"],
  ["divided as stated", "按所述方式划分"],
  ["{1}, every layer checkpointed", "{1}，每层都做检查点"],

  // Advice: what it costs.
  ["none", "无"],
  ["equal", "相同"],
  ["faster", "更快"],
  ["equal or faster", "相同或更快"],
  ["equal or slower", "相同或更慢"],
  ["the same", "相同"],
  ["the same up to rounding", "除舍入外相同"],
  ["faster: one kernel instead of many", "更快：一个内核代替许多个"],
  ["faster or equal; needs the flash-attn package", "更快或相同；需要 flash-attn 软件包"],
  ["equal, within a few per cent", "相同，相差几个百分点以内"],
  [
    "equal or faster; needs the liger-kernel package and a model it knows",
    "相同或更快；需要 liger-kernel 软件包及其支持的模型",
  ],
  ["half of the layers run forward twice: about a sixth more work", "一半的层要前向两次：约多六分之一的计算"],
  ["every layer runs forward twice: 20 to 40 % slower", "每层都要前向两次：慢 20 % 至 40 %"],
  [
    "as checkpointing every layer, and each layer's input travels to host memory and back",
    "同每层检查点，另外每层的输入要在主机内存往返",
  ],
  ["slower where the states do not stay on the card: they are paged", "状态不能留在卡上时更慢：它们会被换页"],
  ["slower than LoRA: weights are dequantised in each pass", "比 LoRA 慢：每次都要反量化权重"],
  ["slower: weights are dequantised in each pass", "更慢：每次都要反量化权重"],
  ["smaller kernels, the same samples per optimizer step: slower", "内核更小，每步样本数不变：更慢"],
  ["faster: a process for each GPU, gradients reduced during backward", "更快：每块 GPU 一个进程，梯度在反向中归约"],
  ["equal: as much is sent as without", "相同：通信量不变"],
  ["equal, but with gradient accumulation each micro-step reduces", "相同，但梯度累积时每个微步都要归约"],
  [
    "half as much again is sent: weights are gathered in forward and in backward",
    "通信量多一半：前向和反向都要收集权重",
  ],
  ["two collectives in each layer wait for one another; wants NVLink", "每层有两次互相等待的集合通信；最好有 NVLink"],
  ["keys and values go round the GPUs in each layer", "每层的键和值要在各 GPU 间传递一圈"],
  ["tokens are sent to their experts and back in each layer", "每层的 token 要送到专家处再送回"],
  [
    "GPUs wait at both ends of a step: (stages - 1) / micro-batches of its time",
    "GPU 在一步的两端等待：占（阶段数 - 1）/ 微批次数的时间",
  ],
  [
    "slower: the step runs on the processor, gradients and weights cross PCIe",
    "更慢：优化器步在处理器上运行，梯度和权重要经过 PCIe",
  ],
  [
    "slower: as above, and weights cross PCIe in forward and in backward",
    "更慢：同上，且前向和反向中权重都要经过 PCIe",
  ],
  ["each card trains on samples of its own; weights travel between them", "每块卡训练各自的样本；权重在卡间传输"],
  [
    "as many times the samples in a step as there are cards, unless gradient accumulation is divided",
    "每步样本数乘以卡数，除非相应减少梯度累积",
  ],
  ["optimizer states are kept in 8 bits, block by block", "优化器状态按块以 8 比特保存"],
  ["equal to 32-bit states on the tasks that its authors tried", "在其作者试过的任务上与 32 比特状态相当"],
  ["another algorithm: a factored second moment", "另一种算法：分解的二阶矩"],
  ["close to Adam after its learning rate is tuned anew", "重新调学习率后与 Adam 接近"],
  ["another algorithm: the sign of one moment, in 8 bits", "另一种算法：一个矩的符号，8 比特"],
  ["needs a learning rate 3 to 10 times smaller and more weight decay", "需要小 3 到 10 倍的学习率和更大的权重衰减"],
  ["matrix products in bf16, weights in fp32", "矩阵乘法用 bf16，权重用 fp32"],
  ["equal to fp32 in practice", "实践中与 fp32 相当"],
  ["weights and optimizer states in bf16: small updates are rounded away", "权重和优化器状态用 bf16：小的更新会被舍掉"],
  ["can converge worse, the more the smaller the learning rate", "收敛可能变差，学习率越小越明显"],
  [
    "as bf16 weights, and norms, softmax and residuals in bf16 where the model does not say otherwise",
    "同 bf16 权重，且在模型没有另行规定处 norm、softmax 和残差也用 bf16",
  ],
  ["norms, softmax and residuals in bf16 as well", "norm、softmax 和残差也用 bf16"],
  ["frozen weights are rounded to bf16; adapters stay in fp32", "冻结的权重舍入为 bf16；适配器仍为 fp32"],
  ["none seen: most checkpoints are published in bf16", "未见影响：多数检查点以 bf16 发布"],
  ["adapters and their optimizer states in bf16", "适配器及其优化器状态用 bf16"],
  ["can converge worse; PEFT keeps adapters in fp32 for this reason", "收敛可能变差；PEFT 因此让适配器保持 fp32"],
  ["gradients are accumulated in bf16 instead of fp32", "梯度以 bf16 而非 fp32 累积"],
  ["small with few micro-batches per step", "每步微批次少时影响小"],
  ["only low-rank adapters are trained", "只训练低秩适配器"],
  ["learns less and forgets less than full fine-tuning", "比全量微调学得少，也忘得少"],
  ["only low-rank adapters are trained, beside weights in 4 bits", "只训练低秩适配器，权重为 4 比特"],
  ["equal to 16-bit LoRA on the tasks that its authors tried", "在其作者试过的任务上与 16 比特 LoRA 相当"],
  ["frozen weights in 4 bits", "冻结的权重用 4 比特"],
  [
    "the same up to rounding (transformers 4.46 and later weigh micro-batches by their tokens)",
    "除舍入外相同（transformers 4.46 起按 token 数为微批次加权）",
  ],
  ["samples are cut, or split, at the shorter length", "样本在更短的长度处截断或切开"],
  ["what reaches further back is not learned", "学不到更远的依赖"],
  ["adapters of a lower rank", "适配器的秩更低"],
  [
    "small on the tasks that its authors tried; less room for large data sets",
    "在其作者试过的任务上影响小；对大数据集容量更少",
  ],

  // Cards.
  ["The memory of this card is not known.", "不知道这块卡的显存。"],
  [
    "The CUDA context and the overheads that you state leave nothing of this card.",
    "CUDA 上下文和您给出的开销占满了这块卡。",
  ],
  [
    "The memory that you state is taken as what torch sees; the CUDA context is estimated.",
    "您给出的显存按 torch 所见计算；CUDA 上下文为估计值。",
  ],
  [
    "What torch sees of this card was not measured; it is estimated from its size.",
    "没有测量过 torch 在这块卡上能看到多少显存；按其容量估计。",
  ],
  [
    "The catalog has no card of the name {1}. Or state its memory: {2}.",
    "目录中没有名为 {1} 的显卡。也可以写出显存：{2}。",
  ],
  [
    "The catalog has no card of the name {1}. Near it is {2}. Or state its memory: {3}.",
    "目录中没有名为 {1} 的显卡，相近的有 {2}。也可以写出显存：{3}。",
  ],

  // Notes: what was chosen or assumed.
  [
    "Precision is left to the framework: {1} weights, {2}, {3} gradients, {4} optimizer states ({5}), as {6}.",
    "精度由框架决定：权重 {1}，{2}，梯度 {3}，优化器状态 {4}（{5}），依据：{6}。",
  ],
  ["no autocast", "不用 autocast"],
  ["fp16 autocast", "fp16 autocast"],
  ["{1} loads the checkpoint's dtype, under {2}", "{1} 按检查点的 dtype 加载，且 {2}"],
  ["{1} loads the checkpoint's dtype", "{1} 按检查点的 dtype 加载"],
  ["dtype is stated", "已写明 dtype"],
  [
    "LLaMA-Factory's own loop loads the checkpoint's dtype; under FSDP 2 it gathers {1}",
    "LLaMA-Factory 自己的训练循环按检查点的 dtype 加载；在 FSDP 2 下以 {1} 聚集",
  ],
  [
    "LLaMA-Factory's own loop loads the checkpoint's dtype; without FSDP 2 nothing autocasts",
    "LLaMA-Factory 自己的训练循环按检查点的 dtype 加载；没有 FSDP 2 就没有 autocast",
  ],
  [
    "LLaMA-Factory's own loop trains fp32 weights; under FSDP 2 it gathers {1}",
    "LLaMA-Factory 自己的训练循环训练 fp32 权重；在 FSDP 2 下以 {1} 聚集",
  ],
  [
    "LLaMA-Factory's own loop trains fp32 weights; without FSDP 2 nothing autocasts",
    "LLaMA-Factory 自己的训练循环训练 fp32 权重；没有 FSDP 2 就没有 autocast",
  ],
  ["the loss scaling of fp16 refuses 16-bit gradients", "fp16 的损失缩放不接受 16 比特梯度"],
  ["DeepSpeed's engine runs the model in 16 bits", "DeepSpeed 引擎以 16 比特运行模型"],
  [
    "Megatron-LM trains in bf16 with fp32 gradients and master weights",
    "Megatron-LM 以 bf16 训练，梯度和主权重为 fp32",
  ],
  [
    "No record covers {1}. The figure follows the sources read, and its range is wider.",
    "没有记录覆盖：{1}。数值依据所读的源码，范围更宽。",
  ],
  [
    "Not modelled itself: {1}, answered by {2}. The figure is that one's, and its range is wide enough for what was published of such jobs.",
    "未单独建模：{1}，以 {2} 代答。数值是后者的，范围足以包含此类任务已发布的测量。",
  ],
  ["what transformers after {1} does in {2}", "{1} 之后的 transformers 在 {2} 中的做法"],
  ["{1}'s code", "{1} 的代码"],
  ["{1}'s step and its own code of the model", "{1} 的训练步及其自有的模型代码"],
  ["transformers' code in a loop of one's own", "自写循环中 transformers 的代码"],
  ["The date stands for release {1} as far as memory is concerned.", "就显存而言，该日期等同于版本 {1}。"],
  [
    "Releases up to {1} have been studied; this one is taken to behave the same.",
    "已研究到版本 {1}；假定此版本行为相同。",
  ],
  [
    "Layers that keep a state are taken to run on the fused kernels of fla, mamba_ssm and causal_conv1d; without these, {1} says what they need.",
    "假定带状态的层使用 fla、mamba_ssm 和 causal_conv1d 的融合内核；若没有这些，{1} 给出所需显存。",
  ],
  [
    "Layers that keep a state are taken to run on torch alone; the fused kernels need far less.",
    "假定带状态的层只用 torch 运行；融合内核所需少得多。",
  ],
  [
    "The experts stay in 16 bits: transformers 5 keeps those of a layer in one parameter, and bitsandbytes packs linear layers only.",
    "专家仍为 16 比特：transformers 5 把一层的专家放在一个参数里，而 bitsandbytes 只量化线性层。",
  ],
  [
    "LoRA's layers are left to the framework: Axolotl puts functions of its own in their place (lora_mlp_kernel, lora_qkv_kernel, lora_o_kernel) where nothing is said.",
    "LoRA 层由框架决定：未写明时 Axolotl 用自己的函数代替（lora_mlp_kernel、lora_qkv_kernel、lora_o_kernel）。",
  ],
  [
    "Axolotl has no such kernel for this model and leaves its attention as it is.",
    "Axolotl 没有适用于该模型的此类内核，注意力保持原样。",
  ],
  [
    "lora_kernels are functions for LoRA's layers: set method to lora or qlora, or leave them out.",
    "lora_kernels 是用于 LoRA 层的函数：请把 method 设为 lora 或 qlora，或不写此项。",
  ],
  [
    "Axolotl's LoRA kernels are not compatible with 8-bit weights: it raises a ValueError.",
    "Axolotl 的 LoRA 内核与 8 比特权重不兼容：它会抛出 ValueError。",
  ],
  [
    "Axolotl's LoRA kernels are not compatible with FSDP 1: it raises a ValueError. Use FSDP 2.",
    "Axolotl 的 LoRA 内核与 FSDP 1 不兼容：它会抛出 ValueError。请用 FSDP 2。",
  ],
  [
    "Axolotl cannot put its LoRA kernels into the attention of this model and stops: set lora_qkv_kernel and lora_o_kernel to false. The figure is that of PEFT's layers.",
    "Axolotl 无法把 LoRA 内核放进该模型的注意力，会停下：请把 lora_qkv_kernel 和 lora_o_kernel 设为 false。数字按 PEFT 的层计算。",
  ],
  [
    'Latents and embeddings of the text are taken to have been made before; what stays on the card to make them in each step is counted where "vae" and "text_encoders" say so.',
    "潜变量和文本嵌入视为事先算好；每一步都在卡上编码的部分，在 vae 和 text_encoders 中写明时计入。",
  ],
  [
    'Latents are taken to have been made before; what stays on the card to make them in each step is counted where "vae" and "text_encoders" say so.',
    "潜变量视为事先算好；每一步都在卡上编码的部分，在 vae 和 text_encoders 中写明时计入。",
  ],
  [
    'Embeddings of the text are taken to have been made before; what stays on the card to make them in each step is counted where "vae" and "text_encoders" say so.',
    "文本嵌入视为事先算好；每一步都在卡上编码的部分，在 vae 和 text_encoders 中写明时计入。",
  ],
  [
    "Evaluation by generation or beside tensor, expert or pipeline parallelism is not counted where GPUs divide the model; the peak of training is answered.",
    "多块 GPU 切分模型时，用生成做的评估以及与张量、专家或流水线并行一起的评估未计入；给出的是训练的峰值。",
  ],
  [
    "Where GPUs divide the model this adapter is not modelled. LoRA is; OFT under ZeRO and FSDP, IA3, LoKr and VeRA under ZeRO and FSDP 2, LoHa under ZeRO-1, ZeRO-2 and FSDP 2, all beside weights that are not quantised.",
    "多块 GPU 切分模型时，这种适配器尚未建模。LoRA 已建模；OFT 在 ZeRO 和 FSDP 下，IA3、LoKr 和 VeRA 在 ZeRO 和 FSDP 2 下，LoHa 在 ZeRO-1、ZeRO-2 和 FSDP 2 下也已建模，均限于未量化的权重。",
  ],
  [
    "What cuDNN takes beside convolutions is its own choice. The figure leaves it out; the upper end of the range has the most that was measured.",
    "cuDNN 在卷积之外占用多少由它自己决定。数值不含这部分；范围的上限含实测到的最大值。",
  ],
  [
    "Only diffusion models have these encoders beside them; it has no effect.",
    "只有扩散模型旁边有这些编码器；此项不起作用。",
  ],
  [
    'Which encoders belong to a denoiser of this width is not known: those of Stable Diffusion 1 to 3, SDXL, Flux, Flux 2 and Qwen-Image are. Leave "vae" and "text_encoders" at "cached".',
    "不知道这种宽度的去噪网络配哪些编码器：已知的是 Stable Diffusion 1 到 3、SDXL、Flux、Flux 2 和 Qwen-Image。请让 vae 和 text_encoders 保持 cached。",
  ],
  [
    "Only a count is given: the answer is for {1}, which has {2} parameters. Name a model or paste its config.json for one that is yours.",
    "只给出了参数量：回答针对 {1}，它有 {2} 个参数。请写出模型名称或粘贴 config.json。",
  ],
  ["{1} has one {2}.", "{1} 有一块 {2}。"],
  [
    "{1} NCCL's buffers are assumed to take {2} more on the card; overrides.misc_overhead_gib replaces that.",
    "{1}假定 NCCL 的缓冲区在卡上另占 {2}；可用 overrides.misc_overhead_gib 改写。",
  ],
  ["The figures are those of each of the {1} GPUs: {2}.", "数值是 {1} 块 GPU 中每一块的：{2}。"],
  ["The figures are those of one of the {1} GPUs: {2}.", "数值是 {1} 块 GPU 中需求最多的一块的：{2}。"],
  ["The figures are those of the first of the {1} GPUs: {2}.", "数值是 {1} 块 GPU 中第一块的：{2}。"],
  ["{1} of them divide every layer's matrices; {2}", "其中 {1} 块分担每层的矩阵；{2}"],
  ["each has some of the layers, and of those that need most the figures are", "每块有一部分层，数值取需求最多者"],
  ["DistributedDataParallel keeps the whole model on every one", "DistributedDataParallel 在每块上都放整个模型"],
  ["they divide {1} among them", "它们分担{1}"],
  ["weights, gradients and optimizer states", "权重、梯度和优化器状态"],
  ["gradients, master weights and optimizer states", "梯度、主权重和优化器状态"],
  ["master weights and optimizer states", "主权重和优化器状态"],
  ["{1} of them divide every layer's matrices", "其中 {1} 块分担每层的矩阵"],
  [
    "nn.DataParallel gathers all outputs on it and adds all gradients up there",
    "nn.DataParallel 把所有输出收集到它上面并在那里累加全部梯度",
  ],

  ["The weights are held as the checkpoint's quantization_config says.", "权重按检查点的 quantization_config 保存。"],
  [
    "The weights are held as the model's name says; {1} and {2} with the base's name say it otherwise.",
    "权重按模型名称所示的方式保存；若不是，请写基座模型的名称，并用 {1} 和 {2} 说明。",
  ],
  [
    "The name {1} says how the weights are stored; the answer is about a base of 16 or 32 bits. Packed weights cannot be trained themselves: {2} trains adapters beside them.",
    "名称 {1} 说明了权重的保存方式；此处回答的是 16 或 32 比特的基座。量化的权重本身不能训练：{2} 在其旁训练适配器。",
  ],
  [
    "The checkpoint's weights are quantised and cannot be trained themselves: write {1}.",
    "检查点的权重是量化的，本身不能训练：请写 {1}。",
  ],
  [
    "No teacher is named: a frozen copy of the model is taken, as TRL's GKDConfig says.",
    "未指明教师模型：按 TRL 的 GKDConfig，取模型自身的冻结副本。",
  ],

  // Warnings: what has no effect, or will fail.
  ["{1} states the recipe: {2} have no effect beside it.", "{1} 已规定配方：{2} 在其旁不起作用。"],
  [
    "Only encoder-decoders have a length of their own for the decoder; {1} counts.",
    "只有编码器-解码器模型的解码器有单独的长度；以 {1} 为准。",
  ],
  [
    "With adapters the model is frozen anyhow: {1} have no effect; what is trained beside them is named in {2}.",
    "使用适配器时模型本来就是冻结的：{1} 不起作用；另外要训练的部分写在 {2} 中。",
  ],
  ["{1} fits no parameter of this model: it freezes nothing.", "{1} 与此模型的任何参数都不匹配：没有冻结任何东西。"],
  ["{1} fits no module of this model: it gets no adapter.", "{1} 与此模型的任何模块都不匹配：不会加适配器。"],
  ["{1} is the end of no module's name: nothing is saved for it.", "没有模块名以 {1} 结尾：不会为它保存任何东西。"],
  [
    "No module of this model is adapted: {1} fits none that is not excluded. PEFT raises a ValueError. Its linear layers are {2}.",
    "此模型没有模块会被适配：{1} 不匹配任何未排除的模块，PEFT 会抛出 ValueError。其线性层为 {2}。",
  ],
  [
    "The model's table of positions ends at {1}: longer sequences fail with an index error, whatever the memory. Use at most {2}.",
    "模型的位置表到 {1} 为止：更长的序列无论显存多少都会因下标越界而失败。最多用 {2}。",
  ],
  [
    "The decoder's table of positions ends at {1}: longer labels fail. Use at most {2}.",
    "解码器的位置表到 {1} 为止：更长的标签会失败。最多用 {2}。",
  ],
  [
    "Recomputing {1} saves nothing here: the flash kernel keeps no attention scores. Use {2}.",
    "重算 {1} 在此不省显存：flash 内核不保留注意力分数。请用 {2}。",
  ],
  [
    "Recomputing {1} saves nothing here: the efficient kernel keeps no attention scores. Use {2}.",
    "重算 {1} 在此不省显存：efficient 内核不保留注意力分数。请用 {2}。",
  ],
  [
    "This card has no bf16 arithmetic (compute capability below 8.0): torch emulates it, slowly. fp16 autocast ({1}) is what it was built for.",
    "这块卡没有 bf16 运算（计算能力低于 8.0）：torch 会缓慢地模拟。它适合 fp16 autocast（{1}）。",
  ],
  [
    "Every text of a batch is taken to be as long as texts may be here. Of shorter ones state {1}, the tokens of the longest text in a batch: activations shrink with it.",
    "这里假定批内每段文本都达到允许的最大长度。若文本较短，请给出 {1}，即批内最长文本的 token 数：激活随之变小。",
  ],
  [
    "Attention in bf16 has no fused kernel on this card and makes all scores; in fp16 autocast ({1}) it has one.",
    "这块卡没有 bf16 注意力的融合内核，会生成全部分数；用 fp16 autocast（{1}）则有。",
  ],
  [
    "Heads share keys here, and before torch 2.14 no fused kernel of this card and dtype takes such keys without a mask: attention makes all scores. Where rows of a batch are filled up ({1}: true) keys are copied for each head, and a fused kernel runs.",
    "这里多个头共用键，而 torch 2.14 之前，这块卡和这种类型没有不带掩码就接受它的融合内核：注意力会生成全部分数。若批内各行有填充（{1}: true），键会按头复制，融合内核就会运行。",
  ],
  [
    "No file says in which dtype weights are loaded, nor which release of transformers loads them: fp32 is assumed, as before transformers 5, which loads the checkpoint's own. With that release set {1} to {2}, or give the requirements.txt as well.",
    "文件没有说明权重以何种类型加载，也没有说明由哪个版本的 transformers 加载：按 transformers 5 之前的做法假定为 fp32；5 起加载检查点自身的类型。若用该版本，请把 {1} 设为 {2}，或一并给出 requirements.txt。",
  ],
  [
    'Label smoothing is made of all logits, which SFTTrainer\'s loss in chunks (its default since TRL 1.7) and Liger\'s leave out: it fails. Set "loss" to "default" (loss_type "nll").',
    "标签平滑要用到全部 logits，而 SFTTrainer 的分块损失（TRL 1.7 起的默认）和 Liger 的损失都不给出它们：会失败。请把 loss 设为 default（loss_type nll）。",
  ],
  [
    "With label smoothing the model is handed no labels: it returns all logits, and no fused loss runs.",
    "使用标签平滑时模型拿不到标签：它返回全部 logits，融合的损失不会运行。",
  ],
  [
    "Label smoothing is an argument of transformers' Trainer, which does not run this step. Leave it out.",
    "标签平滑是 transformers 的 Trainer 的参数，而这一步不由它运行。请去掉。",
  ],
  [
    "TRL's trainers on preferences make their own loss, and label_smoothing_factor changes nothing there. Leave it out: the label_smoothing of DPO takes no memory.",
    "TRL 的偏好训练器自己计算损失，label_smoothing_factor 在那里不起作用。请去掉：DPO 的 label_smoothing 不占显存。",
  ],
  [
    "Label smoothing is modelled of language models and classifiers of text. Leave it out for this class.",
    "标签平滑只对语言模型和文本分类器建模。这个类请去掉它。",
  ],
  [
    "Label smoothing is modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP.",
    "标签平滑在单块 GPU 上以及 DistributedDataParallel、DeepSpeed 的 ZeRO 和 FSDP 之下建模。",
  ],
  [
    "it weighs losses of preferences; the Trainer's, of words, is label_smoothing_factor",
    "它给偏好的损失加权；Trainer 对词的标签平滑是 label_smoothing_factor",
  ],
  [
    'PEFT adapts the experts\' gate and up projections together, which are one parameter, and "{1}" alone is targeted: it raises a ValueError. Name both of them, or neither.',
    "PEFT 把专家的 gate 和 up 投影一起适配，它们是同一个参数，而目标里只有“{1}”：会抛出 ValueError。请两个都写，或都不写。",
  ],
  [
    "These targets reach the experts, whose weights are parameters: PEFT puts neither dropout nor DoRA on their adapters and raises a ValueError. Set lora_dropout to 0 and use_dora to false, or name modules of the attention alone.",
    "这些目标涉及专家，而专家的权重是参数：PEFT 不给它们的适配器加 dropout 或 DoRA，会抛出 ValueError。请把 lora_dropout 设为 0、use_dora 设为 false，或只写注意力的模块。",
  ],
  [
    "PEFT 0.19 takes a string of targets for a set of its letters on this model type, and finds nothing to adapt. Name the modules in a list, or use 0.20 or later.",
    "PEFT 0.19 在这种模型上把目标字符串当成字母的集合，找不到可适配的模块。请用列表写模块名，或使用 0.20 及以后的版本。",
  ],
  [
    "With transformers 5 PEFT takes these targets for the experts' weights, too, which are parameters: each layer makes their sums with the adapters and keeps them for backward. PEFT until 0.18 adapted no experts (framework.peft).",
    "在 transformers 5 下 PEFT 也把这些目标当作专家的权重，它们是参数：每一层算出它们与适配器之和，并留给反向传播。0.18 及以前的 PEFT 不适配专家（framework.peft）。",
  ],
  [
    '"framework.peft" holds no release of PEFT; write one ("{1}").',
    "framework.peft 里没有 PEFT 的版本号；请写一个（“{1}”）。",
  ],
  [
    'The loss is left to the framework: SFTTrainer computes it in chunks of 256 tokens since TRL 1.7 (loss_type "chunked_nll"). With an older TRL, or loss_type "nll", it is "default".',
    '损失由框架决定：自 TRL 1.7 起，SFTTrainer 每 256 个 token 一块地计算（loss_type "chunked_nll"）。更旧的 TRL 或 loss_type "nll" 则为 "default"。',
  ],
  [
    'TRL\'s loss in chunks, its default since 1.7, refuses an adapter on lm_head. Set "loss" to "default" (loss_type "nll"), or leave "lm_head" out of the adapted modules.',
    'TRL 的分块损失（自 1.7 起为默认）不接受 lm_head 上的适配器。请把 "loss" 设为 "default"（loss_type "nll"），或不要适配 "lm_head"。',
  ],
  [
    'TRL\'s trainers checkpoint every layer since 0.22 unless they are told not to; here nothing is checkpointed where the request does not say so. Set "gradient_checkpointing" to "full" if your script leaves it to TRL.',
    '自 0.22 起，TRL 的训练器默认对每一层做检查点；此处若请求未写明则不做。若您的脚本交由 TRL 决定，请把 "gradient_checkpointing" 设为 "full"。',
  ],
  [
    "Fused and chunked losses replace that of a causal language model; this model's own loss is computed.",
    "融合或分块的损失只能代替因果语言模型的损失；此模型按自己的损失计算。",
  ],
  [
    "Samples are packed for causal language models only; rows are taken as one sample each.",
    "只有因果语言模型会打包样本；此处每行按一个样本计。",
  ],
  [
    "The rank is larger than the model is wide ({1}): the adapters have more parameters than the weights that they stand for.",
    "秩大于模型的宽度（{1}）：适配器的参数比所代替的权重还多。",
  ],
  ["Nothing is known about the key {1}; it is ignored.", "不认识键 {1}，已忽略。"],
  ["{1} is not a key that we know; it is ignored.", "不认识键 {1}，已忽略。"],
  ["{1} is not a key that we know; it is ignored. Did you mean {2}?", "不认识键 {1}，已忽略。是否想写 {2}？"],
  ["Models of type {1} do not read {2}; it is ignored.", "{1} 类型的模型不读取 {2}，已忽略。"],
  [
    "max_prompt_length and max_completion_length, which are {1} tokens together, replace the {2} of sequence_length.",
    "max_prompt_length 与 max_completion_length 合计 {1} 个 token，取代了 sequence_length 的 {2}。",
  ],
  [
    "A prompt of sequence_length tokens and more leaves none to the answer, which is cut there.",
    "提示长度达到或超过 sequence_length 时，回答会被全部截断。",
  ],
  [
    "The model's layers are numbered from 0 to {1}: PEFT passes over the other numbers.",
    "模型的层编号为 0 到 {1}：PEFT 会跳过其他编号。",
  ],

  // Errors.
  [
    "Say which model is trained: {1} (a catalog name), {2} (a config.json) or {3} (a count).",
    "请说明训练哪个模型：{1}（目录中的名称）、{2}（config.json）或 {3}（参数量）。",
  ],
  [
    "The catalog has no model of the name {1}. Near it are {2}; or paste its config.json.",
    "目录中没有名为 {1} 的模型，相近的有 {2}；也可以粘贴其 config.json。",
  ],
  [
    "The catalog has no model of the name {1}. Paste its config.json instead.",
    "目录中没有名为 {1} 的模型，请改为粘贴其 config.json。",
  ],
  ["The model type {1} is not modelled; these are: {2}.", "尚未对模型类型 {1} 建模；已有：{2}。"],
  [
    "The class {1} is not modelled; of this model type these are: {2}. Give one of them as {3}.",
    "尚未对类 {1} 建模；此模型类型已有：{2}。请在 {3} 中写其一。",
  ],
  ["{1} is {2}; it must be an integer from {3} to {4}.", "{1} 为 {2}，必须是 {3} 到 {4} 之间的整数。"],
  ["{1} is {2}; it must be one of {3}.", "{1} 为 {2}，必须是以下之一：{3}。"],
  ["{1} is {2}; it must be one of {3}. Did you mean {4}?", "{1} 为 {2}，必须是以下之一：{3}。是否想写 {4}？"],
  ["{1} is {2}; it must be text.", "{1} 为 {2}，必须是文本。"],
  [
    "FlashAttention only takes fp16 and bf16: with fp32 weights it needs autocast. Use {1} or {2}.",
    "FlashAttention 只接受 fp16 和 bf16：权重为 fp32 时需要 autocast。请用 {1} 或 {2}。",
  ],
  [
    "FlashAttention runs on cards of compute capability 8.0 (Ampere) and newer only. Use {1}.",
    "FlashAttention 只能在计算能力 8.0（Ampere）及更新的卡上运行。请用 {1}。",
  ],
  [
    "Checkpoint either every k-th layer ({1}) or parts of each ({2}): give one of them.",
    "检查点要么每隔 k 层（{1}），要么每层的一部分（{2}）：只能给出一种。",
  ],
  [
    "An optimizer that steps in backward cannot accumulate gradients: {1} must be 1.",
    "在反向中更新的优化器不能累积梯度：{1} 必须为 1。",
  ],
  [
    "Generated answers are not modelled of {1}, whose own code gives all tokens' logits where the last ones' are asked for.",
    "{1} 的生成式任务尚未建模：其自带代码在只需最后几个 token 的 logits 时仍给出全部。",
  ],
  ["There are more stages than the model's {1} layers.", "流水线阶段数多于模型的 {1} 层。"],
  [
    "transformers has no {1} for {2}: it raises an error. Use {3}.",
    "transformers 没有用于 {2} 的 {1}：会报错。请用 {3}。",
  ],
  [
    "Recomputing the core of attention alone is not modelled for {1}. Use {2}.",
    "尚未对 {1} 只重算注意力核心的做法建模。请用 {2}。",
  ],
  [
    "PEFT refuses adapters on {1} of {2}, which {3} reaches, too: name the other modules.",
    "PEFT 拒绝在 {2} 的 {1} 上加适配器，而 {3} 也包含它们：请写出其他模块。",
  ],
  [
    "FSDP 2's units are left to the framework: as accelerate until 1.13 makes them, token table, last norm and head are one unit, which is let go after forward as the layers are.",
    "FSDP 2 的单元由框架决定：accelerate 1.13 及以前把词表、最后的归一化和输出头作为一个单元，前向之后与各层一样释放。",
  ],
  [
    "FSDP 2's units are left to the framework: as accelerate makes them from 1.14 on, the token table is a unit of its own, and last norm with head another one, which stays whole after forward; a head that is tied to the table is one unit with it.",
    "FSDP 2 的单元由框架决定：accelerate 从 1.14 起让词表自成一个单元，最后的归一化与输出头为另一个单元，前向之后保持完整；与词表共享权重的输出头和词表为同一单元。",
  ],
  [
    "Generated answers are modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP of TRL's trainers.",
    "在生成的回答上训练可在一块 GPU 上估算，也可按 TRL 的训练器在 DistributedDataParallel、DeepSpeed 的 ZeRO 和 FSDP 下估算。",
  ],
  [
    "Generated answers of packed weights that GPUs divide are not modelled: adapters cannot be merged into 4-bit parts.",
    "由多块 GPU 分担量化权重时，不估算在生成的回答上训练：适配器无法合并进 4 位权重的分片。",
  ],
  [
    "With adapters ZeRO-3's generation is modelled with all weights gathered (ds3_gather_for_generation).",
    "带适配器时，ZeRO-3 的生成只按聚齐全部权重估算（ds3_gather_for_generation）。",
  ],
  ["Generated answers under FSDP 1 are modelled for full training.", "FSDP 1 下在生成的回答上训练只估算全量训练。"],
  [
    "Generated answers are new: no reference can have scored them before.",
    "回答是新生成的：参考模型不可能事先为它们打分。",
  ],
  ["Generated answers are modelled without offloaded activations.", "在生成的回答上训练的估算不包括激活卸载。"],
  [
    "vLLM takes {1} of the card's memory, {2}, as long as the job runs.",
    "在作业运行期间，vLLM 始终占用显存的 {1}（{2}）。",
  ],
  [
    "vLLM takes {1} of the card's memory, which is not counted: name the card.",
    "vLLM 占用显存的 {1}，此处未计入：请指明显卡。",
  ],
  [
    "torchao converts torch.nn.Linear alone, and this model computes none outside its head of a size that it takes: {1} changes nothing here.",
    "torchao 只转换 torch.nn.Linear，而本模型在输出头之外没有尺寸合适的此类层：{1} 在此不起作用。",
  ],
  [
    "TRL takes one of generation_batch_size and steps_per_generation.",
    "TRL 只接受 generation_batch_size 与 steps_per_generation 之一。",
  ],
  [
    '"attention_types" is absent; global and local layers are taken to alternate.',
    '缺少 "attention_types"；假定全局层与局部层交替。',
  ],
  [
    "Assumed: the layers of AutoGPTQ without its ExLlama kernels, or of AutoAWQ.",
    "假定：不带 ExLlama 内核的 AutoGPTQ 的层，或 AutoAWQ 的层。",
  ],
  [
    "SpecAugment draws what it masks at each step: the few indices of those stretches are not counted.",
    "SpecAugment 每一步随机选择要遮盖的片段：这些片段的少量索引未计入。",
  ],
  [
    'Assumed: gptqmodel\'s layers with backend="auto_trainable". Those that "auto" chooses refuse to train.',
    '假定：gptqmodel 的层，backend="auto_trainable"。"auto" 选出的层拒绝训练。',
  ],
  [
    "transformers 5 does not pack by HqqConfig any more: hqq's own AutoHQQHFModel.quantize_model is assumed.",
    "transformers 5 不再按 HqqConfig 打包：假定使用 hqq 自己的 AutoHQQHFModel.quantize_model。",
  ],
  [
    "Assumed: torchao 0.15 to 0.17. PEFT 0.18 fails beside 0.18 (\"cannot import name 'LinearActivationQuantizedTensor'\").",
    "假定：torchao 0.15 到 0.17。PEFT 0.18 与 0.18 版不兼容（\"cannot import name 'LinearActivationQuantizedTensor'\"）。",
  ],
  [
    "modules_to_save (to which a classifier's task adds its head) fits {1}, which gets an adapter: PEFT raises a TypeError. Name the targets, or exclude it.",
    "modules_to_save（分类任务会把输出头加进去）包含 {1}，而它也有适配器：PEFT 会抛出 TypeError。请写出目标模块，或把它排除。",
  ],
  ['"quantization.quant_type" {1} has {2} bits, not {3}.', '"quantization.quant_type" {1} 是 {2} 比特，不是 {3}。'],
  [
    "Adam-mini cuts weights of queries and keys into heads of hidden_size * hidden_size / heads elements, and fails where adapters' matrices are none.",
    "Adam-mini 把查询和键的权重切成每头 hidden_size * hidden_size / heads 个元素；适配器的矩阵不是这样的大小时会失败。",
  ],
  [
    "FSDP and ZeRO divide the model among several GPUs: with one they are taken for nothing.",
    "FSDP 和 ZeRO 把模型分到多块 GPU 上：只有一块时不起作用。",
  ],
  [
    "Only models that hear the wave itself depend on its length; the others pad every recording to their window.",
    "只有直接处理波形的模型取决于其长度；其他模型把每段录音填充到自己的窗口长度。",
  ],
  ["This model's code computes its experts in one way only.", "这个模型的代码只有一种计算专家的方式。"],
  [
    "A loop that calls update_and_allocate keeps three more averages of each of AdaLoRA's weights; transformers' Trainer does not call it, and they are not counted.",
    "调用 update_and_allocate 的训练循环会为 AdaLoRA 的每个权重再保留三个平均值；transformers 的 Trainer 不调用它，因此未计入。",
  ],
  [
    "Of this class transformers names other parts than its layers (_no_split_modules: pieces of a layer, stages, or a tower as a whole): fsdp_transformer_layer_cls_to_wrap is taken to name the layers.",
    "transformers 为这个类指定的不是它的层（_no_split_modules：层的一部分、多层组成的阶段或整个塔）：假定 fsdp_transformer_layer_cls_to_wrap 指定了各层。",
  ],
  [
    'Of this class transformers names the embeddings beside the layers (_no_split_modules), on which FSDP 2 by accelerate from 1.14 on fails ("Cannot concatenate overlapping meshes"): fsdp_transformer_layer_cls_to_wrap is taken to name the layers alone.',
    "transformers 为这个类除了层还指定了嵌入（_no_split_modules），accelerate 1.14 起的 FSDP 2 会因此失败（“Cannot concatenate overlapping meshes”）：假定 fsdp_transformer_layer_cls_to_wrap 只指定了各层。",
  ],
  [
    'This model\'s processor cuts no pictures into tiles, or its size says how: their number has no effect. State "image_size".',
    "该模型的处理器不把图片切块，或由图片尺寸决定如何切：块数不起作用。请填写 image_size。",
  ],
  [
    "The number of tiles is stated, and counts; what a picture of that size would be cut into does not. Leave one of them out.",
    "已指定块数，以块数为准；该尺寸的图片会被切成多少块不起作用。请只填写其中一项。",
  ],
  ["Pictures of no stated size are taken to be {1} by {2} pixels.", "未填写尺寸的图片按 {1} × {2} 像素计算。"],
  [
    "The picture is taken as large as it is: if that is more than the processor's max_pixels (preprocessor_config.json, or what the job sets), state the size that it shrinks to.",
    "图片按原尺寸计算：若超过处理器的 max_pixels（见 preprocessor_config.json 或任务设置），请填写缩小后的尺寸。",
  ],
  [
    "The processor shrinks a picture of that size to {1} by {2} pixels: no side is longer than {3}.",
    "处理器把这个尺寸的图片缩小到 {1} × {2} 像素：任何一边都不超过 {3}。",
  ],
  [
    'Each picture is taken to be one tile of {1} pixels a side (do_image_splitting false); else the processor makes each one four tiles long and adds the whole. State "image_size".',
    "假定每张图片是边长 {1} 像素的一块（do_image_splitting 为 false）；否则处理器会把每张图片放大到四块长并加上整图。请填写 image_size。",
  ],
  [
    "The processor makes a picture of that size four tiles long and adds the whole: {1} tiles of {2} pixels a side.",
    "处理器把这个尺寸的图片放大到四块长并加上整图：{1} 块，边长 {2} 像素。",
  ],
  [
    'A layer\'s weight and its input are of two dtypes, which torch refuses without autocast ("expected scalar type").',
    "某一层的权重与输入数据类型不同，没有 autocast 时 torch 会拒绝（“expected scalar type”）。",
  ],
  [
    'CLIP\'s logit_scale has no dimension, and DeepSpeed fails to broadcast it ("self.dim() cannot be 0 to view").',
    "CLIP 的 logit_scale 没有维度，DeepSpeed 广播它时会失败（“self.dim() cannot be 0 to view”）。",
  ],
  [
    "The Trainer's \"auto\" sizes want a hidden_size, which this model's configuration lacks (ValueError): state them.",
    '该模型的配置没有 hidden_size，Trainer 的 "auto" 大小无法确定（ValueError）：请写明。',
  ],
  [
    "Eager attention's mask is as long as this GPU's part of the sequence: it fails.",
    "eager 注意力的掩码只有这张 GPU 那部分序列的长度：会失败。",
  ],
  [
    'Re-entrant checkpoints run backward through this model\'s norm of distances once a layer: torch raises a RuntimeError ("Trying to backward through the graph a second time").',
    "重入式检查点每层都会对该模型的距离归一化做一次反向：torch 会抛出 RuntimeError（“Trying to backward through the graph a second time”）。",
  ],
  [
    "transformers 5 ties nothing where this is false: each use of a shared block has weights of its own, which is not modelled.",
    "此项为 false 时 transformers 5 不共享任何权重：共享块的每次使用都有自己的权重，尚未建模。",
  ],
  [
    "Layers of Zamba 2 share weights: FSDP fails with them, or unties them. Use ZeRO.",
    "Zamba 2 的若干层共享权重：FSDP 会失败，或解除共享。请使用 ZeRO。",
  ],
  [
    "Of the classes that transformers names for this model's units (_no_split_modules) some are not in it, and accelerate fails (\"Could not find the transformer layer class\") unless fsdp_transformer_layer_cls_to_wrap names its layers: that is taken to be set, for a tower's layers, too.",
    "transformers 为该模型的单元指定的类（_no_split_modules）中有一些并不在模型里，accelerate 会报错（“Could not find the transformer layer class”），除非用 fsdp_transformer_layer_cls_to_wrap 指定它的层：这里假定已这样设置，视觉塔的层也包括在内。",
  ],
  [
    "Of this class transformers names the language model's layers alone (_no_split_modules), so that accelerate leaves the tower's layers with the root's unit, which is whole longer; fsdp_transformer_layer_cls_to_wrap names them, too.",
    "transformers 只为这个类指定了语言模型的层（_no_split_modules），因此 accelerate 把视觉塔的层留在根单元里，保持完整的时间更长；fsdp_transformer_layer_cls_to_wrap 可以把它们也指定进来。",
  ],
  [
    "Of this class transformers names the language model's layers alone (_no_split_modules): fsdp_transformer_layer_cls_to_wrap is taken to name the tower's, too. Without it the root's unit has them, which is whole longer.",
    "transformers 只为这个类指定了语言模型的层（_no_split_modules）：假定 fsdp_transformer_layer_cls_to_wrap 也指定了视觉塔的层。否则它们属于根单元，保持完整的时间更长。",
  ],
  [
    'transformers names no layers of this class (_no_split_modules), so that accelerate makes one unit of all of them, which is whole from the first forward to the end of backward; fsdp_transformer_layer_cls_to_wrap names them, "root" here means that.',
    "transformers 没有为这个类指定层（_no_split_modules），因此 accelerate 把所有层作为一个单元，从第一次前向到反向结束都保持完整；fsdp_transformer_layer_cls_to_wrap 可以指定它们，此处的 “root” 就表示这种情况。",
  ],
  [
    "transformers names no layers of this class (_no_split_modules): fsdp_transformer_layer_cls_to_wrap is taken to name them. Without it accelerate makes one unit of all of them, which is whole from the first forward to the end of backward.",
    "transformers 没有为这个类指定层（_no_split_modules）：假定 fsdp_transformer_layer_cls_to_wrap 指定了它们。否则 accelerate 把所有层作为一个单元，从第一次前向到反向结束都保持完整。",
  ],
  [
    'Under FSDP 2 accelerate does not autocast: it makes trained weights fp32, gathers and reduces in {1}, and outputs stay as they are. The figures are those of {2} ({3}); a loop of your own that autocasts is framework "pytorch".',
    "在 FSDP 2 下 accelerate 不使用 autocast：它把被训练的权重变为 fp32，以 {1} 收集和归约，输出保持原样。数字按 {2}（{3}）给出；自己写的、使用 autocast 的训练循环应选框架 “pytorch”。",
  ],
  [
    "The head is tied to the token table: accelerate 1.14.0 fails on that from torch 2.13 on; 1.15 trains it, and the figure is 1.15's.",
    "输出头与词表共享权重：从 torch 2.13 起 accelerate 1.14.0 会因此失败；1.15 可以训练，数字按 1.15 给出。",
  ],
  [
    "Before transformers 5 each expert is a module of linear layers, quantised and adapted like all others, and runs on the tokens sent to it: an even number is assumed (moe.load_imbalance states another). The form is read from the modelling files of 4.57; no record covers it.",
    "在 transformers 5 之前，每个专家是由线性层组成的模块，像其他层一样被量化并加适配器，只处理分给它的 token：假定平均分配（moe.load_imbalance 可另行给出）。其形式取自 4.57 的模型代码；没有记录覆盖它。",
  ],
  [
    "As many tokens are taken to come to this GPU's experts as it sends to all: the GPUs' routers choose evenly. moe.load_imbalance states how many times its share the busiest expert gets.",
    "假定来到这块 GPU 的专家的 token 数与它发给所有专家的一样多：各 GPU 的路由是平均的。moe.load_imbalance 给出最忙的专家得到其份额的多少倍。",
  ],
  [
    'accelerate leaves 4-bit weights in words of uint8 out of FSDP 2: each GPU keeps all of them. Set "quant_storage" to the weights\' dtype, so that they are divided.',
    'accelerate 不把存为 uint8 的 4 比特权重纳入 FSDP 2：每块 GPU 都保存全部。请把 "quant_storage" 设为权重的数据类型，使其被切分。',
  ],
  ['"{1}" is not something that this engine does yet; it does {2}.', '"{1}" 还不是这个引擎能做的事；它能做的是 {2}。'],
  ["The adapted modules are left to PEFT, whose own for {1} are {2}.", "适配的模块由 PEFT 决定，它对 {1} 采用 {2}。"],
  [
    "PEFT has no modules of its own for the model type {1}: it raises a ValueError. Name them.",
    "PEFT 对模型类型 {1} 没有默认模块：会抛出 ValueError。请写出模块名。",
  ],
  [
    "PEFT has no modules of its own for the model type {1} and asks for them: all linear layers are taken here.",
    "PEFT 对模型类型 {1} 没有默认模块，要求写出；此处取全部线性层。",
  ],
  [
    "DeepSpeed from 0.19.3 on keeps what is frozen gathered from a re-entrant checkpoint's recomputation to the end of backward: all of the base lies on each GPU then. Older releases (parallelism.zero.version) let it go and need less; so do checkpoints that are not re-entrant.",
    "DeepSpeed 从 0.19.3 起，可重入检查点重算时收集的冻结权重会一直保留到反向结束：那时整个基座模型都在每块 GPU 上。更早的版本（parallelism.zero.version）会释放它，需要更少显存；不可重入的检查点也是如此。",
  ],
  [
    "DeepSpeed before 0.19.3 is taken, which lets go of frozen weights as backward goes on. Later releases (parallelism.zero.version) keep all of them gathered behind re-entrant checkpoints, and need that much more.",
    "按 0.19.3 之前的 DeepSpeed 估算，它在反向过程中逐步释放冻结权重。之后的版本（parallelism.zero.version）在可重入检查点之后会保留全部冻结权重，需要的显存相应更多。",
  ],
  [
    "Axolotl's cross-entropy in chunks, answered by that of all logits at once",
    "Axolotl 的分块交叉熵，以一次计算全部 logits 的损失代答",
  ],
  [
    "TRL's loss in chunks of a head that GPUs divide, answered by chunks of the whole head",
    "多卡划分输出头时 TRL 的分块损失，以完整输出头的分块代答",
  ],
  [
    "accelerate's units beside tensor parallelism, answered by one unit of what lies outside the layers",
    "张量并行旁 accelerate 的 FSDP 2 单元，以容纳各层之外全部内容的一个单元作答",
  ],
  [
    'accelerate has no pipelines: there one unit holds what lies outside the layers, or torchtitan\'s two do ("separate").',
    'accelerate 没有流水线：那里由一个单元保存层以外的部分，或如 torchtitan 由两个单元保存（"separate"）。',
  ],
  [
    "The files divide the model among GPUs and do not say among how many: 2 are assumed. Of more each needs less: state parallelism.data.",
    "这些文件把模型分到多块 GPU 上，但没有说明块数：假定为 2。块数更多时每块需要更少：请给出 parallelism.data。",
  ],
  [
    "No file says how long the prompts are, which are not cut: 512 tokens are assumed. State max_prompt_length.",
    "没有文件说明提示词的长度，且提示词不会被截断：假定为 512 个 token。请给出 max_prompt_length。",
  ],
  ["In the files, not read, and no part of the figure: {1}.", "文件中有、未读取、未计入的内容：{1}。"],
  ["No file says, and the job below has the usual: {1}.", "没有文件说明，下面的作业取通常的值：{1}。"],
  ['"{1}" is {2}, which divide the job among them.', '"{1}" 即 {2}，作业分到这些卡上。'],
  [
    "Of models that see, the preferences of DPO and KTO are modelled, answers that they generate, distillation, and rewards of texts alone: TRL's RewardTrainer takes no pictures.",
    "对于能看图的模型，偏好训练中只有 DPO 和 KTO、在生成的回答上训练、蒸馏以及纯文本的奖励模型已建模：TRL 的 RewardTrainer 不接受图片。",
  ],
  [
    "A teacher is modelled that is a causal language model of text, or that sees as the student does: of one model type.",
    "教师模型须是纯文本的因果语言模型，或与学生同一类型、同样能看图。",
  ],
  [
    "TRL's GKDTrainer refuses this: the vocabulary of the teacher has {1} tokens, that of the student {2}.",
    "TRL 的 GKDTrainer 会拒绝：教师的词表有 {1} 个 token，学生的有 {2} 个。",
  ],
  ["TRL's GKDConfig takes 0 to 1.", "TRL 的 GKDConfig 只接受 0 到 1。"],
  [
    "A teacher is modelled on one GPU, and under DistributedDataParallel, DeepSpeed's ZeRO and FSDP.",
    "教师模型在单块 GPU 上以及在 DistributedDataParallel、DeepSpeed 的 ZeRO 和 FSDP 下已建模。",
  ],
  [
    "How much of a batch is padding a request does not say: the figure is of what moves most, and the range begins at less.",
    "请求没有说明一批里有多少填充：数值按移动最多的情形给出，区间下端更低。",
  ],
  [
    "Some of what is trained gets no gradient here ({1}), which DistributedDataParallel waits for: without find_unused_parameters its second step raises an error.",
    "这里有一部分被训练的参数得不到梯度（{1}），而 DistributedDataParallel 会等它：不开 find_unused_parameters，第二步就会报错。",
  ],
  [
    "NEFTune asks the model for its input embeddings, and this class has none: NotImplementedError. Use 0.",
    "NEFTune 需要模型的输入嵌入，而这个类没有：NotImplementedError。请用 0。",
  ],
  [
    "TRL's trainers run under accelerate, which converts the outputs in any case.",
    "TRL 的训练器在 accelerate 下运行，输出总会被转换。",
  ],
  [
    'Of those that generate answers ms-swift\'s GRPO has a teacher (framework.name "ms_swift").',
    '在生成回答的训练中，只有 ms-swift 的 GRPO 有教师模型（framework.name 为 "ms_swift"）。',
  ],
  ["{1} compares at least 2 answers of a prompt.", "{1} 至少要比较同一提示的 2 个回答。"],
  [
    "A copy of the model that is laid on several GPUs, too, is not modelled. Precompute its log probabilities, or train an adapter, beside which no copy is needed.",
    "参考模型的副本也分层放在多块 GPU 上，这种情形未建模。请预先算好它的对数概率，或训练适配器，那样不需要副本。",
  ],
  [
    "device_map is modelled for full training, LoRA and QLoRA, without an optimizer in backward.",
    "device_map 对全参训练、LoRA 和 QLoRA 已建模，不含反向中的优化器步。",
  ],
  [
    "A teacher on another machine, of which the likeliest tokens alone come, is not modelled.",
    "在另一台机器上、只返回最可能 token 的教师模型未建模。",
  ],
  [
    'The value model is taken to be what the reward model is: TRL\'s scripts load both from reward_model_path. Name that with "reward_model".',
    '价值模型视为与奖励模型相同：TRL 的脚本都从 reward_model_path 加载二者。请用 "reward_model" 指明。',
  ],
  [
    "No reward model is named: reward and value model are taken to be as large as the model, each with a score in the place of its head.",
    "没有指明奖励模型：奖励模型和价值模型视为与该模型一样大，各自用打分层代替输出头。",
  ],
  [
    'No reward model is named: one as large as the model is taken, with a score in the place of its head. Where functions score the answers, say "reward_functions": true.',
    '没有指明奖励模型：视为与该模型一样大，用打分层代替输出头。如果由函数为回答打分，请设置 "reward_functions": true。',
  ],
  [
    "Online DPO is modelled on one GPU: no record holds its three models on several.",
    "Online DPO 只在单块 GPU 上建模：没有记录涵盖多块 GPU 上的三个模型。",
  ],
  [
    "Online DPO is modelled as TRL's own trainer runs it; what {1} makes of it is other code, of which there is no record.",
    "Online DPO 按 TRL 自己的训练器建模；{1} 的实现是另外的代码，没有相应记录。",
  ],
  ["Online DPO is modelled of decoders.", "Online DPO 只为解码器模型建模。"],
  ["Online DPO is modelled with the model's own generate().", "Online DPO 只在用模型自己的 generate() 生成时建模。"],
  [
    "PPO is modelled on one GPU: no record holds its four models on several.",
    "PPO 只在单块 GPU 上建模：没有记录涵盖多块 GPU 上的四个模型。",
  ],
  [
    "PPO is modelled of full training and LoRA: TRL's script packs the value model likewise, and trains what of it stays.",
    "PPO 只为全量训练和 LoRA 建模：TRL 的脚本会同样量化价值模型，并训练其中未量化的部分。",
  ],
  [
    "PPO is modelled as TRL's own scripts run it; what {1} makes of it is other code, of which there is no record.",
    "PPO 按 TRL 自己的脚本建模；{1} 的实现是另外的代码，没有相应记录。",
  ],
  ["PPO is modelled of decoders.", "PPO 只为解码器模型建模。"],
  ["PPOTrainer generates by the model's own generate().", "PPOTrainer 用模型自己的 generate() 生成。"],
  [
    "A reward model is modelled that is a decoder of text with a score per sequence.",
    "只有对每个序列打一个分的纯文本解码器奖励模型已建模。",
  ],
  [
    "PPOTrainer has a train() of its own, in which nobody switches checkpointing on.",
    "PPOTrainer 有自己的 train()，其中没有任何地方启用检查点。",
  ],
  [
    "PPOTrainer makes an Accelerator of its own, which bf16 and fp16 of its arguments do not reach: it runs in {1}. Where accelerate launch has --mixed_precision, say amp_bf16 or bf16_amp.",
    "PPOTrainer 自己创建 Accelerator，参数中的 bf16 和 fp16 传不到它：它以 {1} 运行。如果 accelerate launch 带有 --mixed_precision，请指定 amp_bf16 或 bf16_amp。",
  ],
  [
    "Of LLaMA-Factory's own loop supervised training of language models is modelled. Its DPO under transformers' Trainer is framework \"llama_factory\".",
    "LLaMA-Factory 自己的训练循环只建模语言模型的监督训练；transformers Trainer 下的 DPO 请用框架 “llama_factory”。",
  ],
  [
    "Of LLaMA-Factory's own loop text is modelled, also of models that see; pictures under transformers' Trainer are framework \"llama_factory\".",
    "LLaMA-Factory 自己的训练循环只建模文本（视觉模型也可）；transformers Trainer 下的图像请用框架 “llama_factory”。",
  ],
  [
    "LLaMA-Factory's own loop makes its loss of the logits, which a fused loss does not return: it switches Liger's off.",
    "LLaMA-Factory 自己的训练循环由 logits 计算损失，而融合损失不返回 logits：它会关闭 Liger 的。",
  ],
  [
    "LLaMA-Factory's own loop autocasts nowhere: leave the precision to it, or state one without autocast.",
    "LLaMA-Factory 自己的训练循环不使用 autocast：请把精度留给它决定，或写明不带 autocast 的精度。",
  ],
  ["LLaMA-Factory's own loop has no adapters but LoRA's.", "LLaMA-Factory 自己的训练循环只有 LoRA 适配器。"],
  [
    "LLaMA-Factory's own loop joins samples with flash_attention_2 alone.",
    "LLaMA-Factory 自己的训练循环只用 flash_attention_2 拼接样本。",
  ],
  ["LLaMA-Factory's own loop evaluates nothing: leave it out.", "LLaMA-Factory 自己的训练循环不做评估：请去掉这一项。"],
  [
    "LLaMA-Factory's own loop is modelled on one GPU, under DistributedDataParallel and FSDP 2.",
    "LLaMA-Factory 自己的训练循环只建模单 GPU、DistributedDataParallel 和 FSDP 2。",
  ],
  [
    "LLaMA-Factory refuses this: with use_llama_pro the model's {1} layers must be a multiple of freeze_trainable_layers.",
    "LLaMA-Factory 会拒绝：启用 use_llama_pro 时，模型的 {1} 层必须是 freeze_trainable_layers 的整数倍。",
  ],
  [
    "Releases of transformers are modelled from 4 on: older ones have none of these models' code.",
    "transformers 从第 4 版起已建模：更早的版本没有这些模型的代码。",
  ],
  [
    "TRL's SFTTrainer refuses to pack samples of a model that sees. Set {1} to false.",
    "TRL 的 SFTTrainer 拒绝为能看图的模型打包样本。请将 {1} 设为 false。",
  ],
  [
    "TRL's trainers compute no log-probabilities of pictures in advance.",
    "TRL 的训练器不会提前计算带图片样本的对数概率。",
  ],
  ["{1} has no effect here: it counts where {2} is one of {3}.", "{1} 在此不起作用：只有 {2} 为 {3} 之一时才有意义。"],
  ["{1} has no effect here: it counts beside {2} alone.", "{1} 在此不起作用：只有与 {2} 一起才有意义。"],
  [
    "{1} and {2} are both true: transformers raises a ValueError.",
    "{1} 和 {2} 同时为 true：transformers 会抛出 ValueError。",
  ],
  [
    "At most one of {1} and {2} can be true: TrainingArguments raises a ValueError.",
    "{1} 和 {2} 最多一个为 true：TrainingArguments 会抛出 ValueError。",
  ],
  [
    "{1} says 8 bits and {2} another number. Leave one of them out.",
    "{1} 表示 8 比特，而 {2} 是另一个数：请去掉其中一个。",
  ],
  ["{1} must be the one that {2} names, or left out.", "{1} 必须与 {2} 所指的相同，或者省略。"],
  [
    "Only loops over experts ({1} eager) need more where routing is uneven.",
    "只有逐个专家循环（{1} 为 eager）才会因路由不均而需要更多。",
  ],
  [
    "The busiest of {1} experts gets at most all tokens: {2} times an even split.",
    "{1} 个专家中最忙的一个最多得到全部 token：均分的 {2} 倍。",
  ],
  ["No sample has a picture: say how many in {1}, or {2}.", "样本中没有图片：请用 {1} 或 {2} 说明有多少。"],
  ["Pictures have no padding: it has no effect.", "图片没有填充：不起作用。"],
  [
    "PEFT's configuration of this adapter has no {1}: it raises a TypeError.",
    "PEFT 中这种适配器的配置没有 {1}：会抛出 TypeError。",
  ],
  [
    "{1} names the class that is trained, and with it what is learned: the task changes nothing.",
    "{1} 指定了训练的类，也就指定了学习的内容：任务不改变任何东西。",
  ],
  [
    "fp16=True scales the loss, and torch's GradScaler refuses gradients that are fp16 themselves (ValueError): what is trained must be loaded in fp32 ({1}).",
    "fp16=True 会缩放损失，而 torch 的 GradScaler 拒绝本身为 fp16 的梯度（ValueError）：被训练的权重须以 fp32 加载（{1}）。",
  ],
  [
    "transformers 5 has no adamw_hf any more and raises a ValueError; adamw_torch is nearest.",
    "transformers 5 已没有 adamw_hf，会抛出 ValueError；最接近的是 adamw_torch。",
  ],
  [
    "Liger 0.8 has no kernels for {1}: use_liger_kernel of transformers and its like changes nothing. The figure is that without.",
    "Liger 0.8 没有用于 {1} 的内核：transformers 的 use_liger_kernel 之类不改变任何东西。数字按不用 Liger 计算。",
  ],
  [
    "Liger 0.8 has no kernels for {1}: use_liger_kernel of transformers and its like changes nothing. The figure is that of its loss put in by hand.",
    "Liger 0.8 没有用于 {1} 的内核：transformers 的 use_liger_kernel 之类不改变任何东西。数字按手动换上其损失计算。",
  ],
  [
    "TRL's trainers switch checkpointing off while they score answers, and on again for every layer.",
    "TRL 的训练器在给回答打分时关闭检查点，之后对每一层重新打开。",
  ],
  ["This model hears and does not see: pictures have no effect.", "这个模型只能听、不能看：图片不起作用。"],
  [
    'TRL\'s trainers on preferences take no recordings. Leave "audio_seconds" out.',
    'TRL 的偏好训练器不接受录音。请去掉 "audio_seconds"。',
  ],
  ["A recording takes {1} tokens, more than the sequence has.", "一段录音占 {1} 个 token，超过了序列长度。"],
  [
    "The thinker alone is loaded: where the talker and what makes waves of its tokens stay beside it, add their frozen weights (ms-swift: set ENABLE_AUDIO_OUTPUT=0 to leave them out).",
    "只计入 thinker：如果 talker 和把它的 token 变成波形的部分也一起加载，请加上它们冻结的权重（ms-swift：设 ENABLE_AUDIO_OUTPUT=0 可以不加载）。",
  ],
  [
    'The sequence has no room for pictures of the model\'s own size: they are taken to be {1} pixels a side, the largest that it holds. State "image_size".',
    "序列容不下模型自身尺寸的图片：图片按边长 {1} 像素计算，即序列能容下的最大尺寸。请给出 image_size。",
  ],
  // Families that came late.
  [
    'transformers 5.12 fails here: {1} casts pictures to the dtype of a packed weight. Use "lora", or texts alone.',
    "transformers 5.12 在此会出错：{1} 把图片转换成打包权重的类型。请用 “lora”，或只用文本。",
  ],
  [
    'The tower\'s pooling head is not modelled: "vision_use_head": false is what published files say.',
    "未建模视觉塔的池化头：已发布的文件写的是 “vision_use_head”: false。",
  ],
  ["OLMo-Hybrid wants layers of both kinds: its class fails without.", "OLMo-Hybrid 两种层都要有：否则它的类会出错。"],
  [
    "Layers whose tokens take different numbers of experts are not modelled.",
    "未建模各层每个 token 专家数不同的模型。",
  ],
  [
    "Only experts whose sum is made in fp32 are modelled, as the class has it by default.",
    "只建模以 fp32 求和的专家，这是该类的默认方式。",
  ],
  ['Only "average" is modelled, as of all published files.', "只建模 “average”，已发布的文件都是如此。"],
  ['"vision_aspect_ratio" must be like "anyres_max_9".', "“vision_aspect_ratio” 的形式须如 “anyres_max_9”。"],
  [
    'Windows of at most 100 hops ("n_window": 50) are modelled, "n_window_infer" of one or more.',
    "只建模最多 100 帧的窗口（“n_window”: 50），且 “n_window_infer” 至少含一个窗口。",
  ],
  // Files that nothing recognises.
  ['"{1}" is empty.', "“{1}” 是空文件。"],
  ["{1} looks like none of the formats that are read.", "{1} 不像任何能读取的格式。"],
  [
    "Nothing here trains: {1}. Estimates are of training: hand over the command or the file that trains the model.",
    "这里没有训练：{1}。估算只针对训练：请给出用于训练的命令或文件。",
  ],
  ['"{1}" cannot be read as JSON. Line {2}: {3}', "“{1}” 不能作为 JSON 读取。第 {2} 行：{3}"],
  ["Something stands behind the end of the JSON.", "JSON 结束之后还有内容。"],
  ["A value is missing.", "缺少一个值。"],
  ["A key is missing.", "缺少一个键。"],
  ["A colon is missing.", "缺少冒号。"],
  ["A string does not end.", "字符串没有结束。"],
  ["A comma or a closing bracket is missing.", "缺少逗号或右括号。"],
  ["It is nested too deep or has too many values.", "嵌套太深，或值太多。"],
  // Models that see and came last.
  [
    'Only "16x" by one merger of 2 by 2 is modelled, as published files have it.',
    "只建模 “16x” 和一个 2×2 的合并层：已发布的文件都是如此。",
  ],
  ["Only the number of one of the tower's layers is modelled.", "只建模视觉塔某一层的编号。"],
  ["Only 2 by 2 is modelled, as of all published files.", "只建模 2×2：已发布的文件都是如此。"],
  [
    'Pages of 1024 in patches of 16 are modelled, and two "downsample_channels" of which the last is the encoder\'s "hidden_size".',
    "只建模 1024 的页面、16 的图块，以及两个 “downsample_channels”，其中最后一个是编码器的 “hidden_size”。",
  ],
  ['"num_heads" must be a multiple of "num_key_value_heads".', "“num_heads” 必须是 “num_key_value_heads” 的倍数。"],
  // BLIP-2.
  ["This model wants a picture with every text: one is taken.", "该模型的每段文本都要有一张图片：按一张计算。"],
  [
    "Blip2Processor takes one picture for each text, and the class wants one with every text.",
    "Blip2Processor 为每段文本取一张图片，而该类要求每段文本都有一张。",
  ],
  [
    "TRL's trainers on preferences and on generated answers want a chat template, and BLIP-2 has none.",
    "TRL 的偏好训练器和生成回答的训练器需要对话模板，而 BLIP-2 没有。",
  ],
  [
    "PEFT's models with a learned prompt hand over no input_ids, without which BLIP-2's forward fails. Use \"lora\".",
    "PEFT 带可学习提示的模型不传递 input_ids，没有它 BLIP-2 的前向会失败。请用 “lora”。",
  ],
  [
    'Recomputing the core of attention alone is not modelled for T5. Use "full".',
    "未建模 T5 只重算注意力核心的情形。请用 “full”。",
  ],
  [
    "A Q-Former that reads text, as models that retrieve have it, is not modelled: set it to false.",
    "未建模读文本的 Q-Former（检索模型所用）：请设为 false。",
  ],
  [
    'BLIP-2\'s class computes its loss itself, from all logits: none takes its place. Use "default".',
    "BLIP-2 的类自己用全部 logits 计算损失：没有别的损失可以代替。请用 “default”。",
  ],
  [
    "Blip2Processor makes a row of each text and its picture: they are not packed.",
    "Blip2Processor 为每段文本及其图片各成一行：不打包。",
  ],
  // BLIP.
  [
    "BlipProcessor takes one picture for each text, and the class wants one with every text.",
    "BlipProcessor 为每段文本取一张图片，而该类要求每段文本都有一张。",
  ],
  [
    "TRL's trainers on preferences and on generated answers want a chat template, and BLIP has none.",
    "TRL 的偏好训练器和生成回答的训练器需要对话模板，而 BLIP 没有。",
  ],
  [
    "PEFT's models with a learned prompt hand over no input_ids, without which BLIP's forward fails. Use \"lora\".",
    "PEFT 带可学习提示的模型不传递 input_ids，没有它 BLIP 的前向会失败。请用 “lora”。",
  ],
  [
    'BLIP\'s class computes its loss itself, from all logits: none takes its place. Use "default".',
    "BLIP 的类自己用全部 logits 计算损失：没有别的损失可以代替。请用 “default”。",
  ],
  [
    "BlipProcessor makes a row of each text and its picture: they are not packed.",
    "BlipProcessor 为每段文本及其图片各成一行：不打包。",
  ],
  ["A text that does not attend to its picture is not modelled.", "未建模不关注图片的文本。"],
  ["A loss of smoothed labels is not modelled here: set it to 0.", "此处未建模标签平滑的损失：请设为 0。"],
  [
    'PEFT makes checkpointed models\' embeddings ask for a gradient, and BLIP adds positions to these in place, which fails. Use "none".',
    "PEFT 让使用检查点的模型的嵌入要求梯度，而 BLIP 就地把位置加到其上，因此会失败。请用 “none”。",
  ],
  // HunyuanOCR.
  [
    '"rope_parameters" must have "mrope_section": the class fails without it.',
    "“rope_parameters” 必须有 “mrope_section”：没有它该类会失败。",
  ],
  ['Only "bilinear" is modelled, as of all published files.', "只建模 “bilinear”：已发布的文件都是如此。"],
  // Aria.
  ["Adapters of Aria's experts are not modelled.", "未建模 Aria 专家上的适配器。"],
  [
    'AriaImageProcessor makes squares of 490 or 980 pixels of a picture (max_image_size): give one of them, and pieces as "image_tiles".',
    "AriaImageProcessor 把图片变成 490 或 980 像素的正方形（max_image_size）：请给出其中之一，分块数用 “image_tiles”。",
  ],
  ["Numbers of patches and of the tokens that they become are needed.", "需要图块数以及它们变成的 token 数。"],
  ["Only the tower's last layer is modelled.", "只建模视觉塔的最后一层。"],
  ["A token passes through more experts than there are.", "一个 token 经过的专家多于实际存在的专家。"],
  [
    'With adapters the model is frozen anyhow: "freeze" has no effect; what is trained beside them is named in "adapter.modules_to_save", or, where it is trained in place, in "trainable".',
    "用适配器时模型本已冻结：“freeze” 不起作用；同时训练的模块写在 “adapter.modules_to_save” 中，就地训练的写在 “trainable” 中。",
  ],
  [
    "Layers are dropped at random; the estimate is for a step with them all.",
    "各层会被随机丢弃；估算的是所有层都在的一步。",
  ],
  [
    "ZeRO-1 and -2 give each GPU gradients of its own part: GPU {1} needs {2} more than the one that is answered, and the range ends there.",
    "ZeRO-1 和 -2 中每个 GPU 只保留自己那部分梯度：GPU {1} 比所答的 GPU 多需 {2}，区间以它为上限。",
  ],
  // What the frozen requests were answered with beyond these.
  ["method {1} with {2}", "method {1} 与 {2}"],
  ["precision {1} with {2}", "precision {1} 与 {2}"],
  ["optimizer {1} with {2}", "optimizer {1} 与 {2}"],
  ["gradient_checkpointing {1} with {2}", "gradient_checkpointing {1} 与 {2}"],
  ["loss {1} with {2}", "loss {1} 与 {2}"],
  ["head {1} with {2}", "head {1} 与 {2}"],
  ["and {1} more", "另有 {1} 项"],
  ["Kernels and overheads are those of NVIDIA cards.", "内核和开销按 NVIDIA 显卡计。"],
  [
    "A class without a head returns no loss, and the Trainer raises a ValueError: the figure is that of a loss of its last hidden state.",
    "没有头的类不返回损失，Trainer 会报 ValueError：数值按对最后隐藏状态求的损失计。",
  ],
  [
    'Scores that are squashed (attn_logit_softcapping) run eagerly since transformers 5.21, where "sdpa" asked for by name raises a ValueError. flash_attention_2 makes no scores.',
    '自 transformers 5.21 起，压缩的注意力分数（attn_logit_softcapping）以 eager 方式计算，指定 "sdpa" 会报 ValueError。flash_attention_2 不产生分数矩阵。',
  ],
  [
    "The processor makes all pictures as large as this model's tower wants them: their size has no effect.",
    "处理器把所有图片缩放到该模型视觉塔所需的大小：图片大小不起作用。",
  ],
  [
    'Each picture is taken to be one tile of {1} pixels a side; the processor cuts larger ones into up to {2} and adds the whole. State "image_size".',
    '每张图片假定为一块边长 {1} 像素的图块；处理器会把更大的图片切成最多 {2} 块，再加上整图。请给出 "image_size"。',
  ],
  [
    "Cut cross-entropy asserts that hidden states and the head have 16 bits, and fails in backward beside fp32 weights, autocast or not.",
    "Cut cross-entropy 要求隐藏状态和输出头为 16 位，无论是否用 autocast，在 fp32 权重旁反向都会失败。",
  ],
  [
    "transformers names no layers of this class (_no_split_modules): fsdp_transformer_layer_cls_to_wrap is taken to name them. Without it FSDP makes one unit of the whole model, which each GPU holds from the first forward to the end of backward.",
    "transformers 没有为这个类指定层（_no_split_modules）：假定 fsdp_transformer_layer_cls_to_wrap 指定了它们。否则 FSDP 把整个模型作为一个单元，每块 GPU 从第一次前向到反向结束都持有它。",
  ],
  [
    "Parameters times bytes of the recipe, as if every parameter were trained; activations, logits and workspaces are missing: this is not the memory that the job needs.",
    "参数量乘以该精度方案的字节数，如同训练全部参数；不含激活、logits 和工作区：这不是任务所需的显存。",
  ],
  [
    "Parameters times bits, as if every parameter were quantised; the adapters with their gradients and states, activations, logits and workspaces are missing: this is not the memory that the job needs.",
    "参数量乘以位数，如同量化全部参数；不含适配器及其梯度和状态、激活、logits 和工作区：这不是任务所需的显存。",
  ],
  [
    "GRPOTrainer refuses this: the answers that are generated together ({1} of micro_batch_size times GPUs, {2} times) are no multiple of num_generations, {3}. The figures do not depend on it.",
    "GRPOTrainer 会拒绝：一起生成的回答数（micro_batch_size 乘以 GPU 数为 {1}，共 {2} 次）不是 num_generations（{3}）的倍数。数值与此无关。",
  ],
  [
    'On the host DeepSpeed asks for its own Adam, and raises an error for another optimizer unless its configuration says "zero_force_ds_cpu_optimizer": false.',
    '在主机上 DeepSpeed 要求用它自己的 Adam，其他优化器会报错，除非其配置写明 "zero_force_ds_cpu_optimizer": false。',
  ],
  [
    "BAdam trains a layer after the other; the answer is that of the first one's turn, the dearest. Its base is fused AdamW.",
    "BAdam 逐层训练；答案是轮到第一层（占用最多）时的。其基础是融合的 AdamW。",
  ],
  ["A request is a JSON object.", "请求是一个 JSON 对象。"],
  [
    "Outputs of TRL's loss in chunks, held through backward, keep every chunk's softmax, which is not modelled. Set \"keep_outputs\" to false.",
    'TRL 分块损失的输出若保留到反向，会留住每一块的 softmax，这未被建模。请把 "keep_outputs" 设为 false。',
  ],
  [
    '"{1}" fits no module of this model that is adapted: no rank changes.',
    '"{1}" 不对应该模型中任何加了适配器的模块：秩不变。',
  ],
  ['"{1}" fits no module of this model: it excludes none.', '"{1}" 不对应该模型的任何模块：没有排除任何模块。'],
  ["dtype is stated, under {1}", "已给出 dtype，且 {1}"],
  [
    "YOLOS's class takes a list of two: height and width in pixels.",
    "YOLOS 的类要求由两个数组成的列表：以像素计的高和宽。",
  ],
  [
    "YOLOS's tables between the layers have as many rows as pixels make patches: sides that patches do not fill raise an error there.",
    "YOLOS 层间的位置表按像素数计算行数：边长不能被 patch 整除时那里会报错。",
  ],
  ["YOLOS's tables between the layers need two of them.", "YOLOS 层间的位置表要求至少两层。"],
  [
    "Losses of all layers are not modelled: the class asks for hidden states that its body does not hand out.",
    "未建模各层的损失：该类要求其主体并不返回的隐藏状态。",
  ],
  [
    "Moonshine's class gives its last layer's heads to all layers: one number for encoder and decoder is modelled.",
    "Moonshine 的类把最后一层的头数用于所有层：只建模编码器与解码器头数相同的情形。",
  ],
  [
    "Moonshine's class cuts queries into as many heads as keys: other numbers raise an error there.",
    "Moonshine 的类把查询切成与键同样多的头：其他数目在那里会报错。",
  ],
  ["Columns of a head turn in pairs: an odd number has none.", "头的各列成对旋转：奇数无法成对。"],
  ["No kernel takes heads of more than 256 columns.", "没有内核支持超过 256 列的头。"],
  [
    "Padded waves under FlashAttention are not modelled for Moonshine: no record covers them.",
    "未对 Moonshine 建模 FlashAttention 下带填充的波形：没有记录覆盖。",
  ],
  ["The class takes an odd number alone.", "该类只接受奇数。"],
  ['"relative", "rotary" and null are what the class knows.', '该类只认识 "relative"、"rotary" 和 null。'],
  [
    "Wav2Vec2-Conformer is modelled as transformers 5.24 has it: its attention was another one before.",
    "Wav2Vec2-Conformer 按 transformers 5.24 的代码建模：此前它的注意力不同。",
  ],
  [
    "Its feature extractor makes one channel: others are not modelled.",
    "其特征提取器只产生一个通道：未建模其他通道数。",
  ],
  [
    "It needs one number per convolution (num_conv_layers), of up to four.",
    "每个卷积（num_conv_layers，至多四个）需要一个数。",
  ],
  ["Half of the channels gate the others: an odd number has no half.", "一半通道为另一半做门控：奇数没有一半。"],
  ["These are numbers from 1/16 to 16.", "这些数应在 1/16 到 16 之间。"],
  ['"project" is modelled: no record covers the other readouts.', '只建模 "project"：没有记录覆盖其他读出方式。'],
  ["DPT is modelled on its own ViT: other backbones are not.", "DPT 只在其自带的 ViT 上建模：未建模其他骨干网络。"],
  ["Without its second head the class's loss raises an error.", "没有第二个头时该类的损失会报错。"],
  ["The head is modelled on the last picture (-1).", "头只在最后一张特征图（-1）上建模。"],
  [
    "Four layers of the model, in order, with as many neck_hidden_sizes and reassemble_factors are modelled.",
    "只建模按顺序的四层，以及同样数目的 neck_hidden_sizes 和 reassemble_factors。",
  ],
  [
    "DPT's neck takes the square root of a picture's patches for its side: only squares run.",
    "DPT 的颈部以图像 patch 数的平方根为边长：只有正方形可以运行。",
  ],
  [
    "T5Gemma 2 has a window in each stack, and says itself which of them look both ways.",
    "T5Gemma 2 的每个堆栈都有窗口，并自行决定哪个双向关注。",
  ],
  ["T5Gemma 2's two stacks have one width and one vocabulary.", "T5Gemma 2 的两个堆栈宽度和词表相同。"],
  ["T5Gemma 2 with three tables of tokens is not modelled.", "未建模带三个词元表的 T5Gemma 2。"],
  ["DiffLlama's class refuses dropout of its attention.", "DiffLlama 的类拒绝注意力 dropout。"],
  ["DiffLlama's class wants an even number of key-value heads.", "DiffLlama 的类要求键值头数为偶数。"],
  ["Doge's experts, which are looked up by keys, are not modelled.", "未建模 Doge 按键查找的专家。"],
  ["Doge with a sliding window is not modelled.", "未建模带滑动窗口的 Doge。"],
  [
    'Doge masks keys beyond "keep_window_size" anew in each layer, which is not modelled: at most {1} tokens.',
    'Doge 在每层重新遮蔽超出 "keep_window_size" 的键，未建模：最多 {1} 个词元。',
  ],
  [
    "The tokens before the first separator attend to all: 16 of each row are taken to be the question.",
    "第一个分隔符之前的词元关注全部词元：假定每行有 16 个词元是问题。",
  ],
  ["A layer's window has to be an even number of tokens.", "每层的窗口必须是偶数个词元。"],
  [
    "Sequences are filled up to the widest window, of which each layer's has to be a part.",
    "序列会补齐到最宽的窗口，每层的窗口都必须能整除它。",
  ],
  [
    "Tables of encoder, decoder and head that are not one are not modelled.",
    "未建模编码器、解码器和输出头各有词表的情形。",
  ],
  ["Only the class's default is modelled.", "只建模该类的默认值。"],
  ["This class wants heads that share its width among them.", "该类要求各头平分其宽度。"],
  [
    "Its sines and cosines are halves of a row: the width has to be even.",
    "正弦和余弦各占一行的一半：宽度必须是偶数。",
  ],
  ['This class has "relu", "silu", "gelu" and "swish".', '该类只有 "relu"、"silu"、"gelu" 和 "swish"。'],
  ["This class wants embeddings as wide as its layers.", "该类要求嵌入与各层同宽。"],
  ["The groups of channels do not divide a layer's columns.", "通道的组数不能整除该层的列数。"],
  [
    "The layers of squeezebert are convolutions, which adapters of linear layers do not reach: only training all parameters is modelled.",
    "squeezebert 的层是卷积，线性层的适配器无法作用于它：只建模训练全部参数。",
  ],
];
