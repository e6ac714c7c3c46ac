#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr int kSelectiveOp = 1;
constexpr int kSelectiveOther = 2;
constexpr Choice kSelective[] = {
    {"core_attn", 0, "run again only softmax(QK)V"},
    {"op", kSelectiveOp,
     "torchtitan's policy per operation, which keeps every other matrix product: of that framework alone"},
    {"layernorm", kSelectiveOther, "Megatron: norms", false},
    {"mlp", kSelectiveOther, "Megatron: feed-forward", false},
};

constexpr const char* kFlexAttention = "flex_attention";
constexpr const char* kFlashAttention4 = "flash_attention_4";

constexpr Choice kAttention[] = {
    {"eager", number(AttentionKernel::kEager), "matmul, softmax, matmul: keeps the S x S probabilities"},
    {"sdpa", number(AttentionKernel::kSdpa), "torch scaled_dot_product_attention with its own choice of kernel"},
    {"flash_attention_2", number(AttentionKernel::kFlashAttention2), "the flash-attn package, version 2"},
    {"flash_attention_3", number(AttentionKernel::kFlashAttention3),
     "the flash-attn package, version 3; taken to need what version 2 needs"},
    {"xformers", number(AttentionKernel::kXformers),
     "xFormers memory-efficient attention; taken to need what sdpa's efficient kernel needs"},
    {"math", number(AttentionKernel::kMath), "scaled_dot_product_attention held to its math kernel"},
    {"fa2", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"flash_attn", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"flash_attn_2", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"flash_attention", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"kernels_community/flash_attn2", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"kernels_community/flash_attn", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"true", number(AttentionKernel::kFlashAttention2), "", true, "flash_attention_2"},
    {"fa3", number(AttentionKernel::kFlashAttention3), "", true, "flash_attention_3"},
    {"flash_attn_3", number(AttentionKernel::kFlashAttention3), "", true, "flash_attention_3"},
    {"kernels_community/flash_attn3", number(AttentionKernel::kFlashAttention3), "", true, "flash_attention_3"},
    {"kernels_community/vllm_flash_attn3", number(AttentionKernel::kFlashAttention3), "", true, "flash_attention_3"},
    {"auto", number(AttentionKernel::kSdpa), "", true, "sdpa"},
    {"false", number(AttentionKernel::kSdpa), "", true, "sdpa"},
    {"disabled", number(AttentionKernel::kEager), "", true, "eager"},
    {kFlexAttention, number(AttentionKernel::kFlashAttention2), "compiled block masks, answered by flash_attention_2"},
    {kFlashAttention4, number(AttentionKernel::kFlashAttention2),
     "the flash-attn package, version 4, answered by flash_attention_2"},
};

// They keep what flash_attention_2 keeps: the output and a sum per row and head.
void attention(Request& r, const OptionValue& v) {
  r.job.attention = static_cast<AttentionKernel>(v.choice);
  if (v.text == kFlexAttention || v.text == kFlashAttention4) {
    r.job.stand_ins.push_back(v.text + ", answered by flash_attention_2");
  }
}

constexpr Choice kCheckpointing[] = {
    {"none", number(Checkpointing::kNone), "every layer keeps what backward needs"},
    {"full", number(Checkpointing::kFull), "every layer keeps its input and is run again in backward"},
    {"offload", number(Checkpointing::kOffload), "as full, with the inputs kept in host memory"},
    {"true", number(Checkpointing::kFull), "", true, "full"},
    {"false", number(Checkpointing::kNone), "", true, "none"},
    {"unsloth", number(Checkpointing::kOffload), "", true, "offload"},
    {"offload_disk", 0, "the inputs on disk; offload is the nearest that is modelled", false},
};

constexpr Option kOptions[] = {
    choice("attention", "\"sdpa\"", kAttention, "Attention kernel", "attn_implementation.")
        .known_as("attn_implementation,attn_impl,flash_attn,flash_attention")
        .spelled("--attn")
        .sets(attention),
    choice("gradient_checkpointing", "\"none\"", kCheckpointing, "Gradient checkpointing",
           "What is run again in backward instead of being kept; or an object with one of the keys below.")
        .known_as("use_gradient_checkpointing,activation_checkpointing")
        .spelled("--gc")
        .into<&TrainingJob::checkpointing>()
        .opens({}, {}, [](Request& r) { r.job.checkpointing = Checkpointing::kNone; }),
    integer("gradient_checkpointing.every", "null", "Checkpoint every k-th layer", "Checkpoint every k-th layer.")
        .within(1, 1e4, "layers")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.checkpointing = v.integer == 1 ? Checkpointing::kFull : Checkpointing::kEvery;
          r.job.checkpoint_every = v.integer;
        }),
    several("gradient_checkpointing.selective", "null", kSelective, "Selective checkpointing",
            "Run again only these parts of each layer.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (v.choices.empty()) return;
          r.job.selective_op = v.choices.front() == kSelectiveOp;
          r.job.checkpointing = r.job.selective_op ? Checkpointing::kFull : Checkpointing::kSelectiveCoreAttention;
        }),
    open_flag("use_reentrant", "Re-entrant checkpointing",
              "torch.utils.checkpoint's older, re-entrant form; transformers 4's default, not version 5's.")
        .known_as("gradient_checkpointing_kwargs.use_reentrant,activation_checkpointing_kwargs.use_reentrant,"
                  "use_reentrant_gc")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.use_reentrant = v.boolean;
          r.open.use_reentrant = false;
        }),
    flag("activation_offloading", false, "Offloaded activations",
         "What autograd saves waits in host memory (TRL's OffloadActivations, with streams).")
        .further()
        .into<&TrainingJob::offload, &Offload::activations>(),
    refused("tiled_mlp", "Tiled MLP", "Feed-forward layers over pieces of the sequence.", "Not modelled yet."),
};

}  // namespace

constinit const Topic kMemoryTopic{{"memory", "Attention and checkpointing", true}, kPacked<kOptions>};

}  // namespace tidemark
