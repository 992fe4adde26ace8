"""A task that takes its worker down is not run for ever, and takes nobody with it."""

from __future__ import annotations

import pytest

from adaptor.model import AttemptOutcome, PilotState
from adaptor.protocol.messages import AttemptKey, Ending, Leaving
from adaptor.resources import Room
from adaptor.scheduling.donation_facts import DonatedNode
from tests.scheduling.broker_world import Player, World

KILLER = 0


def tasks_of(player: Player) -> list[int]:
    return sorted(key.task for key in [*player.running, *player.queued])


def suspects(world: World, bag: int = 1) -> dict[int, int]:
    """By task: the losses that count, as a restarted daemon reads them."""
    world.restart()
    losses = world.broker.state.bags[bag].losses if bag in world.broker.state.bags else None
    rows = world.journal.connection.execute("SELECT number FROM task WHERE bag = ?", (bag,)).fetchall()
    return {} if losses is None else {task: len(losses.of(task)) for (task,) in rows if task in losses}


def error_of(world: World, task: int = KILLER) -> str:
    (error,) = world.journal.connection.execute("SELECT error FROM task WHERE number = ?", (task,)).fetchone()
    return str(error)


def test_a_task_that_always_takes_its_worker_down_fails_and_the_others_are_done(world: World) -> None:
    bag = world.submit(20)
    workers = 0
    while world.broker.busy:
        workers += 1
        player = world.join(f"w{workers}", processors=4)
        while player.running and KILLER not in tasks_of(player):
            world.finish(player)
        if player.running:
            world.lose(player)
    assert world.states(bag) == ["failed"] + ["done"] * 19
    assert workers == 4, "the last one for those that were suspected with it"
    assert error_of(world) == (
        f"its worker died under it 3 times (last: node node-w3, pilot 3 fell silent): "
        f"not tried again; adaptor retry {bag} tries it again, a larger max-lost more often"
    )
    (charged,) = world.journal.connection.execute("SELECT SUM(charged) FROM task").fetchone()
    assert charged == 0


def test_suspects_run_after_all_other_tasks_and_not_beside_them(world: World) -> None:
    bag = world.submit(6)
    world.lose(world.join("w", processors=2))
    player = world.join("v", processors=2)
    seen = []
    while world.broker.busy:
        seen.append(tasks_of(player))
        world.finish(player)
    assert [sorted(set(running) & {0, 1}) for running in seen[:3]] == [[], [], []]
    assert all(not set(running) & {0, 1} or not set(running) - {0, 1} for running in seen)
    assert world.states(bag) == ["done"] * 6


def test_after_the_second_loss_a_suspect_runs_alone(world: World) -> None:
    world.submit(3)
    for name in ("u", "v"):
        world.lose(world.join(name, processors=3))
    assert suspects(world) == {0: 2, 1: 2, 2: 2}
    first, second = world.join("w", processors=3), world.join("x", processors=3)
    assert (len(tasks_of(first)), len(tasks_of(second))) == (1, 1)
    world.submit(1)
    assert len(tasks_of(first)) == 1, "nothing is put beside it"
    world.finish(first)
    assert [key.bag for key in first.running] == [2], "innocent work goes first"


def test_a_death_is_told_with_the_tasks_that_it_makes_suspects(world: World) -> None:
    world.submit(7)
    world.join("w", processors=7)
    world.broker.lost("w", AttemptOutcome.LOST, world.now, world.now, "node_failed")
    (death,) = world.broker.state.changes.deaths
    assert (death.site, death.pilot) == ("site", 1)
    assert death.text == (
        "its worker on node node-w died (node_failed) while it ran task 0 of bag 1, task 1 of bag 1, "
        "task 2 of bag 1, task 3 of bag 1, task 4 of bag 1, 2 others: run last from now on, and alone "
        "after a second loss"
    )


def test_an_innocent_task_is_not_convicted_for_its_company(world: World) -> None:
    """Two losses together, and each is alone at the third."""
    bag = world.submit(2, max_lost=2)
    world.lose(world.join("u", processors=2))
    alone = world.join("v", processors=2)
    (suspect,) = tasks_of(alone)
    world.lose(alone)
    assert world.states(bag)[suspect] == "failed"
    assert world.states(bag)[1 - suspect] == "waiting"


@pytest.mark.parametrize(("most", "losses"), [(1, 1), (2, 2), (5, 5)])
def test_the_bag_says_how_many_losses_are_too_many(world: World, most: int, losses: int) -> None:
    bag = world.submit(1, max_lost=most)
    for number in range(losses):
        assert world.states(bag) == ["waiting"]
        world.lose(world.join(f"w{number}"))
    assert world.states(bag) == ["failed"]


def test_without_a_bound_a_task_is_tried_again_however_often_its_worker_dies(world: World) -> None:
    bag = world.submit(1, max_lost=0)
    for number in range(10):
        world.lose(world.join(f"w{number}"))
    assert world.states(bag) == ["waiting"]


def test_a_task_that_ends_its_worker_before_its_start_is_told_is_counted(world: World) -> None:
    """Its worker reports nothing any more."""
    world.submit(1)
    world.lost_orders = True
    world.lose(world.join("w"))
    assert suspects(world) == {0: 1}


def test_what_a_worker_held_in_reserve_is_above_suspicion_and_keeps_its_place(world: World) -> None:
    world.submit(200)
    player = world.join("w")
    world.finish(player, took=0.01)
    assert (len(player.running), player.queued[0].task) == (1, 2)
    reserve = [key.task for key in player.queued]
    world.lose(player)
    assert suspects(world) == {1: 1}
    assert list(world.broker.state.bags[1].waiting)[: len(reserve)] == reserve


@pytest.mark.parametrize(
    ("ended", "counts"),
    [
        (PilotState.WALLTIME, False),
        (PilotState.PREEMPTED, False),
        (PilotState.CANCELLED, False),
        (PilotState.NODE_FAILED, True),
        (PilotState.FAILED, True),
        (PilotState.VANISHED, True),
    ],
)
def test_the_end_of_its_pilot_says_whether_a_silent_worker_was_ended_by_its_task(
    world: World, ended: PilotState, counts: bool
) -> None:
    world.submit(1)
    player = world.join("w")
    world.now += 40
    world.lose(player)
    assert suspects(world) == {0: 1}
    world.end_pilot(player.pilot, ended)
    assert suspects(world) == ({0: 1} if counts else {})


def test_a_loss_long_before_the_walltime_is_not_excused_by_it(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    world.lose(player)
    world.now += 3600
    world.end_pilot(player.pilot, PilotState.WALLTIME)
    world.journal.name_losses(player.pilot, AttemptOutcome.WALLTIME)
    assert suspects(world) == {0: 1}
    (outcome,) = world.journal.connection.execute("SELECT outcome FROM attempt").fetchone()
    assert outcome == "lost"


def test_a_pilot_that_the_adaptor_ends_for_want_of_workers_excuses_nothing(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    world.lose(player)
    world.now += 40
    world.end_pilot(player.pilot, PilotState.CANCELLED, by_us=True)
    assert suspects(world) == {0: 1}


def test_a_pilot_that_was_put_back_into_the_queue_had_lost_its_workers_by_that(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    world.lose(player)
    started_again = world.now + 120
    world.now += 3600
    world.end_pilot(player.pilot, PilotState.FAILED, started=started_again)
    assert suspects(world) == {}


@pytest.mark.parametrize("ended", [PilotState.COMPLETED, PilotState.FAILED])
def test_a_signal_that_nobody_sent_but_the_task_counts_too(world: World, ended: PilotState) -> None:
    """`kill $PPID`: the worker leaves in good order, and the scheduler knows of no reason."""
    bag = world.submit(1, max_lost=2)
    for number in range(2):
        assert world.states(bag) == ["waiting"]
        player = world.join(f"w{number}")
        world.leave(player, Leaving.SIGNAL)
        world.end_pilot(player.pilot, ended)
    assert world.states(bag) == ["failed"]
    assert f"node node-w1, pilot 2 {ended.value}" in error_of(world)


@pytest.mark.parametrize("ended", [PilotState.CANCELLED, PilotState.PREEMPTED, PilotState.VANISHED])
def test_a_signal_of_the_scheduler_does_not_count(world: World, ended: PilotState) -> None:
    world.submit(1)
    player = world.join("w")
    world.leave(player, Leaving.SIGNAL)
    world.end_pilot(player.pilot, ended)
    assert suspects(world) == {}


def test_what_a_signal_ended_is_still_known_after_a_restart(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    world.leave(player, Leaving.SIGNAL)
    world.restart()
    world.end_pilot(player.pilot, PilotState.COMPLETED)
    assert suspects(world) == {0: 1}


def test_a_worker_that_comes_back_takes_its_tasks_off_the_list(world: World) -> None:
    world.submit(2)
    player = world.join("w")
    world.broker.lost("w", AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    world.greet(player)
    assert suspects(world) == {}


def test_a_result_that_comes_late_takes_its_task_off_the_list(world: World) -> None:
    bag = world.submit(2, retries=3)
    player = world.join("w")
    player.end(AttemptKey(bag, 0, 1), Ending.EXITED, world.now, exit_code=1)
    world.broker.lost("w", AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    world.greet(player)
    assert suspects(world) == {}
    assert world.states(bag).count("leased") == 1


def test_a_result_that_comes_too_late_changes_nothing(world: World) -> None:
    """The journal still knows why the task has failed."""
    bag = world.submit(2, max_lost=1)
    player = world.join("w")
    player.end(AttemptKey(bag, 0, 1), Ending.EXITED, world.now, exit_code=0)
    world.broker.lost("w", AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    world.greet(player)
    assert world.states(bag)[0] == "failed"
    assert suspects(world) == {0: 1}


def test_the_walltime_is_no_death(world: World) -> None:
    world.submit(1)
    player = world.join("w", time_left=100)
    world.now += 99
    world.lose(player)
    assert suspects(world) == {}


def test_workers_that_are_lost_with_the_daemon_say_nothing_of_their_tasks(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    world.restart()
    world.lose(player)
    assert suspects(world) == {}


def test_the_losses_are_still_known_after_a_restart(world: World) -> None:
    bag = world.submit(1)
    for number in range(3):
        assert world.states(bag) == ["waiting"]
        world.lose(world.join(f"w{number}"))
        world.restart()
    assert world.states(bag) == ["failed"]


def test_retry_forgets_the_losses(world: World) -> None:
    bag = world.submit(1, max_lost=1)
    world.lose(world.join("w"))
    assert world.states(bag) == ["failed"]
    world.retry(bag)
    assert suspects(world) == {}
    player = world.join("v")
    world.finish(player)
    assert world.states(bag) == ["done"]


def test_a_success_ends_the_suspicion_and_leaves_that_of_others(world: World) -> None:
    world.submit(2)
    world.lose(world.join("w", processors=2))
    world.finish(world.join("v"))
    assert suspects(world) == {1: 1}


def test_a_suspect_is_not_replicated_and_nothing_is_replicated_beside_it(world: World) -> None:
    bag = world.submit(4)
    for name in ("u", "v"):
        world.lose(world.join(name))
    assert suspects(world) == {0: 1, 1: 1}
    first = world.join("w", processors=2)
    world.finish(first, took=1.0)
    world.finish(first, took=1.0)
    assert tasks_of(first) == [0, 1]
    world.join("x", processors=2)
    for _ in range(20):
        world.now += 10
        for player in world.players.values():
            world.report(player, heartbeat=True)
    assert tasks_of(world.players["x"]) == []
    assert world.states(bag) == ["leased", "leased", "done", "done"]


def test_suspects_of_a_mixed_bag_stay_off_donated_nodes(world: World) -> None:
    mixed, transparent = world.submit(1), world.submit(1, allocation="transparent")
    node = DonatedNode(since=world.now)
    world.lose(world.join("u", processors=2, donated=node))
    player = world.join("v", processors=2, donated=DonatedNode(since=world.now - 3600))
    assert [key.bag for key in player.running] == [transparent]
    assert world.broker.donation_demands("site") == ()
    world.lose(player)
    (demand,) = world.broker.donation_demands("site")
    assert (demand.bag, demand.wanted.waiting) == (transparent, 1)
    world.finish(world.join("x", donated=DonatedNode(since=world.now - 3600)))
    assert [key.bag for key in world.join("w").running] == [mixed]


def test_two_workers_of_a_pilot_may_get_signals_of_the_same_task(world: World) -> None:
    bag = world.submit(1, max_lost=1)
    first = world.join("u")
    world.leave(first, Leaving.SIGNAL)
    world.leave(world.join("v", pilot=first.pilot), Leaving.SIGNAL)
    world.end_pilot(first.pilot, PilotState.COMPLETED)
    assert world.states(bag) == ["failed"]


def test_a_task_that_takes_a_whole_pilot_down_convicts_nobody_on_its_other_nodes(world: World) -> None:
    bag = world.submit(2)
    for name in ("u", "v"):
        world.lose(world.join(name, processors=2))
    first = world.join("w")
    second = world.join("x", pilot=first.pilot)
    assert (tasks_of(first), tasks_of(second)) == ([0], [1])
    world.lose(first)
    world.lose(second)
    assert world.states(bag) == ["waiting", "waiting"]
    world.lose(world.join("y"))
    assert sorted(world.states(bag)) == ["failed", "waiting"]


def test_losses_in_company_do_not_go_on_for_ever(world: World) -> None:
    bag = world.submit(2, max_lost=2)
    for number in range(4):
        assert world.states(bag) == ["waiting", "waiting"]
        first = world.join(f"u{number}")
        second = world.join(f"v{number}", pilot=first.pilot)
        world.lose(first)
        world.lose(second)
    assert world.states(bag) == ["failed", "failed"]


def test_a_node_that_kills_every_worker_convicts_no_task_that_others_can_run(world: World) -> None:
    bag, deaths = world.submit(12), 0
    good = world.join("good")
    while good.running:
        deaths += 1
        world.lose(world.join(f"w{deaths}", node="bad"))
        world.finish(good)
    assert world.states(bag) == ["done"] * 12


def test_tasks_that_all_kill_their_workers_on_one_node_are_given_up(world: World) -> None:
    bag, deaths = world.submit(4), 0
    while world.broker.busy:
        world.lose(world.join(f"w{deaths}", node="only"))
        deaths += 1
    assert world.states(bag) == ["failed"] * 4
    assert deaths <= 4 * 2 * 3


def test_a_node_where_a_task_was_done_is_not_to_blame(world: World) -> None:
    bag = world.submit(3, max_lost=2)
    for number in range(3):
        player = world.join(f"w{number}", node="one")
        while tasks_of(player) != [KILLER]:
            world.finish(player)
        world.lose(player)
        if not world.broker.busy:
            break
    assert world.states(bag) == ["failed", "done", "done"]
    assert number == 1


def test_the_deaths_of_other_workers_of_the_pilot_at_other_times_excuse_nobody(world: World) -> None:
    bag = world.submit(2, max_lost=1)
    first = world.join("u")
    world.join("v", pilot=first.pilot)
    world.now += 60
    world.report(world.players["v"], heartbeat=True)
    world.broker.lost("u", AttemptOutcome.LOST, world.now - 60, world.now)
    world.commit()
    assert world.states(bag) == ["failed", "leased"]


def test_tasks_that_nothing_can_run_are_given_up_suspects_included(world: World) -> None:
    bag = world.submit(4)
    first = world.join("first", processors=2)
    world.lose(first)
    second = world.join("second", processors=1)
    assert world.broker.give_up(bag, "no node can run it") == 3
    world.commit()
    world.finish(second, took=1)
    assert sorted(world.states(bag)) == ["done", "failed", "failed", "failed"]
    rows = world.journal.connection.execute("SELECT DISTINCT error FROM task WHERE state = 'failed'")
    assert rows.fetchall() == [("no node can run it",)]


def test_where_a_copy_of_a_new_suspect_runs_no_other_task_joins_it(world: World) -> None:
    """Found by the machine of `test_broker_machine.py`."""
    world.submit(2)
    first, second = world.join("a", processors=1), world.join("b", processors=1)
    for player in (first, second):
        world.report(player)
        world.report(player)
    world.finish(second, took=20)
    world.now += 30
    world.report(second)
    assert tasks_of(first) == tasks_of(second) == [KILLER], "an idle worker runs a copy"
    world.lose(second)
    first.processors = 2
    worker = world.broker.state.workers["a"]
    worker.free = Room(worker.free.processors + 1, worker.free.memory)
    world.submit(3)
    world.report(first)
    assert tasks_of(first) == [KILLER]
    world.finish(first)
    world.report(first)
    assert len(tasks_of(first)) == 2


def test_a_worker_that_dies_with_a_task_that_no_bag_has_breaks_nothing(world: World) -> None:
    """Found by the fuzz campaign: a Hello that holds task 2147483648."""
    bag = world.submit(1)
    player = world.join("w", processors=1)
    player.running[AttemptKey(bag, 2**31, 1)] = player.running[AttemptKey(bag, -1, 1)] = world.now
    world.greet(player)
    world.report(player)
    world.lose(player)
    world.finish(world.join("v", processors=1))
    assert world.states(bag) == ["done"]


def test_a_task_waits_whose_worker_is_lost_after_its_only_site_left_the_configuration(world: World) -> None:
    bag = world.submit(1, sites=("site",))
    player = world.join("w", processors=1)
    world.terms = {"elsewhere": world.terms["site"]}
    world.restart()
    world.broker.lost(player.id, AttemptOutcome.LOST, world.now, world.now)
    world.commit()
    assert world.states(bag) == ["waiting"]
    world.terms["site"] = world.terms["elsewhere"]
    world.restart()
    world.finish(world.join("v", processors=1))
    assert world.states(bag) == ["done"]
