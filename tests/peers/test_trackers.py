"""Names of results in a real MLflow, stored in a database and read back."""

import pytest

import truerank as tr

mlflow = pytest.importorskip("mlflow", reason="install the extra 'peers'")

RANKS = {"A <b>": tr.Ranks.from_ranks([1, 3, 12], n=50), "../é": tr.Ranks.from_ranks([2, 40, 1], n=50)}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's own database
METRICS = ["ndcg@10", "recall@5", "rbp(0.8)", "auc", "ap"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('runs')}/runs.db"


@pytest.fixture
def run(database: str) -> str:
    mlflow.set_tracking_uri(database)
    with mlflow.start_run() as started:
        return str(started.info.run_id)


def logged(run: str, found: dict[str, float]) -> dict[str, float]:
    with mlflow.start_run(run_id=run):
        mlflow.log_metrics(found)
    return dict(mlflow.get_run(run).data.metrics)


def test_one_recommender(run: str) -> None:
    table = tr.evaluate(RANKS["A <b>"], METRICS)
    found = logged(run, table.to_dict(safe=True))
    assert found["ndcg_at_10"] == table["ndcg@10"].mean
    assert found["ndcg_at_10/se"] == table["ndcg@10"].standard_error
    assert found["rbp_0.8"] == table["rbp(0.8)"].mean
    assert len(found) == 2 * len(METRICS)


def test_names_of_recommenders_and_groups(run: str) -> None:
    table = tr.evaluate(RANKS, METRICS, by={0: "new users", 1: "old (10+)", 2: "new users"})
    found = logged(run, table.to_dict(safe=True))
    assert found["A_b/new_users/ndcg_at_10"] == table["A <b>", "ndcg@10", "new users"].mean
    assert len(found) == 2 * len(METRICS) * 2 * 2


def test_corrected_metrics(run: str) -> None:
    sampled = tr.Ranks.from_sampled([1, 17, 3], m=100, n=3_541)
    found = logged(run, tr.evaluate(sampled, "recall@10~bv(0.1)").to_dict(safe=True))
    assert set(found) == {"recall_at_10_bv_0.1", "recall_at_10_bv_0.1/se"}


def test_plain_names_are_refused_which_is_why_there_are_safe_ones(run: str) -> None:
    with pytest.raises(mlflow.MlflowException, match="Names may only contain alphanumerics"):
        logged(run, tr.evaluate(RANKS["A <b>"], "ndcg@10").to_dict())
