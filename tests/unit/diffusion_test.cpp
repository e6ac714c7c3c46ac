// Diffusion models, against what is known of them without this engine: public counts, and what diffusers' scripts do.
#include <string>

#include "core/fit/combination.hpp"
#include "core/fit/lever.hpp"
#include "core/fit/peaks.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/asked.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Answer ask(const std::string& model, const std::string& options) {
  Issues issues;
  const std::string request = R"({"model": ")" + model + R"(", "precision": "bf16_amp")" + options + "}";
  CAPTURE(request);
  return engine().answer(parse_json(request, "", issues));
}

bool says(const Answer& a, std::string_view code, std::string_view path) {
  for (const Issue& issue : a.issues) {
    if (issue.code == code && issue.path == path) return true;
  }
  return false;
}

constexpr const char* kLora =
    R"(, "method": "lora", "adapter": {"r": 4, "lora_dropout": 0, "target_modules": ["to_k", "to_q", "to_v", "to_out.0"]})";

}  // namespace

// diffusers 0.42.1 models/modeling_utils.py: the example of num_parameters; the others as public logs have them.
TEST_CASE("denoisers have the published numbers of parameters", "[diffusion]") {
  for (const auto& [model, count] :
       {std::pair{"sd-1.5", Count{859520964}}, std::pair{"sdxl", Count{2567463684}},
        std::pair{"sd3-medium", Count{2028328000}}, std::pair{"flux.1-dev", Count{11901408320}},
        // diffusers' own classes of the published sizes, counted without memory
        std::pair{"flux.2-dev", Count{32223281152}}, std::pair{"flux.2-klein-9b", Count{9078581248}},
        std::pair{"flux.2-klein-4b", Count{3875544576}}, std::pair{"qwen-image", Count{20430401088}}}) {
    const Answer a = ask(model, kLora);
    REQUIRE(a.estimate);
    CHECK(a.estimate->parameters.total - a.estimate->parameters.trainable == count);
  }
}

TEST_CASE("adapters of rank 4 on Stable Diffusion 1.5 are as large as public files of them", "[diffusion]") {
  // Their files have 3.19 MB: 4 (8 + 2) 2 C + 2 (768 - C) 4 numbers for each of 16 transformers of width C, in fp32.
  const Answer a = ask("sd-1.5", kLora);
  REQUIRE(a.estimate);
  CHECK(a.estimate->parameters.trainable == 797184);
}

TEST_CASE("a text's length is a prompt's where none is given", "[diffusion]") {
  CHECK(says(ask("sdxl", kLora), "ASSUMED_DEFAULT", "/sequence_length"));
  CHECK_FALSE(
      says(ask("sdxl", std::string{kLora} + R"(, "sequence_length": 77)"), "ASSUMED_DEFAULT", "/sequence_length"));
}

TEST_CASE("what diffusers does otherwise is refused by name", "[diffusion]") {
  CHECK(says(ask("sdxl", R"(, "method": "qlora")"), "UNSUPPORTED_VALUE", "/method"));
  CHECK(says(ask("sdxl", R"(, "gradient_checkpointing": "full", "use_reentrant": true)"), "UNSUPPORTED_VALUE",
             "/use_reentrant"));
  CHECK(says(ask("flux.1-dev", R"(, "attention": "eager")"), "UNSUPPORTED_VALUE", "/attention"));
}

TEST_CASE("checkpointing and smaller pictures need less", "[diffusion]") {
  for (const char* model : {"sd-1.5", "sdxl", "sd3-medium", "flux.1-dev", "flux.2-klein-4b", "qwen-image"}) {
    const Answer plain = ask(model, kLora),
                 again = ask(model, std::string{kLora} + R"(, "gradient_checkpointing": "full")");
    const Answer small = ask(model, std::string{kLora} + R"(, "image_size": 256)");
    REQUIRE(plain.estimate);
    REQUIRE(again.estimate);
    REQUIRE(small.estimate);
    CHECK(again.estimate->allocated.expected < plain.estimate->allocated.expected);
    CHECK(small.estimate->allocated.expected < plain.estimate->allocated.expected);
  }
}

// Parameters as the repositories' safetensors have them: an autoencoder of Stable Diffusion, the text half of CLIP
// ViT-L/14, that of OpenCLIP bigG with its projection, T5-XXL's encoder.
TEST_CASE("frozen encoders beside a denoiser weigh what their files hold", "[diffusion]") {
  constexpr Bytes kVae = 83653863, kClipL = 123060480, kClipG = 694659840, kT5 = 4762310656;
  const auto near = [](const char* model, const char* option, Bytes numbers, Bytes each) {
    const Answer without = ask(model, kLora), with = ask(model, std::string{kLora} + option);
    REQUIRE(without.estimate);
    REQUIRE(with.estimate);
    const Bytes more = held(*with.estimate, Category::kWeights) - held(*without.estimate, Category::kWeights);
    CHECK(more >= numbers * each);
    CHECK(more < numbers * each + 512 * 1024);  // blocks of 512 bytes
  };
  near("sd-1.5", R"(, "vae": "mixed_precision")", kVae, 2);
  near("sd-1.5", R"(, "vae": "fp32")", kVae, 4);
  near("sd-1.5", R"(, "text_encoders": "frozen")", kClipL, 2);
  near("sdxl", R"(, "text_encoders": "frozen")", kClipL + kClipG, 2);
  near("flux.1-dev", R"(, "text_encoders": "frozen")", kClipL + kT5, 2);
  constexpr Bytes kQwenVae = 126892531, kFlux2Vae = 84046115, kQwen25Vl = 8292166656, kQwen3 = 4022468096;
  near("qwen-image", R"(, "vae": "mixed_precision")", kQwenVae, 2);
  near("qwen-image", R"(, "text_encoders": "frozen")", kQwen25Vl, 2);
  near("flux.2-klein-4b", R"(, "vae": "mixed_precision")", kFlux2Vae, 2);
  near("flux.2-klein-4b", R"(, "text_encoders": "frozen")", kQwen3, 2);
}

// diffusers 0.42 models/resnet.py: ResnetBlock2D.forward: as a block's sum is divided, what entered the level, what
// entered the block, its convolved form, the sum and the quotient are alive, each of 128 channels for every pixel.
TEST_CASE("the VAE's peak grows by five tensors of full size for each picture", "[diffusion]") {
  const auto forward = [](int pictures) {
    const Answer a = ask("sdxl", std::string{kLora} + R"(, "vae": "fp32", "gradient_checkpointing": "full",
      "micro_batch_size": )" + std::to_string(pictures));
    REQUIRE(a.estimate);
    return a.estimate->phase_live[static_cast<int>(Phase::kForward)];
  };
  const Bytes each = forward(4) - forward(3), tensor = Bytes{128} * 1024 * 1024 * 4;
  CHECK(each >= 5 * tensor);
  CHECK(each < 5 * tensor + tensor / 8);  // and the picture
}

// kohya-ss/sd-scripts 48d368f networks/lora.py: LoRANetwork prints "create LoRA for U-Net: 192 modules." of Stable
// Diffusion 1 and 722 of SDXL, as its users' logs have it; convolutions of 1 x 1 are among the first.
TEST_CASE("sd-scripts adapts what lies in a transformer of its U-Net", "[diffusion]") {
  const std::string kohya =
      R"(, "framework": {"name": "kohya"}, "method": "lora", "adapter": {"r": 16, "target_modules":
      ["proj_in", "proj_out", "to_q", "to_k", "to_v", "to_out.0", "ff.net.0.proj", "ff.net.2"]})";
  for (const auto& [model, modules] : {std::pair{"sd-1.5", Count{192}}, std::pair{"sdxl", Count{722}}}) {
    const Answer a = ask(model, kohya);
    REQUIRE(a.estimate);
    CHECK(a.estimate->parameters.adapted_modules == modules);
  }
  CHECK(says(ask("sdxl", kohya + R"(, "attention": "eager")"), "UNSUPPORTED_VALUE", "/attention"));
  // library/sdxl_original_unet.py: USE_REENTRANT = True; library/original_unet.py: use_reentrant=False.
  const std::string kept = kohya + R"(, "gradient_checkpointing": "full")";
  CHECK(ask("sdxl", kept).job.use_reentrant);
  CHECK_FALSE(ask("sd-1.5", kept).job.use_reentrant);
  CHECK(says(ask("sdxl", kept + R"(, "use_reentrant": false)"), "UNSUPPORTED_VALUE", "/use_reentrant"));
  CHECK(says(ask("sd-1.5", kept + R"(, "use_reentrant": true)"), "UNSUPPORTED_VALUE", "/use_reentrant"));
  CHECK(says(ask("flux.1-dev", R"(, "framework": {"name": "sd_scripts"}, "method": "lora")"), "STAND_IN", ""));
  CHECK(says(ask("llama-3.2-1b", R"(, "framework": {"name": "sd_scripts"})"), "UNSUPPORTED_VALUE", "/framework/name"));
}

TEST_CASE("encoders that mean nothing, or are trained, are told", "[diffusion]") {
  CHECK(says(ask("sd-1.5", kLora), "ASSUMED_DEFAULT", "/vae"));
  CHECK(says(ask("sd-1.5", std::string{kLora} + R"(, "text_encoders": "trained")"), "STAND_IN", ""));
  CHECK(says(ask("Qwen/Qwen3-0.6B", R"(, "vae": "fp32")"), "IGNORED_OPTION", "/vae"));
}

TEST_CASE("advice finds what makes a denoiser fit, though its weights cannot be packed", "[diffusion]") {
  const Answer a = ask(
      "sdxl", std::string{kLora} + R"(, "vae": "fp32", "text_encoders": "frozen", "gradient_checkpointing": "full")");
  REQUIRE(a.estimate);
  for (const Step& step : steps_of(Lever::kMethod, a.job, a.architecture))
    CHECK(step.title.find("QLoRA") == std::string::npos);
  Card card;
  card.visible = a.estimate->allocated.expected - 2 * kGiB;  // less than what the encoders take
  Peaks peaks(a.architecture);
  const Combination found = least_harm(peaks, a.job, card);
  CHECK(found.found);
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].lever == Lever::kEncoders);
}

TEST_CASE("making latents before is what advice offers where encoders work in each step", "[diffusion]") {
  const auto steps = [](const char* option) {
    const Answer a = ask("sdxl", std::string{kLora} + option);
    REQUIRE(a.estimate);
    return steps_of(Lever::kEncoders, a.job, a.architecture);
  };
  CHECK(steps("").empty());
  const auto both = steps(R"(, "vae": "fp32", "text_encoders": "frozen")");
  REQUIRE(both.size() == 1);
  CHECK(both[0].settings.size() == 2);
  CHECK(steps(R"(, "vae": "fp32")")[0].settings.size() == 1);
}

}  // namespace tidemark
