"""Tests of what the table decides: which peer counts, what a missing or a wrong contender changes,
and when a bar is met. No time is measured. tests/check/gpu.sh runs them."""

import contextlib
import inspect
import io
import types
import unittest

import contenders
import fake_packages
import rows_attention
import rows_host
import rows_memory
import rows_models
import rows_replicas
from fake_torch import FakeTorch
from measure import Clock, Series, Table
from packages import FlashAttention, Package, Quack


def timer(us):
    return lambda count: us


class Function:
    """A contender's function: its result, or its error, and the time that it takes."""

    def __init__(self, us, result=0.0, error=None):
        self.us, self.result, self.error = us, result, error

    def __call__(self):
        if self.error:
            raise self.error
        return self.result


class FakePeer:
    """What contenders.py uses of Peer. distance() is the difference of two numbers."""

    missing, compiles = None, True

    def __init__(self):
        self.enabled = None  # the backend of SDPA
        backends = types.SimpleNamespace(FLASH_ATTENTION="FLASH", CUDNN_ATTENTION="CUDNN",
                                         EFFICIENT_ATTENTION="EFFICIENT", MATH="MATH")
        attention = types.SimpleNamespace(SDPBackend=backends, sdpa_kernel=self.sdpa_kernel)
        nn = types.SimpleNamespace(attention=attention)
        self.torch = types.SimpleNamespace(nn=nn)

    @contextlib.contextmanager
    def sdpa_kernel(self, chosen):
        self.enabled, = chosen
        yield
        self.enabled = None

    def events(self, run):
        return lambda count: run.us

    def distance(self, got, want):
        return abs(got - want)

    def compiled(self, function, *arguments, again=False):
        if function.error:
            raise function.error
        return function


class TableTest(unittest.TestCase):
    def setUp(self):
        self.t = types.SimpleNamespace(dry=False, table=Table(False, {}), clock=Clock(True),
                                       peer=FakePeer(), turns=lambda sets, f: f)
        self.printed = io.StringIO()
        redirect = contextlib.redirect_stdout(self.printed)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def verdicts(self):
        return {row["name"]: row["verdict"] for row in self.t.table.rows}

    def series(self, **us):
        return self.t.clock.interleave({name: timer(value) for name, value in us.items()})


class Ratio(TableTest):
    def test_the_fastest_peer_counts_and_is_named(self):
        series = self.series(braid=10, slow=30, fast=5, other=1)
        r = self.t.table.ratio("row", series, "braid", ("slow", "fast"), 0.5)
        self.assertEqual(r, 0.5)  # `other` is shown and does not count
        self.assertIn("of fast", self.printed.getvalue())
        self.assertEqual(self.t.table.rows[0]["peer"], "fast")
        self.assertEqual(self.verdicts(), {"row": "PASS"})
        self.t.table.ratio("missed", series, "braid", ("slow", "fast"), 0.51)
        self.assertEqual(self.verdicts()["missed"], "FAIL")
        self.assertTrue(self.t.table.failed)

    def test_without_a_bar_there_is_no_verdict(self):
        self.t.table.ratio("row", self.series(braid=10, peer=1), "braid", ("peer",))
        self.assertEqual(self.verdicts(), {"row": "INFO"})
        self.assertNotIn("bar", self.printed.getvalue())
        self.assertFalse(self.t.table.failed)

    def test_without_a_peer_it_is_a_skip(self):
        self.t.table.ratio("row", self.series(braid=10), "braid", ("peer",), 0.5, "no PyTorch")
        self.assertEqual(self.verdicts(), {"row": "SKIP(no PyTorch)"})


class Check(TableTest):
    def test_the_error_has_to_be_within_both_limits(self):
        errors = {"exact": 1e-7, "tf32": 3e-4, "wrong": 2e-3, "nan": float("nan")}
        right = [name for name, e in errors.items() if self.t.table.check(name, e, 1e-3, 1e-4)]
        self.assertEqual(right, ["tf32"])
        self.assertEqual(self.verdicts(), {"exact": "FAIL", "wrong": "FAIL", "nan": "FAIL"})
        self.assertIn("error 1e-07, expected at least 0.0001", self.printed.getvalue())

    def test_a_dry_run_has_only_the_upper_limit(self):
        self.t.table.dry = True
        self.assertTrue(self.t.table.check("exact", 1e-7, 1e-3, 1e-4))
        self.assertFalse(self.t.table.check("wrong", 2e-3, 1e-3, 1e-4))


class Packages(TableTest):
    def importing(self, error):
        def load(name):
            raise error
        return load

    def test_an_absent_package_is_said(self):
        package = Package("quack", self.importing(ModuleNotFoundError(name="quack")))
        self.assertEqual(package.said(), "quack: absent")
        # one that is there and lacks another is not absent
        package = Package("quack", self.importing(ModuleNotFoundError(name="cutlass")))
        self.assertEqual(package.said(), "quack: quack lacks cutlass")

    def test_a_package_that_cannot_be_imported_is_said(self):
        package = Package("flash_attn", self.importing(OSError("undefined symbol")))
        self.assertEqual(package.said(), "flash_attn: flash_attn: OSError: undefined symbol")

    def test_the_version_is_said(self):
        package = Package("quack", lambda name: types.SimpleNamespace(__version__="0.6.5"))
        self.assertEqual((package.missing, package.said()), (None, "quack 0.6.5"))

    def add(self, make):
        timers = {}
        package = Package("quack", lambda name: types.SimpleNamespace())
        contenders.add_package(self.t, "row", timers, package, make, 0.0, 0.1)
        return timers

    def test_a_package_is_a_contender(self):
        self.assertEqual(self.add(lambda package: Function(7))["quack"](1), 7)
        self.assertEqual(self.verdicts(), {})

    def test_an_error_is_said_and_stops_nothing(self):
        for make in (lambda package: Function(7, error=AssertionError("Weight must be float32")),
                     lambda package: package.module("quack.rmsnorm").layernorm_bwd):
            self.t.table.rows.clear()
            self.assertEqual(self.add(make), {})
            verdict = self.verdicts()["row.quack"]
            self.assertRegex(verdict, r"^SKIP\((AssertionError: Weight must be|AttributeError: )")
        self.assertFalse(self.t.table.failed)

    def test_a_wrong_result_is_not_timed(self):
        self.assertEqual(self.add(lambda package: Function(7, result=0.2)), {})
        self.assertEqual(self.verdicts(), {"row.quack": "FAIL"})

    def test_an_error_ends_a_dry_run(self):
        self.t.dry = True
        with self.assertRaises(AssertionError):
            self.add(lambda package: Function(7, error=AssertionError("x")))

    def test_a_missing_package_is_not_called(self):
        package = Package("quack", self.importing(ModuleNotFoundError(name="quack")))
        contenders.add_package(self.t, "row", {}, package, None, 0.0, 0.1)
        self.assertEqual(self.verdicts(), {})

    def test_the_calls_fit_the_signatures(self):
        x = FakeTorch()
        importing = fake_packages.fake_packages(x)
        quack, flash = Quack(importing), FlashAttention(importing)
        for run in (quack.softmax(x), quack.cross_entropy(x, x), quack.rms_norm(x, x, 1e-6),
                    quack.layer_norm(x, x, x, 1e-5), quack.layer_norm_backward(x, x, x, x, 1e-5),
                    flash.causal(x, x, x), flash.causal_gradients(x, x, x, x, x)):
            self.assertIsNotNone(run())
        parameters = inspect.signature(importing("flash_attn").flash_attn_func).parameters
        self.assertEqual(list(parameters)[:6], ["q", "k", "v", "dropout_p", "softmax_scale",
                                                "causal"])


class Backends(TableTest):
    def add(self, times, right=0.0):
        """times: of each backend, or the error that it raises."""
        def make():
            found = times[self.t.peer.enabled]
            return found if isinstance(found, Function) else Function(found)

        timers = {}
        names = contenders.add_backends(self.t, "row", timers, make, right, 0.1)
        return names, {n: f(1) for n, f in timers.items()}

    def test_each_backend_is_a_contender(self):
        names, us = self.add({"FLASH": 3, "CUDNN": 2, "EFFICIENT": 4})
        self.assertEqual(names, ["sdpa.flash", "sdpa.cudnn", "sdpa.efficient"])
        self.assertEqual(us, {"sdpa.flash": 3, "sdpa.cudnn": 2, "sdpa.efficient": 4})

    def test_an_unavailable_backend_is_said(self):
        missing = Function(0, error=RuntimeError("No available kernel. Aborting execution."))
        names, _ = self.add({"FLASH": 3, "CUDNN": missing, "EFFICIENT": 4})
        self.assertEqual(names, ["sdpa.flash", "sdpa.efficient"])
        self.assertRegex(self.verdicts()["row.sdpa.cudnn"], "No available kernel")

    def test_a_wrong_backend_is_not_timed(self):
        names, _ = self.add({"FLASH": 3, "CUDNN": Function(1, result=1.0), "EFFICIENT": 4})
        self.assertEqual(names, ["sdpa.flash", "sdpa.efficient"])
        self.assertEqual(self.verdicts(), {"row.sdpa.cudnn": "FAIL"})

    def test_only_that_backend_is_enabled_while_it_is_timed(self):
        seen = []

        class Watched(Function):
            @property
            def us(this):
                seen.append(self.t.peer.enabled)
                return 1

            @us.setter
            def us(this, value):
                pass

        self.add({name: Watched(1) for name in ("FLASH", "CUDNN", "EFFICIENT")})
        self.assertEqual(seen, ["FLASH", "CUDNN", "EFFICIENT"])
        self.assertIsNone(self.t.peer.enabled)

    def test_the_bar_is_beside_the_fastest_backend_alone(self):
        timers = {"braid": timer(10), "sdpa.flash": timer(8), "sdpa.cudnn": timer(4),
                  "flash_attn": timer(1)}
        rows_attention.compare(self.t, "G9", timers, ["sdpa.flash", "sdpa.cudnn"], 0.35)
        self.assertEqual(self.verdicts(), {"G9": "PASS", "G9.flash_attn": "INFO"})
        self.assertEqual([row["value"] for row in self.t.table.rows], [0.4, 0.1])


class Compiled(TableTest):
    def test_why_it_is_missing(self):
        broken, timers = Function(1, error=ImportError("no triton")), {}
        reason = contenders.add_compiled(self.t, timers, broken, [[]])
        self.assertEqual((reason, timers), ("torch.compile: ImportError: no triton", {}))
        self.t.peer.compiles = False
        self.assertEqual(contenders.add_compiled(self.t, timers, Function(1), [[]]),
                         "--no-compile")

    def test_the_function_made_of_it_is_timed(self):
        timers = {}
        self.assertIsNone(contenders.add_compiled(self.t, timers, Function(1), [[]],
                                                  lambda fast: Function(fast.us + 1)))
        self.assertEqual(timers["compile"](1), 2)


class Bars(TableTest):
    def small(self):
        self.t.peer.wall = lambda run: timer(run.us)
        usual, captured = (types.SimpleNamespace(wall=timer(us)) for us in (10, 4))
        rows_host.small(self.t, "G6s", usual, captured, lambda: Function(50))

    def test_small_backward_has_a_verdict_for_each_peer(self):
        for us, verdict in ((6, "PASS"), (5, "FAIL")):  # beside the captured work alone
            self.t.table.rows.clear()
            self.t.peer.graph = lambda make, us=us: Function(us)
            self.small()
            self.assertEqual(self.verdicts(), {"G6s.eager": "PASS", "G6s.graph": verdict})

    def test_a_graph_that_cannot_be_captured_is_said(self):
        def refuse(make):
            raise RuntimeError("capture")
        self.t.peer.graph = refuse
        self.small()
        self.assertRegex(self.verdicts()["G6s.graph"], r"^SKIP\(torch's CUDA graph: RuntimeError")

    def test_layer_norm_backward_needs_1_4_of_eager(self):
        series = self.series(braid=10, eager=13, compile=5, quack=5, copy=1)
        rows_memory.compare(self.t, "G8b", series, None, {"eager": 1.4})
        self.assertEqual(self.verdicts(), {"G8b.eager": "FAIL", "G8b.compile": "INFO",
                                           "G8b.quack": "INFO"})

    def test_an_absent_quack_has_no_row(self):
        rows_memory.compare(self.t, "G8c", self.series(braid=10, eager=20), "--no-compile",
                            {"eager": 1.1, "compile": 0.95})
        self.assertEqual(self.verdicts(), {"G8c.eager": "PASS",
                                           "G8c.compile": "SKIP(--no-compile)"})

    def test_share_of_the_copy(self):
        series = self.series(braid=10, copy=10, eager=1)
        rows_memory.share_of_copy(self.t, "met", series, 85, 100, 0.85)
        rows_memory.share_of_copy(self.t, "missed", series, 84, 100, 0.85)
        rows_memory.share_of_copy(self.t, "without a bar", series, 1, 100)
        self.assertEqual(self.verdicts(), {"met": "PASS", "missed": "FAIL",
                                           "without a bar": "INFO"})

    def test_an_error_ends_only_its_case(self):
        def case(t, name, works):
            if not works:
                raise AttributeError("no rms_norm")
            t.table.figure(name, "")
        cases = [(name, case, (name, name != "broken")) for name in ("broken", "next")]
        rows_memory.each(self.t, cases)
        self.assertEqual(self.verdicts(), {"broken": "FAIL", "next": "INFO"})
        self.t.dry = True
        with self.assertRaises(AttributeError):
            rows_memory.each(self.t, cases)

    def test_eager_pytorch_may_lack_a_function(self):
        rows_memory.compare(self.t, "G8c", self.series(braid=10, quack=5), "no rms_norm", {},
                            "no rms_norm")
        self.assertEqual(self.verdicts(), {"G8c.eager": "SKIP(no rms_norm)",
                                           "G8c.compile": "SKIP(no rms_norm)",
                                           "G8c.quack": "INFO"})

    def test_memory_beside_pytorch(self):
        rows_models.memory(self.t, 90, 100)
        self.assertEqual(self.verdicts(), {"gpt2.memory": "PASS"})
        rows_models.memory(self.t, 91, 100)
        self.assertEqual(self.verdicts(), {"gpt2.memory": "FAIL"})

    def test_overhead_of_the_layer(self):
        rows_replicas.overhead(self.t, "met", self.series(plain=100, layer=104))
        rows_replicas.overhead(self.t, "missed", self.series(plain=100, layer=106))
        self.assertEqual(self.verdicts(), {"met": "PASS", "missed": "FAIL"})

    def test_predictions_may_be_wrong_both_ways(self):
        def step(devices, us, predicted):
            return {"devices": devices, "rows": 8, "us": us, "noise": 0.0,
                    "predicted_us": predicted}
        rows_replicas.predictions(self.t, [step(1, 100, 1), step(2, 100, 134), step(3, 100, 64),
                                           step(4, 100, 0)])
        self.assertEqual(self.verdicts(), {"G16.n2.8": "PASS", "G16.n3.8": "FAIL",
                                           "G16.n4.8": "FAIL"})


class Noise(unittest.TestCase):
    def test_it_is_that_of_the_turns_of_a_round(self):
        series = Series()
        series.us = [10, 11, 20, 22]
        self.assertAlmostEqual(series.noise(), 0.1)


if __name__ == "__main__":
    unittest.main()
