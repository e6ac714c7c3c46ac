#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kLibraries[] = {
    {"auto", 0, "as config.json says"},
    {"transformers", 1, "transformers"},
    {"diffusers", 2, "diffusers"},
};

constexpr Option kOptions[] = {
    text("model", "null", "Model", "Catalog id or alias, letters' case ignored: meta-llama/Llama-2-7b-hf, llama-2-7b.")
        .from("models")
        .spelled("-m")
        .known_as("model_name_or_path,base_model,model_id")
        .sets([](Request& r, const OptionValue& v) { r.model = v.text; }),
    of_type(OptionType::kDocument, "config", "null", "Configuration",
            "A Hugging Face config.json, as it is (on the command line: the file's path, - for standard input).")
        .sets([](Request& r, const OptionValue& v) { r.config = *v.document; }),
    real("parameters", "null", "Number of parameters",
         "Only a parameter count: a published architecture of that class is assumed, and the answer says which.")
        .within(1e5, 1e13, "parameters")
        .counted()
        .spelled("--params")
        .sets([](Request& r, const OptionValue& v) { r.parameters = v.real; }),
    text("architecture", "null", "Class of the model",
         "Class name, where the head that is trained is not config.json's: BertForSequenceClassification.")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.class_name = v.text; }),
    // The class says whose it is: both are read alike.
    choice("library", "\"auto\"", kLibraries, "Library", "Whose configuration it is; the class says so, too.")
        .further()
        .sets([](Request&, const OptionValue&) {}),
    refused("model_trace", "Recorded module", "A recorded nn.Module of one's own.",
            "What `tidemark trace` recorded is given as \"config\": tidemark estimate --config my-model.json."),
};

}  // namespace

constinit const Topic kModelTopic{{"model", "Model", true}, kPacked<kOptions>};

}  // namespace tidemark
