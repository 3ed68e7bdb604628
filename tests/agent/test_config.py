"""Configurations: the tasks' settings, the methods, and whose settings a run follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backsweep import EpisodicBackward, GraphValues, Mixture, Prioritized, PseudoTerminals, Topological, Uniform
from backsweep.agent import METHOD_NAMES, RunConfig, method_for, run_config, train, train_fleet
from backsweep.agent.config import SessionConfig
from backsweep.agent.defaults import task_options
from backsweep.agent.fleet.loop import Clock
from backsweep.agent.fleet.run import Run, encoder_for, epsilon_schedule, given_reward_scale
from backsweep.agent.methods import method_table
from backsweep.encoding import ExactBytes, Quantized, RandomProjection
from backsweep.tasks import find_task
from trainer_helpers import paper_config


def test_the_papers_settings() -> None:
    grid = paper_config("minigrid/doorkey")
    assert (grid.batch_size, grid.learning_rate, grid.optimiser) == (64, 3e-4, "adam")
    assert (grid.target_interval, grid.ratio, grid.warmup_steps, grid.capacity) == (1_000, 0.25, 50_000, 1_000_000)
    assert (grid.steps, grid.evaluation_interval, grid.evaluation_episodes) == (6_000_000, 100_000, 100)
    assert grid.convolutions == ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    assert grid.linear == (512,)
    assert grid.clip_norm is None
    sokoban = paper_config("sokoban/6x6-2")
    assert (sokoban.batch_size, sokoban.target_interval, sokoban.eta) == (32, 10_000, 0.2)
    atari = paper_config("atari/pong")
    assert (atari.optimiser, atari.learning_rate, atari.rmsprop_alpha, atari.rmsprop_eps) == (
        "rmsprop",
        2.5e-4,
        0.95,
        1e-2,
    )


def test_the_table_reads_like_the_paper() -> None:
    config = paper_config("minigrid/doorkey", steps=1_000_000)
    per = Prioritized(alpha=0.6, beta=0.4, final_beta=1.0, beta_rows=250_000, epsilon=0.01)
    sweep = Topological(roots=8, predecessors=3, trees="separate")
    table = method_table(config)
    assert tuple(table) == METHOD_NAMES
    assert table["uer"].sampler == Uniform()
    assert table["per"].sampler == per
    assert table["ebu"].sampler == EpisodicBackward(running=False)
    assert table["ter"].sampler == Mixture([(0.5, sweep), (0.5, per)])
    assert table["ter-single"].sampler == Topological(roots=1, predecessors=1, trees="separate")
    assert table["ebu-notimeout"].sampler == EpisodicBackward(timeouts=False, running=False)
    assert [name for name, method in table.items() if method.rule.kind == "backward"] == [
        "ebu",
        "ebu-mixed",
        "ebu-notimeout",
    ]
    assert table["discor"].rule.kind == "discor"
    parts = {name: method.sampler.parts[0][1] for name, method in table.items() if isinstance(method.sampler, Mixture)}
    assert parts["ter-shuffled"].shuffle == 10_000
    assert parts["ter-nostitch"].stitch is False
    assert parts["ter-pseudo"].start == PseudoTerminals(kappa=0.01)
    assert parts["ter-visits"].draw == "visits"
    assert parts["ebu-mixed"] == EpisodicBackward(running=False)


def test_any_option_can_be_changed() -> None:
    method = method_for(paper_config("nchain-20", eta=0.1, mix_with="uniform", roots=2, predecessors=1))
    assert method.sampler == Mixture([(0.9, Topological(roots=2, predecessors=1, trees="separate")), (0.1, Uniform())])
    assert isinstance(method_for(paper_config("nchain-20", eta=0.0)).sampler, Topological)
    assert method_for(paper_config("nchain-20", method="ebu", diffusion=0.0)).rule.diffusion == 0.0
    run = Run(paper_config("minigrid/doorkey", dimension=8, capacity=100))
    assert run.replay._encoder_config.dim == 8


class TestEncoder:
    """What tells states apart."""

    def test_each_choice(self) -> None:
        assert encoder_for(paper_config("lunarlander", dimension=2)) == RandomProjection(dim=2)
        assert encoder_for(paper_config("lunarlander", encoder="bytes")) == ExactBytes()
        assert encoder_for(paper_config("lunarlander", encoder="quantized")) == Quantized(0.1)
        widths = (0.1, 0.1, 0.2, 0.2, 0.1, 0.3, 1.0, 1.0)
        assert encoder_for(paper_config("lunarlander", encoder="quantized", cell=widths)) == Quantized(widths)

    def test_near_states_are_one(self) -> None:
        vertices = {}
        for encoder in ("projection", "quantized"):
            run = Run(paper_config("lunarlander", encoder=encoder, capacity=400))
            for step in range(300):
                run.step(np.array([step % 4]), Clock())
            vertices[encoder] = run.replay.stats()["vertices"]
        assert vertices["quantized"] < 0.9 * vertices["projection"]

    def test_state_numbers_need_none(self) -> None:
        run = Run(paper_config("nchain-10", encoder="quantized", capacity=100))
        for _ in range(20):
            run.step(np.array([1]), Clock())
        assert run.replay.stats()["vertices"] <= 10

    @pytest.mark.parametrize("cell", [(), (0.1, -1.0)])
    def test_cells_have_a_width(self, cell: tuple[float, ...]) -> None:
        with pytest.raises(ValueError, match="cell must hold widths above 0"):
            paper_config("lunarlander", encoder="quantized", cell=cell)

    def test_the_number_of_widths_must_fit(self) -> None:
        with pytest.raises(ValueError, match="step has 2 entries, expected one or 8"):
            Run(paper_config("lunarlander", encoder="quantized", cell=(0.1, 0.2)))


class TestReleased:
    """Where the released code differs, one assertion for each line of the table."""

    def test_options(self) -> None:
        ter = paper_config("minigrid/unlock", method="ter", settings="released")
        assert ter.ebu_double is False  # D2
        assert ter.ebu_skipped_steps == 3  # D3
        assert ter.predecessors == 1  # D4
        assert ter.evaluation_random_chance == 0.01  # D6
        assert ter.per_beta_fraction == 1.0  # D7
        assert ter.per_clip == 1.0  # D8
        assert ter.bootstrap_at_timeout is False  # D11
        assert ter.discor_error_target is False  # D13
        assert ter.trees == "shared"  # D14
        assert ter.random_warmup is False  # D15
        assert epsilon_schedule(ter)(10_000) == pytest.approx(0.9901)

    def test_sokoban(self) -> None:
        assert paper_config("sokoban/5x5-1", method="ter", settings="released").capacity == 1_000_000  # D1
        assert paper_config("sokoban/5x5-1", method="per", settings="released").capacity == 50_000
        ter = paper_config("sokoban/5x5-1", method="ter", settings="released")
        assert ter.predecessors == 3
        assert ter.eta * ter.batch_size == 3  # D5

    def test_tasks(self) -> None:
        crossing = paper_config("minigrid/simplecrossing-hard", settings="released")
        assert task_options(crossing) == {"actions": "released"}  # D9
        assert Run(crossing).envs.num_actions == 3
        doors = paper_config("minigrid/redbluedoors", settings="released")
        assert task_options(doors) == {"actions": "released", "wrong_door": "released"}  # D10
        assert task_options(paper_config("minigrid/redbluedoors")) == {}

    def test_a_choice_can_be_undone(self) -> None:
        config = paper_config(
            "minigrid/unlock", settings="released", trees="separate", task_options={"actions": "paper"}
        )
        assert config.trees == "separate"
        assert task_options(config) == {"actions": "paper"}


def test_a_timeout_is_bootstrapped_unless_told_otherwise() -> None:
    for bootstrap, discount in ((True, 0.99), (False, 0.0)):
        config = paper_config(
            "nchain-10", method="uer", bootstrap_at_timeout=bootstrap, task_options={"max_steps": 3}, batch_size=64
        )
        run = Run(config)
        for _ in range(9):
            run.step(np.array([1]), Clock())
        batch = run.sample()
        cut = batch.row % 3 == 2
        assert cut.any()
        assert not batch.terminated.any()
        assert batch.discount[cut].tolist() == pytest.approx([discount] * int(cut.sum()))
        assert batch.discount[~cut].tolist() == pytest.approx([0.99] * int((~cut).sum()))


def test_a_timeout_ends_the_steps_that_are_folded_into_a_row() -> None:
    """Two environments, so that a row's successor is not the next row; episodes of three steps, two in a row."""
    options: dict[str, Any] = {"task_options": {"max_steps": 3}, "batch_size": 64, "num_envs": 2, "n_step": 2}
    for bootstrap in (True, False):
        run = Run(paper_config("nchain-10", method="n-step", bootstrap_at_timeout=bootstrap, **options))
        for _ in range(9):
            run.step(np.array([1, 1]), Clock())
        batch = run.sample()
        step = batch.row // 2 % 3
        assert set(step.tolist()) == {0, 1, 2}
        expected = np.where(step == 2, 0.99, 0.99**2) * ((step == 0) | bootstrap)
        assert batch.discount.tolist() == pytest.approx(expected.tolist())
        assert run.replay.truncated(batch.row, batch.steps).tolist() == (step > 0).tolist()
        assert run.replay.truncated(batch.row).tolist() == (step == 2).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "tre"}, "did you mean 'ter'"),
        ({"method": "zzz"}, "known methods are"),
        ({"settings": "partly"}, "settings must be"),
        ({"eta": 1.5}, "eta must be in 0..1"),
        ({"steps": 0}, "steps must be above 0"),
        ({"steps": "100"}, "steps must be an int, got '100'"),
        ({"steps": 1.5}, "steps must be an int, got 1.5"),
        ({"clip_norm": "no"}, "clip_norm must be a number or None, got 'no'"),
        ({"exact": 1}, "exact must be True or False, got 1"),
        ({"adam_eps": -1.0}, "adam_eps must be above 0"),
        ({"linear": (-5,)}, "linear must hold widths above 0"),
        ({"convolutions": ((8, 3, 0),)}, "convolutions must hold .*, each above 0"),
        ({"convolutions": (8,)}, "convolutions must hold .*, got 8"),
        ({"ratio": -1.0}, "ratio must be 0 or more"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paper_config("nchain-20", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["nonsense", "Graph", "", None, 1, True, []])
@pytest.mark.parametrize(
    "name", ["settings", "encoder", "mix_with", "untried", "explore", "trees", "optimiser", "dtype"]
)
def test_words_that_are_no_choice_are_refused_and_not_taken_for_another(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        paper_config("nchain-20", **{name: value})


def test_sessions_and_scales_that_are_no_choice_are_refused() -> None:
    for name in ("engine", "convolutions_by"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            SessionConfig(**{name: "nonsense"})
    for scale in ("nonsense", True, None, float("nan"), float("inf"), 0.0, [1.0]):
        with pytest.raises(ValueError, match="reward_scale must be 'auto' or above 0"):
            paper_config("nchain-20", reward_scale=scale)


def test_more_refusals() -> None:
    with pytest.raises(TypeError, match="did you mean 'batch_size'"):
        paper_config("nchain-20", batchsize=3)
    with pytest.raises(ValueError, match="unknown task"):
        paper_config("nchainn")
    with pytest.raises(ValueError, match="give a task"):
        paper_config()
    with pytest.raises(ValueError, match="not both"):
        paper_config("nchain-20", env="CartPole-v1")
    with pytest.raises(ValueError, match="tasks of the table"):
        paper_config(env="CartPole-v1", exact=True)
    with pytest.raises(ValueError, match="threads"):
        SessionConfig(threads=0)
    with pytest.raises(ValueError, match="checkpoint_interval"):
        SessionConfig(checkpoint_interval=-1)
    with pytest.raises(ValueError, match="does not know: colour"):
        RunConfig.from_json({**paper_config("nchain-20").to_json(), "colour": 1})


def test_a_configuration_survives_its_file() -> None:
    config = paper_config("minigrid/doorkey", method="ebu", task_options={"random_action_chance": 0.1}, seed=3)
    assert RunConfig.from_json(config.to_json()) == config


def test_a_file_from_before_an_option_still_loads() -> None:
    config = paper_config("lunarlander", seed=3)
    before = {name: value for name, value in config.to_json().items() if name not in ("encoder", "cell")}
    assert RunConfig.from_json(before) == config


def test_atari_frames_are_kept_once(tmp_path: Path) -> None:
    config = paper_config(
        "atari/pong",
        method="ter",
        steps=60,
        warmup_steps=40,
        capacity=1_000,
        batch_size=4,
        evaluation_interval=1_000,
        evaluation_episodes=1,
        task_options={"max_steps": 20},
        probe_size=4,
    )
    assert config.frame_stack == 4
    run = Run(config)
    for _ in range(50):
        run.step(np.array([0]), Clock())
    stats = run.replay.stats()
    assert stats["distinct_frames"] < 1.5 * stats["distinct_observations"]
    result = train(config, tmp_path / "run", quiet=True)
    assert result.finished
    assert result.evaluation is not None
    assert result.evaluation.mean_length <= 20


def test_our_settings_are_the_default_and_fit_the_budget() -> None:
    config = run_config("minigrid/doorkey")
    assert (config.method, config.settings, config.reward_scale, config.steps) == ("graph", "ours", "auto", 1_000_000)
    short = run_config("minigrid/doorkey", steps=100_000)
    assert (short.warmup_steps, short.epsilon_steps, short.evaluation_interval) == (5_000, 80_000, 2_500)
    values = GraphValues(gap=config.gap, cautious=False, refresh=config.refresh, noise_limit=None)
    assert method_for(config).values == values
    assert isinstance(method_for(config).sampler, Prioritized)
    assert run_config("minigrid/doorkey", settings="paper").reward_scale == 1.0


def test_where_outcomes_may_be_random_and_states_new_graph_values_measure_noise_and_are_cautious() -> None:
    method = method_for(run_config("minatar/asterix"))
    assert method.values is not None
    assert method.values.noise_limit == GraphValues().noise_limit
    assert method.values.cautious
    assert isinstance(method.sampler, Prioritized)
    assert run_config("minatar/asterix", method="per").noise_limit is None
    assert method_for(run_config(env="CartPole-v1")).values == method.values


def test_a_configuration_that_said_faithful_still_loads() -> None:
    data = run_config("nchain-20", settings="released").to_json()
    data["faithful"] = data.pop("settings")
    assert RunConfig.from_json(data).settings == "released"


def test_reward_scales_are_given_known_or_estimated() -> None:
    assert given_reward_scale(run_config("minigrid/doorkey", reward_scale=0.5)) == 0.5
    low, high = find_task("minigrid/doorkey").return_bounds
    assert given_reward_scale(run_config("minigrid/doorkey")) == 1.0 / max(-low, high)
    assert given_reward_scale(run_config(env="CartPole-v1")) is None
    run = Run(run_config(env="CartPole-v1"))
    for _ in range(3):
        run.replay.add(np.zeros(4, np.float32), 0, 2.0, np.zeros(4, np.float32), False, False)
    assert run.estimate_reward_scale() == pytest.approx(1 / 6)
    run.replay.add(np.zeros(4, np.float32), 0, 50.0, np.zeros(4, np.float32), False, False)
    assert run.estimate_reward_scale() == pytest.approx(1 / 6)  # stays what it was
    with pytest.raises(ValueError, match="reward_scale must be 'auto' or above 0, got 0"):
        run_config("nchain-20", reward_scale=0)


def test_graph_values_sweep_on_sokoban_only() -> None:
    """Where every end is a success, sweeps from ends draw the rows that lead there."""
    assert run_config("sokoban/6x6-2").eta == run_config("sokoban/6x6-2", method="ter").eta == 0.2
    assert run_config("minigrid/doorkey").eta == 1.0
    assert run_config("sokoban/6x6-2", eta=1.0).eta == 1.0
    assert run_config("sokoban/6x6-2", method="ter", settings="released").eta == 3 / 32


def test_short_runs_are_not_all_evaluations() -> None:
    intervals = {300: 300, 500: 500, 2_000: 500, 20_000: 500, 40_000: 1_000}
    for steps, interval in intervals.items():
        assert run_config("minigrid/doorkey", steps=steps).evaluation_interval == interval


def test_a_gymnasium_id_stands_in_the_place_of_the_task() -> None:
    assert run_config("CartPole-v1", seed=3) == run_config(env="CartPole-v1", seed=3)
    with pytest.raises(ValueError, match="not both"):
        run_config("nchain-5", env="CartPole-v1")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": "3"}, "steps must be an int, got '3'"),
        ({"task": 3}, "task must be a name, got a int"),
        ({"method": ["uer"]}, "method must be a name, got a list"),
        ({"task_options": "length"}, "task_options must be a dict of the task's options, got 'length'"),
        ({"linear": 3}, "linear must be a tuple, got 3"),
    ],
)
def test_what_cannot_be_an_argument_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run_config(**{"task": "minigrid/doorkey", **given})


def test_training_takes_configurations_alone(tmp_path: Path) -> None:
    config = run_config("nchain-5")
    with pytest.raises(TypeError, match="config must be what run_config returns, got a str"):
        train("nchain-5", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="configs must be a dict from names to configurations, got a list"):
        train_fleet([config], tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"configs\['a'\] must be what run_config returns, got a str"):
        train_fleet({"a": "nchain-5"}, tmp_path)  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="the names of configs must be text, got 3"):
        train_fleet({3: config}, tmp_path)  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())
