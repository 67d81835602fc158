"""How many rounds until a goal accuracy: version 1 of LG-FedAvg trains FedAvg that far."""

from lgfed_core.engine.trackers import Global, put


class Goal(Global):
    """`Global` that also keeps the first model to reach ``goal``, and the round when it did.

    Keeps ``at_goal`` [R, P], and ``goal_round`` [R], 0 while the goal has not been reached. It is
    judged on the rows that `Global` chooses by: the whole test set (``best_on_test``, as released)
    or validation rows. A run that never gets there leaves its best model in ``at_goal``.

    Also says in which round the best model was found: ``best_round`` [R].
    """

    def __init__(self, goal: float, best_on_test: bool = False, every: int = 1):
        super().__init__((), best_on_test, every)
        self.goal = goal

    def allocate(self, allocate, phase):
        super().allocate(allocate, phase)
        runs, size = phase.tensors["shared"].shape
        allocate("at_goal", runs, size)
        for name in ("goal_round", "best_round"):
            allocate(name, runs, here=True)

    def look(self, round, engine):
        t = engine.phase.tensors
        before = t["best_accuracy"].clone()
        metrics = super().look(round, engine)
        t["best_round"][t["best_accuracy"] > before] = round
        reached = (t["best_accuracy"] >= self.goal) & (t["goal_round"] == 0)
        t["goal_round"][reached] = round
        put(t, reached, at_goal="shared")
        return metrics

    def final(self, engine):
        t = engine.phase.tensors
        missed = t["goal_round"] == 0
        put(t, missed, at_goal="best")
        rounds = {name: t[name] for name in ("goal_round", "best_round")}
        return super().final(engine) | rounds | {"reached": (~missed).float()}
