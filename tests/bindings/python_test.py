"""The Python package, from its wheel in an empty environment. python_test.py COMMAND"""
import html.parser
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings

import tidemark
from tidemark.trainer import PromiseCallback

COMMAND = sys.argv.pop()
JOB = {"method": "qlora", "sequence_length": 1024, "gpu": "4090"}


def by_command(request):
    run = subprocess.run([COMMAND, "estimate", "--request", "-", "--json"], input=json.dumps(request), capture_output=True, text=True)
    return json.loads(run.stdout or run.stderr)


class Answers(unittest.TestCase):
    def test_an_estimate_is_the_commands(self):
        job = tidemark.estimate("llama-3.2-1b", **JOB)
        self.assertEqual(job.raw, by_command({"model": "llama-3.2-1b", **JOB}))
        found = job.raw["estimate"]
        self.assertEqual(job.allocated.expected, found["allocated"]["expected"])
        self.assertEqual(sum(job.breakdown.values()), job.allocated.expected)
        self.assertEqual(job.parts[0].entries[0].source, found["breakdown"][0]["entries"][0]["source"])
        self.assertEqual(job.timeline[0].instant, found["timeline"][0]["instant"])
        self.assertEqual(job.fits[0].verdict, "fits")

    def test_other_cards(self):
        job = tidemark.estimate("llama-2-7b", **JOB)
        self.assertTrue(job.fits_gpu("A100-80GB"))
        self.assertFalse(job.fits_on_card(4))
        self.assertTrue(tidemark.fits("llama-3.2-1b", **JOB))
        self.assertFalse(tidemark.fits("llama-2-70b", gpu="4090"))

    def test_trouble_is_an_error_that_says_what_to_do(self):
        with self.assertRaises(tidemark.TidemarkError) as caught:
            tidemark.estimate("llama-3.2-1bb")
        self.assertEqual(caught.exception.issues[0].code, "UNKNOWN_MODEL")
        self.assertIn("Llama-3.2-1B", str(caught.exception))
        self.assertIn("UNKNOWN_KEY", [issue.code for issue in tidemark.estimate("gpt2", sequenze_length=7).issues])

    def test_a_count_alone_as_ghost_scan_takes_it(self):
        report = tidemark.ghost(param_count_b=7.0, dtype="bf16", batch_size=1, seq_len=2048)
        self.assertGreater(report.total_gb, 4 * 2 * report.parameters["total"] / 1e9)  # weights, gradients and both moments in bf16
        self.assertIn("ASSUMED_ARCHITECTURE", [issue.code for issue in report.issues])
        self.assertTrue(report.fits_gpu("H200"))

    def test_advice_makes_it_fit(self):
        advice = tidemark.advise("llama-3.2-3b", gpu="4090", micro_batch_size=8)
        self.assertFalse(advice.fits)
        self.assertTrue(advice.found and advice.changes)
        self.assertLessEqual(advice.allocated.expected, 24 * 2**30)
        self.assertTrue(tidemark.advise("gpt2", gpu="4090").fits)

    def test_any_verb_by_ask(self):
        self.assertEqual(tidemark.ask({"verb": "version"})["engine"], tidemark.__version__)
        self.assertTrue(tidemark.ask({"verb": "catalog", "list": "gpus", "pattern": "4090"})["gpus"])

    def test_questions_from_several_threads(self):
        expected, found = tidemark.estimate("gpt2").allocated, []
        threads = [threading.Thread(target=lambda: found.append(tidemark.estimate("gpt2").allocated)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 8)


class Files(unittest.TestCase):
    def test_a_configuration_is_read_with_its_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.yaml"
            path.write_text("base_model: meta-llama/Llama-3.2-1B\nadapter: lora\nlora_r: 8\nmicro_batch_size: 2\nsequence_len: 512\n")
            read = tidemark.import_file(path)
        self.assertEqual(read.request["adapter"]["r"], 8)
        self.assertEqual(read.provenance["micro_batch_size"][0]["lines"], [4, 4])
        self.assertGreater(tidemark.estimate(**read.request).allocated.expected, 0)

    def test_what_is_no_job_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "note.txt"
            path.write_text("hello\n")
            self.assertRaises(tidemark.TidemarkError, tidemark.import_file, path)


class Notebook(unittest.TestCase):
    def test_html_is_closed_and_escaped(self):
        open_tags = []

        class Parser(html.parser.HTMLParser):
            def handle_starttag(self, tag, attrs):
                open_tags.append(tag)

            def handle_endtag(self, tag):
                self.last = open_tags.pop()
                assert self.last == tag, (self.last, tag)

        text = tidemark.estimate("llama-3.2-1b", **JOB)._repr_html_()
        Parser().feed(text)
        self.assertEqual(open_tags, [])
        self.assertIn("RTX 4090", text)
        config = by_command({"model": "gpt2"}) and {"model_type": "gpt2", "architectures": ["<b>Evil"]}
        try:
            self.assertNotIn("<b>Evil", tidemark.estimate(config=config)._repr_html_())
        except tidemark.TidemarkError:
            pass


class Trainer(unittest.TestCase):
    """The callback's calls as transformers' Trainer makes them, with counters in place of a card's."""

    def run_with(self, allocated):
        promise = tidemark.estimate("gpt2", sequence_length=256)
        promise_cache = promise.reserved.expected - promise.allocated.expected
        cuda = types.SimpleNamespace(is_available=lambda: True, reset_peak_memory_stats=lambda device: None,
                                     max_memory_allocated=lambda device: allocated(promise),
                                     max_memory_reserved=lambda device: allocated(promise) + 2 * promise_cache)
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        self.addCleanup(sys.modules.pop, "torch")
        callback = PromiseCallback(promise)
        callback.on_train_begin(None, None, None)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(3):
                callback.on_step_end(None, None, None)
        return callback, told

    def test_a_run_as_promised(self):
        callback, told = self.run_with(lambda promise: promise.allocated.expected)
        self.assertEqual(told, [])
        self.assertIn("(+0.0 %)", callback.comparison())

    def test_a_run_that_takes_more_is_told_once(self):
        callback, told = self.run_with(lambda promise: 2 * promise.allocated.expected)
        self.assertEqual(len(told), 1)
        self.assertIn("more than", str(told[0].message))
        self.assertIn("(-50.0 %)", callback.comparison())

    def test_what_it_measured_calibrates(self):
        callback, _ = self.run_with(lambda promise: promise.allocated.expected)
        calibration = tidemark.calibrate([callback.measurement()])
        self.assertAlmostEqual(calibration["factors"]["fragmentation"], 2, 3)
        codes = [issue.code for issue in tidemark.estimate("gpt2", sequence_length=256, calibration=calibration).issues]
        self.assertIn("CALIBRATED", codes)


class Wheel(unittest.TestCase):
    def test_the_command_is_in_it(self):
        command = pathlib.Path(sys.executable).parent / "tidemark"
        run = subprocess.run([command, "version"], capture_output=True, text=True)
        self.assertIn(tidemark.__version__, run.stdout)

    def test_types_and_licences_are_in_it(self):
        folder = pathlib.Path(tidemark.__file__).parent
        for name in ("py.typed", "LICENSE", "THIRD_PARTY_NOTICES.txt"):
            self.assertTrue((folder / name).is_file(), name)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)
