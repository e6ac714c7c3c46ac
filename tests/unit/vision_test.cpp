// Models that see: their parts are loaded whether or not there are pictures, and are frozen by role.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// SmolVLM-256M's published total: HuggingFaceTB/SmolVLM-256M-Instruct, safetensors.
constexpr Count kSmolVlm = 256484928;

Answer ask(const std::string& options) {
  Issues issues;
  return engine().answer(parse_json(
      R"({"model":"HuggingFaceTB/SmolVLM-256M-Instruct","sequence_length":512)" + options + "}", "", issues));
}

TEST_CASE("a tower that never runs is loaded all the same") {
  const Answer text = ask(""), pictures = ask(R"(,"images_per_sample":1)");
  REQUIRE(text.estimate);
  REQUIRE(pictures.estimate);
  CHECK(text.estimate->parameters.total == kSmolVlm);
  CHECK(pictures.estimate->parameters.total == kSmolVlm);
  CHECK(text.estimate->allocated.expected < pictures.estimate->allocated.expected);
}

TEST_CASE("parts are frozen by role, and together they are the model") {
  Count trained = 0;
  for (const char* rest :
       {R"(,"freeze_projector":true,"freeze_llm":true)", R"(,"freeze_vision":true,"freeze_llm":true)",
        R"(,"freeze_vision":true,"freeze_projector":true)"}) {
    const Answer answer = ask(std::string{R"(,"images_per_sample":1)"} + rest);
    REQUIRE(answer.estimate);
    trained += answer.estimate->parameters.trainable;
  }
  CHECK(trained == kSmolVlm);
  CHECK_FALSE(ask(R"(,"freeze_vision":true,"freeze_projector":true,"freeze_llm":true)").estimate);
}

TEST_CASE("a length that does not hold its pictures is refused, with the least one that does") {
  // Idefics3Processor: image_seq_len 64 for each tile of SmolVLM-256M.
  const Answer answer = ask(R"(,"images_per_sample":9)");
  CHECK_FALSE(answer.estimate);
  const Issue* const refusal = first_error(answer.issues);
  REQUIRE(refusal != nullptr);
  CHECK(refusal->path == "/sequence_length");
  CHECK(refusal->suggestion == "576");
  CHECK(ask(R"(,"images_per_sample":8)").estimate);
}

TEST_CASE("pictures of no stated size are the largest that the sequence has room for, and the answer says so") {
  const auto ask_pixtral = [](const std::string& options) {
    Issues issues;
    return engine().answer(
        parse_json(R"({"model":"mistral-community/pixtral-12b","method":"lora","images_per_sample":1)" + options + "}",
                   "", issues));
  };
  const auto assumed = [](const Answer& answer) {
    return std::any_of(answer.issues.begin(), answer.issues.end(), [](const Issue& issue) {
      return issue.code == "ASSUMED_DEFAULT" && issue.path == "/image_size";
    });
  };
  const Answer cut = ask_pixtral(R"(,"sequence_length":2048)");
  REQUIRE(cut.estimate);
  CHECK(assumed(cut));
  const Count side = cut.job.image_height;
  CHECK(side == cut.job.image_width);
  CHECK(ask_pixtral(R"(,"sequence_length":2048,"image_size":)" + std::to_string(side)).estimate);
  CHECK_FALSE(ask_pixtral(R"(,"sequence_length":2048,"image_size":)" + std::to_string(side + 16)).estimate);
  const Answer whole = ask_pixtral(R"(,"sequence_length":8192)");
  REQUIRE(whole.estimate);
  CHECK_FALSE(assumed(whole));
}

// Qwen2VLProcessor: a video of T frames has T/2 grids of 448/28 x 448/28 tokens, transformers 5.12.
TEST_CASE("a video has as many tokens as its pairs of frames, where a patch holds two, and others take none") {
  const auto ask_qwen = [](const std::string& options) {
    Issues issues;
    return engine().answer(parse_json(
        R"({"model":"Qwen/Qwen2.5-VL-3B-Instruct","method":"lora","image_size":448)" + options + "}", "", issues));
  };
  CHECK(ask_qwen(R"(,"video_frames":7,"sequence_length":1024)").estimate);
  const Answer longer = ask_qwen(R"(,"video_frames":9,"sequence_length":1024)");
  CHECK_FALSE(longer.estimate);
  REQUIRE_FALSE(longer.issues.empty());
  CHECK(longer.issues.back().suggestion == "1280");
  const Answer both = ask_qwen(R"(,"video_frames":4,"images_per_sample":1)");
  CHECK_FALSE(both.estimate);
  CHECK(both.issues.back().path == "/video_frames");
  CHECK_FALSE(ask(R"(,"video_frames":4)").estimate);  // Idefics3's processor
}

// Gemma4UnifiedVisionEmbedder.forward, transformers 5.12: pixel_values.to(patch_dense.weight.dtype).
TEST_CASE("Gemma 4 12B in four bits takes texts alone, and its parts count as published") {
  const auto ask_gemma = [](const std::string& options) {
    Issues issues;
    return engine().answer(
        parse_json(R"({"model":"google/gemma-4-12B-it","sequence_length":1024)" + options + "}", "", issues));
  };
  const Answer packed = ask_gemma(R"(,"method":"qlora","images_per_sample":1)");
  CHECK_FALSE(packed.estimate);
  REQUIRE_FALSE(packed.issues.empty());
  CHECK(packed.issues.back().path == "/method");
  CHECK(ask_gemma(R"(,"method":"qlora")").estimate);
  const Answer whole = ask_gemma(R"(,"images_per_sample":1)");
  REQUIRE(whole.estimate);
  // 11 959 730 224 in the checkpoint, of which one number for each of 48 layers is a buffer (layer_scalar).
  CHECK(whole.estimate->parameters.total == 11959730224 - 48);
}

// Lfm2VlImageProcessor, transformers 5.12: 2 x 2 tiles of 512 and the whole, of 256 tokens each.
TEST_CASE("LFM2-VL sees a large picture as tiles and the whole, a small one in one piece") {
  const auto ask_lfm = [](const std::string& options) {
    Issues issues;
    return engine().answer(
        parse_json(R"({"model":"LiquidAI/LFM2-VL-450M","images_per_sample":1)" + options + "}", "", issues));
  };
  CHECK(ask_lfm(R"(,"image_size":512,"sequence_length":512)").estimate);
  const Answer large = ask_lfm(R"(,"image_size":1024,"sequence_length":1024)");
  CHECK_FALSE(large.estimate);
  CHECK(std::any_of(large.issues.begin(), large.issues.end(),
                    [](const Issue& issue) { return issue.path == "/sequence_length" && issue.suggestion == "1280"; }));
  CHECK(ask_lfm(R"(,"image_size":1024,"sequence_length":1280)").estimate);
}

namespace {

/// The least length that holds what the job's samples see or hear, as the refusal of a shorter one says it.
std::string least_length(const std::string& options) {
  Issues issues;
  const Answer answer = engine().answer(parse_json(R"({"sequence_length":128)" + options + "}", "", issues));
  for (const Issue& issue : answer.issues) {
    if (issue.path == "/sequence_length") return issue.suggestion;
  }
  return "";
}

}  // namespace

// LlavaOnevisionProcessor, transformers 5.12: 27 x 27 patches of the whole; four tiles' 54 x 54 and a newline for each
// row; of 4 x 4 tiles squeezed into nine tiles' patches; 14 x 14 of a frame, a newline behind the video.
TEST_CASE("LLaVA-OneVision sees a sample's only picture in tiles, several and frames in one piece each") {
  const std::string ov = R"(,"model":"llava-hf/llava-onevision-qwen2-0.5b-ov-hf")";
  CHECK(least_length(ov + R"(,"images_per_sample":1,"image_size":768)") == std::to_string(729 + 54 * 55));
  CHECK(least_length(ov + R"(,"images_per_sample":1,"image_size":1536)") == std::to_string(729 + 81 * 82));
  CHECK(least_length(ov + R"(,"images_per_sample":3,"image_size":768)") == std::to_string(3 * 730));
  CHECK(least_length(ov + R"(,"video_frames":4)") == std::to_string(4 * 14 * 14 + 1));
}

// LlavaNextVideoProcessor, transformers 5.12: 24 x 24 patches of a frame, averaged two by two.
TEST_CASE("LLaVA-NeXT-Video sees a frame as 144 tokens, and a picture as LLaVA-NeXT does") {
  CHECK(least_length(R"(,"model":"llava-hf/LLaVA-NeXT-Video-7B-hf","video_frames":8)") == std::to_string(8 * 144));
  const std::string picture = R"(,"images_per_sample":1,"image_size":[672,672])";
  CHECK(least_length(R"(,"model":"llava-hf/LLaVA-NeXT-Video-7B-hf")" + picture) ==
        least_length(R"(,"model":"llava-hf/llava-v1.6-vicuna-7b-hf")" + picture));
}

// transformers 5.12 models/qwen3_omni_moe: _get_feat_extract_output_lengths; a token before and one behind.
TEST_CASE("Qwen3-Omni hears a second as thirteen tokens, and the rest of one by three halvings") {
  const std::string omni = R"(,"model":"Qwen/Qwen3-Omni-30B-A3B-Instruct","method":"lora")";
  CHECK(least_length(omni + R"(,"audio_seconds":30)") == std::to_string(30 * 13 + 2));
  CHECK(least_length(omni + R"(,"audio_seconds":20.5)") == std::to_string(20 * 13 + 7 + 2));
}

// DeepseekVLProcessor, transformers 5.12: num_image_tokens 576, the patches of a square of 384 pixels.
TEST_CASE("DeepSeek-VL sees every picture as 576 tokens, and its parts add up to the published count") {
  const std::string seen = R"(,"model":"deepseek-community/deepseek-vl-1.3b-chat","images_per_sample":)";
  CHECK(least_length(seen + R"(1,"image_size":1024)") == "576");
  CHECK(least_length(seen + R"(2,"image_size":[200,900])") == "1152");
  constexpr Count kPublished = 1962640384;  // safetensors of deepseek-community/deepseek-vl-1.3b-chat
  Count trained = 0;
  for (const char* rest :
       {R"(,"freeze_projector":true,"freeze_llm":true)", R"(,"freeze_vision":true,"freeze_llm":true)",
        R"(,"freeze_vision":true,"freeze_projector":true)"}) {
    Issues issues;
    const Answer answer =
        engine().answer(parse_json(R"({"sequence_length":1024)" + seen + "1" + rest + "}", "", issues));
    REQUIRE(answer.estimate);
    CHECK(answer.estimate->parameters.total == kPublished);
    trained += answer.estimate->parameters.trainable;
  }
  CHECK(trained == kPublished);
}

// DeepseekVLHybridProcessor: the same 576; safetensors of deepseek-community/deepseek-vl-7b-chat.
TEST_CASE("DeepSeek-VL 7B sees a picture twice as 576 tokens, without FlashAttention, and counts as published") {
  const std::string seen = R"(,"model":"deepseek-community/deepseek-vl-7b-chat","method":"lora","images_per_sample":1)";
  CHECK(least_length(seen) == "576");
  const auto ask_hybrid = [&](const std::string& options) {
    Issues issues;
    return engine().answer(parse_json(R"({"sequence_length":1024)" + seen + options + "}", "", issues));
  };
  const Answer answer = ask_hybrid("");
  REQUIRE(answer.estimate);
  CHECK(answer.estimate->parameters.base == 7331390721);
  CHECK_FALSE(ask_hybrid(R"(,"attention":"flash_attention_2")").estimate);
}

// Ovis2Processor and get_min_tile_covering_grid of transformers 5.12, at 448 pixels: 256 tokens of each piece, three
// around and behind the whole, one between two tiles.
TEST_CASE("Ovis 2 cuts a picture into the fewest tiles that show nine tenths of it, the whole before them") {
  const std::string seen = R"(,"model":"thisisiron/Ovis2-1B-hf","images_per_sample":1,"image_size":)";
  CHECK(least_length(seen + "448") == std::to_string(256 + 3));
  CHECK(least_length(seen + "[448,896]") == std::to_string(3 * 256 + 4));
  CHECK(least_length(seen + "512") == std::to_string(5 * 256 + 6));
  CHECK(least_length(seen + "[1344,1792]") == std::to_string(13 * 256 + 14));
  CHECK(least_length(seen + R"(448,"image_tiles":4)") == std::to_string(4 * 256 + 5));
}

// Florence2Processor, transformers 5.12: image_seq_length 577, one picture for each text. flash_attn refuses heads of
// more than 256 columns, and 768 / 32 patches per side are 576.
TEST_CASE("Florence-2 sees one picture as 577 tokens of its encoder's, without FlashAttention") {
  const std::string seen = R"(,"model":"florence-community/Florence-2-base","images_per_sample":)";
  CHECK(least_length(seen + R"(1,"image_size":224)") == "577");
  const auto ask_florence = [&](const std::string& options) {
    Issues issues;
    return engine().answer(
        parse_json(R"({"sequence_length":640,"decoder_sequence_length":128)" + seen + options + "}", "", issues));
  };
  CHECK(ask_florence("1").estimate);
  CHECK_FALSE(ask_florence("2").estimate);
  CHECK_FALSE(ask_florence(R"(1,"attention":"flash_attention_2")").estimate);
  CHECK(ask_florence(R"(0,"attention":"flash_attention_2")").estimate);
  constexpr Count kPublished = 231546368 - 100 * 1024;  // of which pos_idx_to_embed is a buffer
  Count trained = 0;
  for (const char* rest :
       {R"(1,"freeze_projector":true,"freeze_llm":true)", R"(1,"freeze_vision":true,"freeze_llm":true)",
        R"(1,"freeze_vision":true,"freeze_projector":true)"}) {
    const Answer answer = ask_florence(rest);
    REQUIRE(answer.estimate);
    CHECK(answer.estimate->parameters.total == kPublished);
    trained += answer.estimate->parameters.trainable;
  }
  CHECK(trained == kPublished);
}

// Blip2Processor, transformers 5.12: num_query_tokens placeholders before each text, pictures of the tower's own size;
// Blip2VisionModel raises without pixels, and "_supports_flash_attn = False". Totals of the checkpoints' own files (HF
// API, by llmfit 1.1.17), of Flan-T5's without the head that transformers ties.
TEST_CASE("BLIP-2 sees one picture with every text, as 32 tokens, by OPT and by T5") {
  const std::string opt = R"(,"model":"Salesforce/blip2-opt-2.7b")",
                    encodes = R"(,"model":"Salesforce/blip2-flan-t5-xl")";
  const auto ask_blip = [](const std::string& options, int length = 128) {
    Issues issues;
    return engine().answer(parse_json(R"({"sequence_length":)" + std::to_string(length) + options + "}", "", issues));
  };
  CHECK_FALSE(ask_blip(opt + R"(,"image_size":640)", 31).estimate);
  CHECK(ask_blip(opt + R"(,"image_size":640)", 32).estimate);
  constexpr Count kPublished = 3744761856;
  const Answer assumed = ask_blip(opt), stated = ask_blip(opt + R"(,"images_per_sample":1)");
  REQUIRE(assumed.estimate);
  REQUIRE(stated.estimate);
  CHECK(assumed.estimate->allocated.expected == stated.estimate->allocated.expected);
  CHECK(assumed.estimate->parameters.total == kPublished);
  CHECK_FALSE(ask_blip(opt + R"(,"images_per_sample":2)").estimate);
  CHECK_FALSE(ask_blip(opt + R"(,"attention":"flash_attention_2")").estimate);
  CHECK_FALSE(ask_blip(opt + R"(,"task":"dpo")").estimate);
  CHECK_FALSE(ask_blip(opt + R"(,"loss":"chunked")").estimate);
  CHECK_FALSE(ask_blip(opt + R"(,"packing":true)").estimate);
  CHECK_FALSE(ask_blip(opt + R"(,"method":"lora","adapter":{"kind":"prompt_tuning","num_virtual_tokens":8})").estimate);
  const Answer five = ask_blip(encodes);
  REQUIRE(five.estimate);
  CHECK(five.estimate->parameters.total == 3942446592 - Count{32128} * 2048);
  Count trained = 0;
  for (const char* rest :
       {R"(,"freeze_projector":true,"freeze_llm":true)", R"(,"freeze_vision":true,"freeze_llm":true)",
        R"(,"freeze_vision":true,"freeze_projector":true)"}) {
    const Answer answer = ask_blip(opt + rest);
    REQUIRE(answer.estimate);
    trained += answer.estimate->parameters.trainable;
  }
  CHECK(trained == kPublished);
}

// AriaProcessor, transformers 5.12: size_conversion {490: 128, 980: 256} tokens of each piece. The total of the
// checkpoint's own files (HF API, by llmfit 1.1.17).
TEST_CASE("Aria sees squares of 490 or 980 pixels as 128 or 256 tokens, and as many of each piece") {
  const std::string seen = R"(,"model":"rhymes-ai/Aria","method":"lora","images_per_sample":1,"image_size":)";
  CHECK(least_length(seen + R"(490,"image_tiles":2)") == "256");
  CHECK(least_length(seen + "980") == "256");
  const auto ask_aria = [&](const std::string& options) {
    Issues issues;
    return engine().answer(parse_json(R"({"sequence_length":512)" + seen + options + "}", "", issues));
  };
  const Answer answer = ask_aria("490");
  REQUIRE(answer.estimate);
  CHECK(answer.estimate->parameters.base == 25307311216);
  CHECK_FALSE(ask_aria("640").estimate);
}

// transformers 5.12 models/layoutlmv3: counted on the meta device; neither checkpoints nor packed tables of distances.
TEST_CASE("LayoutLMv3 has the page beside its words, and neither checkpoints nor packed weights") {
  const auto ask_layout = [](const std::string& options) {
    Issues issues;
    return engine().answer(parse_json(R"({"model":"microsoft/layoutlmv3-base","sequence_length":512)"
                                      R"(,"architecture":"LayoutLMv3ForTokenClassification")" +
                                          options + "}",
                                      "", issues));
  };
  const Answer full = ask_layout("");
  REQUIRE(full.estimate);
  CHECK(full.estimate->parameters.total == 125326976 + 2 * 769);  // two labels
  CHECK_FALSE(ask_layout(R"(,"method":"qlora")").estimate);
  CHECK_FALSE(ask_layout(R"(,"gradient_checkpointing":"full")").estimate);
  const Answer lora = ask_layout(R"(,"method":"lora","adapter":{"target_modules":["query","value"]})");
  CHECK(lora.estimate);
}

// transformers 5.12 models/qwen3_vl: pos_embed is an nn.Embedding whose rows are weighed and summed up.
TEST_CASE("Qwen3-VL's table of positions is trained where pictures are seen") {
  const auto has_state = [](const char* pictures) {
    Issues issues;
    const Answer answer = engine().answer(parse_json(
        R"({"model":"Qwen/Qwen3-VL-2B-Instruct","sequence_length":512)" + std::string{pictures} + "}", "", issues));
    REQUIRE(answer.estimate);
    for (const BreakdownGroup& group : answer.estimate->breakdown) {
      for (const BreakdownEntry& entry : group.entries) {
        if (entry.name.find("visual.pos_embed: exp_avg") == 0) return true;
      }
    }
    return false;
  };
  CHECK(has_state(R"(,"images_per_sample":1)"));
  CHECK_FALSE(has_state(""));
}

/// A job of which the oracle has a record, with further words.
Answer recorded_job(const char* config, const std::string& options) {
  Issues issues;
  return engine().answer(parse_json(std::string{R"({"config":)"} + config + options + "}", "", issues));
}

TEST_CASE(
    "Llama 4 leaves padding out of its loss until 5.16, and the range reaches down to rows an eighth of which is "
    "padding") {
  const Answer answer = recorded_job(
      R"({"model_type":"llama4","architectures":["Llama4ForConditionalGeneration"],"tie_word_embeddings":false,
          "text_config":{"model_type":"llama4_text","attention_chunk_size":512,"head_dim":64,"hidden_size":512,
            "interleave_moe_layer_step":2,"intermediate_size":768,"intermediate_size_mlp":1536,
            "max_position_embeddings":4096,"num_attention_heads":8,"num_experts_per_tok":1,"num_hidden_layers":4,
            "num_key_value_heads":2,"num_local_experts":4,"use_qk_norm":true,"vocab_size":32000},
          "vision_config":{"model_type":"llama4_vision_model","hidden_size":256,"image_size":112,
            "intermediate_size":1024,"num_attention_heads":4,"num_hidden_layers":3,"patch_size":14,
            "pixel_shuffle_ratio":0.5,"projector_input_dim":512,"projector_output_dim":512,"vision_output_dim":512,
            "vision_feature_layer":-1}})",
      R"(,"precision":"pure_bf16","micro_batch_size":2,"sequence_length":256,"padding":true,"attention":"sdpa",
          "optimizer":"adamw_torch_fused","gpu":"A100-80GB",
          "framework":{"name":"transformers","version":"5.12"})");
  REQUIRE(answer.estimate);
  // The recorder's figures: a mask of ones, and one whose last eighth is 0.
  constexpr Bytes kOfOnes = 530771968, kEighthPadded = 520518144;
  const Range& range = answer.estimate->allocated;
  CHECK(std::abs(static_cast<double>(range.expected - kOfOnes)) < 0.002 * kOfOnes);
  CHECK(range.low < kEighthPadded);
  CHECK(std::any_of(answer.issues.begin(), answer.issues.end(),
                    [](const Issue& issue) { return issue.code == "ASSUMED_PADDING"; }));
}

TEST_CASE("the gradient of a re-entrant checkpoint lies in memory as its input does") {
  const Answer answer = recorded_job(
      R"({"model_type":"idefics3","architectures":["Idefics3ForSequenceClassification"],"scale_factor":4,"num_labels":3,
          "text_config":{"model_type":"llama","hidden_size":576,"intermediate_size":1536,"num_attention_heads":9,
            "num_hidden_layers":6,"num_key_value_heads":3,"max_position_embeddings":8192,"rope_theta":100000,
            "tie_word_embeddings":false,"vocab_size":49280,"pad_token_id":0},
          "vision_config":{"model_type":"siglip_vision_model","hidden_size":768,"intermediate_size":3072,
            "num_hidden_layers":3,"num_attention_heads":12,"patch_size":16,"image_size":512}})",
      R"(,"precision":"pure_fp16","micro_batch_size":4,"sequence_length":826,"padding":true,"attention":"sdpa",
          "images_per_sample":1,"image_tiles":5,"image_size":[512,512],"gradient_checkpointing":"full",
          "use_reentrant":true,"optimizer":"adamw_torch_fused","keep_outputs":true,"gpu":"A100-80GB")");
  REQUIRE(answer.estimate);
  constexpr Bytes kRecorded = 1584022528;
  CHECK(std::abs(static_cast<double>(answer.estimate->allocated.expected - kRecorded)) < 0.003 * kRecorded);
}

TEST_CASE("a map has no figure for lengths that do not hold the pictures") {
  for (const char* exact : {"true", "false"}) {
    Issues none;
    const Value map = parse_json(
        engine().handle(std::string{R"({"verb":"map","model":"smolvlm-256m-instruct","images_per_sample":8,)"
                                    R"("sequence_length":1024,"batches":[1,2],"sequences":[256,512,1024],"exact":)"} +
                        exact + "}"),
        "", none);
    const Value* rows = map.find("allocated");
    REQUIRE(rows != nullptr);
    for (const Value& row : rows->items) {
      CHECK(row.items.at(0).is_null());
      CHECK(row.items.at(1).is_integer());
      CHECK(row.items.at(2).is_integer());
    }
  }
}

TEST_CASE("more pictures and larger ones take more memory") {
  const auto peak = [](const std::string& options) {
    const Answer answer = ask(options);
    REQUIRE(answer.estimate);
    return answer.estimate->allocated.expected;
  };
  const Bytes one = peak(R"(,"images_per_sample":1)");
  CHECK(peak(R"(,"images_per_sample":2)") > one);
  CHECK(peak(R"(,"images_per_sample":1,"image_tiles":5)") > one);
}

}  // namespace
// Phi4MultimodalImageProcessor, transformers 5.12: num_img_tokens of pictures of these sizes; the published model_type.
TEST_CASE("Phi-4 multimodal fills tiles with a picture, and leaves out of its tokens what pads them") {
  const std::string seen =
      R"(,"model":"microsoft/Phi-4-multimodal-instruct","method":"lora","images_per_sample":1,"image_size":)";
  CHECK(least_length(seen + "[448,448]") == "545");
  CHECK(least_length(seen + "[640,480]") == "1073");
  CHECK(least_length(seen + "[480,640]") == "1065");
  CHECK(least_length(seen + "[3000,4000]") == "3393");
  CHECK(least_length(seen + "[2000,3000]") == "8748");
  CHECK(least_length(seen + "[5000,1000]") == "7953");
  Issues issues;
  const Answer answer = engine().answer(
      parse_json(R"({"config":{"model_type":"phi4mm","architectures":["Phi4MMForCausalLM"],"hidden_size":3072,
    "intermediate_size":8192,"num_hidden_layers":32,"num_attention_heads":24,"num_key_value_heads":8,
    "vocab_size":200064,"tie_word_embeddings":true,"partial_rotary_factor":0.75},"sequence_length":64,
    "method":"lora"})",
                 "", issues));
  REQUIRE(answer.estimate);
  CHECK(answer.estimate->parameters.base == 4743988032);
}

// Ernie4_5_VLMoeProcessor, transformers 5.12: 16 x 16 tokens, and one before and behind each picture.
TEST_CASE("ERNIE 4.5 VL counts the tokens around a picture as its own, and takes none beside packed weights") {
  const std::string ernie = R"(,"model":"baidu/ERNIE-4.5-VL-28B-A3B-PT","images_per_sample":2,"image_size":448)";
  CHECK(least_length(ernie + R"(,"method":"lora")") == std::to_string(2 * 258));
  Issues issues;
  CHECK_FALSE(
      engine().answer(parse_json(R"({"sequence_length":1024,"method":"qlora")" + ernie + "}", "", issues)).estimate);
}

// MiniCPMV4_6ImageProcessor of transformers 5.12, run on empty pictures: 16 patches of 14 pixels a token; three tokens
// number a picture, two stand around each piece, one between two rows of slices.
TEST_CASE("MiniCPM-V 4.6 cuts a large picture into slices of its shape, the whole before them") {
  const auto ask_minicpm = [](const std::string& size, Count length) {
    Issues issues;
    return engine().answer(parse_json(R"({"model":"openbmb/MiniCPM-V-4.6","images_per_sample":1,"image_size":)" + size +
                                          R"(,"sequence_length":)" + std::to_string(length) + "}",
                                      "", issues));
  };
  const auto needs = [&](const std::string& size, Count tokens) {
    return ask_minicpm(size, tokens).estimate && !ask_minicpm(size, tokens - 1).estimate;
  };
  CHECK(needs("448", 69));
  CHECK(needs("[384,512]", 68));
  CHECK(needs("[896,896]", 334));
  CHECK(needs("[1344,896]", 473));
  CHECK(needs("[1000,700]", 364));
  CHECK(needs("[2000,1500]", 655));
}

// ms-swift 3602360a swift/model/model_arch.py: minicpmv4_6, whose merger inside the tower is the tower's. Counts of the
// checkpoint's class.
TEST_CASE("MiniCPM-V 4.6's first merger is frozen with its tower") {
  const auto trained = [](const std::string& options) {
    Issues issues;
    const Answer answer = engine().answer(parse_json(
        R"({"model":"openbmb/MiniCPM-V-4.6","sequence_length":512,"images_per_sample":1)" + options + "}", "", issues));
    return answer.estimate ? answer.estimate->parameters.trainable : 0;
  };
  constexpr Count kTower = 522299312, kMerger = 25967104, kLanguage = 752161600;
  CHECK(trained(R"(,"freeze_vision":true)") == kMerger + kLanguage);
  CHECK(trained(R"(,"freeze_vision":true,"freeze_projector":true)") == kLanguage);
  CHECK(trained(R"(,"freeze_llm":true)") == kTower + kMerger);
}

// DeepseekOcr2ImageProcessor of transformers 5.12, run on empty pictures: 256 tokens of the page, 144 of each tile, and
// a separator.
TEST_CASE("DeepSeek-OCR 2 sees a page whole, and in tiles what is larger than one") {
  const std::string seen = R"(,"model":"deepseek-community/DeepSeek-OCR-2","images_per_sample":1,"image_size":)";
  CHECK(least_length(seen + "768") == std::to_string(257));
  CHECK(least_length(seen + "1024") == std::to_string(833));
  CHECK(least_length(seen + "[768,1536]") == std::to_string(545));
  CHECK(least_length(seen + "[2000,1400]") == std::to_string(1121));
  // Until transformers 5.13 DeepseekOcr2TextMoe.forward: F.linear by the router's packed weight ("a and b must have
  // same reduction dim").
  const auto is_packed = [&seen](const std::string& release) {
    Issues issues;
    const std::string job = R"({"sequence_length":1024,"method":"qlora","framework":{"version":")" + release + "\"}";
    return engine().answer(parse_json(job + seen + "768}", "", issues)).estimate.has_value();
  };
  CHECK_FALSE(is_packed("5.12"));
  CHECK(is_packed("5.13"));
}

// Totals of the checkpoints' own files (HF API, by llmfit 1.1.17), of EXAONE 4.5 without the layer of its MTP.
TEST_CASE("models that see and came last have as many parameters as published") {
  const auto counted = [](const std::string& model) {
    Issues issues;
    const Answer answer =
        engine().answer(parse_json(R"({"sequence_length":256,"model":")" + model + R"("})", "", issues));
    return answer.estimate ? answer.estimate->parameters.total : 0;
  };
  CHECK(counted("openbmb/MiniCPM-V-4.6") == 1300428016);
  CHECK(counted("deepseek-ai/DeepSeek-OCR-2") == 3389119360);
  CHECK(counted("LGAI-EXAONE/EXAONE-4.5-33B") == 34350097664 - 536110336);
  CHECK(counted("lkhl/VideoLLaMA3-2B-Image-HF") == 1959993584);
  CHECK(counted("lightonai/LightOnOCR-2-1B") == 1005647872);
  CHECK(counted("baidu/Qianfan-OCR") == 4741408256);
}

// What transformers 5.12's classes do with it, read in models/donut, models/swinv2, models/wavlm and models/beit.
TEST_CASE("what Swin's stages, WavLM and BEiT cannot do is refused with its reason") {
  const auto refused = [](const std::string& request) {
    Issues issues;
    const Answer answer = engine().answer(parse_json("{" + request + "}", "", issues));
    for (const Issue& issue : answer.issues) {
      if (issue.severity == Severity::kError) return issue.path;
    }
    return std::string();
  };
  // A picture whose last stage has fewer patches than the table of distances: its rows do not fit the scores.
  const std::string donut = R"("model":"naver-clova-ix/donut-base","sequence_length":64)";
  CHECK(refused(donut + R"(,"image_size":[320,320])").empty());
  CHECK(refused(donut + R"(,"image_size":[320,256])") == "/image_size");
  const std::string swin = R"("model":"microsoft/swinv2-tiny-patch4-window8-256","sequence_length":0)";
  const std::string checkpoints = R"(,"gradient_checkpointing":"full","use_reentrant":)";
  CHECK(refused(swin + R"(,"method":"lora")" + checkpoints + "false").empty());
  CHECK(refused(swin + R"(,"method":"lora")" + checkpoints + "true") == "/use_reentrant");
  CHECK(refused(swin + checkpoints + "true").empty());
  CHECK(refused(swin + R"(,"image_size":250)") == "/image_size");
  const std::string wave = R"("model":"microsoft/wavlm-base","sequence_length":0)";
  CHECK(refused(wave + R"(,"method":"lora")").empty());
  CHECK(refused(wave + R"(,"method":"qlora")") == "/method");
  CHECK(refused(wave + checkpoints + "true") == "/use_reentrant");
  const std::string beit = R"("model":"microsoft/beit-base-patch16-224","sequence_length":0)";
  CHECK(refused(beit + R"(,"image_size":320)").empty());
  CHECK(refused(beit + R"(,"attention":"flash_attention_2")") == "/attention");
}

TEST_CASE("Donut's page is no square, and labels end with its decoder's table") {
  Issues issues;
  const std::string donut = R"({"model":"naver-clova-ix/donut-base-finetuned-cord-v2","sequence_length":)";
  const Answer own = engine().answer(parse_json(donut + "512}", "", issues));
  const Answer same = engine().answer(parse_json(donut + R"(512,"image_size":[1280,960]})", "", issues));
  REQUIRE(own.estimate);
  REQUIRE(same.estimate);
  CHECK(own.estimate->allocated.expected == same.estimate->allocated.expected);
  const auto warned = [](const Answer& answer) {
    return std::any_of(answer.issues.begin(), answer.issues.end(), [](const Issue& issue) {
      return issue.code == "SEQUENCE_TOO_LONG" && issue.suggestion == "768";
    });
  };
  CHECK_FALSE(warned(own));
  CHECK(warned(engine().answer(parse_json(donut + "1024}", "", issues))));
}

}  // namespace tidemark
