"""torchao's float8 training: `float8` "tensorwise" or "rowwise", every linear layer but the head, without torch.compile."""
import os
import sys



def convert(model, job):
    if not job.get("float8"):
        return
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "optimizers"))     # torchao 0.18
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    head = model.get_output_embeddings()
    convert_to_float8_training(model, config=Float8LinearConfig.from_recipe_name(job["float8"]),
                               module_filter_fn=lambda m, name: m is not head and m.in_features % 16 == 0 and m.out_features % 16 == 0)
