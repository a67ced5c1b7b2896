"""Laws of replays: a place's task and instance, one segment, and all else as the stream has it."""

from sojourn.envs import (
    BanditTask,
    BernoulliBandit,
    DarkRoom,
    Family,
    Length,
    RandomLength,
    Recurring,
    Stream,
    Workers,
    replay,
)

PLACES = [(0, 1), (2, 0)]


def stream_of(family: Family) -> Stream:
    schedule = Recurring([family], num_tasks=2)
    return Stream(schedule, Length(2), seed=3, announce="announced", workers=2)


def test_lifetimes_live_the_segments_of_their_places() -> None:
    stream = stream_of(DarkRoom(3, 4))
    again = replay(stream, PLACES)
    for lifetime in range(5):
        found, met = again.segment(lifetime, 0), stream.segment(*PLACES[lifetime % 2])
        assert found == met
        assert again.num_segments(lifetime) == 1


def test_a_task_that_draws_new_instances_is_met_on_others() -> None:
    stream = stream_of(BernoulliBandit(2, 4))
    assert stream.segment(0, 0).task.instance == "resampled"
    again = replay(stream, [(0, 0), (0, 1)])
    first, same, other = (again.segment(number, 0) for number in (0, 2, 1))
    assert first.seed == same.seed != other.seed
    assert first.seed != stream.segment(0, 0).seed
    task, met = first.task, stream.segment(0, 0).task
    assert isinstance(task, BanditTask) and isinstance(met, BanditTask)
    assert (task.before == met.before).all(), "the arms are those of the place"


def test_all_else_is_the_streams() -> None:
    stream = stream_of(DarkRoom(3, 4))
    again = replay(stream, PLACES, RandomLength(1, 3, "episodes"))
    assert again.workers == Workers(2) and again.announce == "announced"
    assert again.interface == stream.interface and again.seed == stream.seed
    assert {again.segment(number, 0).length.amount for number in range(40)} == {1, 2, 3}
    assert stream.lifetime_segments is None and stream.length == Length(2), "left as it was"
