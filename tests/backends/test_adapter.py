"""Test-time adaptation in PyTorch, held against loops written here as the papers say."""

import copy

import numpy as np
import onnx
import pytest
import tiny
import torch
from onnx import helper

from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError
from simulator.profile.implementations import implementation

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
COMMON = {"threads": 1, "batch": 8, "order": "listed", "seed": 0}
TENT = {
    **COMMON, "method": "tent", "steps": 1, "learning_rate": 0.02, "optimizer": "adam",
    "reset": "never",
}  # fmt: skip
SGD = {**TENT, "optimizer": "sgd", "learning_rate": 0.1}


class RootMeanSquare(torch.nn.Module):
    """Zhang and Sennrich, 2019, equation 4, as language models write it."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, values):
        share = torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (values * share)


NORMS = (
    torch.nn.BatchNorm2d, torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.InstanceNorm2d,
    torch.nn.RMSNorm, RootMeanSquare,
)  # fmt: skip


class Other(torch.nn.Module):
    """A convolution, a normalization over channels, and a linear layer."""

    def __init__(self, norm):
        super().__init__()
        self.conv, self.norm, self.head = torch.nn.Conv2d(3, 6, 3), norm, torch.nn.Linear(6, 5)
        self.pool = torch.nn.AdaptiveAvgPool2d(1)

    def forward(self, values):
        values = self.conv(values)
        if isinstance(self.norm, (torch.nn.GroupNorm, torch.nn.InstanceNorm2d)):
            values = self.norm(values)
        else:
            values = self.norm(values.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.head(self.pool(torch.relu(values)).flatten(1))


class Net(torch.nn.Module):
    """Two convolutions with normalizations of their own, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(3, 6, 3, bias=False), torch.nn.Conv2d(6, 4, 3, 2)
        self.first, self.second = torch.nn.BatchNorm2d(6), torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, values):
        values = torch.relu(self.first(self.one(values)))
        return self.head(torch.relu(self.second(self.two(values))).mean((2, 3)))


@pytest.fixture
def net():
    """A network whose stored statistics are those of other inputs."""
    torch.manual_seed(3)
    made = Net()
    for norm in (made.first, made.second):
        torch.nn.init.uniform_(norm.weight, 0.5, 2)
        torch.nn.init.uniform_(norm.bias, -1, 1)
    with torch.no_grad():
        made.train()(torch.randn(64, 3, 10, 10) * 2 + 1)
    return made.eval()


@pytest.fixture
def path(net, tmp_path):
    """The same network as an ONNX file."""
    return exported(net, tmp_path / "net.onnx")


def exported(net, target, opset=17):
    torch.onnx.export(
        net, (torch.zeros(1, 3, 10, 10),), target, dynamo=False, opset_version=opset,
        input_names=["x"], output_names=["y"], do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
    )  # fmt: skip
    return target


def batches(sizes=(8, 8, 8, 5)):
    """Inputs, float32; the last batch is smaller."""
    random = np.random.default_rng(5)
    return [random.normal(0.5, 1.5, (size, 3, 10, 10)).astype(np.float32) for size in sizes]


def adapter(options):
    return implementation(Stage.ADAPT, registry.backend("onnx2torch"), options).make()


def answered(path, options, given, **more):
    made = adapter(options)
    made.open(path, given[0], "y", **more)
    return [made.answer(batch)["y"] for batch in given]


def tent(net, options, given):
    """TENT as in Wang et al., Algorithm and section 3.2, on the plain network."""

    def begun():
        adapting = copy.deepcopy(net).train()
        parameters = []
        for module in adapting.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.track_running_stats = False
                module.running_mean = module.running_var = None
            if isinstance(module, NORMS):
                parameters += module.parameters()
        if options["optimizer"] == "adam":
            return adapting, torch.optim.Adam(parameters, lr=options["learning_rate"])
        return adapting, torch.optim.SGD(
            parameters, lr=options["learning_rate"], momentum=0.9, nesterov=True
        )

    adapting, optimizer = begun()
    found = []
    for batch in given:
        if options["reset"] == "batch":
            adapting, optimizer = begun()
        for _ in range(options["steps"]):
            outputs = adapting(torch.from_numpy(batch))
            shares = torch.softmax(outputs, 1)
            optimizer.zero_grad()
            (-(shares * torch.log(shares)).sum(1)).mean().backward()
            optimizer.step()
        found.append(outputs.detach().numpy())
    return found


@pytest.mark.parametrize(
    "options",
    [
        TENT,
        {**TENT, "steps": 3},
        {**TENT, "steps": 3, "reset": "batch"},
        SGD,
        {**SGD, "steps": 2, "reset": "batch"},
    ],
)
def test_tent_is_the_loop_of_the_paper(net, path, options):
    given = batches()

    found, wanted = answered(path, options, given), tent(net, options, given)

    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("norm", "opset", "as_exported", "operator"),
    [
        (torch.nn.LayerNorm(6), 17, None, "LayerNormalization"),
        (torch.nn.LayerNorm(6), 14, None, "ReduceMean"),
        (RootMeanSquare(6), 17, None, "ReduceMean"),
        (torch.nn.GroupNorm(2, 6), 17, None, "InstanceNormalization"),
        (torch.nn.InstanceNorm2d(6, affine=True), 17, None, "InstanceNormalization"),
        (torch.nn.RMSNorm(6, 1e-5), 17, torch.nn.LayerNorm(6), "RMSNormalization"),
        (
            torch.nn.GroupNorm(2, 6),
            17,
            torch.nn.InstanceNorm2d(6, affine=True),
            "GroupNormalization",
        ),
    ],
)
def test_every_affine_normalization_learns_as_in_the_loop(
    norm, opset, as_exported, operator, tmp_path
):
    """PyTorch's exporter without dynamo lacks two operators: they take the place of another."""
    torch.manual_seed(3)
    net = Other(norm)
    for parameter in norm.parameters():
        torch.nn.init.uniform_(parameter, 0.5, 2)
    path = exported(
        net if as_exported is None else Other(as_exported), tmp_path / "net.onnx", opset
    )
    if as_exported is not None:
        replace(path, operator, net)
    assert operator in {node.op_type for node in onnx.load(path).graph.node}
    given, options = batches(), {**TENT, "steps": 2}

    found, wanted = answered(path, options, given), tent(net, options, given)

    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    still = net(torch.from_numpy(given[-1])).detach().numpy()
    assert np.abs(found[-1] - still).max() > 0.01


def replace(path, operator, net):
    """Write another normalization's operator in place of the file's, with a network's weights."""
    model, held = onnx.shape_inference.infer_shapes(onnx.load(path)), net.state_dict()
    (node,) = (one for one in model.graph.node if one.op_type.endswith("Normalization"))
    node.op_type = operator
    if operator == "RMSNormalization":
        del node.input[2]
    else:
        node.attribute.append(helper.make_attribute("num_groups", 2))
    for tensor in model.graph.initializer:
        if tensor.name in held:
            tensor.CopyFrom(onnx.numpy_helper.from_array(held[tensor.name].numpy(), tensor.name))
    model.opset_import[0].version = 23
    onnx.save(model, path)


def test_only_scales_and_shifts_learn(net, path):
    made = adapter(SGD)
    made.open(path, batches()[0], "y")
    for batch in batches():
        made.answer(batch)

    held = [*made._module.parameters(), *made._module.buffers()]
    assert sorted(tuple(p.shape) for p in made._affine) == [(4,), (4,), (6,), (6,)]
    assert not any(p.requires_grad for p in held)
    for weight in (p for p in net.parameters() if p.ndim > 1):
        assert any(p.shape == weight.shape and torch.equal(p, weight) for p in held)


class Scale(torch.nn.Module):
    """A scale of each channel."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 2, width).reshape(-1, 1, 1))

    def forward(self, values):
        return self.weight * values


@pytest.mark.parametrize("apart", [False, True])
def test_batch_norm_adaptation_is_the_training_mode_of_torch(net, path, apart, tmp_path):
    """Also where the scale stands behind the operator, whose own are ones and zeros."""
    given = batches()
    if apart:
        net.first = torch.nn.Sequential(torch.nn.BatchNorm2d(6), Scale(6))
        with torch.no_grad():
            net.train()(torch.randn(64, 3, 10, 10) * 2 + 1)
        path = exported(net.eval(), tmp_path / "apart.onnx")

    found = answered(path, {**COMMON, "method": "batch_norm"}, given)

    for one, batch in zip(found, given, strict=True):
        with torch.no_grad():
            wanted = copy.deepcopy(net).train()(torch.from_numpy(batch)).numpy()
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)


def test_one_episode_of_one_step_answers_as_batch_norm_adaptation(path):
    """The authors' code answers before the step."""
    given = batches()

    episodic = answered(path, {**TENT, "reset": "batch"}, given)
    plain = answered(path, {**COMMON, "method": "batch_norm"}, given)

    for one, other in zip(episodic, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_probabilities_have_the_entropy_of_their_logits(path, tmp_path):
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("Softmax", ["y"], ["shares"], axis=1))
    model.graph.output[0].name = "shares"
    target = tmp_path / "shares.onnx"
    onnx.save(model, target)
    given = batches()
    made = adapter(TENT)
    made.open(target, given[0], "shares", probabilities=True)

    found = [made.answer(batch)["shares"] for batch in given]

    for one, logits in zip(found, answered(path, TENT, given), strict=True):
        wanted = torch.softmax(torch.from_numpy(logits), 1).numpy()
        np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-5)


def refused(path, options, given, scores="y"):
    made = adapter(options)

    def attempt():
        made.open(path, given[0], scores)
        for batch in given:
            made.answer(batch)

    with pytest.raises(ModelError) as caught:
        attempt()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_model_without_normalization_is_refused(tmp_path):
    path = tmp_path / "bare.onnx"
    onnx.save(tiny.classifier(), path)

    said = refused(path, TENT, [np.zeros((2, 3, 32, 32), np.float32)])

    assert "no normalization in it has a scale or a shift" in said
    assert "TrainingMode.PRESERVE" in said
    said = refused(path, {**COMMON, "method": "batch_norm"}, [np.zeros((2, 3, 32, 32), np.float32)])
    assert "no BatchNormalization" in said


def test_tent_without_a_classifier_is_refused(path):
    assert "method: batch_norm" in refused(path, TENT, batches(), scores=None)


@pytest.mark.parametrize(
    ("op", "said"), [("Log", "the output 'z' is not a number"), ("Reciprocal", "free first")]
)
def test_answers_that_are_no_numbers_are_refused(path, tmp_path, op, said):
    """The logarithm of what is below 0; and the reciprocal of 0, where a difference is NaN."""
    model = onnx.load(path)
    for name, value in (("none", 0.0), ("low", -1.0 if op == "Log" else 0.0)):
        tensor = helper.make_tensor(name, onnx.TensorProto.FLOAT, [1], [value])
        model.graph.initializer.append(tensor)
    model.graph.node.append(helper.make_node("Mul", ["y", "none"], ["flat"]))
    model.graph.node.append(helper.make_node("Add", ["flat", "low"], ["below"]))
    model.graph.node.append(helper.make_node(op, ["below"], ["z"]))
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "nan.onnx")

    found = refused(tmp_path / "nan.onnx", {**COMMON, "method": "batch_norm"}, batches(), "z")

    assert said in found


def test_a_model_for_one_sample_is_refused(path, tmp_path):
    model = onnx.load(path)
    shape = helper.make_tensor("one", onnx.TensorProto.INT64, [2], [1, 5])
    model.graph.initializer.append(shape)
    model.graph.node.append(helper.make_node("Reshape", ["y", "one"], ["z"]))
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "one.onnx")

    said = refused(tmp_path / "one.onnx", {**COMMON, "method": "batch_norm"}, batches(), "z")

    assert "one sample at a time" in said


def test_one_value_per_channel_has_no_variance(path):
    """An input of 5x5 is 3x3, then 1x1; of one sample there is one value in each channel."""
    small = [batch[:1, :, :5, :5] for batch in batches()]

    assert "larger batch" in refused(path, {**COMMON, "method": "batch_norm", "batch": 1}, small)


def test_an_entropy_that_is_no_number_is_an_error(path):
    assert "learning_rate" in refused(path, {**SGD, "learning_rate": 3e38}, batches((8,) * 6))
