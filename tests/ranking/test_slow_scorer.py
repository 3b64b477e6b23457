"""A scorer of pairs that counts what it is asked for, on real data: four designs at similar budgets."""

import pytest

import truerank as tr
from tests import shared
from tests.arrays import AnyArray, Ints

DATA = shared.DATA / "ml-1m-leave-last-out"


@pytest.mark.skipif(not DATA.exists(), reason="the folder ../shared/data is not there")
def test_four_designs_at_similar_budgets() -> None:
    split = tr.read_split(DATA)
    model = tr.IALS(factors=16, alpha=0.2, regularization=10.0, sweeps=4, init_scale=0.1, rng=0).fit(split.train)
    asked: list[int] = []

    def slow(users: Ints, items: Ints) -> AnyArray:
        asked.append(users.size)
        return model.pairs(users, items)

    exact = tr.rank(model, split)
    truth = {metric: tr.estimate(exact, metric).mean for metric in ("ap", "ndcg@10")}
    designs = [tr.HeadFirst(k=10), tr.InverseSampling(2), tr.UniformSampling(300)]
    error = {}
    for design in designs:
        asked.clear()
        ranks = tr.rank_sampled(slow, split, design=design, rng=1)
        assert sum(asked) == ranks.n_scored.sum()
        assert 200 < sum(asked) / len(ranks) < 350
        assert len(asked) < 40
        name = "ndcg@10~smooth" if design == designs[2] else "ndcg@10"
        error[str(design)] = abs(tr.estimate(ranks, name).mean / truth["ndcg@10"] - 1)
        if design == designs[1]:
            assert tr.estimate(ranks, "ap").mean == pytest.approx(truth["ap"], rel=0.04)
    assert error["head-first@10"] < 1e-12
    assert error["inverse"] < 0.08
