"""Model code that lies beside weights on the Hugging Face Hub: third_party/remote/<name>/{configuration,modeling}_*.py, as published.

A job's `remote` names the folder.  What these files want of the releases that they were written for and transformers 5 no longer has
is put back here; nothing of it allocates.
"""
import glob
import importlib
import os
import sys

import transformers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "remote")


def module_of(name, part):
    path = glob.glob(os.path.join(FOLDER, name, f"{part}_*.py"))[0]
    return importlib.import_module(f"{name}.{os.path.basename(path)[:-3]}")


def put_back():
    pre = transformers.modeling_utils.PreTrainedModel
    config = transformers.PretrainedConfig
    config.use_return_dict = property(lambda self: True)
    utils = transformers.utils
    for name in ("add_start_docstrings", "add_start_docstrings_to_model_forward", "replace_return_docstrings", "add_code_sample_docstrings"):
        if not hasattr(utils, name):
            setattr(utils, name, lambda *a, **k: lambda fn: fn)
    if not hasattr(pre, "all_tied_weights_keys"):
        pre.all_tied_weights_keys = {}


def classes(name, arch):
    """The configuration class and the model's class."""
    for folder in (FOLDER, os.path.join(FOLDER, name)):              # some files import one another by their bare names
        if folder not in sys.path:
            sys.path.insert(0, folder)
    put_back()
    modeling = module_of(name, "modeling")
    config = next(value for value in vars(module_of(name, "configuration")).values()
                  if isinstance(value, type) and issubclass(value, transformers.PretrainedConfig) and vars(value).get("model_type"))
    if hasattr(modeling, "skip_init"):                             # makes modules without device twice
        modeling.skip_init = lambda cls, *args, **kwargs: cls(*args, **kwargs)
    model = getattr(modeling, arch)
    model.all_tied_weights_keys = {}
    return config, model
