"""The arithmetic of the report, on numbers whose results are known."""

import csv
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.clients.open_loop import Burst  # noqa: E402
from support.clients.pgbench import summary  # noqa: E402
from validation import accuracy, anatomy, causes, saturation, sweep, tables  # noqa: E402
from validation.levels import DURATION, Level, read  # noqa: E402


def test_fit_of_a_line_and_of_equality():
    twice = accuracy.fit([1, 2, 3], [2, 4, 6])
    assert twice.r2_fit == pytest.approx(1) and twice.slope == pytest.approx(2)
    assert twice.mean_error == pytest.approx(1)
    assert twice.r2_equal == pytest.approx(1 - (1 + 4 + 9) / (4 + 0 + 4))
    same = accuracy.fit([1, 2, 4], [1, 2, 4])
    assert same.r2_equal == 1 and same.worst_error == 0


def test_auc_is_the_share_of_pairs_in_order():
    assert saturation.auc([0.1, 0.2, 0.8, 0.9], [False, False, True, True]) == 1
    assert saturation.auc([0.1, 0.8, 0.2, 0.9], [False, False, True, True]) == 0.75
    assert saturation.auc([0.5, 0.5], [False, True]) == 0.5
    assert saturation.auc([0.5, 0.6], [True, True]) is None


@pytest.mark.parametrize("utilisation", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_utilisation_of_mm1_inverts_its_queue(utilisation):
    waiting = utilisation**2 / (1 - utilisation)
    assert saturation.utilisation_of_mm1(waiting) == pytest.approx(utilisation)


def test_plan_is_the_same_every_time_and_complete():
    steps = sweep.plan("redis", 13, 3)
    assert steps == sweep.plan("redis", 13, 3) != sweep.plan("nginx", 13, 3)
    assert sorted(step[:2] for step in steps) == [(load, repeat) for load in sweep.levels_of(13) for repeat in range(3)]
    assert sweep.levels_of(13) == [round(0.1 * tenth, 1) for tenth in range(1, 14)]


def test_resuming_keeps_complete_levels_only(tmp_path):
    file = tmp_path / "redis.csv"
    results = sweep.Results(file, resume=False)
    results.write_capacity(1000.0)
    results.write(0.1, 0, [("client", "whole", "completed", 17)])
    with open(file, "a", newline="") as out:
        csv.writer(out).writerow([0.7, 0, "client", "whole", "completed", 23])
        out.write("0.7,0,cli")  # killed here
    again = sweep.Results(file, resume=True)
    assert again.done == {(0.1, 0)} and again.capacity == 1000.0
    (level,) = read(file)
    assert level.load == 0.1 and level.client("completed") == 17 and level.capacity == 1000.0
    assert sweep.Results(file, resume=False).done == set()


def test_completions_at_a_moment():
    burst = Burst(100.0, 0.03, 9, 9, 9, 0, 0, None, None, timeline=[2, 4, 3], timeline_bin=0.01)
    assert [burst.completed_by(100 + after) for after in (-1, 0, 0.01, 0.015, 9)] == pytest.approx([0, 0, 2, 4, 9])


def test_summary_has_the_clients_quantiles():
    assert summary(list(range(1, 101))) == {"mean": 50.5, "p50": 51, "p90": 91, "p99": 100, "max": 100}


def level_of(load: float, p99: float, running: float = 0.0, **more) -> Level:
    level = Level("redis", load, 0, 1000)
    values = {"rate": 1000 * load, "offered": 3000 * load, "arrivals_seconds": 3, "elapsed": 3, "latency_p99": p99, **more}
    for name, value in values.items():
        level.take("client", "whole", name, value)
    level.take("client", "window", "seconds", 2.0)
    level.take("truth", "window", "cpu_seconds", 2 * running)
    level.take("tacho", "window", "tacho_requests_total", 2000 * load)
    level.take("tacho", "window", "tacho_request_queue_seconds_sum", 4.0)
    for what, value in (("intervals", 2000), ("interval_seconds", 2), ("interval_seconds_squared", 0.004)):
        level.take("tacho", "window", f'tacho_socket_{what}_total{{direction="send"}}', value)
    return level


def test_rates_and_moments_of_a_level():
    level = level_of(1.0, 0.001)
    assert level.observed_rate == pytest.approx(1000) and level.turn_window_rate == pytest.approx(1000)
    assert level.interval_variance == pytest.approx(1e-6) and level.cv2 == pytest.approx(1)
    assert saturation.Signals(level).waiting == pytest.approx(2)


def test_quantile_is_linear_within_a_bucket():
    level = level_of(1.0, 0.001)
    for bound, count in (("0.001", 0), ("0.002", 50), ("0.004", 100), ("+Inf", 100)):
        level.take("tacho", "whole", f'{DURATION}_bucket{{le="{bound}"}}', count)
    assert level.quantile(0.25) == pytest.approx(0.0015) and level.quantile(0.75) == pytest.approx(0.003)


def test_labels_and_verdict():
    slow = {"backlog": 300, "elapsed": 3.5}
    levels = [level_of(0.1, 0.002, 0.1), level_of(0.5, 0.011, 0.5), level_of(0.9, 0.013, 0.9), level_of(1.2, 0.012, 1, **slow)]
    assert saturation.objective(levels) == pytest.approx(0.012)
    assert saturation.labels(levels) == [False, False, True, True]
    cpu = saturation.judge("cpu", saturation.ESTIMATORS["CPU: running / C"], saturation.judged({"redis": levels}))
    assert cpu.pooled == 1 and cpu.missed == 0 and cpu.false_below == (0, 0) and cpu.lead == 1
    always = saturation.judge("always", lambda signals: 1.0, saturation.judged({"redis": levels}))
    assert always.pooled == 0.5 and always.false_below == (1, 1) and always.lead == pytest.approx(1 / 9)


def _trial(server: str, fault: str, expected: str, named: str) -> causes.Trial:
    return causes.Trial(server, fault, expected, named, "…")


def test_named_causes_are_counted_by_what_was_done():
    trials = [
        _trial("redis", "CPU thief", "cpu shortage", "cpu shortage"), _trial("redis", "CPU thief", "cpu shortage", ""),
        _trial("redis", "nothing", "", ""), _trial("nginx", "nothing", "", "lock"),
    ]  # fmt: skip
    lines = tables.causes(trials).splitlines()
    assert "| redis | CPU thief | 1 of 2 | nothing (1) |" in lines
    assert "| nginx | nothing | 0 of 1 | lock (1) |" in lines
    assert "| **something injected** |  | 1 of 2 | 50 % |" in lines
    assert "| **nothing injected** |  | 1 of 2 | 50 % |" in lines


def test_trials_and_levels_are_read_as_they_were_written(tmp_path):
    assert _trial("redis", "CPU thief", "cpu shortage or runqueue", "runqueue").right
    trial = _trial("redis", "disk writer", "disk", "disk")
    with open(tmp_path / "causes.csv", "w", newline="") as out:
        csv.writer(out).writerows([causes.COLUMNS, [getattr(trial, column) for column in causes.COLUMNS]])
    assert causes.read(tmp_path / "causes.csv") == [trial] and trial.right
    parts = dict.fromkeys(anatomy.PARTS, 0.0) | {"cpu": 0.001, "queue": 0.003}
    level = anatomy.Level("redis", "50 %", 100, 0.004, parts, dict.fromkeys(anatomy.MODES, 0.0) | {"same_thread": 1.0})
    with open(tmp_path / "anatomy.csv", "w", newline="") as out:
        csv.writer(out).writerows([anatomy.COLUMNS, level.row()])
    assert anatomy.read(tmp_path / "anatomy.csv") == [level]
    assert "| redis | 50 % | 100 | 4 | queue 3, cpu 1 | same_thread 100 % |" in tables.anatomy([level])
    assert causes.read(tmp_path / "none.csv") == [] == anatomy.read(tmp_path / "none.csv")


def test_a_run_of_one_kind_renews_its_table_alone(tmp_path):
    here = pathlib.Path(__file__).resolve().parent
    document = tmp_path / "WAITS.md"
    document.write_text((here / "WAITS.md").read_text())
    level = anatomy.Level("redis", "50 %", 100, 0.004, dict.fromkeys(anatomy.PARTS, 0.0) | {"queue": 0.004},
                          dict.fromkeys(anatomy.MODES, 0.0) | {"unknown": 1.0})  # fmt: skip
    with open(tmp_path / "anatomy.csv", "w", newline="") as out:
        csv.writer(out).writerows([anatomy.COLUMNS, level.row()])
    before, mark, of_causes = document.read_text().partition("## Is the cause named?")
    subprocess.run([here / "report", tmp_path, "--into", tmp_path], check=True)
    text = document.read_text()
    assert "| redis | 50 % | 100 | 4 | queue 4 | unknown 100 % |" in text
    assert mark and text.count(mark) == 1
    end = "<!-- end of the generated part: causes -->"
    assert text.partition(mark)[2].partition(end)[0] == of_causes.partition(end)[0]
