"""Numbers printed in the paper, with the digits printed."""

TABLE_1 = {
    "A": {"auc": "0.990", "ap": "0.010", "ndcg": "0.150", "recall@10": "0.000"},
    "B": {"auc": "0.555", "ap": "0.010", "ndcg": "0.122", "recall@10": "0.000"},
    "C": {"auc": "0.843", "ap": "0.101", "ndcg": "0.208", "recall@10": "0.200"},
}
